"""The threshold rule: what it holds, for how long, and that it is EASY otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from cases import clusters, job_lists, supplies, workload
from cases import site as site_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.policies.compiled.green_threshold import GreenThreshold, allowed_share
from greenbatch.schedulers import scheduler

HOUR_S = 3600.0
RULES = Rules(commitment="reconsider")
CLUSTER = Cluster.pooled(8, processors_per_machine=8, idle_power_per_machine_w=0.0)
MORNING = Site(name="m", step_s=HOUR_S, sources_w={"sun": np.repeat([0.0, 50.0, 100.0, 0.0], 6)}, repeat=True)
"""No sun for six hours, half of what a job of 100 W needs for the next six, and all of it for six more."""
ONE = workload([Job(0.0, HOUR_S, HOUR_S, 1, 100.0)])


@pytest.mark.parametrize(
    ("parameters", "hour"),
    [
        ("share=1", 0), ("share=0:slowdown=100", 12), ("share=0.5:slowdown=100", 6),
        ("share=0.49:slowdown=1e3:limit=1e7", 12), ("share=0:slowdown=4", 4), ("share=0:slowdown=100:limit=7200", 2),
        ("share=0:slowdown=14", 7), ("share=0:slowdown=14:shape=2", 10), ("brown=0:slowdown=100", 0),
    ],
)  # fmt: skip
def test_a_job_starts_when_little_is_brown_or_its_budget_is_used_up(parameters: str, hour: int) -> None:
    """With a budget of 14 h, the share is 0.5 after 7 h, or after 14 h / sqrt(2) = 9.9 h with an exponent of 2."""
    how = scheduler(f"green-threshold:{parameters}:tick=3600")
    assert simulate(ONE, CLUSTER, MORNING, RULES, how).start_s.tolist() == [hour * HOUR_S]


@given(
    st.floats(0.0, 1.0), st.floats(0.01, 100.0), st.floats(1.0, 1e6), st.floats(0.1, 10.0), st.floats(1.0, 1e6),
    st.floats(0.0, 1e6), st.floats(0.0, 1e6),
)  # fmt: skip
def test_the_threshold_only_loosens(
    share: float, slowdown: float, limit_s: float, shape: float, requested_s: float, wait_s: float, more_s: float
) -> None:  # fmt: skip
    from greenbatch.engine.power.protocol import BROWN

    decider = GreenThreshold(share, slowdown, limit_s, shape, BROWN)
    early, late = (allowed_share(decider, each, requested_s) for each in (wait_s, wait_s + more_s))
    assert share <= early <= late


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_without_a_budget_it_is_easy_backfilling(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors)))
    power = site_of(data.draw(supplies()))
    order = data.draw(st.sampled_from(["f2", "fcfs", "sjf"]))
    wanted = simulate(jobs, cluster, power, RULES, scheduler(f"{order}+easy")).start_s
    found = simulate(jobs, cluster, power, RULES, scheduler(f"green-threshold:slowdown=0:order={order}")).start_s
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_on_an_idle_machine_no_job_waits_longer_than_its_budget(data: st.DataObject) -> None:
    rows = data.draw(job_lists(1, "exact"))
    jobs = workload(rows)
    power = site_of(data.draw(supplies()))
    machine = Cluster.pooled(len(rows), idle_power_per_machine_w=0.0)
    outcome = simulate(jobs, machine, power, RULES, scheduler("green-threshold:share=0:slowdown=2:tick=1"))
    wait_s = outcome.start_s - np.array([row.submit_s for row in rows])
    assert (wait_s <= 2.0 * np.maximum([row.requested_s for row in rows], 10.0) + 1.0).all()
