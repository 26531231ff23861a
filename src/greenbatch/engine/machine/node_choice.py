"""What the engine asks of a machine that has nodes among which a policy can choose; ``otherwise`` holds for others.

What starting a job on each of the nodes would mean is told by what a batch system knows: requested times and
placements.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.machine.node_tables import ON, STOPPING, Demand, Node, Nodes, part_w, waking_w
from greenbatch.engine.machine.nodes import hosts
from greenbatch.engine.machine.placement import estimated_power_w, estimated_run_s
from greenbatch.engine.machine.power_states import powers_w
from greenbatch.engine.machine.rates import slowdown
from greenbatch.engine.observe import pair_features as pair
from greenbatch.machine_code.compile import compiled_small, whole
from greenbatch.machine_code.variants import variant

SLOWEST = 1e-3
"""Lowest speed beside other jobs that is counted with."""


@variant(Nodes)
def prefer_node(machine: Nodes, node: int, most: int) -> None:
    """Let the next job that starts take a node before others, after those wanted before.

    Args:
        machine: the machine.
        node: the node.
        most: processors that it takes there at most, unless it asks for a number of them on each node.
    """
    row = machine.lists[machine.counts.wanted]
    row.wanted, row.wanted_most = node, most
    machine.counts.wanted += 1


@variant(Nodes)
def prefer_none(machine: Nodes) -> None:
    """Let the next job that starts take nodes in the order of the placement again."""
    machine.counts.wanted = 0


@variant(Nodes, otherwise=0)
def node_count(machine: Nodes) -> int:
    """Number of nodes among which a policy can choose; 0 for a machine that has none."""
    return whole(machine.nodes.shape[0])


@variant(Nodes, otherwise=0.0)
def pair_feature(machine: Nodes, feature: int, node: int) -> float:
    """A value that `fill_nodes` or `fill_pairs` has written."""
    return float(machine.pairs[feature, node])


@variant(Nodes, otherwise=False)
def can_take_on(machine: Nodes, job: int, node: int) -> bool:
    """Whether a job that fits may be started on a node: that has room for a part of it, and the job's energy budget.

    Its estimated energy is at most what its user allows (InEPS §3.3.1).
    """
    demand, this = machine.demands[job], machine.nodes[node]
    if hosts(this, demand) == 0:
        return False
    allowed_j = demand.energy_j * demand.processors
    return bool(allowed_j <= 0.0 or estimated_run_s(demand, this) * estimated_power_w(demand, this) <= allowed_j)


@compiled_small
def _bandwidth(demand: Demand, speed: float) -> float:
    """Memory bandwidth that each processor of a job asks for by its requested time. [MB/s]"""
    return float(demand.volume_mb * speed / demand.requested_s)


@variant(Nodes, otherwise=lambda machine, now_s: now_s, inlined=False)
def fill_nodes(machine: Nodes, now_s: float) -> float:
    """Write the `pair_features` that do not depend on the job to ``machine.pairs``, shape (PAIR_ROWS, nodes).

    Returns:
        When the last running job is expected to end; now if nothing runs. [s]
    """
    pairs, contention, longest_s = machine.pairs, machine.counts.contention, 0.0
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        pairs[pair.AVAILABILITY, number] = node.free / node.processors
        pairs[pair.FREE_SHARE, number] = machine.totals.free / machine.totals.processors
        pairs[pair.STATIC_POWER, number] = node.static_w if node.jobs > 0 else node.idle_w
        if machine.counts.on_demand and node.jobs == 0:
            pairs[pair.STATIC_POWER, number] = powers_w(node)[node.phase]
        pairs[pair.DYNAMIC_POWER, number] = (node.processors - node.free) * node.processor_w
        pairs[pair.PEAK, number], pairs[pair.NODE_PROCESSORS, number] = node.gflops, node.processors
        pairs[pair.NODE_IS_OFF, number] = 0.0 if node.phase == ON else 1.0
        total, row = 0.0, whole(node.first)
        while row >= 0 and contention:
            share = machine.shares[row]
            total += share.processors * _bandwidth(machine.demands[share.job], node.speed)
            row = whole(share.of_node)
        pairs[pair.ASKED_BANDWIDTH, number] = total
        longest_s = max(longest_s, _fill_busy(machine, number, total, now_s))
    return float(now_s + longest_s)


@compiled_small
def _boot_s(machine: Nodes, node: Node) -> float:
    """How long a node boots before a job can run on it, 0 if it is on; one that shuts down does that first. [s]"""
    if machine.counts.on_demand == 0 or node.phase == ON:
        return 0.0
    return float(node.boot_s + (node.stop_s if node.phase == STOPPING else 0.0))


@compiled_small
def _left_s(machine: Nodes, row: int, speed: float, relative: float, now_s: float) -> float:
    """Expected time that a part of a running job would need alone on its node, if it was as fast as now all along."""
    share = machine.shares[row]
    demand = machine.demands[share.job]
    since_s = now_s - demand.begin_s  # below 0 while its nodes boot
    return max(demand.requested_s / (speed * demand.pace) - since_s * relative, 0.0)


@compiled_small
def _relative(machine: Nodes, number: int, demand: Demand, total: float, tasks: int) -> float:
    """Expected speed of a part of a job, relative to that alone on its node."""
    contention, node = machine.counts.contention, machine.nodes[number]
    if contention == 0:
        return 1.0
    return max(slowdown(node, contention, _bandwidth(demand, node.speed), total, tasks), SLOWEST)


@compiled_small
def _fill_busy(machine: Nodes, number: int, total: float, now_s: float) -> float:
    """Write when the jobs of a node are expected to end, and their rate; return how long the last one needs. [s]"""
    node, pairs = machine.nodes[number], machine.pairs
    tasks, busy_s, rate, row = node.processors - node.free, 0.0, 0.0, whole(node.first)
    next_s, freed = np.inf, 0
    while row >= 0:
        share = machine.shares[row]
        relative = _relative(machine, number, machine.demands[share.job], total, tasks)
        left_s = _left_s(machine, row, node.speed, relative, now_s) / relative
        busy_s = max(busy_s, left_s)
        if left_s < next_s:
            next_s, freed = left_s, whole(share.taken)
        rate += share.processors * node.speed * relative
        row = whole(share.of_node)
    pairs[pair.NODE_BUSY_TIME, number], pairs[pair.RUNNING_RATE, number] = busy_s, rate
    pairs[pair.NEXT_END, number], pairs[pair.NEXT_FREE, number] = min(next_s, busy_s), node.free + freed
    return busy_s


@compiled_small
def _wait_for_room_s(machine: Nodes, number: int, demand: Demand, processors: int) -> float:
    """Expected time until a node has room for a part of a job: now, when its next job ends, or when all have. [s]"""
    if hosts(machine.nodes[number], demand) > 0:
        return 0.0
    soon = machine.pairs[pair.NEXT_FREE, number] >= processors
    return float(machine.pairs[pair.NEXT_END if soon else pair.NODE_BUSY_TIME, number])


@compiled_small
def _slowed(machine: Nodes, number: int, more: float, processors: int, now_s: float) -> tuple[float, float]:
    """What the jobs of a node lose if some processors with some bandwidth run beside them: energy [J], and rate."""
    node, before = machine.nodes[number], machine.pairs[pair.ASKED_BANDWIDTH, number]
    tasks, slowed_j, lost, row = node.processors - node.free, 0.0, 0.0, whole(node.first)
    while row >= 0:
        share = machine.shares[row]
        demand = machine.demands[share.job]
        old = _relative(machine, number, demand, before, tasks)
        new = _relative(machine, number, demand, before + more, tasks + processors)
        left_s = _left_s(machine, row, node.speed, old, now_s)
        slowed_j += left_s * max(1.0 / new - 1.0 / old, 0.0) * share.processors * node.processor_w
        lost += share.processors * node.speed * max(old - new, 0.0)
        row = whole(share.of_node)
    return slowed_j, lost


@variant(Nodes, inlined=False)
def fill_pairs(machine: Nodes, job: int, now_s: float, last_end_s: float, queued_s: float) -> None:
    """Write the other `pair_features` for a job, after `fill_nodes`.

    Args:
        machine: the machine.
        job: row of the job.
        now_s: the clock. [s]
        last_end_s: what `fill_nodes` returned. [s]
        queued_s: requested processor-seconds of the waiting jobs per processor of the cluster. [s]
    """
    pairs, demand, contention = machine.pairs, machine.demands[job], machine.counts.contention
    least_j, least_s, soonest_s, running = np.inf, np.inf, np.inf, pairs[pair.RUNNING_RATE].sum()
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        processors = whole(demand.processors) if demand.is_spread else min(whole(node.processors), whole(demand.chunks))
        run_s = estimated_run_s(demand, node) / demand.pace
        power_w = part_w(node, demand, processors) if demand.is_modelled else demand.power_w * demand.draw
        beside, slowed_j, lost = 1.0, 0.0, 0.0
        if contention:
            more = processors * _bandwidth(demand, node.speed)
            tasks = node.processors - node.free + processors
            beside = _relative(machine, number, demand, pairs[pair.ASKED_BANDWIDTH, number] + more, tasks)
            slowed_j, lost = _slowed(machine, number, more, processors, now_s)
        run_s /= beside
        static_w = waking_w(node)
        added_j = run_s * power_w + static_w * max(run_s - pairs[pair.NODE_BUSY_TIME, number], 0.0) + slowed_j
        boot_s = _boot_s(machine, node)
        if boot_s > 0.0 and node.jobs == 0:
            added_j += node.boot_w * node.boot_s
        run_s += boot_s
        pairs[pair.ENERGY_ESTIMATE, number] = estimated_run_s(demand, node) * estimated_power_w(demand, node)
        pairs[pair.CAN_SCHEDULE, number] = 1.0 if can_take_on(machine, job, number) else 0.0
        pairs[pair.QUEUED_WORK, number] = queued_s
        pairs[pair.EXPECTED_RUN_TIME, number], pairs[pair.ADDED_ENERGY, number] = run_s, added_j
        pairs[pair.BEYOND_LAST_END, number] = max(now_s + run_s - last_end_s, 0.0)
        pairs[pair.RELATIVE_LOAD_TAIL, number] = machine.totals.load_w + power_w + (static_w if node.jobs == 0 else 0.0)
        gained = max(processors * node.speed * beside - lost, 0.0)
        pairs[pair.RELATIVE_PROGRESS, number] = gained * run_s / max(running + gained, 1e-9)
        pairs[pair.SLOWDOWN_BY_OTHERS, number], pairs[pair.ENERGY_OF_OTHERS, number] = beside, slowed_j
        if node.processors >= processors and node.partitions & demand.partitions != 0:
            least_j, least_s = min(least_j, added_j), min(least_s, run_s)
            soonest_s = min(soonest_s, run_s + _wait_for_room_s(machine, number, demand, processors))
    _compare(machine, least_j, least_s, soonest_s)


@compiled_small
def _compare(machine: Nodes, least_j: float, least_s: float, soonest_s: float) -> None:
    """Relate the energies and times of each node to those of the best one."""
    pairs, base_w = machine.pairs, machine.totals.base_power_w
    scale = 1.0 / least_j if least_j > 0.0 else 0.0
    for number in range(machine.nodes.shape[0]):
        sooner_s, later_s = pairs[pair.RELATIVE_PROGRESS, number], pairs[pair.BEYOND_LAST_END, number]
        load_w = pairs[pair.RELATIVE_LOAD_TAIL, number]
        pairs[pair.RELATIVE_ENERGY, number] = max(pairs[pair.ADDED_ENERGY, number] - least_j, 0.0) * scale
        pairs[pair.RELATIVE_RUN_TIME, number] = max(pairs[pair.EXPECTED_RUN_TIME, number] - least_s, 0.0) / least_s
        pairs[pair.RELATIVE_FINISH, number] = max(pairs[pair.EXPECTED_RUN_TIME, number] - soonest_s, 0.0) / least_s
        pairs[pair.RELATIVE_TAIL, number] = base_w * later_s * scale
        pairs[pair.RELATIVE_LOAD_TAIL, number] = load_w * later_s * scale
        pairs[pair.RELATIVE_PROGRESS, number] = base_w * sooner_s * scale
        pairs[pair.RELATIVE_LOAD_PROGRESS, number] = load_w * sooner_s * scale
