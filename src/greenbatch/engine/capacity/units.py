"""What jobs take of what is powered: beside the reservation of a blocked job, and once they run.

On nodes, a job that has its nodes alone takes all of their processors. ``otherwise`` holds where all is powered.
"""

from __future__ import annotations

from greenbatch.engine.capacity.varying import CapacityPart, Varying
from greenbatch.engine.machine.interruption import taken
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.records import Clock, MachineTotals
from greenbatch.machine_code.compile import compiled_small, whole
from greenbatch.machine_code.variants import variant


@variant(Varying)
def hold(capacity: Varying, machine: Machine, job: int) -> None:
    """Note what a job takes that has been placed."""
    own = capacity.jobs[job]
    own.processors, own.gpus = taken(machine, job, whole(own.processors), whole(own.gpus))


@variant(Varying, otherwise=lambda capacity, job, processors: (processors, 0))
def units_of(capacity: Varying, job: int, processors: int) -> tuple[int, int]:
    """Processors and GPUs that a job takes of what is powered: at most, before it runs. Otherwise GPUs do not count.

    Args:
        capacity: the capacity.
        job: row of the job.
        processors: those that it asks for.
    """
    own = capacity.jobs[job]
    return whole(own.processors), whole(own.gpus)


@variant(Varying, otherwise=True)
def is_fixed(capacity: Varying) -> bool:
    """Whether all of the machine is powered at all times."""
    return False


@variant(Varying, otherwise=True)
def may_fall(capacity: Varying) -> bool:
    """Whether jobs may start that what is known to come will suspend."""
    return bool(capacity.counts.suspends)


@variant(Varying, otherwise=lambda capacity, totals: totals.processors)
def powered(capacity: Varying, totals: MachineTotals) -> int:
    """Processors that are powered now."""
    return capacity.counts.powered


@variant(Varying, otherwise=True)
def leaves_powered(capacity: Varying, clock: Clock, totals: MachineTotals, job: int) -> bool:
    """Whether a job that outlives the reservation leaves the head what is powered then."""
    own = capacity.jobs[job]
    return bool(own.processors <= clock.spare and own.gpus <= totals.spare_gpus)


@compiled_small
def _take_processors(capacity: CapacityPart, clock: Clock, totals: MachineTotals, job: int, processors: int) -> None:
    clock.spare -= processors


@variant(Varying, otherwise=_take_processors)
def take_beside(capacity: Varying, clock: Clock, totals: MachineTotals, job: int, processors: int) -> None:
    """Take a job that outlives the reservation from what the head leaves; it is about to start."""
    clock.spare -= capacity.jobs[job].processors
    totals.spare_gpus -= capacity.jobs[job].gpus
