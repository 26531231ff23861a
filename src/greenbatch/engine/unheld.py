"""How far a machine that never held a job would be: what the lag of a planner is measured by.

The same jobs are simulated under a plain rule that starts what it can, with requested times for run times. What a
planner sees of that schedule at any moment is its past alone: the work done until then and the ends of what has begun.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.compile import compiled

PACE = 0.8
"""Share of its processors that such a machine keeps busy with what is left: with it, work that just drains ends within
5 % of the makespan of F2 with EASY backfilling on the mean of windows of Lublin-256, Cirne and Jann."""
(TIME, DONE, BUSY, LAST_END) = range(4)
"""Columns of the table: an instant [s]; work done until then [processor-seconds]; processors that are busy from then
on; and the latest end of the jobs that have started by then [s]."""
ROUNDING = 1.0
"""Work left that counts as none. [processor-seconds]"""


def unheld_table(start_s: NDArray[Any], end_s: NDArray[Any], processors: NDArray[Any]) -> NDArray[np.float64]:
    """A schedule as the work that it has done by any time.

    Args:
        start_s: start of each job, shape (n,). [s]
        end_s: end of each job, shape (n,). [s]
        processors: processors of each job, shape (n,).

    Returns:
        A row for each start and each end, ascending, shape (2n, 4).
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
def unheld_end_s(table: Any, row: int, now_s: float, arrived: float, latest_s: float, processors: int) -> float:
    """When a machine that never held a job would be, or was, through with all that came so far. [s]

    Args:
        table: its schedule.
        row: last row of the table that lies in the past.
        now_s: the time. [s]
        arrived: work of all jobs that came. [processor-seconds]
        latest_s: when the job that can end last can end. [s]
        processors: of the machine.
    """
    end_s = max(latest_s, table[row, LAST_END])
    left = arrived - table[row, DONE] - table[row, BUSY] * (now_s - table[row, TIME])
    if left > ROUNDING:
        end_s = max(end_s, now_s + left / (PACE * processors))
    return float(end_s)
