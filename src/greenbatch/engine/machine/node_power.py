"""Power that a job adds to its nodes, before and after it starts, for the power cap."""

from __future__ import annotations

from greenbatch.engine.compile import compiled, whole
from greenbatch.engine.machine.node_tables import ON, Nodes
from greenbatch.engine.machine.nodes import can_host, candidates, part_of
from greenbatch.engine.machine.protocol import rise_w, running_w


@rise_w.register(Nodes)
def rise_on_nodes_w(machine: Nodes, job: int, power_w: float, outlives: bool) -> float:
    """The power of the job, and the static power of nodes on which nothing runs."""
    return _rise_w(machine, job, outlives and machine.counts.is_plain == 0)


@compiled
def _rise_w(machine: Nodes, job: int, outlives: bool) -> float:
    """Place a job without taking anything, and add up what its nodes would draw more."""
    demand, counts = machine.demands[job], machine.counts
    draws = counts.draws
    count = machine.nodes.shape[0] if counts.is_listed else candidates(machine, demand, outlives)
    counts.draws = draws
    left, k, added_w = whole(demand.chunks), 0, 0.0 if demand.is_modelled else demand.power_w
    while left > 0 and k < count:
        node = machine.nodes[machine.lists[k].order if counts.is_listed else machine.ranked[k].job]
        k += 1
        chunks = can_host(node, demand, outlives)
        if chunks == 0:
            continue
        processors = part_of(demand, chunks, left)
        left -= 1 if demand.is_spread else processors
        if node.drawing == 0:
            added_w += node.static_w - (node.idle_w if node.phase == ON else 0.0)
        if demand.is_modelled:
            added_w += processors * node.processor_w + demand.gpus * node.gpu_w
    return float(added_w)


@running_w.register(Nodes)
def running_on_nodes_w(machine: Nodes, job: int, power_w: float) -> float:
    """Its own power, or that of its processors and GPUs."""
    return _running_w(machine, job) if machine.demands[job].is_modelled else power_w


@compiled
def _running_w(machine: Nodes, job: int) -> float:
    demand, drawn_w = machine.demands[job], 0.0
    row = whole(demand.first)
    while row >= 0:
        share = machine.shares[row]
        node = machine.nodes[share.node]
        drawn_w += share.processors * node.processor_w + demand.gpus * node.gpu_w
        row = whole(share.of_job)
    return float(drawn_w)
