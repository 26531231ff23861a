"""The check of a view from outside, such as one of a live queue, before a driver decides from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.cluster.cluster import MOST_PROCESSORS
from greenbatch.engine.capabilities import parts_of, refuse
from greenbatch.engine.prepare import check_slots
from greenbatch.engine.program import Program
from greenbatch.engine.views.interface import CAUSES, NOWHERE, Predicted, View
from greenbatch.errors import InputError

_CAUSES = (*CAUSES.values(), "decision")
_LARGEST_WHOLE = 2.0**53
_LARGEST = float(np.finfo(np.float64).max)
_FINITE, _NOT_NEGATIVE, _POSITIVE, _COUNT = -_LARGEST, 0.0, float(np.nextafter(0.0, 1.0)), 1.0
_WORDS = {_FINITE: "finite", _NOT_NEGATIVE: "finite and >= 0", _POSITIVE: "finite and > 0", _COUNT: "finite and >= 1"}
_COLUMNS = {
    "queue": ("submit_s", "wait_s", "requested_time_s", "processors", "power_w", "user"),
    "running": ("start_s", "expected_end_s", "processors", "power_w", "user"),
    "supply": ("start_s", "end_s", "renewable_w"), "nodes": ("processors", "free_processors", "idle_power_w"),
}  # fmt: skip
"""Part of a view -> columns that every view has."""
_LOWEST = {
    "processors": _COUNT, "requested_time_s": _POSITIVE, **dict.fromkeys(Predicted._fields, _POSITIVE),
    **dict.fromkeys(("charge_w", "discharge_w", "charge_efficiency", "discharge_efficiency"), _POSITIVE),
    **dict.fromkeys(("power_w", "renewable_w", "free_processors", "idle_power_w"), _NOT_NEGATIVE),
    **dict.fromkeys(("stored_j", "usable_j", "loss_per_s"), _NOT_NEGATIVE),
}  # fmt: skip
"""Column, or number of storage -> its lowest value; all others must be finite."""


def checked_view(view: View, program: Program, last_s: float, cluster: Cluster) -> View:
    """A view that the engine can decide from: the same one, or a copy whose running jobs are in order.

    Args:
        view: the view.
        program: the scheduler's program.
        last_s: time of the view before, -inf for the first. [s]
        cluster: the machines.

    Raises:
        InputError: columns of a part differ in length, a value is not possible, a job number occurs twice, more
            processors are in use than there are, the clock went back, or the supply that the scheduler needs is
            missing.
    """
    if not np.isfinite([view.now_s, view.load_w, view.last_submission_s]).all():
        raise _refusal("now_s", "or load_w or last_submission_s is not finite", "give finite numbers")
    if view.now_s < last_s:
        raise _refusal("now_s", f"is {view.now_s:g}, after a view of {last_s:g}", "show views in order of time")
    if view.cause not in _CAUSES:
        raise _refusal("cause", f"is {view.cause!r}", "use " + ", ".join(_CAUSES))
    for part, names in {**_COLUMNS, "placements": NOWHERE._fields}.items():
        if not all(hasattr(getattr(view, part), name) for name in names):
            raise _refusal(part, f"is {getattr(view, part)!r:.40}", "give its columns; on a pool, nodes are one row")
    rows = {"queue": len(view.job_id), "running": len(view.running.job_id), "supply": len(view.supply.renewable_w),
            "nodes": len(view.nodes.processors)}  # fmt: skip
    for part, names in _COLUMNS.items():
        _check_columns(part, getattr(view, part), names, rows[part])
    for name, column in zip(view.attributes._fields, view.attributes, strict=True):
        _check_length(f"queue.attributes.{name}", column, rows["queue"])
    if (unusable := np.abs(np.array(view.attributes, dtype=np.float64)) > _LARGEST_WHOLE).any():
        name = view.attributes._fields[np.argwhere(unusable)[0, 0]]
        raise _refusal(f"queue.attributes.{name}", "is infinite or over 2**53", "give numbers, NaN if unknown")
    _check_jobs(view)
    _check_supply(view, program)
    _check_predictions(view, program, rows)
    _check_storage(view)
    _check_capacity(view, cluster)
    ends_s = view.running.expected_end_s
    if (ends_s[1:] < ends_s[:-1]).any():
        order = np.argsort(ends_s, kind="stable")
        placed = view.placements._replace(running=np.argsort(order)[view.placements.running])
        running, capacity = _in_order(view.running, order), view.capacity
        if capacity is not None:
            capacity = capacity._replace(running=_in_order(capacity.running, order))
        return replace(view, running=running, placements=placed, capacity=capacity)
    return view


def _check_columns(part: str, table: Any, names: tuple[str, ...], rows: int) -> None:
    """Check the lengths and the ranges of the columns of a part."""
    columns, lowest = [getattr(table, name) for name in names], [_LOWEST.get(name, _FINITE) for name in names]
    for name, column in zip(names, columns, strict=True):
        _check_length(f"{part}.{name}", column, rows)
    values = np.array(columns, dtype=np.float64)
    good = (values >= np.array(lowest)[:, None]) & (values <= _LARGEST)
    if not good.all():
        column, row = np.argwhere(~good)[0]
        fix = f"it must be {_WORDS[lowest[column]]}"
        raise _refusal(f"{part}.{names[column]}", f"row {row} is {values[column, row]:g}", fix)


def _check_length(name: str, column: Any, rows: int) -> None:
    if getattr(column, "shape", None) != (rows,):
        problem = f"has the shape {np.shape(column)}, not ({rows},)"
        raise _refusal(name, problem, "give arrays with one value per row")


def _check_jobs(view: View) -> None:
    """Refuse job numbers that occur twice, jobs of later, and jobs that cannot be on this machine."""
    if (view.queue.submit_s > view.now_s).any():
        late_s = view.queue.submit_s.max()
        raise _refusal("queue.submit_s", f"is {late_s:g}, after now_s {view.now_s:g}", "leave out later jobs")
    nodes = view.attributes.nodes
    if (few := (nodes < 1) | (nodes != np.floor(nodes)) & ~np.isnan(nodes)).any():
        problem, fix = f"row {np.argmax(few)} is {nodes[few][0]:g}", "give whole numbers >= 1, NaN for any number"
        raise _refusal("queue.attributes.nodes", problem, fix)
    queue, running = view.queue, view.running
    ids = np.sort(np.concatenate([view.job_id, running.job_id]))
    if (twice := ids[1:] == ids[:-1]).any():
        raise _refusal("job_id", f"job {ids[1:][twice][0]} occurs twice", "list each job once, waiting or running")
    if (running.expected_end_s <= running.start_s).any():
        raise _refusal("running.expected_end_s", "is not after start_s", "it is start + requested time")
    total, free = int(view.nodes.processors.sum()), int(view.nodes.free_processors.sum())
    busy, largest = int(running.processors.sum()), queue.processors.max(initial=0)
    if not 1 <= total <= MOST_PROCESSORS or free + busy > total:
        problem = f"of {total} processors, {free} are free and {busy} in use"
        raise _refusal("nodes", problem, "free processors are at most those that no running job has")
    if largest > total:
        raise _refusal("queue.processors", f"a job needs {largest:g}, the cluster has {total}", "leave the job out")
    if (queue.processors != np.floor(queue.processors)).any():
        raise _refusal("queue.processors", "a job needs a part of a processor", "give whole numbers")


def _check_supply(view: View, program: Program) -> None:
    """Refuse a forecast without a grid of slots, and a view without a forecast if the scheduler needs one."""
    supply = view.supply
    if len(supply.renewable_w):
        longest_s = float(view.queue.requested_time_s.max(initial=0.0))
        check_slots(longest_s, supply.step_s, field="view.supply.step_s")
        if not np.isfinite(supply.origin_s):
            raise _refusal("supply.origin_s", f"is {supply.origin_s}", "give a finite time")
        if len(supply.load_limit_w):
            _check_columns("supply", supply, ("load_limit_w",), len(supply.renewable_w))
            refuse(program.name, parts_of(program), {"import_limit": "hold"}, program.knows)
    else:
        refuse(program.name, parts_of(program), {"no_supply": True, "views": True}, program.knows)


def _check_storage(view: View) -> None:
    """Refuse storage that cannot be."""
    seen = view.storage
    if seen is None:
        return
    highest = {"charge_efficiency": 1.0, "discharge_efficiency": 1.0, "stored_j": max(seen.usable_j, 0.0)}
    for name, value in seen._asdict().items():
        low, high = _LOWEST.get(name, _FINITE), highest.get(name, _LARGEST)
        if not low <= value <= high:
            fix = f"it must be {_WORDS[low]}" + (f", at most {high:g}" if name in highest else "")
            raise _refusal(f"storage.{name}", f"is {value:g}", fix)


def _in_order(columns: Any, order: Any) -> Any:
    """A part of a view with its rows in another order."""
    return type(columns)(*(column[order] if len(column) else column for column in columns))


def _check_capacity(view: View, cluster: Cluster) -> None:
    """Refuse a capacity that cannot be, one of a cluster that is always powered, and none of another."""
    seen = view.capacity
    if (seen is None) != (cluster.powered is None):
        problem = "is missing, and not all of the cluster is" if seen is None else "is given, and all of the cluster is"
        fix = "give view.capacity and a cluster with [cluster.capacity] or cluster.gpus, or neither"
        raise _refusal("capacity", f"{problem} always powered", fix)
    if seen is None:
        return
    rows = {"": len(seen.time_s), "running.": len(view.running.job_id), "suspended.": len(seen.suspended_job_id)}
    parts: dict[str, Any] = {"": seen[2:5], "running.": seen.running, "suspended.": seen.suspended[:-1]}
    for part, columns in parts.items():
        for column in columns:
            _check_length(f"capacity.{part or 'time_s, processors or gpus'}", column, rows[part])
    _check_length("capacity.ready", seen.ready, len(view.job_id))
    if not rows[""] or (np.diff(seen.time_s) <= 0).any() or not np.isfinite(seen.time_s).all():
        raise _refusal(
            "capacity.time_s", "is empty or not in order", "give the present level, then later ones in order"
        )
    if (seen.processors < 0).any() or (seen.processors > cluster.processors).any() or (seen.gpus < 0).any():
        fix = f"give 0 to {cluster.processors} processors, and GPUs >= 0"
        raise _refusal("capacity.processors", f"is {seen.processors.tolist()!r:.40}", fix)
    if sorted(seen.ready_job_id.tolist()) != sorted(view.job_id[seen.ready].tolist()):
        raise _refusal("capacity.ready_job_id", "are not the jobs that are ready", "list each ready job once")


def _check_predictions(view: View, program: Program, rows: dict[str, int]) -> None:
    """Refuse predictions without a value per job, and a view without any if the scheduler needs them."""
    if view.predicts:
        _check_columns("queue.predicted", view.queue.predicted, Predicted._fields, rows["queue"])
        _check_columns("running", view.running, ("expected_time_s",), rows["running"])
    elif rows["queue"]:
        refuse(program.name, parts_of(program), {"no_predictions": True}, program.knows)


def _refusal(name: str, problem: str, fix: str) -> InputError:
    return InputError(problem, field=f"view.{name}", fix=fix)
