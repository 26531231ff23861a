"""A machine made from the nodes and placements of a view; `codec.view_of` does the reverse.

One compiled pass writes all records: with a NumPy call for each field, it took most of the time of a decision.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numba
import numpy as np
from numba import types

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.demands import Asked, fill_demands, memory_mb, most_gpus, partitions_of
from greenbatch.engine.machine.idle_nodes import nodes_of
from greenbatch.engine.machine.node_tables import OFF, ON, STOPPING, Demand, Nodes, Share
from greenbatch.engine.machine.power_states import dim
from greenbatch.engine.observe.stacked import fork
from greenbatch.engine.records import Floats, MachineTotals, record_of, table_of
from greenbatch.engine.views.interface import Attributes, Placements, View, types_of
from greenbatch.engine.views.interface import Nodes as SeenNodes
from greenbatch.errors import InputError
from greenbatch.machine_code.compile import compiled, compiled_small, entry
from greenbatch.workload import Workload

_WITHOUT_BOOTS = SeenNodes._fields.index("phase")
"""Columns of nodes that a view has of any machine of nodes."""
FIT, UNEQUAL, NODES_DIFFER = range(3)
"""Whether the parts of a view fit together and the cluster."""


class MachineOfViews:
    """Makes machines from views of one cluster; what does not change is made once."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._idle: Any = nodes_of(cluster, NO_JOBS)
        self._idle.counts.is_uniform = self._idle.counts.is_plain = 0  # which only saves time
        self._idle.lists["at_least"] = 0  # nodes are counted as they are filled in
        self._most_gpus, self._fill = most_gpus(cluster), _compiled(numba.typeof(self._idle))

    def __call__(self, view: View) -> Nodes:
        """The machine of a view: demands of its jobs as in `codec.state_of`, and where the running ones run.

        Its totals are zero until `codec.state_of` sets those of every machine.

        Raises:
            InputError: the columns of a part differ in length, a placement is of no running job or node, nodes are not
                those of the cluster or have more free or in use than there is, or a job is of a partition that the
                cluster does not have.
        """
        idle, running, placed = self._idle, view.running, view.placements
        queue, extra, job_id = _not_running(view)
        made: Nodes = idle._replace(
            totals=record_of(MachineTotals, off=view.off), nodes=_copied(idle.nodes), lists=_copied(idle.lists),
            demands=table_of(Demand, len(job_id) + len(running.job_id)), shares=table_of(Share, placed.node.shape[0]),
        )  # fmt: skip
        asked = Asked(
            queue.processors, extra.nodes, extra.gpus, extra.exclusive, memory_mb(extra.requested_memory_kb),
            queue.requested_time_s, queue.requested_time_s, extra.memory_volume_mb, extra.requested_energy_j,
            queue.power_w,
        )  # fmt: skip
        boots: Any = view.nodes[_WITHOUT_BOOTS:]
        nodes = (*view.nodes[:_WITHOUT_BOOTS], *(each for each in boots if len(each) or idle.counts.on_demand))
        parts = (job_id, *asked), running[:3], (idle.nodes, *nodes), placed
        found = UNEQUAL
        if all(len(set(map(len, part))) == 1 for part in parts):
            shown = (running.start_s, running.expected_end_s, running.power_w)
            known = (float(view.now_s), self._most_gpus, *(np.asarray(each, np.float64) for each in shown))
            found = self._fill(made, *known, *map(_typed, (asked, view.nodes, placed)))
        if found == NODES_DIFFER:
            problem = "are not those of the cluster, or have more free or in use than there is"
            fix = "give the nodes in the order of the cluster, each with what is free there"
            raise InputError(problem, field="view.nodes", fix=fix)
        if found == UNEQUAL:
            problem = "do not fit its queue, its running jobs or the nodes of the cluster"
            fix = "give columns of equal length, and rows of running jobs and nodes that exist"
            raise InputError(problem, field="view.placements", fix=fix)
        if self.cluster.partitions:
            demands: Any = made.demands
            number = np.where(np.isnan(extra.partition), -1.0, extra.partition).astype(np.int64)
            masks = partitions_of(self.cluster, number, view.partitions)
            demands["partitions"][: len(number)], demands["component"][: len(number)] = masks
        return made

    def with_room(self, view: View) -> Nodes:
        """The machine of a view on which jobs can be started: with room for their parts, and tables of its own.

        Raises:
            InputError: as for a call.
        """
        made: Nodes = self(view)
        total, used = int(made.nodes["processors"].sum()), made.shares.shape[0]
        shares: Any = table_of(Share, max(total, used))
        shares[:used] = made.shares
        shares["of_job"][used:] = np.append(np.arange(used + 1, total), -1)[: max(0, total - used)]
        made = cast(Nodes, fork(made._replace(shares=shares)))
        made.counts.first_unused = used if used < total else -1
        components = np.bitwise_or.reduce(1 << made.demands["component"][: view.job_id.shape[0]].astype(np.int64))
        made.counts.components = int(components)
        return made


def _not_running(view: View) -> tuple[Any, Attributes, Any]:
    """The waiting and the suspended jobs: what they ask for, further attributes, and their numbers."""
    if view.capacity is None or not len(view.capacity.suspended_job_id):
        return view.queue, view.attributes, view.job_id
    paused = view.suspended
    asked: dict[str, Any] = {name: np.concatenate([getattr(view.queue, name), getattr(paused, name)]) for name in
             ("processors", "requested_time_s", "power_w")}  # fmt: skip
    attributes = Attributes(*map(np.concatenate, zip(view.attributes, paused.attributes, strict=True)))
    return view.queue._replace(**asked), attributes, np.concatenate([view.job_id, view.capacity.suspended_job_id])


NO_JOBS = Workload.from_columns(
    "none", {name: np.zeros(1) + 1 for name in ("job_id", "submit_s", "run_time_s", "requested_time_s", "processors")}
)


def _copied(table: Any) -> Any:
    """A copy of records byte by byte: NumPy would copy them field by field."""
    return np.ndarray(table.shape, table.dtype, bytearray(table.tobytes()))


def _typed(part: Any) -> Any:
    """A part of a view with columns of the types that compiled code expects."""
    kind: Any = type(part)
    return kind(*map(np.asarray, part, types_of(kind)))


def _fill(
    machine: Nodes, now_s: float, most_gpus: int, begin_s: Floats, end_s: Floats, power_w: Floats, asked: Asked,
    seen: SeenNodes, placed: Placements,
) -> int:  # fmt: skip
    """Write the records of a machine; return `FIT`, or why the parts of the view do not fit together.

    Args:
        machine: the machine, whose nodes are idle and in no list; its other tables are zero.
        now_s: the clock. [s]
        most_gpus: GPUs of the node that has most.
        begin_s: when each running job started. [s]
        end_s: when it is to end. [s]
        power_w: what it draws. [W]
        asked: what the waiting jobs ask for.
        seen: what is free on the nodes.
        placed: where the running jobs run.
    """
    first, nodes = asked.processors.shape[0], machine.nodes
    for k in range(placed.node.shape[0]):
        if not (0 <= placed.node[k] < nodes.shape[0] and 0 <= placed.running[k] < begin_s.shape[0]):
            return UNEQUAL
    fill_demands(asked, most_gpus, machine.demands)
    for k in range(first):
        machine.demands[k].is_modelled = machine.demands[k].power_w == 0.0
    for k in range(begin_s.shape[0]):
        demand = machine.demands[first + k]
        demand.begin_s, demand.requested_s = begin_s[k], end_s[k] - begin_s[k]
        demand.first, demand.pace, demand.draw, demand.power_w = -1, 1.0, 1.0, power_w[k]
    for n in range(nodes.shape[0]):
        node, free = nodes[n], seen.free_processors[n]  # nothing runs there yet
        node.free, node.free_gpus, node.free_memory_mb = free, seen.free_gpus[n], seen.free_memory_mb[n]
        node.phase = ON if seen.is_on[n] else OFF
        for p in range(min(free + 1, machine.lists.shape[0])):
            machine.lists[p].at_least += 1
    if machine.counts.on_demand:
        _fill_switches(machine, first, seen, placed)
    for k in range(placed.node.shape[0] - 1, -1, -1):  # the lists begin with the first rows
        _fill_share(machine, k, first, placed)
    for n in range(nodes.shape[0]):
        if not _is_possible(machine, n, seen):
            return NODES_DIFFER
    machine.counts.off_w = 0.0
    if machine.totals.off > 0:
        dim(machine, now_s)  # what is deducted of the load that the view shows
    return FIT


@compiled_small
def _is_possible(machine: Nodes, n: int, seen: SeenNodes) -> bool:
    """Whether a node has as many processors as in the cluster, and no more of them are free or in use."""
    node = machine.nodes[n]
    possible = seen.processors[n] == node.processors and node.free >= 0 and node.free_memory_mb >= 0.0
    possible &= node.free_gpus >= 0 and node.free_gpus <= node.gpus
    possible &= node.phase >= ON and node.phase <= STOPPING
    taken, k = node.free, node.first
    while k >= 0:
        share = machine.shares[k]
        possible &= share.processors >= 1 and share.processors <= share.taken
        taken += share.taken
        k = share.of_node
    return bool(possible and taken <= node.processors)


@compiled
def _fill_switches(machine: Nodes, first: int, seen: SeenNodes, placed: Placements) -> None:
    """What nodes do that boot on demand, and which of the running jobs wait for that."""
    machine.counts.next_switch_s = np.inf
    for n in range(machine.nodes.shape[0]):
        node = machine.nodes[n]
        node.phase, node.switch_s, node.on_since_s = seen.phase[n], seen.switch_s[n], seen.on_since_s[n]
        machine.counts.next_switch_s = min(machine.counts.next_switch_s, node.switch_s)
    for k in range(placed.node.shape[0]):
        if machine.nodes[placed.node[k]].phase != ON:
            machine.demands[first + placed.running[k]].is_booting = 1


@compiled_small
def _fill_share(machine: Nodes, k: int, first: int, placed: Placements) -> None:
    """A part of a running job on its node, ahead of those that are there."""
    share, node = machine.shares[k], machine.nodes[placed.node[k]]
    job = first + placed.running[k]
    demand = machine.demands[job]
    share.job, share.node, share.processors = job, placed.node[k], placed.processors[k]
    share.taken, share.gpus, share.memory_mb = placed.taken[k], placed.gpus[k], placed.memory_mb[k]
    share.rate = node.speed  # not 0: what is left of its work, which a view does not show, is divided by it
    demand.volume_mb = placed.memory_volume_mb[k]
    demand.exclusive |= placed.taken[k] > placed.processors[k]
    share.of_job, share.of_node = demand.first, node.first
    demand.first = node.first = k
    node.jobs += 1
    node.drawing += demand.is_booting == 0
    node.boots_again = node.phase == STOPPING
    if demand.is_booting:
        share.since_s = demand.begin_s


@cache
def _compiled(machine: Any) -> Any:
    """`_fill` for machines of a type of Numba's, compiled or loaded from the cache on first use."""
    known, parts = [_column_type(np.float64)] * 3, map(_columns_type, (Asked, SeenNodes, Placements))
    return entry("machine-of-view", _fill, types.int64(machine, types.float64, types.int64, *known, *parts))


def _columns_type(part: Any) -> Any:
    """Numba's type of a class of columns."""
    return types.BaseTuple.from_types(list(map(_column_type, types_of(part))), part)


def _column_type(kind: Any) -> Any:
    """Numba's type of a column, which may be one of a larger table."""
    return types.Array(numba.from_dtype(np.dtype(kind)), 1, "A")
