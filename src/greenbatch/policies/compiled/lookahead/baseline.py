"""Progress of a baseline that never delays jobs: the reference for a planner's lag.

The same jobs are simulated under a simple rule that starts jobs as soon as they fit, with requested times as run times.
At any moment, the planner uses only the past of that schedule: the work done until then and the ends of started jobs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.engine.program import Program
from greenbatch.engine.records import Floats
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import run_program
from greenbatch.machine_code.compile import compiled
from greenbatch.workload import Workload

PACE = 0.8
"""Share of its processors that the baseline is assumed to keep busy with the remaining work. With this value, draining
the queue ends within 5 % of the makespan of F2 with EASY backfilling, on average over windows of Lublin-256, Cirne and
Jann."""
(TIME, DONE, BUSY, LAST_END) = range(4)
"""Columns of the table: an instant [s]; work done until then [processor-seconds]; processors busy from then on (on
nodes, work done per second); and the latest end of the jobs started by then [s]."""
TINY_S = 1e-3
"""Run times are at least this long. [s]"""
ROUNDING = 1.0
"""Remaining work up to this counts as none. [processor-seconds]"""


def baseline_progress(workload: Workload, cluster: Cluster, rules: Rules, program: Program) -> NDArray[np.float64]:
    """Progress of the baseline on a window of jobs, n: shape (2n, 4), see `progress_table`.

    Args:
        workload: the jobs.
        cluster: the machines.
        rules: how the batch system reacts.
        program: the baseline, a rule that never delays jobs.

    Raises:
        InputError: the parts do not fit together.
    """
    on_nodes = cluster.on_nodes
    speed = 1.0 if on_nodes else cluster.speed  # requests do not shrink
    planned = workload.with_columns(run_time_s=workload.requested_time_s * speed)
    if cluster.powered is not None:  # which the backfilling of the authors does not know
        program = replace(program, backfill="easy")
    outcome = run_program(planned, cluster, None, rules, program)
    work_per_s: NDArray[Any] = workload.processors
    if on_nodes:  # fast nodes do what is requested in less time
        run_s = np.maximum(outcome.end_s - outcome.start_s, TINY_S)
        work_per_s = workload.requested_time_s * workload.processors / run_s
    return progress_table(outcome.start_s, outcome.end_s, work_per_s)


def progress_table(start_s: NDArray[Any], end_s: NDArray[Any], processors: NDArray[Any]) -> NDArray[np.float64]:
    """Convert a schedule to a table of the work done by any time.

    Args:
        start_s: start of each job, shape (n,). [s]
        end_s: end of each job, shape (n,). [s]
        processors: processors of each job, or the work that it does per second, shape (n,).

    Returns:
        One row per start and per end, in time order, shape (2n, 4).
    """
    at_s, change = np.concatenate([end_s, start_s]), np.concatenate([-processors, processors]).astype(np.float64)
    last_s = np.concatenate([np.full(len(end_s), -np.inf), end_s])
    order = np.argsort(at_s, kind="stable")
    table = np.zeros((len(at_s), 4))
    table[:, TIME] = at_s[order]
    table[:, BUSY] = np.cumsum(change[order])
    table[1:, DONE] = np.cumsum(table[:-1, BUSY] * np.diff(table[:, TIME]))
    table[:, LAST_END] = np.maximum.accumulate(last_s[order])
    return table


@compiled
def baseline_end_s(table: Floats, row: int, now_s: float, arrived: float, latest_s: float, processors: int) -> float:
    """When the baseline finishes, or finished, all jobs that have arrived so far. [s]

    Args:
        table: schedule of the baseline.
        row: last row of the table in the past.
        now_s: current time. [s]
        arrived: work of all jobs that have arrived. [processor-seconds]
        latest_s: latest of the earliest possible ends of these jobs. [s]
        processors: processors of the machine.
    """
    end_s = max(latest_s, table[row, LAST_END])
    left = arrived - table[row, DONE] - table[row, BUSY] * (now_s - table[row, TIME])
    if left > ROUNDING:
        end_s = max(end_s, now_s + left / (PACE * processors))
    return float(end_s)
