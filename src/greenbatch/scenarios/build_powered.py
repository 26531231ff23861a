"""Build the powered processors and GPUs that ``[cluster.capacity]`` describes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.cluster import Capacity, Cluster
from greenbatch.cluster.capacity import Told
from greenbatch.errors import InputError
from greenbatch.scenarios.origin import Origin

if TYPE_CHECKING:
    from greenbatch.cluster.capacity import Floats
    from greenbatch.energy import Site
    from greenbatch.engine.pools import Pools
    from greenbatch.scenarios.capacity_file import CapacityTable
    from greenbatch.scenarios.cluster_schema import ClusterSection, IntermittentCapacity
    from greenbatch.workload import Workload

BACKLOGS = 10
"""Time for which power is looked up after the last submission, in parts of what all jobs ask for at full power."""
BEYOND_TICKS = 64
"""Ticks that an intermittent capacity lasts beyond the end of the run, for what is known ahead."""


def capacity_table(section: ClusterSection, pools: Pools | None, origin: Origin) -> CapacityTable | None:
    """The file of a capacity; None if there is none.

    Raises:
        InputError: it cannot be used.
    """
    from greenbatch.scenarios.capacity_file import read_capacity

    capacity = section.capacity
    if capacity is None or capacity.kind != "series" or capacity.file is None:
        return None
    return read_capacity(origin.locate(capacity.file, None, "capacity"), 1.0 if pools is None else pools.tick_s)


def with_capacity(
    machine: Cluster, section: ClusterSection, table: CapacityTable | None, pools: Pools | None,
    workload: Workload, site: Site | None, origin: Origin,
) -> Cluster:  # fmt: skip
    """The machine with its capacity over time.

    Raises:
        InputError: the capacity cannot be used, or it follows power that is not there.
    """
    capacity, tick_s = section.capacity, 1.0 if pools is None else pools.tick_s
    if capacity is None:
        return machine
    size = {"processors": machine.processors, "gpus": machine.gpus}
    if table is not None:
        return replace(machine, powered=table.levels(**size), sources={table.file: table.sha256})
    with origin.blame("cluster", "capacity"):
        if capacity.kind == "constant":
            known = Capacity.of_ticks([capacity.fraction], tick_s, **size)
        elif capacity.kind == "intermittent":
            known = Capacity.of_ticks(_levels(capacity, pools, workload), tick_s, **size)
        elif capacity.kind == "series":
            known = Capacity.of_ticks(capacity.fractions, tick_s, **size)
        else:
            return following_power(machine, capacity.full_power_per_unit_w, pools, workload, site)
    return replace(machine, powered=known)


def _last_end_s(pools: Pools | None, workload: Workload) -> float:
    """The latest end of a run that begins with any of the jobs; infinite unless the rules state it. [s]"""
    return math.inf if pools is None else pools.end_of(float(workload.submit_s.max()))


def _levels(capacity: IntermittentCapacity, pools: Pools | None, workload: Workload) -> np.ndarray:
    """The level with its own probability in each tick, else 1; shape (ticks,)."""
    ticks, end_s = capacity.ticks, _last_end_s(pools, workload)
    if ticks is None and pools is not None and end_s < math.inf:
        ticks = int(np.ceil(end_s / pools.tick_s)) + BEYOND_TICKS
    if ticks is None:
        fix = "state how long it lasts, or set rules.pools.end_s or episode_s"
        raise InputError("is missing", field="ticks", fix=fix)
    falls = np.random.default_rng(capacity.seed).random(ticks) < capacity.level
    return np.where(falls, capacity.level, 1.0)


def following_power(
    machine: Cluster, unit_w: float, pools: Pools | None, workload: Workload, site: Site | None
) -> Cluster:
    """As many processors, with their part of the GPUs, as the site can supply at full load (Eq. 4.1-4.2)."""
    from greenbatch.energy.powered import powered_levels

    if site is None:
        fix = "describe its power in [site], or choose another kind"
        raise InputError("follows the power of a site, and there is none", field="kind", fix=fix)
    processors = np.arange(machine.processors + 1)
    gpus = processors * machine.gpus // machine.processors
    needed_w: Floats = np.asarray((processors + gpus) * unit_w, np.float64)
    if needed_w[-1] < machine.idle_power_w:
        problem = f"is {unit_w:g}: the full machine would draw less than the idle one, {machine.idle_power_w:g} W"
        raise InputError(problem, field="full_power_per_unit_w", fix="state the power of a unit at full load")
    end_s, last_s = _last_end_s(pools, workload), float(workload.submit_s.max())
    if end_s == math.inf:
        work_s = float(workload.requested_time_s @ workload.processors) / machine.processors
        end_s = max(2.0 * last_s, last_s + BACKLOGS * work_s)
    until_s = end_s + site.slots * site.step_s
    time_s, level, stored_j = powered_levels(site, needed_w, until_s)
    rows, told = np.flatnonzero(np.append(True, np.diff(level) != 0)), None
    if site.forecast_model.kind != "perfect":  # what is expected changes with each slot
        rows = np.arange(len(level))
        told = Told(needed_w=needed_w, gpus=gpus, stored_j=stored_j, slots=site.horizon_slots)
    at: dict[str, Any] = {"time_s": time_s[rows], "processors": processors[level[rows]]}
    return replace(machine, powered=Capacity(**at, gpus=gpus[level[rows]], until_s=until_s, told=told))
