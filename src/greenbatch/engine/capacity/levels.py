"""Levels of what is powered: the next change, whether a job lasts beyond it, and reservations and looks ahead.

The contract of a capacity that changes, and what `Varying` does; what it does ``otherwise``, or by default, holds for a
machine that is always powered.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.admission import may_act
from greenbatch.engine.capacity.expected import units_at
from greenbatch.engine.capacity.varying import NO_LIMIT, CapacityPart, Varying
from greenbatch.engine.machine.power_states import longest_boot_s
from greenbatch.engine.machine.reservation import reserve_for, room_from
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.records import MachineTotals
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant

Ahead = tuple[int, int, int, int]
"""A time ahead: the first row of ``expected`` and the level that hold then, and processors and GPUs in use."""

# ---------------------------------------------------------------- changes


@variant(Varying, otherwise=np.inf)
def next_level_s(capacity: Varying, now_s: float) -> float:
    """When the capacity changes, a processor fails, suspended jobs are tried again, or jobs may start again. [s]"""
    k, levels = capacity.counts.level + 1, capacity.levels
    while k < levels.shape[0] and levels[k].time_s <= now_s:
        k += 1
    change_s = levels[k].time_s if k < levels.shape[0] else np.inf
    if not may_act(capacity, now_s):
        change_s = min(change_s, next_edge_s(now_s, 0.0, capacity.counts.tick_s))
    return float(min(change_s, capacity.counts.retry_s, capacity.counts.failure_s))


@variant(Varying, otherwise=0)
def most_moves(capacity: Varying, totals: MachineTotals) -> int:
    """Largest number of entries that a change of the capacity leaves in the log.

    Each suspended job may resume, and each running one be suspended and resume, at one instant; each may
    have to boot nodes.
    """
    running = min(totals.processors, capacity.jobs.shape[0])
    return int(3 * (running + capacity.counts.suspended) + 8)


@variant(Varying, otherwise=False)
def is_beyond(capacity: Varying, next_s: float, completion_s: float) -> bool:
    """Whether the run ends before the next event; at the end itself, only completions count.

    Args:
        capacity: the capacity.
        next_s: the next event. [s]
        completion_s: the next completion. [s]
    """
    end_s = capacity.counts.end_s
    return bool(next_s > end_s or (next_s == end_s and completion_s > end_s))


@variant(Varying, otherwise=np.inf)
def end_of_run_s(capacity: Varying) -> float:
    """When the run ends, whatever is left; infinite if it lasts until the last job ends. [s]"""
    return float(capacity.counts.end_s)


# ---------------------------------------------------------------- starts


@variant(Varying, otherwise=True)
def stays_powered(capacity: Varying, s: State, job: int) -> bool:
    """Whether a job that fits now still does at every known change of capacity while it is expected to run.

    It must be powered now, and fit beside the jobs that run now, by their requested ends, at every change within the
    known horizon, also if its nodes take the longest boot.
    """
    counts, levels, own, totals = capacity.counts, capacity.levels, capacity.jobs[job], s.machine.totals
    if own.processors > totals.free or own.gpus > totals.free_gpus:
        return False
    k = counts.level + 1
    until_s = s.clock.now_s + min(s.jobs[job].requested_s + longest_boot_s(s.machine), counts.horizon_s)
    if counts.suspends > 0 or k >= levels.shape[0] or levels[k].time_s >= until_s:
        return True
    return min(_left_beside(capacity, s, job, ahead_now(capacity, s), until_s)) >= 0


@compiled_small
def _after_ends(capacity: Varying, s: State, ahead: Ahead, time_s: float) -> Ahead:
    """A time ahead once the jobs have ended that are to end by a time; the level is the same. [s]"""
    i, level, used, used_gpus = ahead
    while i < s.clock.expected_first + s.clock.running and s.expected[i].end_s <= time_s:
        ended = capacity.jobs[s.expected[i].job]
        used -= ended.processors
        used_gpus -= ended.gpus
        i += 1
    return (i, level, used, used_gpus)


@compiled
def _left_beside(capacity: Varying, s: State, job: int, ahead: Ahead, until_s: float) -> tuple[int, int]:
    """The fewest processors and GPUs left beside a job that runs from a time ahead until another; below 0: no room."""
    levels, own, left, left_gpus, k = capacity.levels, capacity.jobs[job], NO_LIMIT, NO_LIMIT, ahead[1]
    while True:
        there, there_gpus = units_at(capacity, k)
        left, left_gpus = min(left, there - ahead[2] - own.processors), min(left_gpus, there_gpus - ahead[3] - own.gpus)
        k += 1
        if left < 0 or left_gpus < 0 or k >= levels.shape[0] or levels[k].time_s >= until_s:
            return whole(left), whole(left_gpus)
        ahead = _after_ends(capacity, s, ahead, levels[k].time_s)


@variant(default=True)
def reserve_ahead(capacity: CapacityPart, s: State, job: int, from_s: float) -> None:
    """Compute when a blocked job can start (``clock.shadow_s``), and what it leaves to others then; see `reserve_for`.

    Args:
        capacity: the capacity.
        s: the state.
        job: row of the job.
        from_s: the earliest start, now or later. [s]
    """
    reserve_for(s.machine, s.expected, s.clock, job, whole(s.jobs[job].processors), from_s)


@reserve_ahead.register(Varying)
def reserve_within_levels(capacity: Varying, s: State, job: int, from_s: float) -> None:
    """The first end or change of capacity from which the job fits, while it runs if jobs must stay powered."""
    clock, levels, at_s = s.clock, capacity.levels, s.clock.now_s
    ahead = ahead_now(capacity, s)
    room_s, most = room_from(s.machine, s.expected, clock, job, from_s)
    from_s = room_s
    while at_s < from_s or not _leaves_spare(capacity, s, job, at_s, ahead):
        i, k = ahead[0], ahead[1]
        end_s = s.expected[i].end_s if i < clock.expected_first + clock.running else np.inf
        change_s = levels[k + 1].time_s if k + 1 < levels.shape[0] else np.inf
        at_s = max(clock.now_s, min(end_s, change_s, from_s if at_s < from_s else np.inf))
        if at_s == np.inf:
            break
        i, k, used, used_gpus = _after_ends(capacity, s, ahead, at_s)
        ahead = (i, k + 1 if change_s <= at_s else k, used, used_gpus)
    clock.shadow_s = at_s
    if at_s > room_s:
        _, most = room_from(s.machine, s.expected, clock, job, at_s)
    clock.spare = min(clock.spare, most)


@compiled
def _leaves_spare(capacity: Varying, s: State, job: int, at_s: float, ahead: Ahead) -> bool:
    """Whether a job fits from a time on; fills in the least that it leaves to others while it runs."""
    counts, clock, totals = capacity.counts, s.clock, s.machine.totals
    lasts_s = min(s.jobs[job].requested_s + longest_boot_s(s.machine), counts.horizon_s)
    until_s = at_s + lasts_s if counts.suspends == 0 else at_s
    clock.spare, totals.spare_gpus = _left_beside(capacity, s, job, ahead, until_s)
    return clock.spare >= 0 and totals.spare_gpus >= 0


# ---------------------------------------------------------------- looks ahead


@variant(default=True)
def ahead_now(capacity: CapacityPart, s: State) -> Ahead:
    """The present time, where a look ahead begins."""
    return (s.clock.expected_first, 0, s.machine.totals.processors - s.machine.totals.free, 0)


@ahead_now.register(Varying)
def at_this_level(capacity: Varying, s: State) -> Ahead:
    """The present level, and what is in use."""
    counts, totals = capacity.counts, s.machine.totals
    return (s.clock.expected_first, whole(counts.level), counts.powered - totals.free, counts.gpus - totals.free_gpus)


@variant(default=True)
def ahead_to(capacity: CapacityPart, s: State, ahead: Ahead, time_s: float) -> Ahead:
    """Move a look ahead to a later time: running jobs have ended as requested, nothing has started. [s]"""
    i, level, used, used_gpus = ahead
    while i < s.clock.expected_first + s.clock.running and s.expected[i].end_s <= time_s:
        used -= s.expected[i].processors
        i += 1
    return (i, level, used, used_gpus)


@ahead_to.register(Varying)
def at_a_later_level(capacity: Varying, s: State, ahead: Ahead, time_s: float) -> Ahead:
    """Beside ends, follow the levels as far as they are known."""
    i, k, used, used_gpus = _after_ends(capacity, s, ahead, time_s)
    known_s = min(time_s, s.clock.now_s + capacity.counts.horizon_s)
    while k + 1 < capacity.levels.shape[0] and capacity.levels[k + 1].time_s <= known_s:
        k += 1
    return (i, k, used, used_gpus)


@variant(Varying, otherwise=lambda capacity, totals, ahead: (totals.processors, 0))
def powered_ahead(capacity: Varying, totals: MachineTotals, ahead: Ahead) -> tuple[int, int]:
    """Processors and GPUs that are expected to be powered at a time ahead."""
    return units_at(capacity, ahead[1])


@variant(Varying, otherwise=(np.inf, np.inf))
def look_ahead_s(capacity: Varying) -> tuple[float, float]:
    """Length of a tick, and how far ahead the capacity is known; infinite if it never changes. [s]"""
    return (capacity.counts.tick_s, capacity.counts.horizon_s)
