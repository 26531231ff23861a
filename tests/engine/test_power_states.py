"""Nodes that are switched off when nothing runs on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.accounts import books
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.prepare import prepare
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.metrics import evaluate
from greenbatch.policies.compiled.foreseen import foresee, usual
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

NODES = NodeGroup(
    name="n", count=3, processors=4, static_power_w=100.0, idle_fraction=0.5, power_per_processor_w=10.0,
    boot_s=60.0, boot_energy_j=60 * 80.0, shutdown_s=30.0, shutdown_energy_j=30 * 40.0, min_on_s=100.0,
)  # fmt: skip


def run(jobs: Workload, group: NodeGroup = NODES, name: str = "fcfs+easy", power_on: str = "on-demand") -> Outcome:
    return simulate(jobs, Cluster.of_nodes((group,), power_on=power_on), None, Rules(), scheduler(name))  # type: ignore[arg-type]


def jobs_of(**columns: object) -> Workload:
    return Workload.from_columns("jobs", columns)


def test_boots_and_shutdowns_by_hand() -> None:
    jobs = jobs_of(submit_s=[0, 10, 500, 520], run_time_s=[50, 50, 100, 100], processors=[2, 6, 4, 12])
    outcome = run(jobs)
    assert outcome.start_s.tolist() == [60, 70, 560, 720]
    assert outcome.end_s.tolist() == [110, 120, 660, 820]
    steps = dict(zip(outcome.profile_time_s.tolist(), outcome.profile_load_w.tolist(), strict=True))
    assert steps == {
        0: 80,  # n0 boots
        10: 160,  # n1 boots: half of job 1 is on it
        60: 80 + 120,  # n0 is up and runs job 0
        70: 140 + 140,
        110: 120 + 140,
        120: 50 + 50,  # both are idle
        160: 40 + 50,  # n0 has been on for 100 s
        170: 40 + 40,
        190: 40,
        200: 0,
        500: 80,
        560: 140,
        660: 50 + 80 + 80,  # job 3 is placed; n0 is on
        720: 3 * 140,
        820: 3 * 40,  # all have been on for 100 s
        850: 0,
    }


def test_a_job_on_a_node_that_is_being_shut_down_waits_for_both() -> None:
    outcome = run(jobs_of(submit_s=[0, 170], run_time_s=[50, 50], processors=[4, 12]))
    # n0 is up at 60, idle from 110, goes down from 160 to 190 and boots until 250
    assert outcome.start_s.tolist() == [60, 250]
    steps = dict(zip(outcome.profile_time_s.tolist(), outcome.profile_load_w.tolist(), strict=True))
    assert steps == {
        0: 80, 60: 140, 110: 50, 160: 40, 170: 40 + 160, 190: 240, 230: 80 + 100, 250: 420, 300: 150,
        330: 50 + 80, 350: 40 + 80, 360: 40, 380: 0,
    }  # fmt: skip


def test_a_job_that_comes_before_the_shutdown_keeps_the_node_on() -> None:
    outcome = run(jobs_of(submit_s=[0, 159, 400], run_time_s=[50, 50, 10], processors=[4, 4, 4]))
    assert outcome.start_s.tolist() == [60, 159, 460]
    assert 209.0 in outcome.profile_time_s  # shut down at once: it has been on for long enough
    assert outcome.profile_load_w[outcome.profile_time_s == 209.0].tolist() == [40.0]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    n = draw(st.integers(1, 25))
    times = draw(st.lists(st.integers(0, 2000), min_size=n, max_size=n))
    runs = draw(st.lists(st.integers(1, 300), min_size=n, max_size=n))
    return jobs_of(submit_s=sorted(times), run_time_s=runs, requested_time_s=[2 * each for each in runs],
                   processors=draw(st.lists(st.integers(1, 12), min_size=n, max_size=n)))  # fmt: skip


NAMES = st.sampled_from(["fcfs+none", "sjf+easy", "fcfs+easy+pack", "sjf+first-fit"])


@settings(max_examples=15, deadline=None)
@given(jobs=workloads(), name=NAMES)
def test_nodes_that_boot_in_no_time_change_no_start_and_never_idle(jobs: Workload, name: str) -> None:
    at_once = replace(NODES, boot_s=0.0, boot_energy_j=0.0, shutdown_s=0.0, shutdown_energy_j=0.0, min_on_s=0.0)
    always, demanded = (run(jobs, at_once, name, power_on) for power_on in ("always", "on-demand"))
    np.testing.assert_array_equal(always.start_s, demanded.start_s)
    assert demanded.placements is not None
    placed = demanded.placements
    for time_s, load_w in zip(demanded.profile_time_s[:-1], demanded.profile_load_w[:-1], strict=True):
        runs = (demanded.start_s[placed.job] <= time_s) & (demanded.end_s[placed.job] > time_s)
        expected_w = 100.0 * len(set(placed.node[runs])) + 10.0 * placed.processors[runs].sum()
        if demanded.end_s.max() != time_s and not (demanded.end_s == time_s).any():  # it goes off after that instant
            assert load_w == pytest.approx(expected_w, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(jobs=workloads(), name=NAMES)
def test_a_job_waits_for_its_nodes_and_the_load_is_never_below_that_of_the_jobs(jobs: Workload, name: str) -> None:
    outcome = run(jobs, name=name)
    assert (outcome.start_s - jobs.submit_s >= 0).all()
    assert np.isclose(outcome.end_s - outcome.start_s, np.minimum(jobs.run_time_s, jobs.requested_time_s)).all()
    placed = outcome.placements
    assert placed is not None
    for time_s, load_w in zip(outcome.profile_time_s, outcome.profile_load_w, strict=True):
        runs = (outcome.start_s[placed.job] < time_s) & (outcome.end_s[placed.job] > time_s)
        least_w = 100.0 * len(set(placed.node[runs])) + 10.0 * placed.processors[runs].sum()
        assert least_w - 1e-6 <= load_w <= 3 * 100.0 + 10.0 * placed.processors[runs].sum() + 10.0 * 12 + 1e-6
    for node in range(3):
        rows = placed.job[placed.node == node]
        assert (outcome.start_s[rows] >= jobs.submit_s[rows].min(initial=np.inf) + 60.0).any() or not len(rows)


def test_promises_are_kept_up_to_a_boot() -> None:
    jobs = jobs_of(submit_s=[0, 1, 2, 3, 4], run_time_s=[300, 100, 260, 40, 500], processors=[8, 12, 4, 2, 4])
    outcome = run(jobs)
    assert outcome.start_s[1] <= outcome.promised_start_s[1] + 90.0
    assert outcome.promised_start_s[1] == outcome.end_s[0]


@pytest.mark.parametrize(("requested_s", "start_s"), [(260, 70), (280, 520), (340, 520)])
def test_a_job_starts_early_only_if_it_ends_before_the_reservation_in_spite_of_the_longest_boot(
    requested_s: float, start_s: float
) -> None:  # fmt: skip
    """The second job needs both nodes at 360 s; the third would have to boot one, which may take 90 s."""
    two = replace(NODES, count=2)
    outcome = run(jobs_of(submit_s=[0, 1, 10], run_time_s=[300, 100, requested_s], processors=[4, 8, 4]), two)
    assert outcome.start_s.tolist() == [60, 420, start_s]


def test_jobs_that_outlive_the_reservation_only_because_of_a_boot_take_what_the_head_leaves() -> None:
    """The second job leaves 4 processors from 360 s on; the others would end at 350 s if no node had to boot."""
    jobs = jobs_of(submit_s=[0, 1, 10, 10], run_time_s=[300, 100, 340, 340], processors=[5, 8, 4, 3])
    cluster, rules = (
        Cluster.of_nodes((NODES,), power_on="on-demand"),
        Rules(event_rule="per_instant"),
    )  # both in one pass
    outcome = simulate(jobs, cluster, None, rules, scheduler("fcfs+easy"))
    assert outcome.promised_start_s[1] == 360
    assert outcome.start_s.tolist() == [60, 360, 70, 410]


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"boot_s": 0.0}, "boot_energy_j"), ({"shutdown_s": 0.0}, "shutdown_energy_j"), ({"boot_s": -1.0}, "boot_s")],
)
def test_impossible_boots_are_refused(changed: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(NODES, **changed)  # type: ignore[arg-type]


def test_the_published_contention_has_no_boots() -> None:
    with pytest.raises(InputError, match="irmasim-v1"):
        Cluster.of_nodes((NODES,), power_on="on-demand", contention="irmasim-v1")


def test_energy_of_the_jobs_and_of_idle_boots_and_shutdowns_adds_up() -> None:
    outcome = run(jobs_of(submit_s=[0, 170], run_time_s=[50, 50], processors=[4, 12]))
    metrics = evaluate(outcome)
    assert metrics["jobs_energy_kwh"] == pytest.approx((50 * 140 + 50 * 420) / 3.6e6)
    in_all_j = 60 * 80 + 50 * 140 + 50 * 50 + 10 * 40 + 20 * 200 + 40 * 240 + 20 * 180 + 50 * 420 + 30 * 150
    in_all_j += 20 * 130 + 10 * 120 + 20 * 40
    assert metrics["it_energy_kwh"] == pytest.approx(in_all_j / 3.6e6)
    assert metrics["idle_energy_kwh"] == pytest.approx(metrics["it_energy_kwh"] - metrics["jobs_energy_kwh"])
    assert books(outcome, -1000.0, 5000.0).load_j == pytest.approx(in_all_j), "before and after, all nodes are off"


@pytest.mark.parametrize("name", ["fcfs+easy-irmasim"])
def test_reservations_that_do_not_allow_for_boots_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="boots"):
        run(jobs_of(submit_s=[0], run_time_s=[1], processors=[1]), name=name)


def test_a_planner_counts_the_boots_of_the_nodes_that_a_job_would_take() -> None:
    """Two nodes that are off: each boots for 20 s with 500 J, which 10 s of work spread as 100 W on top of 90 W."""
    node = NodeGroup(name="n", count=2, processors=2, static_power_w=30.0, power_per_processor_w=7.5, boot_s=20.0,
                     boot_energy_j=500.0, shutdown_s=5.0)  # fmt: skip
    jobs = Workload.from_columns("w", {"submit_s": [0.0], "run_time_s": [10.0], "processors": [4]})
    program = scheduler("fcfs+easy").program(jobs)
    for power_on, power_w, run_s in (("on-demand", 190.0, 30.0), ("always", 30.0, 10.0)):
        nodes = Cluster.of_nodes((node,), power_on=power_on)
        state = prepare(jobs, nodes, None, Rules(), program)
        here = foresee(state, 0, usual(state.machine), False, True)
        assert (here.fits, here.power_w, here.run_s) == (True, power_w, run_s)
