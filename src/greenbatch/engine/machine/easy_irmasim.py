"""Backfilling of IRMaSim: EASY on each node by itself, by requested ends that do not depend on the node's speed."""

from __future__ import annotations

from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.nodes import hosts
from greenbatch.engine.machine.placement import LOW_ENERGY, key
from greenbatch.engine.ranked import sort_ranked
from greenbatch.engine.records import Clock, Expected, Int32s, Table
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant


@compiled
def sort_for_all(machine: Nodes, waiting: Int32s, clock: Clock) -> None:
    """Sort the list of nodes for every waiting job in turn; equal ones stay in the order of the list."""
    if clock.first == clock.last and machine.counts.placement < LOW_ENERGY:  # estimates need a job
        _sort_list(machine, 0)
    for i in range(clock.first, clock.last):
        _sort_list(machine, whole(waiting[i]))


@compiled
def _sort_list(machine: Nodes, job: int) -> None:
    lists, ranked, demand, count = machine.lists, machine.ranked, machine.demands[job], machine.nodes.shape[0]
    for k in range(count):
        ranked[k].key = key(machine, whole(lists[k].order), demand)
        ranked[k].job = lists[k].order
    sort_ranked(ranked, whole(count))
    for k in range(count):
        lists[k].order = ranked[k].job


@variant(Nodes, otherwise=-1, inlined=False)
def node_beside(machine: Nodes, expected: Table[Expected], clock: Clock, job: int, head: int, end_s: float) -> int:
    """The node on which a job may start ahead of a blocked one in the manner of IRMaSim; -1 for none.

    The first one in the order of the placement that is empty, or on which the job does not delay the blocked one.

    Args:
        machine: the machine.
        expected: running jobs by requested end.
        clock: the clock.
        job: row of the job.
        head: row of the blocked one.
        end_s: requested end of the job if it starts now. [s]
    """
    demand = machine.demands[job]
    for k in range(machine.nodes.shape[0]):
        number = whole(machine.lists[k].order)
        node = machine.nodes[number]
        if hosts(node, demand) < demand.chunks:  # it starts on one node or not at all
            continue
        if node.jobs == 0 or _leaves_head(machine, expected, clock, number, job, head, end_s):
            return number
    return -1


@compiled_small
def _leaves_head(
    machine: Nodes, expected: Table[Expected], clock: Clock, number: int, job: int, head: int, end_s: float
) -> bool:  # fmt: skip
    """Whether a job leaves a node to the head at the earliest requested end that frees enough processors there."""
    need, free = machine.demands[head].processors, whole(machine.nodes[number].free)
    shadow_s, beyond = clock.now_s, 0
    for i in range(clock.expected_first, clock.expected_first + clock.running):
        taken = _taken(machine, whole(expected[i].job), number)
        if taken == 0:
            continue
        if free < need:
            shadow_s = expected[i].end_s
            free += taken
        elif expected[i].end_s > shadow_s:
            beyond += taken
    extra = machine.nodes[number].processors - need - beyond
    return bool(machine.demands[job].processors <= extra or end_s <= shadow_s)


@compiled_small
def _taken(machine: Nodes, job: int, number: int) -> int:
    """Processors of a node that a running job holds."""
    row = whole(machine.demands[job].first)
    while row >= 0:
        if machine.shares[row].node == number:
            return whole(machine.shares[row].taken)
        row = whole(machine.shares[row].of_job)
    return 0
