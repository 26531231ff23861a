"""The bound itself: no schedule of a window uses a larger share of renewable energy, or less brown energy.

A schedule from its first start s to its last end e uses the energy of the jobs and idle power times e - s. What it
takes from the grid is what an idle cluster takes from s to e, plus what the jobs take beyond the surplus of renewable
power over idle power. The second part is bounded below by prices (weak duality): for prices of brown energy in [0, 1]
and of processors >= 0, constant within an interval,

    brown energy of jobs >= sum over jobs of the cost of the cheapest start
                            - sum over intervals of (price of brown * surplus + price of processors * all processors).

It holds for every schedule, because in each interval max(0, y - surplus) >= price * (y - surplus), and jobs never
occupy more than all processors. Nothing else is known of schedules: jobs start at any time after their submission, with
everything known in advance. The bound on utilization is the largest value over all s and e, interval by interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from greenbatch.bounds.prices import ascend
from greenbatch.bounds.problem import Floats, Ints, Problem, problem_of
from greenbatch.bounds.starts import Prices, least_j
from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.workload import Workload

BEGINS = (0, 4, 8, 16, 24, 48, 96, 192, 384, 768, 1536)
"""Intervals at which ranges of first starts begin, before they are split."""
SPLITS, PARTS = 8, 8
"""How often the range of first starts that allows the largest utilization is split, and into how many."""
LATE, NEAR, GAIN = 2, 12, 5e-4
"""How often prices for late first starts are found, unless some are known for a start at most so many intervals
earlier, or they raise brown energy by less than this share of all energy."""
MARGIN = 1e-9
"""Added to the bound on utilization against rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What no schedule of a window can beat that ends in time, whatever it knows and whenever jobs start."""

    renewable_utilization: float
    """No schedule has a larger renewable utilization, see `metrics.power.renewable_utilization`. [-], in [0, 1]"""
    brown_j: float
    """No schedule takes less from the grid from the first submission to ``latest_end_s``. [J], >= 0"""
    first_submit_s: float
    """First submission. [s]"""
    latest_end_s: float
    """When the last job ends at the latest. [s]"""


def oracle_bound(workload: Workload, cluster: Cluster, site: Site, rules: Rules, *, latest_end_s: float) -> Bound:
    """Bounds on renewable utilization and brown energy of all schedules of a window that end in time.

    Args:
        workload: the jobs of the window.
        cluster: a pool of processors.
        site: the power supply, without a PUE or a base load.
        rules: how the batch system reacts; only whether jobs are killed at their requested time matters.
        latest_end_s: when the last job ends at the latest. [s]

    Raises:
        InputError: a feature that the bound does not know, see ``capabilities.toml``, a job without power, or an end
            that no schedule can meet.
        SupplyExhausted: the power series ends before.
    """
    problem = problem_of(workload, cluster, site, rules, latest_end_s)
    return _tightest(problem)


def oracle_bounds(
    workload: Workload, cluster: Cluster, site: Site, rules: Rules, *, latest_ends_s: Sequence[float]
) -> list[Bound]:
    """The bounds for several latest ends, in their order; an earlier end never has a larger utilization.

    Raises:
        InputError, SupplyExhausted: see `oracle_bound`.
    """
    found: dict[float, Bound] = {}
    most = 1.0
    for end_s in sorted(set(latest_ends_s), reverse=True):
        bound = oracle_bound(workload, cluster, site, rules, latest_end_s=end_s)
        most = min(most, bound.renewable_utilization)
        found[end_s] = Bound(
            renewable_utilization=most, brown_j=bound.brown_j, first_submit_s=bound.first_submit_s,
            latest_end_s=bound.latest_end_s,
        )  # fmt: skip
    return [found[end_s] for end_s in latest_ends_s]


def bound_by(problem: Problem, prices: Sequence[Prices]) -> Bound:
    """The bound that several prices prove together, which holds for any prices."""
    table, share, _ = _split(problem, prices, {})
    return _bound(problem, table, share)


def _bound(problem: Problem, table: Mapping[int, Floats], share: float) -> Bound:
    return Bound(
        renewable_utilization=min(1.0, 1.0 - share + MARGIN),
        brown_j=float(problem.idle_brown_j[-1] + table[0][-1]) * (1.0 - MARGIN),
        first_submit_s=float(problem.edge_s[0]), latest_end_s=float(problem.edge_s[-1]),
    )  # fmt: skip


def _tightest(problem: Problem) -> Bound:
    """The bound by prices for all schedules, and by prices for schedules that start late where those allow more.

    Prices for a late start prove little for earlier ones, so they are found in pairs: for the first start that allows
    the largest utilization, which tells whether the bound can fall at all, and for one between it and the last known.
    """
    prices = {0: ascend(problem)}
    table, share, worst = _split(problem, list(prices.values()), {})
    energy_j = problem.jobs_j + problem.idle_w * float(problem.edge_s[-1] - problem.edge_s[0])
    for _ in range(LATE):
        below = max(begin for begin in prices if begin <= worst)
        if worst - below < NEAR:
            break
        for begin in (worst, (below + worst) // 2):
            prices[begin] = ascend(_later(problem, begin))
            again = least_j(problem, prices[begin], list(table))
            risen = {row: np.maximum(table[row], more) for row, more in zip(table, again, strict=True)}
            gain_j = float(risen[worst][-1] - table[worst][-1])
            table = risen
            if begin == worst and not gain_j > GAIN * energy_j:
                return _bound(problem, table, least_brown_share(problem, table)[0])
        table, share, worst = _split(problem, list(prices.values()), table)
    return _bound(problem, table, share)


def _later(problem: Problem, begin: int) -> Problem:
    """The same window, with no start before the beginning of an interval."""
    return replace(problem, submit_s=np.maximum(problem.submit_s, problem.edge_s[begin]))


def _split(
    problem: Problem, prices: Sequence[Prices], table: Mapping[int, Floats]
) -> tuple[dict[int, Floats], float, int]:  # fmt: skip
    """Split the range of first starts that allows the largest utilization until it is one interval.

    Returns:
        The table of `least_brown_share` with the ranges added, and what that function makes of it.
    """
    last = len(problem.surplus_w)

    def rows(begins: Sequence[int]) -> dict[int, Floats]:
        found = np.max([least_j(problem, each, begins) for each in prices], axis=0)
        return dict(zip(begins, found, strict=True))

    known = dict(table) or rows([begin for begin in BEGINS if begin < last])
    share, worst = least_brown_share(problem, known)
    for _ in range(SPLITS):
        after = min((begin for begin in known if begin > worst), default=last)
        if after - worst < 2:
            break
        known |= rows(sorted({worst + max(1, (after - worst) * part // PARTS) for part in range(1, PARTS)}))
        share, worst = least_brown_share(problem, known)
    return known, share, worst


def least_brown_share(problem: Problem, table: Mapping[int, Floats]) -> tuple[float, int]:
    """Smallest share of brown energy over all first starts and last ends, and the range of first starts that has it.

    Args:
        problem: the window.
        table: interval at which a range of first starts begins, up to the next -> least brown energy of jobs by last
            end, shape (k + 1,), see `least_j`.
    """
    if problem.jobs_j == problem.idle_w == 0.0:
        return 0.0, 0  # the renewable utilization of no energy is 1
    begins = sorted(table)
    after = dict(zip(begins, [*begins[1:], len(problem.surplus_w)], strict=True))
    turn_of_edge, idle_j = problem.turn_of_edge, problem.idle_w * (problem.turn_s - problem.turn_s[0])
    ranges = [_range_of(problem, begin, after[begin], table[begin]) for begin in begins
              if np.isfinite(table[begin]).any()]  # fmt: skip
    low, high, widest, jobs_j = 0.0, 1.0, 0, problem.jobs_j
    for _ in range(40):
        share = (low + high) / 2
        excess_j = problem.idle_brown_j - share * idle_j
        at_end_j = np.minimum.reduceat(excess_j, turn_of_edge[:-1])
        at_end_j = np.minimum(at_end_j, excess_j[turn_of_edge[1:]])
        least_j = [each.least_excess_j(excess_j, at_end_j) - share * jobs_j for each in ranges]
        worst = int(np.argmin(least_j))
        if least_j[worst] >= 0:
            low = share
        else:
            high, widest = share, ranges[worst].begin
    return low, widest


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of first starts, and what does not depend on the share of brown energy that is asked for.

    Idle energy and its brown part are linear between turns, so only turns are considered. A first start is no later
    than the end of the interval of the last end.
    """

    begin: int
    """Interval at which it begins."""
    turns: slice
    """The turns in it."""
    reach: Ints
    """By last end, the last of these turns that can be the first start, shape (k,)."""
    jobs_brown_j: Floats
    """Least brown energy of jobs by last end, shape (k,). [J]"""

    def least_excess_j(self, excess_j: Floats, at_end_j: Floats) -> float:
        """Least of (brown energy - share * idle energy) over first starts in the range and all last ends. [J]

        Args:
            excess_j: the same of an idle cluster up to each turn. [J]
            at_end_j: the least of it within each interval. [J]
        """
        at_start_j = np.minimum.accumulate(-excess_j[self.turns])
        return float((at_end_j + at_start_j[self.reach] + self.jobs_brown_j).min())


def _range_of(problem: Problem, begin: int, after: int, jobs_brown_j: Floats) -> _Range:
    """The range of first starts from the beginning of one interval to that of another."""
    first, last = problem.turn_of_edge[begin], problem.turn_of_edge[after]
    latest = np.searchsorted(problem.edge_s, problem.edge_s[1:] - float(problem.run_s.max()))
    reach = np.clip(problem.turn_of_edge[np.clip(latest, 0, after)] - first, 0, last - first)
    return _Range(begin, slice(first, last + 1), reach, jobs_brown_j[1:])
