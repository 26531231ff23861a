"""Backfilling ahead of a blocked job; `program.BACKFILL_MEANINGS` describes the kinds."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.admission import keeps_pools
from greenbatch.engine.capacity.units import leaves_powered, take_beside
from greenbatch.engine.codes import BACKFILL, EASY, EASY_IRMASIM, EASY_SCHEDGYM, FIRST_FIT, GREEN
from greenbatch.engine.events import start
from greenbatch.engine.forecast import is_below_threshold, project_surplus
from greenbatch.engine.limits import can_be_next, can_start, leaves_limits
from greenbatch.engine.machine.competition import all_compete, competes
from greenbatch.engine.machine.easy_irmasim import node_beside
from greenbatch.engine.machine.node_choice import prefer_node
from greenbatch.engine.machine.node_tables import ANY
from greenbatch.engine.machine.power_states import longest_boot_s
from greenbatch.engine.machine.preview import rise_w
from greenbatch.engine.machine.resources import fits_beside
from greenbatch.engine.power.protocol import Weights, is_brown
from greenbatch.engine.power_cap import take_from_spare
from greenbatch.engine.queue import position_of, rank_queue
from greenbatch.engine.ranked import sort_ranked
from greenbatch.engine.records import Clock, Floats, Int32s, RuleSet
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small, whole


@compiled_small
def latest_end_s(s: State) -> float:
    """Latest end of a candidate that may use processors of the head, if it begins to run now. [s]

    Before the start of the head, or in EASY at it; its nodes may have to boot first.
    """
    shadow_s = s.clock.shadow_s - longest_boot_s(s.machine)
    return shadow_s if s.rules.backfill == EASY else np.nextafter(shadow_s, -np.inf)


@compiled_small
def spare(clock: Clock, rules: RuleSet) -> int:
    """Processors that candidates may use beyond the start of the head."""
    return clock.spare if rules.backfill == EASY else -1


@compiled_small
def _longest_end_s(s: State, latest_s: float) -> float:
    """Latest end of any candidate: those that do not compete with the head may end at any time. [s]"""
    return latest_s if all_compete(s.machine) else np.inf


@compiled_small
def may_start(s: State, position: int, latest_s: float, head: int) -> bool:
    """Whether a candidate can start now without delaying the reservation of the head (ignoring brown energy)."""
    job, processors = whole(s.queue.job[position]), whole(s.queue.processors[position])
    if not can_start(s, job, processors):
        return False
    if not competes(s.machine, job, head):  # under ``reconsider``, the policy chooses among those itself
        return bool(s.rules.sticky)
    if s.clock.now_s + s.queue.requested_s[position] <= latest_s:
        return True
    return bool(s.rules.backfill == EASY) and leaves_room(s, job, processors, head)


@compiled_small
def leaves_room(s: State, job: int, processors: int, head: int) -> bool:
    """Whether a job that starts now and outlives the reservation of the head leaves it all that it needs."""
    if not fits_beside(s.machine, job, processors, whole(s.clock.spare)):
        return False
    if not leaves_powered(s.capacity, s.clock, s.machine.totals, job):
        return False
    return not s.rules.guarded or leaves_limits(s, job, head)


@compiled_small
def take_from_head(s: State, job: int, processors: int) -> None:
    """Take a job that outlives the reservation from what the head leaves; it is about to start."""
    take_beside(s.capacity, s.clock, s.machine.totals, job, processors)
    if s.rules.power_cap_w > 0.0:
        take_from_spare(s, job)


@compiled_small
def next_candidate(
    processors: Int32s, requested_s: Floats, first: int, last: int, now_s: float, latest_s: float, free: int, spare: int
) -> int:  # fmt: skip
    """The first waiting job from ``first`` on that may start if processors are all that it takes, or ``last``."""
    i = _skip(32, processors, requested_s, first, last, now_s, latest_s, free, spare)  # compared with vectors
    i = _skip(4, processors, requested_s, i, last, now_s, latest_s, free, spare)  # one branch to guess instead of 12
    return _skip(1, processors, requested_s, i, last, now_s, latest_s, free, spare)


@compiled_small
def _skip(
    group: int, processors: Int32s, requested_s: Floats, first: int, last: int, now_s: float, latest_s: float,
    free: int, spare: int,
) -> int:  # fmt: skip
    """The beginning of the first whole group of so many jobs with a candidate among them, or of what is left."""
    i, stop, size = np.uint64(first), np.uint64(last), np.uint64(group)  # a signed index could count from the end
    most, most_beyond = np.int32(free), np.int32(spare)
    while i + size <= stop:
        found = np.int32(0)
        for k in range(i, i + size):  # numbers instead of conditions: no branches
            need = processors[k]
            ends = np.int32(now_s + requested_s[k] <= latest_s)
            found |= np.int32(need <= most) & (ends | np.int32(need <= most_beyond))
        if found:
            break
        i += size
    return whole(int(i))


@compiled_small
def outlives_head(s: State, position: int, head: int) -> bool:
    """Whether a candidate that starts now outlives the reservation of the head, and competes with it."""
    end_s = s.clock.now_s + longest_boot_s(s.machine) + s.queue.requested_s[position]
    return bool(end_s > s.clock.shadow_s and competes(s.machine, whole(s.queue.job[position]), head))


@compiled_small
def _start_candidate(s: State, position: int, head: int) -> int:
    """Start a candidate; one that outlives the reservation takes only what the head leaves."""
    outlives = outlives_head(s, position, head)
    if outlives:
        take_from_head(s, whole(s.queue.job[position]), whole(s.queue.processors[position]))
    return start(s, position, BACKFILL, outlives)


@compiled_small
def backfill(s: State, head: int) -> None:
    """One pass over the queue around the blocked job ``head``."""
    if s.rules.backfill not in (EASY, EASY_SCHEDGYM):
        if s.machine.totals.free > 0:
            _backfill_otherwise(s, head)
        return
    c, q, totals = s.clock, s.queue, s.machine.totals
    i, latest_s = c.first, latest_end_s(s)
    end_s = _longest_end_s(s, latest_s)
    while totals.free > 0:
        i = next_candidate(q.processors, q.requested_s, i, c.last, c.now_s, end_s, totals.free, spare(c, s.rules))
        if i == c.last:
            break
        if q.job[i] != head and may_start(s, i, latest_s, head):
            i = _start_candidate(s, i, head)
        else:
            i += 1


@compiled
def _backfill_otherwise(s: State, head: int) -> None:
    """The kinds of backfilling that sort their candidates, or try them on every node by itself."""
    if s.rules.backfill == FIRST_FIT:
        _start_all_that_fit(s)
    elif s.rules.backfill == EASY_IRMASIM:
        _start_beside(s, head)
    else:
        _backfill_green(s, head)


@compiled_small
def backfill_arrival(s: State, head: int) -> None:
    """Try only the job that arrived last: no other job can have become eligible since the last pass."""
    position = s.clock.last - 1
    if s.queue.job[position] != head and may_start(s, position, latest_end_s(s), head):  # the arrival may be rejected
        _start_candidate(s, position, head)


@compiled
def _start(s: State, position: int) -> int:
    """`start` for the rarer kinds of backfilling, which do not inline it."""
    return start(s, position, BACKFILL, False)


@compiled_small
def _start_beside(s: State, head: int) -> None:
    """One pass over the queue; each job is tried on every node by itself."""
    c, i = s.clock, s.clock.first
    while i < c.last:
        job = whole(s.queue.job[i])
        node = -1
        if job != head:
            node = node_beside(s.machine, s.expected, c, job, head, c.now_s + s.queue.requested_s[i])
        if node >= 0:
            prefer_node(s.machine, node, ANY)
            i = _start(s, i)
        else:
            i += 1


@compiled_small
def _start_all_that_fit(s: State) -> None:
    """One pass over the queue in order of score, without a reservation."""
    if keeps_pools(s.capacity):
        _start_in_order(s)
        return
    count = rank_queue(s.queue, s.clock, s.scratch.ranked)
    for k in range(count):
        if s.machine.totals.free == 0:
            break
        number = whole(s.scratch.ranked[k].job)
        if can_start(s, number, whole(s.jobs[number].processors)):
            _start(s, whole(position_of(s.queue, s.clock, number)))


@compiled
def _start_in_order(s: State) -> None:
    """Start the first job of the order that fits, again and again; another may be ready after each start."""
    c, q = s.clock, s.queue
    while True:
        best = -1
        for i in range(c.first, c.last):
            if (best < 0 or q.score[i] < q.score[best]) and can_be_next(s, whole(q.job[i])):
                best = i if can_start(s, whole(q.job[i]), whole(q.processors[i])) else best
        if best < 0:
            return
        _start(s, best)


@compiled_small
def _backfill_green(s: State, head: int) -> None:
    c, q, ranked = s.clock, s.queue, s.scratch.ranked
    count, longest_s, latest_s = 0, 0.0, latest_end_s(s)
    free, end_s, i = s.machine.totals.free, _longest_end_s(s, latest_s), c.first - 1
    while True:
        i = next_candidate(q.processors, q.requested_s, i + 1, c.last, c.now_s, end_s, free, -1)
        if i == c.last:
            break
        number = whole(q.job[i])
        if may_start(s, i, latest_s, head) and number != head:
            job = s.jobs[number]
            power_w = rise_w(s.machine, number, whole(job.processors), job.power_w, False)
            ranked[count].key = power_w * job.requested_s * job.processors  # Eq. 15
            ranked[count].job = number
            longest_s = max(longest_s, job.requested_s)
            count += 1
    sort_ranked(ranked, count)
    stale, weights = True, Weights(s.rules.weight_brown, s.rules.weight_cost, s.rules.weight_carbon)
    for k in range(count):
        number = ranked[k].job
        job = s.jobs[number]
        if not can_start(s, whole(number), whole(job.processors)):
            continue
        if s.rules.backfill == GREEN:
            if stale:
                project_surplus(s, c.now_s, c.now_s + longest_s, weights)
                stale = False
            power_w = rise_w(s.machine, whole(number), whole(job.processors), job.power_w, False)
            segments, sigma_j = s.scratch.surplus, s.rules.threshold_j
            if not is_below_threshold(segments, c.segments, power_w, job.requested_s, sigma_j, is_brown(weights)):
                continue
        _start(s, whole(position_of(s.queue, c, number)))
        stale = True
