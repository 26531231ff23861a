"""What holds for every schedule, whatever the jobs, the machine, the supply and the scheduler."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import ESTIMATES, clusters, job_lists, site, supplies, workload
from hypothesis import assume, given, settings
from plain import Job, Supply

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError, SupplyExhausted
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

SCHEDULERS = (
    *(f"{policy}+{fill}" for policy in ("fcfs", "sjf", "wfp3", "f1", "random:seed=5")
      for fill in ("none", "easy", "easy-schedgym", "easy-green-order", "conservative", "green:sigma=200")),
    "lptpn:sigma=100+none", "lptpn-published:sigma=100+none", "cheapest-start:horizon=40:tick=5:short=4:hold=300+none",
    "ga:evaluations=60+easy", "aco:evaluations=60+green:sigma=200",
)  # fmt: skip
ROLLING = ("rolling", "rolling:knowledge=perfect")
"""Left out where the clock is shifted: they decide by its half-hours."""


def load_by_schedule(outcome: Outcome, time_s: float) -> float:
    """Cluster power at a time, summed over the jobs that run then. [W]"""
    runs = (outcome.start_s <= time_s) & (time_s < outcome.end_s)
    return outcome.cluster.idle_power_w + float(outcome.workload.power_w[runs].sum())


def processors_in_use(outcome: Outcome, time_s: float) -> int:
    runs = (outcome.start_s <= time_s) & (time_s < outcome.end_s)
    return int(outcome.workload.processors[runs].sum())


@st.composite
def runs(draw: st.DrawFn, names: tuple[str, ...], **fixed: Any) -> Outcome:
    """The outcome of a random scheduler on a random small scenario."""
    cluster, supply = draw(clusters()), draw(supplies())
    jobs = draw(job_lists(cluster.processors, fixed.pop("estimates", None) or draw(st.sampled_from(ESTIMATES))))
    rules = {
        "commitment": draw(st.sampled_from(["sticky", "reconsider"])),
        "event_rule": draw(st.sampled_from(["per_event", "per_instant"])),
        "overrun": draw(st.sampled_from(["kill", "extend"])),
        "tick_s": draw(st.sampled_from([0.0, 4.0, 1.7])),
    }
    return simulate(
        workload(jobs), cluster, site(supply), Rules(**{**rules, **fixed}), scheduler(draw(st.sampled_from(names)))
    )


@settings(max_examples=50, deadline=None)
@given(outcome=runs((*SCHEDULERS, *ROLLING)))
def test_every_job_runs_once_within_the_machine_size(outcome: Outcome) -> None:
    jobs = outcome.workload
    assert (outcome.start_s >= jobs.submit_s).all()
    killed = outcome.rules.overrun == "kill"
    run_s = np.minimum(jobs.run_time_s, jobs.requested_time_s) if killed else jobs.run_time_s
    np.testing.assert_array_equal(outcome.end_s, outcome.start_s + run_s)
    assert outcome.killed == (np.count_nonzero(jobs.run_time_s > jobs.requested_time_s) if killed else 0)
    assert 1 <= outcome.decisions <= len(jobs)
    for time_s in outcome.start_s:
        assert processors_in_use(outcome, time_s) <= outcome.cluster.processors


@settings(max_examples=35, deadline=None)
@given(outcome=runs((*SCHEDULERS, *ROLLING)))
def test_the_power_profile_is_that_of_the_schedule(outcome: Outcome) -> None:
    """Whole watts add up exactly."""
    times = outcome.profile_time_s
    assert (np.diff(times) > 0).all()
    assert times[0] == outcome.start_s.min()
    assert times[-1] == outcome.end_s.max()
    assert set(times) <= set(outcome.start_s) | set(outcome.end_s)
    assert outcome.profile_load_w.tolist() == [load_by_schedule(outcome, time_s) for time_s in times]


@settings(max_examples=35, deadline=None)
@given(outcome=runs(("fcfs+easy",), overrun="kill", tick_s=0.0))
def test_easy_never_delays_the_head_beyond_its_reservation(outcome: Outcome) -> None:
    promised = np.isfinite(outcome.promised_start_s)
    assert (outcome.start_s[promised] <= outcome.promised_start_s[promised]).all()
    for job in np.flatnonzero(outcome.start_s > outcome.workload.submit_s):  # only an end lets a waiting job start
        assert outcome.start_s[job] in np.delete(outcome.end_s, job)


@settings(max_examples=35, deadline=None)
@given(outcome=runs(("fcfs+conservative", "sjf+conservative", "wfp3+conservative"), overrun="kill"))
def test_conservative_backfilling_keeps_every_promise(outcome: Outcome) -> None:
    assert np.isfinite(outcome.promised_start_s).all()
    assert (outcome.start_s <= outcome.promised_start_s).all()


@settings(max_examples=50, deadline=None)
@given(outcome=runs(("fcfs+none", "fcfs+conservative"), overrun="kill", estimates="exact", tick_s=0.0))
def test_nobody_waits_while_the_machine_could_run_everything(outcome: Outcome) -> None:
    """A job that waits does so because at its submission or start somebody else held the processors."""
    waits = np.flatnonzero(outcome.start_s > outcome.workload.submit_s)
    assume(waits.size > 0)
    for job in waits:
        assert outcome.start_s[job] in np.delete(outcome.end_s, job)


@settings(max_examples=20, deadline=None)
@given(outcome=runs(tuple(s for s in SCHEDULERS if not s.startswith("f1"))), shift=st.integers(1, 400))
def test_a_later_clock_shifts_the_schedule(outcome: Outcome, shift: int) -> None:
    """Jobs and supply shifted alike. F1 sees the clock, and ticks are multiples on it: shift by whole ticks."""
    moved, jobs = shift * 140.0, outcome.workload
    later_site = outcome.site
    assert later_site is not None
    later = simulate(
        jobs.with_columns(submit_s=jobs.submit_s + moved), outcome.cluster, shifted(later_site, moved), outcome.rules,
        scheduler(outcome.scheduler),
    )  # fmt: skip
    if outcome.rules.tick_s != 1.7:
        np.testing.assert_array_equal(later.start_s, outcome.start_s + moved)
    lasts_s = outcome.end_s - outcome.start_s
    np.testing.assert_allclose(later.end_s - later.start_s, lasts_s, rtol=1e-9)  # ends of 1.7 s ticks are rounded


def shifted(site: Site, by_s: float) -> Site:
    return Site(
        name=site.name, step_s=site.step_s, sources_w=site.sources_w, origin_s=site.origin_s + by_s, repeat=True,
        forecast_horizon_s=site.forecast_horizon_s,
    )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(outcome=runs(("fcfs+easy", "sjf+conservative", "wfp3+none")))
def test_machines_of_twice_the_speed_run_exact_jobs_in_half_the_time(outcome: Outcome) -> None:
    jobs, cluster = outcome.workload, outcome.cluster
    fast = Cluster((NodeGroup(name="fast", count=1, processors=cluster.processors, static_power_w=0.0, speed=2.0),))
    slow = Cluster((NodeGroup(name="slow", count=1, processors=cluster.processors, static_power_w=0.0),))
    name = scheduler(outcome.scheduler)
    halved = jobs.with_columns(run_time_s=jobs.run_time_s / 2)
    faster = simulate(jobs, fast, None, outcome.rules, name)
    same = simulate(halved, slow, None, outcome.rules, name)
    np.testing.assert_array_equal(faster.start_s, same.start_s)
    np.testing.assert_array_equal(faster.end_s, same.end_s)
    assert faster.killed == same.killed


def jobs_at(*submit_s: float, run_s: float = 10.0, power_w: float = 20.0) -> Workload:
    return workload([Job(submit, run_s, run_s, 1, power_w) for submit in submit_s])


def test_a_fractional_tick_does_not_stop_the_clock() -> None:
    """15 x 1.1 divided by 1.1 rounds to less than 15: the tick after it must still be later."""
    assert 15 * 1.1 / 1.1 < 15
    jobs = jobs_at(0.0, 0.05, run_s=20.0)
    outcome = simulate(jobs, Cluster.pooled(1), None, Rules(tick_s=1.1), scheduler("fcfs+easy"))
    assert outcome.start_s.tolist() == [0.0, 20.0]


def test_a_fractional_slot_is_neither_lost_nor_doubled() -> None:
    """Slots of 0.1 s: job 2 is brown until 4.3 s and green from then on; 4.3 / 0.1 rounds to less than 43."""
    power_w = np.where(np.arange(100) >= 43, 50.0, 0.0)
    site = Site(name="x", step_s=0.1, sources_w={"all": power_w}, repeat=True, forecast_horizon_s=10.0)
    cluster = Cluster.pooled(1, idle_power_per_machine_w=0.0)
    assert 43 * 0.1 / 0.1 < 43
    outcome = simulate(
        jobs_at(43 * 0.1, run_s=1.0, power_w=50.0), cluster, site, Rules(), scheduler("lptpn:sigma=1e-3")
    )
    assert outcome.start_s.tolist() == [43 * 0.1]
    # Behind a running job the green test decides: all of the second job's second is sunny.
    jobs = workload([Job(0, 9, 9, 1, 0.0), Job(43 * 0.1, 1, 1, 1, 50.0)])
    outcome = simulate(
        jobs, Cluster.pooled(2, idle_power_per_machine_w=0.0), site, Rules(), scheduler("lptpn:sigma=1e-3")
    )
    assert outcome.start_s[1] == 43 * 0.1


def test_slots_much_shorter_than_a_tick_fit_in_memory() -> None:
    supply = Supply([float(20 + i % 7) for i in range(50)], 100.0, 0.0, 40)
    jobs = jobs_at(0.0, run_s=10.0, power_w=0.0)
    outcome = simulate(
        jobs, Cluster.pooled(2), site(supply), Rules(), scheduler("cheapest-start:horizon=3000:tick=1800")
    )
    assert outcome.start_s.tolist() == [0.0]


def test_sticky_twins_are_chosen_by_score_whatever_eq_15_made_of_their_order() -> None:
    """Jobs 2 and 3 come together; green backfilling sorts them the other way round, F1 still picks the second."""
    supply = Supply([0.0], 1000.0, 0.0, 1)
    jobs = [Job(0, 10, 10, 2, 1.0), Job(5, 30, 30, 2, 9.0), Job(6, 40, 40, 2, 50.0), Job(6, 41, 41, 2, 1.0)]
    rules = Rules(commitment="sticky")
    outcome = simulate(workload(jobs), Cluster.pooled(2), site(supply), rules, scheduler("sjf+green"))
    assert outcome.start_s.tolist() == [0, 10, 40, 80]


POOL = Cluster.pooled(2)


def test_what_does_not_fit_together_is_refused_in_one_line() -> None:
    jobs, rules, easy = jobs_at(0.0), Rules(), scheduler("fcfs+easy")
    nothing = jobs.take(slice(0, 0))
    with pytest.raises(InputError, match="has no jobs"):
        simulate(nothing, POOL, None, rules, easy)
    large = jobs.with_columns(processors=np.array([3]))
    with pytest.raises(InputError, match="job 1 needs 3 processors, the cluster has 2"):
        simulate(large, POOL, None, rules, easy)
    for name in ("fcfs+green", "lptpn", "lptpn-published", "cheapest-start"):
        with pytest.raises(InputError, match="needs a power supply"):
            simulate(jobs, POOL, None, rules, scheduler(name))
    powerless = jobs.with_columns(power_w=np.array([np.nan]))
    for name, supply in (("fcfs+green", site(Supply([1.0], 10.0, 0.0, 1))), ("fcfs+easy-green-order", None)):
        with pytest.raises(InputError, match="job 1 has no power"):
            simulate(powerless, POOL, supply, rules, scheduler(name))
    assert simulate(powerless, POOL, None, rules, easy).start_s.tolist() == [0.0]


@pytest.mark.parametrize(
    "name", ["fcfs+green:sigma=10", "lptpn:sigma=10", "lptpn-published:sigma=10", "cheapest-start"]
)
def test_a_clock_that_leaves_the_supply_is_an_error(name: str) -> None:
    """Slots until 100 s; at 110 s a job comes that could run beside the one that runs until 160 s."""
    short = Site(name="short", step_s=10.0, sources_w={"all": np.full(10, 5.0)}, forecast_horizon_s=50.0)
    jobs = workload([Job(0, 160, 160, 1, 50.0), Job(105, 20, 20, 2, 50.0), Job(110, 20, 20, 1, 50.0)])
    with pytest.raises(SupplyExhausted, match="'short' covers trace seconds 0 to 100, but"):
        simulate(jobs, POOL, short, Rules(), scheduler(name))
