"""Energy of a finished simulation by node and by job, from where and when the jobs ran.

A node draws idle power while nothing runs on it and static power while at least one job does; jobs add dynamic power:
their own if it is known, otherwise that of their processors and GPUs. Static power is divided equally among the jobs
that run on the node at each instant (InEPS, López et al. 2025, Eq. 1). Idle power belongs to no job. A pool is one node
which always draws its idle power and has no static power.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import NodeCluster
from greenbatch.engine.outcome import Outcome, Placements

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyUse:
    """Energy of m nodes and n jobs from the first start to the last end; NaN where the power of a job is unknown.

    ``idle_j.sum() + job_j.sum()`` is the energy of the cluster, and so is the sum over all nodes.
    """

    node: tuple[str, ...]
    """Name of each node, in the order of `NodeCluster.node_names`; one on a pool."""
    group: tuple[str, ...]
    """Name of the group of each node."""
    jobs: Ints
    """Number of jobs that ran on each node, shape (m,)."""
    busy_processor_s: Floats
    """Processors x time for which jobs used them, shape (m,). [s]"""
    idle_j: Floats
    """While nothing ran on the node, from its switching on; on a pool, at all times; NaN if nodes boot on demand; shape
    (m,). [J]"""
    static_j: Floats
    """While jobs ran on the node, without its busy processors and GPUs, shape (m,). [J]"""
    dynamic_j: Floats
    """Of the jobs on the node; own power of a job counts in proportion to its processors there; shape (m,). [J]"""
    job_j: Floats
    """Dynamic energy of each job and its part of static energy, shape (n,). [J]"""


def energy_use(outcome: Outcome) -> EnergyUse:
    """Energy of all nodes, and what each job caused of it."""
    placed = outcome.placements
    if placed is None or not isinstance(outcome.cluster, NodeCluster):
        return _of_pool(outcome)
    return _of_nodes(outcome, outcome.cluster, placed)


def _of_pool(outcome: Outcome) -> EnergyUse:
    jobs, run_s = outcome.workload, outcome.end_s - outcome.start_s
    job_j = jobs.power_w * run_s
    first_s, last_s = _span_s(outcome)
    return EnergyUse(
        node=("pool",), group=("pool",), jobs=np.array([len(jobs)]),
        busy_processor_s=np.array([float(jobs.processors @ run_s)]),
        idle_j=np.array([outcome.cluster.idle_power_w * (last_s - first_s)]), static_j=np.zeros(1),
        dynamic_j=np.array([float(job_j.sum())]), job_j=job_j,
    )  # fmt: skip


def _span_s(outcome: Outcome) -> tuple[float, float]:
    """First start and last end; equal without jobs. [s]"""
    return (float(outcome.start_s.min()), float(outcome.end_s.max())) if outcome.start_s.size else (0.0, 0.0)


def _of_nodes(outcome: Outcome, cluster: NodeCluster, placed: Placements) -> EnergyUse:
    counts, names = [g.count for g in cluster.groups], cluster.node_names
    columns = ("idle_power_w", "static_power_w", "power_per_processor_w", "power_per_gpu_w")
    idle_w, static_w, processor_w, gpu_w = (
        np.repeat([getattr(g, name) for g in cluster.groups], counts) for name in columns
    )
    job, node, jobs = placed.job, placed.node, outcome.workload
    start_s, end_s, (first_s, last_s) = outcome.start_s[job], outcome.end_s[job], _span_s(outcome)
    on_s = np.full(len(names), last_s - first_s)
    on_demand = cluster.power_on == "on-demand"
    if cluster.power_on == "first-use":
        switched_on_s = np.full(len(names), last_s)
        np.minimum.at(switched_on_s, node, start_s)
        on_s = last_s - switched_on_s
    share_s, busy_s = _divided(node, start_s, end_s, len(names))
    modelled_w = placed.processors * processor_w[node] + placed.gpus * gpu_w[node]
    own_w = jobs.power_w[job] * (placed.processors / jobs.processors[job])
    known_w = np.where(processor_w[node] > 0, modelled_w, np.nan)
    dynamic_j = np.where(np.isnan(own_w), known_w, own_w) * (end_s - start_s)

    return EnergyUse(
        node=names,
        group=tuple(g.name for g in cluster.groups for _ in range(g.count)),
        jobs=np.bincount(node, minlength=len(names)),
        busy_processor_s=_sums(node, placed.processors * (end_s - start_s), len(names)),
        idle_j=np.full(len(names), np.nan) if on_demand else idle_w * np.maximum(on_s - busy_s, 0.0),
        static_j=static_w * busy_s,
        dynamic_j=_sums(node, dynamic_j, len(names)),
        job_j=_sums(job, dynamic_j + static_w[node] * share_s, len(jobs)),
    )


def _sums(number: Ints, values: Floats, count: int) -> Floats:
    """Sum of the values of each number from 0 to ``count - 1``."""
    return np.bincount(number, weights=values, minlength=count).astype(np.float64)


def _divided(node: Ints, start_s: Floats, end_s: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Divide the time for which nodes are busy equally among the jobs on them.

    Args:
        node: the node of each part of a job, shape (p,).
        start_s: start of each part, shape (p,). [s]
        end_s: its end, shape (p,). [s]
        nodes: number of nodes, m.

    Returns:
        Time of each part, divided by the number of parts on the node at each instant, shape (p,), and the time for
        which each node is busy, shape (m,). [s]
    """
    parts = len(node)
    of, time_s, is_end = np.tile(node, 2), np.concatenate([start_s, end_s]), np.repeat([0, 1], parts)
    order = np.lexsort((is_end, time_s, of))
    present = np.cumsum(1 - 2 * is_end[order])  # after each event; 0 after the last of a node
    length_s = np.diff(time_s[order], append=0.0) * (present > 0)
    busy_s = _sums(of[order], length_s, nodes)
    # Extended precision: sums over all nodes are far longer than most jobs.
    until_s = np.cumsum((length_s / np.maximum(present, 1)).astype(np.longdouble))
    at_event_s = np.empty(2 * parts, dtype=np.longdouble)
    at_event_s[order] = np.concatenate([np.zeros(1, dtype=np.longdouble), until_s])[:-1]
    return (at_event_s[parts:] - at_event_s[:parts]).astype(np.float64), busy_s
