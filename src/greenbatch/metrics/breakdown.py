"""Figures of the parts of a workload: jobs by partition, account, user and group of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.dependencies import follow_others
from greenbatch.engine.outcome import Outcome
from greenbatch.metrics.energy_use import EnergyUse
from greenbatch.metrics.horizon import Horizon
from greenbatch.metrics.jobs import Floats, run_s
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.money import shares_over
from greenbatch.metrics.months import BILL, LATER, MONTH, Months, bill, months_of
from greenbatch.metrics.shares import Shares
from greenbatch.workload import Workload

BY: Mapping[str, str] = MappingProxyType({"partition": "partition", "account": "group", "user": "user"})
"""What jobs are divided by -> the column of the workload that numbers it."""
NODE_GROUP = "node group"
"""Where a job ran, which depends on the scheduler: the group of its first node."""
MOST = 10
"""Parts that are shown by themselves, those with most work; the others are added up."""

Rows = NDArray[np.int64]
"""Rows of jobs in the workload."""
Parts = Mapping[str, Mapping[float, str]]
"""By -> number in the column, or first instant of a month [s] -> name of the part."""


def parts_of(
    workload: Workload, cluster: Cluster | None = None, most: int = MOST, *, by_month: bool = False
) -> Parts:  # fmt: skip
    """The parts that a workload is divided into, in descending order of work (processors x run time).

    Args:
        workload: all jobs of a scenario, so that the parts are the same in every window.
        cluster: the machine; if jobs are placed on its nodes, its groups are parts too.
        most: number of parts of a kind; if there are more, the rest is one part, ``others (n)``.
        by_month: also divide jobs by the calendar month of their submission, for runs of the whole workload; the last
            part is what comes after the recorded months.

    Returns:
        By what -> number -> name of the part; only what divides the jobs into at least two.
    """
    found: dict[str, Mapping[float, str]] = {}
    work_s = workload.processors * workload.run_time_s
    for by, column in BY.items():
        numbers = getattr(workload, column)
        distinct, code = np.unique(numbers, return_inverse=True)
        if (distinct >= 0).sum() < 2:
            continue
        order = distinct[np.argsort(-np.bincount(code, weights=work_s), kind="stable")].tolist()
        named = workload.names.get(column, {})
        shown = {k: named.get(k, str(k)) if k >= 0 else "unknown" for k in order}
        if len(order) > most + 1:
            shown |= dict.fromkeys(order[most:], f"others ({len(order) - most})")
        found[by] = shown
    if by_month and (months := months_of(workload)) is not None:
        found[MONTH] = dict(zip(months.edges_s.tolist(), (*months.names, LATER), strict=True))
    if cluster is not None and cluster.on_nodes and len(cluster.groups) > 1:
        found[NODE_GROUP] = {k: group.name for k, group in enumerate(cluster.groups)}
    return found


def _numbers(outcome: Outcome, by: str, names: Mapping[float, str]) -> NDArray[Any]:
    """The number of each job's part, -1 if it has none, shape (n,)."""
    if by == MONTH:
        months = _months(names)
        return months.edges_s[months.of(outcome.workload.submit_s)]
    if by != NODE_GROUP:
        numbers: NDArray[np.int64] = getattr(outcome.workload, BY[by])
        return numbers
    found = np.full(len(outcome.workload), -1)
    if outcome.placements is not None:
        group = np.repeat(np.arange(len(outcome.cluster.groups)), [each.count for each in outcome.cluster.groups])
        jobs, first = np.unique(outcome.placements.job, return_index=True)
        found[jobs] = group[outcome.placements.node[first]]
    return found


def _months(names: Mapping[float, str]) -> Months:
    """The recorded months; where jobs follow others, simulated submissions may be in other ones."""
    return Months((*names.values(),)[:-1], np.array([*names]))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else np.nan


PART_METRICS: Mapping[str, Callable[[Measured, Rows], float]] = MappingProxyType(
    {
        "jobs": lambda _, rows: float(rows.size),
        "avg_wait_s": lambda run, rows: _mean(run.per_job("wait_s")[rows]),
        "p95_wait_s": lambda run, rows: float(np.percentile(run.per_job("wait_s")[rows], 95)) if rows.size else np.nan,
        "avg_bounded_slowdown": lambda run, rows: _mean(run.per_job("bounded_slowdown")[rows]),
        "processor_hours": lambda run, rows: float(
            run.outcome.workload.processors[rows] @ run_s(run.outcome)[rows] / 3600
        ),
    }
)
"""Figure of a part -> function of a run and the rows of the part's jobs that count."""
AMOUNTS: Mapping[str, Callable[[Shares], Floats]] = MappingProxyType(
    {
        "energy_kwh": lambda shares: shares.energy_j / JOULES_PER_KWH,
        "cost": lambda shares: shares.cost,
        "carbon_kg": lambda shares: shares.carbon_g / 1e3,
    }
)
"""Figure of a part -> function of what jobs, or what belongs to none, use, cost and emit: see `metrics.shares`.

Over the parts of a kind, ``energy_kwh`` [kWh], ``cost`` [currency] and ``carbon_kg`` [kg] add up to those of the whole
run: `horizon_energy_kwh`, `horizon_cost` and `horizon_carbon_kg`, or without a horizon `energy_kwh`, `energy_cost` and
`carbon_kg`. NaN if the power of a job is unknown, and without prices or intensities.
"""
UNCOUNTED = "jobs that do not count"
"""The part of jobs in warm-up and cool-down, and of those that have not finished: what they use, cost and emit."""

NODE_METRICS: Mapping[str, Callable[[EnergyUse], Floats]] = MappingProxyType(
    {
        "node_energy_kwh": lambda use: (use.idle_j + use.static_j + use.dynamic_j) / JOULES_PER_KWH,
        "idle_energy_kwh": lambda use: use.idle_j / JOULES_PER_KWH,
        "static_energy_kwh": lambda use: use.static_j / JOULES_PER_KWH,
        "dynamic_energy_kwh": lambda use: use.dynamic_j / JOULES_PER_KWH,
    }
)
"""Figure of a group of nodes -> function of the energy of all nodes, one value each. [kWh]"""

_PART = re.compile(r"(\w+) by ([\w ]+): (.*)", re.DOTALL)


def part_metric(metric: str, by: str, name: str) -> str:
    """Name of the figure of a part in results, such as ``avg_wait_s by partition: gpu``."""
    return f"{metric} by {by}: {name}"


def split_part_metric(text: str) -> tuple[str, str, str] | None:
    """Metric, by what, and name of the part; None if the name is not that of a part's figure."""
    match = _PART.fullmatch(text)
    return None if match is None else (match[1], match[2], match[3])


def evaluate_parts(run: Measured, parts: Parts, horizon: Horizon | None = None) -> dict[str, float]:
    """All figures of all parts of a run, see `part_metric`; NaN if undefined.

    What belongs to no job (`metrics.shares.REST`) and jobs that do not count are parts too, which only have `AMOUNTS`.

    Args:
        run: the run.
        parts: the parts of its jobs.
        horizon: the interval of `AMOUNTS` and of the bill of months; by default from the first start to the last end,
            and no bill.
    """
    values: dict[str, float] = {}
    if MONTH in parts and horizon is not None:
        of_months = bill(run, horizon, _months(parts[MONTH]))
        for metric, of_bill in BILL.items():
            for name, value in zip(parts[MONTH].values(), of_bill(of_months).tolist(), strict=True):
                values[part_metric(metric, MONTH, name)] = value
    if not parts:
        return values
    shares = shares_over(run, horizon)
    for by, names in parts.items():
        found = _rows(run, by, names)
        for name, rows in found.items():
            for metric, function in PART_METRICS.items():
                values[part_metric(metric, by, name)] = function(run, rows)
            values |= _amounts(shares, rows, by, name)
        values |= _rest(run, shares, by, {*found})
    if NODE_GROUP in parts:
        group = np.array(run.energy_use.group)
        for metric, of_nodes in NODE_METRICS.items():
            of_node = of_nodes(run.energy_use)
            for name in parts[NODE_GROUP].values():
                values[part_metric(metric, NODE_GROUP, name)] = float(of_node[group == name].sum())
    return values


def _rows(run: Measured, by: str, names: Mapping[float, str]) -> dict[str, Rows]:
    """Part -> rows of its jobs that count; after the recorded months, only where jobs follow others."""
    counted, outcome = np.flatnonzero(run.jobs), run.outcome
    numbers = _numbers(outcome, by, names)[counted]
    without = {LATER} if by == MONTH and not follow_others(outcome.workload, outcome.rules) else set()
    return {
        part: counted[np.isin(numbers, [number for number, name in names.items() if name == part])]
        for part in dict.fromkeys(names.values())
        if part not in without
    }


def _amounts(shares: Shares, rows: Rows, by: str, name: str) -> dict[str, float]:
    """`AMOUNTS` of some rows of the shares."""
    return {part_metric(metric, by, name): float(of(shares)[rows].sum()) for metric, of in AMOUNTS.items()}


def _rest(run: Measured, shares: Shares, by: str, taken: set[str]) -> dict[str, float]:
    """`AMOUNTS` of what belongs to no part of the jobs; a name that an account has is written in brackets."""
    rows = {name: np.array([len(run.jobs) + k]) for k, name in enumerate(shares.rest)}
    if rows and not run.jobs.all():
        rows[UNCOUNTED] = np.flatnonzero(~run.jobs)
    found: dict[str, float] = {}
    for name, of in rows.items():
        found |= _amounts(shares, of, by, _other_than(taken, name))
    return found


def _other_than(taken: set[str], name: str) -> str:
    while name in taken:
        name = f"({name})"
    return name


def nested(values: Mapping[str, float | int | None]) -> dict[str, dict[str, dict[str, float | int | None]]]:
    """By what -> name of the part -> metric -> value, of the figures of parts among some values."""
    found: dict[str, dict[str, dict[str, float | int | None]]] = {}
    for text, value in values.items():
        if part := split_part_metric(text):
            metric, by, name = part
            found.setdefault(by, {}).setdefault(name, {})[metric] = value
    return found
