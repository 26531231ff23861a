"""What a job costs at each start under prices that are constant within an interval.

The cost is piecewise linear in the start, and bends only where the start or the end of the job crosses an edge. So the
cheapest start is one of those, the submission, or the latest start: no start in continuous time is cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.bounds.problem import TOLERANCE_S, Floats, Ints, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of k intervals; any prices within the ranges prove a bound."""

    brown: Floats
    """Joules from the grid per joule that jobs use, shape (k,), in [0, 1]."""
    processor_w: Floats
    """Price of a busy processor, shape (k,), >= 0. [W]"""

    def spent_j(self, problem: Problem) -> Floats:
        """What surplus and processors are worth from the first submission to each edge, shape (k + 1,). [J]"""
        worth_w = self.brown * problem.surplus_w + self.processor_w * problem.cluster_processors
        return np.append(0.0, np.cumsum(worth_w * np.diff(problem.edge_s)))


def starts_of(problem: Problem, job: int) -> Floats:
    """The starts of a job that can be cheapest, ascending. [s]"""
    run_s, edge_s = problem.run_s[job], problem.edge_s
    first_s, last_s = problem.submit_s[job], edge_s[-1] - run_s
    if last_s <= first_s:
        return np.array([first_s])
    inner_s = np.concatenate([edge_s, edge_s - run_s])
    inner_s = inner_s[(inner_s > first_s) & (inner_s < last_s)]
    return np.sort(np.concatenate([[first_s, last_s], inner_s]))


SHARE = 0.99
"""The jobs with the largest energies that together have this share of it are costed start by start."""


def large_jobs(problem: Problem) -> Ints:
    """The jobs with `SHARE` of the energy, those with the largest energies first."""
    energy_j = problem.power_w * problem.run_s
    order = np.argsort(-energy_j, kind="stable")
    enough = int(np.searchsorted(np.cumsum(energy_j[order]), SHARE * energy_j.sum())) + 1
    return order[:enough].astype(np.int64)


def small_jobs_j(problem: Problem, prices: Prices, small: Ints) -> float:
    """Least cost of small jobs: as if each ran all the time in the cheapest interval after its submission. [J]"""
    price_w = problem.power_w[small, None] * prices.brown + problem.processors[small, None] * prices.processor_w
    price_w[problem.edge_s[1:] <= problem.submit_s[small, None]] = np.inf
    return float(problem.run_s[small] @ price_w.min(axis=1))


def least_j(problem: Problem, prices: Prices, begins: Sequence[int]) -> Floats:
    """Least that the jobs can take from the grid, by first start and last end. [J]

    Args:
        problem: the window.
        prices: any prices.
        begins: intervals at whose beginning the first job starts at the earliest, b of them.

    Returns:
        Bounds on the energy from the grid above that of an idle cluster, shape (b, k + 1): if no job starts before the
        beginning of interval ``begins[i]`` and none ends after edge j. Infinite if
        some job, or the work of all, does not fit between them.
    """
    step_s, edge_s = np.diff(problem.edge_s), problem.edge_s
    brown_s, processor_j = (np.append(0.0, np.cumsum(price * step_s)) for price in (prices.brown, prices.processor_w))
    begin_s = edge_s[list(begins)]
    large = large_jobs(problem)
    small = np.setdiff1d(np.arange(len(problem.run_s)), large)
    size_j = float(problem.power_w.sum() * brown_s[-1] + problem.processors.sum() * processor_j[-1])
    total_j = np.full((len(begins), len(edge_s)), small_jobs_j(problem, prices, small) if small.size else 0.0)
    for job in large.tolist():
        start_s = starts_of(problem, job)
        end_s = start_s + problem.run_s[job]
        worth_j = problem.power_w[job] * brown_s + problem.processors[job] * processor_j
        cost_j = np.interp(end_s, edge_s, worth_j) - np.interp(start_s, edge_s, worth_j)
        ended = np.searchsorted(end_s, edge_s + TOLERANCE_S, side="right")
        allowed = np.searchsorted(start_s, begin_s - TOLERANCE_S)
        for first in dict.fromkeys(allowed.tolist()):  # most jobs are submitted after most beginnings
            cheapest_j = np.append(np.inf, np.minimum.accumulate(cost_j[first:]))
            total_j[allowed == first] += cheapest_j[np.maximum(ended - first, 0)]
    spent_j = prices.spent_j(problem)
    rounding_j = ROUNDING * (size_j + float(spent_j[-1]))
    total_j[too_short(problem, begin_s)] = np.inf
    found_j: Floats = np.maximum(total_j - (spent_j - spent_j[list(begins)][:, None]) - rounding_j, 0.0)
    return found_j


def too_short(problem: Problem, begin_s: Floats) -> NDArray[np.bool_]:
    """Whether all jobs, or the work of all, cannot fit between each beginning and each edge, shape (b, k + 1)."""
    edge_s = problem.edge_s + TOLERANCE_S
    work_s = max(problem.work_processor_s / problem.cluster_processors, float(problem.run_s.max()))
    late = edge_s < float(np.max(problem.submit_s + problem.run_s))
    return np.asarray((edge_s - begin_s[:, None] < work_s) | late)


ROUNDING = 1e-12
"""Error of sums of floats, as a share of what is added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The starts of some jobs as one table of s rows, ordered by job, for an ascent."""

    job: Ints
    """The jobs, shape (j,)."""
    first: Ints
    """First row of each job, shape (j,)."""
    owner: Ints
    """Position in ``job`` of each row's job, shape (s,)."""
    during: Any
    """Sparse, shape (s, k): how long the job of a row would run in each interval. [s]"""
    during_of_interval: Any
    """The same transposed, shape (k, s)."""


def choices_of(problem: Problem, jobs: Ints) -> Choices:
    """The starts of some jobs; each row of ``during`` is stored as differences of cumulative time at the edges."""
    from scipy.sparse import csr_array

    starts = [starts_of(problem, int(job)) for job in jobs]
    counts = np.array([len(each) for each in starts], dtype=np.int64)
    owner = np.repeat(np.arange(len(jobs)), counts)
    start_s = np.concatenate(starts)
    rows, columns, values = [], [], []
    for sign, at_s in ((-1.0, start_s), (1.0, start_s + problem.run_s[jobs][owner])):
        left = np.clip(np.searchsorted(problem.edge_s, at_s, side="right") - 1, 0, len(problem.edge_s) - 2)
        part = (at_s - problem.edge_s[left]) / np.diff(problem.edge_s)[left]
        rows += [np.arange(len(owner))] * 2
        columns += [left, left + 1]
        values += [sign * (1.0 - part), sign * part]
    shape = (len(owner), len(problem.edge_s))
    at_edges = csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    return Choices(
        job=jobs, first=np.cumsum(counts) - counts, owner=owner, during=at_edges,
        during_of_interval=at_edges.T.tocsr(),
    )  # fmt: skip
