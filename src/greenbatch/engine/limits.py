"""Whether a job can start now: it must fit, and neither a limit of power nor an outage may forbid it."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.admission import is_admitted, may_act
from greenbatch.engine.capacity.levels import next_level_s, reserve_ahead, stays_powered
from greenbatch.engine.import_limit import is_within_limit, leaves_power, next_limit_s, reserve_within_limit
from greenbatch.engine.machine.competition import is_held_back
from greenbatch.engine.machine.nodes import lend
from greenbatch.engine.machine.power_states import next_switch_s
from greenbatch.engine.machine.resources import fits, next_change_s
from greenbatch.engine.outages import next_end_s, open_from_s
from greenbatch.engine.power_cap import is_within_cap, reserve_power
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_rare, compiled_small, whole


@compiled_small
def has_limit(s: State) -> bool:
    """Whether the power cap or the grid connection may forbid a start."""
    return bool(s.rules.limited or s.rules.power_cap_w > 0.0)


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
        and stays_powered(s.capacity, s, job)
    )


@compiled_small
def can_start(s: State, job: int, processors: int) -> bool:
    """Whether a waiting job may start now: it can run, and not as many have started in this tick as may."""
    return may_act(s.capacity, s.clock.now_s) and can_run(s, job, processors)


@compiled_small
def can_run(s: State, job: int, processors: int) -> bool:
    """Whether a job fits now, keeps the power within its limits, and ends before the next outage as requested."""
    if not (is_admitted(s.capacity, job) and fits(s.machine, job, processors, s.clock.now_s)):
        return False
    if s.rules.guarded and not _is_allowed(s, job):
        return False
    return stays_powered(s.capacity, s, job)


@compiled_rare
def _is_allowed(s: State, job: int) -> bool:
    """Whether neither an outage nor a limit of power forbids a job that fits to start now."""
    now_s = s.clock.now_s
    is_open = s.downtimes.shape[0] == 0 or open_from_s(s, job, now_s) <= now_s
    return is_open and is_within_limit(s, job, False) and is_within_cap(s, job, False)


@compiled
def allows_instead(s: State, job: int, row: int) -> bool:
    """Whether neither an outage nor a limit of power forbids a job to start in place of a running one, by its row."""
    if not s.rules.guarded:
        return True
    running, totals = s.expected[row], s.machine.totals
    power_w, load_w = running.power_w, totals.load_w
    running.power_w, totals.load_w = 0.0, load_w - power_w
    lend(s.machine, whole(running.job), 1)
    allowed = _is_allowed(s, job)
    lend(s.machine, whole(running.job), -1)
    running.power_w, totals.load_w = power_w, load_w
    return bool(allowed)


@compiled_rare
def leaves_limits(s: State, job: int, head: int) -> bool:
    """Whether a job that starts now and outlives the reservation leaves the blocked job the power that it needs."""
    return leaves_power(s, job, head) and is_within_cap(s, job, True)


@compiled_rare
def reserve_within_limits(s: State, job: int) -> None:
    """Move the reservation of a blocked job to when limits of power and outages allow it."""
    c, first_s = s.clock, s.clock.shadow_s
    reserve_power(s, job)
    reserve_within_limit(s, job)
    c.shadow_s = open_from_s(s, job, c.shadow_s)
    from_s = c.shadow_s if c.shadow_s <= first_s else -np.inf
    while c.shadow_s > from_s:  # what is free at the later instant is left to others; again if less is powered then
        from_s = c.shadow_s
        reserve_ahead(s.capacity, s, job, from_s)
        reserve_power(s, job)
        c.shadow_s = open_from_s(s, job, c.shadow_s)


@compiled_small
def next_opening_s(s: State) -> float:
    """When a blocked job may be able to start although no job arrives or ends: by machine, outages or limits. [s]"""
    change_s = min(next_change_s(s.machine, s.clock.now_s), next_level_s(s.capacity, s.clock.now_s))
    if not s.rules.guarded:
        return change_s
    return min(change_s, next_end_s(s), next_limit_s(s), next_switch_s(s.machine) if has_limit(s) else np.inf)
