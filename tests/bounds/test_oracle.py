"""No schedule beats the bound: closed forms, all schedules of tiny windows, and every shipped scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_windows import cluster_of, energy, fits, jobs_of, schedules, site_of, utilization

import greenbatch as gb
from greenbatch.bounds import oracle, oracle_bound, oracle_bounds
from greenbatch.bounds.problem import problem_of
from greenbatch.bounds.starts import Prices, least_j
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError, SupplyExhausted
from greenbatch.metrics import evaluate, measure
from greenbatch.schedulers import scheduler

RULES = Rules()
FOUR = cluster_of(4, 100.0)
ONE = jobs_of(submit_s=[600.0], run_time_s=[3600.0], processors=[2], power_w=[300.0])

# ---------------------------------------------------------------- closed forms


def test_without_renewable_power_nothing_is_renewable() -> None:
    bound = oracle_bound(ONE, FOUR, site_of([0.0]), RULES, latest_end_s=20_000.0)
    assert bound.renewable_utilization == pytest.approx(0.0, abs=1e-6)
    assert bound.brown_j == pytest.approx(300.0 * 3600 + 100.0 * (20_000 - 600))
    assert (bound.first_submit_s, bound.latest_end_s) == (600.0, 20_000.0)


def test_with_enough_renewable_power_everything_is_renewable() -> None:
    bound = oracle_bound(ONE, FOUR, site_of([400.0]), RULES, latest_end_s=20_000.0)
    assert (bound.renewable_utilization, bound.brown_j) == (1.0, 0.0)


def test_one_job_under_a_constant_supply() -> None:
    bound = oracle_bound(ONE, FOUR, site_of([200.0]), RULES, latest_end_s=4200.0)
    assert bound.renewable_utilization == pytest.approx(0.5, abs=1e-3)
    assert bound.brown_j == pytest.approx(200.0 * 3600, rel=1e-3)


def test_one_job_waits_for_the_sun() -> None:
    site = site_of([0.0, 0.0, 0.0, 0.0, 400.0, 400.0, 0.0, 0.0])  # sun from 7200 to 10800
    late = oracle_bound(ONE, FOUR, site, RULES, latest_end_s=10_800.0)
    assert late.renewable_utilization == 1.0
    soon = oracle_bound(ONE, FOUR, site, RULES, latest_end_s=9000.0)  # it can use half of the sun
    assert soon.renewable_utilization == pytest.approx(0.5, abs=0.02)
    assert soon.brown_j == pytest.approx(300.0 * 1800 + 100.0 * 6600, rel=0.01)


def test_capacity_counts() -> None:
    """Two jobs for the whole machine and sun for one of them: one runs in the dark."""
    jobs = jobs_of(submit_s=[0.0, 0.0], run_time_s=[3600.0, 3600.0], processors=[4, 4], power_w=[300.0, 300.0])
    site = site_of([900.0, 900.0, 0.0, 0.0])
    bound = oracle_bound(jobs, FOUR, site, RULES, latest_end_s=7200.0)
    assert bound.renewable_utilization == pytest.approx(0.5, abs=0.01)
    assert bound.brown_j == pytest.approx(400.0 * 3600, rel=0.01)


def test_jobs_killed_at_their_requested_time_use_less() -> None:
    jobs = ONE.with_columns(requested_time_s=np.array([1800.0]))
    killed, extended = (
        oracle_bound(jobs, FOUR, site_of([0.0]), Rules(overrun=each), latest_end_s=20_000.0).brown_j
        for each in ("kill", "extend")
    )
    assert extended - killed == pytest.approx(300.0 * 1800)


# ---------------------------------------------------------------- all schedules of tiny windows


@st.composite
def windows(draw: st.DrawFn, most_jobs: int = 3) -> tuple[gb.Workload, gb.Cluster, Site]:
    n = draw(st.integers(1, most_jobs))
    whole = st.integers(1, 6)
    jobs = jobs_of(
        submit_s=[600.0 * draw(st.integers(0, 4)) for _ in range(n)],
        run_time_s=[600.0 * draw(whole) for _ in range(n)],
        processors=[draw(st.integers(1, 4)) for _ in range(n)],
        power_w=[100.0 * draw(st.integers(0, 5)) for _ in range(n)],
    )
    supply = draw(st.lists(st.sampled_from([0.0, 50.0, 150.0, 300.0, 700.0]), min_size=1, max_size=6))
    site = site_of(
        supply, step_s=draw(st.sampled_from([600.0, 1000.0, 1800.0])), origin_s=draw(st.sampled_from([0.0, 250.0]))
    )
    return jobs, cluster_of(4, draw(st.sampled_from([0.0, 100.0]))), site


@settings(max_examples=30, deadline=None)
@given(windows(), st.integers(0, 8))
def test_no_schedule_of_a_tiny_window_beats_the_bound(window: tuple[gb.Workload, gb.Cluster, Site], more: int) -> None:
    jobs, cluster, site = window
    latest_end_s = float((jobs.submit_s + jobs.run_time_s).max()) + 600.0 * more
    if not any(True for _ in schedules(jobs, cluster, latest_end_s, 600.0)):
        return
    bound = oracle_bound(jobs, cluster, site, RULES, latest_end_s=latest_end_s)
    span = float(jobs.submit_s.min()), latest_end_s
    for start_s in schedules(jobs, cluster, latest_end_s, 600.0):
        assert utilization(jobs, cluster, site, start_s) <= bound.renewable_utilization + 1e-12
        assert energy(jobs, cluster, site, start_s, span)[1] >= bound.brown_j - 1e-6


def test_the_bound_is_close_to_the_optimum_of_easy_windows() -> None:
    """Narrow jobs: what the relaxation forgets, that jobs are whole, matters little."""
    rng, over, below = np.random.default_rng(0), [], []
    for case in range(5):
        jobs = jobs_of(
            submit_s=[0.0, 0.0, 600.0], run_time_s=rng.choice([1200.0, 1800.0, 2400.0], 3),
            processors=[1, 1, 1], power_w=rng.choice([100.0, 200.0, 300.0], 3),
        )  # fmt: skip
        site = site_of([*[0.0, 900.0, 0.0, 600.0, 100.0][case % 3 :], 0.0])
        cluster = cluster_of(2 + case % 3, 100.0)
        bound = oracle_bound(jobs, cluster, site, RULES, latest_end_s=7200.0)
        every = list(schedules(jobs, cluster, 7200.0, 600.0))
        over.append(bound.renewable_utilization - max(utilization(jobs, cluster, site, each) for each in every))
        least_brown_j = min(energy(jobs, cluster, site, each, (0.0, 7200.0))[1] for each in every)
        below.append(1.0 - bound.brown_j / least_brown_j)
    assert min(over) >= 0
    assert max(over) < 0.06
    assert np.median(over) < 0.02
    assert min(below) >= 0
    assert max(below) < 0.2
    assert np.median(below) < 0.005


# ---------------------------------------------------------------- any prices, and wrong ones


@settings(max_examples=30, deadline=None)
@given(windows(), st.integers(0, 2**32 - 1))
def test_any_prices_prove_a_bound(window: tuple[gb.Workload, gb.Cluster, Site], seed: int) -> None:
    jobs, cluster, site = window
    rng = np.random.default_rng(seed)
    start_s = serial(jobs, rng)
    problem = problem_of(jobs, cluster, site, RULES, float((start_s + jobs.run_time_s).max()))
    k = len(problem.surplus_w)
    prices = [Prices(brown=rng.random(k) * scale, processor_w=rng.exponential(scale, k)) for scale in (0.1, 1.0)]
    bound = oracle.bound_by(problem, prices)
    assert utilization(jobs, cluster, site, start_s) <= bound.renewable_utilization + 1e-12


def serial(jobs: gb.Workload, rng: np.random.Generator) -> np.ndarray:
    """A schedule with one job at a time, in random order, with random delays at random instants."""
    start_s, free_s = np.zeros(len(jobs)), 0.0
    for job in rng.permutation(len(jobs)):
        start_s[job] = max(free_s, jobs.submit_s[job]) + rng.choice([0.0, rng.exponential(2000.0)])
        free_s = start_s[job] + jobs.run_time_s[job]
    return start_s


WRONG = {
    "fewer processors": {"cluster_processors": 2},
    "less surplus": {"surplus_w": 0.8},
    "later submissions": {"submit_s": 900.0},
    "more idle brown energy": {"idle_brown_j": 3e5},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_bound_is_beaten(wrong: str) -> None:
    """The checks above can fail: each mistake in the problem is refuted by a schedule."""
    jobs = jobs_of(submit_s=[0.0] * 4, run_time_s=[1800.0] * 4, processors=[1] * 4, power_w=[300.0] * 4)
    site = site_of([1300.0, 200.0, 0.0, 0.0])
    problem = problem_of(jobs, FOUR, site, RULES, 3600.0)
    ((name, change),) = WRONG[wrong].items()
    old = getattr(problem, name)
    new = {"cluster_processors": 2, "surplus_w": old * change, "submit_s": old + change,
           "idle_brown_j": old + np.linspace(0.0, 1.0, np.size(old)) * change}[name]  # fmt: skip
    best = max(utilization(jobs, FOUR, site, each) for each in schedules(jobs, FOUR, 3600.0, 600.0))
    assert best == 1.0
    assert oracle.bound_by(problem, [oracle.ascend(problem)]).renewable_utilization == 1.0
    problem = replace(problem, **{name: new})
    assert oracle.bound_by(problem, [oracle.ascend(problem)]).renewable_utilization < best - 0.01


def test_prices_beyond_their_range_are_told_apart_by_a_schedule() -> None:
    """Without capacity to pay for, brown energy at a price of 2 would be counted twice."""
    problem = problem_of(ONE, FOUR, site_of([0.0]), RULES, 20_000.0)
    k = len(problem.surplus_w)
    honest, wrong = (
        least_j(problem, Prices(brown=np.full(k, price), processor_w=np.zeros(k)), [0])[0, -1] for price in (1.0, 2.0)
    )
    brown_j = energy(ONE, FOUR, site_of([0.0]), np.array([600.0]), (600.0, 20_000.0))[1] - 100.0 * (20_000.0 - 600.0)
    assert honest == pytest.approx(brown_j, rel=1e-9)
    assert wrong > brown_j * 1.5


# ---------------------------------------------------------------- shipped schedulers

NAMES = (
    "fcfs+none", "f2+easy-schedgym", "fcfs+green", "f2+conservative", "lptpn", "cheapest-start", "foresee",
    "ga:evaluations=60+easy-schedgym", "gas-marl-plus@lublin-256:makespan_bound=1.25",
    "rolling:knowledge=perfect:horizon=7200",
)  # fmt: skip
"""Some of each kind: rules, reservations for all, planners, an order that is searched, one that knows the future."""


@st.composite
def larger(draw: st.DrawFn) -> tuple[gb.Workload, gb.Cluster, Site]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 15))
    processors = rng.integers(1, 9, n)
    jobs = jobs_of(
        submit_s=np.sort(rng.exponential(3000.0, n).cumsum().round(draw(st.sampled_from([-2, 0])))),
        run_time_s=np.maximum(rng.lognormal(8.0, 1.5, n).round(), 1.0),
        processors=processors, power_w=processors * rng.uniform(5.0, 50.0, n),
    )  # fmt: skip
    supply = np.maximum(rng.normal(150.0, 200.0, draw(st.integers(1, 40))), 0.0)
    return (
        jobs,
        cluster_of(8, 50.0),
        site_of(supply, step_s=draw(st.sampled_from([900.0, 3600.0, 7200.0])), forecast_horizon_s=86_400.0),
    )


@pytest.mark.plain
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=3, deadline=None)
@given(window=larger())
def test_no_shipped_scheduler_beats_the_bound(name: str, window: tuple[gb.Workload, gb.Cluster, Site]) -> None:
    jobs, cluster, site = window
    if name.startswith("rolling"):  # every half-hour, it simulates some hundred settings
        jobs = jobs.take(slice(0, 3))
    outcome = simulate(jobs, cluster, site, RULES, scheduler(name))
    assert fits(jobs, outcome.start_s, cluster.processors)
    run = measure(outcome)
    bound = oracle_bound(jobs, cluster, site, RULES, latest_end_s=run.last_end_s)
    assert evaluate(outcome)["renewable_utilization"] <= bound.renewable_utilization
    books = run.books_over(bound.first_submit_s, bound.latest_end_s)
    assert books is not None
    assert books.grid_j >= bound.brown_j


@pytest.mark.plain
def test_a_later_end_never_lowers_the_bound() -> None:
    scenario = gb.load_scenario("default")
    window = scenario.window(0, 30)
    outcome = simulate(window, scenario.cluster, scenario.site, scenario.rules, scheduler("f2+easy"))
    first_s, end_s = float(window.submit_s.min()), float(outcome.end_s.max())
    ends_s = [first_s + ratio * (end_s - first_s) for ratio in (1.5, 1.0, 1.2)]
    bounds = oracle_bounds(window, scenario.cluster, scenario.site, scenario.rules, latest_ends_s=ends_s)
    assert [bound.latest_end_s for bound in bounds] == pytest.approx(ends_s)
    long, short, middle = (bound.renewable_utilization for bound in bounds)
    assert evaluate(outcome)["renewable_utilization"] <= short <= middle <= long


# ---------------------------------------------------------------- what it refuses


def test_what_the_bound_does_not_know_is_refused_in_one_line() -> None:
    site = site_of([100.0])
    nodes = gb.Cluster.of_nodes(groups=FOUR.groups)
    heavy = Site(name="pue", step_s=1800.0, sources_w={"sun": np.ones(4)}, repeat=True, pue=1.3)
    ends = Site(name="short", step_s=1800.0, sources_w={"sun": np.ones(4)})
    work = jobs_of(submit_s=[0.0] * 3, run_time_s=[3600.0] * 3, processors=[4] * 3, power_w=[9.0] * 3)
    wide = ONE.with_columns(processors=np.array([5]))
    for jobs, cluster, supply, end_s, words in (
        (ONE, nodes, site, 9e3, "pool of processors"), (ONE, FOUR, heavy, 9e3, "PUE or a base load"),
        (ONE, FOUR, site, 4000.0, "no schedule ends before 4200"),
        (ONE, FOUR, site, np.nan, "no schedule ends before 4200"),
        (work, FOUR, site, 9000.0, "no schedule ends before 10800"),
        (ONE.with_columns(power_w=np.array([np.nan])), FOUR, site, 9e3, "has no power"),
        (wide, FOUR, site, 9e3, "needs 5 processors"), (ONE.take(slice(0, 0)), FOUR, site, 9e3, "has no jobs"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            oracle_bound(jobs, cluster, supply, RULES, latest_end_s=end_s)
    with pytest.raises(SupplyExhausted, match="the bound needs 600 to 9000"):
        oracle_bound(ONE, FOUR, ends, RULES, latest_end_s=9e3)


# ---------------------------------------------------------------- real data


def test_schedulers_stay_below_the_bound_of_a_real_window(greenbatch_data: Callable[[str], Path]) -> None:
    greenbatch_data("swf/Jann.swf.gz")
    scenario = gb.load_scenario("gas-marl/jann")
    window, parts = scenario.window(919, 1024), (scenario.cluster, scenario.site, scenario.rules)
    assert scenario.site is not None
    names = ("f2+easy-schedgym", "gas-marl-plus@jann:makespan_bound=1.25")
    runs = {name: measure(simulate(window, *parts, scheduler(name))) for name in names}
    ends_s = [run.last_end_s for run in runs.values()]
    bounds = oracle_bounds(window, scenario.cluster, scenario.site, scenario.rules, latest_ends_s=ends_s)
    for (name, run), bound in zip(runs.items(), bounds, strict=True):
        reached = evaluate(run.outcome)["renewable_utilization"]
        assert reached < bound.renewable_utilization < reached + 0.25, name
        books = run.books_over(bound.first_submit_s, bound.latest_end_s)
        assert books is not None
        assert books.grid_j > bound.brown_j > 0.3 * books.grid_j, name
    assert bounds[0].renewable_utilization < 0.69  # of f2+easy-schedgym, whose utilization is 0.56
