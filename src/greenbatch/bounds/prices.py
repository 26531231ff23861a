"""Prices that prove a good bound, found by ascent on a smoothed dual.

With prices fixed, jobs do not meet: each takes the start at which it is cheapest. The sum of these costs is concave in
the prices, but has kinks. Each job therefore mixes its starts, the cheaper the more (a soft minimum), which gives a
smooth function that is maximized within the ranges of the prices (L-BFGS-B); then the mixing is reduced. Every step
gives valid prices, so how far the ascent gets decides only how tight the bound is.

Source of the smoothing: Nesterov, "Smooth minimization of non-smooth functions", Mathematical Programming 103 (2005).
"""

from __future__ import annotations

import numpy as np

from greenbatch.bounds.problem import Floats, Problem
from greenbatch.bounds.starts import Choices, Prices, choices_of, large_jobs

MIXING = (0.02, 0.003, 0.0007)
"""Difference in the mean price of a joule at which a job prefers a start by a factor of e, stage by stage."""
ITERATIONS = 60
"""Iterations per stage."""
MOST_STARTS = 400_000
"""The ascent considers the jobs with the largest energies, at most so many starts of them."""


def ascend(problem: Problem) -> Prices:
    """Prices under which the cheapest starts of all jobs cost much in total."""
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    most = max(1, MOST_STARTS // (2 * len(problem.edge_s)))
    choices = choices_of(problem, large_jobs(problem)[:most])
    k = len(problem.surplus_w)
    unit_w = float(problem.power_w.sum() / problem.processors.sum()) or 1.0
    total_j = problem.jobs_j or 1.0
    best_j, best = 0.0, Prices(brown=np.zeros(k), processor_w=np.zeros(k))

    def downhill(x: Floats, mixing: float) -> tuple[float, Floats]:
        nonlocal best_j, best
        prices = Prices(brown=x[:k], processor_w=x[k:] * unit_w)
        value_j, least_j, by_brown, by_processor = smoothed(problem, choices, prices, mixing)
        if least_j > best_j:
            best_j, best = least_j, Prices(brown=x[:k].copy(), processor_w=prices.processor_w.copy())
        return -value_j / total_j, -np.concatenate([by_brown, by_processor * unit_w]) / total_j

    x = np.concatenate([np.where(problem.surplus_w > 0.0, 0.05, 0.95), np.zeros(k)])
    ranges = [(0.0, 1.0)] * k + [(0.0, None)] * k
    with threadpool_limits(1, "blas"):  # its threads wait busily for little work, and sums would depend on their number
        for mixing in MIXING:
            x = minimize(
                downhill, x, args=(mixing,), jac=True, method="L-BFGS-B", bounds=ranges,
                options={"maxiter": ITERATIONS, "maxcor": 20, "ftol": 1e-7},
            ).x  # fmt: skip
    return best


def smoothed(
    problem: Problem, choices: Choices, prices: Prices, mixing: float
) -> tuple[float, float, Floats, Floats]:  # fmt: skip
    """The smoothed bound of some jobs, the bound itself [J], and the gradient of the first by each price, (k,) each."""
    step_s = np.diff(problem.edge_s)
    power_w, processors = problem.power_w[choices.job], problem.processors[choices.job]
    spread_j = np.maximum(mixing * power_w * problem.run_s[choices.job], 1e-9)
    worth = np.zeros((len(step_s) + 1, 2))
    np.cumsum(prices.brown * step_s, out=worth[1:, 0])
    np.cumsum(prices.processor_w * step_s, out=worth[1:, 1])
    paid = choices.during @ worth
    cost_j = power_w[choices.owner] * paid[:, 0] + processors[choices.owner] * paid[:, 1]
    cheapest_j = np.minimum.reduceat(cost_j, choices.first)
    share = np.exp((cheapest_j[choices.owner] - cost_j) / spread_j[choices.owner])
    total = np.add.reduceat(share, choices.first)
    share /= total[choices.owner]
    used = choices.during_of_interval @ np.stack([share * power_w[choices.owner], share * processors[choices.owner]], 1)
    after = np.cumsum(used[::-1], axis=0)[::-1][1:]  # the price of an interval is paid at all later edges
    spent_j = float(prices.spent_j(problem)[-1])
    value_j = float(np.sum(cheapest_j - spread_j * np.log(total))) - spent_j
    by_brown = step_s * (after[:, 0] - problem.surplus_w)
    by_processor = step_s * (after[:, 1] - problem.cluster_processors)
    return value_j, float(cheapest_j.sum()) - spent_j, by_brown, by_processor
