"""Backfilling ahead of a blocked job; `program.BACKFILL_MEANINGS` describes the kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.forecast import is_below_threshold, project_surplus
from greenbatch.engine.queue import position_of, sort_ranked, start
from greenbatch.engine.state import EASY, EASY_GREEN_ORDER, GREEN


@compiled_small
def reserve(s: Any, job: int) -> None:
    """Compute the shadow time, at which a blocked job can start by requested ends, and the spare processors then.

    A running job past its requested end is expected to end now.
    """
    c = s.clock
    need, free = s.jobs[job].processors, c.free
    i, stop = c.expected_first, c.expected_first + c.running
    shadow_s = c.now_s
    while i < stop and free < need:
        free += s.expected[i].processors
        shadow_s = max(c.now_s, s.expected[i].end_s)
        i += 1
    while i < stop and s.expected[i].end_s <= shadow_s:
        free += s.expected[i].processors
        i += 1
    c.shadow_s, c.spare = shadow_s, free - need
    if np.isnan(s.jobs[job].promised_s):
        s.jobs[job].promised_s = shadow_s


@compiled_small
def may_start(s: Any, entry: Any) -> bool:
    """Whether a candidate can start now without delaying the reservation (ignoring brown energy)."""
    c = s.clock
    if entry.processors > c.free:
        return False
    end_s = c.now_s + entry.requested_s
    if s.set.backfill == EASY:
        return bool(end_s <= c.shadow_s or entry.processors <= c.spare)
    return bool(end_s < c.shadow_s)


@compiled_small
def _start_candidate(s: Any, position: int) -> int:
    entry = s.queue[position]
    if s.clock.now_s + entry.requested_s > s.clock.shadow_s:
        s.clock.spare -= entry.processors
    return start(s, position)


@compiled
def backfill(s: Any, head: int) -> None:
    """One pass over the queue around the blocked job ``head``."""
    if s.set.backfill in (EASY_GREEN_ORDER, GREEN):
        _backfill_green(s, head)
        return
    i = s.clock.first
    while i < s.clock.last and s.clock.free > 0:
        if may_start(s, s.queue[i]) and s.queue[i].job != head:
            i = _start_candidate(s, i)
        else:
            i += 1


@compiled_small
def backfill_arrival(s: Any) -> None:
    """Try only the job that arrived last: no other job can have become eligible since the last pass."""
    position = s.clock.last - 1
    if may_start(s, s.queue[position]):
        _start_candidate(s, position)


@compiled
def _backfill_green(s: Any, head: int) -> None:
    c = s.clock
    count, longest_s = 0, 0.0
    for i in range(c.first, c.last):
        entry = s.queue[i]
        if may_start(s, entry) and entry.job != head:
            s.ranked[count].key = s.jobs[entry.job].power_w * entry.requested_s * entry.processors  # Eq. 15
            s.ranked[count].job = entry.job
            longest_s = max(longest_s, entry.requested_s)
            count += 1
    sort_ranked(s.ranked, count)
    stale = True
    for k in range(count):
        job = s.jobs[s.ranked[k].job]
        if job.processors > c.free:
            continue
        if s.set.backfill == GREEN:
            if stale:
                project_surplus(s, c.now_s, c.now_s + longest_s)
                stale = False
            if not is_below_threshold(s, job.power_w, job.requested_s):
                continue
        start(s, position_of(s, s.ranked[k].job))
        stale = True
