"""Futures of a view: the true one of a window, and futures sampled from what has been seen.

A sampled future is made of three things, each drawn with a seed. Jobs arrive as they did before, in runs of successive
jobs, the first one not before now. Jobs run for a share of their requested time that an earlier job ran for. Renewable
power is the forecast with an error that grows with the time ahead (`energy.forecasts`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.energy.forecasts import ForecastModel, forecast_of
from greenbatch.engine.machine.dvfs import levels_of
from greenbatch.engine.power.protocol import Power, power_of
from greenbatch.engine.records import Floats, Ints
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import attributes_of, work_s
from greenbatch.engine.views.codec import power_of_view
from greenbatch.engine.views.imagined import Arrivals, Future
from greenbatch.engine.views.interface import Attributes, Running, Supply, View
from greenbatch.workload import Workload

RUN = 16
"""Length of a run of successive jobs that is drawn at once: arrivals come in bursts."""
MOST_RUNS = 64
"""Runs that are drawn at most: jobs may have arrived all at once."""
FEWEST = 8
"""Jobs that must have arrived, or ended, before the next ones are drawn from them."""
LEFT_S = 1.0
"""A running job runs for at least this much longer. [s]"""


@dataclass(frozen=True)
class Truth:
    """The true future of a window: what no scheduler can know."""

    workload: Workload
    power: Power
    run_s: Floats
    """Run time of each job, shape (n,); on nodes at speed 1, at the level of the rules. [s]"""
    speed: Floats
    """Of each node, empty for a pool."""
    order: Ints
    """Rows of the jobs in order of submission, shape (n,)."""
    by_id: Ints
    """Rows of the jobs in order of their numbers, shape (n,)."""

    def see(self, view: View) -> None:
        """Nothing is learned from a view."""

    def futures(self, view: View, count: int, until_s: float) -> list[Future]:
        """The one future of a view, with the jobs that come before a time. [s]"""
        jobs, rows = self.workload, self.order[view.submitted :]
        rows = rows[jobs.submit_s[rows] < until_s]
        arrivals = Arrivals(
            jobs.submit_s[rows], self.run_s[rows], jobs.requested_time_s[rows], jobs.processors[rows],
            np.nan_to_num(jobs.power_w[rows]), Attributes(*attributes_of(jobs)[rows].T),
        )  # fmt: skip
        running_run_s = self._of(view.running.job_id)
        if self.speed.size:
            slowest = np.full(len(running_run_s), np.inf)
            np.minimum.at(slowest, view.placements.running, self.speed[view.placements.node])
            running_run_s = running_run_s / slowest
        return [Future(self._of(view.job_id), running_run_s, arrivals, self.power)][:count]

    def _of(self, job_id: Ints) -> Floats:
        """Run times of some jobs. [s]"""
        rows = np.searchsorted(self.workload.job_id, job_id, sorter=self.by_id)
        return self.run_s[self.by_id[rows]]


def truth(workload: Workload, cluster: Cluster, site: Site | None, rules: Rules) -> Truth:
    """The future of a window as it comes; it must not depend on the schedule when some jobs are submitted."""
    order, by_id = (np.argsort(column, kind="stable") for column in (workload.submit_s, workload.job_id))
    bare = None if site is None else replace(site, grid=None, storage=None)  # brown energy is that without a battery
    speed = np.repeat([group.speed for group in cluster.groups], [group.count for group in cluster.groups])
    run_s = work_s(workload, cluster, rules) / (levels_of(cluster)[rules.dvfs_level].speed if cluster.on_nodes else 1.0)
    return Truth(workload, power_of(bare), run_s, speed if cluster.on_nodes else np.zeros(0), order, by_id)


@dataclass
class Sampler:
    """Futures drawn from what views have shown: jobs that arrived, and for how much of their request jobs ran."""

    error: float
    """Standard deviation of the logarithm of the error of the forecast a day ahead."""
    seed: int
    job_id: set[int] = field(default_factory=set)
    arrived: list[tuple[float, ...]] = field(default_factory=list)
    """Submission [s], requested time [s], processors, power [W] and attributes of each job, in order of submission."""
    shares: list[float] = field(default_factory=list)
    """Run time over requested time of the jobs that have ended."""
    running: Running | None = None

    def see(self, view: View) -> None:
        """Add what a view shows."""
        queue = view.queue
        for row, number in enumerate(view.job_id.tolist()):
            if number not in self.job_id:
                self.job_id.add(number)
                self.arrived.append(
                    (float(queue.submit_s[row]), float(queue.requested_time_s[row]), int(queue.processors[row]),
                     float(queue.power_w[row]), *(float(column[row]) for column in queue.attributes))
                )  # fmt: skip
        if self.running is not None:
            ended = ~np.isin(self.running.job_id, view.running.job_id)
            if view.capacity is not None:
                ended &= ~np.isin(self.running.job_id, view.capacity.suspended_job_id)
            asked_s = (self.running.expected_end_s - self.running.start_s)[ended]
            ran_s = view.now_s - self.running.start_s[ended]  # or less: an end is seen at the next view
            self.shares.extend(np.minimum(ran_s / asked_s, 1.0).tolist())
        self.running = view.running

    def futures(self, view: View, count: int, until_s: float) -> list[Future]:
        """Futures of a view that has been seen, with the jobs that come before a time. [s]

        They depend on nothing but the views so far and the seed.
        """
        return [self._future(view, until_s, np.random.default_rng((self.seed, len(self.arrived), k)))
                for k in range(count)]  # fmt: skip

    def _future(self, view: View, until_s: float, rng: np.random.Generator) -> Future:
        shares = np.array(self.shares if len(self.shares) >= FEWEST else [1.0])
        arrivals = _arrivals(view, np.array(self.arrived), until_s, rng)
        arrivals = arrivals._replace(run_s=arrivals.requested_s * rng.choice(shares, len(arrivals.requested_s)))
        waiting_run_s = view.queue.requested_time_s * rng.choice(shares, len(view.job_id))
        power = _weather(view, until_s, self.error, int(rng.integers(2**62)))
        return Future(waiting_run_s, _running_run_s(view, shares, rng), arrivals, power)


def _running_run_s(view: View, shares: Floats, rng: np.random.Generator) -> Floats:
    """Run times of the running jobs: shares of the requested time that are longer than they have run. [s]"""
    running, ordered = view.running, np.sort(shares)
    asked_s = running.expected_end_s - running.start_s
    ran_s = view.now_s - running.start_s
    shorter = np.searchsorted(ordered, ran_s / asked_s, side="right")
    drawn = shorter + rng.random(len(shorter)) * (len(ordered) - shorter)
    share = np.where(shorter < len(ordered), ordered[np.minimum(drawn.astype(np.int64), len(ordered) - 1)], 1.0)
    return cast(Floats, np.maximum(share * asked_s, ran_s + LEFT_S))


def _arrivals(view: View, seen: Floats, until_s: float, rng: np.random.Generator) -> Arrivals:
    """Jobs that come as others came before, after a gap of which the time since the last submission has passed.

    If no gap was as long, none come.
    """
    rows: list[Any] = []
    if len(seen) >= FEWEST:
        gap_s, at_s = np.diff(seen[:, 0]), view.last_submission_s
        longer = np.flatnonzero(gap_s > view.now_s - at_s)
        first = int(rng.choice(longer)) if longer.size else len(gap_s)
        while first < len(gap_s) and at_s < until_s and len(rows) < MOST_RUNS:
            submit_s = at_s + np.cumsum(gap_s[first : first + RUN])
            rows.append(np.column_stack([submit_s, seen[first + 1 : first + 1 + RUN, 1:]]))
            at_s, first = float(submit_s[-1]), int(rng.integers(len(gap_s)))
    table = np.concatenate(rows) if rows else np.zeros((0, 4 + len(Attributes._fields)))
    table = table[table[:, 0] < until_s]
    submit_s, requested_s, processors, power_w, *rest = (np.ascontiguousarray(column) for column in table.T)
    return Arrivals(submit_s, requested_s, requested_s, processors.astype(np.int64), power_w, Attributes(*rest))


def _weather(view: View, until_s: float, error: float, seed: int) -> Power:
    """The forecast of a view with an error, as a supply whose forecast is as long as the view's."""
    supply, known = view.supply, len(view.supply.renewable_w)
    count = max(int(np.ceil((until_s - view.now_s) / supply.step_s)) + 1, known)
    rows = np.arange(count)
    series_w = np.asarray(supply.renewable_w, dtype=np.float64)[rows % known]
    model = ForecastModel(sigma=error, seed=seed)
    series_w = forecast_of(model, series_w, rows, step_s=supply.step_s, window=count, repeats=True)
    edges = supply.start_s[0] + supply.step_s * rows
    costs = supply.costs.at(rows % known)
    limit_w = supply.load_limit_w[rows % known] if len(supply.load_limit_w) else supply.load_limit_w
    longer = Supply(edges, edges + supply.step_s, series_w, supply.origin_s, supply.step_s, costs, limit_w)
    power = power_of_view(replace(view, supply=longer))
    slots: Any = power.slots
    slots["forecast"] = known
    return power
