"""Events: which one is next, and their order at the same instant.

All ties are resolved here. At equal times, an arrival comes before a completion (after it under ``completion_first``),
and both come before a wake-up (a change of supply, a tick, the end of a delay). Simultaneous arrivals are ordered by
job id, simultaneous completions by order of starting. The clock never goes backward.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.queue import complete, enqueue

ARRIVAL, COMPLETION, WAKE_UP, NOTHING = 0, 1, 2, 3


@compiled_small
def next_arrival_s(s: Any) -> float:
    """Time of the next submission, infinite after the last. [s]"""
    c = s.clock
    return s.jobs[s.arrivals[c.arrived]].submit_s if c.arrived < s.arrivals.shape[0] else np.inf


@compiled_small
def next_completion_s(s: Any) -> float:
    """Time of the next completion, infinite if nothing runs. [s]"""
    c = s.clock
    return s.running[c.running_first].end_s if c.running > 0 else np.inf


@compiled_small
def next_event(s: Any, wake_s: float) -> int:
    """Advance the clock to the next event, carry it out and return its kind.

    Args:
        s: the state.
        wake_s: the next wake-up, infinite for none. [s]
    """
    c = s.clock
    arrival_s, completion_s = next_arrival_s(s), next_completion_s(s)
    if arrival_s == np.inf and completion_s == np.inf and wake_s == np.inf:
        return NOTHING
    if s.set.completion_first and completion_s == arrival_s:
        arrival_s = np.inf
    if arrival_s <= completion_s and arrival_s <= wake_s:
        c.now_s = max(c.now_s, arrival_s)
        enqueue(s, s.arrivals[c.arrived])
        c.arrived += 1
        return ARRIVAL
    if completion_s <= wake_s:
        c.now_s = max(c.now_s, completion_s)
        complete(s)
        return COMPLETION
    c.now_s = max(c.now_s, wake_s)
    return WAKE_UP


@compiled_small
def step(s: Any, wake_s: float) -> int:
    """The next event or, under the ``per_instant`` rule, all events of the next instant.

    Returns its kind, or COMPLETION if there were several, because the whole queue must then be considered.
    """
    kind = next_event(s, wake_s)
    if s.set.per_instant and kind != NOTHING:
        while min(next_arrival_s(s), next_completion_s(s)) <= s.clock.now_s:
            next_event(s, np.inf)
            kind = COMPLETION
    return kind


@compiled_small
def next_supply_change_s(s: Any) -> float:
    """Start of the next supply slot, infinite without a site. [s]"""
    if s.set.supply_slots == 0:
        return np.inf
    slot = np.floor((s.clock.now_s - s.set.supply_origin_s) / s.set.supply_step_s)
    change_s = s.set.supply_origin_s + (slot + 1.0) * s.set.supply_step_s
    return float(change_s) if change_s > s.clock.now_s else float(change_s + s.set.supply_step_s)


@compiled_small
def tick_after(time_s: float, tick_s: float) -> float:
    """The first multiple of a tick after a time, also if a fractional tick is rounded. [s]"""
    after_s = (np.floor(time_s / tick_s) + 1.0) * tick_s
    return float(after_s) if after_s > time_s else float(after_s + tick_s)


@compiled_small
def next_tick_s(s: Any) -> float:
    """Next multiple of the tick, infinite for tick 0. [s]"""
    return tick_after(s.clock.now_s, s.set.tick_s) if s.set.tick_s > 0 else np.inf


@compiled
def drain(s: Any) -> None:
    """End all running jobs, in time order."""
    while s.clock.running > 0:
        next_event(s, np.inf)
