"""The reservation of a blocked job on nodes: when it can start as requested, and what it leaves to others."""

from __future__ import annotations

from greenbatch.engine.compile import compiled, whole
from greenbatch.engine.machine.competition import all_compete
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.nodes import hosts_later, leave
from greenbatch.engine.machine.resources import reserve_by_total, reserve_for
from greenbatch.engine.records import Clock, Expected, Table


@reserve_for.register(Nodes)
def reserve_on_nodes(
    machine: Nodes, expected: Table[Expected], clock: Clock, job: int, processors: int, from_s: float
) -> None:  # fmt: skip
    """The earliest instant at which the head fits if running jobs end as requested; its nodes follow the placement."""
    if machine.counts.is_plain:
        reserve_by_total(machine.totals, expected, clock, processors, from_s)
        return
    clock.shadow_s = _look_ahead(machine, expected, clock, job, from_s)
    clock.spare = _leave_room(machine, job)


@compiled
def _look_ahead(machine: Nodes, expected: Table[Expected], clock: Clock, job: int, from_s: float) -> float:
    """Release running jobs by requested end until a blocked one fits; return that instant, what is left is that of it.

    Only what is left of the nodes changes.
    """
    demand, found = machine.demands[job], 0
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        node.left, node.left_gpus, node.left_memory_mb = node.free, node.free_gpus, node.free_memory_mb
        found += hosts_later(node, demand)
    i, stop, shadow_s = clock.expected_first, clock.expected_first + clock.running, from_s
    while i < stop and (found < demand.chunks or expected[i].end_s <= shadow_s):
        if found < demand.chunks:
            shadow_s = max(shadow_s, expected[i].end_s)
        row = whole(machine.demands[expected[i].job].first)
        while row >= 0:
            share = machine.shares[row]
            node = machine.nodes[share.node]
            before = hosts_later(node, demand)
            node.left += share.taken
            node.left_gpus += share.gpus
            node.left_memory_mb += share.memory_mb
            if node.left == node.processors:
                node.left_memory_mb = node.memory_mb
            found += hosts_later(node, demand) - before
            row = whole(share.of_job)
        i += 1
    return float(shadow_s)


@compiled
def _leave_room(machine: Nodes, job: int) -> int:
    """Take the nodes of a blocked job from what is left; return a bound of the processors that remain for others.

    Its nodes are the first ones in the list that have room. Each keeps room for the largest chunk, which it must have
    when the job starts.
    """
    demand, spare = machine.demands[job], 0
    chunks = whole(demand.chunks)
    for k in range(machine.nodes.shape[0]):
        node = machine.nodes[machine.lists[k].order]
        room = hosts_later(node, demand) if chunks > 0 else 0
        if room > 0:
            processors = whole(demand.processors) if demand.is_spread else min(room, chunks)
            leave(node, demand, processors)
            chunks -= 1 if demand.is_spread else processors
        spare += max(whole(node.left), 0)
    return spare if all_compete(machine) else whole(machine.totals.processors)
