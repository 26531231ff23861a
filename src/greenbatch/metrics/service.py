"""Per-run metrics of jobs and users: wait, turnaround, slowdown, and the energy of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from greenbatch.display import docstring
from greenbatch.metrics.jobs import CLASSES, PER_JOB, Floats, run_time_class
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.registry import Better, metric

STATISTICS: Mapping[str, tuple[str, Callable[[Floats], float]]] = MappingProxyType(
    {
        "avg": ("mean", lambda values: float(np.mean(values))),
        "median": ("median", lambda values: float(np.median(values))),
        "p95": ("95th percentile", lambda values: float(np.percentile(values, 95))),
        "p99": ("99th percentile", lambda values: float(np.percentile(values, 99))),
        "max": ("maximum", lambda values: float(np.max(values))),
    }
)
"""Prefix -> (words, function). Percentiles interpolate linearly between order statistics."""

_LABELS = {
    "bounded_slowdown": ("bounded slowdown", "-"),
    "wait_s": ("wait", "s"),
    "turnaround_s": ("turnaround", "s"),
    "slowdown": ("slowdown", "-"),
    "energy_j": ("energy of jobs", "J"),
    "edp_js": ("energy-delay product of jobs", "J s"),
}
_CLASS_LABELS = {
    "under_5min": "jobs under 5 min",
    "5min_to_1h": "jobs of 5 min to 1 h",
    "1h_to_4h": "jobs of 1 to 4 h",
    "over_4h": "jobs over 4 h",
}


def _told(quantity: str) -> str:
    """Formula, unit, range and source of a per-job metric, which those of its statistics are too."""
    return docstring(PER_JOB[quantity]).replace(", shape (n,)", "")


def _register(
    function: Callable[[Measured], float], name: str, label: str, *, unit: str, doc: str, better: Better = "lower"
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    metric(label, unit, better)(function)


def _statistic(prefix: str, quantity: str) -> None:
    words, reduce = STATISTICS[prefix]
    label, unit = _LABELS[quantity]
    doc = f"The {words} over the counted jobs, NaN without jobs. {_told(quantity)}"

    def function(run: Measured) -> float:
        values = run.per_job(quantity)[run.jobs]
        return reduce(values) if values.size else np.nan

    _register(function, f"{prefix}_{quantity}", f"{label} ({words})", unit=unit, doc=doc)


def _class_average(quantity: str, class_name: str) -> None:
    label, unit = _LABELS[quantity]
    doc = (
        f"The mean over the counted {_CLASS_LABELS[class_name]} (executed time), NaN without such jobs. "
        f"{_told(quantity)}"
    )

    def function(run: Measured) -> float:
        values = run.per_job(quantity)[run.jobs & run_time_class(run.outcome, class_name)]
        return float(np.mean(values)) if values.size else np.nan

    _register(function, f"avg_{quantity}_{class_name}", f"{label} of {_CLASS_LABELS[class_name]}", unit=unit, doc=doc)


def _class_count(class_name: str) -> None:
    def function(run: Measured) -> float:
        return float(np.count_nonzero(run.jobs & run_time_class(run.outcome, class_name)))

    label = _CLASS_LABELS[class_name]
    doc = f"Number of counted {label}. [jobs], >= 0. Not in the papers."
    _register(function, f"jobs_{class_name}", label, unit="jobs", doc=doc, better="neither")


def user_means(run: Measured, quantity: str) -> Floats:
    """Mean of a per-job metric for each known user, in ascending order of user number, shape (users,)."""
    known = run.jobs & (run.outcome.workload.user >= 0)
    _, row = np.unique(run.outcome.workload.user[known], return_inverse=True)
    if not row.size:
        return np.empty(0)
    return np.bincount(row, weights=run.per_job(quantity)[known]) / np.bincount(row)


def _over_users(words: str, reduce: Callable[[Floats], float], quantity: str) -> None:
    label, unit = _LABELS[quantity]
    prefix = {"mean": "mean_user", "maximum": "max_user"}[words]
    lowest = ">= 1" if unit == "-" else ">= 0"
    doc = (
        f"The {words} over users of each user's mean {label}: fairness. [{unit}], {lowest}.\n\n"
        "Jobs without a user number are left out; NaN if the trace has no user numbers.\n\n"
        "Source: RLScheduler (SC 2020), section V-F (aggregators `maximal` and `average`)."
    )

    def function(run: Measured) -> float:
        means = user_means(run, quantity)
        return reduce(means) if means.size else np.nan

    _register(function, f"{prefix}_{quantity}", f"{label} of users ({words})", unit=unit, doc=doc)


def _register_all() -> None:
    for quantity in _LABELS:
        for prefix in STATISTICS:
            _statistic(prefix, quantity)
    for quantity in ("bounded_slowdown", "wait_s"):
        _over_users("mean", lambda means: float(np.mean(means)), quantity)
        _over_users("maximum", lambda means: float(np.max(means)), quantity)
    for quantity in ("bounded_slowdown", "wait_s"):
        for class_name in CLASSES:
            _class_average(quantity, class_name)
    for class_name in CLASSES:
        _class_count(class_name)


_register_all()
