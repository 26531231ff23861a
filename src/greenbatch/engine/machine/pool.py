"""A pool of equal processors, of which any free ones can run any job, and of GPUs, if there are any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.resources import fits, give, take
from greenbatch.engine.records import Int32s, MachineTotals, per_job, record_of
from greenbatch.workload import Workload


@per_job("gpus")
class Pool(NamedTuple):
    """Pooled processors and GPUs."""

    totals: MachineTotals
    gpus: Int32s
    """GPUs that each job takes, shape (n,), or (0,) for a machine without."""


def pool_of(cluster: Cluster, workload: Workload) -> Pool:
    """The idle pool of a cluster; where it has GPUs, a job of which they are not known takes none."""
    processors, idle_w = cluster.processors, cluster.idle_power_w
    totals = record_of(MachineTotals, processors=processors, free=processors, load_w=idle_w, base_power_w=idle_w)
    if cluster.powered is None:
        return Pool(totals, np.zeros(0, np.int32))
    totals.gpus = totals.free_gpus = cluster.gpus
    return Pool(totals, np.maximum(workload.gpus, 0).astype(np.int32))


@fits.register(Pool)
def fits_pool(machine: Pool, job: int, processors: int, now_s: float) -> bool:
    """Enough processors and GPUs are free."""
    if processors > machine.totals.free:
        return False
    return bool(machine.gpus.shape[0] == 0 or machine.gpus[job] <= machine.totals.free_gpus)


@take.register(Pool)
def take_units(machine: Pool, job: int, processors: int, power_w: float, now_s: float, outlives: bool) -> float:
    """Occupy processors and GPUs and add the power of the job; run times are those at the speed of the pool."""
    totals = machine.totals
    totals.free -= processors
    totals.load_w += power_w
    if machine.gpus.shape[0] > 0:
        totals.free_gpus -= machine.gpus[job]
    return 1.0


@give.register(Pool)
def give_units(machine: Pool, job: int, processors: int, power_w: float, now_s: float, is_last: bool) -> None:
    """Release what a job took; an empty machine is reset, so that rounding does not add up over many jobs."""
    totals = machine.totals
    totals.free += processors
    totals.load_w = totals.base_power_w if is_last else totals.load_w - power_w
    if machine.gpus.shape[0] > 0:
        totals.free_gpus += machine.gpus[job]
