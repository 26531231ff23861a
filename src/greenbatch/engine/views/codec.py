"""A state as a view, which is what a policy sees of it, and a view as a state, in which compiled policies decide.

The state of a view is that of a simulation, as far as the view contains one: waiting jobs, running jobs by expected
end, the forecast and the clock. Nothing else is required, so a view of a live queue is sufficient.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy.slots import interval_at
from greenbatch.engine.capacity.expected import units_from
from greenbatch.engine.capacity.varying import CapacityPart, Varying
from greenbatch.engine.machine.node_tables import ON, Nodes
from greenbatch.engine.machine.pool import Pool
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.power.build import seen_storage, supply_of_series
from greenbatch.engine.power.costs import no_costs
from greenbatch.engine.power.protocol import Power, power_of
from greenbatch.engine.prediction.known import Predictors, no_predictor, predicts
from greenbatch.engine.records import (
    Downtime,
    Int32s,
    Ints,
    MachineTotals,
    Prediction,
    Slots,
    Table,
    record_of,
    table_of,
)
from greenbatch.engine.scores import queue_now
from greenbatch.engine.state import LOG_ROWS, State, allocate, log_rows
from greenbatch.engine.views import interface as seen
from greenbatch.engine.views.interface import CAUSES, NOWHERE, Placements, View, types_of

# ---------------------------------------------------------------- a state as a view


def view_of(
    state: State, job_id: Any, supply: seen.Supply, cluster: Cluster | None = None, partitions: Any = None
) -> View:  # fmt: skip
    """What a policy sees of a state.

    Args:
        state: the state.
        job_id: number of each job, shape (n,).
        supply: the forecast.
        cluster: the machines as configured.
        partitions: number of a partition -> its name.
    """
    c, jobs, queue = state.clock, cast(Any, state.jobs), queue_now(state)
    running: Any = state.expected[c.expected_first : c.expected_first + c.running]
    waiting, rows = state.queue.job[c.first : c.last], running["job"]
    if predicts(state.predictor):
        expected_s = state.predictor.jobs["expected_time_s"][rows]
    else:
        expected_s = jobs["requested_s"][rows]
        queue = queue._replace(predicted=queue.predicted._replace(expected_time_s=queue.requested_time_s))
    known = (running[name] for name in ("start_s", "end_s", "processors", "power_w"))
    nodes, placements = _nodes(state.machine, rows)
    return View(
        now_s=float(c.now_s), job_id=job_id[waiting], queue=queue,
        running=_copied(seen.Running, job_id[rows], *known, jobs["user"][rows], expected_s),
        nodes=nodes, placements=placements, supply=supply, load_w=float(state.machine.totals.load_w),
        last_submission_s=float(c.arrived_s), submitted=int(c.arrived), cause=CAUSES.get(int(c.event), "decision"),
        storage=seen_storage(state.power), capacity=_capacity(state, waiting, job_id), cluster=cluster,
        partitions=partitions or {},
    )  # fmt: skip


def _copied(kind: Any, *columns: Any) -> Any:
    """A part of a view with copies of some columns, of the types that it has."""
    return kind(*map(np.array, columns, types_of(kind)))


def _nodes(machine: Machine, running: Int32s) -> tuple[seen.Nodes, Placements]:
    """The fields ``nodes`` and ``placements`` of a view.

    Args:
        machine: the machine.
        running: rows of the running jobs, in the order of the view.
    """
    if not isinstance(machine, Nodes):
        totals = machine.totals
        return _copied(seen.Nodes, [totals.processors], [totals.free], [totals.base_power_w]), NOWHERE
    nodes: Any = machine.nodes
    is_on, switches = nodes["phase"] == ON, slice(None if machine.counts.on_demand else 0)
    shown = seen.Nodes(
        nodes["processors"].astype(np.int64), nodes["free"].astype(np.int64), np.where(is_on, nodes["idle_w"], 0.0),
        nodes["free_gpus"].astype(np.int64), nodes["free_memory_mb"].copy(), is_on,
        nodes["phase"][switches].astype(np.int64), nodes["switch_s"][switches].copy(),
        nodes["on_since_s"][switches].copy(),
    )  # fmt: skip
    return shown, _placements(machine, running)


def _placements(machine: Nodes, running: Int32s) -> Placements:
    """Where the running jobs run: the first part of each, then the second of those that have one, and so on."""
    demands, shares = cast(Any, machine.demands), cast(Any, machine.shares)
    jobs, parts, rows = np.arange(len(running)), demands["first"][running], []
    while jobs.size:
        rows.append((jobs, parts))
        parts = shares["of_job"][parts]
        jobs, parts = jobs[parts >= 0], parts[parts >= 0]
    if not rows:
        return NOWHERE
    at, which = (np.concatenate(column) for column in zip(*rows, strict=True))
    each = shares[which]
    node, processors, taken, gpus = (each[name].astype(np.int64) for name in ("node", "processors", "taken", "gpus"))
    volume_mb = demands["volume_mb"][running[at]]
    return Placements(at, node, processors, taken, gpus, each["memory_mb"].copy(), volume_mb)


def _capacity(state: State, waiting: Int32s, job_id: Ints) -> seen.Capacity | None:
    """The field ``capacity`` of a view.

    Args:
        state: the state.
        waiting: rows of the waiting jobs, in the order of the view.
        job_id: number of each job.
    """
    capacity, c = state.capacity, state.clock
    if not isinstance(capacity, Varying):
        return None
    counts, levels = cast(Any, capacity.counts), cast(Any, capacity.levels)[capacity.counts.level :]
    time_s = levels["time_s"][levels["time_s"] <= c.now_s + counts.horizon_s].copy()
    processors, gpus = units_from(capacity, time_s.shape[0])
    ready, suspended = capacity.ready[: counts.ready], capacity.suspended[: counts.suspended]
    rows = cast(Any, state.expected)["job"][c.expected_first : c.expected_first + c.running]
    jobs = cast(Any, capacity.jobs)[rows]
    held = (jobs[name] for name in ("processors", "gpus", "value", "first_start_s"))
    due_order = np.unique(jobs["due_s"], return_inverse=True)[1]
    left, begun_s = cast(Any, state.jobs)[suspended], cast(Any, capacity.jobs)["first_start_s"][suspended]
    columns = [left[name].astype(np.float64) for name in ("submit_s", "requested_s", "processors", "power_w", "user")]
    paused = seen.Suspended._make([*columns, begun_s, seen.Attributes(*state.attributes[suspended].T)])
    return seen.Capacity(
        np.isin(waiting, ready), int(state.machine.totals.free_gpus), time_s, processors, gpus, job_id[suspended],
        job_id[ready], _copied(seen.Held, *held, due_order), int(counts.actions) if counts.acted_s == c.now_s else 0,
        paused,
    )  # fmt: skip


# ---------------------------------------------------------------- a view as a state

MOST_SPANS = 4
"""For so many spans of each job there is room in the log of a state made from a view: jobs may be suspended there."""


def state_of(
    view: View, ahead_s: float = 0.0, longest_s: float = 0.0, machine: Machine | None = None, *,
    attributes: bool = True, stored: bool = False, downtimes: Table[Downtime] | None = None,
    capacity: CapacityPart | None = None,
) -> State:  # fmt: skip
    """Convert a view to the state of a simulation at that moment, in which requested times stand for run times.

    Rows of ``jobs`` are the waiting jobs in order, then the suspended, then the running ones.

    Args:
        view: the view.
        ahead_s: how long after now the latest start considered may be. [s]
        longest_s: longest requested time that a policy may remember, besides those of the waiting jobs. [s]
        machine: the idle machine, whose totals are those of the view from then on; by default a pool.
        attributes: fill in the attributes of the waiting jobs, which few policies read.
        stored: with the storage that the scheduler commands; otherwise the supply has none.
        downtimes: times in which no job may run, which a view does not show; by default none.
        capacity: what is powered, see `decode_capacity`; by default what is now is all of the machine.
    """
    queue, running, paused = view.queue, view.running, view.suspended
    q, r = queue.submit_s.shape[0], running.expected_end_s.shape[0]
    first = q + paused.submit_s.shape[0]  # of the running jobs
    breaks = 0
    if view.supply.renewable_w.shape[0]:
        longest_s = float(np.maximum.reduce(queue.requested_time_s, initial=longest_s))
        breaks = int((longest_s + ahead_s) / view.supply.step_s)
    spans = 1 if view.capacity is None else min(MOST_SPANS, len(view.capacity.time_s))
    rows = min(LOG_ROWS, log_rows((first + r) * spans))
    parts = _machine(view, machine), power_of_view(view, stored=stored), rows, downtimes, _predictor(view)
    state = allocate(first + r, first + r + 4 + breaks, *parts, capacity=capacity)
    jobs: Any = state.jobs
    jobs["submit_s"][:q], jobs["power_w"][:q], jobs["user"][:q] = queue.submit_s, queue.power_w, queue.user
    jobs["requested_s"][:q], jobs["processors"][:q] = queue.requested_time_s, queue.processors
    jobs["requested_s"][first:], jobs["processors"][first:] = (
        running.expected_end_s - running.start_s,
        running.processors,
    )
    jobs["submit_s"][first:], jobs["power_w"][first:], jobs["user"][first:] = (
        running.start_s,
        running.power_w,
        running.user,
    )
    if first > q:  # rarely
        _fill_suspended(state, paused, slice(q, first))
    jobs["run_s"] = jobs["requested_s"]
    jobs["promised_s"] = jobs["planned_s"] = np.nan
    waiting = state.queue
    waiting.job[:q], waiting.processors[:q] = np.arange(q), queue.processors
    waiting.requested_s[:q] = queue.requested_time_s
    begun = {
        "job": np.arange(first, first + r), "start_s": running.start_s, "end_s": running.expected_end_s,
        "requested_end_s": running.expected_end_s, "processors": running.processors, "power_w": running.power_w,
    }  # fmt: skip
    for table in (cast(Any, state.expected), cast(Any, state.ending)):
        for name in table.dtype.names:
            table[name][:r] = begun[name]
    if attributes:
        state.attributes[:q], state.attributes[first:] = np.array(view.attributes).T, np.nan
    clock: Any = state.clock  # by item, because an attribute of a record is slow in plain Python
    clock["now_s"], clock["last"], clock["running"] = view.now_s, q, r
    clock["arrived_s"], clock["arrived"] = view.last_submission_s, view.submitted
    return state


def _fill_suspended(state: State, paused: seen.Suspended, rows: slice) -> None:
    """Write what suspended jobs ask for."""
    jobs: Any = state.jobs
    jobs["requested_s"][rows], jobs["processors"][rows] = paused.requested_time_s, paused.processors
    jobs["submit_s"][rows], jobs["power_w"][rows], jobs["user"][rows] = paused.submit_s, paused.power_w, paused.user
    state.attributes[rows] = np.array(paused.attributes).T


def _machine(view: View, machine: Machine | None) -> Machine:
    made = Pool(record_of(MachineTotals), np.zeros(0, np.int32)) if machine is None else machine
    nodes, totals = view.nodes, cast(Any, made.totals)
    total: Any = itemgetter(0) if len(nodes.processors) == 1 else np.add.reduce  # faster than methods on few numbers
    totals["processors"], totals["free"] = total(nodes.processors), total(nodes.free_processors)
    boots = len(nodes.phase) > 0  # then what is on only counts while it is
    totals["load_w"], totals["base_power_w"] = view.load_w, 0.0 if boots else total(nodes.idle_power_w)
    if view.capacity is not None:
        totals["off"], totals["free_gpus"] = view.off, view.capacity.free_gpus
        totals["free"] -= totals["off"] if len(nodes.is_on) else 0  # which are free on nodes, but not powered
    return made


def _predictor(view: View) -> Predictors:
    """The predictions of a view: waiting jobs, then the suspended and the running ones."""
    if not view.predicts:
        return no_predictor()
    queue, running = view.queue.predicted, view.running.expected_time_s
    first = queue.expected_time_s.shape[0] + view.suspended.submit_s.shape[0]
    made = table_of(Prediction, first + running.shape[0])
    for name, column in zip(queue._fields, queue, strict=True):
        made[name][: column.shape[0]] = column
    made["expected_time_s"][first:] = running
    return no_predictor()._replace(jobs=made)


def power_of_view(view: View, *, stored: bool = False) -> Power:
    """A view's forecast as a repeating series, with what the view says of costs, the limit and, on request, storage.

    The current slot keeps its number on the clock, so that the forecast beyond the view's window repeats that window.
    """
    supply, n = view.supply, view.supply.renewable_w.shape[0]
    if n == 0:
        return power_of(None)
    slots = record_of(Slots, step_s=supply.step_s, origin_s=supply.origin_s, count=n, repeats=1, forecast=n)
    rows = (np.arange(n) - int(interval_at(view.now_s, supply.origin_s, supply.step_s)) % n) % n
    storage = view.storage if stored else None
    costs = supply.costs.at(rows) if supply.costs.import_price_per_kwh.shape[0] else storage and no_costs(n)
    renewable_w, limit_w = (np.asarray(each, np.float64) for each in (supply.renewable_w, supply.load_limit_w))
    return supply_of_series(slots, renewable_w[rows], costs, storage, limit_w[rows] if limit_w.shape[0] else None)
