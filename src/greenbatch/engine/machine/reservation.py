"""The reservation of a blocked job: when it can start as requested, and what it leaves to others."""

from __future__ import annotations

from greenbatch.cluster.cluster import MOST_PROCESSORS
from greenbatch.engine.machine.competition import all_compete
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.nodes import hosts_later, leave
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.records import Clock, Expected, Table
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant


@compiled_small
def _reserve_any(machine: Machine, expected: Table[Expected], clock: Clock, job: int, need: int, from_s: float) -> None:
    """`reserve_for` if any free processors will do."""
    free, shadow_s = machine.totals.free, from_s
    i, stop = clock.expected_first, clock.expected_first + clock.running
    while i < stop and free < need:
        free += expected[i].processors
        shadow_s = max(from_s, expected[i].end_s)
        i += 1
    while i < stop and expected[i].end_s <= shadow_s:
        free += expected[i].processors
        i += 1
    clock.shadow_s, clock.spare = shadow_s, free - need


@variant(Nodes, otherwise=_reserve_any)
def reserve_for(machine: Nodes, expected: Table[Expected], clock: Clock, job: int, need: int, from_s: float) -> None:
    """Compute when a blocked job can start by requested ends (``clock.shadow_s``), and what it leaves to others then.

    ``clock.spare`` is the largest number of processors that a job which outlives that time may take. A running job
    past its requested end is expected to end now. The nodes of the blocked job follow the placement.

    Args:
        machine: the machine.
        expected: running jobs by requested end.
        clock: output, and what is running.
        job: row of the job.
        need: its processors.
        from_s: the earliest start, now or later. [s]
    """
    if machine.counts.is_plain:
        _reserve_any(machine, expected, clock, job, need, from_s)
        return
    clock.shadow_s = _look_ahead(machine, expected, clock, job, from_s)
    clock.spare = _leave_room(machine, job)


@variant(Nodes, otherwise=lambda machine, expected, clock, job, from_s: (from_s, MOST_PROCESSORS))
def room_from(machine: Nodes, expected: Table[Expected], clock: Clock, job: int, from_s: float) -> tuple[float, int]:
    """When a blocked job has room on the machine if all of it is powered [s], and what it leaves, as `reserve_for`."""
    if machine.counts.is_plain:
        return (from_s, MOST_PROCESSORS)
    return (_look_ahead(machine, expected, clock, job, from_s), _leave_room(machine, job))


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
