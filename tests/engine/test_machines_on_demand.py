"""A pool whose machines are on as needed: cost-aware GAS-MARL, Eq. 1, N_on = ceil(busy processors / those of one)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import workload
from digests import random_jobs
from plain import Job

from greenbatch.bounds import oracle_bound
from greenbatch.cluster import Capacity, Cluster
from greenbatch.energy import Site
from greenbatch.engine.accounts import books
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.metrics.energy_use import energy_use
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler

POOL = Cluster.pooled(8, processors_per_machine=4, idle_power_per_machine_w=100.0, power_on="on-demand")
DARK = Site(name="dark", step_s=10.0, sources_w={"sun": np.array([0.0])}, repeat=True)


def test_as_many_machines_draw_power_as_the_busy_processors_need() -> None:
    """One machine for 3 processors, two for 3 + 2, one again for 2; with all machines on it would be two throughout."""
    jobs = workload([Job(0.0, 10.0, 10.0, 3, 30.0), Job(4.0, 12.0, 12.0, 2, 20.0), Job(20.0, 5.0, 5.0, 8, 80.0)])
    outcome = simulate(jobs, POOL, DARK, Rules(), scheduler("fcfs+easy"))
    assert outcome.profile_time_s.tolist() == [0, 4, 10, 16, 20, 25]
    assert outcome.profile_load_w.tolist() == [130, 250, 120, 0, 280, 0]
    assert books(outcome).grid_j == 4 * 130 + 6 * 250 + 6 * 120 + 5 * 280
    use = energy_use(outcome)
    assert (use.idle_j[0], use.static_j[0]) == (0, 100 * (4 + 2 * 6 + 6 + 2 * 5))
    assert use.job_j.tolist() == [300, 240, 400]
    always = simulate(jobs, Cluster.pooled(8, processors_per_machine=4, idle_power_per_machine_w=100.0), DARK, Rules(),
                      scheduler("fcfs+easy"))  # fmt: skip
    assert books(always).grid_j == books(outcome).grid_j + 100 * (4 + 0 + 6 + 2 * 4)


def test_a_cap_counts_the_machines_of_a_job() -> None:
    """260 W carry one machine and one job, not the second machine of another."""
    jobs = workload([Job(0.0, 10.0, 10.0, 4, 60.0), Job(0.0, 10.0, 10.0, 2, 10.0)])
    starts = [simulate(jobs, POOL, DARK, Rules(power_cap_w=cap_w), scheduler("fcfs+easy")).start_s.tolist()
              for cap_w in (260.0, 270.0)]  # fmt: skip
    assert starts == [[0.0, 10.0], [0.0, 0.0]]
    wide = workload([Job(0.0, 10.0, 10.0, 1, 10.0), Job(0.0, 10.0, 10.0, 5, 80.0)])
    with pytest.raises(InputError, match=r"job 2 and idle nodes draw 280 W"):
        simulate(wide, POOL, DARK, Rules(power_cap_w=270.0), scheduler("fcfs+easy"))


def test_what_is_not_powered_is_not_busy() -> None:
    """With 5 of 8 processors powered until 20 s, a job of one takes a machine, and one of 4 beside it another."""
    jobs = workload([Job(0.0, 30.0, 30.0, 1, 10.0), Job(5.0, 5.0, 5.0, 4, 40.0)])
    powered = Capacity(time_s=np.array([0.0, 20.0]), processors=np.array([5, 8]), gpus=np.zeros(2, int))
    outcome = simulate(jobs, replace(POOL, powered=powered), DARK, Rules(), scheduler("fcfs+easy"))
    load_w = dict(zip(outcome.profile_time_s.tolist(), outcome.profile_load_w.tolist(), strict=True))
    assert (load_w[0], load_w[5], load_w[10], load_w[30]) == (110, 250, 110, 0)
    assert load_w.get(20, 110) == 110
    assert energy_use(outcome).static_j[0] == 100 * (30 + 5)


def test_no_schedule_beats_the_bound() -> None:
    site = Site(name="sun", step_s=20.0, sources_w={"sun": np.array([0.0, 150.0, 400.0, 50.0])}, repeat=True)
    for number in range(3):
        jobs = workload(random_jobs(number, 12))
        cluster = Cluster.pooled(int(jobs.processors.max()) + 2, processors_per_machine=3,
                                 idle_power_per_machine_w=40.0, power_on="on-demand")  # fmt: skip
        for name in ("fcfs+easy", "f2+green", "foresee:horizon=60:tick=7"):
            outcome = simulate(jobs, cluster, site, Rules(), scheduler(name))
            bound = oracle_bound(jobs, cluster, site, Rules(), latest_end_s=float(outcome.end_s.max()))
            assert bound.brown_j <= books(outcome).grid_j * (1 + 1e-9)


def test_a_scenario_says_so_in_one_key() -> None:
    scenario = load_scenario("default", overrides={"cluster.power_on": "on-demand"})
    assert (scenario.cluster.machine_processors, scenario.cluster.machine_power_w) == (8, 50.0)
    with pytest.raises(InputError, match="use always or on-demand"):
        load_scenario("default", overrides={"cluster.power_on": "first-use"})
