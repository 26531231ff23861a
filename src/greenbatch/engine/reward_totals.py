"""Running totals of one simulation, from which rewards are computed during the simulation.

`engine.reward_terms` names the terms that they give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.reward_terms import (
    ACCRUED_BOUNDED_SLOWDOWN,
    AVG_BOUNDED_SLOWDOWN,
    AVG_SLOWDOWN,
    AVG_TURNAROUND,
    AVG_WAIT,
    BROWN_ENERGY_RATIO,
    MEAN_USER_BOUNDED_SLOWDOWN,
    RENEWABLE_UTILIZATION,
    UTILIZATION,
)
from greenbatch.engine.state import SUPPLY_EXHAUSTED, F, N

TOTALS = np.dtype(
    [("begin_s", F), ("jobs_j", F), ("counted", N), ("bounded_slowdown", F), ("wait_s", F), ("turnaround_s", F),
     ("slowdown", F), ("work_s", F), ("largest_end_s", F), ("step", N), ("until_s", F), ("load_j", F),
     ("renewable_j", F), ("window_work_s", F), ("users", N)]
)  # fmt: skip
"""Totals of one simulation. ``window_work_s`` is the work of all its jobs divided by the cluster's processors."""

USER = np.dtype([("jobs", N), ("bounded_slowdown", F)])
"""Totals of one user of a window."""

SHORTEST_RUN_S = 10.0
"""Bound of the bounded slowdown (RLScheduler §II-A, GAS-MARL Eq. 3). [s]"""


@compiled_small
def _count_started(s: Any, totals: Any, user_of: Any, users: Any) -> None:
    c = s.clock
    while totals.counted < c.started:
        number = s.started[totals.counted]
        job = s.jobs[number]
        wait_s = job.start_s - job.submit_s
        bounded = max(1.0, (wait_s + job.run_s) / max(job.run_s, SHORTEST_RUN_S))
        totals.bounded_slowdown += bounded
        totals.wait_s += wait_s
        totals.turnaround_s += wait_s + job.run_s
        totals.slowdown += (wait_s + job.run_s) / job.run_s
        totals.work_s += job.run_s * job.processors
        totals.largest_end_s = max(totals.largest_end_s, job.end_s)
        if totals.users > 0 and user_of[number] >= 0:
            users[user_of[number]].jobs += 1
            users[user_of[number]].bounded_slowdown += bounded
        totals.counted += 1


@compiled_small
def _pay(s: Any, totals: Any) -> None:
    """Add the energy used since the last call."""
    c, p = s.clock, s.set
    if c.steps == 0 or p.supply_slots == 0:
        return
    if np.isnan(totals.until_s):
        totals.until_s = s.profile[0].time_s
    k, at_s = totals.step, totals.until_s
    while at_s < c.now_s:
        while k + 1 < c.steps and s.profile[k + 1].time_s <= at_s:
            k += 1
        slot = np.floor((at_s - p.supply_origin_s) / p.supply_step_s)
        edge_s = p.supply_origin_s + (slot + 1.0) * p.supply_step_s
        if edge_s <= at_s:  # a fractional step, rounded down
            slot += 1.0
            edge_s += p.supply_step_s
        if not p.supply_repeat and not 0 <= slot < p.supply_slots:
            c.status = SUPPLY_EXHAUSTED
            return
        next_s = min(c.now_s, edge_s)
        if k + 1 < c.steps:
            next_s = min(next_s, s.profile[k + 1].time_s)
        load_w = s.profile[k].load_w
        totals.load_j += load_w * (next_s - at_s)
        totals.renewable_j += min(load_w, s.supply_w[int(slot) % p.supply_slots]) * (next_s - at_s)
        at_s = next_s
    totals.step, totals.until_s = k, at_s


@compiled
def _over_users(totals: Any, users: Any, mean: bool) -> float:
    total, largest, seen = 0.0, 0.0, 0
    for u in range(totals.users):
        if users[u].jobs > 0:
            value = users[u].bounded_slowdown / users[u].jobs
            total += value
            largest = max(largest, value)
            seen += 1
    if seen == 0:
        return 0.0
    return total / seen if mean else largest


@compiled_small
def _service(s: Any, totals: Any, term: int) -> float:
    """Current value of a term about jobs."""
    n = s.jobs.shape[0]
    if term == AVG_BOUNDED_SLOWDOWN:
        return float(totals.bounded_slowdown / n)
    if term == AVG_WAIT:
        return float(totals.wait_s / n)
    if term == AVG_TURNAROUND:
        return float(totals.turnaround_s / n)
    if term == AVG_SLOWDOWN:
        return float(totals.slowdown / n)
    span_s = totals.largest_end_s - totals.begin_s  # utilization
    return float(totals.work_s / (span_s * s.set.processors)) if span_s > 0.0 else 0.0


@compiled
def _accrued(s: Any, totals: Any) -> float:
    """Bounded slowdown of started jobs, and of waiting jobs as if they started now."""
    c, total = s.clock, totals.bounded_slowdown
    for i in range(c.first, c.last):
        job = s.jobs[s.queue[i].job]
        total += max(1.0, (c.now_s - job.submit_s + job.run_s) / max(job.run_s, SHORTEST_RUN_S))
    return float(total / s.jobs.shape[0])


@compiled_small
def _value(s: Any, totals: Any, users: Any, term: int) -> float:
    if term <= UTILIZATION:
        return float(_service(s, totals, term))
    if term <= MEAN_USER_BOUNDED_SLOWDOWN:
        return float(_over_users(totals, users, term == MEAN_USER_BOUNDED_SLOWDOWN))
    if term == ACCRUED_BOUNDED_SLOWDOWN:
        return _accrued(s, totals)
    if term == RENEWABLE_UTILIZATION:
        return float(totals.renewable_j / totals.load_j) if totals.load_j > 0.0 else 0.0
    if term == BROWN_ENERGY_RATIO:
        return float((totals.load_j - totals.renewable_j) / totals.jobs_j) if totals.jobs_j > 0.0 else 0.0
    return float((s.clock.now_s - totals.begin_s) / totals.window_work_s)


@compiled
def update_totals(s: Any, totals: Any, user_of: Any, users: Any, terms: Any, values: Any) -> None:
    """Update the totals and write the current value of each term.

    Args:
        s: the state.
        totals: TOTALS.
        user_of: row of ``users`` for each job, -1 if unknown, shape (n,).
        users: USER, shape (>= totals.users,).
        terms: codes, shape (t,).
        values: shape (t,).
    """
    _count_started(s, totals, user_of, users)
    _pay(s, totals)
    for k in range(terms.shape[0]):
        values[k] = _value(s, totals, users, terms[k])
