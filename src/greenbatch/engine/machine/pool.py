"""A pool of equal processors, of which any free ones can run any job, and of GPUs, if there are any.

Its machines draw their idle power always, or as many of them as the busy processors need: N_on of cost-aware GAS-MARL,
Eq. 1, for jobs that share machines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.at_most import adds_at_most_w
from greenbatch.engine.machine.preview import rise_w
from greenbatch.engine.machine.resources import fits, give, take
from greenbatch.engine.records import Int32s, MachineTotals, per_job, record_of
from greenbatch.machine_code.compile import compiled_small
from greenbatch.workload import Workload


@per_job("gpus")
class Pool(NamedTuple):
    """Pooled processors and GPUs."""

    totals: MachineTotals
    gpus: Int32s
    """GPUs that each job takes, shape (n,), or (0,) for a machine without."""


def pool_of(cluster: Cluster, workload: Workload) -> Pool:
    """The idle pool of a cluster; where it has GPUs, a job of which they are not known takes none."""
    processors, idle_w = cluster.processors, cluster.first_power_w
    totals = record_of(
        MachineTotals, processors=processors, free=processors, load_w=idle_w, base_power_w=idle_w,
        machine_w=cluster.machine_power_w, machine_processors=cluster.machine_processors,
    )  # fmt: skip
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


@compiled_small
def machines_w(totals: MachineTotals, more: int) -> float:
    """What the machines draw more if so many more processors are busy. [W]"""
    if totals.machine_w == 0.0:
        return 0.0
    busy, each = totals.processors - totals.off - totals.free, totals.machine_processors
    needed, is_on = (busy + more + each - 1) // each, (busy + each - 1) // each
    return float((needed - is_on) * totals.machine_w)


@rise_w.register(Pool)
def rise_with_machines_w(machine: Pool, job: int, processors: int, power_w: float, outlives: bool) -> float:
    """The power of the job, and of the machines that it takes beyond those that are on."""
    return power_w + machines_w(machine.totals, processors)


@adds_at_most_w.register(Pool)
def with_machines_of_its_own_w(machine: Pool, job: int, processors: int, power_w: float, outlives: bool) -> float:
    """The power of the job, and of machines for it alone: those that are on may be filled by others until then."""
    totals = machine.totals
    if totals.machine_w == 0.0:
        return power_w
    return float(power_w + (processors + totals.machine_processors - 1) // totals.machine_processors * totals.machine_w)


@take.register(Pool)
def take_units(machine: Pool, job: int, processors: int, power_w: float, now_s: float, outlives: bool) -> float:
    """Occupy processors and GPUs and add the power of the job; run times are those at the speed of the pool."""
    totals = machine.totals
    totals.load_w += power_w + machines_w(totals, processors)
    totals.free -= processors
    if machine.gpus.shape[0] > 0:
        totals.free_gpus -= machine.gpus[job]
    return 1.0


@give.register(Pool)
def give_units(machine: Pool, job: int, processors: int, power_w: float, now_s: float, is_last: bool) -> None:
    """Release what a job took; an empty machine is reset, so that rounding does not add up over many jobs."""
    totals = machine.totals
    power_w -= machines_w(totals, -processors)
    totals.free += processors
    totals.load_w = totals.base_power_w if is_last else totals.load_w - power_w
    if machine.gpus.shape[0] > 0:
        totals.free_gpus += machine.gpus[job]
