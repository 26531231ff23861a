"""What is powered, made from the capacity of a view; `codec.view_of` does the reverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.capacity.varying import (
    READY,
    RUNNING,
    SUSPENDED,
    WAITING,
    CapacityPart,
    Level,
    capacity_of,
    fixed,
)
from greenbatch.engine.prepare import set_pools
from greenbatch.engine.records import MachineTotals, table_of
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.interface import View
from greenbatch.workload import Workload


def jobs_of(view: View, *, attributes: bool = False) -> Workload:
    """The waiting, the suspended and the running jobs of a view, as far as it tells; row k is job k of its state.

    Args:
        view: the view.
        attributes: with the attributes of those that do not run, also if all is powered.
    """
    queue, running, paused = view.queue, view.running, view.suspended
    requested_s = running.expected_end_s - running.start_s
    requested_s = np.concatenate([queue.requested_time_s, paused.requested_time_s, requested_s])
    columns: dict[str, Any] = {
        "job_id": np.arange(1, len(requested_s) + 1), "requested_time_s": requested_s, "run_time_s": requested_s,
        "submit_s": np.concatenate([queue.submit_s, paused.submit_s, running.start_s]),
        "processors": np.concatenate([queue.processors, paused.processors, running.processors]),
        "power_w": np.concatenate([queue.power_w, paused.power_w, running.power_w]),
    }  # fmt: skip
    if view.capacity is None and not attributes:
        return Workload.from_columns("view", columns)
    unknown = np.full(len(running.job_id), np.nan)
    for name in ("gpus", "nodes", "exclusive", "partition", "requested_memory_kb", "value", "qos"):
        held = getattr(view.capacity and view.capacity.running, name, unknown)
        columns[name] = np.concatenate([getattr(queue.attributes, name), getattr(paused.attributes, name), held])
    for name in ("gpus", "nodes", "exclusive", "partition"):
        columns[name] = np.where(np.isnan(columns[name]), -1, columns[name])
    return Workload.from_columns("view", columns, names={"partition": dict(view.partitions)})


def capacity_of_view(
    view: View, cluster: Cluster, rules: Rules, totals: MachineTotals, waiting: int | None = None
) -> CapacityPart:  # fmt: skip
    """The capacity in a state of a view, see `codec.state_of`.

    Args:
        view: the view.
        cluster: the machines.
        rules: how the batch system reacts.
        totals: of the machine of the view; the most that it draws when idle is set.
        waiting: the first so many jobs of the queue wait, the others are to come; by default all wait.
    """
    seen, q = view.capacity, len(view.job_id)
    if seen is None:
        return fixed()
    first, waiting = q + len(seen.suspended_job_id), q if waiting is None else waiting
    made = capacity_of(cluster, jobs_of(view), totals)
    levels: Any = table_of(Level, len(seen.time_s))
    levels["time_s"], levels["processors"], levels["gpus"] = seen.time_s, seen.processors, seen.gpus
    levels["idle_w"] = cluster.idle_at_w(seen.processors, seen.gpus)
    row_of = {number: row for row, number in enumerate(view.job_id[:waiting].tolist())}
    ready = [row_of[number] for number in seen.ready_job_id.tolist()]
    jobs, counts, held = made.jobs, made.counts, seen.running
    jobs["place"][:q], jobs["place"][q:first], jobs["place"][first:] = WAITING, SUSPENDED, RUNNING
    jobs["place"][ready] = READY
    jobs["suspensions"][q:first], jobs["first_start_s"][q:first] = 1, seen.suspended.first_start_s
    for name in ("processors", "gpus", "value", "first_start_s"):
        jobs[name][first:] = getattr(held, name)
    jobs["due_s"][first:] = held.due_order  # only their order counts
    made.ready[: len(ready)], made.suspended[: first - q] = ready, np.arange(q, first)
    counts.powered, counts.gpus, counts.level, counts.seen = int(seen.processors[0]), int(seen.gpus[0]), 0, 0
    counts.ready, counts.waiting, counts.suspended = len(ready), waiting - len(ready), first - q
    counts.acted_s, counts.actions = view.now_s, seen.actions
    set_pools(counts, rules, view.now_s)
    counts.end_s = np.inf  # nobody decides after the end
    known = np.zeros((2, 0)), np.zeros(0, np.int32)  # levels that are expected are shown as levels
    return made._replace(levels=levels, steps=known[0], ahead=known[1])
