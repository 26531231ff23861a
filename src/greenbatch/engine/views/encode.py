"""A state as a view: what a policy sees of it; `decode` does the reverse."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from greenbatch.engine.capacity.varying import Varying
from greenbatch.engine.machine.node_tables import ON, Nodes
from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.power.build import seen_storage
from greenbatch.engine.prediction.protocol import predicts
from greenbatch.engine.records import Int32s, Ints
from greenbatch.engine.scores import queue_now
from greenbatch.engine.state import State
from greenbatch.engine.views.interface import CAUSES, NOWHERE, Capacity, Placements, Running, Supply, View
from greenbatch.engine.views.interface import Nodes as SeenNodes


def view_of(state: State, job_id: Any, supply: Supply) -> View:
    """What a policy sees of a state.

    Args:
        state: the state.
        job_id: number of each job, shape (n,).
        supply: the forecast.
    """
    c, totals = state.clock, state.machine.totals
    running = state.expected[c.expected_first : c.expected_first + c.running]
    waiting = state.queue.job[c.first : c.last]
    queue, expected_s = queue_now(state), state.jobs["requested_s"][running["job"]]
    if predicts(state.predictor):
        expected_s = np.array(cast(Any, state.predictor.jobs)["expected_time_s"][running["job"]])
    else:
        queue = queue._replace(predicted=queue.predicted._replace(expected_time_s=queue.requested_time_s))
    return View(
        now_s=float(c.now_s), job_id=job_id[waiting],
        queue=queue,
        running=Running(
            job_id[running["job"]], running["start_s"].copy(), running["end_s"].copy(),
            running["processors"].astype(np.int64), running["power_w"].copy(),
            state.jobs["user"][running["job"]].astype(np.int64), expected_s,
        ),
        **_nodes(state.machine, running["job"]),
        supply=supply, load_w=float(totals.load_w), last_submission_s=float(c.arrived_s), submitted=int(c.arrived),
        cause=CAUSES.get(int(c.event), "decision"), storage=seen_storage(state.power),
        capacity=_capacity(state, waiting, job_id),
    )  # fmt: skip


def _nodes(machine: Machine, running: Ints) -> dict[str, Any]:
    """The fields ``nodes`` and ``placements`` of a view.

    Args:
        machine: the machine.
        running: rows of the running jobs, in the order of the view.
    """
    totals = machine.totals
    if not isinstance(machine, Nodes):
        row = [int(totals.processors)], [int(totals.free)], [float(totals.base_power_w)]
        return {"nodes": SeenNodes(*map(np.array, row)), "placements": NOWHERE}
    nodes: Any = machine.nodes
    is_on = nodes["phase"] == ON
    seen = SeenNodes(
        nodes["processors"].astype(np.int64), nodes["free"].astype(np.int64), np.where(is_on, nodes["idle_w"], 0.0),
        nodes["free_gpus"].astype(np.int64), nodes["free_memory_mb"].copy(), is_on,
    )  # fmt: skip
    return {"nodes": seen, "placements": _placements(machine, running)}


def _capacity(state: State, waiting: Int32s, job_id: Ints) -> Capacity | None:
    """The field ``capacity`` of a view.

    Args:
        state: the state.
        waiting: rows of the waiting jobs, in the order of the view.
        job_id: number of each job.
    """
    capacity = state.capacity
    if not isinstance(capacity, Varying):
        return None
    counts: Any = capacity.counts
    levels: Any = capacity.levels[counts.level :]
    known = levels[levels["time_s"] <= state.clock.now_s + counts.horizon_s]
    return Capacity(
        ready=np.isin(waiting, capacity.ready[: counts.ready]), free_gpus=int(state.machine.totals.free_gpus),
        time_s=known["time_s"].copy(), processors=known["processors"].astype(np.int64),
        gpus=known["gpus"].astype(np.int64), suspended_job_id=job_id[capacity.suspended[: counts.suspended]],
    )  # fmt: skip


def _placements(machine: Nodes, running: Ints) -> Placements:
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
    return Placements(
        at, each["node"].astype(np.int64), each["processors"].astype(np.int64), each["taken"].astype(np.int64),
        each["gpus"].astype(np.int64), each["memory_mb"].copy(), demands["volume_mb"][running[at]],
    )  # fmt: skip
