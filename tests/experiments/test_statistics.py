"""Bootstrap intervals and paired differences: closed forms, coverage, invariances."""

from __future__ import annotations

import math

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.experiments.statistics import (
    Interval,
    differences,
    intervals,
    mean_interval,
    paired_difference,
    schedulers,
)


def test_two_values_have_a_closed_form() -> None:
    # Of two windows a resample's mean is 0, 1/2 or 1 with probabilities 1/4, 1/2, 1/4: the 2.5 % quantiles are 0 and 1.
    assert mean_interval([0.0, 1.0], method="percentile") == Interval(0.5, 0.0, 1.0, 2)
    # At 40 % confidence both levels (0.3, 0.7) fall into the middle half.
    assert mean_interval([0.0, 1.0], method="percentile", confidence=0.4) == Interval(0.5, 0.5, 0.5, 2)


def test_a_large_sample_agrees_with_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, 2000)
    half = 1.959964 * values.std() / math.sqrt(values.size)
    for method in ("bca", "percentile"):
        got = mean_interval(values, method=method, resamples=4000)
        assert got.mean == values.mean()
        assert got.low == pytest.approx(values.mean() - half, abs=0.06 * half)
        assert got.high == pytest.approx(values.mean() + half, abs=0.06 * half)


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_coverage_over_ten_windows(method: str) -> None:
    rng = np.random.default_rng(7)
    trials = 400
    for draw, low, high in (
        (lambda: rng.normal(0.0, 1.0, 10), 0.86, 0.95),
        (lambda: rng.exponential(1.0, 10) - 1.0, 0.79, 0.92),
    ):
        hits = 0
        for _ in range(trials):
            got = mean_interval(draw(), resamples=1000, method=method)
            hits += got.low <= 0.0 <= got.high
        assert low <= hits / trials <= high


def test_bca_leans_towards_the_long_tail() -> None:
    values = [1.0, 1.0, 1.1, 1.2, 1.2, 1.3, 1.5, 2.0, 4.0, 9.0]
    plain, corrected = mean_interval(values, method="percentile"), mean_interval(values, method="bca")
    assert corrected.low > plain.low
    assert corrected.high > plain.high


def test_few_equal_and_missing_windows() -> None:
    assert mean_interval([]).count == 0
    assert math.isnan(mean_interval([np.nan]).mean)
    one = mean_interval([3.0, np.nan])
    assert (one.mean, one.count) == (3.0, 1)
    assert math.isnan(one.low)
    assert mean_interval([2.0, 2.0, 2.0]) == Interval(2.0, 2.0, 2.0, 3)


def test_the_seed_decides_and_nothing_else() -> None:
    values = np.arange(10.0) ** 2
    assert mean_interval(values) == mean_interval(values)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)


@pytest.mark.parametrize("bad", [{"confidence": 1.0}, {"confidence": 0.0}, {"resamples": 0}, {"method": "jackknife"}])
def test_bad_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InputError):
        mean_interval([1.0, 2.0], **bad)  # type: ignore[arg-type]


samples = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12)


@given(samples, st.sampled_from([0.5, 2.0, 8.0]), st.integers(-100, 100))
def test_an_interval_holds_its_mean_and_follows_scale_and_shift(values: list[int], scale: float, shift: int) -> None:
    got = mean_interval(values, resamples=500)
    assert min(values) <= got.low <= got.high <= max(values)
    moved = mean_interval([scale * v + shift for v in values], resamples=500)
    for name in ("mean", "low", "high"):
        assert getattr(moved, name) == pytest.approx(scale * getattr(got, name) + shift, abs=1e-6)


def test_paired_differences_count_wins_and_remove_the_windows_own_level() -> None:
    level = np.array([10.0, 200.0, 3000.0, 40_000.0, 7.0])
    ours = level - np.array([1.0, 2.0, 0.0, -1.0, 3.0])
    got = paired_difference(ours, level)
    assert (got.better, got.worse, got.ties) == (3, 1, 1)
    assert got.difference.mean == pytest.approx(-1.0)
    assert got.relative == pytest.approx(-1.0 / level.mean())
    assert got.difference.high - got.difference.low < 4, "pairing removes the spread of the windows"
    higher = paired_difference(ours, level, better="higher")
    assert (higher.better, higher.worse) == (1, 3)
    assert paired_difference(level - 1.0, level).clear
    assert not got.clear
    with pytest.raises(InputError, match="2 values against 1"):
        paired_difference([1.0, 2.0], [1.0])


def test_undefined_windows_drop_out_of_pairs() -> None:
    got = paired_difference([1.0, np.nan, 5.0], [2.0, 9.0, np.nan])
    assert got.difference.count == 1
    assert got.difference.mean == -1.0
    empty = paired_difference([np.nan], [1.0])
    assert empty.difference.count == 0
    assert math.isnan(empty.relative)


def tidy(table: dict[str, dict[str, list[float | None]]]) -> polars.DataFrame:
    rows = [
        (window, scheduler, metric, value)
        for scheduler, metrics in table.items()
        for metric, values in metrics.items()
        for window, value in enumerate(values)
    ]
    return polars.DataFrame(rows, schema=["window", "scheduler", "metric", "value"], orient="row")


def test_a_tidy_frame_is_read_by_window_whatever_its_order() -> None:
    frame = tidy(
        {
            "fcfs+easy": {"avg_bounded_slowdown": [50.0, 60.0, 70.0], "renewable_utilization": [0.5, 0.5, 0.5]},
            "f2+green": {"avg_bounded_slowdown": [40.0, 61.0, 50.0], "renewable_utilization": [0.6, 0.7, None]},
        }
    )
    assert schedulers(frame) == ["fcfs+easy", "f2+green"]
    assert intervals(frame, "avg_bounded_slowdown")["f2+green"].mean == pytest.approx(151 / 3)
    shuffled = frame.sort("window", descending=True).sort("scheduler", maintain_order=True, descending=True)
    for got in (
        differences(frame, "avg_bounded_slowdown", "fcfs+easy"),
        differences(shuffled, "avg_bounded_slowdown", "fcfs+easy"),
    ):
        assert list(got) == ["f2+green"]
        assert (got["f2+green"].better, got["f2+green"].worse) == (2, 1)
        assert got["f2+green"].difference.mean == pytest.approx(-29 / 3)
    up = differences(frame, "renewable_utilization", "fcfs+easy")["f2+green"]
    assert (up.better, up.difference.count) == (2, 2)
    assert up.difference.mean == pytest.approx(0.15)
    with pytest.raises(InputError, match="not among the schedulers"):
        differences(frame, "avg_bounded_slowdown", "sjf+easy")
