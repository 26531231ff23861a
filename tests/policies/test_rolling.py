"""The rolling-horizon planner simulates what happens, and with sampled futures it knows nothing of what comes later."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import greenbatch as gb
from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import Site, Storage
from greenbatch.engine.codes import BACKFILL
from greenbatch.engine.entry_points import with_decider
from greenbatch.engine.observe.stacked import fork
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.imagined import Imagination
from greenbatch.engine.views.interface import View
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.metrics import measure
from greenbatch.policies import rolling_horizon
from greenbatch.policies.compiled.lookahead.weights import INPUTS, LAG, LAG_INPUT, PRICES
from greenbatch.policies.compiled.rolling import Objective, attempt_of
from greenbatch.policies.futures import Sampler, truth
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

sys.path.append(str(Path(__file__).parents[1] / "engine"))
from driven import run_from_views
from small_windows import CLUSTER, changed_later, site_of, windows

PLANNER = "gas-marl-plus@lublin-256"
NODES = Cluster.of_nodes([
    NodeGroup(name="fast", count=1, processors=CLUSTER.processors // 4, static_power_w=90.0, speed=2.0),
    NodeGroup(name="slow", count=3, processors=CLUSTER.processors // 4, static_power_w=50.0, idle_fraction=0.5),
])  # fmt: skip


def starts(name: str, jobs: Workload, site: Site) -> np.ndarray[Any, Any]:
    return simulate(jobs, CLUSTER, site, Rules(), scheduler(name)).start_s


@pytest.mark.parametrize("knowledge", ["sampled", "perfect"])
@settings(max_examples=4, deadline=None)
@given(window=windows(10))
def test_with_one_setting_it_is_the_planner(knowledge: str, window: tuple[Workload, Site]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling_horizon, "SETTINGS", ({},))
        followed = starts(f"rolling:knowledge={knowledge}", *window)
    np.testing.assert_array_equal(followed, starts(PLANNER, *window))


@settings(max_examples=3, deadline=None)
@given(window=windows(7))
def test_a_live_batch_system_gets_the_same_starts(window: tuple[Workload, Site]) -> None:
    jobs, site = window
    asked = run_from_views(scheduler("rolling"), jobs, CLUSTER, site, Rules())
    np.testing.assert_array_equal(asked.start_s, starts("rolling", jobs, site))


# ---------------------------------------------------------------- forks


def forked(jobs: Workload, site: Site, at: int, cluster: Cluster = CLUSTER) -> tuple[Outcome, View, Any, Any]:
    """A schedule of the planner, its view at a decision, the state that runs on from there, and the planner then.

    Its lag, which depends on a schedule of the jobs so far, has no effect.
    """
    rules = Rules()
    program, caught = scheduler(PLANNER).program(jobs), []

    def catch(view: View, decider: Any) -> Any:
        weights = decider.weights.copy()
        weights[LAG], weights[PRICES + LAG_INPUT :: len(INPUTS)] = 3.0, 0.0
        caught.append((view, fork(decider._replace(weights=weights))))
        return decider._replace(weights=weights)

    driver = ViewDriver(program, None, cluster, rules, steer=catch)
    session = Session(jobs, cluster, site, rules, program)
    while (view := session.view()) is not None:
        session.apply(driver.decide(view))
    view, decider = caught[at % len(caught)]
    (future,) = truth(jobs, cluster, site, rules).futures(view, 1, np.inf)
    return session.outcome(), view, Imagination(program, cluster, rules)(view, future), decider


@settings(max_examples=6, deadline=None)
@given(window=windows(15), at=st.integers(0, 100))
def test_the_true_future_comes_true(window: tuple[Workload, Site], at: int) -> None:
    comes_true(window, at, CLUSTER)


@pytest.mark.plain
@pytest.mark.parametrize(("seed", "at"), [(0, 16), (1, 16)])
def test_the_true_future_comes_true_on_nodes(seed: int, at: int) -> None:
    """At a decision while jobs run on fast and on slow nodes."""
    rng = np.random.default_rng(seed)
    run_s, processors = rng.lognormal(8.5, 1.0, 18).round(), rng.integers(1, 9, 18)
    jobs = Workload.from_columns("jobs", {
        "submit_s": np.sort(rng.exponential(1500.0, 18).cumsum().round(-1)), "run_time_s": run_s,
        "requested_time_s": 2.0 * run_s, "processors": processors, "power_w": processors * rng.uniform(5.0, 50.0, 18),
    })  # fmt: skip
    window = jobs, site_of(np.maximum(rng.normal(150.0, 200.0, 21 * 24), 0.0))
    comes_true(window, at, NODES)


def comes_true(window: tuple[Workload, Site], at: int, cluster: Cluster) -> None:
    """What is simulated from a view with the true future is what happens."""
    jobs, site = window
    outcome, view, state, decider = forked(jobs, site, at, cluster)
    with_decider("run", state, decider)(state, decider)
    coming = jobs.job_id[np.argsort(jobs.submit_s, kind="stable")[view.submitted :]]
    ids = np.concatenate([view.job_id, coming])
    log = state.log[: state.clock.logged]
    begun = {int(ids[row["job"]]): float(row["time_s"]) for row in log if row["kind"] <= BACKFILL}
    wanted = dict(zip(jobs.job_id.tolist(), outcome.start_s.tolist(), strict=True))
    assert begun == {int(number): wanted[int(number)] for number in ids}


@settings(max_examples=6, deadline=None)
@given(window=windows(12), at=st.integers(0, 100), ahead_h=st.floats(0.1, 72.0))
def test_a_fork_is_priced_like_what_happens(window: tuple[Workload, Site], at: int, ahead_h: float) -> None:
    jobs, site = window
    outcome, view, state, decider = forked(jobs, site, at)
    until_s = view.now_s + 3600.0 * ahead_h
    aims = Objective(until_s, 0.0, 0.0, 0.0), Objective(until_s, 7.0, 0.0, 0.0), Objective(until_s, 0.0, 3.0, 0.5)
    brown_j, slow_j, left_j = (
        attempt_of(state, decider)(fork(state), fork(decider), each) for each in aims
    )  # fmt: skip
    books = measure(outcome).books_over(view.now_s, until_s)
    assert books is not None
    assert brown_j == pytest.approx(books.grid_j, rel=1e-9, abs=1e-3)
    own = (outcome.start_s >= view.now_s) & (jobs.submit_s < until_s) & ~np.isin(jobs.job_id, view.running.job_id)
    waited_s = np.minimum(outcome.start_s, until_s) - np.maximum(jobs.submit_s, view.now_s)
    slowdown = np.maximum(waited_s, 0.0) / np.maximum(jobs.run_time_s, 10.0)
    assert slow_j - brown_j == pytest.approx(7.0 * slowdown[own].sum(), rel=1e-6, abs=1e-3)
    left_s = np.clip(outcome.end_s - until_s, 0.0, jobs.run_time_s)
    price_w = 3.0 * jobs.processors + 0.5 * jobs.power_w
    assert left_j - brown_j == pytest.approx(float((left_s * price_w)[own].sum()), rel=1e-6, abs=1e-3)


# ---------------------------------------------------------------- what it may know


@settings(max_examples=3, deadline=None)
@given(window=windows(8), part=st.floats(0.05, 0.95), seed=st.integers(0, 3))
def test_what_comes_later_changes_no_earlier_start(window: tuple[Workload, Site], part: float, seed: int) -> None:
    (jobs, site), name = window, f"rolling:seed={seed}:error=0.3"
    before = simulate(jobs, CLUSTER, site, Rules(), scheduler(name))
    at_s = float(jobs.submit_s[0] + part * (before.end_s.max() - jobs.submit_s[0]))
    after = starts(name, *changed_later(jobs, site, before, at_s))
    early = before.start_s < at_s
    np.testing.assert_array_equal(after[early], before.start_s[early])
    assert (after[~early] >= at_s).all()


@settings(max_examples=10, deadline=None)
@given(windows())
def test_perfect_knowledge_counts_brown_energy_as_without_a_battery(window: tuple[Workload, Site]) -> None:
    jobs, site = window
    battery = Storage(capacity_kwh=1.0, charge_w=100.0, discharge_w=100.0)
    bare, stored = (truth(jobs, CLUSTER, each, Rules()).power for each in (site, replace(site, storage=battery)))
    assert type(bare) is type(stored)
    np.testing.assert_equal([*bare], [*stored])


def test_perfect_knowledge_is_told_apart() -> None:
    """The check above can fail: the planner that knows the future starts jobs at other times if the future differs."""
    rng = np.random.default_rng(3)
    n = 12
    jobs = Workload.from_columns(
        "jobs",
        {"submit_s": np.sort(rng.exponential(1500.0, n).cumsum()), "run_time_s": rng.lognormal(9.0, 1.0, n),
         "processors": rng.integers(1, 7, n), "power_w": rng.uniform(50.0, 250.0, n)},
    )  # fmt: skip
    site, name = site_of(np.maximum(rng.normal(150.0, 200.0, 21 * 24), 0.0)), "rolling:knowledge=perfect"
    before = simulate(jobs, CLUSTER, site, Rules(), scheduler(name))

    def differs(at_s: float) -> bool:
        after = starts(name, *changed_later(jobs, site, before, at_s))
        early = before.start_s < at_s
        return bool((after[early] != before.start_s[early]).any())

    assert any(differs(float(at_s)) for at_s in np.quantile(before.start_s, [0.5, 0.7, 0.3]))


def views_of(jobs: Workload, site: Site) -> list[View]:
    session, views = Session(jobs, CLUSTER, site, Rules(), scheduler("fcfs+easy").program(jobs)), []
    while (view := session.view()) is not None:
        views.append(view)
        session.apply(gb.Start(0))
    return views


@settings(max_examples=12, deadline=None)
@given(window=windows(20), hours=st.floats(1.0, 60.0), error=st.sampled_from([0.0, 0.5]))
def test_sampled_futures_go_on_from_the_view(window: tuple[Workload, Site], hours: float, error: float) -> None:
    jobs, site = window
    sampler = Sampler(error, 1)
    for view in views_of(jobs, site):
        sampler.see(view)
        until_s = view.now_s + 3600.0 * hours
        for future in sampler.futures(view, 2, until_s):
            coming, ran_s = future.arrivals, view.now_s - view.running.start_s
            assert ((coming.submit_s > view.now_s) & (coming.submit_s < until_s)).all()
            assert (np.diff(coming.submit_s) >= 0).all()
            assert np.isin(coming.processors, jobs.processors).all()
            assert (coming.run_s <= coming.requested_s).all()
            assert (future.waiting_run_s <= view.queue.requested_time_s).all()
            assert (future.running_run_s > ran_s).all()
            known_w: Any = site.forecast(view.now_s)[2]
            first = int(view.now_s // 3600.0)
            supply: Any = future.power
            shown_w = supply.series[0][(first + np.arange(len(known_w))) % len(supply.series[0])]
            assert shown_w[0] == known_w[0]
            np.testing.assert_array_equal(shown_w > 0, known_w > 0)
            if error == 0.0:
                np.testing.assert_array_equal(shown_w, known_w)


# ---------------------------------------------------------------- what it refuses


def test_what_it_cannot_do_is_refused_in_one_line() -> None:
    jobs = Workload.from_columns("one", {"submit_s": [0.0], "run_time_s": [60.0], "processors": [1], "power_w": [9.0]})
    perfect = scheduler("rolling:knowledge=perfect")
    with pytest.raises(InputError, match="needs a power supply"):
        simulate(jobs, CLUSTER, None, Rules(), perfect)
    with pytest.raises(InputError, match="knows the future, so it cannot be driven from views"):
        ViewDriver(perfect.program(jobs), perfect.policy(), CLUSTER, Rules())
    with pytest.raises(InputError, match="sampled or perfect"):
        scheduler("rolling:knowledge=oracle")
