"""The engine's schedules equal those of an independent, slow simulator on random small workloads."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import ESTIMATES, clusters, job_lists, site, supplies, workload
from hypothesis import given, reject, settings
from plain import Job, Machine, Prices, Supply, conservative

from greenbatch.cluster import Cluster
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import GreenbatchError
from greenbatch.schedulers import scheduler

SCORES = {
    "fcfs": lambda job, now_s: job.submit_s,
    "sjf": lambda job, now_s: job.requested_s,
    "largest": lambda job, now_s: -job.processors,
    "wfp3": lambda job, now_s: -(((now_s - job.submit_s) / job.requested_s) ** 3) * job.processors,
}
UNITS_S = st.sampled_from([1.0, 0.25, 0.1])


def check(outcome: Outcome, machine: Machine) -> None:
    """The same schedule, reservations and number of killed jobs."""
    starts = machine.run()
    np.testing.assert_array_equal(outcome.start_s, starts)
    np.testing.assert_array_equal(outcome.end_s, [machine.end_s(j) for j in range(len(starts))])
    first = [machine.first_reservation_s.get(j, math.nan) for j in range(len(starts))]
    np.testing.assert_array_equal(outcome.promised_start_s, first)
    late = [machine.kill and job.run_s > job.requested_s for job in machine.jobs]
    assert outcome.killed == sum(late)


@pytest.mark.parametrize("policy", SCORES)
@pytest.mark.parametrize("backfill", ["none", "easy", "easy-schedgym", "easy-green-order", "conservative"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_reconsidered_schedules(policy: str, backfill: str, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES)), unit_s=data.draw(UNITS_S)))
    rules: dict[str, Any] = {
        "event_rule": data.draw(st.sampled_from(["per_event", "per_instant"])),
        "overrun": data.draw(st.sampled_from(["kill", "extend"])),
        "ties": data.draw(st.sampled_from(["arrival_first", "completion_first"])),
    }
    outcome = simulate(workload(jobs), cluster, None, Rules(**rules), scheduler(f"{policy}+{backfill}"))
    check(
        outcome,
        Machine(
            jobs, cluster.processors, SCORES[policy], backfill, per_instant=rules["event_rule"] == "per_instant",
            kill=rules["overrun"] == "kill", completion_first=rules["ties"] == "completion_first",
        ),
    )  # fmt: skip


@pytest.mark.parametrize("backfill", ["none", "easy", "easy-schedgym", "easy-green-order"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_sticky_schedules(backfill: str, data: st.DataObject) -> None:
    """Distinct submissions: jobs of one instant follow a quirk of the published simulators (see the golden tests)."""
    cluster, policy = data.draw(clusters()), data.draw(st.sampled_from(sorted(SCORES)))
    estimates = data.draw(st.sampled_from(ESTIMATES))
    jobs = data.draw(job_lists(cluster.processors, estimates, unit_s=data.draw(UNITS_S), ties=False))
    event_rule: Any = data.draw(st.sampled_from(["per_event", "per_instant"]))
    kill = data.draw(st.booleans())
    rules = Rules(commitment="sticky", event_rule=event_rule, overrun="kill" if kill else "extend")
    outcome = simulate(workload(jobs), cluster, None, rules, scheduler(f"{policy}+{backfill}"))
    check(
        outcome,
        Machine(
            jobs, cluster.processors, SCORES[policy], backfill, per_instant=event_rule == "per_instant", kill=kill,
            sticky=True,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("commitment", ["sticky", "reconsider"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_green_backfilling(commitment: Any, data: st.DataObject) -> None:
    """Brown energy summed second by second decides the same starts as the engine's intervals."""
    cluster, supply, policy = data.draw(clusters()), data.draw(supplies()), data.draw(st.sampled_from(sorted(SCORES)))
    jobs = data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES)), ties=commitment != "sticky"))
    event_rule: Any = data.draw(st.sampled_from(["per_event", "per_instant"]))
    kill, threshold_j = data.draw(st.booleans()), data.draw(st.integers(0, 400))
    rules = Rules(commitment=commitment, event_rule=event_rule, overrun="kill" if kill else "extend")
    outcome = simulate(
        workload(jobs), cluster, site(supply), rules, scheduler(f"{policy}+green:sigma={threshold_j}")
    )  # fmt: skip
    check(
        outcome,
        Machine(
            jobs, cluster.processors, SCORES[policy], "green", per_instant=event_rule == "per_instant", kill=kill,
            sticky=commitment == "sticky", idle_w=cluster.idle_power_w, supply=supply, threshold_j=threshold_j,
        ),
    )  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_lptpn_as_worded(data: st.DataObject) -> None:
    cluster, supply = data.draw(clusters()), data.draw(supplies())
    jobs = data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES))))
    event_rule: Any = data.draw(st.sampled_from(["per_event", "per_instant"]))
    kill, threshold_j = data.draw(st.booleans()), data.draw(st.integers(0, 400))
    rules = Rules(event_rule=event_rule, overrun="kill" if kill else "extend")
    outcome = simulate(workload(jobs), cluster, site(supply), rules, scheduler(f"lptpn:sigma={threshold_j}"))
    check(
        outcome,
        Machine(
            jobs, cluster.processors, lambda job, now_s: -job.power_w * job.requested_s, "scan",
            per_instant=event_rule == "per_instant", kill=kill, idle_w=cluster.idle_power_w, supply=supply,
            threshold_j=threshold_j,
        ),
    )  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_cheapest_start(data: st.DataObject) -> None:
    cluster, supply = data.draw(clusters()), data.draw(supplies())
    jobs = data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES))))
    prices = Prices(
        data.draw(st.sampled_from([0.0, 100.0, 2000.0])), data.draw(st.sampled_from([0.0, 8.0])),
        data.draw(st.sampled_from([0.0, 0.25, 0.5])), float(data.draw(st.integers(0, 8))),
        float(data.draw(st.integers(0, 40))), float(data.draw(st.integers(1, 9))),
    )  # fmt: skip
    kill = data.draw(st.booleans())
    name = "cheapest-start:hold={}:psi={}:reserve={}:short={}:horizon={}:tick={}".format(*prices)
    rules = Rules(overrun="kill" if kill else "extend")
    try:
        outcome = simulate(workload(jobs), cluster, site(supply), rules, scheduler(name))
    except GreenbatchError as error:  # every tick may find a cheaper start between the next two ticks
        if "waiting forever" not in str(error):
            raise
        reject()
    check(
        outcome,
        Machine(
            jobs, cluster.processors, lambda job, now_s: job.requested_s**2 * job.processors, "plan", kill=kill,
            idle_w=cluster.idle_power_w, supply=supply, prices=prices,
        ),
    )  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_conservative_backfilling_with_exact_requests(data: st.DataObject) -> None:
    """With exact requests no reservation ever changes, so one pass over the arrivals gives the schedule."""
    cluster = data.draw(clusters())
    jobs = data.draw(job_lists(cluster.processors, "exact"))
    rules = Rules(event_rule=data.draw(st.sampled_from(["per_event", "per_instant"])))
    policy = data.draw(st.sampled_from(sorted(SCORES)))
    outcome = simulate(workload(jobs), cluster, None, rules, scheduler(f"{policy}+conservative"))
    np.testing.assert_array_equal(outcome.start_s, conservative(jobs, cluster.processors))
    np.testing.assert_array_equal(outcome.promised_start_s, outcome.start_s)


def test_a_job_of_the_first_instant_that_fills_the_machine_is_not_overtaken() -> None:
    """By hand: 4 processors; a 3-processor job until 10, then one that needs all 4."""
    jobs = [Job(0, 10, 10, 3), Job(1, 5, 5, 4), Job(2, 8, 8, 1), Job(2, 9, 9, 1), Job(3, 1, 1, 1)]
    outcome = simulate(workload(jobs), Cluster.pooled(4), None, Rules(), scheduler("fcfs+easy"))
    assert outcome.start_s.tolist() == [0, 10, 2, 15, 15]
    outcome = simulate(workload(jobs), Cluster.pooled(4), None, Rules(), scheduler("fcfs+easy-schedgym"))
    assert outcome.start_s.tolist() == [0, 10, 15, 15, 3]


def test_time_alone_can_free_spare_processors_where_jobs_run_over_their_requests() -> None:
    """10 processors, a head that needs 7. At 25 s both running jobs are overdue, so 3 processors are to spare.

    Job 4 may use 2 of them as soon as anything happens, here the arrival of job 5.
    """
    jobs = [Job(0, 90, 10, 4), Job(0, 90, 20, 3), Job(1, 5, 5, 7), Job(2, 50, 50, 2), Job(25, 5, 5, 8)]
    outcome = simulate(workload(jobs), Cluster.pooled(10), None, Rules(overrun="extend"), scheduler("fcfs+easy"))
    assert outcome.start_s[3] == 25
    check(outcome, Machine(jobs, 10, SCORES["fcfs"], "easy", kill=False))


def test_cheapest_start_starts_nothing_on_processors_of_an_overdue_job() -> None:
    supply = Supply([100.0], 10.0, 0.0, 1)
    jobs = [Job(0, 20, 5, 2, 5.0), Job(1, 5, 5, 2, 5.0)]
    rules = Rules(overrun="extend")
    outcome = simulate(
        workload(jobs), Cluster.pooled(2), site(supply), rules, scheduler("cheapest-start:tick=5:horizon=21600")
    )
    assert outcome.start_s.tolist() == [0, 20]
