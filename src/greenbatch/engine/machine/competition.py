"""What the engine asks of a machine on which not all jobs compete: which can delay which.

On nodes, jobs compete if their partitions share nodes, or are linked by partitions that do: they are of one component.
``otherwise`` holds for a pool.
"""

from __future__ import annotations

from greenbatch.engine.machine.easy_irmasim import sort_for_all
from greenbatch.engine.machine.node_tables import Nodes
from greenbatch.engine.records import Clock, Int32s
from greenbatch.machine_code.compile import whole
from greenbatch.machine_code.variants import variant


@variant(Nodes, otherwise=True)
def competes(machine: Nodes, job: int, head: int) -> bool:
    """Whether two jobs could use the same processors; if not, neither can delay the other."""
    return machine.demands[job].component == machine.demands[head].component


@variant(Nodes, otherwise=True)
def all_partitions_in(machine: Nodes, job: int, partitions: int) -> bool:
    """Whether all partitions that a job can use are among those of a bit mask: those of all nodes, if it has none."""
    return machine.demands[job].partitions & ~partitions == 0


@variant(Nodes, otherwise=True)
def all_compete(machine: Nodes) -> bool:
    """Whether any two jobs compete: there is one component."""
    return machine.counts.components & (machine.counts.components - 1) == 0


@variant(Nodes, otherwise=True)
def block(machine: Nodes, job: int) -> bool:
    """Let no job that competes with a blocked one be chosen until the next event; whether that is every job."""
    machine.counts.held_back |= whole(1) << whole(machine.demands[job].component)
    return bool(machine.counts.held_back == machine.counts.components)


@variant(Nodes, otherwise=False)
def is_held_back(machine: Nodes, job: int) -> bool:
    """Whether a job must not be chosen, because it competes with a blocked one."""
    return bool((machine.counts.held_back >> whole(machine.demands[job].component)) & 1)


@variant(Nodes)
def clear_reservation(machine: Nodes, waiting: Int32s, clock: Clock) -> None:
    """Undo `block` after an event; the jobs that wait are rows ``clock.first`` to ``clock.last``.

    IRMaSim also sorts its list of nodes.
    """
    machine.counts.held_back = 0
    if machine.counts.keeps_list:
        sort_for_all(machine, waiting, clock)
