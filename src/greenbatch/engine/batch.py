"""Many simulations side by side, each waiting for a decision: step them and write their observations.

Arrays of `State` with an additional first axis. A step works on some of the simulations and does not touch the others,
so threads can share a batch; the result does not depend on how they share it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba import types as _types

from greenbatch.engine.compile import compiled, compiled_small, entry
from greenbatch.engine.features import COLUMN, fill_queue, fill_running, fill_state, fill_supply
from greenbatch.engine.reward_totals import update_totals
from greenbatch.engine.stacked import BATCH_TYPE, one_of
from greenbatch.engine.state import DELAY_RELEASES, F, N
from greenbatch.engine.step import advance, place

types: Any = _types

DELAY = np.dtype([("kind", N), ("amount", F)])
"""A delay that can be chosen: its kind (see `engine.state`) and its number of jobs or seconds."""


class Layout(NamedTuple):
    """Layout of observations and actions."""

    queue: Any
    """COLUMN of waiting jobs."""
    running: Any
    """COLUMN of running jobs."""
    supply: Any
    """COLUMN of forecast slots."""
    state: Any
    """COLUMN of the system state."""
    delays: Any
    """DELAY, shape (d,), d >= 1."""
    terms: Any
    """Codes of the reward terms, shape (t,)."""
    queue_rows: int
    """Largest number of waiting jobs observed."""
    running_rows: int
    """Largest number of running jobs observed."""
    supply_rows: int
    """Number of forecast slots observed."""
    wait: int
    """1 if waiting until the next event is an action."""
    only_fitting: int
    """1 if only jobs that fit now can be chosen."""
    longest_hold_s: float
    """Waiting is not allowed while a job that fits has waited longer than this. [s]"""


class Seen(NamedTuple):
    """Buffers for the observations of the simulations that await a decision (see ``envs.batch.Observation``)."""

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


@compiled_small
def fill_choices(s: Any, layout: Any, rows: int, selectable: Any, at: int, delays: Any) -> None:
    """Write which rows and which delays can be chosen.

    Args:
        s: the state.
        layout: layout of observations and actions.
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
    """Write the observation of one simulation to row ``a`` of ``seen``, whose offsets must be set."""
    at = seen.queue_offsets[a]
    rows = seen.queue_offsets[a + 1] - at - layout.wait
    fill_queue(s, layout.queue, rows, layout.wait == 1, seen.queue, at)
    fill_choices(s, layout, rows, seen.selectable, at, seen.delays[a])
    beside = seen.running_offsets[a]
    fill_running(s, layout.running, seen.running_offsets[a + 1] - beside, seen.running, beside)
    if layout.supply_rows > 0:
        seen.slot[a] = fill_supply(s, layout.supply, layout.supply_rows, seen.supply[a])
    fill_state(s, layout.state, seen.state[a])


@compiled
def _act(s: Any, layout: Any, row: int, delay: int) -> None:
    c = s.clock
    if layout.wait and row == min(c.last - c.first, layout.queue_rows):
        c.blocked = 1
    else:
        place(s, c.first + row, layout.delays[delay].kind, layout.delays[delay].amount)
    c.settled = 0


def step(batch: Any, layout: Any, chosen: Any, actions: Any, seen: Any, going: Any, ended: Any, counts: Any) -> None:
    """Carry out one action in each chosen simulation, advance to the next decision, and write the observations.

    Processes one simulation at a time, so that its observation is written while its state is still in the CPU cache.

    Args:
        batch: the simulations.
        layout: layout of observations and actions.
        chosen: simulations that await a decision, shape (a,).
        actions: (row, delay) of each, shape (a, 2); the row after the visible jobs means waiting. Shape (0, 2) for new
            simulations, which are advanced to their first decision.
        seen: output; buffers for a simulations, filled from the start, without simulations that ended.
        going: output; the simulations observed, shape (a,).
        ended: output; whether each simulation ended, bool, shape (a,).
        counts: output; number of simulations observed, of their queue rows, and of their running jobs.
    """
    written = 0
    seen.queue_offsets[0] = seen.running_offsets[0] = 0
    for a in range(chosen.shape[0]):
        b = chosen[a]
        s = one_of(batch, b)
        if actions.shape[0] > 0:
            _act(s, layout, actions[a, 0], actions[a, 1])
        ended[a] = not advance(s)
        update_totals(s, batch.totals[b], batch.user_of[b], batch.users[b], layout.terms, batch.values[b])
        if not ended[a]:
            c = s.clock
            going[written] = b
            rows = min(c.last - c.first, layout.queue_rows) + layout.wait
            seen.queue_offsets[written + 1] = seen.queue_offsets[written] + rows
            seen.running_offsets[written + 1] = seen.running_offsets[written] + min(c.running, layout.running_rows)
            observe_one(s, layout, seen, written)
            written += 1
    counts[0], counts[1], counts[2] = written, seen.queue_offsets[written], seen.running_offsets[written]


@cache
def compiled_step() -> Callable[..., None]:
    """`step`, compiled or loaded from the cache on first use."""
    numbers = _array(N, 1)
    signature = types.void(
        BATCH_TYPE, LAYOUT_TYPE, numbers, _array(N, 2), SEEN_TYPE, numbers, _array(np.bool_, 1), numbers
    )
    return cast(Callable[..., None], entry("batch-step", step, signature))
