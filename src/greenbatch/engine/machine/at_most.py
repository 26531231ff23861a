"""The most that a machine may draw until another job starts, which is what a limit of power has to carry.

On nodes that boot on demand it is more than what is drawn now: jobs wait for boots, and a boot or a shutdown can draw
more than an idle node. Where not all is powered, more may be later, and draws its idle power then. Elsewhere it is the
present load.
"""

from __future__ import annotations

from greenbatch.engine.machine.node_tables import Nodes, most_of_node_w
from greenbatch.engine.machine.nodes import place
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.records import Clock, Expected, Table
from greenbatch.machine_code.compile import compiled, compiled_small
from greenbatch.machine_code.variants import variant


@compiled_small
def _with_idle_w(machine: Machine, expected: Table[Expected], clock: Clock) -> float:
    totals = machine.totals
    return float(totals.load_w + max(0.0, totals.most_idle_w - totals.base_power_w))


@variant(Nodes, otherwise=_with_idle_w)
def most_w(machine: Nodes, expected: Table[Expected], clock: Clock) -> float:
    """The most that the machine may draw until another job starts. [W]"""
    if machine.counts.on_demand:
        return _most_w(machine, expected, clock)
    return float(machine.totals.load_w + machine.counts.off_w)  # a job on an empty node may leave less of it off


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
