"""What a varying capacity adds up for rewards and costs, and what jobs are worth.

Jobs count in ticks, with fractions if events lie between ticks. Everything is added up over the time between events,
in which no job changes its pool, so a job that becomes late in between counts from then on.

The contract of a capacity that knows value, and what `Varying` does; ``otherwise`` holds where nothing is added up and
no job is suspended.

Source: RARE and CoCoRL (dissertation), §3.2.3, Eq. 6.11 and Table B.1.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.varying import FIGURES, Varying
from greenbatch.engine.records import Clock, Ending, Table
from greenbatch.machine_code.compile import compiled
from greenbatch.machine_code.variants import variant

(READY_TICKS, POOLED_TICKS, SUSPENDED_TICKS, LATE_RUNNING_TICKS, PROGRESS, LATE_PROGRESS, SUSPENSIONS,
 UNTIL) = range(FIGURES)  # fmt: skip
"""Figures of `service_figure`: jobs that are ready, wait until they are ready, are suspended, and are late while they
run, all x ticks; value per tick of the requested time of the running jobs that are not late, and of those that are,
x ticks; suspensions; until when all of them count [s]."""


@variant(Varying)
def count_service(capacity: Varying, ending: Table[Ending], clock: Clock, is_last: bool) -> None:
    """Add up what happened since the last event, after the clock has moved; at last also until the end of the run.

    Nothing happens between the last event and the end.
    """
    counts = capacity.counts
    if counts.counted:
        _count_until(capacity, ending, clock, counts.end_s if is_last and counts.end_s < np.inf else clock.now_s)


@compiled
def _count_until(capacity: Varying, ending: Table[Ending], clock: Clock, until_s: float) -> None:
    service, counts = capacity.service, capacity.counts
    ticks = (until_s - service[UNTIL]) / counts.tick_s
    if not ticks > 0.0:
        return
    service[READY_TICKS] += counts.ready * ticks
    service[POOLED_TICKS] += counts.waiting * ticks
    service[SUSPENDED_TICKS] += counts.suspended * ticks
    for k in range(clock.ending_first, clock.ending_first + clock.running):
        own = capacity.jobs[ending[k].job]
        late = min(max((until_s - own.due_s) / counts.tick_s, 0.0), ticks)
        service[LATE_RUNNING_TICKS] += late
        rate = own.value * counts.tick_s / own.requested_s
        runs = min(max((until_s - own.begin_s) / counts.tick_s, 0.0), ticks)
        service[PROGRESS] += rate * max(runs - late, 0.0)
        service[LATE_PROGRESS] += rate * min(late, runs)
    service[UNTIL] = until_s


@variant(Varying, otherwise=0.0)
def service_figure(capacity: Varying, figure: int) -> float:
    """A figure that is added up, if the state counts service."""
    return float(capacity.service[figure])


@variant(Varying)
def on_dated(capacity: Varying, job: int, submit_s: float) -> None:
    """Set when a job is due that follows another, once it is known when it is submitted: as if that was at 0 before."""
    capacity.jobs[job].due_s += submit_s


@variant(Varying, otherwise=(0.0, 0.0, 0.0))
def worth_of(capacity: Varying, job: int, time_s: float) -> tuple[float, float, float]:
    """Value of a job, ticks for which it is late if it ends at a time, and its value per tick of its requested time."""
    own, tick_s = capacity.jobs[job], capacity.counts.tick_s
    return (own.value, max((time_s - own.due_s) / tick_s, 0.0), own.value * tick_s / own.requested_s)


@variant(Varying, otherwise=lambda capacity, job, begin_s, end_s, work_s: (begin_s, end_s - begin_s, work_s))
def run_of(capacity: Varying, job: int, begin_s: float, end_s: float, work_s: float) -> tuple[float, float, float]:
    """When a job that has ended first ran [s], for how long in all its spans [s], and its run time as submitted. [s]

    Args:
        capacity: the capacity.
        job: row of the job.
        begin_s: when its last span began. [s]
        end_s: its end. [s]
        work_s: the work that was left of it then. [s]
    """
    own = capacity.jobs[job]
    return (own.first_start_s, own.ran_s + (end_s - begin_s), own.work_s if own.suspensions > 0 else work_s)


@variant(Varying, otherwise=lambda capacity, job, requested_s: requested_s)
def asked_s(capacity: Varying, job: int, requested_s: float) -> float:
    """Requested time of a job as submitted, from the one that is left of it, which suspensions change. [s]"""
    return float(capacity.jobs[job].requested_s)
