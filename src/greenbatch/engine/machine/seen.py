"""The nodes and placements of a view, made from a machine; `from_seen` does the reverse."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from greenbatch.engine.capacity.varying import CapacityPart, Varying
from greenbatch.engine.interface import NOWHERE, Capacity, Placements
from greenbatch.engine.interface import Nodes as SeenNodes
from greenbatch.engine.machine.node_tables import ON, Nodes
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.records import Clock, Int32s, Ints, MachineTotals


def seen_nodes(machine: Machine, running: Ints) -> dict[str, Any]:
    """The fields ``nodes`` and ``placements`` of a view.

    Args:
        machine: the machine.
        running: rows of the running jobs, in the order of the view.
    """
    totals = machine.totals
    if not isinstance(machine, Nodes):
        row = [int(totals.processors)], [int(totals.free)], [float(totals.base_power_w)]
        return {"nodes": SeenNodes(*map(np.array, row)), "placements": NOWHERE}
    nodes: Any = machine.nodes
    is_on = nodes["phase"] == ON
    seen = SeenNodes(
        nodes["processors"].astype(np.int64), nodes["free"].astype(np.int64), np.where(is_on, nodes["idle_w"], 0.0),
        nodes["free_gpus"].astype(np.int64), nodes["free_memory_mb"].copy(), is_on,
    )  # fmt: skip
    return {"nodes": seen, "placements": _placements(machine, running)}


def seen_capacity(
    capacity: CapacityPart, totals: MachineTotals, clock: Clock, waiting: Int32s, job_id: Ints
) -> Capacity | None:
    """The field ``capacity`` of a view.

    Args:
        capacity: the capacity.
        totals: of the machine.
        clock: the clock.
        waiting: rows of the waiting jobs, in the order of the view.
        job_id: number of each job.
    """
    if not isinstance(capacity, Varying):
        return None
    counts: Any = capacity.counts
    levels: Any = capacity.levels[counts.level :]
    known = levels[levels["time_s"] <= clock.now_s + counts.horizon_s]
    return Capacity(
        ready=np.isin(waiting, capacity.ready[: counts.ready]), free_gpus=int(totals.free_gpus),
        time_s=known["time_s"].copy(), processors=known["processors"].astype(np.int64),
        gpus=known["gpus"].astype(np.int64), suspended_job_id=job_id[capacity.suspended[: counts.suspended]],
    )  # fmt: skip


def _placements(machine: Nodes, running: Ints) -> Placements:
    """Where the running jobs run: the first part of each, then the second of those that have one, and so on."""
    demands, shares = cast(Any, machine.demands), cast(Any, machine.shares)
    jobs, parts, rows = np.arange(len(running)), demands["first"][running], []
    while jobs.size:
        rows.append((jobs, parts))
        parts = shares["of_job"][parts]
        jobs, parts = jobs[parts >= 0], parts[parts >= 0]
    if not rows:
        return NOWHERE
    at, which = (np.concatenate(column) for column in zip(*rows, strict=True))
    each = shares[which]
    return Placements(
        at, each["node"].astype(np.int64), each["processors"].astype(np.int64), each["taken"].astype(np.int64),
        each["gpus"].astype(np.int64), each["memory_mb"].copy(), demands["volume_mb"][running[at]],
    )  # fmt: skip
