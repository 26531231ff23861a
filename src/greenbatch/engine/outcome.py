"""The outcome of a simulation: the job schedule and the power profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster, NodeCluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.workload import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Outcome:
    """Schedule and power of one run. Arrays over jobs follow ``workload``'s rows, shape (n,)."""

    scheduler: str
    """Name of the scheduler, ``policy+backfill``."""
    workload: Workload
    """The jobs that were simulated (one window)."""
    cluster: Cluster
    """The machine that the jobs ran on."""
    site: Site | None
    """The power supply; None if there is none, and then no energy metric is defined."""
    rules: Rules
    """The options of the batch system."""
    start_s: Floats
    """Start of each job. [s]"""
    end_s: Floats
    """End of each job. [s]"""
    promised_start_s: Floats
    """First reservation of each job, NaN if it never got one. [s]"""
    profile_time_s: Floats
    """Instants at which the load changes, ascending, shape (m,); the last is the end of the last job,
    or of the last shutdown of a node. [s]"""
    profile_load_w: Floats
    """Cluster power, idle power included, from each instant to the next, shape (m,). [W]"""
    decisions: int
    """Jobs that started because the policy chose them; the others were backfilled. Conservative backfilling gives
    every job a reservation of its own, so it counts all jobs."""
    killed: int
    """Jobs killed at their requested time."""
    placements: Placements | None = None
    """The nodes of each job; None on a pool."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placements:
    """Where jobs ran: one row for each job and node, ordered by job, columns of shape (p,)."""

    job: NDArray[np.int64]
    """Row of the job in the workload."""
    node: NDArray[np.int64]
    """Number of the node in `NodeCluster.node_names`."""
    processors: NDArray[np.int64]
    """Processors that work for the job, without those that it merely blocks."""
    gpus: NDArray[np.int64]
    """GPUs that work for the job."""


def placements_of(recorded: Sequence[Any], cluster: Cluster) -> Placements | None:
    """The placements that a log recorded; None for a pool."""
    if not isinstance(cluster, NodeCluster):
        return None
    rows = np.concatenate(recorded)
    rows = rows[np.argsort(rows["job"], kind="stable")]
    return Placements(**{name: rows[name].astype(np.int64) for name in ("job", "node", "processors", "gpus")})
