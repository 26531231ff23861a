"""Whether a job can start now: it must fit, and neither a limit of power nor an outage may forbid it."""

from __future__ import annotations

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.import_limit import is_within_limit
from greenbatch.engine.machine.protocol import fits
from greenbatch.engine.outages import open_from_s
from greenbatch.engine.power_cap import is_within_cap
from greenbatch.engine.state import State


@compiled_small
def can_start(s: State, job: int, processors: int) -> bool:
    """Whether a job fits now, keeps the power within its limits, and ends before the next outage as requested."""
    if not fits(s.machine, job, processors, s.clock.now_s):
        return False
    if s.downtimes.shape[0] > 0 and open_from_s(s, job, s.clock.now_s) > s.clock.now_s:
        return False
    if not is_within_limit(s.power, s, job, False):
        return False
    return bool(s.rules.power_cap_w == 0.0) or is_within_cap(s, job, False)
