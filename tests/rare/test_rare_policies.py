"""Policies in Python where capacity follows the power: what they see, and that they can do what rules and agents do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases_rare import agent, rare

import greenbatch as gb
from greenbatch.engine.program import Program
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.session import Session, run_policy
from greenbatch.envs.batch import BatchEnv
from greenbatch.scenarios import Scenario


def session_of(scenario: Scenario, **settings: float) -> Session:
    program = Program(name="mine", backfill="none", settings=settings)
    return Session(scenario.workload, scenario.cluster, None, scenario.rules, program)


class HighestQos:
    """The ready job of the highest QoS, and nothing else until it fits."""

    def decide(self, view: gb.View) -> gb.Start | gb.Wait:
        assert view.capacity is not None
        qos = np.where(view.capacity.ready, view.attributes.qos, -1.0)
        return gb.Start(int(qos.argmax()))


@pytest.mark.parametrize("case", [{}, {"level": 0.8}, {"level": 0.7, "suspends": "power"}], ids=str)
def test_a_policy_that_follows_a_rule_is_that_rule(case: dict[str, Any]) -> None:
    scenario = rare(10, 300, seed=2, **case)
    ours = run_policy(session_of(scenario), HighestQos())
    theirs = simulate(scenario.workload, scenario.cluster, None, scenario.rules, gb.scheduler("qos+none"))
    np.testing.assert_array_equal(ours.start_s, theirs.start_s)
    np.testing.assert_array_equal(ours.end_s, theirs.end_s)


def test_a_policy_can_do_all_that_an_agent_can() -> None:
    """The same random actions in the batched environment; ready jobs, GPUs and capacities are those of its tables."""
    scenario = rare(10, 200, seed=4, level=0.8, suspends="swap")
    env = BatchEnv(scenario, agent(), environments=1, jobs=len(scenario.workload))
    seen, rng, done = env.reset([0]), np.random.default_rng(0), set()
    session, value = session_of(scenario, tick_s=1.0), scenario.workload.value.max()
    while (view := session.view()) is not None:
        capacity = view.capacity
        assert capacity is not None
        assert view.now_s == env.now_s[0]
        ready = np.flatnonzero(capacity.ready)
        np.testing.assert_allclose(view.attributes.value[ready] / value, seen.queue[: len(ready), 0], rtol=1e-6)
        assert len(seen.queue) == len(ready) + 2
        assert capacity.free_gpus / 10 == pytest.approx(seen.supply[0, 0, 1])
        assert capacity.processors[0] / 10 == pytest.approx(seen.supply[0, 0, 2])
        assert len(capacity.suspended_job_id) / 144 == pytest.approx(seen.state[0, 5], rel=1e-6)
        row = int(rng.choice(np.flatnonzero(seen.selectable)))
        done.add("start" if row < len(ready) else "suspend" if row == len(ready) else "wait")
        seen, _, _ = env.step(np.array([[row, 0]]))
        if row < len(ready):
            session.apply(gb.Start(int(ready[row])))
        else:
            session.apply(gb.Suspend() if row == len(ready) else gb.Wait())
    assert done == {"start", "suspend", "wait"}
    np.testing.assert_array_equal(session.outcome().start_s, env.starts_s[0])
