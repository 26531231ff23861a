"""Processors and GPUs of which only some are powered, and the pools of jobs that wait, are ready or are suspended.

Source: RARE (dissertation, chapters 3 to 5); readings of the text where it is silent are options of `engine.rules`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greenbatch.cluster import PoweredCluster
from greenbatch.engine.compile import compiled, compiled_small, whole
from greenbatch.engine.machine.protocol import (
    act,
    admits,
    fits,
    fits_beside,
    give,
    is_beyond,
    is_held_back,
    is_over,
    joins,
    leaves,
    machine_of,
    most_switches,
    next_change_s,
    next_level_s,
    reserve_for,
    starts_in_order,
    stays_powered,
    suspended_jobs,
    take,
)
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.records import (
    Clock,
    Expected,
    Int32,
    Int32s,
    MachineTotals,
    Table,
    per_job,
    record_of,
    shared,
    table_of,
)
from greenbatch.workload import Workload

WAITING, READY, RUNNING, SUSPENDED, FINISHED, REJECTED = range(6)
"""Where a job is (Stay.place)."""
NO_LIMIT = 2**31 - 1


class Level:
    """Powered units from a time on."""

    time_s: float
    idle_w: float
    """Power of the idle machine."""
    processors: Int32
    gpus: Int32


class Stay:
    """One job: what it asks for and what it is worth, and where it is."""

    value: float
    """Its value once it has finished, 0 if unknown."""
    qos: float
    """Quality of service, 1 if unknown."""
    due_s: float
    """Submission + run time / QoS (Eq. 3.1)."""
    first_start_s: float
    """NaN before."""
    requested_s: float
    processors: Int32
    gpus: Int32
    place: Int32
    suspensions: Int32


class PoolCounts:
    """Options of the pools, and what is counted."""

    all_gpus: int
    """GPUs of the machine, powered or not."""
    gpus: int
    """Powered GPUs."""
    free_gpus: int
    powered: int
    """Powered processors."""
    level: int
    """Current row of the levels."""
    spare_gpus: int
    """GPUs that are left beside the blocked job, as `Clock.spare` processors are."""
    ready_limit: int
    wait_limit: int
    suspend_limit: int
    largest_request: int
    longest_request_s: float
    by_qos: int
    """1 if the job of the highest QoS becomes ready first."""
    actions_limit: int
    """Most actions a tick."""
    tick_s: float
    horizon_s: float
    """How far ahead the capacity is known."""
    end_s: float
    suspends: int
    """0: jobs start only if they stay powered; 1: jobs are suspended when power fails; 2: policies suspend as well."""
    victim: int
    """Which job is suspended first, see `engine.suspension`."""
    suspend_s: float
    resume_s: float
    checkpoint_s: float
    """Time between checkpoints; 0: no work is lost; infinite: all is."""
    failure_rate: float
    """Failures of a processor per second."""
    failure_seed: int
    failure_s: float
    """The next failure, infinite if there are none."""
    failures: int
    """Failures so far."""
    ready: int
    """Ready jobs."""
    waiting: int
    """Waiting jobs that are not ready."""
    suspended: int
    rejected: int
    forced: int
    """Suspensions for lack of power."""
    actions: int
    """Actions in this tick."""
    acted_s: float
    """Tick of the last action."""
    retry_s: float
    """When suspended jobs are tried again, infinite if only another event can let them resume."""


class Service:
    """What is added up in the course of a run if ``counted`` is 1, see `machine.service`."""

    counted: int
    until_s: float
    """Until when."""
    ready_ticks: float
    """Ready jobs x ticks."""
    pooled_ticks: float
    """Jobs that wait until they are ready x ticks."""
    suspended_ticks: float
    late_running_ticks: float
    """Running jobs that are late x ticks."""
    progress: float
    """Value per tick of the requested time of the running jobs that are not late x ticks."""
    late_progress: float
    """The same of those that are late."""
    suspensions: float


@shared("levels")
@per_job("stays", "ready", "suspended")
class Powered(NamedTuple):
    """Pooled processors and GPUs, and the pools of jobs."""

    totals: MachineTotals
    counts: PoolCounts
    levels: Table[Level]
    stays: Table[Stay]
    """Shape (n,)."""
    ready: Int32s
    """Ready jobs in the order in which they became ready, shape (n,); ``counts.ready`` are valid."""
    suspended: Int32s
    """Suspended jobs, the oldest suspension first, shape (n,)."""
    service: Service


PoweredState = Any
"""A `State` whose machine is `Powered`, for functions that are called for this machine only."""


@machine_of.register
def powered_of(cluster: PoweredCluster, workload: Workload) -> Powered:
    """The idle machine of a cluster, without limits to its pools."""
    known, n = cluster.capacity_levels, len(workload)
    levels: Any = table_of(Level, len(known.time_s))
    levels["time_s"], levels["processors"], levels["gpus"] = known.time_s, known.processors, known.gpus
    levels["idle_w"] = cluster.idle_levels_w
    stays: Any = table_of(Stay, n)
    stays["value"], stays["qos"] = np.nan_to_num(workload.value), np.where(np.isnan(workload.qos), 1.0, workload.qos)
    stays["due_s"] = workload.submit_s + workload.run_time_s / stays["qos"]
    stays["requested_s"] = workload.requested_time_s
    stays["first_start_s"] = np.nan
    stays["processors"], stays["gpus"] = workload.processors, np.maximum(workload.gpus, 0)
    first = levels[0]
    totals = record_of(
        MachineTotals, processors=cluster.processors, free=int(first.processors), load_w=first.idle_w,
        base_power_w=first.idle_w,
    )  # fmt: skip
    counts = record_of(
        PoolCounts, all_gpus=cluster.gpus, gpus=int(first.gpus), free_gpus=int(first.gpus),
        powered=int(first.processors), ready_limit=NO_LIMIT, wait_limit=NO_LIMIT, suspend_limit=NO_LIMIT,
        largest_request=NO_LIMIT,
        longest_request_s=np.inf, actions_limit=NO_LIMIT, tick_s=1.0, horizon_s=np.inf, end_s=np.inf, retry_s=np.inf,
        acted_s=-np.inf, failure_s=np.inf,
    )  # fmt: skip
    return Powered(totals, counts, levels, stays, np.zeros(n, np.int32), np.zeros(n, np.int32), record_of(Service))


@fits.register(Powered)
def fits_powered(machine: Powered, job: int, processors: int, now_s: float) -> bool:
    """Enough powered processors and GPUs are free; and a job that waits is ready."""
    stay = machine.stays[job]
    is_free = stay.processors <= machine.totals.free and stay.gpus <= machine.counts.free_gpus
    return bool(is_free and stay.place != WAITING)


@take.register(Powered)
def take_units(
    machine: Powered, job: int, processors: int, power_w: float, now_s: float, outlives: bool
) -> float:  # fmt: skip
    """Occupy processors and GPUs, and add the power of the job."""
    stay = machine.stays[job]
    machine.totals.free -= stay.processors
    machine.counts.free_gpus -= stay.gpus
    machine.totals.load_w += power_w
    if outlives:
        machine.counts.spare_gpus -= stay.gpus
    if np.isnan(stay.first_start_s):
        stay.first_start_s = now_s
    stay.place = RUNNING
    return 1.0


@give.register(Powered)
def give_units(
    machine: Powered, job: int, processors: int, power_w: float, now_s: float, is_last: bool
) -> None:  # fmt: skip
    """Release processors, GPUs and power."""
    totals, stay = machine.totals, machine.stays[job]
    totals.free += stay.processors
    machine.counts.free_gpus += stay.gpus
    totals.load_w = totals.base_power_w if is_last else totals.load_w - power_w
    stay.place = FINISHED


@next_change_s.register(Powered)
@next_level_s.register(Powered)
def next_powered_s(machine: Powered, now_s: float) -> float:
    """The next change of capacity or failure, or when suspended jobs are tried again."""
    k, levels = machine.counts.level + 1, machine.levels
    while k < levels.shape[0] and levels[k].time_s <= now_s:
        k += 1
    change_s = levels[k].time_s if k < levels.shape[0] else np.inf
    return float(min(change_s, machine.counts.retry_s, machine.counts.failure_s))


@most_switches.register(Powered)
def most_moves(machine: Powered) -> int:
    """Each suspended job may resume, and each running one be suspended and resume, at one instant."""
    running = min(machine.totals.processors, machine.stays.shape[0])
    return int(2 * (running + machine.counts.suspended) + 8)


@is_over.register(Powered)
def has_ended(machine: Powered, now_s: float) -> bool:
    """At the end of the run."""
    return bool(now_s >= machine.counts.end_s)


@is_beyond.register(Powered)
def is_after_end(machine: Powered, next_s: float, completion_s: float) -> bool:
    """Nothing but completions happens at the end of the run."""
    end_s = machine.counts.end_s
    return bool(next_s > end_s or (next_s == end_s and completion_s > end_s))


@suspended_jobs.register(Powered)
def count_suspended(machine: Powered) -> int:
    """The suspended pool."""
    return int(machine.counts.suspended)


@is_held_back.register(Powered)
def is_not_ready(machine: Powered, job: int) -> bool:
    """Only ready jobs can be chosen."""
    return bool(machine.stays[job].place != READY)


@starts_in_order.register(Powered)
def limits_ready(machine: Powered) -> bool:
    """Each start lets another job become ready."""
    return True


@admits.register(Powered)
def admits_job(machine: Powered, job: int) -> bool:
    """Rejects a job that asks for too much, and any while the wait pool is full."""
    stay, counts = machine.stays[job], machine.counts
    if (
        max(stay.processors, stay.gpus) > counts.largest_request
        or stay.requested_s > counts.longest_request_s
        or counts.waiting >= counts.wait_limit
    ):
        stay.place = REJECTED
        counts.rejected += 1
        return False
    return True


@joins.register(Powered)
def join_pool(machine: Powered, waiting: Int32s, clock: Clock, job: int) -> None:
    """Append it to the wait pool, and refill the ready pool."""
    machine.stays[job].place = WAITING
    machine.counts.waiting += 1
    _refill(machine, waiting, clock)


@leaves.register(Powered)
def leave_pool(machine: Powered, waiting: Int32s, clock: Clock, job: int) -> None:
    """Remove a ready job, close the gap, and refill the ready pool."""
    counts, ready = machine.counts, machine.ready
    k = 0
    while ready[k] != job:
        k += 1
    counts.ready -= 1
    while k < counts.ready:
        ready[k] = ready[k + 1]
        k += 1
    _refill(machine, waiting, clock)


@compiled_small
def _refill(machine: Powered, waiting: Int32s, clock: Clock) -> None:
    """Let waiting jobs become ready while there is room: the first ones, or those of the highest QoS."""
    counts, stays = machine.counts, machine.stays
    while counts.ready < counts.ready_limit and counts.waiting > 0:
        if counts.by_qos:
            best = _best_of_waiting(machine, waiting, clock)
        else:  # the ready jobs are the first ones of the queue
            best = whole(waiting[clock.first + counts.ready])
        machine.ready[counts.ready] = best
        stays[best].place = READY
        counts.ready += 1
        counts.waiting -= 1


@compiled
def _best_of_waiting(machine: Powered, waiting: Int32s, clock: Clock) -> int:
    best, most = -1, -np.inf
    for i in range(clock.first, clock.last):
        stay = machine.stays[waiting[i]]
        if stay.place == WAITING and stay.qos > most:
            best, most = waiting[i], stay.qos
    return whole(best)


@reserve_for.register(Powered)
def reserve_units(
    machine: Powered, expected: Table[Expected], clock: Clock, job: int, processors: int, from_s: float
) -> None:  # fmt: skip
    """The first end or change of capacity from which the job fits, while it runs if jobs must stay powered."""
    i, k, last = clock.expected_first, whole(machine.counts.level), clock.expected_first + clock.running
    used, used_gpus = machine.counts.powered - machine.totals.free, machine.counts.gpus - machine.counts.free_gpus
    at_s = clock.now_s
    while at_s < from_s or not _leaves_spare(machine, expected, clock, job, at_s, i, k, used, used_gpus):
        end_s = expected[i].end_s if i < last else np.inf
        change_s = machine.levels[k + 1].time_s if k + 1 < machine.levels.shape[0] else np.inf
        at_s = max(clock.now_s, min(end_s, change_s, from_s if at_s < from_s else np.inf))
        if at_s == np.inf:
            break
        while i < last and expected[i].end_s <= at_s:
            used -= machine.stays[expected[i].job].processors
            used_gpus -= machine.stays[expected[i].job].gpus
            i += 1
        if change_s <= at_s:
            k += 1
    clock.shadow_s = at_s


@compiled
def _leaves_spare(
    machine: Powered, expected: Table[Expected], clock: Clock, job: int, at_s: float, i: int, k: int, used: int,
    used_gpus: int,
) -> bool:  # fmt: skip
    """Whether a job fits from a time on; fills in the least that it leaves to others while it runs."""
    counts, stay, last = machine.counts, machine.stays[job], clock.expected_first + clock.running
    until_s = at_s + min(stay.requested_s, counts.horizon_s) if counts.suspends == 0 else at_s
    clock.spare, counts.spare_gpus = NO_LIMIT, NO_LIMIT
    while True:
        level = machine.levels[k]
        clock.spare = min(clock.spare, level.processors - used - stay.processors)
        counts.spare_gpus = min(counts.spare_gpus, level.gpus - used_gpus - stay.gpus)
        if clock.spare < 0 or counts.spare_gpus < 0:
            return False
        k += 1
        if k >= machine.levels.shape[0] or machine.levels[k].time_s >= until_s:
            return True
        while i < last and expected[i].end_s <= machine.levels[k].time_s:
            used -= machine.stays[expected[i].job].processors
            used_gpus -= machine.stays[expected[i].job].gpus
            i += 1


@fits_beside.register(Powered)
def leaves_enough(machine: Powered, job: int, processors: int, spare: int) -> bool:
    """Neither processors nor GPUs of the blocked job are taken."""
    return machine.stays[job].processors <= spare and machine.stays[job].gpus <= machine.counts.spare_gpus


@act.register(Powered)
def count_action(machine: Powered, now_s: float) -> float:
    """Count an action of this tick; after the last one, the next is allowed at the next tick."""
    counts = machine.counts
    if counts.acted_s != now_s:
        counts.acted_s, counts.actions = now_s, 0
    counts.actions += 1
    return float(next_edge_s(now_s, 0.0, counts.tick_s)) if counts.actions >= counts.actions_limit else 0.0


@stays_powered.register(Powered)
def is_within_levels(
    machine: Powered, expected: Table[Expected], clock: Clock, job: int, requested_s: float
) -> bool:  # fmt: skip
    """Beside the jobs that run now, by their requested ends, at every change within the horizon that is known."""
    counts, levels = machine.counts, machine.levels
    k = counts.level + 1
    until_s = clock.now_s + min(requested_s, counts.horizon_s)
    if counts.suspends > 0 or k >= levels.shape[0] or levels[k].time_s >= until_s:
        return True
    return _fits_levels(machine, expected, clock, job, until_s)


@compiled
def _fits_levels(machine: Powered, expected: Table[Expected], clock: Clock, job: int, until_s: float) -> bool:
    counts, levels, stays = machine.counts, machine.levels, machine.stays
    processors = counts.powered - machine.totals.free + stays[job].processors
    gpus = counts.gpus - counts.free_gpus + stays[job].gpus
    k, i = counts.level + 1, clock.expected_first
    while k < levels.shape[0] and levels[k].time_s < until_s:
        while i < clock.expected_first + clock.running and expected[i].end_s <= levels[k].time_s:
            ended = stays[expected[i].job]
            processors -= ended.processors
            gpus -= ended.gpus
            i += 1
        if processors > levels[k].processors or gpus > levels[k].gpus:
            return False
        k += 1
    return True
