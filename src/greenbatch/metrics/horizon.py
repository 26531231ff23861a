"""Energy over a horizon that depends on the window alone, not on which schedulers are compared.

The horizon begins with the first submission and lasts ``factor`` times the makespan of a reference, ``fcfs+easy`` on
the same jobs, machine and rules. If the power supply does not repeat, the horizon ends with the supply at the latest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.outcome import STATES
from greenbatch.engine.rules import Rules
from greenbatch.errors import InputError
from greenbatch.metrics import machine
from greenbatch.metrics.jobs import Floats, run_s
from greenbatch.metrics.measured import Measured, measure
from greenbatch.metrics.registry import metric
from greenbatch.workload import Workload

REFERENCE = "fcfs+easy"
"""The scheduler whose makespan sets the horizon."""
FACTOR = 2.0
"""Default length of the horizon, in makespans of the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """A span of time that depends only on a window's jobs, machine and rules."""

    start_s: float
    """First submission. [s]"""
    end_s: float
    """End of the horizon. [s]"""
    reference_makespan_s: float
    """Makespan of `REFERENCE` on the window, > 0. [s]"""


def horizon_of(
    workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, factor: float = FACTOR, *,
    cover_record: bool = False,
) -> Horizon:  # fmt: skip
    """The horizon of a window: simulates `REFERENCE` on it, without a power supply, which it does not use.

    Args:
        workload: the jobs of the window.
        cluster: the machine.
        site: the power supply; only its end is used, and only if it does not repeat.
        rules: how the batch system reacts.
        factor: length of the horizon in makespans of the reference, > 0.
        cover_record: end with the recorded schedule, if that is later.

    Raises:
        InputError: the factor is not a positive number, or the parts do not fit together.
    """
    from greenbatch.engine.simulate import simulate
    from greenbatch.schedulers import scheduler

    if not 0 < factor < np.inf:
        raise InputError(f"is {factor}", field="horizon", fix="give a number > 0")
    run = measure(simulate(workload, cluster, None, rules, scheduler(REFERENCE)))
    makespan_s = machine.makespan_s(run)
    end_s = run.first_submit_s + factor * makespan_s
    if cover_record:
        end_s = max(end_s, _recorded_end_s(workload))
    if rules.pools is not None:
        end_s = min(end_s, rules.pools.end_of(run.first_submit_s))
    if site is not None and not site.repeat:
        end_s = min(end_s, site.origin_s + site.slots * site.step_s)
    return Horizon(start_s=run.first_submit_s, end_s=end_s, reference_makespan_s=makespan_s)


def _recorded_end_s(workload: Workload) -> float:
    """Last end of the jobs whose start is recorded; -inf if there are none. [s]"""
    ends_s = workload.submit_s + workload.recorded_wait_s + workload.run_time_s
    known = np.isfinite(ends_s)
    return float(np.max(ends_s[known], initial=-np.inf))


def _left_s(run: Measured, horizon: Horizon) -> Floats:
    """Time that each job runs after the end of the horizon, or is left to run at the end of the run, shape (n,). [s]"""
    job, start_s, end_s = run.outcome.spans
    after_s = np.clip(end_s - horizon.end_s, 0.0, end_s - start_s)
    left_s = np.where(np.isnan(run.outcome.end_s), _all_s(run) - run_s(run.outcome), 0.0)
    return np.asarray(np.bincount(job, weights=after_s, minlength=len(left_s)) + left_s, np.float64)


def _all_s(run: Measured) -> Floats:
    """Executed time of each job if it had all the time it needs, shape (n,). [s]"""
    ended = np.isfinite(run.outcome.end_s)
    return np.where(ended, run_s(run.outcome), np.maximum(run.outcome.workload.run_time_s, run_s(run.outcome)))


@metric("horizon", "s", "neither", scope="horizon")
def horizon_s(_: Measured, horizon: Horizon) -> float:
    """Length of the scenario's horizon, ``factor * makespan of fcfs+easy`` on the same window. [s], > 0.

    The factor is ``evaluation.horizon`` of the scenario, 2 by default. The horizon begins with the first submission;
    if the power supply does not repeat, it ends with the supply at the latest. Not in the papers.
    """
    return horizon.end_s - horizon.start_s


@metric("energy over the horizon", "kWh", "neither", scope="horizon")
def horizon_energy_kwh(run: Measured, horizon: Horizon) -> float:
    """Energy used from the first submission to the end of the scenario's horizon, idle power included. [kWh], >= 0.

    ``integral of P_C over the horizon``. It is the same for all schedulers that finish all jobs within the horizon and
    kill none; otherwise it is understated by the work left (`horizon_unfinished_share`). Not in the papers.
    """
    books = run.books_over(horizon.start_s, horizon.end_s)
    return np.nan if books is None else books.load_j / JOULES_PER_KWH


@metric("brown energy over the horizon", "kWh", scope="horizon")
def horizon_brown_kwh(run: Measured, horizon: Horizon) -> float:
    """Energy from the grid from the first submission to the end of the scenario's horizon. [kWh], >= 0.

    ``integral of max(0, P_C - P_GT) over the horizon``, including idle power before, between and after the jobs. The
    horizon depends only on the jobs, the machine and the rules, so the figure does not depend on which schedulers are
    compared. If jobs are unfinished at its end, it is understated. Not in the papers.
    """
    books = run.books_over(horizon.start_s, horizon.end_s)
    return np.nan if books is None else books.grid_j / JOULES_PER_KWH


@metric("makespan relative to fcfs+easy", "-", scope="horizon")
def horizon_makespan_ratio(run: Measured, horizon: Horizon) -> float:
    """Makespan over that of fcfs+easy on the same window, even if fcfs+easy is not compared. [-], > 0.

    ``makespan / makespan of fcfs+easy``. Not in the papers.
    """
    return machine.makespan_s(run) / horizon.reference_makespan_s


@metric("jobs unfinished at the horizon", "jobs", scope="horizon")
def horizon_unfinished_jobs(run: Measured, horizon: Horizon) -> float:
    """Jobs that end after the scenario's horizon, or not before the end of the run. [jobs], >= 0.

    Without the rejected ones, see `jobs_rejected`. If > 0, energy over the horizon is understated. Not in the papers.
    """
    is_left, stays = _left_s(run, horizon) > 0, run.outcome.stays
    if stays is not None:
        is_left &= stays.state != STATES.index("rejected")
    return float(np.count_nonzero(is_left))


@metric("work unfinished at the horizon", "-", scope="horizon")
def horizon_unfinished_share(run: Measured, horizon: Horizon) -> float:
    """Share of all processor time that falls after the scenario's horizon, or is never done. [-], in [0, 1].

    That of rejected jobs counts as well. NaN without jobs.

    ``sum(processors * time after the horizon) / sum(processors * run)``. Not in the papers.
    """
    processors = run.outcome.workload.processors
    work = float(np.sum(_all_s(run) * processors))
    return float(np.sum(_left_s(run, horizon) * processors)) / work if work > 0 else np.nan
