"""Many simulations side by side, each waiting for a decision: step them and write their observations; or one of them.

Arrays of `State` with an additional first axis. A step works on some of the simulations and does not touch the others,
so threads can share a batch; the result does not depend on how they share it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba import types

from greenbatch.engine.capacity.admission import choosable_jobs, choosable_position, keeps_pools
from greenbatch.engine.capacity.suspension import may_suspend
from greenbatch.engine.capacity.value import count_service
from greenbatch.engine.codes import DELAY_RELEASES, LOG_FULL, NO_DELAY, OK, START_JOB, SUSPEND_JOB
from greenbatch.engine.limits import can_be_chosen
from greenbatch.engine.machine.node_choice import node_count, prefer_node
from greenbatch.engine.machine.node_tables import ANY
from greenbatch.engine.machine.nodes import forget_placed
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.observe import features
from greenbatch.engine.observe.image import CHANNELS, bytes_of, draw
from greenbatch.engine.observe.reward_terms import update_totals
from greenbatch.engine.observe.stacked import Batch, StateType, one_of, type_of
from greenbatch.engine.records import Bools, Column, Delay, Ints, Singles, Table, dtype_of
from greenbatch.engine.state import State
from greenbatch.engine.step import Action, advance, apply, start_now, wait_until
from greenbatch.engine.views.codec import state_of
from greenbatch.engine.views.interface import View
from greenbatch.machine_code.compile import compiled_small, entry, whole
from greenbatch.machine_code.references import by_reference


class Layout(NamedTuple):
    """Layout of observations and actions."""

    queue: Table[Column]
    """Columns of waiting jobs."""
    running: Table[Column]
    """Columns of running jobs."""
    supply: Table[Column]
    """Columns of forecast slots, or of ticks ahead."""
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
    """Number of forecast slots, or of ticks ahead, observed."""
    attributes: int
    """1 if a column of waiting jobs is one of `interface.Attributes`."""
    suspend: int
    """1 if suspending a running job is an action."""
    wait: int
    """1 if waiting until the next event is an action."""
    only_fitting: int
    """1 if only jobs that fit now can be chosen."""
    per_node: int
    """1 if there is one row per visible job and node, the rows of a job being adjacent."""
    image_ticks: int
    """Ticks of the resource image; 0 for none."""
    image_gpus: int
    """GPUs of the machine, for the image."""
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
    image: Any
    """uint8, see `engine.observe.image`."""


def new_seen(layout: Layout, simulations: int, jobs: int, running: int, each: int, units: int) -> Seen:
    """Buffers for the observations of some simulations.

    Args:
        layout: layout of observations and actions.
        simulations: number of simulations.
        jobs: largest number of waiting jobs in one of them.
        running: largest number of running jobs.
        each: rows of a job: nodes, if there is one for each, or 1.
        units: processors and GPUs of the machine, for the image.
    """
    rows = simulations * (min(layout.queue_rows, jobs) * each + layout.suspend + layout.wait)
    beside, single = simulations * min(layout.running_rows, running), np.float32
    queue, other, supply, state, delays = (len(columns) for columns in layout[:5])
    return Seen(
        np.zeros((rows, queue), single), np.zeros(simulations + 1, np.int64), np.zeros(rows, np.bool_),
        np.zeros((beside, other), single), np.zeros(simulations + 1, np.int64),
        np.zeros((simulations, layout.supply_rows, supply), single), np.zeros(simulations, np.int64),
        np.zeros((simulations, state), single), np.zeros((simulations, delays), np.bool_),
        np.zeros((simulations, len(CHANNELS), layout.image_ticks, bytes_of(units)), np.uint8),
    )  # fmt: skip


def kind_of(dtype: Any, dimensions: int) -> Any:
    """Compiled type of a contiguous array, or of a number."""
    one = numba.from_dtype(np.dtype(dtype))
    return types.Array(one, dimensions, "C") if dimensions else one


def tuple_of(part: Any, *kinds: tuple[Any, int]) -> Any:
    """Compiled type of a tuple of arrays and numbers, each of a type and a number of dimensions."""
    return types.BaseTuple.from_types([kind_of(*each) for each in kinds], part)


LAYOUT_TYPE = tuple_of(
    Layout, *[(dtype_of(Column), 1)] * 4, (dtype_of(Delay), 1), (np.int64, 1), *[(np.int64, 0)] * 10, (np.float64, 0)
)
"""Compiled type of `Layout`."""
SEEN_TYPE = tuple_of(
    Seen, (np.float32, 2), (np.int64, 1), (np.bool_, 1), (np.float32, 2), (np.int64, 1), (np.float32, 3), (np.int64, 1),
    (np.float32, 2), (np.bool_, 2), (np.uint8, 4),
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
        found = features.fill_pair_choices(s, jobs, seen.selectable, at)
        overdue = found > 0 and _must_start(s, layout)
    for i in range(0 if layout.per_node else jobs):
        job = features.job_in(s, i)
        can_start = can_be_chosen(s, job)
        seen.selectable[at + i] = can_start or not layout.only_fitting
        if layout.wait and can_start and c.now_s - s.jobs[job].submit_s > layout.longest_hold_s:
            overdue = True
    if layout.suspend:
        seen.selectable[at + rows_of(s, layout) - layout.wait - 1] = may_suspend(s.capacity, s)
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
    return whole(min(choosable_jobs(s.capacity, s.clock), layout.queue_rows))


@compiled_small
def rows_of(s: State, layout: Layout) -> int:
    """Number of rows of the queue's table that are observed, suspending and waiting included."""
    each = whole(node_count(s.machine)) if layout.per_node else 1
    return visible_jobs(s, layout) * each + layout.suspend + layout.wait


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
    """Write the tables of one simulation to row ``a`` of ``seen``, and where the next row begins."""
    at, beside, jobs = seen.queue_offsets[a], seen.running_offsets[a], visible_jobs(s, layout)
    after, running = at + rows_of(s, layout), whole(min(s.clock.running, layout.running_rows))
    seen.queue_offsets[a + 1], seen.running_offsets[a + 1] = after, beside + running
    if layout.per_node:
        features.fill_pair_rows(s, layout.queue, jobs, seen.queue, at)
    else:
        features.fill_queue(s, layout.queue, jobs, seen.queue, at)
    if layout.suspend:
        features.fill_extra(layout.queue, features.IS_SUSPEND, seen.queue, after - layout.wait - 1)
    if layout.wait:
        features.fill_extra(layout.queue, features.IS_WAIT, seen.queue, after - 1)
    features.fill_running(s, layout.running, running, seen.running, beside)
    if layout.image_ticks > 0:
        draw(s, layout.image_ticks, layout.image_gpus, seen.image[a])
    if layout.supply_rows > 0 and layout.supply[0].feature >= features.FREE_PROCESSORS:
        features.fill_ticks(s, layout.supply, layout.supply_rows, seen.supply[a])
        seen.slot[a] = 0
    elif layout.supply_rows > 0:
        seen.slot[a] = features.fill_supply(s, layout.supply, layout.supply_rows, seen.supply[a])
    features.fill_state(s, layout.state, seen.state[a])


@compiled_small
def chosen_action(s: State, layout: Layout, row: int, delay: int) -> Action:
    """What a choice of a row and a delay means; a node is passed to the machine."""
    if layout.wait and row == rows_of(s, layout) - 1:
        return wait_until(np.inf)
    if layout.suspend and row == rows_of(s, layout) - layout.wait - 1:
        return Action(SUSPEND_JOB, 0, NO_DELAY, 0.0)
    if layout.per_node:
        nodes = whole(node_count(s.machine))
        prefer_node(s.machine, whole(row % nodes), ANY)
        return start_now(whole(choosable_position(s.capacity, s.queue.job, s.clock, whole(row // nodes))))
    chosen = layout.delays[delay]
    position = whole(choosable_position(s.capacity, s.queue.job, s.clock, whole(row)))
    return Action(START_JOB, position, whole(chosen.kind), chosen.amount)


@compiled_small
def next_choice(s: State, layout: Layout, seen: Seen, a: int, batch: Batch, b: int) -> bool:
    """`advance_to_choice`, and update what rewards are computed from; whether there is a choice.

    Where jobs remember their starts, there is a log for one step only, which is emptied once it has been read.
    """
    c, totals = s.clock, batch.totals[b]
    while True:
        going = advance_to_choice(s, layout, seen, a)
        forgets = bool(forget_placed(s.machine) or keeps_pools(s.capacity))
        full = forgets and c.status == LOG_FULL
        if not (going or full):
            count_service(s.capacity, s.ending, c, True)
        update_totals(s, totals, batch.user_of[b], batch.users[b], layout.terms, batch.values[b])
        if forgets:
            c.logged = totals.read = 0
        if not full:
            return going
        c.status = OK


def step(
    batch: Batch, layout: Layout, chosen: Ints, actions: Ints, seen: Seen, going: Ints, ended: Bools, counts: Ints
) -> None:  # fmt: skip
    """Carry out one action in each chosen simulation, advance to the next decision, and write the observations.

    Processes one simulation at a time, so that its observation is written while its state is still in the CPU cache.

    Args:
        batch: the simulations.
        layout: layout of observations and actions.
        chosen: simulations that await a decision, shape (a,).
        actions: (row, delay) of each, shape (a, 2); after the rows of jobs come those for suspending and for waiting,
            if these are actions. Shape (0, 2) for new
            simulations, which are advanced to their first decision.
        seen: output; buffers for a simulations, filled from the start, without simulations that ended.
        going: output; the simulations observed, shape (a,).
        ended: output; whether each simulation ended, bool, shape (a,).
        counts: output; number of simulations observed, of their queue rows, and of their running jobs.
    """
    written, whole_batch = 0, by_reference(batch)
    layout, seen = by_reference(layout), by_reference(seen)
    seen.queue_offsets[0] = seen.running_offsets[0] = 0
    for a in range(chosen.shape[0]):
        b = chosen[a]
        s = by_reference(one_of(batch, b))
        if actions.shape[0] > 0:
            apply(s, chosen_action(s, layout, actions[a, 0], actions[a, 1]))
            s.clock.settled = 0
        ended[a] = not next_choice(s, layout, seen, written, whole_batch, b)
        if not ended[a]:
            going[written] = b
            observe_one(s, layout, seen, written)
            written += 1
    counts[0], counts[1], counts[2] = written, seen.queue_offsets[written], seen.running_offsets[written]


@cache
def compiled_step(batch: Any) -> Any:
    """`step` for a batch of a type of Numba's, compiled or loaded from the cache on first use."""
    numbers, actions, ended = kind_of(np.int64, 1), kind_of(np.int64, 2), kind_of(np.bool_, 1)
    of_all = LAYOUT_TYPE, numbers, actions, SEEN_TYPE, numbers, ended, numbers
    return entry("batch-step", step, types.void(batch, *of_all))


# ---------------------------------------------------------------- one simulation


def observe_state(state: State, layout: Layout) -> Seen:
    """The observation of a policy in the state of a simulation: tables as for a batch of one.

    Args:
        state: the state, in which at least one job waits.
        layout: layout of observations and actions.
    """
    clock, machine = cast(Any, state.clock), cast(Any, state.machine)
    each, units = machine.nodes.shape[0] if layout.per_node else 1, int(machine.totals.processors) + layout.image_gpus
    seen = new_seen(layout, 1, int(clock["last"] - clock["first"]), int(clock["running"]), each, units)
    _compiled_choice(type_of(state))(state, layout, seen, OBSERVE, 0)
    shown = int(seen.queue_offsets[1])
    if shown == seen.queue.shape[0]:
        return seen
    return seen._replace(queue=seen.queue[:shown], selectable=seen.selectable[:shown])  # not all jobs can be chosen


def carry_out(state: State, layout: Layout, row: int, delay: int) -> None:
    """Carry out the choice of a row and a delay in the state that was observed."""
    _compiled_choice(type_of(state))(state, layout, new_seen(layout, 1, 0, 0, 1, 0), row, delay)


OBSERVE = -1
"""Instead of a row, what has `_choose` observe."""


def _choose(s: State, layout: Layout, seen: Seen, row: int, delay: int) -> None:
    """Carry out the choice of a row and a delay, or observe: one function, so that it is compiled once."""
    s, layout, seen = by_reference(s), by_reference(layout), by_reference(seen)
    if row == OBSERVE:
        fill_choices(s, layout, seen, 0)
        observe_one(s, layout, seen, 0)
    else:
        apply(s, chosen_action(s, layout, row, delay))
        s.clock.settled = 0


@cache
def _compiled_choice(states: StateType) -> Any:
    return entry("choice", _choose, types.void(states.numba, LAYOUT_TYPE, SEEN_TYPE, types.int64, types.int64))


def observe_view(view: View, layout: Layout, machine: Machine | None = None) -> Seen:
    """The observation of a learned policy for a view: tables as for a batch of one simulation.

    Args:
        view: the view, with at least one waiting job.
        layout: layout of observations and actions.
        machine: the machine of the view, see `engine.views.decode_nodes.MachineOfViews`; by default a pool.
    """
    state = state_of(view, machine=machine, attributes=bool(layout.attributes))
    seen = layout._replace(image_ticks=0) if layout.image_ticks else layout  # of a varying capacity: not in views
    return observe_state(state, seen)
