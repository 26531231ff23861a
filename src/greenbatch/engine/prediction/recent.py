"""Predictors that remember the last run times of like jobs: the mean of two, or the median of more.

Sources: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime
estimates", IEEE TPDS 2007, §3: the average of the user's last two jobs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greenbatch.engine.records import SHORT_S, Floats, Int32s, Ints, Prediction, per_group, per_job
from greenbatch.machine_code.compile import compiled, whole

JOBS = 9
"""Jobs that ``like-jobs`` remembers."""


@per_job("group")
@per_group("last_s", "ended")
class Recent(NamedTuple):
    """The last run times of each group of jobs."""

    group: Int32s
    """Group of each job, shape (n,); (0,) if another predicts."""
    last_s: Floats
    """Last run times of each group, shape (groups, k); at first NaN. [s]"""
    ended: Ints
    """Jobs of each group that have ended, shape (groups,)."""
    sorted_s: Floats
    """Scratch, shape (k,). [s]"""


@compiled
def fill_from_recent(p: Recent, job: Prediction, number: int, requested_s: float) -> None:
    """Median, which of two is the mean; the extremes stand for the quantiles. The request, if nothing is known."""
    known_s, group = p.sorted_s, whole(p.group[number])
    count = min(whole(p.ended[group]), whole(p.last_s.shape[1]))
    for k in range(count):  # sort them by insertion; none is above the request
        run_s, i = min(p.last_s[group, k], requested_s), k
        while i > 0 and known_s[i - 1] > run_s:
            known_s[i] = known_s[i - 1]
            i -= 1
        known_s[i] = run_s
    if count == 0:
        known_s[0], count = requested_s, 1
    total_s, price = 0.0, 0.0
    for k in range(count):
        total_s += known_s[k]
        price += 1.0 / max(known_s[k], SHORT_S)
    job.expected_time_s = 0.5 * (known_s[(count - 1) // 2] + known_s[count // 2])
    job.shortest_time_s, job.longest_time_s = known_s[0], known_s[count - 1]
    job.mean_time_s, job.slowdown_price = total_s / count, price / count


@compiled
def remember(p: Recent, number: int, run_s: float) -> None:
    """The new run time replaces the oldest one."""
    group = p.group[number]
    p.last_s[group, p.ended[group] % p.last_s.shape[1]] = max(run_s, 1.0)
    p.ended[group] += 1


def no_recent() -> Recent:
    """Another predicts."""
    return Recent(np.zeros(0, np.int32), np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(0))


def new_recent(columns: list[Any], remembered: int) -> Recent:
    """Nothing remembered yet.

    Args:
        columns: what groups jobs, each of shape (n,).
        remembered: run times that are remembered of each group.
    """
    _, group = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    groups = int(group.max(initial=-1)) + 1
    return Recent(
        group.reshape(-1).astype(np.int32), np.full((groups, remembered), np.nan), np.zeros(groups, np.int64),
        np.zeros(remembered),
    )  # fmt: skip
