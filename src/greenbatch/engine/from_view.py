"""The observation of a learned policy for a `View`, computed by the same functions as in batches of simulations.

A view is converted to the `State` of a simulation, as far as it contains one: waiting jobs, running jobs by expected
end, the forecast and the clock. Nothing else is required, so a view of a live queue is sufficient.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types as _types

from greenbatch.engine.batch import LAYOUT_TYPE, SEEN_TYPE, Layout, Seen, observe_one
from greenbatch.engine.compile import entry
from greenbatch.engine.interface import View
from greenbatch.engine.stacked import STATE_TYPE
from greenbatch.engine.state import CLOCK, JOB, QUEUED, RANKED, RUNNING, SEGMENT, SETTINGS, SLOT, STEP, N, State

types: Any = _types


def _records(array: Any) -> Any:
    return array.view(np.recarray)


_UNUSED: dict[str, Any] = {
    "arrivals": np.zeros(0, N), "running": _records(np.zeros(0, RUNNING)), "profile": _records(np.zeros(0, STEP)),
    "plan": _records(np.zeros(0, SLOT)), "ranked": _records(np.zeros(0, RANKED)), "started": np.zeros(0, N),
}  # fmt: skip
"""Parts of a state that describe the course of a simulation."""


def state_of(view: View) -> State:
    """Convert a view to the state of a simulation, with only the parts that features are computed from.

    Row ``i`` of ``jobs`` is the ``i``-th waiting job; running jobs have no row there. Start and end times, actual run
    times and everything else about the course of a simulation are zero.
    """
    queue, running = view.queue, view.running
    q, r = queue.submit_s.shape[0], running.expected_end_s.shape[0]
    jobs, waiting, expected = np.zeros(max(q, 1), JOB), np.zeros(q + 1, QUEUED), np.zeros(max(r, 1), RUNNING)
    for column in ("submit_s", "power_w", "user"):
        jobs[column][:q] = getattr(queue, column)
    jobs["requested_s"][:q], jobs["processors"][:q] = queue.requested_time_s, queue.processors
    waiting["job"][:q], waiting["processors"][:q] = np.arange(q), queue.processors
    waiting["requested_s"][:q] = queue.requested_time_s
    expected["end_s"][:r], expected["processors"][:r] = running.expected_end_s, running.processors
    expected["power_w"][:r] = running.power_w
    clock, fixed = np.zeros(1, CLOCK), np.zeros(1, SETTINGS)
    clock["now_s"], clock["free"], clock["load_w"] = view.now_s, view.nodes.free_processors.sum(), view.load_w
    clock["arrived_s"], clock["last"], clock["running"] = view.last_submission_s, q, r
    fixed["processors"], fixed["idle_w"] = view.nodes.processors.sum(), view.nodes.idle_power_w.sum()
    supply_w, breaks = _forecast(view, fixed)
    return State(
        jobs=_records(jobs), queue=_records(waiting), expected=_records(expected),
        segments=_records(np.zeros(r + 4 + breaks, SEGMENT)), columns=np.zeros((6, max(q, 1))),
        attributes=np.column_stack(view.attributes).astype(np.float64, copy=False), supply_w=supply_w,
        set=_records(fixed)[0], clock=_records(clock)[0], **_UNUSED,
    )  # fmt: skip


def _forecast(view: View, fixed: Any) -> tuple[Any, int]:
    """Fill in the settings of a view's forecast; return it as a repeating series, and the slots of the longest job.

    The current slot keeps its number on the clock, so that the forecast beyond the view's window repeats that window.
    """
    supply = view.supply
    slots = supply.renewable_w.shape[0]
    if slots == 0:
        return np.zeros(1), 0
    fixed["supply_step_s"], fixed["supply_origin_s"] = supply.step_s, supply.origin_s
    fixed["supply_slots"] = fixed["forecast_slots"] = slots
    fixed["supply_repeat"] = 1
    power_w = np.asarray(supply.renewable_w, dtype=np.float64)
    first = int((view.now_s - supply.origin_s) // supply.step_s) % slots
    longest_s = float(view.queue.requested_time_s.max(initial=0.0))
    return np.concatenate([power_w[slots - first :], power_w[: slots - first]]), int(longest_s / supply.step_s)


def _observe_state(s: Any, layout: Any, seen: Any) -> None:
    observe_one(s, layout, seen, 0)


def observe_view(view: View, layout: Layout) -> Seen:
    """The observation of a learned policy for a view: tables as for a batch of one simulation.

    Args:
        view: the view, with at least one waiting job.
        layout: layout of observations and actions.
    """
    rows = min(view.job_id.shape[0], layout.queue_rows) + int(layout.wait)
    beside = min(view.running.job_id.shape[0], layout.running_rows)
    seen = Seen(
        np.zeros((rows, layout.queue.shape[0]), np.float32), np.array([0, rows]), np.zeros(rows, np.bool_),
        np.zeros((beside, layout.running.shape[0]), np.float32), np.array([0, beside]),
        np.zeros((1, layout.supply_rows, layout.supply.shape[0]), np.float32), np.zeros(1, N),
        np.zeros((1, layout.state.shape[0]), np.float32), np.zeros((1, layout.delays.shape[0]), np.bool_),
    )  # fmt: skip
    _compiled()(state_of(view), layout, seen)
    return seen


@cache
def _compiled() -> Any:
    return entry("observe-view", _observe_state, types.void(STATE_TYPE, LAYOUT_TYPE, SEEN_TYPE))
