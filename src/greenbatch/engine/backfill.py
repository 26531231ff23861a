"""Backfilling ahead of a blocked job; `program.BACKFILL_MEANINGS` describes the kinds."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.codes import BACKFILL, EASY, EASY_GREEN_ORDER, GREEN
from greenbatch.engine.compile import compiled, compiled_small, whole
from greenbatch.engine.events import start
from greenbatch.engine.forecast import is_below_threshold, project_surplus
from greenbatch.engine.machine.protocol import fits
from greenbatch.engine.queue import position_of, sort_ranked
from greenbatch.engine.records import Clock, Floats, Int32s, RuleSet
from greenbatch.engine.state import State


@compiled_small
def latest_end_s(clock: Clock, rules: RuleSet) -> float:
    """Latest end of a candidate that may use processors of the head: strictly before its start, except in EASY. [s]"""
    return clock.shadow_s if rules.backfill == EASY else np.nextafter(clock.shadow_s, -np.inf)


@compiled_small
def spare(clock: Clock, rules: RuleSet) -> int:
    """Processors that candidates may use beyond the start of the head."""
    return clock.spare if rules.backfill == EASY else -1


@compiled_small
def may_start(s: State, position: int, latest_s: float) -> bool:
    """Whether a candidate can start now without delaying the reservation (ignoring brown energy)."""
    processors = whole(s.queue.processors[position])
    if not fits(s.machine, processors, s.clock.now_s):
        return False
    return bool(s.clock.now_s + s.queue.requested_s[position] <= latest_s or processors <= spare(s.clock, s.rules))


@compiled_small
def next_candidate(
    processors: Int32s, requested_s: Floats, first: int, last: int, now_s: float, latest_s: float, free: int, spare: int
) -> int:  # fmt: skip
    """The first waiting job from ``first`` on that may start if processors are all that it takes, or ``last``."""
    i, stop = np.uint64(first), np.uint64(last)  # unsigned: a negative index would count from the end
    most, most_beyond = np.int32(free), np.int32(spare)
    while i < stop:
        need = processors[i]
        if need <= most and (now_s + requested_s[i] <= latest_s or need <= most_beyond):
            break
        i += np.uint64(1)
    return whole(int(i))


@compiled_small
def _start_candidate(s: State, position: int) -> int:
    processors = s.queue.processors[position]
    if s.clock.now_s + s.queue.requested_s[position] > s.clock.shadow_s:
        s.clock.spare -= processors
    return start(s, position, BACKFILL)


@compiled_small
def backfill(s: State, head: int) -> None:
    """One pass over the queue around the blocked job ``head``."""
    if s.rules.backfill in (EASY_GREEN_ORDER, GREEN):
        _backfill_green(s, head)
        return
    c, q, totals = s.clock, s.queue, s.machine.totals
    i, latest_s = c.first, latest_end_s(s.clock, s.rules)
    while totals.free > 0:
        i = next_candidate(q.processors, q.requested_s, i, c.last, c.now_s, latest_s, totals.free, spare(c, s.rules))
        if i == c.last:
            break
        if q.job[i] != head and fits(s.machine, whole(q.processors[i]), c.now_s):
            i = _start_candidate(s, i)
        else:
            i += 1


@compiled_small
def backfill_arrival(s: State) -> None:
    """Try only the job that arrived last: no other job can have become eligible since the last pass."""
    position = s.clock.last - 1
    if may_start(s, position, latest_end_s(s.clock, s.rules)):
        _start_candidate(s, position)


@compiled
def _backfill_green(s: State, head: int) -> None:
    c, ranked = s.clock, s.scratch.ranked
    count, longest_s, latest_s = 0, 0.0, latest_end_s(s.clock, s.rules)
    for i in range(c.first, c.last):
        number = whole(s.queue.job[i])
        if may_start(s, i, latest_s) and number != head:
            job = s.jobs[number]
            ranked[count].key = job.power_w * job.requested_s * job.processors  # Eq. 15
            ranked[count].job = number
            longest_s = max(longest_s, job.requested_s)
            count += 1
    sort_ranked(ranked, count)
    stale = True
    for k in range(count):
        number = ranked[k].job
        job = s.jobs[number]
        if not fits(s.machine, whole(job.processors), c.now_s):
            continue
        if s.rules.backfill == GREEN:
            if stale:
                project_surplus(s, c.now_s, c.now_s + longest_s)
                stale = False
            if not is_below_threshold(s.scratch.surplus, c.segments, job.power_w, job.requested_s, s.rules.threshold_j):
                continue
        start(s, position_of(s.queue, c, number), BACKFILL)
        stale = True
