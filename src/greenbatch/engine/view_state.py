"""What a learned policy sees of a `View`, through the very functions that batches of simulations use.

A view is laid out as the `State` of a simulation, as far as it shows one: waiting jobs, running jobs by expected
end, the forecast, the clock. Nothing else is known, so a view of a live queue will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types as _types

from greenbatch.engine.batch import LAYOUT_TYPE, SEEN_TYPE, Layout, Seen, observe_one
from greenbatch.engine.compile import entry
from greenbatch.engine.loop import STATE_TYPE
from greenbatch.engine.seam import View
from greenbatch.engine.state import CLOCK, JOB, QUEUED, RANKED, RUNNING, SEGMENT, SETTINGS, SLOT, STEP, N, State

types: Any = _types


def _records(rows: int, dtype: Any) -> Any:
    return np.zeros(rows, dtype).view(np.recarray)


def state_of(view: View) -> State:
    """Lay out a view as the state of a simulation: what features are computed from, and nothing more.

    Row ``i`` of ``jobs`` is the ``i``-th waiting job; running jobs have no row there. Start and end times, actual run
    times and everything that belongs to the course of a simulation are zero.
    """
    queue, running, supply = view.queue, view.running, view.supply
    q, r = queue.submit_s.shape[0], running.expected_end_s.shape[0]
    jobs, waiting, expected = _records(max(q, 1), JOB), _records(q + 1, QUEUED), _records(max(r, 1), RUNNING)
    for column in ("submit_s", "power_w", "user"):
        jobs[column][:q] = getattr(queue, column)
    jobs["requested_s"][:q], jobs["processors"][:q] = queue.requested_time_s, queue.processors
    waiting["job"][:q], waiting["processors"][:q] = np.arange(q), queue.processors
    waiting["requested_s"][:q] = queue.requested_time_s
    expected["end_s"][:r], expected["processors"][:r] = running.expected_end_s, running.processors
    expected["power_w"][:r] = running.power_w
    fixed, clock = _records(1, SETTINGS)[0], _records(1, CLOCK)[0]
    fixed.processors, fixed.idle_w = view.nodes.processors.sum(), view.nodes.idle_power_w.sum()
    clock.now_s, clock.free, clock.load_w = view.now_s, view.nodes.free_processors.sum(), view.load_w
    clock.arrived_s, clock.last, clock.running = view.last_submission_s, q, r
    slots = supply.renewable_w.shape[0]
    breaks = r + 4
    supply_w = np.zeros(1)
    if slots:
        fixed.supply_step_s, fixed.supply_origin_s = supply.step_s, supply.origin_s
        fixed.supply_slots, fixed.forecast_slots, fixed.supply_repeat = slots, slots, 1
        # The present slot keeps its number on the clock; the window that the view shows repeats beyond its end.
        supply_w = np.roll(supply.renewable_w, int((view.now_s - supply.origin_s) // supply.step_s) % slots)
        breaks += int(queue.requested_time_s.max(initial=0.0) / supply.step_s)
    return State(
        jobs=jobs, arrivals=np.zeros(0, N), queue=waiting, running=_records(0, RUNNING), expected=expected,
        profile=_records(0, STEP), segments=_records(breaks, SEGMENT), plan=_records(0, SLOT),
        ranked=_records(0, RANKED), columns=np.zeros((6, max(q, 1))), started=np.zeros(0, N),
        attributes=np.column_stack(view.attributes), supply_w=supply_w, set=fixed, clock=clock,
    )  # fmt: skip


def _observe_state(s: Any, layout: Any, seen: Any) -> None:
    observe_one(s, layout, seen, 0)


def observe_view(view: View, layout: Layout) -> Seen:
    """What a learned policy sees of a view: tables for one simulation, as of a batch of one.

    Args:
        view: the view; at least one job waits.
        layout: what is seen and what may be done.
    """
    rows = min(view.job_id.shape[0], layout.queue_rows) + int(layout.wait)
    beside = min(view.running.job_id.shape[0], layout.running_rows)
    seen = Seen(
        np.zeros((rows, layout.queue.shape[0]), np.float32), np.array([0, rows]), np.zeros(rows, np.bool_),
        np.zeros((beside, layout.running.shape[0]), np.float32), np.array([0, beside]),
        np.zeros((1, layout.supply_rows, layout.supply.shape[0]), np.float32), np.zeros(1, N),
        np.zeros((1, layout.state.shape[0]), np.float32), np.zeros((1, layout.delays.shape[0]), np.bool_),
    )  # fmt: skip
    signature = types.void(STATE_TYPE, LAYOUT_TYPE, SEEN_TYPE)
    entry("observe-view", _observe_state, signature)(state_of(view), layout, seen)
    return seen
