"""The books: where the energy of a schedule came from."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import clusters, job_lists, site, supplies, workload
from hypothesis import assume, given, settings
from plain import Job, Supply

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.accounts import Books, books, power_segments
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError, SupplyExhausted
from greenbatch.schedulers import scheduler

REL = 1e-9


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    """A random schedule with powers, slots and times that are no whole numbers."""
    cluster = draw(clusters())
    jobs = draw(job_lists(cluster.processors, unit_s=draw(st.sampled_from([1.0, 0.1, 1 / 3]))))
    watt = draw(st.sampled_from([1.0, 1e-3, 12_345.678]))
    jobs = [job._replace(power_w=job.power_w * watt) for job in jobs]
    supply = draw(supplies())
    supply = supply._replace(
        renewable_w=[power * watt * 1.1 for power in supply.renewable_w],
        step_s=supply.step_s * draw(st.sampled_from([1.0, 0.3, 1 / 7])), origin_s=supply.origin_s * 0.9,
    )  # fmt: skip
    name = draw(st.sampled_from(["fcfs+easy", "sjf+none", "f2+conservative"]))
    return simulate(workload(jobs), cluster, site(supply), Rules(), scheduler(name))


def same(a: Books, b: Books, rel: float) -> None:
    scale = max(a.load_j, a.renewable_j)
    for field, x, y in zip(Books._fields, a, b, strict=True):
        assert x == pytest.approx(y, rel=rel, abs=rel * scale), field


@settings(max_examples=35, deadline=None)
@given(outcome=outcomes())
def test_the_books_balance(outcome: Outcome) -> None:
    b = books(outcome)
    assert b.renewable_used_j + b.grid_j == pytest.approx(b.load_j, rel=REL)
    assert b.renewable_used_j + b.curtailed_j == pytest.approx(b.renewable_j, rel=REL)
    assert min(b) >= 0
    jobs_j = float(outcome.workload.power_w @ (outcome.end_s - outcome.start_s))
    idle_j = outcome.cluster.idle_power_w * (outcome.end_s.max() - outcome.start_s.min())
    assert b.load_j == pytest.approx(jobs_j + idle_j, rel=REL)


@settings(max_examples=35, deadline=None)
@given(outcome=outcomes(), data=st.data())
def test_splitting_an_interval_changes_no_energy(outcome: Outcome, data: st.DataObject) -> None:
    first_s, last_s = outcome.start_s.min() - 20.0, outcome.end_s.max() + 20.0
    whole = books(outcome, first_s, last_s)
    cuts = sorted(data.draw(st.lists(st.floats(first_s, last_s), max_size=20)))
    cuts += data.draw(st.lists(st.sampled_from(outcome.profile_time_s.tolist()), max_size=5))
    edges = [first_s, *sorted(cuts), last_s]
    parts = [books(outcome, a, b) for a, b in pairwise(edges)]
    same(Books(*(sum(column) for column in zip(*parts, strict=True))), whole, 1e-12)


@settings(max_examples=15, deadline=None)
@given(outcome=outcomes())
def test_segments_match_the_energy_accounts(outcome: Outcome) -> None:
    """Power over time, rebuilt from the schedule and the site."""
    s = power_segments(outcome)
    seconds = s.end_s - s.start_s
    assert (seconds > 0).all()
    np.testing.assert_array_equal(s.start_s[1:], s.end_s[:-1])
    assert outcome.site is not None
    for start_s, end_s, load_w, renewable_w in zip(s.start_s, s.end_s, s.load_w, s.renewable_w, strict=True):
        runs = (outcome.start_s <= start_s) & (start_s < outcome.end_s)
        by_jobs = outcome.cluster.idle_power_w + outcome.workload.power_w[runs].sum()
        assert load_w == pytest.approx(by_jobs, rel=1e-9, abs=1e-6)
        if end_s - start_s > 1e-9:  # shorter ones lie between two roundings of one instant
            assert renewable_w == outcome.site.renewable_w[outcome.site.slot((start_s + end_s) / 2)]
    np.testing.assert_array_equal(s.renewable_used_w, np.minimum(s.load_w, s.renewable_w))
    b = books(outcome)
    assert b.load_j == pytest.approx(float(s.load_w @ seconds), rel=1e-12)
    assert b.renewable_used_j == pytest.approx(float(s.renewable_used_w @ seconds), rel=1e-12)


@settings(max_examples=15, deadline=None)
@given(outcome=outcomes(), shift_s=st.integers(-(10**6), 10**6))
def test_a_later_clock_changes_no_energy(outcome: Outcome, shift_s: int) -> None:
    assume(outcome.workload.submit_s.min() + shift_s >= 0)
    old = outcome.site
    assert old is not None
    moved = Site(
        name="moved", step_s=old.step_s, sources_w=old.sources_w, origin_s=old.origin_s + shift_s, repeat=True,
        forecast_horizon_s=old.forecast_horizon_s,
    )  # fmt: skip
    jobs = outcome.workload.with_columns(submit_s=outcome.workload.submit_s + shift_s)
    later = simulate(jobs, outcome.cluster, moved, outcome.rules, scheduler("fcfs+none"))
    here = simulate(outcome.workload, outcome.cluster, old, outcome.rules, scheduler("fcfs+none"))
    same(books(later), books(here), 1e-7)  # a clock of 10^6 s resolves 10^-10 s


def test_by_hand() -> None:
    """60 W from 0 to 10 s and 100 W to 25 s, idle 20 W; sun 0, 90, 30 W in slots of 10 s; then the slots again."""
    jobs = workload([Job(0, 10, 10, 2, 40.0), Job(0, 15, 15, 2, 80.0)])
    cluster = Cluster.pooled(2, idle_power_per_machine_w=20.0)
    sun = Site(name="sun", step_s=10.0, sources_w={"pv": np.array([0.0, 90.0, 30.0])}, repeat=True)
    outcome = simulate(jobs, cluster, sun, Rules(), scheduler("fcfs+none"))
    assert books(outcome) == Books(
        load_j=60 * 10 + 100 * 15, renewable_j=90 * 10 + 30 * 5, renewable_used_j=90 * 10 + 30 * 5, curtailed_j=0.0,
        grid_j=60 * 10 + 10 * 10 + 70 * 5,
    )  # fmt: skip
    after = books(outcome, 25.0, 50.0)  # idle: 5 s of 30 W, 10 s of 0 W, 10 s of 90 W
    assert after == Books(20.0 * 25, 5 * 30 + 900, 20.0 * 15, 5 * 10 + 70 * 10, 20.0 * 10)
    before = books(outcome, -10.0, 0.0)
    assert before == Books(200.0, 300.0, 200.0, 100.0, 0.0)
    assert books(outcome, 7.0, 7.0) == Books(0.0, 0.0, 0.0, 0.0, 0.0)
    assert books(outcome, 7.0, 3.0) == Books(0.0, 0.0, 0.0, 0.0, 0.0)


def test_without_a_site_everything_comes_from_the_grid() -> None:
    outcome = simulate(workload([Job(0, 10, 10, 1, 40.0)]), Cluster.pooled(1), None, Rules(), scheduler("fcfs+none"))
    assert books(outcome) == Books(900.0, 0.0, 0.0, 0.0, 900.0)


def test_books_outside_of_a_series_that_does_not_repeat_are_refused() -> None:
    day = Site(name="day", step_s=10.0, sources_w={"all": np.full(3, 5.0)}, forecast_horizon_s=30.0)
    jobs = workload([Job(0, 30, 30, 1, 40.0)])
    outcome = simulate(jobs, Cluster.pooled(1), day, Rules(), scheduler("fcfs+none"))
    assert books(outcome).renewable_j == 150.0
    for start_s, end_s in ((0.0, 31.0), (-1.0, 10.0)):
        with pytest.raises(SupplyExhausted, match="'day' covers trace seconds 0 to 30, but the books need"):
            books(outcome, start_s, end_s)


@pytest.mark.compiled
def test_a_long_run_of_small_powers_does_not_drift() -> None:
    """A hundred thousand starts and ends of 0.1 W; whenever nothing runs the load is idle, exactly."""
    n = 50_000
    jobs = workload([Job(10.0 * k, 3.0, 3.0, 1, 0.1 + 0.01 * (k % 7)) for k in range(n)])
    cluster = Cluster.pooled(4, idle_power_per_machine_w=50.0)
    supply = Supply([0.0, 1e4], 1000.0, 0.0, 2)
    outcome = simulate(jobs, cluster, site(supply), Rules(), scheduler("fcfs+easy"))
    assert (outcome.profile_load_w[1::2] == 50.0).all()
    b = books(outcome)
    assert b.load_j == pytest.approx(float(jobs.power_w.sum() * 3.0 + 50.0 * (10.0 * (n - 1) + 3.0)), rel=1e-12)


@pytest.mark.parametrize("times", [(0.0, np.inf), (np.nan, 5.0), (-np.inf, 5.0)])
def test_an_interval_without_an_end_is_refused(times: tuple[float, float]) -> None:
    sun = Site(name="sun", step_s=10.0, sources_w={"pv": np.array([0.0, 90.0])}, repeat=True)
    jobs = workload([Job(0, 10, 10, 1, 40.0)])
    for power in (None, sun):
        outcome = simulate(jobs, Cluster.pooled(2), power, Rules(), scheduler("fcfs+easy"))
        for count in (books, power_segments):
            with pytest.raises(InputError, match="give finite times"):
                count(outcome, *times)
