"""Whether a job can start now: it must fit, and neither a limit of power nor an outage may forbid it."""

from __future__ import annotations

from greenbatch.engine.capacity.admission import is_admitted
from greenbatch.engine.capacity.levels import stays_powered
from greenbatch.engine.compile import compiled_small, whole
from greenbatch.engine.import_limit import is_within_limit
from greenbatch.engine.machine.competition import is_held_back
from greenbatch.engine.machine.resources import fits
from greenbatch.engine.outages import open_from_s
from greenbatch.engine.power_cap import is_within_cap
from greenbatch.engine.state import State


@compiled_small
def can_be_next(s: State, job: int) -> bool:
    """Whether a waiting job may be chosen: it is ready, and no blocked job holds it back."""
    return is_admitted(s.capacity, job) and not is_held_back(s.machine, job)


@compiled_small
def can_be_chosen(s: State, job: int) -> bool:
    """Whether a learned policy is told that a waiting job can start: it fits, now and as far as the capacity is known.

    What a power cap or an outage forbids is not told.
    """
    waits = s.jobs[job]
    return (
        is_admitted(s.capacity, job)
        and fits(s.machine, job, whole(waits.processors), s.clock.now_s)
        and stays_powered(s.capacity, s.machine.totals, s.expected, s.clock, job, waits.requested_s)
    )


@compiled_small
def can_start(s: State, job: int, processors: int) -> bool:
    """Whether a job fits now, keeps the power within its limits, and ends before the next outage as requested."""
    if not (is_admitted(s.capacity, job) and fits(s.machine, job, processors, s.clock.now_s)):
        return False
    if s.downtimes.shape[0] > 0 and open_from_s(s, job, s.clock.now_s) > s.clock.now_s:
        return False
    if not stays_powered(s.capacity, s.machine.totals, s.expected, s.clock, job, s.jobs[job].requested_s):
        return False
    if not is_within_limit(s, job, False):
        return False
    return bool(s.rules.power_cap_w == 0.0) or is_within_cap(s, job, False)
