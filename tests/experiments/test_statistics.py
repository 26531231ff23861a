"""Bootstrap intervals and paired differences: closed forms, coverage, invariances."""

from __future__ import annotations

import math

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, t

from greenbatch.errors import InputError
from greenbatch.experiments.running.frames import by_window, schedulers
from greenbatch.experiments.running.statistics import (
    Interval,
    differences,
    hierarchical_interval,
    intervals,
    mean_interval,
    paired_difference,
    verdict,
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


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_the_ends_are_scipy_s(method: str) -> None:
    for count in (2, 3, 10, 37):
        values = np.random.default_rng(count).lognormal(size=count)
        for confidence in (0.95, 0.6):
            got = mean_interval(values, method=method, resamples=1000, confidence=confidence)
            known = bootstrap(
                (values,), np.mean, n_resamples=1000, confidence_level=confidence, vectorized=True,
                method=method, rng=np.random.default_rng([0, count]),
            ).confidence_interval  # fmt: skip
            # Another release of SciPy may interpolate in another order; of the one tried, every bit was equal.
            assert (got.low, got.high) == pytest.approx(tuple(known), rel=1e-12)


def crossed(seeds: int, windows: int, *effects: float, rng: np.random.Generator) -> np.ndarray:
    """Values of shape (seeds, windows) around 0: effects of seed, window and both, normal, of these deviations."""
    seed, window, both = effects
    shape = (seeds, windows)
    return (
        seed * rng.normal(size=(seeds, 1)) + window * rng.normal(size=windows) + both * rng.normal(size=shape)
    )  # fmt: skip


def test_seeds_that_agree_leave_the_interval_of_the_windows() -> None:
    values = np.random.default_rng(5).lognormal(size=10)
    alone = mean_interval(values)
    assert mean_interval([values]) == alone
    agreed = mean_interval([values, values, values])
    assert (agreed.low, agreed.high) == pytest.approx((alone.low, alone.high), rel=1e-3)  # rounding parts ties
    apart = mean_interval([values - 0.5, values, values + 0.5])
    assert apart.low < alone.low < alone.high < apart.high


def test_windows_that_agree_leave_student_s_interval_of_the_seeds() -> None:
    by_seed = np.array([1.0, 2.0, 4.0])
    reach = t.ppf(0.975, 2) * by_seed.std(ddof=1) / math.sqrt(3)
    assert t.ppf(0.975, 2) == pytest.approx(4.3027, abs=6e-5)  # the tables'
    agreed = mean_interval(np.repeat(by_seed[:, None], 10, axis=1))
    assert (agreed.low, agreed.high) == pytest.approx((by_seed.mean() - reach, by_seed.mean() + reach))
    apart = mean_interval(by_seed[:, None] + np.arange(10) - 4.5)
    assert apart.low < agreed.low < agreed.high < apart.high


@given(
    st.lists(st.lists(st.integers(-100, 100), min_size=4, max_size=4), min_size=2, max_size=4),
    st.sampled_from(["bca", "percentile"]),
)
def test_an_agent_s_interval_is_never_narrower_than_that_of_its_windows(values: list[list[int]], method: str) -> None:
    got = mean_interval(values, resamples=500, method=method)
    windows = mean_interval(np.mean(values, axis=0), resamples=500, method=method)
    assert got.low <= windows.low + 1e-9
    assert got.high >= windows.high - 1e-9
    assert mean_interval(values[::-1], resamples=500, method=method).high == pytest.approx(got.high)  # seeds: no order


@pytest.mark.parametrize(
    ("effects", "low", "high"),
    [
        ((1.0, 0.0, 0.0), 0.92, 0.98),
        ((1.0, 1.0, 0.0), 0.93, 0.99),
        ((0.3, 1.0, 0.5), 0.93, 1.0),
        ((0.0, 1.0, 0.0), 0.86, 0.95),
    ],
)
def test_coverage_over_three_seeds_and_ten_windows(
    effects: tuple[float, float, float], low: float, high: float
) -> None:
    """Nominal 95 %; drawing seeds with replacement as well would cover 75, 83, 91 and 92 %."""
    rng, trials, hits = np.random.default_rng(11), 500, 0
    for _ in range(trials):
        got = mean_interval(crossed(3, 10, *effects, rng=rng), resamples=500)
        hits += got.low <= 0.0 <= got.high
    assert low <= hits / trials <= high


def test_seeds_enter_paired_differences() -> None:
    rng = np.random.default_rng(2)
    level = rng.lognormal(3.0, 1.0, size=10)
    agent = level - 1.0 + np.array([[-0.5], [0.0], [0.5]])
    rule = paired_difference(agent, level)
    reach = t.ppf(0.975, 2) * 0.5 / math.sqrt(3)
    assert (rule.difference.low, rule.difference.high) == pytest.approx((-1 - reach, -1 + reach))
    assert (rule.better, rule.worse, rule.clear) == (10, 0, False)
    assert paired_difference(agent.mean(axis=0), level).clear  # of the mean model alone
    other = paired_difference(agent, level + np.array([[-0.2], [0.2]]))  # two seeds of another agent
    more = t.ppf(0.975, 1) * 0.2
    assert other.difference.high == pytest.approx(-1 + math.hypot(reach, more))
    back = paired_difference(level, agent)
    assert (back.difference.low, back.difference.high) == pytest.approx((1 - reach, 1 + reach))
    with pytest.raises(InputError, match="9 values against 10"):
        paired_difference(agent[:, 1:], level)


def test_windows_count_where_every_seed_defines_them() -> None:
    values = np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 5.0]])
    assert mean_interval(values).count == 2
    assert mean_interval(values).mean == 2.5
    assert mean_interval(np.full((2, 3), np.nan)).count == 0
    one = mean_interval([[1.0], [2.0], [3.0]])
    assert (one.mean, one.count) == (2.0, 1)
    assert math.isnan(one.high)  # of a single window nothing is known of others


@pytest.mark.parametrize(
    ("low", "high", "bound", "better", "word"),
    [
        (1.0, 2.0, 2.0, "lower", "met"), (1.0, 2.0, 1.5, "lower", "within noise"), (1.0, 2.0, 0.9, "lower", "missed"),
        (1.0, 2.0, 1.0, "higher", "met"), (1.0, 2.0, 1.5, "higher", "within noise"),
        (1.0, 2.0, 2.1, "higher", "missed"),
        (np.nan, np.nan, 9.0, "lower", "within noise"),
    ],
)  # fmt: skip
def test_a_bound_is_met_only_by_the_whole_interval(
    low: float, high: float, bound: float, better: str, word: str
) -> None:
    assert verdict(Interval(1.5, low, high, 10), bound, better) == word


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


@pytest.mark.parametrize("bad", [{"confidence": 1.0}, {"confidence": 0.0}, {"resamples": 99}, {"method": "jackknife"}])
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


def test_a_tidy_frame_with_seeds_is_read_as_an_agent() -> None:
    windows, seeds = range(6), (0, 1, 2)
    level = [10.0, 30.0, 20.0, 50.0, 40.0, 60.0]
    rows = [(w, "rule", None, "avg_wait_s", level[w]) for w in windows]
    rows += [(w, "agent", s, "avg_wait_s", level[w] - 5.0 + s) for w in windows for s in seeds]
    frame = polars.DataFrame(rows, schema=["window", "scheduler", "seed", "metric", "value"], orient="row")
    got = intervals(frame, "avg_wait_s")
    assert got["rule"] == mean_interval(level)
    assert got["agent"] == mean_interval([[v - 5.0 + s for v in level] for s in seeds])
    assert differences(frame.sort("seed"), "avg_wait_s", "rule")["agent"].difference.mean == pytest.approx(-4.0)
    assert by_window(frame, "agent", "avg_wait_s") == {str(w): level[w] - 4.0 for w in windows}


def test_the_hierarchical_bootstrap_resamples_seeds_and_windows() -> None:
    """If seeds agree, it is the windows' interval; if windows agree, that of the means of seeds; else it is wider."""
    windows, seeds = np.random.default_rng(2).normal(0.0, 1.0, 12), np.array([-1.0, 0.0, 4.0])
    of_windows = mean_interval(windows, method="percentile")
    alike = hierarchical_interval(np.tile(windows, (3, 1)))
    assert (alike.low, alike.high) == pytest.approx((of_windows.low, of_windows.high), abs=0.05)
    of_seeds = hierarchical_interval(np.tile(seeds[:, None], 12))
    assert (of_seeds.low, of_seeds.high) == (-1.0, 4.0)  # all three resamples of one seed: 1/27 each, above 2.5 %
    both = hierarchical_interval(windows + 0.2 * seeds[:, None])
    assert both.mean == pytest.approx(windows.mean() + 0.2)
    assert both.high - both.low > 1.05 * max(alike.high - alike.low, 0.2 * (of_seeds.high - of_seeds.low))
    assert hierarchical_interval(np.where(np.arange(12) < 6, windows, np.nan)).count == 6
    assert math.isnan(hierarchical_interval([[math.nan]]).mean)
