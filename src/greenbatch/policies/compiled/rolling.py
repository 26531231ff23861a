"""Try a planner in a fork of the state: simulate it for a while and price what it did and what it left.

The price is the brown energy until the horizon, slowdown, and work that is left at the horizon. What has happened
before the fork is the same for all candidates and does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from numba import types as _types

from greenbatch.engine.codes import BACKFILL, CHARGE, COMMIT, PROMISE
from greenbatch.engine.decide import decide
from greenbatch.engine.entry_points import kind_of
from greenbatch.engine.observe.stacked import StateType, type_of
from greenbatch.engine.power.protocol import flow
from greenbatch.engine.records import SHORT_S
from greenbatch.engine.state import State
from greenbatch.engine.step import advance
from greenbatch.machine_code.compile import compiled, entry, whole
from greenbatch.machine_code.references import by_reference

types: Any = _types


class Objective(NamedTuple):
    """What a candidate is measured by, all as joules of brown energy."""

    until_s: float
    """The horizon. [s]"""
    slowdown_j: float
    """Price of one unit of a job's slowdown. [J]"""
    idle_w: float
    """Price of a processor-second of work that is left at the horizon. [W]"""
    brown_share: float
    """Share of the energy of that work that is expected to be brown."""


@compiled
def _brown_j(s: State, first: int, from_s: float, load_w: float, until_s: float) -> float:
    """Brown energy from one time to another, by the log from a row on. [J]"""
    before_j, at_s = s.ledger.grid_j, from_s
    for k in range(first, s.clock.logged):
        event = s.log[k]
        if event.kind not in (PROMISE, COMMIT, CHARGE):
            to_s = min(event.time_s, until_s)
            if to_s > at_s:
                flow(s.power, load_w, at_s, to_s, s.ledger, s.scratch.pieces, 0)
                at_s = to_s
            if event.time_s >= until_s:
                break
            load_w = event.value
    if at_s < until_s:
        flow(s.power, load_w, at_s, until_s, s.ledger, s.scratch.pieces, 0)
    return float(s.ledger.grid_j - before_j)


@compiled
def _service_j(s: State, first: int, from_s: float, aim: Objective) -> float:
    """Price of the slowdown since a time, and of the work that is left at the horizon. [J]"""
    total_j, c = 0.0, s.clock
    for i in range(c.first, c.last):
        total_j += _job_j(s, whole(s.queue.job[i]), from_s, np.inf, aim)
    for k in range(first, c.logged):
        if s.log[k].kind <= BACKFILL:
            total_j += _job_j(s, whole(s.log[k].job), from_s, s.log[k].time_s, aim)
    return total_j


@compiled
def _job_j(s: State, number: int, from_s: float, start_s: float, aim: Objective) -> float:
    """Price of one job that started at a time. [J]"""
    job = s.jobs[number]
    if job.submit_s >= aim.until_s:
        return 0.0
    waited_s = max(min(start_s, aim.until_s) - max(job.submit_s, from_s), 0.0)
    left_s = min(max(start_s + job.run_s - aim.until_s, 0.0), job.run_s)
    left_w = aim.idle_w * job.processors + aim.brown_share * job.power_w
    return float(waited_s * aim.slowdown_j / max(job.run_s, SHORT_S) + left_s * left_w)


def attempt(s: State, decider: Any, aim: Objective) -> float:
    """Simulate a decider from now to a horizon, at which a decision must be due.

    Returns:
        The price. [J]
    """
    s, decider, aim = by_reference(s), by_reference(decider), by_reference(aim)
    c = s.clock
    from_s, first, load_w = c.now_s, whole(c.logged), s.machine.totals.load_w
    if c.first < c.last:
        decide(decider, s)
    while advance(s) and c.now_s < aim.until_s:
        decide(decider, s)
    return _brown_j(s, first, from_s, load_w, aim.until_s) + _service_j(s, first, from_s, aim)


def attempt_of(state: State, decider: Any) -> Callable[[State, Any, Objective], float]:
    """`attempt` for a kind of state and a kind of decider, compiled or loaded from the cache on first use."""
    return _compiled(type_of(state), cast(Hashable, kind_of(decider).numba))


@cache
def _compiled(states: StateType, decider: Any) -> Callable[[State, Any, Objective], float]:
    aim = types.NamedUniTuple(types.float64, len(Objective._fields), Objective)
    name = f"attempt-{decider.instance_class.__name__.lower()}"
    return cast(Callable[..., float], entry(name, attempt, types.float64(states.numba, decider, aim)))
