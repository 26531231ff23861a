"""A window as the bound sees it: jobs, and averages of supply over intervals of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.energy.slots import interval_at
from greenbatch.engine.capabilities import features_of, refuse
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import work_s as run_times_s
from greenbatch.errors import InputError
from greenbatch.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST_S = 3600.0
"""Longest interval, unless there would be too many. [s]"""
FEWEST, MOST = 128, 4096
"""Intervals of a window: at least and about at most."""
TOLERANCE_S = 1e-6
"""Times that differ by less are equal; a job may start this much too early, which only loosens the bound. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A window of n jobs, and k intervals from the first submission to the latest end that is allowed."""

    submit_s: Floats
    """Submission of each job, shape (n,). [s]"""
    run_s: Floats
    """Run time of each job, shape (n,), > 0. [s]"""
    processors: Floats
    """Processors of each job, shape (n,)."""
    power_w: Floats
    """Power of each job above idle, shape (n,). [W]"""
    cluster_processors: int
    """Processors of the cluster."""
    idle_w: float
    """Power of the idle cluster. [W]"""
    edge_s: Floats
    """Edges of the intervals, ascending, shape (k + 1,): the first submission, …, the latest end. [s]"""
    surplus_w: Floats
    """Mean of ``max(0, renewable power - idle power)`` over each interval, shape (k,). [W]"""
    turn_s: Floats
    """Instants at which the supply changes, and the edges, ascending, shape (m,). [s]"""
    idle_brown_j: Floats
    """Energy from the grid that an idle cluster takes from the first submission to each turn, shape (m,). [J]"""
    turn_of_edge: Ints
    """Position of each edge among the turns, shape (k + 1,)."""

    @property
    def jobs_j(self) -> float:
        """Energy of the jobs above idle. [J]"""
        return float(self.power_w @ self.run_s)

    @property
    def work_processor_s(self) -> float:
        """Processor time of the jobs, less what rounding can add. [s]"""
        return float(self.processors @ self.run_s) * (1.0 - 1e-12)


def problem_of(workload: Workload, cluster: Cluster, site: Site, rules: Rules, latest_end_s: float) -> Problem:
    """The problem of a window.

    Raises:
        InputError: the bound does not know a feature, see ``capabilities.toml``, a job has no power or does not fit, or
            not all jobs can end in time.
        SupplyExhausted: the power series ends before.
    """
    _check(workload, cluster, site, rules)
    run_s = run_times_s(workload, cluster, rules)
    first_s = float(workload.submit_s.min())
    work_s = float(run_s @ workload.processors) / cluster.processors
    earliest_s = max(first_s + work_s, float(np.max(workload.submit_s + run_s)))
    if not earliest_s - TOLERANCE_S <= latest_end_s < np.inf:
        problem = f"is {latest_end_s:g}, but no schedule ends before {earliest_s:g}"
        raise InputError(problem, field="latest_end_s", fix="give a later time")
    edge_s = _edges_s(first_s, latest_end_s, site)
    turn_s, supply_w = _supply(site, edge_s)
    seconds, idle_w = np.diff(turn_s), float(cluster.first_power_w)
    idle_brown_j = np.append(0.0, np.cumsum(np.maximum(idle_w - supply_w, 0.0) * seconds))
    surplus_j = np.append(0.0, np.cumsum(np.maximum(supply_w - idle_w, 0.0) * seconds))
    turn_of_edge = np.searchsorted(turn_s, edge_s).astype(np.int64)
    return Problem(
        submit_s=workload.submit_s, run_s=run_s, processors=workload.processors.astype(np.float64),
        power_w=workload.power_w + workload.processors * cluster.machine_power_per_processor_w,
        cluster_processors=cluster.processors, idle_w=idle_w, edge_s=edge_s,
        surplus_w=np.diff(surplus_j[turn_of_edge]) / np.diff(edge_s), turn_s=turn_s, idle_brown_j=idle_brown_j,
        turn_of_edge=turn_of_edge,
    )  # fmt: skip


def _check(workload: Workload, cluster: Cluster, site: Site, rules: Rules) -> None:
    refuse("a bound", [("bound", "oracle")], features_of(workload, cluster, site, rules))
    if not len(workload):
        raise InputError("has no jobs", field=workload.name, fix="choose a window with jobs")
    if workload.processors.max() > cluster.processors:
        problem = f"a job needs {workload.processors.max()} processors, the cluster has {cluster.processors}"
        raise InputError(problem, field="processors", fix="give a larger cluster or drop the job")


def _edges_s(first_s: float, last_s: float, site: Site) -> Floats:
    """Edges of the intervals: those of the slots of the supply, of parts of slots, or of several slots."""
    wanted_s = min(LONGEST_S, (last_s - first_s) / FEWEST)
    step_s = site.step_s / np.ceil(site.step_s / wanted_s)
    step_s *= np.ceil((last_s - first_s) / step_s / MOST)
    begin, end = (interval_at(time_s, site.origin_s, step_s) for time_s in (first_s, last_s))
    inner_s = site.origin_s + np.arange(begin + 1.0, end + 1.0) * step_s
    inner_s = inner_s[(inner_s > first_s + TOLERANCE_S) & (inner_s < last_s - TOLERANCE_S)]
    return np.concatenate([[first_s], inner_s, [last_s]])


def _supply(site: Site, edge_s: Floats) -> tuple[Floats, Floats]:
    """Changes of supply together with the edges, shape (m,) [s], and supply from one to the next, (m - 1,) [W]."""
    if not site.repeat and not (site.origin_s <= edge_s[0] and edge_s[-1] <= site.end_s):
        raise site.exhausted("the bound needs", *edge_s[[0, -1]].tolist())
    begin, end = (interval_at(float(time_s), site.origin_s, site.step_s) for time_s in edge_s[[0, -1]])
    change_s = site.origin_s + np.arange(begin, end + 1.0) * site.step_s
    turn_s = np.union1d(edge_s, change_s[(change_s > edge_s[0]) & (change_s < edge_s[-1])])
    middle_s = (turn_s[1:] + turn_s[:-1]) / 2
    slot = np.floor((middle_s - site.origin_s) / site.step_s).astype(np.int64)
    return turn_s, site.available_w[slot % site.slots]
