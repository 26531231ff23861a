"""Agents on jobs that follow others: windows with dependencies of their own, and beside known submissions."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greenbatch.cluster import Cluster
from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv
from greenbatch.metrics import evaluate
from greenbatch.presets.preset import check, preset
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

sys.path.append(str(Path(__file__).parents[1] / "rare"))

from cases_rare import agent, rare

pytestmark = pytest.mark.plain

JOBS = 30


def obeying(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with jobs of which half follow one of the ten before; some have no think time."""
    jobs, random = scenario.workload, np.random.default_rng(seed)
    before = np.arange(len(jobs)) - random.integers(1, 10, len(jobs))
    before = np.where((before >= 0) & (random.random(len(jobs)) < 0.5), jobs.job_id[np.maximum(before, 0)], -1)
    think_s = np.where(random.random(len(jobs)) < 0.7, random.integers(0, 9, len(jobs)) + 1 / 128, np.nan)
    jobs = jobs.with_columns(preceding_job=before, think_time_s=think_s)
    return replace(scenario, workload=jobs, rules=replace(scenario.rules, dependencies="obey"))


def question(seed: int) -> Scenario:
    random, n = np.random.default_rng(seed), 4 * JOBS
    run_s = random.integers(5, 60, n)
    jobs = Workload.from_columns("random", {
        "job_id": np.arange(1, n + 1) * 3, "submit_s": np.cumsum(random.integers(0, 12, n)), "run_time_s": run_s,
        "requested_time_s": run_s + random.integers(0, 9, n), "processors": random.integers(1, 9, n),
    })  # fmt: skip
    base = load_scenario("default", overrides={"workload.generator.jobs": 10})
    return obeying(replace(base, workload=jobs, cluster=Cluster.pooled(12), site=None), seed)


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_an_agent_sees_submissions_of_the_simulation(backfill: str) -> None:
    """One that always takes the first job does what first come, first served does, in windows with their own jobs."""
    asked, starts = question(1), [0, 17, JOBS, 3 * JOBS]
    made = check({**preset("rlscheduler").model_dump(), "reward": {"terms": {"avg_bounded_slowdown": -1.0}}})
    env = BatchEnv(asked, made, environments=4, jobs=JOBS, backfill=backfill)
    for _ in range(2):  # a window is loaded over another
        seen = env.reset(starts)
        while len(seen.environment):
            seen, _, _ = env.step(np.zeros((len(seen.environment), 2), np.int64))
        for b, start in enumerate(starts):
            rules = replace(asked.rules, commitment="sticky")
            outcome = simulate(asked.window(start, JOBS), asked.cluster, None, rules, scheduler(f"fcfs+{backfill}"))
            assert (outcome.workload.submit_s != asked.window(start, JOBS).submit_s).any()
            np.testing.assert_array_equal(env.starts_s[b], outcome.start_s)
            assert env.values[b, 0] == pytest.approx(evaluate(outcome)["avg_bounded_slowdown"], rel=1e-12)
        starts = starts[::-1]


@pytest.mark.parametrize("suspends", ["never", "power"])
def test_values_and_due_times_are_those_of_known_submissions(suspends: str) -> None:
    """The same actions, once submissions are known: the same starts, and the same jobs are late."""
    asked = obeying(rare(10, 80, seed=4, level=0.7, suspends=suspends, until_end=False), 2)
    made = agent(reward={"terms": {"timely_value": 1.0, "late_ticks": -1.0, "late_jobs": 1.0, "running_value": 1.0}})
    found = []
    for _ in range(2):
        env = BatchEnv(asked, made, environments=1, jobs=len(asked.workload))
        seen = env.reset([0])
        while len(seen.environment):
            seen, _, _ = env.step(np.array([[np.argmax(seen.selectable), 0]]))
        found.append((env.starts_s[0].copy(), env.values[0].copy()))
        known_s = env.simulations.batch.states.jobs["submit_s"][0].copy()
        jobs = asked.workload.with_columns(submit_s=known_s)
        asked = replace(asked, workload=jobs, rules=replace(asked.rules, dependencies="ignore"))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9)
    assert found[0][1][1] > 0
