"""Many simulations side by side, each waiting for a decision: step them, and let them tell what they see.

Arrays of `State` with one more axis in front. The functions work on a range of simulations and touch no other, so
that threads can share a batch; the result does not depend on how it is shared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types as _types

from greenbatch.engine.compile import compiled, entry, written_in
from greenbatch.engine.decide import advance, place
from greenbatch.engine.features import COLUMN, fill_queue, fill_running, fill_state, fill_supply
from greenbatch.engine.state import (
    CLOCK,
    DELAY_RELEASES,
    JOB,
    QUEUED,
    RANKED,
    RUNNING,
    SEGMENT,
    SETTINGS,
    SLOT,
    STEP,
    F,
    N,
    State,
)
from greenbatch.engine.tally import TALLY, USER, take_stock

types: Any = _types

DELAY = np.dtype([("kind", N), ("amount", F)])
"""A delay that may be chosen: its kind (see `engine.state`) and its number of jobs or seconds."""


class Batch(NamedTuple):
    """All arrays of B simulations of up to n jobs; fields of `State` with an axis of simulations in front."""

    jobs: Any
    arrivals: Any
    queue: Any
    running: Any
    expected: Any
    profile: Any
    segments: Any
    plan: Any
    ranked: Any
    columns: Any
    started: Any
    attributes: Any
    supply_w: Any
    """Shared by all, shape (slots,). [W]"""
    set: Any
    clock: Any
    tally: Any
    """TALLY, shape (B,)."""
    user_of: Any
    """Row of ``users`` for each job, -1 if unknown, shape (B, n)."""
    users: Any
    """USER, shape (B, u)."""
    values: Any
    """Value so far of every term of the reward, shape (B, t)."""


class Layout(NamedTuple):
    """What is seen and what may be done."""

    queue: Any
    """COLUMN of waiting jobs."""
    running: Any
    """COLUMN of running jobs."""
    supply: Any
    """COLUMN of forecast slots."""
    state: Any
    """COLUMN of the system as a whole."""
    delays: Any
    """DELAY, shape (d,), d >= 1."""
    terms: Any
    """Codes of the reward's terms, shape (t,)."""
    queue_rows: int
    """Waiting jobs that are seen, at most."""
    running_rows: int
    """Running jobs that are seen, at most."""
    supply_rows: int
    """Forecast slots that are seen."""
    wait: int
    """1 if waiting until the next event is a choice."""
    only_fitting: int
    """1 if only jobs that fit now may be chosen."""
    longest_hold_s: float
    """While a job that fits has waited longer than this, waiting is no choice. [s]"""


class Seen(NamedTuple):
    """Buffers of what is seen by the simulations that await a decision (see ``envs.batch.Observation``)."""

    queue: Any
    queue_offsets: Any
    selectable: Any
    running: Any
    running_offsets: Any
    supply: Any
    slot: Any
    state: Any
    delays: Any


def _array(dtype: Any, dimensions: int) -> Any:
    return types.Array(numba.from_dtype(np.dtype(dtype)), dimensions, "C")


BATCH_TYPE = types.NamedTuple(
    [_array(JOB, 2), _array(N, 2), _array(QUEUED, 2), _array(RUNNING, 2), _array(RUNNING, 2), _array(STEP, 2),
     _array(SEGMENT, 2), _array(SLOT, 2), _array(RANKED, 2), _array(F, 3), _array(N, 2), _array(F, 3), _array(F, 1),
     _array(SETTINGS, 1), _array(CLOCK, 1), _array(TALLY, 1), _array(N, 2), _array(USER, 2), _array(F, 2)],
    Batch,
)  # fmt: skip
"""Compiled type of `Batch`."""
LAYOUT_TYPE = types.NamedTuple(
    [_array(COLUMN, 1)] * 4 + [_array(DELAY, 1), _array(N, 1)] + [types.int64] * 5 + [types.float64], Layout
)
"""Compiled type of `Layout`."""
SEEN_TYPE = types.NamedTuple(
    [_array(np.float32, 2), _array(N, 1), _array(np.bool_, 1), _array(np.float32, 2), _array(N, 1),
     _array(np.float32, 3), _array(N, 1), _array(np.float32, 2), _array(np.bool_, 2)],
    Seen,
)  # fmt: skip
"""Compiled type of `Seen`."""


@written_in
def _state(batch: Any, b: int) -> Any:
    return State(
        batch.jobs[b], batch.arrivals[b], batch.queue[b], batch.running[b], batch.expected[b], batch.profile[b],
        batch.segments[b], batch.plan[b], batch.ranked[b], batch.columns[b], batch.started[b], batch.attributes[b],
        batch.supply_w, batch.set[b], batch.clock[b],
    )  # fmt: skip


@compiled
def _to_next_decision(s: Any, batch: Any, b: int, layout: Any, rows: Any) -> None:
    rows[0] = rows[1] = -1
    if advance(s):
        c = s.clock
        rows[0] = min(c.last - c.first, layout.queue_rows) + layout.wait
        rows[1] = min(c.running, layout.running_rows)
    take_stock(s, batch.tally[b], batch.user_of[b], batch.users[b], layout.terms, batch.values[b])


def begin(batch: Any, layout: Any, chosen: Any, low: int, high: int, rows: Any) -> None:
    """Bring fresh simulations ``chosen[low:high]`` to their first decision; for ``rows`` see `step`."""
    for a in range(low, high):
        b = chosen[a]
        _to_next_decision(_state(batch, b), batch, b, layout, rows[a])


def step(batch: Any, layout: Any, chosen: Any, low: int, high: int, actions: Any, rows: Any) -> None:
    """Carry out one action in each of ``chosen[low:high]`` and go on to the next decision.

    Args:
        batch: the simulations.
        layout: what may be done.
        chosen: simulations that await a decision, shape (a,).
        low: first of them to step.
        high: end of the range.
        actions: (row, delay) of each, shape (a, 2); the row after the visible jobs is waiting.
        rows: visible rows of the queue and of the running jobs at the next decision, -1 where there is none, shape
            (a, 2): written.
    """
    for a in range(low, high):
        b = chosen[a]
        s = _state(batch, b)
        c = s.clock
        row = actions[a, 0]
        if layout.wait and row == min(c.last - c.first, layout.queue_rows):
            c.blocked = 1
        else:
            delay = layout.delays[actions[a, 1]]
            place(s, c.first + row, delay.kind, delay.amount)
        c.settled = 0
        _to_next_decision(s, batch, b, layout, rows[a])


@compiled
def fill_choices(s: Any, layout: Any, rows: int, selectable: Any, at: int, delays: Any) -> None:
    """Write which rows and which delays may be chosen.

    Args:
        s: the state.
        layout: what may be done.
        rows: visible waiting jobs.
        selectable: bool: ``selectable[at : at + rows + wait]`` is written.
        at: first row to write.
        delays: bool, shape (d,).
    """
    c = s.clock
    overdue = False
    for i in range(rows):
        entry = s.queue[c.first + i]
        fits = entry.processors <= c.free
        selectable[at + i] = fits or not layout.only_fitting
        if layout.wait and fits and c.now_s - s.jobs[entry.job].submit_s > layout.longest_hold_s:
            overdue = True
    if layout.wait:
        selectable[at + rows] = not overdue
    for d in range(layout.delays.shape[0]):
        delays[d] = layout.delays[d].kind != DELAY_RELEASES or layout.delays[d].amount <= c.running


@compiled
def observe_one(s: Any, layout: Any, seen: Any, a: int) -> None:
    """Write what one simulation sees as row ``a`` of ``seen``; its offsets are set already."""
    at = seen.queue_offsets[a]
    rows = seen.queue_offsets[a + 1] - at - layout.wait
    fill_queue(s, layout.queue, rows, layout.wait == 1, seen.queue, at)
    fill_choices(s, layout, rows, seen.selectable, at, seen.delays[a])
    beside = seen.running_offsets[a]
    fill_running(s, layout.running, seen.running_offsets[a + 1] - beside, seen.running, beside)
    if layout.supply_rows > 0:
        seen.slot[a] = fill_supply(s, layout.supply, layout.supply_rows, seen.supply[a])
    fill_state(s, layout.state, seen.state[a])


def observe(batch: Any, layout: Any, chosen: Any, low: int, high: int, seen: Any) -> None:
    """Write what the simulations ``chosen[low:high]`` see."""
    for a in range(low, high):
        observe_one(_state(batch, chosen[a]), layout, seen, a)


_RANGE = (BATCH_TYPE, LAYOUT_TYPE, _array(N, 1), types.int64, types.int64)


@cache
def batch_part(name: str) -> Any:
    """A compiled entry point: ``begin``, ``step`` or ``observe`` (compiled, or loaded, when first asked for)."""
    parts: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "begin": (begin, (_array(N, 2),)),
        "step": (step, (_array(N, 2), _array(N, 2))),
        "observe": (observe, (SEEN_TYPE,)),
    }
    function, rest = parts[name]
    return entry(f"batch-{name}", function, types.void(*_RANGE, *rest))
