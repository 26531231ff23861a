"""Pools of jobs: which may wait, which of those may be chosen, and how many actions a tick allows.

The contract of a capacity that admits jobs; what a function does by default holds where every job that waits is ready.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.varying import FINISHED, READY, REJECTED, RUNNING, WAITING, CapacityPart, Varying
from greenbatch.engine.compile import compiled, compiled_small, whole
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.records import Clock, Int32s, MachineTotals
from greenbatch.engine.variants import variant

# ---------------------------------------------------------------- what happens to a job


@variant(default=True)
def admit(capacity: CapacityPart, job: int) -> bool:
    """Whether a submitted job may wait; a rejected one never runs."""
    return True


@admit.register(Varying)
def admit_to_pool(capacity: Varying, job: int) -> bool:
    """Rejects a job that asks for too much, and any while the wait pool is full."""
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


@variant(default=True)
def on_submit(capacity: CapacityPart, waiting: Int32s, clock: Clock, job: int) -> None:
    """Note that a job has been submitted; the jobs that wait are rows ``clock.first`` to ``clock.last``."""


@on_submit.register(Varying)
def join_pool(capacity: Varying, waiting: Int32s, clock: Clock, job: int) -> None:
    """Append it to the wait pool, and refill the ready pool."""
    capacity.jobs[job].place = WAITING
    capacity.counts.waiting += 1
    _refill(capacity, waiting, clock)


@variant(default=True)
def on_start(capacity: CapacityPart, waiting: Int32s, clock: Clock, job: int) -> None:
    """Note that a job starts and waits no more; the jobs that wait are rows ``clock.first`` to ``clock.last``."""


@on_start.register(Varying)
def leave_pool(capacity: Varying, waiting: Int32s, clock: Clock, job: int) -> None:
    """Remove a ready job, close the gap, and refill the ready pool."""
    counts, ready, own = capacity.counts, capacity.ready, capacity.jobs[job]
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


@variant(default=True)
def on_end(capacity: CapacityPart, job: int) -> None:
    """Note that a job has ended."""


@on_end.register(Varying)
def finish(capacity: Varying, job: int) -> None:
    """It has finished."""
    capacity.jobs[job].place = FINISHED


@compiled_small
def _refill(capacity: Varying, waiting: Int32s, clock: Clock) -> None:
    """Let waiting jobs become ready while there is room: the first ones, or those of the highest QoS."""
    counts, jobs = capacity.counts, capacity.jobs
    while counts.ready < counts.ready_limit and counts.waiting > 0:
        if counts.by_qos:
            best = _best_of_waiting(capacity, waiting, clock)
        else:  # the ready jobs are the first ones of the queue
            best = whole(waiting[clock.first + counts.ready])
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


@variant(default=True)
def is_admitted(capacity: CapacityPart, job: int) -> bool:
    """Whether a job that waits may be chosen, or one that is suspended may resume."""
    return True


@is_admitted.register(Varying)
def is_not_waiting(capacity: Varying, job: int) -> bool:
    """Only ready jobs can be chosen."""
    return bool(capacity.jobs[job].place != WAITING)


@variant(default=True)
def keeps_pools(capacity: CapacityPart) -> bool:
    """Whether there are pools of jobs: each start may let another job be chosen, and first starts are remembered."""
    return False


@keeps_pools.register(Varying)
def has_pools(capacity: Varying) -> bool:
    """Ready ones among others."""
    return True


@variant(default=True)
def choosable_jobs(capacity: CapacityPart, clock: Clock) -> int:
    """Number of waiting jobs that a learned policy can choose from."""
    return clock.last - clock.first


@choosable_jobs.register(Varying)
def ready_count(capacity: Varying, clock: Clock) -> int:
    """The ready pool."""
    return int(capacity.counts.ready)


@variant(default=True)
def choosable_position(capacity: CapacityPart, waiting: Int32s, clock: Clock, row: int) -> int:
    """Queue position of the job in a row of those that a learned policy can choose from."""
    return clock.first + row


@choosable_position.register(Varying)
def ready_position(capacity: Varying, waiting: Int32s, clock: Clock, row: int) -> int:
    """Where a ready job waits: in the same row, unless jobs of a higher QoS have become ready first."""
    at, job = clock.first + row, capacity.ready[row]
    if waiting[at] == job:
        return at
    at = clock.first
    while waiting[at] != job:
        at += 1
    return at


@variant(default=True)
def pool_figure(capacity: CapacityPart, totals: MachineTotals, clock: Clock, figure: int) -> float:
    """Free GPUs, powered processors / processors, or jobs that are ready, wait until they are, or are suspended."""
    return (0.0, 1.0, float(clock.last - clock.first), 0.0, 0.0)[figure]


@pool_figure.register(Varying)
def figure_of_pools(capacity: Varying, totals: MachineTotals, clock: Clock, figure: int) -> float:
    """Counts of the pools, and what is powered."""
    counts, share = capacity.counts, capacity.counts.powered / totals.processors
    return (float(totals.free_gpus), share, float(counts.ready), float(counts.waiting), float(counts.suspended))[figure]


@variant(default=True)
def on_action(capacity: CapacityPart, now_s: float) -> float:
    """Count an action; return when the next one is allowed, 0 if at once. [s]"""
    return 0.0


@on_action.register(Varying)
def count_action(capacity: Varying, now_s: float) -> float:
    """Count an action of this tick; after the last one, the next is allowed at the next tick."""
    counts = capacity.counts
    if counts.acted_s != now_s:
        counts.acted_s, counts.actions = now_s, 0
    counts.actions += 1
    return float(next_edge_s(now_s, 0.0, counts.tick_s)) if counts.actions >= counts.actions_limit else 0.0
