"""The observation of a learned policy in the state of one simulation, and its choice carried out there.

The functions are those of a batch of simulations, see `engine.observe.batch`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
from numba import types

from greenbatch.engine.compile import entry
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.machine_code.references import by_reference
from greenbatch.engine.observe.batch import (
    LAYOUT_TYPE,
    SEEN_TYPE,
    Layout,
    Seen,
    chosen_action,
    fill_choices,
    observe_one,
)
from greenbatch.engine.observe.image import CHANNELS, bytes_of
from greenbatch.engine.observe.stacked import StateType, type_of
from greenbatch.engine.state import State
from greenbatch.engine.step import apply
from greenbatch.engine.views.codec import state_of
from greenbatch.engine.views.interface import View


def observe_state(state: State, layout: Layout) -> Seen:
    """The observation of a policy in the state of a simulation: tables as for a batch of one.

    Args:
        state: the state, in which at least one job waits.
        layout: layout of observations and actions.
    """
    clock, machine = cast(Any, state.clock), cast(Any, state.machine)
    each = machine.nodes.shape[0] if layout.per_node else 1
    waiting, running = int(clock["last"] - clock["first"]), int(clock["running"])
    rows = min(waiting, layout.queue_rows) * each + layout.suspend + layout.wait
    beside, units = min(running, layout.running_rows), int(machine.totals.processors) + layout.image_gpus
    seen = Seen(
        np.zeros((rows, layout.queue.shape[0]), np.float32), np.zeros(2, np.int64), np.zeros(rows, np.bool_),
        np.zeros((beside, layout.running.shape[0]), np.float32), np.zeros(2, np.int64),
        np.zeros((1, layout.supply_rows, layout.supply.shape[0]), np.float32), np.zeros(1, np.int64),
        np.zeros((1, layout.state.shape[0]), np.float32), np.zeros((1, layout.delays.shape[0]), np.bool_),
        np.zeros((1, len(CHANNELS), layout.image_ticks, bytes_of(units)), np.uint8),
    )  # fmt: skip
    _compiled("observe", type_of(state))(state, layout, seen)
    shown = int(seen.queue_offsets[1])  # fewer where not all waiting jobs can be chosen
    return seen._replace(queue=seen.queue[:shown], selectable=seen.selectable[:shown])


def carry_out(state: State, layout: Layout, row: int, delay: int) -> None:
    """Carry out the choice of a row and a delay in the state that was observed."""
    _compiled("act", type_of(state))(state, layout, row, delay)


def _observe(s: State, layout: Layout, seen: Seen) -> None:
    s, layout, seen = by_reference(s), by_reference(layout), by_reference(seen)
    fill_choices(s, layout, seen, 0)
    observe_one(s, layout, seen, 0)


def _act(s: State, layout: Layout, row: int, delay: int) -> None:
    s, layout = by_reference(s), by_reference(layout)
    apply(s, chosen_action(s, layout, row, delay))
    s.clock.settled = 0


@cache
def _compiled(name: str, states: StateType) -> Any:
    if name == "observe":
        return entry(name, _observe, types.void(states.numba, LAYOUT_TYPE, SEEN_TYPE))
    return entry(name, _act, types.void(states.numba, LAYOUT_TYPE, types.int64, types.int64))


def observe_view(view: View, layout: Layout, machine: Machine | None = None) -> Seen:
    """The observation of a learned policy for a view: tables as for a batch of one simulation.

    Args:
        view: the view, with at least one waiting job.
        layout: layout of observations and actions.
        machine: the machine of the view, see `engine.views.decode_nodes.MachineOfViews`; by default a pool.
    """
    state = state_of(view, machine=machine, attributes=bool(layout.attributes))
    return observe_state(state, layout._replace(image_ticks=0))  # of a varying capacity, not driven from views
