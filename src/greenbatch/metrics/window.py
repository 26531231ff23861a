"""Metrics of an outcome relative to the others of its window: energy over a common horizon, and ratios to a baseline.

The common horizon ends with the last job of *all* schedulers compared, so its figures depend on which schedulers are
compared; those of `metrics.horizon` do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.metrics import machine
from greenbatch.metrics.breakdown import Parts, evaluate_parts, split_part_metric
from greenbatch.metrics.horizon import Horizon
from greenbatch.metrics.jobs import Floats
from greenbatch.metrics.measured import Cut, Measured, measure
from greenbatch.metrics.registry import METRICS, metric

DELAY_LIMIT_S = 86_400.0
"""A job that starts so much later than under the baseline is delayed. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Quantities shared by the outcomes of one window."""

    start_s: float
    """Earliest submission. [s]"""
    end_s: float
    """Latest end of all outcomes. [s]"""
    baseline_makespan_s: float
    """Makespan of the baseline's outcome. [s]"""
    baseline_start_s: Floats
    """Start of each job in the baseline's outcome, shape (n,). [s]"""


def _over_horizon(run: Measured, window: Window, account: str) -> float:
    books = run.books_over(window.start_s, window.end_s)
    return np.nan if books is None else float(getattr(books, account)) / JOULES_PER_KWH


@metric("makespan relative to the baseline", "-", scope="window")
def makespan_ratio(run: Measured, window: Window) -> float:
    """Makespan over the baseline's makespan in the same window. [-], > 0.

    ``makespan / makespan of the baseline``. Not in the papers.
    """
    return machine.makespan_s(run) / window.baseline_makespan_s


def _delay_s(run: Measured, window: Window) -> Floats:
    """How much later than in the baseline's outcome each counted job starts that started there too. [s]"""
    delay_s: Floats = (run.outcome.start_s - window.baseline_start_s)[run.jobs]
    return delay_s[np.isfinite(delay_s)]


@metric("jobs started over a day later than under the baseline", "-", scope="window")
def delayed_share(run: Measured, window: Window) -> float:
    """Share of the counted jobs that start more than a day later than under the baseline. [-], in [0, 1].

    The baseline is simulated beside, on the same jobs: what a user of it would notice. NaN without jobs.
    Not in the papers.
    """
    delay_s = _delay_s(run, window)
    return float(np.mean(delay_s > DELAY_LIMIT_S)) if delay_s.size else np.nan


@metric("latest start relative to the baseline", "s", scope="window")
def max_delay_s(run: Measured, window: Window) -> float:
    """The longest time by which a counted job starts later than under the baseline. [s], any sign; NaN without jobs.

    Negative if every job starts earlier. Not in the papers.
    """
    delay_s = _delay_s(run, window)
    return float(np.max(delay_s)) if delay_s.size else np.nan


@metric("brown energy over the common horizon", "kWh", scope="window")
def common_horizon_brown_kwh(run: Measured, window: Window) -> float:
    """Grid energy from the earliest submission to the latest end of *all* schedulers in the window. [kWh], >= 0.

    Includes idle power before, between and after the jobs, so that all schedulers are measured over the same time span
    and stretching the schedule gains nothing. The span, and therefore the value, depends on which schedulers are
    compared; `horizon_brown_kwh` does not. Not in the papers: in GAS-MARL Eq. 4 the interval depends on the scheduler.
    """
    return _over_horizon(run, window, "grid_j")


@metric("renewable energy used over the common horizon", "kWh", "higher", scope="window")
def common_horizon_renewable_used_kwh(run: Measured, window: Window) -> float:
    """Renewable energy used over the common horizon, idle power included. [kWh], >= 0.

    ``integral of min(P_GT, P_C) over the common horizon``. Not in the papers.
    """
    return _over_horizon(run, window, "renewable_used_j")


@metric("energy over the common horizon", "kWh", scope="window")
def common_horizon_energy_kwh(run: Measured, window: Window) -> float:
    """Energy used over the common horizon, idle power included. [kWh], >= 0.

    ``integral of P_C over the common horizon``; the same for all schedulers unless jobs are killed. Not in the papers.
    """
    return _over_horizon(run, window, "load_j")


def evaluate(outcome: Outcome, *, cut: Cut | None = None, horizon: Horizon | None = None) -> dict[str, float]:
    """All metrics of one outcome, in the registry's order; NaN if undefined.

    Args:
        outcome: the outcome of one run.
        cut: warm-up and cool-down; none by default.
        horizon: horizon of the window, see `metrics.horizon_of`; without it, metrics over the horizon are left out.

    Raises:
        InputError: it is no outcome, or the cut leaves no job.
    """
    if not isinstance(outcome, Outcome):
        raise InputError(f"is {outcome!r:.60}", field="outcome", fix="give what gb.simulate returns")
    return _values(measure(outcome, cut), horizon=horizon)


def _values(run: Measured, **scopes: Horizon | Window | None) -> dict[str, float]:
    """All metrics of a run, of the scopes that are given."""
    given = {"run": (), **{scope: (more,) for scope, more in scopes.items() if more is not None}}
    return {m.name: m.function(run, *given[m.scope]) for m in METRICS.values() if m.scope in given}


def evaluate_window(
    outcomes: Mapping[str, Outcome], *, baseline: str, cut: Cut | None = None, horizon: Horizon | None = None,
    parts: Parts | None = None,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """All metrics of several schedulers on one window: scheduler -> metric -> value.

    Args:
        outcomes: scheduler -> its outcome on the window.
        baseline: the scheduler that ratios refer to.
        cut: warm-up and cool-down; none by default.
        horizon: horizon of the window, see `metrics.horizon_of`; without it, metrics over the horizon are left out.
        parts: partitions, accounts and users whose figures follow the metrics, see `metrics.breakdown`.

    Raises:
        InputError: the baseline is not one of the schedulers, the outcomes have different jobs, or the cut leaves none.
    """
    if baseline not in outcomes:
        raise InputError(
            f"{baseline!r} is not among the schedulers", field="baseline", fix="use one of " + ", ".join(outcomes)
        )
    ids = outcomes[baseline].workload.job_id
    for name, outcome in outcomes.items():
        if not np.array_equal(outcome.workload.job_id, ids):
            raise InputError(f"{name} and {baseline} scheduled different jobs", field="outcomes")
    runs = {name: measure(outcome, cut) for name, outcome in outcomes.items()}
    window = Window(
        start_s=min(run.first_submit_s for run in runs.values()),
        end_s=max(run.last_end_s for run in runs.values()),
        baseline_makespan_s=machine.makespan_s(runs[baseline]),
        baseline_start_s=outcomes[baseline].start_s,
    )
    return {
        name: {**_values(run, horizon=horizon, window=window), **evaluate_parts(run, parts or {}, horizon)}
        for name, run in runs.items()
    }


def json_ready(values: Mapping[str, float]) -> dict[str, float | int | None]:
    """Metrics for JSON: counts as integers, undefined values as null."""
    ready: dict[str, float | int | None] = {}
    for name, value in values.items():
        part = split_part_metric(name)
        count = part[0] == "jobs" if part else name in METRICS and METRICS[name].unit == "jobs"
        ready[name] = None if not np.isfinite(value) else int(value) if count else float(value)
    return ready
