"""Running totals of one simulation, from which rewards are computed during the simulation.

The current value of a term becomes its metric when the last job has ended. Jobs count when they start: the simulator
knows their run time then, although the policy does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.state import SUPPLY_EXHAUSTED, F, N

TALLY = np.dtype(
    [("begin_s", F), ("jobs_j", F), ("counted", N), ("bounded_slowdown", F), ("wait_s", F), ("turnaround_s", F),
     ("slowdown", F), ("work_s", F), ("largest_end_s", F), ("step", N), ("until_s", F), ("load_j", F),
     ("renewable_j", F), ("window_work_s", F), ("users", N)]
)  # fmt: skip
"""Totals of one simulation. ``window_work_s`` is the work of all its jobs divided by the cluster's processors."""

USER = np.dtype([("jobs", N), ("bounded_slowdown", F)])
"""Totals of one user of a window."""

SHORTEST_RUN_S = 10.0
"""Bound of the bounded slowdown (RLScheduler §II-A, GAS-MARL Eq. 3). [s]"""

(BOUNDED_SLOWDOWN, WAIT, TURNAROUND, SLOWDOWN, UTILIZATION, MAX_USER, MEAN_USER, RENEWABLE_UTILIZATION, BROWN_ENERGY,
 MAKESPAN, ACCRUED_BOUNDED_SLOWDOWN) = range(11)  # fmt: skip

TERMS: dict[str, str] = {
    "bounded_slowdown": "mean over the jobs of max(1, (wait + run) / max(run, 10 s)) (RLScheduler, GAS-MARL Eq. 3)",
    "wait": "mean wait [s] (RLScheduler)",
    "turnaround": "mean wait + run time [s] (RLScheduler)",
    "slowdown": "mean (wait + run) / run (RLScheduler)",
    "utilization": "share of the cluster's processor time up to the latest end used by jobs (RLScheduler)",
    "max_user_bounded_slowdown": "the largest of the users' mean bounded slowdowns (RLScheduler §V-F)",
    "mean_user_bounded_slowdown": "the mean of the users' mean bounded slowdowns (RLScheduler §V-F)",
    "renewable_utilization": "renewable share of the energy used since the first start (GAS-MARL Eq. 4)",
    "brown_energy": "grid energy used since the first start / energy of the window's jobs",
    "makespan": "time since the first submission / (the window's work / processors)",
    "accrued_bounded_slowdown": "bounded_slowdown plus that accrued by waiting jobs so far; equal to it at the end",
}
"""Reward terms, in the order of their codes, each with its formula; the preset's weight gives the sign."""


@compiled_small
def _count_started(s: Any, tally: Any, user_of: Any, users: Any) -> None:
    c = s.clock
    while tally.counted < c.started:
        number = s.started[tally.counted]
        job = s.jobs[number]
        wait_s = job.start_s - job.submit_s
        bounded = max(1.0, (wait_s + job.run_s) / max(job.run_s, SHORTEST_RUN_S))
        tally.bounded_slowdown += bounded
        tally.wait_s += wait_s
        tally.turnaround_s += wait_s + job.run_s
        tally.slowdown += (wait_s + job.run_s) / job.run_s
        tally.work_s += job.run_s * job.processors
        tally.largest_end_s = max(tally.largest_end_s, job.end_s)
        if tally.users > 0 and user_of[number] >= 0:
            users[user_of[number]].jobs += 1
            users[user_of[number]].bounded_slowdown += bounded
        tally.counted += 1


@compiled_small
def _pay(s: Any, tally: Any) -> None:
    """Add the energy used since the last call."""
    c, p = s.clock, s.set
    if c.steps == 0 or p.supply_slots == 0:
        return
    if np.isnan(tally.until_s):
        tally.until_s = s.profile[0].time_s
    k, at_s = tally.step, tally.until_s
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
        tally.load_j += load_w * (next_s - at_s)
        tally.renewable_j += min(load_w, s.supply_w[int(slot) % p.supply_slots]) * (next_s - at_s)
        at_s = next_s
    tally.step, tally.until_s = k, at_s


@compiled
def _over_users(tally: Any, users: Any, mean: bool) -> float:
    total, largest, seen = 0.0, 0.0, 0
    for u in range(tally.users):
        if users[u].jobs > 0:
            value = users[u].bounded_slowdown / users[u].jobs
            total += value
            largest = max(largest, value)
            seen += 1
    if seen == 0:
        return 0.0
    return total / seen if mean else largest


@compiled_small
def _service(s: Any, tally: Any, term: int) -> float:
    """Current value of a term about jobs."""
    n = s.jobs.shape[0]
    if term == BOUNDED_SLOWDOWN:
        return float(tally.bounded_slowdown / n)
    if term == WAIT:
        return float(tally.wait_s / n)
    if term == TURNAROUND:
        return float(tally.turnaround_s / n)
    if term == SLOWDOWN:
        return float(tally.slowdown / n)
    span_s = tally.largest_end_s - tally.begin_s  # utilization
    return float(tally.work_s / (span_s * s.set.processors)) if span_s > 0.0 else 0.0


@compiled
def _accrued(s: Any, tally: Any) -> float:
    """Bounded slowdown of started jobs, and of waiting jobs as if they started now."""
    c, total = s.clock, tally.bounded_slowdown
    for i in range(c.first, c.last):
        job = s.jobs[s.queue[i].job]
        total += max(1.0, (c.now_s - job.submit_s + job.run_s) / max(job.run_s, SHORTEST_RUN_S))
    return float(total / s.jobs.shape[0])


@compiled_small
def _value(s: Any, tally: Any, users: Any, term: int) -> float:
    if term <= UTILIZATION:
        return float(_service(s, tally, term))
    if term <= MEAN_USER:
        return float(_over_users(tally, users, term == MEAN_USER))
    if term == ACCRUED_BOUNDED_SLOWDOWN:
        return _accrued(s, tally)
    if term == RENEWABLE_UTILIZATION:
        return float(tally.renewable_j / tally.load_j) if tally.load_j > 0.0 else 0.0
    if term == BROWN_ENERGY:
        return float((tally.load_j - tally.renewable_j) / tally.jobs_j) if tally.jobs_j > 0.0 else 0.0
    return float((s.clock.now_s - tally.begin_s) / tally.window_work_s)


@compiled
def take_stock(s: Any, tally: Any, user_of: Any, users: Any, terms: Any, values: Any) -> None:
    """Update the totals and write the current value of each term.

    Args:
        s: the state.
        tally: TALLY.
        user_of: row of ``users`` for each job, -1 if unknown, shape (n,).
        users: USER, shape (>= tally.users,).
        terms: codes, shape (t,).
        values: shape (t,).
    """
    _count_started(s, tally, user_of, users)
    _pay(s, tally)
    for k in range(terms.shape[0]):
        values[k] = _value(s, tally, users, terms[k])
