"""What a node draws for a part of a job, and for being awake."""

from __future__ import annotations

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.machine.node_tables import ON, Demand, Node


@compiled_small
def part_w(node: Node, demand: Demand, processors: int) -> float:
    """Power of the processors and GPUs that a job of modelled power uses on a node. [W]"""
    return processors * node.processor_w * demand.draw + demand.gpus * node.gpu_w


@compiled_small
def waking_w(node: Node) -> float:
    """What a node draws more as soon as something runs on it: its static power, less its idle power if it is on. [W]"""
    return node.static_w - (node.idle_w if node.phase == ON else 0.0)
