"""What every node will have free, by the requested ends of running jobs and the reservations of waiting ones.

A node has a list of steps, each from one instant to the next; the last one never ends. A reservation is taken from the
steps of its nodes, and given back to them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.decide import Rule
from greenbatch.engine.machine.node_tables import Demand, Nodes
from greenbatch.engine.machine.nodes import can_host, chunks_in
from greenbatch.engine.records import Clock, Expected, Int32, Ints, Job, Table, table_of
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.workload import Workload

_OVERRUN_S = 60.0
"""Shortest time that a job past its requested end is expected to need. [s]"""


class Step:
    """What a node has free from an instant to the next step of its list."""

    time_s: float
    memory_mb: float
    processors: Int32
    """Below 0 while a job that runs past its requested end holds what others reserved; so for GPUs and memory."""
    gpus: Int32
    following: Int32
    """-1 for none; in the list of unused steps, the next unused one."""


class Reserved:
    """What a reservation takes of one node."""

    memory_mb: float
    node: Int32
    processors: Int32
    gpus: Int32


class PlanTotals:
    """Where the tables of a plan are free, and what all reservations have in common."""

    first_unused: int
    """First step of those that were used before, -1 for none."""
    used: int
    """Steps that have ever been used."""
    boot_s: float
    """By how much a reservation is longer than requested, since its nodes may have to boot. [s]"""


class ConservativeOnNodes(NamedTuple):
    """The decider of conservative backfilling on nodes; its plan is kept between decisions."""

    rule: Rule
    """Order of compression, if scores change."""
    totals: PlanTotals
    steps: Table[Step]
    first: Ints
    """First step of each node."""
    reserved: Table[Reserved]
    reserved_from: Ints
    """First row of ``reserved`` of each job, shape (n + 1,)."""
    reserved_nodes: Ints
    """Rows that are valid: nodes in its reservation, shape (n,)."""


def node_plan(rule: Rule, workload: Workload, cluster: Cluster) -> ConservativeOnNodes:
    """A plan without reservations; tables are as large as can be needed, but pages that are not used cost nothing."""
    nodes = sum(group.count for group in cluster.groups)
    most: Any = np.minimum(workload.processors, nodes)
    most = np.where(workload.nodes > 0, np.minimum(most, workload.nodes), most)
    begin = np.concatenate([[0], np.cumsum(most)])
    return ConservativeOnNodes(
        rule, table_of(PlanTotals, 1)[0], table_of(Step, nodes + 2 * int(begin[-1]) + 4), np.zeros(nodes, np.int64),
        table_of(Reserved, int(begin[-1])), begin, np.zeros(len(workload), np.int64),
    )  # fmt: skip


def moved(plan: ConservativeOnNodes, workload: Workload, cluster: Cluster, before: Ints) -> ConservativeOnNodes:
    """The same plan for other rows of jobs, with the reservations of those that had a row before; -1 for the others."""
    made, old = node_plan(plan.rule, workload, cluster), cast(Any, plan)
    used, totals = int(plan.totals.used), cast(Any, made.totals)
    for name in totals.dtype.names:
        totals[name] = old.totals[name]
    reserved, steps = cast(Any, made.reserved), cast(Any, table_of(Step, used + len(made.steps)))
    steps[:used] = old.steps[:used]
    for row in np.flatnonzero(before >= 0):
        count, begin = int(plan.reserved_nodes[before[row]]), int(plan.reserved_from[before[row]])
        first = int(made.reserved_from[row])
        reserved[first : first + count] = old.reserved[begin : begin + count]
        made.reserved_nodes[row] = count
    return made._replace(steps=steps, first=plan.first)


@compiled_small
def _new_step(plan: ConservativeOnNodes) -> int:
    totals = plan.totals
    if totals.first_unused >= 0:
        row = totals.first_unused
        totals.first_unused = plan.steps[row].following
    else:
        row = totals.used
        totals.used += 1
    return whole(row)


@compiled_small
def _drop(plan: ConservativeOnNodes, row: int) -> None:
    plan.steps[row].following = plan.totals.first_unused
    plan.totals.first_unused = row


@compiled
def lay_out(plan: ConservativeOnNodes, machine: Nodes, expected: Table[Expected], clock: Clock) -> None:
    """Reset the plan to the running jobs.

    A job past its requested end is expected to need as long again as it is late, at least a minute.
    """
    plan.totals.used, plan.totals.first_unused = 0, -1
    for number in range(machine.nodes.shape[0]):
        node, row = machine.nodes[number], _new_step(plan)
        step = plan.steps[row]
        step.time_s, step.following = clock.now_s, -1
        step.processors, step.gpus, step.memory_mb = node.processors, node.gpus, node.memory_mb
        plan.first[number] = row
    for i in range(clock.expected_first, clock.expected_first + clock.running):
        end_s = expected[i].end_s
        if end_s < clock.now_s:
            end_s = clock.now_s + max(_OVERRUN_S, clock.now_s - end_s)
        occupy_shares(plan, machine, whole(expected[i].job), clock.now_s, end_s)


@compiled
def occupy_shares(plan: ConservativeOnNodes, machine: Nodes, job: int, from_s: float, to_s: float) -> None:
    """Take what a running job has from the plan."""
    row = whole(machine.demands[job].first)
    while row >= 0 and from_s < to_s:
        share = machine.shares[row]
        _change(plan, whole(share.node), from_s, to_s, whole(-share.taken), whole(-share.gpus), -share.memory_mb)
        row = whole(share.of_job)


@compiled_small
def _cut(plan: ConservativeOnNodes, row: int, time_s: float) -> int:
    """The step that begins at a time, made if there is none; a step that begins before or then is given."""
    steps = plan.steps
    following = whole(steps[row].following)
    while following >= 0 and steps[following].time_s <= time_s:
        row = following
        following = whole(steps[row].following)
    if steps[row].time_s == time_s:
        return row
    new = _new_step(plan)
    steps[new] = steps[row]
    steps[new].time_s = time_s
    steps[row].following = new
    return new


@compiled
def _change(
    plan: ConservativeOnNodes, node: int, from_s: float, to_s: float, processors: int, gpus: int, memory_mb: float
) -> None:  # fmt: skip
    """Add to what a node has free from one time to another; the plan does not say what was before the first."""
    steps, row = plan.steps, whole(plan.first[node])
    start = _cut(plan, row, from_s)
    stop = _cut(plan, start, to_s)
    while start != stop:
        step = steps[start]
        step.processors += processors
        step.gpus += gpus
        step.memory_mb += memory_mb
        start = whole(step.following)
    while steps[row].following >= 0:  # join equal steps
        following = whole(steps[row].following)
        one, next_one = steps[row], steps[following]
        if one.processors == next_one.processors and one.gpus == next_one.gpus and one.memory_mb == next_one.memory_mb:
            one.following = next_one.following
            _drop(plan, following)
        else:
            row = following


@compiled
def forget_past_steps(plan: ConservativeOnNodes, now_s: float) -> None:
    """Drop the steps that have ended."""
    for number in range(plan.first.shape[0]):
        row = whole(plan.first[number])
        following = whole(plan.steps[row].following)
        while following >= 0 and plan.steps[following].time_s <= now_s:
            _drop(plan, row)
            row = following
            following = whole(plan.steps[row].following)
        plan.first[number] = row
        plan.steps[row].time_s = max(plan.steps[row].time_s, now_s)


@compiled_small
def _room(
    plan: ConservativeOnNodes, machine: Nodes, number: int, demand: Demand, from_s: float, to_s: float
) -> tuple[int, float]:  # fmt: skip
    """Chunks that a node can keep from one time to another, and the first later start that may have room for more."""
    node, steps, row = machine.nodes[number], plan.steps, whole(plan.first[number])
    least, later_s = whole(2**31), np.inf
    while row >= 0 and steps[row].time_s < to_s:
        step = steps[row]
        row = whole(step.following)
        end_s = steps[row].time_s if row >= 0 else np.inf
        if end_s <= from_s:
            continue
        here = max(0, chunks_in(node, demand, whole(step.processors), whole(step.gpus), step.memory_mb))
        if here <= least:
            least, later_s = here, end_s
    return least, later_s


@compiled
def nodes_from_s(plan: ConservativeOnNodes, machine: Nodes, number: int, job: Job, from_s: float) -> float:
    """Earliest start, not before a time, at which enough nodes have room as long as a job requests. [s]

    Row k of ``machine.ranked`` is node k: the chunks that it had room for when last looked at, and the first start
    that may have room for more. Until then, that number can only fall, so few nodes are looked at again.
    """
    demand, bounds = machine.demands[number], machine.ranked
    lasts_s = job.requested_s + plan.totals.boot_s
    for k in range(machine.nodes.shape[0]):
        bounds[k].key = -np.inf
    while from_s < np.inf and (
        _bound(plan, machine, number, from_s, lasts_s, False) < demand.chunks
        or _bound(plan, machine, number, from_s, lasts_s, True) < demand.chunks
    ):
        from_s = np.inf
        for k in range(machine.nodes.shape[0]):
            from_s = min(from_s, bounds[k].key)
    return float(from_s)


@compiled
def _bound(
    plan: ConservativeOnNodes, machine: Nodes, number: int, from_s: float, requested_s: float, exact: bool
) -> int:  # fmt: skip
    """Chunks of a job that all nodes have room for from a time on, or more than that if not exact."""
    found, demand, bounds = 0, machine.demands[number], machine.ranked
    for k in range(machine.nodes.shape[0]):
        if exact or bounds[k].key <= from_s:
            bounds[k].job, bounds[k].key = _room(plan, machine, k, demand, from_s, from_s + requested_s)
        found += bounds[k].job
    return found


@compiled
def choose_nodes(plan: ConservativeOnNodes, machine: Nodes, number: int, job: Job) -> None:
    """Write the first nodes, in the fixed order, that have room from the planned start of a job to its reservation.

    Each keeps room for its largest chunk. A job without a start reserves none.
    """
    demand, k, at = machine.demands[number], 0, whole(plan.reserved_from[number])
    from_s, left = job.planned_s, whole(demand.chunks) if job.planned_s < np.inf else 0
    to_s = from_s + (job.requested_s + plan.totals.boot_s)
    while left > 0:
        which = whole(machine.lists[k].order)
        room, _ = _room(plan, machine, which, demand, from_s, to_s)
        k += 1
        if room == 0:
            continue
        node, part = machine.nodes[which], plan.reserved[at]
        part.node, part.processors, part.gpus = which, demand.processors, demand.gpus
        part.memory_mb = demand.memory_mb
        if demand.is_spread == 0:
            part.processors = min(room, left)
            part.memory_mb *= part.processors
        left -= 1 if demand.is_spread else whole(part.processors)
        if demand.exclusive:
            part.processors, part.gpus, part.memory_mb = node.processors, node.gpus, node.memory_mb
        at += 1
    plan.reserved_nodes[number] = at - plan.reserved_from[number]


@compiled
def hold(plan: ConservativeOnNodes, number: int, job: Job, now_s: float, sign: int) -> None:
    """Take the reservation of a job from the plan (-1), or give it back (1)."""
    from_s, first = max(job.planned_s, now_s), plan.reserved_from[number]
    to_s = from_s + (job.requested_s + plan.totals.boot_s)
    for k in range(first, first + plan.reserved_nodes[number]):
        part = plan.reserved[k]
        processors, gpus = whole(sign * part.processors), whole(sign * part.gpus)
        _change(plan, whole(part.node), from_s, to_s, processors, gpus, sign * part.memory_mb)


@compiled
def fits_beside_plan(plan: ConservativeOnNodes, machine: Nodes, number: int, now_s: float, to_s: float) -> bool:
    """Whether a job fits now and until a time; what the plan leaves of the nodes is written to ``machine.nodes``."""
    demand, found = machine.demands[number], 0
    for which in range(machine.nodes.shape[0]):
        node, row = machine.nodes[which], whole(plan.first[which])
        node.left, node.left_gpus, node.left_memory_mb = node.processors, node.gpus, node.memory_mb
        while row >= 0 and plan.steps[row].time_s < to_s:
            step = plan.steps[row]
            row = whole(step.following)
            if row < 0 or plan.steps[row].time_s > now_s:
                node.left = max(0, min(node.left, step.processors))
                node.left_gpus = max(0, min(node.left_gpus, step.gpus))
                node.left_memory_mb = max(0.0, min(node.left_memory_mb, step.memory_mb))
        found += can_host(node, demand, True)
    return bool(found >= demand.chunks)
