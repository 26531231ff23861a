"""What a machine whose capacity follows the power adds up for rewards and costs, and what a look ahead on it shows.

Jobs count in ticks, with fractions if events lie between ticks. Everything is added up over the time between events,
in which no job changes its pool, so a job that becomes late in between counts from then on.

Source: RARE and CoCoRL (dissertation), §3.2.3, Eq. 6.11 and Table B.1.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.compile import compiled, whole
from greenbatch.engine.machine.powered import Powered
from greenbatch.engine.machine.protocol import (
    FREE_GPUS,
    POOLED_JOBS,
    POWERED_SHARE,
    READY_JOBS,
    Ahead,
    ahead_now,
    ahead_to,
    asked_s,
    choosable_jobs,
    choosable_position,
    count_to_the_end,
    late_of,
    look_ahead_s,
    pass_time,
    pool_figure,
    powered_ahead,
    remembers_starts,
    service_figure,
    suspended_job,
    value_of,
)
from greenbatch.engine.records import Clock, Ending, Expected, Int32s, Table

READY_TICKS, POOLED_TICKS, SUSPENDED_TICKS, LATE_RUNNING_TICKS, PROGRESS, LATE_PROGRESS, SUSPENSIONS, UNTIL = range(8)
"""Figures of `service_figure`, which are fields of `powered.Service`; until when they count. [s]"""


@choosable_jobs.register(Powered)
def ready_count(machine: Powered, clock: Clock) -> int:
    """The ready pool."""
    return int(machine.counts.ready)


@choosable_position.register(Powered)
def ready_position(machine: Powered, waiting: Int32s, clock: Clock, row: int) -> int:
    """Where a ready job waits: in the same row, unless jobs of a higher QoS have become ready first."""
    at, job = clock.first + row, machine.ready[row]
    if waiting[at] == job:
        return at
    at = clock.first
    while waiting[at] != job:
        at += 1
    return at


@asked_s.register(Powered)
def submitted_s(machine: Powered, job: int, requested_s: float) -> float:
    """Suspensions change what is left."""
    return float(machine.stays[job].requested_s)


@remembers_starts.register(Powered)
def knows_starts(machine: Powered) -> bool:
    """Of every job, the first one."""
    return True


@pool_figure.register(Powered)
def figure_of_pools(machine: Powered, clock: Clock, figure: int) -> float:
    """Counts of the pools, and what is powered."""
    counts = machine.counts
    if figure == FREE_GPUS:
        return float(counts.free_gpus)
    if figure == POWERED_SHARE:
        return counts.powered / machine.totals.processors
    if figure == READY_JOBS:
        return float(counts.ready)
    return float(counts.waiting if figure == POOLED_JOBS else counts.suspended)


@ahead_now.register(Powered)
def powered_now(machine: Powered, clock: Clock) -> Ahead:
    """The present level, and what is in use."""
    counts = machine.counts
    used, used_gpus = counts.powered - machine.totals.free, counts.gpus - counts.free_gpus
    return (clock.expected_first, whole(counts.level), used, used_gpus)


@ahead_to.register(Powered)
def powered_at(machine: Powered, expected: Table[Expected], clock: Clock, ahead: Ahead, time_s: float) -> Ahead:
    """Beside ends, follow the levels as far as they are known."""
    i, k, used, used_gpus = ahead
    while i < clock.expected_first + clock.running and expected[i].end_s <= time_s:
        used -= expected[i].processors
        used_gpus -= machine.stays[expected[i].job].gpus
        i += 1
    known_s = min(time_s, clock.now_s + machine.counts.horizon_s)
    while k + 1 < machine.levels.shape[0] and machine.levels[k + 1].time_s <= known_s:
        k += 1
    return (i, k, used, used_gpus)


@powered_ahead.register(Powered)
def level_ahead(machine: Powered, ahead: Ahead) -> tuple[int, int]:
    """The level then."""
    level = machine.levels[ahead[1]]
    return (whole(level.processors), whole(level.gpus))


@look_ahead_s.register(Powered)
def ticks_ahead_s(machine: Powered) -> tuple[float, float]:
    """Of the pools."""
    return (machine.counts.tick_s, machine.counts.horizon_s)


@pass_time.register(Powered)
def count_service(machine: Powered, ending: Table[Ending], clock: Clock, from_s: float, is_end: bool) -> None:
    """Add up the time since the last event, if it is wanted."""
    if machine.service.counted:
        _count_until(machine, ending, clock, clock.now_s)


@count_to_the_end.register(Powered)
def count_rest(machine: Powered, ending: Table[Ending], clock: Clock) -> None:
    """Nothing happens between the last event and the end of the run."""
    if machine.counts.end_s < np.inf:
        _count_until(machine, ending, clock, machine.counts.end_s)


@compiled
def _count_until(machine: Powered, ending: Table[Ending], clock: Clock, until_s: float) -> None:
    service, counts = machine.service, machine.counts
    ticks = (until_s - service.until_s) / counts.tick_s
    if not ticks > 0.0:
        return
    service.ready_ticks += counts.ready * ticks
    service.pooled_ticks += counts.waiting * ticks
    service.suspended_ticks += counts.suspended * ticks
    for k in range(clock.ending_first, clock.ending_first + clock.running):
        stay = machine.stays[ending[k].job]
        late = min(max((until_s - stay.due_s) / counts.tick_s, 0.0), ticks)
        service.late_running_ticks += late
        rate = stay.value * counts.tick_s / stay.requested_s
        service.progress += rate * (ticks - late)
        service.late_progress += rate * late
    service.until_s = until_s


@service_figure.register(Powered)
def figure_of_service(machine: Powered, figure: int) -> float:  # noqa: PLR0911
    """A field of `Service`."""
    service = machine.service
    if figure == READY_TICKS:
        return float(service.ready_ticks)
    if figure == POOLED_TICKS:
        return float(service.pooled_ticks)
    if figure == SUSPENDED_TICKS:
        return float(service.suspended_ticks)
    if figure == LATE_RUNNING_TICKS:
        return float(service.late_running_ticks)
    if figure == PROGRESS:
        return float(service.progress)
    if figure == LATE_PROGRESS:
        return float(service.late_progress)
    return float(service.suspensions if figure == SUSPENSIONS else service.until_s)


@value_of.register(Powered)
def value_at(machine: Powered, job: int, end_s: float) -> tuple[float, float]:
    """Its value, whole or not at all."""
    stay = machine.stays[job]
    return (stay.value, stay.value if end_s <= stay.due_s else 0.0)


@late_of.register(Powered)
def lateness(machine: Powered, job: int, time_s: float) -> tuple[float, float]:
    """Since its due time."""
    stay, tick_s = machine.stays[job], machine.counts.tick_s
    return (max((time_s - stay.due_s) / tick_s, 0.0), stay.value * tick_s / stay.requested_s)


@suspended_job.register(Powered)
def job_suspended(machine: Powered, row: int) -> int:
    """In order of suspension."""
    return whole(machine.suspended[row])
