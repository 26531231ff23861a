"""Means over windows with bootstrap intervals, and paired differences against a baseline.

The windows are the sample: a window is drawn with replacement as a whole, so an interval says how much the mean would
move with other windows of the same kind. With ten windows the nominal 95 % of BCa covers the true mean in 90 % of
cases for normal, 87 % for exponential and 83 % for standard lognormal values (percentile: 90, 86, 79 %; 3,000 trials).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greenbatch.errors import InputError
from greenbatch.metrics import METRICS

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]
Method = Literal["bca", "percentile"]

CONFIDENCE = 0.95
RESAMPLES = 10_000
SEED = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over windows and where it may lie."""

    mean: float
    """Plain mean of the windows where the metric is defined; NaN without any."""
    low: float
    """Lower end of the interval; NaN with fewer than two windows."""
    high: float
    """Upper end of the interval; NaN with fewer than two windows."""
    count: int
    """Windows where the metric is defined."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A scheduler's mean minus the baseline's, over the windows both have."""

    difference: Interval
    """Mean and interval of the difference, window by window, in the metric's unit."""
    relative: float
    """Mean difference over the baseline's mean. [-]; NaN where that is 0."""
    better: int
    """Windows in which the scheduler is better than the baseline; 0 if neither way is better."""
    worse: int
    """Windows in which it is worse."""

    @property
    def ties(self) -> int:
        """Windows with equal values."""
        return self.difference.count - self.better - self.worse

    @property
    def clear(self) -> bool:
        """The interval does not contain 0."""
        return self.difference.low > 0 or self.difference.high < 0


@lru_cache(maxsize=64)
def _resamples(count: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """Which windows each resample takes, shape (resamples, count); the same for every metric, so pairs stay pairs."""
    drawn = np.random.default_rng([seed, count]).integers(0, count, size=(resamples, count))
    drawn.flags.writeable = False
    return drawn


def _bca_levels(values: Floats, means: Floats, confidence: float) -> tuple[float, float]:
    """Percentile levels corrected for bias and acceleration.

    Source: Efron, Better bootstrap confidence intervals (JASA 1987), Eqs. 2.3 and 6.6; ties count half.
    """
    normal = NormalDist()
    observed = values.mean()
    below = float(np.mean(means < observed) + np.mean(means == observed) / 2)
    bias = normal.inv_cdf(min(max(below, 1e-9), 1 - 1e-9))
    left_out = (values.sum() - values) / (len(values) - 1)
    spread = left_out.mean() - left_out
    acceleration = float(np.sum(spread**3) / (6 * np.sum(spread**2) ** 1.5))

    def level(z: float) -> float:
        shifted = bias + z
        return normal.cdf(bias + shifted / (1 - acceleration * shifted))

    edge = normal.inv_cdf((1 + confidence) / 2)
    return level(-edge), level(edge)


def mean_interval(
    values: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    method: Method = "bca",
) -> Interval:
    """Mean over windows with a bootstrap interval; NaN values are left out and not counted.

    Args:
        values: one value per window, shape (windows,).
        confidence: nominal coverage, in (0, 1).
        resamples: bootstrap samples, >= 1.
        seed: of the resampling.
        method: ``bca`` (bias-corrected and accelerated) or ``percentile``.

    Raises:
        InputError: confidence, resamples or method is out of range.

    Source: Efron and Tibshirani, An introduction to the bootstrap (1993), chapters 13 and 14.
    """
    if not 0 < confidence < 1:
        raise InputError(f"is {confidence}", field="confidence", fix="it must be in (0, 1)")
    if resamples < 1:
        raise InputError(f"is {resamples}", field="resamples", fix="it must be >= 1")
    if method not in {"bca", "percentile"}:
        raise InputError(f"is {method!r}", field="method", fix="use bca or percentile")
    given = np.asarray(values, dtype=np.float64)
    given = given[np.isfinite(given)]
    if given.size == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    mean = float(given.mean())
    if given.size == 1:
        return Interval(mean, np.nan, np.nan, 1)
    if np.ptp(given) == 0:
        return Interval(mean, mean, mean, given.size)
    means = given[_resamples(given.size, resamples, seed)].mean(axis=1)
    levels = ((1 - confidence) / 2, (1 + confidence) / 2)
    if method == "bca":
        levels = _bca_levels(given, means, confidence)
    low, high = np.quantile(means, levels)
    return Interval(mean, float(low), float(high), given.size)


def student_quantile(level: float, freedom: int) -> float:
    """Quantile of Student's t distribution.

    Args:
        level: probability below it, in (0.5, 1).
        freedom: degrees of freedom, >= 1.

    Source: Abramowitz and Stegun, Handbook of mathematical functions (1964), 26.7.3 and 26.7.4, inverted by bisection.
    """

    def within(t: float) -> float:
        """Probability of (-t, t)."""
        angle = math.atan(t / math.sqrt(freedom))
        odd = freedom % 2
        term, total = (math.cos(angle), math.cos(angle)) if odd else (1.0, 1.0)
        if odd and freedom == 1:
            total = 0.0
        for k in range(2 + odd, freedom - 1, 2):
            term *= math.cos(angle) ** 2 * (k - 1) / k
            total += term
        return (2 / math.pi) * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total

    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < 2 * level - 1 else (low, middle)
    return (low + high) / 2


def seed_interval(values: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """Mean over independently trained seeds with Student's t interval.

    With three seeds it is wide: 4.3 standard errors to either side.

    Args:
        values: one figure per seed, shape (seeds,); NaN is left out.
        confidence: nominal coverage, in (0, 1).
    """
    given = np.asarray(values, dtype=np.float64)
    given = given[np.isfinite(given)]
    if given.size < 2:
        return Interval(float(given.mean()) if given.size else np.nan, np.nan, np.nan, given.size)
    mean, error = float(given.mean()), float(given.std(ddof=1)) / math.sqrt(given.size)
    reach = student_quantile((1 + confidence) / 2, given.size - 1) * error
    return Interval(mean, mean - reach, mean + reach, given.size)


def paired_difference(
    values: ArrayLike,
    baseline: ArrayLike,
    *,
    better: Literal["lower", "higher", "neither"] = "lower",
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Difference:
    """Window-by-window difference to the baseline, with interval and win counts.

    Windows in which either value is NaN are left out.

    Args:
        values: one value per window, shape (windows,).
        baseline: the baseline's values in the same windows, shape (windows,).
        better: which way is better, for the counts.
        confidence: as in `mean_interval`.
        resamples: as in `mean_interval`.
        seed: as in `mean_interval`.

    Raises:
        InputError: the two have different lengths.
    """
    ours, theirs = np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if ours.shape != theirs.shape:
        raise InputError(f"{ours.size} values against {theirs.size} of the baseline", field="paired difference")
    both = np.isfinite(ours) & np.isfinite(theirs)
    difference = ours[both] - theirs[both]
    reference = float(theirs[both].mean()) if both.any() else np.nan
    interval = mean_interval(difference, confidence=confidence, resamples=resamples, seed=seed)
    lower, higher = int((difference < 0).sum()), int((difference > 0).sum())
    wins = {"lower": (lower, higher), "higher": (higher, lower), "neither": (0, 0)}[better]
    return Difference(interval, interval.mean / reference if reference else np.nan, *wins)


def schedulers(frame: polars.DataFrame) -> list[str]:
    """Schedulers of a tidy frame, in order of appearance."""
    return [str(name) for name in frame["scheduler"].unique(maintain_order=True)]


def by_window(frame: polars.DataFrame, scheduler: str, metric: str) -> dict[str, float]:
    """Window -> value of one metric of one scheduler in a tidy frame (window, scheduler, metric, value)."""
    import polars

    rows = frame.filter((polars.col("scheduler") == scheduler) & (polars.col("metric") == metric))
    values = rows["value"].cast(polars.Float64).fill_null(np.nan)
    return dict(zip(rows["window"].cast(polars.String).to_list(), values.to_list(), strict=True))


def _columns(frame: polars.DataFrame, names: Sequence[str], metric: str) -> list[Floats]:
    """The metric's values of several schedulers over the same windows, each of shape (windows,)."""
    tables = [by_window(frame, name, metric) for name in names]
    windows = list(dict.fromkeys(window for table in tables for window in table))
    return [np.array([table.get(window, np.nan) for window in windows], dtype=np.float64) for table in tables]


def intervals(frame: polars.DataFrame, metric: str, *, seed: int = SEED) -> dict[str, Interval]:
    """Scheduler -> mean over windows with interval, of one metric of a tidy frame."""
    names = schedulers(frame)
    columns = _columns(frame, names, metric)
    return {name: mean_interval(values, seed=seed) for name, values in zip(names, columns, strict=True)}


def differences(frame: polars.DataFrame, metric: str, baseline: str, *, seed: int = SEED) -> dict[str, Difference]:
    """Scheduler -> paired difference to the baseline, of one metric of a tidy frame; the baseline itself is left out.

    Raises:
        InputError: the baseline is not in the frame.
    """
    names = schedulers(frame)
    if baseline not in names:
        raise InputError(f"{baseline!r} is not among the schedulers", field="baseline", fix=f"use {', '.join(names)}")
    better = METRICS[metric].better if metric in METRICS else "neither"
    columns = dict(zip(names, _columns(frame, names, metric), strict=True))
    return {
        name: paired_difference(values, columns[baseline], better=better, seed=seed)
        for name, values in columns.items()
        if name != baseline
    }
