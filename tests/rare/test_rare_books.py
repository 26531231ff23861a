"""Energy and cost of what comes before and after a run where capacity follows the power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases_rare import rare

import greenbatch as gb
from greenbatch.cluster import Capacity, Cluster
from greenbatch.engine.accounts import books
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import Horizon, evaluate


def test_the_idle_machine_draws_what_is_powered_before_and_after_the_schedule() -> None:
    """Jobs without power of their own: the books are the closed form of the levels alone."""
    scenario, site = rare(10, 60, until_end=False), gb.load_scenario("default").site
    levels = Capacity(time_s=[0, 20, 400, 900, 1500], processors=[10, 10, 3, 0, 7], gpus=[10, 10, 0, 0, 9])
    cluster = Cluster.of_units(10, 10, powered=levels, idle_power_w=1000.0)
    outcome = simulate(scenario.workload, cluster, site, scenario.rules, gb.scheduler("fcfs+first-fit"))
    assert outcome.last_s < 400
    for start_s, end_s in ((0.0, 2000.0), (0.0, 300.0), (500.0, 1600.0), (950.0, 1000.0)):
        assert books(outcome, start_s, end_s).load_j == pytest.approx(cluster.idle_energy_j(start_s, end_s), rel=1e-12)


def test_jobs_that_are_submitted_after_the_end_cost_nothing() -> None:
    scenario = rare(10, 200, seed=1)
    pools = replace(scenario.rules.pools, end_s=50.0)  # type: ignore[type-var]
    rules, jobs = replace(scenario.rules, pools=pools), scenario.workload
    arrived = jobs.take(np.flatnonzero(jobs.submit_s < 50.0))
    costs = [
        evaluate(simulate(each, scenario.cluster, None, rules, gb.scheduler("qos+none")))["accrued_cost"]
        for each in (jobs, arrived)
    ]
    assert costs[0] == pytest.approx(costs[1])
    assert costs[0] > 0


def test_rejected_jobs_are_not_unfinished() -> None:
    """Of four jobs one asks for too much, one runs beyond the end, and two finish."""
    scenario = rare(10, 60)
    jobs = scenario.workload.take(slice(0, 4)).with_columns(
        submit_s=np.array([0.0, 0.0, 0.0, 55.0]), run_time_s=np.full(4, 10.0), requested_time_s=np.full(4, 10.0),
        processors=np.array([1, 9, 1, 1]), gpus=np.array([1, 9, 1, 1]),
    )  # fmt: skip
    horizon = Horizon(start_s=0.0, end_s=60.0, reference_makespan_s=60.0)
    run = simulate(jobs, scenario.cluster, None, scenario.rules, gb.scheduler("qos+none"))
    got = evaluate(run, horizon=horizon)
    assert [got["jobs_rejected"], got["horizon_unfinished_jobs"]] == [1, 1]
    assert got["horizon_unfinished_share"] == pytest.approx((9 * 10 + 5) / (12 * 10))
