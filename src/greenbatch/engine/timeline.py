"""Free capacity ahead, by the requested ends of running jobs: the head's reservation, and a timeline to plan in.

A timeline is a table of `Capacity`: free processors and GPUs from each instant to the next. Reservations are taken from
it.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.expected import units_at
from greenbatch.engine.capacity.levels import ahead_now, ahead_to, powered_ahead, reserve_ahead
from greenbatch.engine.capacity.units import may_fall, units_of
from greenbatch.engine.capacity.varying import Varying
from greenbatch.engine.codes import PROMISE
from greenbatch.engine.limits import reserve_within_limits
from greenbatch.engine.log import note
from greenbatch.engine.records import Capacity, Table
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant


@compiled_small
def reserve(s: State, job: int) -> None:
    """Compute when a blocked job can start by requested ends, and promise it that time if it is the first."""
    c = s.clock
    reserve_ahead(s.capacity, s, whole(job), c.now_s)
    if s.rules.guarded:
        reserve_within_limits(s, whole(job))
    if np.isnan(s.jobs[job].promised_s):
        promise(s, job, c.shadow_s)


@compiled_small
def promise(s: State, job: int, start_s: float) -> None:
    """Keep the first reservation of a job."""
    s.jobs[job].promised_s = start_s
    note(s.log, s.clock, PROMISE, job, start_s)


@compiled_small
def free_at(s: State, time_s: float) -> int:
    """Processors free at a time by requested ends of running jobs, of those that will be powered."""
    totals = s.machine.totals
    if time_s <= s.clock.now_s:
        return int(totals.free)  # a job whose requested end is now or past still holds its processors
    ahead = ahead_to(s.capacity, s, ahead_now(s.capacity, s), time_s)
    return int(powered_ahead(s.capacity, totals, ahead)[0] - ahead[2])


@compiled
def _cut(timeline: Table[Capacity], count: int, time_s: float) -> tuple[int, int]:
    """Split a timeline at a time; return the index of the row that begins there and the new number of rows."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if timeline[middle].time_s < time_s:
            low = middle + 1
        else:
            high = middle
    if low < count and timeline[low].time_s == time_s:
        return low, count
    for i in range(count, low, -1):
        timeline[i] = timeline[i - 1]
    timeline[low] = timeline[low - 1]
    timeline[low].time_s = time_s
    return low, count + 1


@compiled
def occupy(
    timeline: Table[Capacity], count: int, from_s: float, until_s: float, processors: int, gpus: int
) -> int:  # fmt: skip
    """Occupy processors and GPUs over an interval, release them if negative; return the new number of rows."""
    first, count = _cut(timeline, count, from_s)
    last, count = _cut(timeline, count, until_s)
    for i in range(first, last):
        timeline[i].free -= processors
        timeline[i].free_gpus -= gpus
    return count


@compiled
def earliest_s(
    timeline: Table[Capacity], count: int, from_s: float, processors: int, gpus: int, duration_s: float
) -> float:  # fmt: skip
    """Earliest time, not before another, from which enough is free for the whole duration; infinite for none. [s]"""
    k = 0
    while k + 1 < count and timeline[k + 1].time_s <= from_s:
        k += 1
    begin_s = max(from_s, timeline[0].time_s)
    while k < count:
        end_s = begin_s + duration_s
        while k < count and timeline[k].free >= processors and timeline[k].free_gpus >= gpus and (
            timeline[k].time_s < end_s
        ):  # fmt: skip
            k += 1
        if k == count or timeline[k].time_s >= end_s:
            return float(begin_s)
        k += 1  # the row before is too small: no start before its end is possible
        while k < count and timeline[k].free < processors:
            k += 1
        if k < count:
            begin_s = timeline[k].time_s
    return np.inf


@compiled
def forget_past(timeline: Table[Capacity], count: int, now_s: float) -> int:
    """Drop the rows that have passed; return the new number of rows."""
    passed = 0
    while passed + 1 < count and timeline[passed + 1].time_s <= now_s:
        passed += 1
    if passed > 0:
        for i in range(passed, count):
            timeline[i - passed] = timeline[i]
    timeline[0].time_s = now_s
    return count - passed


@compiled
def timeline_of_running(s: State, closes: bool) -> int:
    """Reset ``scratch.timeline`` to the running jobs, levels and outages; return its number of rows.

    Args:
        s: the state.
        closes: no job is planned into an outage, even if only starts are forbidden; otherwise outages do not count.
    """
    c, timeline, totals = s.clock, s.scratch.timeline, s.machine.totals
    timeline[0].time_s, timeline[0].free, timeline[0].free_gpus = c.now_s, totals.free, totals.free_gpus
    timeline[1].time_s, timeline[1].free, timeline[1].free_gpus = np.inf, 0, 0
    count = 2
    for i in range(c.expected_first, c.expected_first + c.running):
        end_s = s.expected[i].end_s
        if end_s < c.now_s:  # past its requested end: assumed to overrun for as long again, at least a minute
            end_s = c.now_s + max(60.0, c.now_s - end_s)
        processors, gpus = units_of(s.capacity, whole(s.expected[i].job), whole(s.expected[i].processors))
        count = occupy(timeline, count, end_s, np.inf, -processors, -gpus)
    for k in range(s.downtimes.shape[0] if closes else 0):
        if s.downtimes[k].end_s > c.now_s:
            begin_s = max(c.now_s, s.downtimes[k].begin_s)
            count = occupy(timeline, count, begin_s, s.downtimes[k].end_s, totals.processors, 0)
    return follow_levels(s.capacity, s, count) - 1


@variant(Varying, otherwise=lambda capacity, s, count: count)
def follow_levels(capacity: Varying, s: State, count: int) -> int:
    """Let a timeline follow what will be powered, as far as it is known; return the new number of rows.

    If jobs are suspended when power fails, no level is lower than an earlier one: a job may start that will be.
    """
    levels, counts, now_s = capacity.levels, capacity.counts, s.clock.now_s
    k, more, more_gpus = counts.level + 1, 0, 0
    while k < levels.shape[0] and levels[k].time_s <= now_s + counts.horizon_s:
        there, there_gpus = units_at(capacity, k)
        there, there_gpus = there - counts.powered, there_gpus - counts.gpus
        if may_fall(capacity):
            there, there_gpus = max(more, there), max(more_gpus, there_gpus)
        if there != more or there_gpus != more_gpus:
            at_s = max(now_s, levels[k].time_s)
            count = occupy(s.scratch.timeline, count, at_s, np.inf, more - there, more_gpus - there_gpus)
            more, more_gpus = there, there_gpus
        k += 1
    return count
