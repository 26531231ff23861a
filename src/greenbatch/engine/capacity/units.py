"""What jobs take of what is powered: beside the reservation of a blocked job, and once they run.

On nodes, a job that has its nodes alone takes all of their processors. ``otherwise`` holds where all is powered.
"""

from __future__ import annotations

from greenbatch.engine.capacity.varying import CapacityPart, Varying
from greenbatch.engine.codes import BEGIN
from greenbatch.engine.log import note
from greenbatch.engine.machine.interruption import taken
from greenbatch.engine.machine.power_states import begins_s
from greenbatch.engine.records import Clock, MachineTotals
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled_small, whole
from greenbatch.machine_code.variants import variant


@variant(Varying)
def hold(capacity: Varying, s: State, job: int) -> None:
    """Note what a job takes that has just started or resumed, and when it begins to run: once its nodes are up."""
    own, now_s = capacity.jobs[job], s.clock.now_s
    own.processors, own.gpus = taken(s.machine, job, whole(own.processors), whole(own.gpus))
    own.begin_s = begins_s(s.machine, job, now_s)
    if not own.first_start_s < now_s:  # it has not run before
        own.first_start_s = own.begin_s
    if own.begin_s > now_s:
        note(s.log, s.clock, BEGIN, job, own.begin_s)


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
