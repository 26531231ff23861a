"""Predictors of run times: closed forms, no use of the future, and what rules and views see of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numba
import numpy as np
import pytest
from cases import workload
from driven import run_from_views
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Job

import greenbatch as gb
from greenbatch.cluster import Cluster
from greenbatch.engine.prediction.known import PREDICTOR_OF, fill, learn, predicts
from greenbatch.engine.prediction.mixture import BINS, LEVELS, SHORTEST_S, Mixture, predict, quantile_s
from greenbatch.engine.program import Program
from greenbatch.engine.reads import may_read
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import run_program, simulate
from greenbatch.engine.views.codec import state_of
from greenbatch.engine.views.interface import Queue, Start, View
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.machine_code.compile import PLAIN
from greenbatch.policies.registry import guard
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

PREDICTORS = ("last-two", "like-jobs", "learned")


def jobs_of(
    user: list[int], run_s: list[float], requested_s: float | list[float] = 5000.0, gap_s: float = 1e6
) -> Workload:
    """Jobs of some users, far enough apart that each ends before the next is submitted."""
    count = len(user)
    return Workload.from_columns("users", {
        "submit_s": np.arange(count) * gap_s, "run_time_s": np.array(run_s), "processors": np.ones(count, np.int64),
        "requested_time_s": np.broadcast_to(requested_s, count).astype(float), "user": np.array(user),
        "power_w": np.ones(count),
    })  # fmt: skip


def predicted(name: str, jobs: Workload) -> Any:
    """What is predicted of each job, after all before it have ended."""
    made = PREDICTOR_OF[name](jobs)
    for j in range(len(jobs)):
        fill(made, j, float(jobs.requested_time_s[j]), float(jobs.submit_s[j]), 0.0)
        learn(made, j, float(jobs.requested_time_s[j]), float(min(jobs.run_time_s[j], jobs.requested_time_s[j])))
    return made.jobs


def test_the_last_two_jobs_of_a_user() -> None:
    """By hand; another user in between, and a request below one of the two."""
    jobs = jobs_of([1, 1, 2, 1, 1], [100.0, 300.0, 7.0, 50.0, 1.0], [5000.0, 5000.0, 5000.0, 5000.0, 200.0])
    seen = predicted("last-two", jobs)
    assert seen["expected_time_s"].tolist() == [5000.0, 100.0, 5000.0, 200.0, 0.5 * (200.0 + 50.0)]
    assert seen["slowdown_price"][3] == pytest.approx(0.5 * (1 / 100 + 1 / 300))


def test_the_median_of_like_jobs() -> None:
    """Other requests count for nothing; after nine jobs the oldest is forgotten."""
    run_s = [float(k + 1) * 10 for k in range(12)]
    seen = predicted("like-jobs", jobs_of([1] * 13, [*run_s, 1.0]))
    assert seen["expected_time_s"].tolist()[:4] == [5000.0, 10.0, 15.0, 20.0]
    assert seen["expected_time_s"][12] == np.median(run_s[-9:])
    assert (seen["shortest_time_s"][12], seen["longest_time_s"][12]) == (40.0, 120.0)
    other = predicted("like-jobs", jobs_of([1, 1], [10.0, 10.0], [100.0, 200.0]))
    assert other["expected_time_s"][1] == 200.0


@pytest.mark.parametrize("run_s", [5.0, 700.0, 4_000.0])
def test_a_constant_run_time_is_learned(run_s: float) -> None:
    """Median and quantiles close in on it, and the price of waiting on 1 / run time (at least 10 s)."""
    seen = predicted("learned", jobs_of([1] * 80, [run_s] * 80))
    bin_s = (432_000 / 10) ** (1 / (BINS - 2))
    assert run_s / bin_s <= max(seen["expected_time_s"][-1], SHORTEST_S / bin_s) <= run_s * bin_s
    assert seen["longest_time_s"][-1] <= run_s * bin_s**2
    assert seen["slowdown_price"][-1] == pytest.approx(1 / max(run_s, 10.0), rel=0.1)
    assert seen["mean_time_s"][-1] == pytest.approx(run_s, rel=0.25)


def test_two_users_are_told_apart() -> None:
    seen = predicted("learned", jobs_of([1, 2] * 40, [20.0, 4000.0] * 40))
    assert seen["expected_time_s"][-2] < 60.0
    assert seen["expected_time_s"][-1] > 2000.0


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_distributions(data: st.DataObject) -> None:
    """They add up to one, nothing lies above the request or below the time already run, quantiles are in order."""
    count = data.draw(st.integers(1, 40))
    times = st.floats(0.5, 500_000.0)
    jobs = jobs_of(
        data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)),
        data.draw(st.lists(times, min_size=count, max_size=count)),
        data.draw(st.lists(times, min_size=count, max_size=count)),
    )
    made = PREDICTOR_OF["learned"](jobs)
    mixture: Mixture = made.mixture
    for j in range(count):
        requested_s = float(jobs.requested_time_s[j])
        elapsed_s = data.draw(st.floats(0.0, requested_s))
        predict(mixture, j, requested_s, elapsed_s, data.draw(times))
        assert mixture.mass.sum() == pytest.approx(1.0)
        assert (mixture.mass >= 0.0).all()
        quantiles_s = [quantile_s(mixture, share, requested_s, elapsed_s) for share in (0.0, 0.1, 0.5, 0.9, 1.0)]
        assert quantiles_s == sorted(quantiles_s)
        assert quantiles_s[-1] <= requested_s
        learn(made, j, requested_s, float(min(jobs.run_time_s[j], requested_s)))
        assert np.isfinite(mixture.weights).all()
        assert mixture.logs.shape == (LEVELS, BINS)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), ran=st.floats(0.02, 0.9), share=st.floats(0.0, 0.99))
def test_a_job_that_has_run_for_a_time(seed: int, ran: float, share: float) -> None:
    """What is left of the distribution is that of the longer run times, as it was before."""
    random = np.random.default_rng(seed)
    jobs = jobs_of(random.integers(0, 3, 30).tolist(), np.exp(random.uniform(1, 9, 30)).tolist(), 9000.0)
    made = PREDICTOR_OF["learned"](jobs)
    mixture: Mixture = made.mixture
    for j in range(29):
        learn(made, j, 9000.0, float(jobs.run_time_s[j]))
    predict(mixture, 29, 9000.0, 0.0, 0.0)
    elapsed_s, wanted_s = (quantile_s(mixture, part, 9000.0, 0.0) for part in (ran, ran + share * (1 - ran)))
    predict(mixture, 29, 9000.0, elapsed_s, 0.0)
    assert quantile_s(mixture, share, 9000.0, elapsed_s) == pytest.approx(wanted_s, rel=2e-3)


def busy_jobs(seed: int, count: int = 120) -> Workload:
    """Jobs of a few users with requests of up to ten times their run times, close together."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 6, count)
    run_s = np.round(np.exp(rng.normal(4.0 + user, 0.7))) + 1.0
    return Workload.from_columns("busy", {
        "submit_s": np.cumsum(np.round(rng.exponential(400.0, count))), "run_time_s": run_s, "user": user,
        "requested_time_s": run_s * rng.choice([1, 2, 10], count), "processors": rng.choice([1, 2, 4, 8], count),
        "power_w": rng.uniform(5.0, 50.0, count).round(1),
    })  # fmt: skip


CLUSTER = Cluster.pooled(16, processors_per_machine=4, idle_power_per_machine_w=50.0)
SUN = gb.load_scenario("default").site


@gb.rule("short-as-predicted")
def short_as_predicted(queue: Queue) -> Any:
    """Shortest predicted job first."""
    return queue.predicted.expected_time_s + 0.001 * queue.wait_s


@gb.rule("short-as-requested")
def short_as_requested(queue: Queue) -> Any:
    """Shortest requested job first."""
    return queue.requested_time_s + 0.001 * queue.wait_s


def starts(name: Any, jobs: Workload, **rules: Any) -> Any:
    return simulate(jobs, CLUSTER, SUN, Rules(**rules), scheduler(name)).start_s


@pytest.mark.parametrize("name", ["foresee", "short-as-predicted+easy"])
@pytest.mark.parametrize("predictor", PREDICTORS)
def test_no_start_depends_on_the_future(name: str, predictor: str) -> None:
    """Jobs that end after a moment may run for any time: nothing that starts before it moves."""
    jobs = busy_jobs(9, 60)
    outcome = simulate(jobs, CLUSTER, SUN, Rules(predictor=predictor), scheduler(name))
    cut_s = float(np.quantile(outcome.end_s, 0.5))
    later = outcome.end_s > cut_s
    rng = np.random.default_rng(0)
    run_s = np.where(later, jobs.requested_time_s * rng.uniform(0.05, 1.0, len(jobs)), jobs.run_time_s)
    run_s = np.where(later & (outcome.start_s < cut_s), np.maximum(run_s, cut_s - outcome.start_s + 1.0), run_s)
    changed = starts(name, jobs.with_columns(run_time_s=run_s), predictor=predictor)
    early = outcome.start_s <= cut_s
    np.testing.assert_array_equal(changed[early], outcome.start_s[early])
    assert (changed[~early] != outcome.start_s[~early]).any()


def test_rules_see_requests_without_a_predictor() -> None:
    jobs = busy_jobs(1, 60)
    asked = starts("short-as-requested+easy", jobs)
    np.testing.assert_array_equal(starts("short-as-predicted+easy", jobs), asked)
    assert (starts("short-as-predicted+easy", jobs, predictor="learned") != asked).any()


@numba.njit
def predicted_median_s(queue: Queue) -> Any:
    return queue.predicted.expected_time_s


READERS = (predicted_median_s,)


def through_a_tuple(queue: Queue) -> Any:
    return READERS[0](queue) + 0.001 * queue.wait_s


def of_a_factory(read: Callable[[Queue], Any]) -> Callable[[Queue], Any]:
    def inner(queue: Queue) -> Any:
        return read(queue) + 0.001 * queue.wait_s

    return inner


def by_number(queue: Queue) -> Any:
    return queue[10][0] + 0.001 * queue.wait_s


def by_name(queue: Queue) -> Any:
    return getattr(queue, "predicted").expected_time_s + 0.001 * queue.wait_s  # noqa: B009


def unpacked(queue: Queue) -> Any:
    *_, known = queue
    return known.expected_time_s + 0.001 * queue.wait_s


def as_another(queue: Queue) -> Any:
    same = queue
    return same.predicted.expected_time_s + 0.001 * queue.wait_s


def around_another(queue: Queue) -> Any:
    def median_s() -> Any:
        return queue.predicted.expected_time_s

    return median_s() + 0.001 * queue.wait_s


def as_text(queue: Queue) -> Any:
    return eval("queue.predicted.expected_time_s") + 0.001 * queue.wait_s  # noqa: S307


def as_a_table(queue: Queue) -> Any:
    return queue._asdict()["predicted"].expected_time_s + 0.001 * queue.wait_s


def part(queue: Queue) -> Any:
    return 0.001 * queue.wait_s


@wraps(part)
def around(queue: Queue) -> Any:
    return queue.predicted.expected_time_s + part(queue)


READING = [
    through_a_tuple, of_a_factory(predicted_median_s), by_number, by_name, unpacked, as_another, around_another,
    as_text, as_a_table, around,
]  # fmt: skip


@pytest.fixture(scope="module")
def shortest_first() -> dict[str, Any]:
    """Starts of forty jobs, the shortest predicted one first, with each of two predictors."""
    return {
        name: starts("short-as-predicted+easy", busy_jobs(2, 40), predictor=name) for name in ("requested", "learned")
    }


@pytest.mark.parametrize("predictor", ["requested", "learned"])
@pytest.mark.parametrize("rule", READING)
def test_a_rule_may_read_predictions_in_any_way(rule: Any, predictor: str, shortest_first: dict[str, Any]) -> None:
    """The engine fills in what a rule with machine code reads; otherwise it would see zeros."""
    jobs, rules = busy_jobs(2, 40), Rules(predictor=predictor)
    for compiled in (rule, None):
        program = Program(name="own", backfill="easy", score=rule, fixed=False, compiled=compiled)
        started_s = run_program(jobs, CLUSTER, SUN, rules, program).start_s
        np.testing.assert_array_equal(started_s, shortest_first[predictor])


def test_what_a_rule_does_not_read_is_known() -> None:
    def rule(queue: Queue) -> Any:
        return np.log(queue.requested_time_s) + math.pi * float(SUN.step_s) / queue.processors

    assert not may_read(rule, "predicted")
    assert not may_read(guard(rule), "attributes")
    assert may_read(rule, "processors")


@pytest.mark.parametrize("predictor", ["requested", "learned"])
def test_a_fixed_score_of_predictions_changes_with_them(predictor: str) -> None:
    """A prediction is not known before the jobs that it is learned from have ended."""

    def rule(queue: Queue) -> Any:
        return queue.predicted.expected_time_s

    jobs, rules = busy_jobs(2, 40), Rules(predictor=predictor)
    found = [
        run_program(jobs, CLUSTER, SUN, rules, Program(name="own", backfill="easy", score=rule, fixed=fixed)).start_s
        for fixed in (True, False)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.compiled
@pytest.mark.parametrize("predictor", ["requested", "learned"])
def test_compiled_rules_and_plain_ones_see_the_same(predictor: str) -> None:
    def plain(queue: Queue) -> Any:
        assert isinstance(queue.now_s, float)
        return eval("queue.predicted.expected_time_s + 0.001 * queue.wait_s")  # noqa: S307  (cannot be compiled)

    jobs = busy_jobs(2, 120)
    found = simulate(jobs, CLUSTER, SUN, Rules(predictor=predictor), gb.scheduler(plain, backfill="easy"))
    np.testing.assert_array_equal(starts("short-as-predicted+easy", jobs, predictor=predictor), found.start_s)
    with_machine_code = gb.scheduler(of_a_factory(predicted_median_s), backfill="easy")
    assert PLAIN or with_machine_code.program(jobs).compiled is not None
    again = simulate(jobs, CLUSTER, SUN, Rules(predictor=predictor), with_machine_code)
    np.testing.assert_array_equal(again.start_s, found.start_s)


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_a_policy_sees_predictions_in_views(predictor: str) -> None:
    """Of the waiting jobs as rules see them, of the running ones as they were before their starts."""
    jobs = busy_jobs(4, 80)
    session = Session(jobs, CLUSTER, SUN, Rules(predictor=predictor), Program(name="seen", backfill="easy"))
    told: dict[int, float] = {}
    seen = 0
    while (view := session.view()) is not None:
        predicted_s = view.queue.predicted.expected_time_s
        assert (predicted_s <= view.queue.requested_time_s).all()
        told |= dict(zip(view.job_id.tolist(), predicted_s.tolist(), strict=True))
        for job, expected_s in zip(view.running.job_id.tolist(), view.running.expected_time_s.tolist(), strict=True):
            seen += told[job] == expected_s
        session.apply(Start(0))
    assert seen > 50


def test_predictions_of_running_jobs_are_corrected() -> None:
    """At a wake-up, each is expected to run for longer than it has, and by no more than its request."""
    jobs = busy_jobs(7, 80)
    rules = Rules(predictor="learned", tick_s=400.0)
    session = Session(jobs, CLUSTER, None, rules, Program(name="seen", backfill="easy"))
    told: dict[int, float] = {}
    corrected = 0
    while (view := session.view()) is not None:
        told |= dict(zip(view.job_id.tolist(), view.queue.predicted.expected_time_s.tolist(), strict=True))
        running = view.running
        before_s = np.array([told[job] for job in running.job_id.tolist()])
        if view.cause == "wake-up":
            assert (running.expected_time_s >= view.now_s - running.start_s).all()
            assert (running.expected_time_s <= running.expected_end_s - running.start_s).all()
            corrected += np.count_nonzero(running.expected_time_s > before_s)
        session.apply(Start(0))
    assert corrected > 50


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_rules_driven_from_views(predictor: str) -> None:
    jobs, how = busy_jobs(5, 60), scheduler("short-as-predicted+easy")
    rules = Rules(predictor=predictor)
    wanted = simulate(jobs, CLUSTER, SUN, rules, how).start_s
    np.testing.assert_array_equal(run_from_views(how, jobs, CLUSTER, SUN, rules).start_s, wanted)


def test_a_view_without_predictions_is_refused() -> None:
    from driven import driver_of

    jobs = busy_jobs(6, 20)
    driver = driver_of(scheduler("foresee"), jobs, CLUSTER, Rules())
    view = Session(jobs, CLUSTER, SUN, Rules(), Program(name="system")).view()
    assert isinstance(view, View)
    with pytest.raises(InputError, match="foresee\\+none needs predicted run times"):
        driver.decide(view)


def test_an_unknown_predictor_is_refused() -> None:
    with pytest.raises(InputError, match=r"rules\.predictor: is 'learnt' \(did you mean learned"):
        Rules(predictor="learnt")  # type: ignore[arg-type]


def test_the_same_bytes_again() -> None:
    jobs = busy_jobs(8, 30)
    np.testing.assert_array_equal(starts("foresee", jobs), starts("foresee", jobs))


def test_jobs_without_a_user() -> None:
    jobs = workload([Job(60.0 * k, 50.0, 90.0, 1 + k % 8, 20.0) for k in range(30)])
    assert np.isfinite(starts("foresee", jobs)).all()


def test_views_show_what_requested_times_predict_and_remain_as_cheap() -> None:
    """Without a predictor a view has the columns that a rule gets, and no other state is made from it."""
    jobs = busy_jobs(8, 80)
    session = Session(jobs, CLUSTER, SUN, Rules(), Program(name="longest first"))
    requested_s, both = dict(zip(jobs.job_id.tolist(), jobs.requested_time_s.tolist(), strict=True)), 0
    while (view := session.view()) is not None:
        queue, running = view.queue, view.running
        for name in ("expected_time_s", "shortest_time_s", "longest_time_s", "mean_time_s"):
            np.testing.assert_array_equal(getattr(queue.predicted, name), queue.requested_time_s)
        np.testing.assert_array_equal(queue.predicted.slowdown_price, 1 / np.maximum(queue.requested_time_s, 10.0))
        assert running.expected_time_s.tolist() == [requested_s[job] for job in running.job_id.tolist()]
        assert not view.predicts
        assert not predicts(state_of(view).predictor)
        both += len(running.job_id) > 0
        session.apply(Start(int(np.argmax(queue.predicted.expected_time_s))))
    assert both > 10
