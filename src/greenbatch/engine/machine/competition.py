"""What the engine asks of a machine on which not all jobs compete: which can delay which."""

from __future__ import annotations

from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.records import Clock, Int32s
from greenbatch.engine.variants import variant


@variant(default=True)
def competes(machine: Machine, job: int, head: int) -> bool:
    """Whether two jobs could use the same processors; if not, neither can delay the other."""
    return True


@variant(default=True)
def all_partitions_in(machine: Machine, job: int, partitions: int) -> bool:
    """Whether all partitions that a job can use are among those of a bit mask; a pool has none."""
    return True


@variant(default=True)
def all_compete(machine: Machine) -> bool:
    """Whether any two jobs compete."""
    return True


@variant(default=True)
def block(machine: Machine, job: int) -> bool:
    """Let no job that competes with a blocked one be chosen until the next event; whether that is every job."""
    return True


@variant(default=True)
def is_held_back(machine: Machine, job: int) -> bool:
    """Whether a job must not be chosen, because it competes with a blocked one."""
    return False


@variant(default=True)
def clear_reservation(machine: Machine, waiting: Int32s, clock: Clock) -> None:
    """Undo `block` after an event; the jobs that wait are rows ``clock.first`` to ``clock.last``."""
