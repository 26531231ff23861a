"""Energy of a finished simulation by node and by job, from where and when the jobs ran.

A node draws idle power while nothing runs on it and static power while at least one job does; jobs add dynamic power:
their own if it is known, otherwise that of their processors and GPUs. Static power is divided equally among the jobs
that run on the node at each instant (InEPS, López et al. 2025, Eq. 1). Idle power belongs to no job. A pool is one node
which always draws its idle power and has no static power.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.outcome import Outcome, Placements
from greenbatch.engine.records import Floats, Int32s, Ints
from greenbatch.machine_code.compile import entry


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyUse:
    """Energy of m nodes and n jobs from the first start to the last end; NaN where the power of a job is unknown.

    ``idle_j.sum() + job_j.sum()`` is the energy of the cluster, and so is the sum over all nodes.
    """

    node: tuple[str, ...]
    """Name of each node, in the order of `Cluster.node_names`; one on a pool."""
    group: tuple[str, ...]
    """Name of the group of each node."""
    jobs: Ints
    """Number of jobs that ran on each node, shape (m,)."""
    busy_processor_s: Floats
    """Processors x time for which jobs used them, shape (m,). [s]"""
    idle_j: Floats
    """While nothing ran on the node, from its switching on, boots and shutdowns included; at all times on a pool; shape
    (m,). [J]"""
    static_j: Floats
    """While jobs ran on the node, without its busy processors and GPUs, shape (m,). [J]"""
    dynamic_j: Floats
    """Of the jobs on the node; own power of a job counts in proportion to its processors there; shape (m,). [J]"""
    job_j: Floats
    """Dynamic energy of each job and its part of static energy, shape (n,). [J]"""


def energy_use(outcome: Outcome) -> EnergyUse:
    """Energy of all nodes, and what each job caused of it."""
    cluster, placed = outcome.cluster, outcome.placements
    if placed is None:
        return _of_pool(outcome)
    use = _shared(outcome, placed)
    jobs = use.node[:, RAN].astype(np.int64)
    if outcome.stays is not None:  # a job can run on a node several times
        jobs = np.bincount(np.unique([placed.node, placed.job], axis=1)[0], minlength=len(jobs))
    idle_w, static_w = (_of_each(cluster, name) for name in ("idle_power_w", "static_power_w"))
    return EnergyUse(
        node=cluster.node_names, group=tuple(each.name for each in cluster.groups for _ in range(each.count)),
        jobs=jobs, busy_processor_s=use.node[:, BUSY_PROCESSOR_S].copy(),
        idle_j=_idle_j(outcome, placed, idle_w, use.node[:, BUSY_S]), static_j=static_w * use.node[:, BUSY_S],
        dynamic_j=use.node[:, DYNAMIC_J].copy(), job_j=use.job_j,
    )  # fmt: skip


Clock = Callable[[Floats], Floats]
"""Turns times into readings of another clock."""


def job_energy(outcome: Outcome, clock: Clock) -> Floats:
    """The energy of each job by a clock of its own, shape (n,).

    The integral of its power over the readings of the clock while it runs. By one that counts seconds of an interval
    alone these are joules within it; by one that runs as fast as a joule is dear, what they cost.

    Args:
        outcome: the run.
        clock: its reading at times of any shape.
    """
    placed = outcome.placements
    if placed is not None:
        return _shared(outcome, placed, clock).job_j
    job, begin_s, end_s = outcome.spans
    length = np.bincount(job, weights=clock(end_s) - clock(begin_s), minlength=len(outcome.workload))
    return np.asarray(outcome.workload.power_w * length)


def _of_pool(outcome: Outcome) -> EnergyUse:
    jobs, run_s = outcome.workload, outcome.run_s
    job_j = jobs.power_w * run_s
    first_s, last_s = _span_s(outcome)
    if outcome.cluster.machine_processors:
        idle_j = 0.0  # see `_machines_j`
    elif outcome.cluster.powered is not None:
        idle_j = outcome.cluster.idle_energy_j(first_s, last_s)
    else:
        idle_j = outcome.cluster.idle_power_w * (last_s - first_s)
    return EnergyUse(
        node=("pool",), group=("pool",), jobs=np.array([len(jobs)]),
        busy_processor_s=np.array([float(jobs.processors @ run_s)]),
        idle_j=np.array([idle_j]), static_j=np.array([_machines_j(outcome)]),
        dynamic_j=np.array([float(job_j.sum())]), job_j=job_j,
    )  # fmt: skip


def _machines_j(outcome: Outcome) -> float:
    """Energy of the machines of a pool that are on while their processors are busy, without that of the jobs. [J]"""
    each = outcome.cluster.machine_processors
    if not each:
        return 0.0
    job, start_s, end_s = outcome.spans
    taken = outcome.workload.processors[job]
    order = np.argsort(time_s := np.concatenate([start_s, end_s]), kind="stable")
    busy = np.cumsum(np.concatenate([taken, -taken])[order])[:-1]
    return float(np.ceil(busy / each) @ np.diff(time_s[order])) * outcome.cluster.machine_power_w


def _span_s(outcome: Outcome) -> tuple[float, float]:
    """First start and last end; equal without jobs. [s]"""
    if np.isnan(outcome.start_s).all():
        return 0.0, 0.0
    return float(np.nanmin(outcome.start_s)), outcome.last_s


def _of_each(cluster: Cluster, name: str) -> Floats:
    """A power of the groups, of each node, shape (m,). [W]"""
    return np.repeat([float(getattr(g, name)) for g in cluster.groups], [g.count for g in cluster.groups])


def _shared(outcome: Outcome, placed: Placements, clock: Clock | None = None) -> Use:
    """Sums over the parts of all jobs, by another clock if there is one."""
    jobs, cluster, (job, start_s, end_s) = outcome.workload, outcome.cluster, outcome.spans
    order = np.argsort(np.concatenate([start_s, end_s]), kind="stable")  # starts before ends
    first = np.searchsorted(placed.span, np.arange(len(job) + 1))
    columns = (np.ascontiguousarray(each, np.int32) for each in (placed.node, placed.processors, placed.gpus))
    here = Parts(first, *columns)
    level = np.zeros(len(jobs), dtype=np.int32) if outcome.dvfs_level is None else outcome.dvfs_level
    draw = np.array([1.0, *(each.power for each in cluster.dvfs)])[level]
    powers = "static_power_w", "power_per_processor_w", "power_per_gpu_w"
    own = (jobs.power_w / jobs.processors)[job]
    watts = Watts(own, draw[job], *(_of_each(cluster, name) for name in powers))
    use = Use(np.zeros((len(cluster.node_names), NODE_SUMS)), np.zeros(len(job)), np.empty((len(placed.node), 2)))
    times = (each if clock is None else clock(each) for each in (start_s, end_s))
    _compiled_share()(order, *(np.ascontiguousarray(each) for each in times), here, watts, use)
    if outcome.stays is None:
        return use
    return use._replace(job_j=np.bincount(job, weights=use.job_j, minlength=len(jobs)).astype(np.float64))


def _lit(outcome: Outcome, placed: Placements, on_from_s: Floats) -> Clock:
    """A clock that runs as fast as the part of the empty nodes that is powered.

    While not all of a machine of nodes is powered, processors of empty nodes are off, of all alike, after those of
    nodes that are not switched on yet, see `machine.power_states.dim`.

    Args:
        outcome: the run.
        placed: its placements.
        on_from_s: when each node is switched on: at a begin, at the end of the run, or -inf; shape (m,). [s]
    """
    cluster, levels, (_, start_s, end_s) = outcome.cluster, outcome.cluster.capacity_levels, outcome.spans
    size = _of_each(cluster, "processors")
    time_s = np.concatenate([start_s[placed.span], end_s[placed.span]])
    node, change = np.tile(placed.node, 2), np.repeat([1, -1], len(placed.node))
    order = np.lexsort((-change, time_s, node))  # by node, starts before ends
    time_s, node, jobs = time_s[order], node[order], np.cumsum(change[order])
    begins, ends = (change[order] == 1) & (jobs == 1), (change[order] == -1) & (jobs == 0)
    edges_s = np.unique(np.concatenate([time_s, levels.time_s, _span_s(outcome)]))
    taken = np.zeros(len(edges_s))
    np.add.at(taken, np.searchsorted(edges_s, time_s), size[node] * (begins * 1.0 - ends))
    here = np.zeros(len(edges_s))
    np.add.at(here, np.searchsorted(edges_s, on_from_s), size)
    on = np.cumsum(here)
    empty = on - np.cumsum(taken)
    level = np.maximum(np.searchsorted(levels.time_s, edges_s, side="right") - 1, 0)
    off = np.maximum(on - levels.processors[level], 0.0)
    lit = 1.0 - np.minimum(1.0, np.divide(off, empty, out=np.zeros(len(off)), where=empty > 0))
    reading_s = np.append(0.0, np.cumsum(lit[:-1] * np.diff(edges_s)))
    return lambda each: np.asarray(np.interp(each, edges_s, reading_s))


def _idle_j(outcome: Outcome, placed: Placements, idle_w: Floats, busy_s: Floats) -> Floats:
    """Energy of each node while nothing ran on it, boots and shutdowns included, shape (m,). [J]"""
    first_s, last_s = _span_s(outcome)
    if outcome.switching is not None:
        switching = outcome.switching
        return idle_w * np.maximum(switching.on_s - switching.dark_s - busy_s, 0.0) + switching.energy_j
    on_from_s = np.full(len(idle_w), -np.inf)
    if outcome.cluster.power_on == "first-use":
        on_from_s = np.full(len(idle_w), last_s)
        np.minimum.at(on_from_s, placed.node, outcome.spans[1][placed.span])
    from_s = np.maximum(on_from_s, first_s)
    on_s = last_s - from_s
    if outcome.cluster.powered is not None:
        lit = _lit(outcome, placed, on_from_s)
        on_s = lit(np.array([last_s])) - lit(from_s)
        busy_s = _shared(outcome, placed, lit).node[:, BUSY_S]
    return np.asarray(idle_w * np.maximum(on_s - busy_s, 0.0))


class Parts(NamedTuple):
    """The parts of n spans of jobs on nodes, ordered by span; what is said of a job is said of a span of it."""

    first: Ints
    """First part of each, and the number of parts, shape (n + 1,)."""
    node: Int32s
    processors: Int32s
    gpus: Int32s


class Watts(NamedTuple):
    """What draws power."""

    own: Floats
    """Own power of each job, per processor; NaN if unknown, shape (n,). [W]"""
    draw: Floats
    """Power of the processors of each job at its DVFS level, relative to the highest, shape (n,)."""
    static: Floats
    """Static power of each node, shape (m,); so for the others. [W]"""
    processor: Floats
    gpu: Floats


RAN, BUSY_PROCESSOR_S, BUSY_S, DYNAMIC_J, PRESENT, SINCE_S, SHARED_S, LOST_S = range(8)
"""Columns of `Use.node`: jobs that have run on it; processors x time, and the time for which it was busy [s]; energy of
its jobs [J]; parts of jobs on it now, and when that changed last [s]; the time for which it was busy, divided by the
parts on it at each instant, and what rounding took from it, for such sums are far longer than most jobs [s]."""
NODE_SUMS = 8


class Use(NamedTuple):
    """Sums over all parts of jobs."""

    node: Floats
    """Columns `RAN` to `LOST_S`, shape (m, NODE_SUMS)."""
    job_j: Floats
    """Energy of each job, shape (n,). [J]"""
    begun_s: Floats
    """`SHARED_S` and `LOST_S` of its node when a part began, shape (p, 2). [s]"""


def share_power(order: Ints, start_s: Floats, end_s: Floats, parts: Parts, watts: Watts, use: Use) -> None:
    """Add up the energy of jobs and nodes, from event to event.

    Args:
        order: events in order of time: job j starts at event j and ends at event n + j, shape (2n,).
        start_s: start of each job, by any clock, shape (n,). [s]
        end_s: its end, shape (n,). [s]
        parts: where the jobs ran.
        watts: what draws power.
        use: sums, zero before.
    """
    jobs = start_s.shape[0]
    begun_s = use.begun_s
    for event in order:
        is_end = event >= jobs
        job = event - jobs if is_end else event
        now_s, run_s = end_s[job] if is_end else start_s[job], end_s[job] - start_s[job]
        for k in range(parts.first[job], parts.first[job + 1]):
            number = parts.node[k]
            node = use.node[number]
            if node[PRESENT] > 0.0:
                length_s = now_s - node[SINCE_S]
                node[BUSY_S] += length_s
                added_s = length_s / node[PRESENT] - node[LOST_S]
                sum_s = node[SHARED_S] + added_s
                node[LOST_S] = (sum_s - node[SHARED_S]) - added_s
                node[SHARED_S] = sum_s
            node[SINCE_S] = now_s
            if not is_end:
                node[PRESENT] += 1.0
                begun_s[k, 0], begun_s[k, 1] = node[SHARED_S], node[LOST_S]
                continue
            node[PRESENT] -= 1.0
            node[RAN] += 1.0
            node[BUSY_PROCESSOR_S] += parts.processors[k] * run_s
            processors = parts.processors[k] * watts.draw[job]
            modelled_w = processors * watts.processor[number] + parts.gpus[k] * watts.gpu[number]
            if not np.isnan(watts.own[job]):
                modelled_w = watts.own[job] * processors
            elif watts.processor[number] <= 0.0:
                modelled_w = np.nan
            node[DYNAMIC_J] += modelled_w * run_s
            share_s = (node[SHARED_S] - begun_s[k, 0]) - (node[LOST_S] - begun_s[k, 1])
            use.job_j[job] += modelled_w * run_s + watts.static[number] * share_s


@cache
def _compiled_share() -> Any:
    floats, whole, small, table = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, 0))
    parts, watts, use = Parts(whole, small, small, small), Watts(*[floats] * 5), Use(table, floats, table)
    signature = numba.types.void(*(numba.typeof(each) for each in (whole, floats, floats, parts, watts, use)))
    return entry("share-power", share_power, signature, told=False)
