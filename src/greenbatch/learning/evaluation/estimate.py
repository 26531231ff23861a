"""The value of a policy as ratios of sums over episodes, with a bootstrap interval over the episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError

Floats = NDArray[np.float64]

FEW_EPISODES = 10.0
"""Effective episodes below which an estimate comes with a caution."""
LITTLE_WEIGHT = 0.5
"""Mean weight below which an estimate comes with a caution."""
RESAMPLES = 2_000
CONFIDENCE = 0.95
_MOST_CELLS = 1_000_000
"""Resamples x episodes, or x columns, that are computed at a time."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The value of a policy from recorded episodes."""

    value: float
    """Mean discounted return of an episode, in the unit of the rewards."""
    low: float
    """Lower end of the interval; the value itself if episodes do not suffice for one, as with one."""
    high: float
    """Upper end of the interval; likewise."""
    episodes: int
    """Recorded episodes."""
    effective: float
    """Effective number of episodes, ``(sum w)^2 / sum w^2`` of their weights (Kish): 1 to ``episodes``."""
    mean_weight: float = 1.0
    """Mean weight of an episode before the division by their sum: about 1 if the behavior did all that the policy may
    do. Of a deterministic rule it is the probability that the policy agrees with it throughout an episode."""
    caution: str = ""
    """Why not to rely on it; empty if nothing is known against it."""


def estimate(
    values: Floats, weights: Floats, *, mean_weight: float = 1.0, confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES, seed: int = 0,
) -> Estimate:  # fmt: skip
    """The sum over columns of weighted means over episodes, ``sum over t of (sum of w v) / (sum of w)``.

    The interval is that of the percentile bootstrap over episodes. Resamples in which a column has no weight are left
    out. With few effective episodes it is too narrow, see ``caution``.

    Args:
        values: shape (episodes, columns).
        weights: >= 0, finite, shape (episodes, columns); no column without weight.
        mean_weight: mean weight of an episode, for the result.
        confidence: of the interval, in (0, 1).
        resamples: number of resamples, >= 100.
        seed: seed of the resamples.

    Raises:
        InputError: ``confidence`` or ``resamples`` is out of range.
    """
    if not 0 < confidence < 1:
        raise InputError(f"is {confidence}", field="confidence", fix="it must be in (0, 1)")
    if resamples < 100:
        raise InputError(f"is {resamples}", field="resamples", fix="it must be >= 100")
    episodes = len(values)
    value = float(_ratios(np.ones((1, episodes)), values, weights)[0])
    effective = float((weights.sum(0) ** 2 / (weights**2).sum(0)).min())
    low = high = value
    if episodes > 1:
        random, block = np.random.default_rng(seed), max(_MOST_CELLS // episodes, 1)
        found = np.concatenate([
            _ratios(_counts(min(block, resamples - first), episodes, random), values, weights)
            for first in range(0, resamples, block)
        ])  # fmt: skip
        tails = [(1 - confidence) / 2, (1 + confidence) / 2]
        if np.isfinite(found).any():
            low, high = (float(end) for end in np.quantile(found[np.isfinite(found)], tails))
    return Estimate(value, low, high, episodes, effective, mean_weight, _caution(effective, episodes, mean_weight))


def _counts(resamples: int, episodes: int, random: np.random.Generator) -> Floats:
    """How often each episode is drawn with replacement, shape (resamples, episodes)."""
    drawn = random.integers(episodes, size=(resamples, episodes)) + episodes * np.arange(resamples)[:, None]
    counted = np.bincount(drawn.ravel(), minlength=resamples * episodes)
    return counted.reshape(resamples, episodes).astype(np.float64)


def _ratios(counts: Floats, values: Floats, weights: Floats) -> Floats:
    """The estimate for each row of counts (R, episodes): (R,); NaN where a column has no weight."""
    total = np.zeros(len(counts))
    width = max(_MOST_CELLS // len(counts), 1)
    for first in range(0, values.shape[1], width):
        part = slice(first, first + width)
        mass = counts @ weights[:, part]
        with np.errstate(invalid="ignore", divide="ignore"):
            total += (counts @ (weights[:, part] * values[:, part]) / mass).sum(1)
    return total


def _caution(effective: float, episodes: int, mean_weight: float) -> str:
    if effective >= FEW_EPISODES:
        if mean_weight >= LITTLE_WEIGHT:
            return ""
        return (
            f"episodes weigh {mean_weight:.2g} on average instead of 1: the record holds little of what the policy "
            "does, and the estimate is the value of agreeing with it"
        )
    return (
        f"rests on {effective:.1f} effective episodes of {episodes:,}, fewer than {FEW_EPISODES:g}: the interval is "
        "too narrow, and the estimate leans towards what the record did"
    )
