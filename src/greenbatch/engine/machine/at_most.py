"""The most that a machine may draw until another job starts, which is what a limit of power has to carry.

On nodes that boot on demand it is more than what is drawn now: jobs wait for boots, and a boot or a shutdown can draw
more than an idle node. Elsewhere it is the present load.
"""

from __future__ import annotations

from greenbatch.engine.machine.node_tables import Nodes, most_of_node_w
from greenbatch.engine.machine.nodes import place
from greenbatch.engine.records import Clock, Expected, Table
from greenbatch.machine_code.compile import compiled
from greenbatch.machine_code.variants import variant


@variant(Nodes, otherwise=lambda machine, expected, clock: machine.totals.load_w)
def most_w(machine: Nodes, expected: Table[Expected], clock: Clock) -> float:
    """The most that the machine may draw until another job starts. [W]"""
    return _most_w(machine, expected, clock) if machine.counts.on_demand else machine.totals.load_w


@compiled
def _most_w(machine: Nodes, expected: Table[Expected], clock: Clock) -> float:
    total_w = 0.0
    for number in range(machine.nodes.shape[0]):
        node = machine.nodes[number]
        total_w += most_of_node_w(node, node.jobs > 0)
    for k in range(clock.expected_first, clock.expected_first + clock.running):
        total_w += expected[k].power_w
    return float(total_w)


@variant(Nodes, otherwise=lambda machine, job, processors, power_w, outlives: power_w)
def adds_at_most_w(machine: Nodes, job: int, processors: int, power_w: float, outlives: bool) -> float:
    """By how much a job that fits would raise `most_w` if it started now; arguments as for `preview.rise_w`. [W]"""
    return place(machine, job, 0.0, outlives and machine.counts.is_plain == 0, True).most_w
