"""Weighted importance sampling: the value of a policy from episodes that another one, the behavior, recorded.

An action counts by the ratio of its probabilities, evaluated policy over behavior. Sources: Precup, Sutton & Singh
(2000), "Eligibility traces for off-policy policy evaluation"; Thomas & Brunskill (2016), "Data-efficient off-policy
policy evaluation", whose consistent per-decision estimator is `per_decision`. Both estimators are biased with few
episodes and consistent: the bias vanishes as episodes are added.

**A deterministic behavior.** A rule takes its action with probability 1 and any other with 0, so episodes say nothing
about other actions: the condition of importance sampling, that the behavior may do what the policy may do, does not
hold. What is estimated then is the value of the policy *restricted to agreeing with the rule*: episodes count by the
probability with which the policy would have done the same in all their decisions, and for an arg-max policy only those
count in which it always agrees. With one rule whose episodes differ by their jobs only, that is close to the value of
the rule; `per_decision` mixes other episodes at each decision and can leave the range of all returns. The mean weight
says how much of the policy the record holds. Record rules with some random actions, or estimate the behavior by
behavior cloning and pass its log-probabilities.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greenbatch.errors import InputError
from greenbatch.learning.evaluation.estimate import RESAMPLES, Estimate, Floats, estimate

Ints = NDArray[np.int64]

_LARGEST_LOG = 700.0
"""Larger ones have no exponential in floats."""
IMPOSSIBLE = -1e8
"""Log-probabilities at or below this count as a probability of 0: networks mask rows with about -1e9."""


class NoEpisode(InputError):
    """The policy gives no recorded episode any probability, so there is nothing to weigh."""


def per_episode(
    log_policy: ArrayLike, rewards: ArrayLike, offsets: ArrayLike, *, gamma: float,
    log_behavior: ArrayLike | None = None, resamples: int = RESAMPLES, seed: int = 0,
) -> Estimate:  # fmt: skip
    """The value of a policy: discounted returns, weighted by the ratio of the whole episode, over the sum of weights.

    ``sum_i w_i G_i / sum_i w_i`` with ``w_i`` the product of the ratios of episode i (Precup et al. 2000).

    Args:
        log_policy: log-probability of each recorded action under the evaluated policy, <= 0, shape (n,); -inf for 0.
        rewards: shape (n,).
        offsets: where each episode begins, and n, shape (episodes + 1,); none is empty.
        gamma: discount, 0 to 1.
        log_behavior: the same under the behavior; None for a deterministic one, see above.
        resamples: of the interval, >= 100.
        seed: seed of the interval.

    Raises:
        InputError: the arrays do not fit together or hold NaN.
        NoEpisode: the policy does what no episode did.
    """
    ratios, gains = _by_step(log_policy, rewards, offsets, gamma, log_behavior)
    return _estimated(gains.sum(1, keepdims=True), ratios[:, -1:], resamples, seed)


def per_decision(
    log_policy: ArrayLike, rewards: ArrayLike, offsets: ArrayLike, *, gamma: float,
    log_behavior: ArrayLike | None = None, resamples: int = RESAMPLES, seed: int = 0,
) -> Estimate:  # fmt: skip
    """The value of a policy: each reward is weighted by the ratio of the decisions up to it.

    ``sum_t gamma^t (sum_i w_it r_it / sum_i w_it)``; an episode that has ended keeps its last weight and earns nothing
    (Thomas & Brunskill 2016, CWPDIS). Its variance is lower than that of `per_episode`, because later decisions do not
    weigh earlier rewards. ``effective`` is the lowest over the decisions. Arguments and errors as there.
    """
    ratios, gains = _by_step(log_policy, rewards, offsets, gamma, log_behavior)
    return _estimated(gains, ratios, resamples, seed)


def _estimated(gains: Floats, log_ratios: Floats, resamples: int, seed: int) -> Estimate:
    """The estimate with weights (episodes, columns) up to one factor per column, such that the largest is 1.

    Raises:
        NoEpisode: a column has none.
    """
    most = log_ratios.max(0)
    if (gone := np.flatnonzero(np.isneginf(most))).size:
        at = f"from decision {gone[0] + 1} on " if log_ratios.shape[1] > 1 else ""
        problem = f"gives none of the {len(log_ratios):,} episodes {at}any probability"
        fix = "evaluate a stochastic policy, record more episodes, or use fitted Q evaluation"
        raise NoEpisode(problem, field="log_policy", fix=fix)
    weights = np.exp(log_ratios - most)
    mean = float(np.exp(min(most[-1], _LARGEST_LOG)) * weights[:, -1].mean())
    return estimate(gains, weights, mean_weight=mean, resamples=resamples, seed=seed)


def _by_step(
    log_policy: ArrayLike, rewards: ArrayLike, offsets: ArrayLike, gamma: float, log_behavior: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Logarithms of the cumulative ratios and discounted rewards, both (episodes, longest episode).

    Ended episodes keep their ratio and earn 0.
    """
    places = np.asarray(offsets)
    if places.ndim != 1 or len(places) < 2 or places[0] != 0 or (np.diff(places) < 1).any():
        fix = "give where each episode begins, from 0 on, and then the number of decisions; none empty"
        raise InputError("does not divide decisions into episodes", field="offsets", fix=fix)
    if not 0 <= gamma <= 1:
        raise InputError(f"is {gamma}", field="gamma", fix="give a number from 0 to 1")
    n = int(places[-1])
    policy, gained = _column(log_policy, n, "log_policy"), _column(rewards, n, "rewards")
    behavior = np.zeros(n) if log_behavior is None else _column(log_behavior, n, "log_behavior")
    if (never := np.flatnonzero(behavior <= IMPOSSIBLE)).size:
        problem = f"gives recorded decision {never[0]} a probability of 0"
        raise InputError(problem, field="log_behavior", fix="give the probabilities with which the actions were taken")
    if (bad := np.flatnonzero(~np.isfinite(gained))).size:
        raise InputError(f"is {gained[bad[0]]} in decision {bad[0]}", field="rewards", fix="give finite numbers")
    lengths = np.diff(places)
    steps = np.arange(int(lengths.max()))
    inside = steps < lengths[:, None]
    ratios, gains = np.zeros(inside.shape), np.zeros(inside.shape)
    ratios[inside] = np.where(policy <= IMPOSSIBLE, -np.inf, policy - behavior)
    gains[inside] = gained
    return np.cumsum(ratios, axis=1), gains * gamma**steps


def _column(values: ArrayLike, n: int, field: str) -> Floats:
    found: Floats = np.asarray(values, np.float64)
    if found.shape != (n,):
        raise InputError(f"has the shape {found.shape}", field=field, fix=f"give {n:,} numbers, one per decision")
    if field != "rewards" and (bad := np.flatnonzero(np.isnan(found) | (found > 1e-6))).size:
        problem = f"is {found[bad[0]]:g} in decision {bad[0]}"
        raise InputError(problem, field=field, fix="give logarithms of probabilities, <= 0")
    return found
