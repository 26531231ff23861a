"""A view as a state, in which compiled policies decide: `encode` does the reverse.

The state is that of a simulation, as far as the view contains one: waiting jobs, running jobs by expected end, the
forecast and the clock. Nothing else is required, so a view of a live queue is sufficient.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from greenbatch.energy.slots import interval_at
from greenbatch.engine.machine.pool import Pool
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.power.build import supply_of_series
from greenbatch.engine.power.costs import no_costs
from greenbatch.engine.power.protocol import Power, power_of
from greenbatch.engine.prediction.known import no_predictor
from greenbatch.engine.prediction.protocol import Predictor
from greenbatch.engine.records import MachineTotals, Prediction, Slots, record_of, table_of
from greenbatch.engine.state import State, allocate, log_rows
from greenbatch.engine.views.interface import View


def state_of(
    view: View, ahead_s: float = 0.0, longest_s: float = 0.0, machine: Machine | None = None, *,
    attributes: bool = True, stored: bool = False,
) -> State:  # fmt: skip
    """Convert a view to the state of a simulation at that moment, in which requested times stand for run times.

    Rows of ``jobs`` are the waiting jobs in order, then the running jobs.

    Args:
        view: the view.
        ahead_s: how long after now the latest start considered may be. [s]
        longest_s: longest requested time that a policy may remember, besides those of the waiting jobs. [s]
        machine: the idle machine, whose totals are those of the view from then on; by default a pool.
        attributes: fill in the attributes of the waiting jobs, which few policies read.
        stored: with the storage that the scheduler commands; otherwise the supply has none.
    """
    queue, running = view.queue, view.running
    q, r = queue.submit_s.shape[0], running.expected_end_s.shape[0]
    breaks = 0
    if view.supply.renewable_w.shape[0]:
        longest_s = float(np.maximum.reduce(queue.requested_time_s, initial=longest_s))
        breaks = int((longest_s + ahead_s) / view.supply.step_s)
    parts = _machine(view, machine), power_of_view(view, stored=stored), log_rows(q + r), None, _predictor(view)
    state = allocate(q + r, q + r + 4 + breaks, *parts)
    jobs: Any = state.jobs
    jobs["submit_s"][:q], jobs["power_w"][:q], jobs["user"][:q] = queue.submit_s, queue.power_w, queue.user
    jobs["requested_s"][:q], jobs["processors"][:q] = queue.requested_time_s, queue.processors
    jobs["requested_s"][q:], jobs["processors"][q:] = running.expected_end_s - running.start_s, running.processors
    jobs["submit_s"][q:], jobs["power_w"][q:], jobs["user"][q:] = running.start_s, running.power_w, running.user
    jobs["run_s"] = jobs["requested_s"]
    jobs["promised_s"] = jobs["planned_s"] = np.nan
    waiting = state.queue
    waiting.job[:q], waiting.processors[:q] = np.arange(q), queue.processors
    waiting.requested_s[:q] = queue.requested_time_s
    jobs_running = np.arange(q, q + r)
    for table in (state.expected, state.ending):
        rows: Any = table
        rows["end_s"][:r], rows["processors"][:r] = running.expected_end_s, running.processors
        rows["job"][:r] = jobs_running
    expected, ending = state.expected, state.ending
    expected["power_w"][:r], expected["start_s"][:r] = running.power_w, running.start_s
    ending["requested_end_s"][:r] = running.expected_end_s
    if attributes:
        state.attributes[:q], state.attributes[q:] = np.array(view.attributes).T, np.nan
    clock: Any = state.clock  # by item, because an attribute of a record is slow in plain Python
    clock["now_s"], clock["last"], clock["running"] = view.now_s, q, r
    clock["arrived_s"], clock["arrived"] = view.last_submission_s, view.submitted
    return state


def _machine(view: View, machine: Machine | None) -> Machine:
    made = Pool(record_of(MachineTotals), np.zeros(0, np.int32)) if machine is None else machine
    nodes, totals, total = view.nodes, cast(Any, made.totals), np.add.reduce  # faster than methods on few numbers
    totals["processors"], totals["free"] = total(nodes.processors), total(nodes.free_processors)
    totals["load_w"], totals["base_power_w"] = view.load_w, total(nodes.idle_power_w)
    return made


def _predictor(view: View) -> Predictor:
    """The predictions of a view: waiting jobs, then the running ones."""
    if not view.predicts:
        return no_predictor()
    queue, running = view.queue.predicted, view.running.expected_time_s
    made = table_of(Prediction, queue.expected_time_s.shape[0] + running.shape[0])
    for name, column in zip(queue._fields, queue, strict=True):
        made[name][: column.shape[0]] = column
    made["expected_time_s"][queue.expected_time_s.shape[0] :] = running
    return no_predictor()._replace(jobs=made)


def power_of_view(view: View, *, stored: bool = False) -> Power:
    """A view's forecast as a repeating series, with what the view says of costs, the limit and, on request, storage.

    The current slot keeps its number on the clock, so that the forecast beyond the view's window repeats that window.
    """
    supply, count = view.supply, view.supply.renewable_w.shape[0]
    if count == 0:
        return power_of(None)
    slots = record_of(
        Slots, step_s=supply.step_s, origin_s=supply.origin_s, count=count, repeats=1, forecast=count
    )  # fmt: skip
    first = int(interval_at(view.now_s, supply.origin_s, supply.step_s)) % count
    rows = (np.arange(count) - first) % count
    seen = view.storage if stored else None
    costs = supply.costs.at(rows) if supply.costs.import_price_per_kwh.shape[0] else seen and no_costs(count)
    limit_w = np.asarray(supply.load_limit_w, dtype=np.float64)
    return supply_of_series(
        slots, np.asarray(supply.renewable_w, dtype=np.float64)[rows], costs, seen,
        limit_w[rows] if limit_w.shape[0] else None,
    )  # fmt: skip
