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

from greenbatch.engine.codes import DELAY_RELEASES, START_JOB
from greenbatch.engine.compile import compiled_small, entry, whole
from greenbatch.engine.features import fill_queue, fill_running, fill_state, fill_supply, fill_wait
from greenbatch.engine.machine.node_tables import ANY
from greenbatch.engine.machine.protocol import fits, node_count, want
from greenbatch.engine.pair_rows import fill_pair_choices, fill_pair_rows
from greenbatch.engine.records import Bools, Column, Delay, Ints, Singles, Table, dtype_of
from greenbatch.engine.reward_totals import update_totals
from greenbatch.engine.stacked import Batch, StateType, batch_type, one_of
from greenbatch.engine.state import State
from greenbatch.engine.step import Action, advance, apply, start_now, wait_until

types: Any = _types


class Layout(NamedTuple):
    """Layout of observations and actions."""

    queue: Table[Column]
    """Columns of waiting jobs."""
    running: Table[Column]
    """Columns of running jobs."""
    supply: Table[Column]
    """Columns of forecast slots."""
    state: Table[Column]
    """Columns of the system state."""
    delays: Table[Delay]
    """Shape (d,), d >= 1."""
    terms: Ints
    """Codes of the reward terms, shape (t,)."""
    queue_rows: int
    """Largest number of waiting jobs observed."""
    running_rows: int
    """Largest number of running jobs observed."""
    supply_rows: int
    """Number of forecast slots observed."""
    attributes: int
    """1 if a column of waiting jobs is one of `interface.Attributes`."""
    wait: int
    """1 if waiting until the next event is an action."""
    only_fitting: int
    """1 if only jobs that fit now can be chosen."""
    per_node: int
    """1 if there is one row per visible job and node, the rows of a job being adjacent."""
    longest_hold_s: float
    """Waiting is not allowed while a job that fits has waited longer than this. [s]"""


class Seen(NamedTuple):
    """Buffers for the observations of the simulations that await a decision (see ``envs.batch.Observation``)."""

    queue: Singles
    queue_offsets: Ints
    selectable: Bools
    running: Singles
    running_offsets: Ints
    supply: Singles
    slot: Ints
    state: Singles
    delays: Bools


def _array(dtype: Any, dimensions: int) -> Any:
    return types.Array(numba.from_dtype(np.dtype(dtype)), dimensions, "C")


LAYOUT_TYPE = types.NamedTuple(
    [_array(dtype_of(Column), 1)] * 4 + [_array(dtype_of(Delay), 1), _array(np.int64, 1)] + [types.int64] * 7
    + [types.float64],
    Layout,
)  # fmt: skip
"""Compiled type of `Layout`."""
SEEN_TYPE = types.NamedTuple(
    [_array(np.float32, 2), _array(np.int64, 1), _array(np.bool_, 1), _array(np.float32, 2), _array(np.int64, 1),
     _array(np.float32, 3), _array(np.int64, 1), _array(np.float32, 2), _array(np.bool_, 2)],
    Seen,
)  # fmt: skip
"""Compiled type of `Seen`."""


@compiled_small
def fill_choices(s: State, layout: Layout, seen: Seen, a: int) -> bool:
    """Write which rows and which delays of simulation ``a`` of ``seen`` can be chosen; its first row must be set.

    Returns:
        Whether there is a choice: with pairs, whether any can be chosen.
    """
    c, at, jobs, found, overdue = s.clock, seen.queue_offsets[a], visible_jobs(s, layout), 1, False
    if layout.per_node:
        found = fill_pair_choices(s, jobs, seen.selectable, at)
        overdue = found > 0 and _must_start(s, layout)
    for i in range(0 if layout.per_node else jobs):
        job, processors = whole(s.queue.job[c.first + i]), whole(s.queue.processors[c.first + i])
        can_start = fits(s.machine, job, processors, c.now_s)
        seen.selectable[at + i] = can_start or not layout.only_fitting
        if layout.wait and can_start and c.now_s - s.jobs[job].submit_s > layout.longest_hold_s:
            overdue = True
    if layout.wait:
        seen.selectable[at + rows_of(s, layout) - 1] = not overdue
    for d in range(layout.delays.shape[0]):
        seen.delays[a, d] = layout.delays[d].kind != DELAY_RELEASES or layout.delays[d].amount <= c.running
    return bool(found > 0)


@compiled_small
def _must_start(s: State, layout: Layout) -> bool:
    """Whether nothing would end a wait, or the first job, which may not fit, has waited too long."""
    c = s.clock
    ends = c.running > 0 or s.rules.tick_s > 0.0
    return not ends or c.now_s - s.jobs[s.queue.job[c.first]].submit_s > layout.longest_hold_s


@compiled_small
def visible_jobs(s: State, layout: Layout) -> int:
    """Number of waiting jobs that are observed."""
    return whole(min(s.clock.last - s.clock.first, layout.queue_rows))


@compiled_small
def rows_of(s: State, layout: Layout) -> int:
    """Number of rows of the queue's table that are observed, waiting included."""
    each = whole(node_count(s.machine)) if layout.per_node else 1
    return visible_jobs(s, layout) * each + layout.wait


@compiled_small
def advance_to_choice(s: State, layout: Layout, seen: Seen, a: int) -> bool:
    """`advance`, with pairs until one can be chosen, and write what can be chosen to row ``a`` of ``seen``."""
    while advance(s):
        if fill_choices(s, layout, seen, a):
            return True
        apply(s, wait_until(np.inf))
    return False


@compiled_small
def observe_one(s: State, layout: Layout, seen: Seen, a: int) -> None:
    """Write the tables of one simulation to row ``a`` of ``seen``, whose offsets must be set."""
    at = seen.queue_offsets[a]
    jobs = visible_jobs(s, layout)
    if layout.per_node:
        fill_pair_rows(s, layout.queue, jobs, seen.queue, at)
    else:
        fill_queue(s, layout.queue, jobs, seen.queue, at)
    if layout.wait:
        fill_wait(layout.queue, seen.queue, seen.queue_offsets[a + 1] - 1)
    beside = seen.running_offsets[a]
    fill_running(s, layout.running, seen.running_offsets[a + 1] - beside, seen.running, beside)
    if layout.supply_rows > 0:
        seen.slot[a] = fill_supply(s, layout.supply, layout.supply_rows, seen.supply[a])
    fill_state(s, layout.state, seen.state[a])


@compiled_small
def _action(s: State, layout: Layout, row: int, delay: int) -> Action:
    """What a choice of a row and a delay means; a node is passed to the machine."""
    if layout.wait and row == rows_of(s, layout) - 1:
        return wait_until(np.inf)
    if layout.per_node:
        nodes = whole(node_count(s.machine))
        want(s.machine, whole(row % nodes), ANY)
        return start_now(whole(s.clock.first + row // nodes))
    chosen = layout.delays[delay]
    return Action(START_JOB, whole(s.clock.first + row), whole(chosen.kind), chosen.amount)


def step(
    batch: Batch, layout: Layout, chosen: Ints, actions: Ints, seen: Seen, going: Ints, ended: Bools, counts: Ints
) -> None:  # fmt: skip
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
            apply(s, _action(s, layout, actions[a, 0], actions[a, 1]))
            s.clock.settled = 0
        ended[a] = not advance_to_choice(s, layout, seen, written)
        update_totals(s, batch.totals[b], batch.user_of[b], batch.users[b], layout.terms, batch.values[b])
        if not ended[a]:
            c = s.clock
            going[written] = b
            seen.queue_offsets[written + 1] = seen.queue_offsets[written] + rows_of(s, layout)
            seen.running_offsets[written + 1] = seen.running_offsets[written] + min(c.running, layout.running_rows)
            observe_one(s, layout, seen, written)
            written += 1
    counts[0], counts[1], counts[2] = written, seen.queue_offsets[written], seen.running_offsets[written]


@cache
def compiled_step(states: StateType) -> Callable[..., None]:
    """`step` for a batch of states of a type, compiled or loaded from the cache on first use."""
    numbers = _array(np.int64, 1)
    signature = types.void(
        batch_type(states), LAYOUT_TYPE, numbers, _array(np.int64, 2), SEEN_TYPE, numbers, _array(np.bool_, 1), numbers
    )
    return cast(Callable[..., None], entry("batch-step", step, signature))
