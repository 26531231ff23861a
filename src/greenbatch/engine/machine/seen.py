"""The nodes and placements of a view: made from a machine, and a machine made from them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from greenbatch.cluster import NodeCluster
from greenbatch.engine.interface import NOWHERE, Placements, View
from greenbatch.engine.interface import Nodes as SeenNodes
from greenbatch.engine.machine.idle_nodes import demand_table, nodes_of
from greenbatch.engine.machine.node_tables import OFF, ON, Demand, Nodes, Share
from greenbatch.engine.machine.protocol import Machine
from greenbatch.engine.records import Ints, table_of
from greenbatch.workload import Workload


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


class MachineOfViews:
    """Makes machines from views of one cluster; what does not change is made once."""

    def __init__(self, cluster: NodeCluster) -> None:
        self.cluster = cluster
        self._idle = nodes_of(cluster, _NO_JOBS)

    def __call__(self, view: View) -> Nodes:
        """The machine of a view: demands of the waiting jobs, then of the running ones, and where they run."""
        idle, seen, placed = cast(Any, self._idle), view.nodes, view.placements
        count, first = placed.node.shape[0], view.job_id.shape[0]
        nodes, demands, shares = idle.nodes.copy(), self._demands(view), table_of(Share, count)
        nodes["free"], nodes["free_gpus"] = seen.free_processors, seen.free_gpus
        nodes["free_memory_mb"], nodes["phase"] = seen.free_memory_mb, np.where(seen.is_on, ON, OFF)
        job = first + placed.running
        shares["job"], shares["node"], shares["processors"] = job, placed.node, placed.processors
        shares["taken"], shares["gpus"], shares["memory_mb"] = placed.taken, placed.gpus, placed.memory_mb
        nodes["first"], shares["of_node"] = _chained(placed.node, nodes.shape[0])
        demands["first"], shares["of_job"] = _chained(job, demands.shape[0])
        nodes["jobs"] = nodes["drawing"] = np.bincount(placed.node, minlength=nodes.shape[0])
        lists, rooms = idle.lists.copy(), np.bincount(seen.free_processors)
        lists["at_least"] = 0
        lists["at_least"][: rooms.shape[0]] = rooms[::-1].cumsum()[::-1]
        counts = idle.counts.copy()
        counts["is_uniform"] = counts["is_plain"] = 0  # which only saves time
        made: Nodes = idle._replace(
            totals=idle.totals.copy(), counts=counts, nodes=nodes, demands=demands, shares=shares, lists=lists
        )
        return made

    def _demands(self, view: View) -> Any:
        queue, running, placed = view.queue, view.running, view.placements
        extra, q = queue.attributes, view.job_id.shape[0]
        jobs = SimpleNamespace(
            processors=queue.processors.astype(np.int64), gpus=_whole(extra.gpus), nodes=_whole(extra.nodes),
            exclusive=_whole(extra.exclusive), partition=_whole(extra.partition), names={"partition": view.partitions},
            requested_memory_kb=extra.requested_memory_kb, requested_time_s=queue.requested_time_s,
            run_time_s=queue.requested_time_s, memory_volume_mb=extra.memory_volume_mb,
            requested_energy_j=extra.requested_energy_j, power_w=queue.power_w, sources=(),
        )  # fmt: skip
        demands = table_of(Demand, q + running.job_id.shape[0])
        demands[:q] = demand_table(self.cluster, cast(Workload, jobs), self._idle.nodes, q)
        demands["is_modelled"][:q] = queue.power_w == 0.0
        begun = demands[q:]
        begun["begin_s"], begun["requested_s"] = running.start_s, running.expected_end_s - running.start_s
        begun["volume_mb"][placed.running], begun["pace"], begun["draw"] = placed.memory_volume_mb, 1.0, 1.0
        return demands


def _whole(values: Any) -> Any:
    """Whole numbers, -1 where they are unknown."""
    return np.where(values == values, values, -1.0).astype(np.int64)  # noqa: PLR0124  (NaN is unknown)


_NO_JOBS = Workload.from_columns(
    "none", {name: np.zeros(1) + 1 for name in ("job_id", "submit_s", "run_time_s", "requested_time_s", "processors")}
)


def _chained(owner: Ints, count: int) -> tuple[Ints, Ints]:
    """Linked lists of the rows of each owner: the first row of each of some owners, and the row after each row."""
    first, following = np.full(count, -1), np.full(owner.shape[0], -1)
    order = owner.argsort(kind="stable")
    sorted_owner = owner[order]
    first[sorted_owner[::-1]] = order[::-1]
    same = sorted_owner[1:] == sorted_owner[:-1]
    following[order[:-1][same]] = order[1:][same]
    return first, following
