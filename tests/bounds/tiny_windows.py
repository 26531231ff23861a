"""Small windows whose schedules can be enumerated, and their energy summed up plainly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.workload import Workload

Floats = np.ndarray[Any, np.dtype[np.float64]]


def cluster_of(processors: int, idle_w: float) -> Cluster:
    return Cluster.pooled(processors, processors_per_machine=processors, idle_power_per_machine_w=idle_w)


def site_of(power_w: Sequence[float], step_s: float = 1800.0, **more: Any) -> Site:
    return Site(name="small", step_s=step_s, sources_w={"sun": np.array(power_w, dtype=float)}, repeat=True, **more)


def jobs_of(**columns: Any) -> Workload:
    return Workload.from_columns("small", {name: np.asarray(values) for name, values in columns.items()})


def fits(jobs: Workload, start_s: Floats, processors: int) -> bool:
    """Whether jobs never occupy more processors than there are."""
    end_s = start_s + jobs.run_time_s
    return all(jobs.processors[(start_s <= at_s) & (at_s < end_s)].sum() <= processors for at_s in start_s)


def energy(jobs: Workload, cluster: Cluster, site: Site, start_s: Floats, span: tuple[float, float]) -> Floats:
    """Energy and brown energy over a span of time [J], from instant to instant at which anything changes."""
    end_s = start_s + jobs.run_time_s
    steps = np.arange(np.floor((span[0] - site.origin_s) / site.step_s), (span[1] - site.origin_s) / site.step_s + 1)
    edges = np.concatenate([start_s, end_s, site.origin_s + steps * site.step_s, span])
    edges = np.unique(np.clip(edges, *span))
    middle, seconds = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    runs = (start_s[:, None] <= middle) & (middle < end_s[:, None])
    load_w = cluster.idle_power_w + jobs.power_w @ runs
    slot = np.floor((middle - site.origin_s) / site.step_s).astype(int) % site.slots
    brown_w = np.maximum(load_w - site.available_w[slot], 0.0)
    return np.array([load_w @ seconds, brown_w @ seconds])


def utilization(jobs: Workload, cluster: Cluster, site: Site, start_s: Floats) -> float:
    """Renewable utilization from the first start to the last end."""
    span = float(start_s.min()), float((start_s + jobs.run_time_s).max())
    load_j, brown_j = energy(jobs, cluster, site, start_s, span)
    return 1.0 if load_j == 0 else float(1.0 - brown_j / load_j)


def schedules(jobs: Workload, cluster: Cluster, latest_end_s: float, step_s: float) -> Iterator[Floats]:
    """All schedules whose jobs start at multiples of a step, or at their submission, and end in time."""
    grid = np.arange(0.0, latest_end_s, step_s)
    choices = [
        np.union1d([submit], grid[(grid >= submit) & (grid + run <= latest_end_s)])
        for submit, run in zip(jobs.submit_s, jobs.run_time_s, strict=True)
    ]
    for each in product(*choices):
        start_s = np.array(each)
        if fits(jobs, start_s, cluster.processors):
            yield start_s
