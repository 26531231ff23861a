"""The limit of the grid connection: no job starts that would lift imports above it, now or as forecast while it runs.

Running jobs are expected to end as requested, and the most that the cluster may draw (`machine.at_most`) is compared
with the largest load that a slot allows (`power.protocol.allowed_w`). In the present slot that is the truth, later a
forecast. Static power of nodes is counted as if they stayed in use.

A job that some slots cannot carry even alone, such as one that needs the sun and outlasts the day, waits for an instant
from which the forecast carries it to its end, but not beyond its first reservation. From then on it starts as soon as
the present slot carries it, if all others are expected to end before the slots that cannot. From then on, too, no job
starts that may run beyond those that run already: wrong forecasts cannot hold a job forever.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.codes import FIRST_FIT
from greenbatch.engine.forecast import expected_from
from greenbatch.engine.machine.at_most import adds_at_most_w, most_w
from greenbatch.engine.outages import open_from_s
from greenbatch.engine.power.protocol import allowed_w, always_allowed_w
from greenbatch.engine.power.slots import next_edge_s, slot_at, slot_start_s
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_rare, compiled_small, whole

ROUNDING = 1e-9
"""Part of the limit that rounding may add."""


@compiled_small
def next_limit_s(s: State) -> float:
    """When the limit of the load changes, with the next slot; infinite without one. [s]"""
    slots = s.power.slots
    return next_edge_s(s.clock.now_s, slots.origin_s, slots.step_s) if s.rules.limited else np.inf


@compiled_small
def _is_at_most(load_w: float, limit_w: float) -> bool:
    return load_w <= limit_w * (1.0 + ROUNDING)


@compiled
def _first_begin_s(s: State, from_s: float, last_s: float, length_s: float, added_w: float, alone_w: float) -> float:
    """Earliest instant from which the forecast allows some more power for a time, infinite if none. [s]

    Args:
        s: the state.
        from_s: the first instant considered; what is expected to have ended does not count. [s]
        last_s: the last one. [s]
        length_s: the time. [s]
        added_w: the power. [W]
        alone_w: load that is allowed everywhere but in the slot of the beginning; 0 for none. [W]
    """
    current, k = slot_at(s.power.slots, s.clock.now_s), s.clock.expected_first
    load_w = most_w(s.machine, s.expected, s.clock)
    begin_s = time_s = from_s
    while True:
        k, load_w, slot, end_s = expected_from(s, time_s, k, load_w)
        limit_w = allowed_w(s.power, s.clock, slot, current)
        if time_s > begin_s:
            limit_w = max(limit_w, alone_w)
        if not _is_at_most(load_w + added_w, limit_w):
            if end_s > last_s:
                return np.inf
            begin_s = end_s
        elif end_s >= begin_s + length_s:
            return float(begin_s)
        time_s = end_s


@compiled_rare
def is_within_limit(s: State, job: int, outlives: bool) -> bool:
    """Whether a job that fits can start now without lifting imports above the limit, if there is one.

    The present slot must carry all that runs; later slots what is expected to run then.

    Args:
        s: the state.
        job: row of the job.
        outlives: see `machine.resources.take`.
    """
    if not s.rules.limited:
        return True
    power, now_s, of = s.power, s.clock.now_s, s.jobs[job]
    added_w = adds_at_most_w(s.machine, job, whole(of.processors), of.power_w, outlives)
    load_w = most_w(s.machine, s.expected, s.clock) + added_w
    if load_w <= always_allowed_w(power):
        return True
    current = slot_at(power.slots, now_s)
    if not _is_at_most(load_w, allowed_w(power, s.clock, current, current)):
        return False
    if _first_begin_s(s, now_s, now_s, of.requested_s, added_w, 0.0) == now_s:
        return True
    if s.rules.backfill != FIRST_FIT and not of.promised_s <= now_s:
        return False
    alone_w = s.machine.totals.base_power_w + added_w
    return bool(_first_begin_s(s, now_s, now_s, of.requested_s, added_w, alone_w) == now_s)


@compiled_rare
def reserve_within_limit(s: State, job: int) -> None:
    """Move the reservation of a blocked job to when the forecast allows its power, if there is a limit.

    The earliest such instant from the one at which enough processors are free.

    Beyond the forecast there is none to be found: it is repeated. A job that has missed its first reservation gets one
    at which all that runs has ended, at the latest.
    """
    if not s.rules.limited or s.clock.shadow_s == np.inf:  # it is not expected to fit
        return
    c, power, of = s.clock, s.power, s.jobs[job]
    added_w = adds_at_most_w(s.machine, job, whole(of.processors), of.power_w, False)
    if most_w(s.machine, s.expected, s.clock) + added_w <= always_allowed_w(power):
        return
    alone_w, drained_s = s.machine.totals.base_power_w + added_w, c.shadow_s
    if c.running > 0:
        drained_s = max(drained_s, s.expected[c.expected_first + c.running - 1].end_s)
    has_missed, from_s = of.promised_s <= c.now_s, -np.inf
    while c.shadow_s > from_s:  # again if an outage is in the way
        from_s, found_s = c.shadow_s, np.inf
        last_s = slot_start_s(power.slots, slot_at(power.slots, max(from_s, drained_s)) + power.slots.forecast)
        if not has_missed:
            found_s = _first_begin_s(s, from_s, last_s, of.requested_s, added_w, 0.0)
        if found_s == np.inf:
            found_s = _first_begin_s(s, from_s, last_s, of.requested_s, added_w, alone_w)
        found_s = min(found_s, max(from_s, drained_s) if has_missed else last_s)
        c.shadow_s = found_s
        if s.downtimes.shape[0] > 0:
            c.shadow_s = open_from_s(s, job, found_s)
        from_s = found_s


@compiled_rare
def leaves_power(s: State, job: int, head: int) -> bool:
    """Whether a job that starts now and outlives the reservation leaves the power of the blocked job under a limit.

    Both jobs together must be allowed from the reservation to the first of their ends.
    """
    if not s.rules.limited:
        return True
    c, of, first = s.clock, s.jobs[job], s.jobs[head]
    if first.promised_s < c.now_s or not is_within_limit(s, job, True):
        return False
    head_w = adds_at_most_w(s.machine, head, whole(first.processors), first.power_w, False)
    added_w = head_w + adds_at_most_w(s.machine, job, whole(of.processors), of.power_w, True)
    if most_w(s.machine, s.expected, s.clock) + added_w <= always_allowed_w(s.power):
        return True
    begin_s = c.shadow_s
    seconds = min(first.requested_s, c.now_s + of.requested_s - begin_s)
    alone_w = s.machine.totals.base_power_w + head_w
    return bool(_first_begin_s(s, begin_s, begin_s, seconds, added_w, alone_w) == begin_s)
