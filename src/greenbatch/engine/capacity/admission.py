"""Pools of jobs: which may wait, which of those may be chosen, and how many actions a tick allows.

The contract of a capacity that admits jobs, and what `Varying` does; ``otherwise`` holds where every job that waits is
ready.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.varying import FINISHED, READY, REJECTED, RUNNING, WAITING, CapacityCounts, Varying
from greenbatch.engine.records import Clock, Int32s, MachineTotals
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant

# ---------------------------------------------------------------- what happens to a job


@variant(Varying, otherwise=True)
def admit(capacity: Varying, job: int) -> bool:
    """Whether a submitted job may wait; a rejected one never runs.

    One that asks for too much is rejected, and any while the wait pool is full.
    """
    own, counts = capacity.jobs[job], capacity.counts
    if (
        max(own.processors, own.gpus) > counts.largest_request
        or own.requested_s > counts.longest_request_s
        or counts.waiting >= counts.wait_limit
    ):
        own.place = REJECTED
        counts.rejected += 1
        return False
    return True


@variant(Varying)
def on_submit(capacity: Varying, waiting: Int32s, clock: Clock, job: int) -> None:
    """Append a submitted job to the wait pool, and refill the ready pool.

    The jobs that wait are rows ``clock.first`` to ``clock.last``.
    """
    capacity.jobs[job].place = WAITING
    capacity.counts.waiting += 1
    _refill(capacity, waiting, clock)


@variant(Varying)
def on_start(capacity: Varying, waiting: Int32s, clock: Clock, job: int) -> None:
    """Count the action, remove the job that starts from the ready pool, and refill that; see `on_submit`."""
    counts, ready, own = capacity.counts, capacity.ready, capacity.jobs[job]
    count_action(counts, clock.now_s)
    own.place = RUNNING
    own.first_start_s = clock.now_s
    k = 0
    while ready[k] != job:
        k += 1
    counts.ready -= 1
    while k < counts.ready:
        ready[k] = ready[k + 1]
        k += 1
    _refill(capacity, waiting, clock)


@variant(Varying)
def on_end(capacity: Varying, job: int) -> None:
    """Note that a job has finished."""
    capacity.jobs[job].place = FINISHED


@compiled_small
def _refill(capacity: Varying, waiting: Int32s, clock: Clock) -> None:
    """Let waiting jobs become ready while there is room: the first ones, or those of the highest QoS."""
    counts, jobs = capacity.counts, capacity.jobs
    while counts.ready < counts.ready_limit and counts.waiting > 0:
        following = whole(waiting[clock.first + counts.ready])  # without QoS, the ready jobs are the first of the queue
        best = _best_of_waiting(capacity, waiting, clock) if counts.by_qos else following
        capacity.ready[counts.ready] = best
        jobs[best].place = READY
        counts.ready += 1
        counts.waiting -= 1


@compiled
def _best_of_waiting(capacity: Varying, waiting: Int32s, clock: Clock) -> int:
    best, most = -1, -np.inf
    for i in range(clock.first, clock.last):
        own = capacity.jobs[waiting[i]]
        if own.place == WAITING and own.qos > most:
            best, most = waiting[i], own.qos
    return whole(best)


# ---------------------------------------------------------------- what can be chosen


@variant(Varying, otherwise=True)
def is_admitted(capacity: Varying, job: int) -> bool:
    """Whether a job that waits may be chosen, because it is ready, or one that is suspended may resume."""
    return bool(capacity.jobs[job].place != WAITING)


@variant(Varying, otherwise=False)
def keeps_pools(capacity: Varying) -> bool:
    """Whether there are pools of jobs: each start may let another job be chosen, and first starts are remembered."""
    return True


@variant(Varying, otherwise=lambda capacity, clock: clock.last - clock.first)
def choosable_jobs(capacity: Varying, clock: Clock) -> int:
    """Number of waiting jobs that a learned policy can choose from: those that are ready."""
    return int(capacity.counts.ready)


@variant(Varying, otherwise=lambda capacity, waiting, clock, row: clock.first + row)
def choosable_position(capacity: Varying, waiting: Int32s, clock: Clock, row: int) -> int:
    """Queue position of the job in a row of those that a learned policy can choose from.

    That is the same row, unless jobs of a higher QoS have become ready first.
    """
    at, job = clock.first + row, capacity.ready[row]
    if waiting[at] == job:
        return at
    at = clock.first
    while waiting[at] != job:
        at += 1
    return at


@variant(
    Varying,
    otherwise=lambda capacity, totals, clock, figure: (0.0, 1.0, float(clock.last - clock.first), 0.0, 0.0)[figure],
)
def pool_figure(capacity: Varying, totals: MachineTotals, clock: Clock, figure: int) -> float:
    """Free GPUs, powered processors / processors, or jobs that are ready, wait until they are, or are suspended."""
    counts, share = capacity.counts, capacity.counts.powered / totals.processors
    return (float(totals.free_gpus), share, float(counts.ready), float(counts.waiting), float(counts.suspended))[figure]


# ---------------------------------------------------------------- actions of a tick


@compiled_small
def count_action(counts: CapacityCounts, now_s: float) -> None:
    """Count a start or a suspension."""
    if counts.acted_s != now_s:
        counts.acted_s, counts.actions = now_s, 0
    counts.actions += 1


@variant(Varying, otherwise=True)
def may_act(capacity: Varying, now_s: float) -> bool:
    """Whether another job may be started or suspended in this tick."""
    counts = capacity.counts
    return bool(counts.acted_s != now_s or counts.actions < counts.actions_limit)
