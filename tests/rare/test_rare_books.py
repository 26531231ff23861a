"""Energy and cost of what comes before and after a run where capacity follows the power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases_rare import rare

import greenbatch as gb
from greenbatch.cluster import Capacity, PoweredCluster
from greenbatch.engine.accounts import books
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import evaluate


def test_the_idle_machine_draws_what_is_powered_before_and_after_the_schedule() -> None:
    """Jobs without power of their own: the books are the closed form of the levels alone."""
    scenario, site = rare(10, 60, until_end=False), gb.load_scenario("default").site
    levels = Capacity(time_s=[0, 20, 400, 900, 1500], processors=[10, 10, 3, 0, 7], gpus=[10, 10, 0, 0, 9])
    cluster = PoweredCluster.of_units(10, 10, powered=levels, idle_power_w=1000.0)
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
