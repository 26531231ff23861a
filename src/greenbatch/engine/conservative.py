"""Conservative backfilling: every job gets a reservation at submission, and no reservation is moved later.

Source: Mu'alem & Feitelson 2001. When a job ends before its requested time, the plan is compressed: in order of the
policy's score, each waiting job gives up its reservation and takes the earliest slot, which is never later than the old
one. If jobs do not exceed their requests (``overrun = "kill"``), no job starts later than first promised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled
from greenbatch.engine.events import NOTHING, drain, step
from greenbatch.engine.queue import rank_queue, start
from greenbatch.engine.state import BY_RULE, OK
from greenbatch.engine.step import fill_scores


@compiled
def _cut(s: Any, count: int, time_s: float) -> tuple[int, int]:
    """Split the plan at a time; return the index of the slot that begins there and the new number of slots."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if s.plan[middle].time_s < time_s:
            low = middle + 1
        else:
            high = middle
    if low < count and s.plan[low].time_s == time_s:
        return low, count
    for i in range(count, low, -1):
        s.plan[i] = s.plan[i - 1]
    s.plan[low].time_s = time_s
    s.plan[low].free = s.plan[low - 1].free
    return low, count + 1


@compiled
def _take(s: Any, count: int, from_s: float, until_s: float, processors: int) -> int:
    """Occupy processors in the plan over an interval; return the new number of slots."""
    first, count = _cut(s, count, from_s)
    last, count = _cut(s, count, until_s)
    for i in range(first, last):
        s.plan[i].free -= processors
    return count


@compiled
def earliest_s(s: Any, count: int, processors: int, duration_s: float) -> float:
    """Earliest time from which the plan has enough free processors for the whole duration. [s]"""
    i = 0
    while True:
        begin_s = s.plan[i].time_s
        k = i
        while k < count and s.plan[k].free >= processors and s.plan[k].time_s < begin_s + duration_s:
            k += 1
        if k == count or s.plan[k].time_s >= begin_s + duration_s:
            return float(begin_s)
        i = k + 1  # slot k is too small: no start before its end is possible


@compiled
def _plan_of_running(s: Any) -> int:
    """Reset the plan to the running jobs only; return its number of slots."""
    c = s.clock
    s.plan[0].time_s, s.plan[0].free = c.now_s, c.free
    s.plan[1].time_s, s.plan[1].free = np.inf, 0
    count = 2
    for i in range(c.expected_first, c.expected_first + c.running):
        end_s = s.expected[i].end_s
        if end_s < c.now_s:  # past its requested end: assumed to overrun for as long again, at least a minute
            end_s = c.now_s + max(60.0, c.now_s - end_s)
        count = _take(s, count, end_s, np.inf, -s.expected[i].processors)
    return count - 1


@compiled
def _plan_all(s: Any) -> int:
    """Reset the plan to the running jobs and all reservations; return its number of slots."""
    count = _plan_of_running(s)
    for i in range(s.clock.first, s.clock.last):
        job = s.jobs[s.queue[i].job]
        if not np.isnan(job.reserved_s):
            begin_s = max(job.reserved_s, s.clock.now_s)
            count = _take(s, count, begin_s, begin_s + job.requested_s, job.processors)
    return count


@compiled
def _start_due(s: Any) -> None:
    """Start the jobs whose reservations are due, in order of submission."""
    i = s.clock.first
    while i < s.clock.last:
        job = s.jobs[s.queue[i].job]
        if job.reserved_s <= s.clock.now_s and job.processors <= s.clock.free:
            i = start(s, i)
            s.clock.decisions += 1
        else:
            i += 1


@compiled
def _forget_past(s: Any, count: int) -> int:
    """Drop the slots of the plan that have passed; return the new number of slots."""
    passed = 0
    while passed + 1 < count and s.plan[passed + 1].time_s <= s.clock.now_s:
        passed += 1
    if passed > 0:
        for i in range(passed, count):
            s.plan[i - passed] = s.plan[i]
    s.plan[0].time_s = s.clock.now_s
    return count - passed


@compiled
def _compress(s: Any) -> int:
    """Move reservations earlier, never later, in order of score; return the number of slots of the new plan."""
    count = _plan_all(s)
    for k in range(rank_queue(s)):
        job = s.jobs[s.ranked[k].job]
        if np.isnan(job.reserved_s):
            continue
        begin_s = max(job.reserved_s, s.clock.now_s)
        count = _take(s, count, begin_s, begin_s + job.requested_s, -job.processors)
        job.reserved_s = earliest_s(s, count, job.processors, job.requested_s)
        count = _take(s, count, job.reserved_s, job.reserved_s + job.requested_s, job.processors)
    return count


@compiled
def run_conservative(s: Any, rule: Any) -> None:
    """Event loop of conservative backfilling: reserve at submission, compress at early ends, start jobs that are due.

    The plan is kept between events; it is rebuilt only if a job ends before (or after) its requested end.
    """
    c = s.clock
    count = _plan_of_running(s)
    while c.status == OK and (c.first < c.last or c.arrived < s.arrivals.shape[0]):
        due_s = np.inf
        for i in range(c.first, c.last):
            reserved_s = s.jobs[s.queue[i].job].reserved_s
            if reserved_s > c.now_s:
                due_s = min(due_s, reserved_s)
        c.early = 0
        if step(s, due_s) == NOTHING:
            break
        if c.early or (c.running > 0 and s.expected[c.expected_first].end_s < c.now_s):
            if s.set.ranking == BY_RULE:
                fill_scores(s, rule)
            count = _compress(s)
        else:
            count = _forget_past(s, count)
        i = c.last
        while i > c.first and np.isnan(s.jobs[s.queue[i - 1].job].reserved_s):
            i -= 1
        for k in range(i, c.last):
            job = s.jobs[s.queue[k].job]
            job.reserved_s = earliest_s(s, count, job.processors, job.requested_s)
            job.promised_s = job.reserved_s
            count = _take(s, count, job.reserved_s, job.reserved_s + job.requested_s, job.processors)
        _start_due(s)
    drain(s)
