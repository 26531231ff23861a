"""Windows of training, validation and test: what they may touch, and that draws follow from seed and epoch alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import greenbatch as gb
from greenbatch.errors import InputError
from greenbatch.learning.runs.plan import make_plan
from greenbatch.learning.runs.windows import (
    HELD_OUT_JOBS,
    HELD_OUT_STARTS,
    PURPOSES,
    draw,
    evaluation_jobs,
    filtered,
    jobs_of,
    random_seed,
    seen_jobs,
    sjf_metric,
    training_starts,
    validation_starts,
)
from greenbatch.presets.training import HELD_OUT, MODES, read_training
from greenbatch.scenarios import Scenario

PAPER_STARTS = (6567, 7146, 919, 4498, 8632, 8217, 6890, 5225, 8064, 6122)


@pytest.fixture(scope="module")
def question() -> Scenario:
    """Ten thousand model jobs, evaluated as in the GAS-MARL paper."""
    made = gb.load_scenario("default")
    return replace(made, evaluation=replace(made.evaluation, starts=PAPER_STARTS, jobs=1024))


def short(question: Scenario, jobs: int, evaluation_jobs: int) -> Scenario:
    evaluation = replace(question.evaluation, starts=None, jobs=evaluation_jobs, windows=2)
    return replace(question, workload=question.workload.take(slice(0, jobs)), evaluation=evaluation)


def test_held_out_test_windows_lie_within_the_held_out_jobs():
    tested = jobs_of(np.array(HELD_OUT_STARTS), HELD_OUT_JOBS)
    assert len(set(HELD_OUT_STARTS)) == 10
    assert tested.min() == HELD_OUT.start == 2000
    assert tested.max() <= 4400 == HELD_OUT.stop - 1


@settings(max_examples=40, deadline=None)
@given(some.integers(1, 2200), some.integers(0, 12), some.integers(1, 300))
def test_held_out_training_sees_no_test_and_no_validation_job(question, jobs, windows, validation_jobs):
    checked = jobs_of(validation_starts(question, windows, validation_jobs), validation_jobs)
    trained = jobs_of(training_starts(question, jobs, "held-out", reserved=checked), jobs)
    assert not set(trained.tolist()) & set(HELD_OUT)
    assert not np.intersect1d(trained, checked).size
    assert not set(checked.tolist()) & set(HELD_OUT)
    assert not np.intersect1d(checked, evaluation_jobs(question)).size
    assert trained.max(initial=0) < 10_000


def test_held_out_training_may_see_everything_else(question):
    starts = training_starts(question, 256, "held-out")
    assert starts.tolist() == [*range(2000 - 256 + 1), *range(4401, 10_000 - 256 + 1)]


def test_published_training_windows_begin_where_the_code_lets_them(question):
    for jobs in (1, 256, 1024):
        starts = training_starts(question, jobs, "published")
        # numpy.random.RandomState.randint(jobs, N - jobs - 1), which never gives its upper bound
        assert (starts[0], starts[-1], len(starts)) == (jobs, 10_000 - jobs - 2, 10_000 - 2 * jobs - 1)


def test_a_trace_of_one_window_is_trained_on(question):
    assert training_starts(short(question, 6, 1024), 6, "published").tolist() == [0]
    assert training_starts(short(question, 7, 1024), 6, "published").tolist() == [0, 1]
    with pytest.raises(InputError, match=r"no training window of 7 jobs .* 6 jobs of default"):
        training_starts(short(question, 6, 1024), 7, "published")


def test_a_trace_without_the_held_out_jobs_cannot_hold_them_out(question):
    assert len(training_starts(short(question, 2001, 1024), 6, "held-out"))
    with pytest.raises(InputError, match=r"--windows: default has 2000 jobs; jobs 2000 to 4400 are held out"):
        training_starts(short(question, 2000, 1024), 6, "held-out")


def test_too_long_windows_are_refused_in_one_line(question):
    with pytest.raises(InputError, match=r"training.jobs: no training window .*--windows published"):
        training_starts(question, 6000, "held-out")
    with pytest.raises(InputError, match=r"only 0 of 4 validation windows of 1024 jobs .*training.keep=last"):
        validation_starts(question, 4, 1024)
    with pytest.raises(
        InputError, match=r"test windows of default contain all of its 60 jobs.*windows=0 training.keep=last"
    ):
        validation_starts(short(question, 60, 59), 2, 10)
    with pytest.raises(InputError, match="of 5000 validation windows"):
        validation_starts(question, 5000, 256)


def test_validation_windows_are_different_and_spread_over_what_is_free(question):
    starts = validation_starts(question, 8, 256)
    free = [*range(919 - 256 + 1), *range(9656, 10_000 - 256 + 1)]
    assert len(set(starts.tolist())) == 8
    assert (starts[0], starts[-1]) == (free[0], free[-1])
    assert set(starts.tolist()) <= set(free)
    assert validation_starts(question, 1, 256).tolist() == [0]
    assert validation_starts(question, 0, 256).tolist() == []


def test_random_evaluation_windows_are_tests_too(question):
    randomly = replace(question, evaluation=replace(question.evaluation, starts=None, windows=3, seed=4))
    starts = np.array(randomly.random_starts(3, 1024, 4))
    assert evaluation_jobs(randomly).tolist() == jobs_of(starts, 1024).tolist()
    assert evaluation_jobs(short(question, 50, 1024)).size == 0


@pytest.mark.parametrize("mode", MODES)
def test_draws_follow_from_seed_and_epoch_alone(question, mode):
    starts = training_starts(question, 256, mode)
    forwards = [draw(starts, 100, 7, epoch).tolist() for epoch in range(6)]
    backwards = [draw(starts, 100, 7, epoch).tolist() for epoch in reversed(range(6))]
    assert forwards == backwards[::-1]
    assert len({tuple(drawn) for drawn in forwards}) == 6
    assert draw(starts, 100, 8, 0).tolist() != forwards[0]
    assert set(forwards[0]) <= set(starts.tolist())


def test_draws_are_uniform():
    counts = np.bincount(np.concatenate([draw(np.arange(10), 1000, 1, epoch) for epoch in range(20)]))
    # 20,000 draws: each count is 2000 +- 42; five deviations
    assert len(counts) == 10
    assert np.all(np.abs(counts - 2000) < 212)


@settings(max_examples=50, deadline=None)
@given(some.integers(0, 2**63 - 1), some.integers(0, 10**6))
def test_every_purpose_has_its_own_stream(seed, epoch):
    drawn = [random_seed(seed, epoch, purpose) for purpose in PURPOSES]
    assert len(set(drawn)) == len(PURPOSES)
    assert all(0 <= number < 2**63 for number in drawn)
    assert drawn != [random_seed(seed, epoch + 1, purpose) for purpose in PURPOSES]


@settings(max_examples=50, deadline=None)
@given(some.lists(some.floats(1, 1e6), min_size=3, max_size=40), some.integers(0, 99))
def test_filter_keeps_what_lies_between_the_median_and_twice_the_mean(figures, seed):
    values = np.array(figures)
    low, high = sorted(figures)[len(figures) // 2], 2 * sum(figures) / len(figures)
    if len(figures) % 2 == 0:
        low = (low + sorted(figures)[len(figures) // 2 - 1]) / 2
    starts = 1000 + np.arange(len(figures))
    expected = [1000 + k for k, value in enumerate(figures) if low < value < high]
    if not expected:
        with pytest.raises(InputError, match=r"training.filter.kind"):
            filtered(starts, len(figures), seed, lambda chosen: values[chosen - 1000])
        return
    found = filtered(starts, len(figures), seed, lambda chosen: values[chosen - 1000])
    assert found.starts.tolist() == expected
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


def test_filter_samples_different_windows_reproducibly():
    seen: list[np.ndarray] = []

    def metric(chosen: np.ndarray) -> np.ndarray:
        seen.append(chosen)
        return chosen.astype(float)

    for seed in (1, 1, 2):
        filtered(np.arange(1000), 100, seed, metric)
    assert [len(set(chosen.tolist())) for chosen in seen] == [100, 100, 100]
    assert seen[0].tolist() == seen[1].tolist() != seen[2].tolist()


def test_the_filters_figure_is_that_of_sjf(question):
    starts = np.array([100, 3000])
    outcomes = [gb.simulate(question, "sjf+easy", start=start, jobs=64) for start in starts.tolist()]
    expected = [gb.evaluate(outcome)["avg_bounded_slowdown"] for outcome in outcomes]
    told: list[tuple[int, int]] = []
    metric = sjf_metric(question, 64, "easy", "avg_bounded_slowdown", lambda done, every: told.append((done, every)))
    assert metric(starts) == pytest.approx(expected, rel=1e-12)
    assert told == [(1, 2), (2, 2)]
    assert sjf_metric(question, 64, "easy", "avg_wait_s")(starts)[0] == gb.evaluate(outcomes[0])["avg_wait_s"]
    with pytest.raises(InputError, match="unknown metric"):
        sjf_metric(question, 64, "easy", "avg_weight")
    with pytest.raises(InputError, match="makespan_ratio compares schedulers"):
        sjf_metric(question, 64, "easy", "makespan_ratio")


def test_held_out_jobs_of_real_traces(greenbatch_data, monkeypatch):
    monkeypatch.setenv("GREENBATCH_DATA", str(greenbatch_data("swf/lublin_256.swf.gz").parents[1]))
    scenario = gb.load_scenario("gas-marl/lublin-256")
    checked = jobs_of(validation_starts(scenario, 8, 256), 256)
    trained = jobs_of(training_starts(scenario, 256, "held-out", reserved=checked), 256)
    assert not set(trained.tolist()) & (set(HELD_OUT) | set(checked.tolist()))
    assert len(trained) > 6000


SEARCHED = {"population": 4, "fixed_windows": True}


@pytest.mark.parametrize(
    ("table", "mode", "runs"),
    [
        ({"jobs": 256, "keep": "last", "validation": {"windows": 0}}, "held-out", [[0, 1999], [4401, 9999]]),
        ({"jobs": 256, "keep": "last", "validation": {"windows": 0}}, "published", [[256, 9997]]),
        ({"jobs": 100, "windows": 2, "keep": "last", "search": SEARCHED}, "published", [[100, 199], [9898, 9997]]),
        ({"jobs": 100, "windows": 2, "keep": "last", "search": {"population": 4}}, "published", [[100, 9997]]),
        ({"jobs": 300, "keep": "last", "validation": {"windows": 0}, "curriculum": [{"start": 0.5, "jobs": 10}]},
         "published", [[10, 9997]]),
    ],
)  # fmt: skip
def test_seen_jobs_are_those_that_a_window_could_hold(question, table, mode, runs):
    assert seen_jobs(question, read_training(table), mode) == runs


@pytest.mark.parametrize("mode", MODES)
def test_jobs_that_choose_the_actor_are_seen_too(question, mode):
    table = {"jobs": 50, "windows": 1, "search": SEARCHED, "validation": {"windows": 2, "jobs": 30}}
    checked = jobs_of(validation_starts(question, 2, 30), 30).tolist()
    seen = {job for first, last in seen_jobs(question, read_training(table), mode) for job in range(first, last + 1)}
    assert set(checked) < seen
    assert len(seen) == 50 + len(checked)


def test_a_number_of_windows_is_referred_to_its_setting() -> None:
    with pytest.raises(InputError, match=r"--windows: is '3' .*the number of windows is --set training\.windows=N"):
        make_plan("gas-marl", gb.load_scenario("default"), windows="3")


def test_a_refused_scenario_names_the_one_made_for_training() -> None:
    with pytest.raises(InputError, match=r"\(train on rare/10-training, or set training\.validation\.jobs lower"):
        validation_starts(gb.load_scenario("rare/10"), 8, 800)
    with pytest.raises(InputError, match=r"\(train on rare/10-training, or set it to at most"):
        training_starts(gb.load_scenario("rare/10"), 10_000, "published")
