"""What a varying capacity adds up for rewards and costs, and what jobs are worth.

Jobs count in ticks, with fractions if events lie between ticks. Everything is added up over the time between events,
in which no job changes its pool, so a job that becomes late in between counts from then on.

The contract of a capacity that knows value; what a function does by default holds where nothing is added up.

Source: RARE and CoCoRL (dissertation), §3.2.3, Eq. 6.11 and Table B.1.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.varying import CapacityPart, Varying
from greenbatch.engine.compile import compiled
from greenbatch.engine.records import Clock, Ending, Table
from greenbatch.engine.variants import variant

READY_TICKS, POOLED_TICKS, SUSPENDED_TICKS, LATE_RUNNING_TICKS, PROGRESS, LATE_PROGRESS, SUSPENSIONS, UNTIL = range(8)
"""Figures of `service_figure`, which are fields of `varying.Service`; until when they count. [s]"""


@variant(default=True)
def count_service(capacity: CapacityPart, ending: Table[Ending], clock: Clock) -> None:
    """Add up what happened since the last event, after the clock has moved."""


@count_service.register(Varying)
def count_since(capacity: Varying, ending: Table[Ending], clock: Clock) -> None:
    """Add up the time since the last event, if it is wanted."""
    if capacity.service.counted:
        _count_until(capacity, ending, clock, clock.now_s)


@variant(default=True)
def count_to_the_end(capacity: CapacityPart, ending: Table[Ending], clock: Clock) -> None:
    """Add up until the end of the run, if it ends at a given time."""


@count_to_the_end.register(Varying)
def count_rest(capacity: Varying, ending: Table[Ending], clock: Clock) -> None:
    """Nothing happens between the last event and the end of the run."""
    if capacity.counts.end_s < np.inf:
        _count_until(capacity, ending, clock, capacity.counts.end_s)


@compiled
def _count_until(capacity: Varying, ending: Table[Ending], clock: Clock, until_s: float) -> None:
    service, counts = capacity.service, capacity.counts
    ticks = (until_s - service.until_s) / counts.tick_s
    if not ticks > 0.0:
        return
    service.ready_ticks += counts.ready * ticks
    service.pooled_ticks += counts.waiting * ticks
    service.suspended_ticks += counts.suspended * ticks
    for k in range(clock.ending_first, clock.ending_first + clock.running):
        own = capacity.jobs[ending[k].job]
        late = min(max((until_s - own.due_s) / counts.tick_s, 0.0), ticks)
        service.late_running_ticks += late
        rate = own.value * counts.tick_s / own.requested_s
        service.progress += rate * (ticks - late)
        service.late_progress += rate * late
    service.until_s = until_s


@variant(default=True)
def service_figure(capacity: CapacityPart, figure: int) -> float:
    """A figure that is added up, if the state counts service."""
    return 0.0


@service_figure.register(Varying)
def figure_of_service(capacity: Varying, figure: int) -> float:  # noqa: PLR0911
    """A field of `Service`."""
    service = capacity.service
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


@variant(default=True)
def value_of(capacity: CapacityPart, job: int, end_s: float) -> tuple[float, float]:
    """Value of a job that ends at a time, and the same if that is not late, else 0."""
    return (0.0, 0.0)


@value_of.register(Varying)
def value_at(capacity: Varying, job: int, end_s: float) -> tuple[float, float]:
    """Its value, whole or not at all."""
    own = capacity.jobs[job]
    return (own.value, own.value if end_s <= own.due_s else 0.0)


@variant(default=True)
def late_of(capacity: CapacityPart, job: int, time_s: float) -> tuple[float, float]:
    """Ticks for which a job that has not ended by a time is late, and its value per tick of its requested time."""
    return (0.0, 0.0)


@late_of.register(Varying)
def lateness(capacity: Varying, job: int, time_s: float) -> tuple[float, float]:
    """Since its due time."""
    own, tick_s = capacity.jobs[job], capacity.counts.tick_s
    return (max((time_s - own.due_s) / tick_s, 0.0), own.value * tick_s / own.requested_s)


@variant(default=True)
def remembers_starts(capacity: CapacityPart) -> bool:
    """Whether the capacity keeps when each job started, so that a batch can empty the log."""
    return False


@remembers_starts.register(Varying)
def knows_starts(capacity: Varying) -> bool:
    """Of every job, the first one."""
    return True
