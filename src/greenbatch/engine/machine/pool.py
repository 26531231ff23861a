"""A pool of equal processors: any free ones can run any job."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.protocol import fits, give, machine_of, next_change_s, take
from greenbatch.engine.records import MachineTotals, record_of
from greenbatch.workload import Workload


class Pool(NamedTuple):
    """Pooled processors."""

    totals: MachineTotals


@machine_of.register
def pool_of(cluster: Cluster, workload: Workload) -> Pool:
    """The idle pool of a cluster."""
    processors, idle_w = cluster.processors, cluster.idle_power_w
    return Pool(
        record_of(MachineTotals, processors=processors, free=processors, load_w=idle_w, base_power_w=idle_w)
    )  # fmt: skip


@fits.register(Pool)
def fits_pool(machine: Pool, job: int, processors: int, now_s: float) -> bool:
    """Enough processors are free."""
    return processors <= machine.totals.free


@take.register(Pool)
def take_processors(
    machine: Pool, job: int, processors: int, power_w: float, now_s: float, outlives: bool
) -> float:  # fmt: skip
    """Occupy processors and add the power of the job; run times are those at the speed of the pool."""
    machine.totals.free -= processors
    machine.totals.load_w += power_w
    return 1.0


@give.register(Pool)
def give_processors(
    machine: Pool, job: int, processors: int, power_w: float, now_s: float, is_last: bool
) -> None:  # fmt: skip
    """Release processors and power; an empty machine is reset, so that rounding does not add up over many jobs."""
    totals = machine.totals
    totals.free += processors
    totals.load_w = totals.base_power_w if is_last else totals.load_w - power_w


@next_change_s.register(Pool)
def never(machine: Pool, now_s: float) -> float:
    """A pool changes with its jobs only."""
    return np.inf
