"""Predictors that remember the last run times of like jobs: the mean of two, or the median of more.

Sources: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime
estimates", IEEE TPDS 2007, §3: the average of the user's last two jobs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greenbatch.engine.compile import compiled, whole
from greenbatch.engine.prediction.protocol import SHORT_S, fill, learn, predictor_of, predicts
from greenbatch.engine.records import Floats, Int32s, Ints, Prediction, Table, per_group, per_job, table_of
from greenbatch.workload import Workload

JOBS = 9
"""Jobs that ``like-jobs`` remembers."""


@per_job("jobs", "group")
@per_group("last_s", "ended")
class Recent(NamedTuple):
    """The last run times of each group of jobs."""

    jobs: Table[Prediction]
    """Shape (n,)."""
    group: Int32s
    """Group of each job, shape (n,)."""
    last_s: Floats
    """Last run times of each group, shape (groups, k); at first NaN. [s]"""
    ended: Ints
    """Jobs of each group that have ended, shape (groups,)."""
    sorted_s: Floats
    """Scratch, shape (k,). [s]"""


@predicts.register(Recent)
def predicts_run_times(predictor: Recent) -> bool:
    """Whatever jobs request, once a like job has ended."""
    return True


@compiled
def _sort(p: Recent, group: int, requested_s: float) -> int:
    """Sort the known run times of a group, none above the request; return their number."""
    count = min(whole(p.ended[group]), whole(p.last_s.shape[1]))
    for k in range(count):
        run_s = min(p.last_s[group, k], requested_s)
        i = k
        while i > 0 and p.sorted_s[i - 1] > run_s:
            p.sorted_s[i] = p.sorted_s[i - 1]
            i -= 1
        p.sorted_s[i] = run_s
    return int(count)


@fill.register(Recent)
def fill_from_recent(predictor: Recent, number: int, requested_s: float, now_s: float, elapsed_s: float) -> None:
    """Median, which of two is the mean; the extremes stand for the quantiles. The request, if nothing is known."""
    if elapsed_s > 0.0:
        return
    job, known_s = predictor.jobs[number], predictor.sorted_s
    count = _sort(predictor, whole(predictor.group[number]), requested_s)
    if count == 0:
        known_s[0] = requested_s
        count = 1
    total_s, price = 0.0, 0.0
    for k in range(count):
        total_s += known_s[k]
        price += 1.0 / max(known_s[k], SHORT_S)
    job.expected_time_s = 0.5 * (known_s[(count - 1) // 2] + known_s[count // 2])
    job.shortest_time_s, job.longest_time_s = known_s[0], known_s[count - 1]
    job.mean_time_s, job.slowdown_price = total_s / count, price / count


@learn.register(Recent)
def remember(predictor: Recent, number: int, requested_s: float, run_s: float) -> None:
    """The new run time replaces the oldest one."""
    group = predictor.group[number]
    predictor.last_s[group, predictor.ended[group] % predictor.last_s.shape[1]] = max(run_s, 1.0)
    predictor.ended[group] += 1


def _recent(workload: Workload, columns: list[Any], remembered: int) -> Recent:
    _, group = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    groups = int(group.max(initial=-1)) + 1
    return Recent(
        table_of(Prediction, len(workload)), group.reshape(-1).astype(np.int32), np.full((groups, remembered), np.nan),
        np.zeros(groups, np.int64), np.zeros(remembered),
    )  # fmt: skip


@predictor_of.register("last-two")
def last_two(workload: Workload) -> Recent:
    """The mean of the user's last two jobs."""
    return _recent(workload, [workload.user], 2)


@predictor_of.register("like-jobs")
def like_jobs(workload: Workload) -> Recent:
    """The median of the user's last jobs of the same request."""
    return _recent(workload, [workload.user, workload.requested_time_s], JOBS)
