"""How long a job would run if it started now."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.compile import compiled, whole
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.machine.nodes import hosts
from greenbatch.engine.machine.protocol import expected_run_s


@expected_run_s.register(Nodes)
def requested_at_the_slowest(machine: Nodes, job: int, requested_s: float) -> float:
    """The requested time at the speed of the slowest node that the job would take, without contention."""
    return requested_s / _slowest(machine, job)


@compiled
def _slowest(machine: Nodes, job: int) -> float:
    """Speed of the slowest node that a job would take now, in a placement whose order does not change."""
    demand, slowest, k = machine.demands[job], np.inf, 0
    left = whole(demand.chunks)
    while left > 0 and k < machine.nodes.shape[0]:
        node = machine.nodes[machine.lists[k].order]
        room = hosts(node, demand)
        if room > 0:
            left -= 1 if demand.is_spread else min(room, left)
            slowest = min(slowest, node.speed)
        k += 1
    return float(slowest)
