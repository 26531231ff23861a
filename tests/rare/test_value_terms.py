"""Rewards and costs of value and lateness on cases that are worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases_rare import agent, rare

from greenbatch.cluster import Capacity, Cluster
from greenbatch.engine.observe.reward_terms import FINISHED_VALUE, TERMS
from greenbatch.envs.batch import BatchEnv
from greenbatch.workload import Workload

OF_VALUE = [name for name, term in TERMS.items() if term.code >= FINISHED_VALUE]


def played(jobs: list[tuple[int, int, int, float, float]], actions: list[int], **pools: Any) -> list[dict[str, float]]:
    """Terms after each action on 4 processors, then waits to the end; jobs: submission, length, size, QoS, value."""
    submit_s, run_s, size, qos, value = (np.array(column) for column in zip(*jobs, strict=True))
    columns = {
        "submit_s": submit_s, "run_time_s": run_s, "processors": size, "gpus": np.zeros(len(jobs), int), "qos": qos,
        "value": value, "power_w": np.zeros(len(jobs)),
    }  # fmt: skip
    levels = Capacity(time_s=np.array([0.0]), processors=np.array([4]), gpus=np.array([0]))
    made = rare(4, 20, ready=1, largest_request=4, actions_per_tick=0, **pools)
    scenario = replace(
        made, workload=Workload.from_columns("by hand", columns), cluster=Cluster.of_units(4, powered=levels)
    )
    env = BatchEnv(scenario, agent(reward={"terms": dict.fromkeys(OF_VALUE, 1.0)}), environments=1, jobs=len(jobs))
    seen, told = env.reset([0]), []
    while len(seen.environment):
        row = actions[len(told)] if len(told) < len(actions) else len(seen.queue) - 1
        seen, _, _ = env.step(np.array([[row % len(seen.queue), 0]]))
        told.append(dict(zip(env.terms, env.values[0].tolist(), strict=True)))
    return told


def test_a_job_that_is_never_late_gives_its_value_once_or_bit_by_bit() -> None:
    """The first starts at once. The second is due at 8 / 0.5 = 16 and never starts: it is late for 4 of 20 ticks."""
    told = played([(0, 5, 4, 1.0, 10.0), (0, 8, 4, 0.5, 24.0)], [0])
    assert told[0]["running_value"] == told[0]["finished_value"] == 0.0  # asked again at the same instant
    after_three = told[3]  # the start, and three waits of a tick
    assert after_three["running_value"] == after_three["progress_value"] == pytest.approx(3 * 10 / 5)
    assert after_three["ready_ticks"] == 3
    assert after_three["finished_value"] == 0.0
    end = told[-1]
    assert end["finished_value"] == end["timely_value"] == end["running_value"] == 10.0
    assert (end["late_jobs"], end["late_ticks"], end["late_value"]) == (1, 4, pytest.approx(4 * 24 / 8))
    assert (end["ready_ticks"], end["pooled_ticks"], end["late_running_ticks"], end["suspensions"]) == (20, 0, 0, 0)
    assert end["waiting_or_late_ticks"] == 20
    assert end["accrued_cost"] == 24


def test_a_late_job_costs_while_it_runs() -> None:
    """It starts at 4 and runs to 10, but was due at 6 / 1: 2 ticks give value, 4 cost; a third job waits behind it."""
    told = played([(0, 6, 4, 1.0, 12.0), (0, 1, 1, 0.1, 1.0)], [-1, -1, -1, -1, 0])
    end = told[-1]
    assert (end["finished_value"], end["timely_value"]) == (12.0, 0.0)
    assert end["running_value"] == pytest.approx(2 * 12 / 6)
    assert end["progress_value"] == pytest.approx(12.0)
    assert [each["progress_value"] for each in told[4:7]] == pytest.approx([0.0, 2.0, 4.0])
    assert end["late_value"] == pytest.approx(4 * 12 / 6 + 10 * 1 / 1)  # the second was due at 10
    assert (end["late_running_ticks"], end["late_ticks"], end["late_jobs"]) == (4, 14, 2)
    assert (end["ready_ticks"], end["pooled_ticks"]) == (4 + 16, 4)
    assert end["waiting_or_late_ticks"] == 4 + 16 + 4 + 4


def test_a_suspension_costs_once_and_its_ticks() -> None:
    """Job 0 starts at 0; at 2 it is suspended for job 1 of 3 ticks, and resumes at 5 with 4 of its 6 ticks left."""
    told = played([(0, 6, 4, 0.9, 12.0), (1, 3, 4, 0.5, 30.0), (2, 1, 4, 0.5, 1.0)], [0, -1, 1, 0], suspends="swap")
    end = told[-1]
    assert end["suspensions"] == 1
    assert end["suspended_ticks"] == 3
    assert end["progress_value"] == pytest.approx(42.0)
    assert end["finished_value"] == 42.0
    assert end["timely_value"] == 30.0  # job 0 ends at 9, after 6 / 0.9
    assert end["late_running_ticks"] == pytest.approx(9 - 6 / 0.9)
    assert end["running_value"] == pytest.approx(30 + 12 / 6 * (2 + 6 / 0.9 - 5))
