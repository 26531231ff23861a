"""The green backfillings on machines of which not all is powered: by hand, and against a second implementation."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from nodes_plain import Job, Node
from test_conservative_capacity import CASES, ON_NODES, POOL, check, jobs_of, plain_machine, pool_jobs
from test_plain_nodes import SCORES, workload_of
from test_powered_nodes import GROUPS, node_jobs
from test_powered_nodes_plain import level_lists
from test_powered_properties import capacities

from greenbatch.cluster import Capacity, Cluster
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.plain


def site_of(sun_w: float) -> Site:
    return Site(name="s", step_s=100.0, sources_w={"sun": np.array([sun_w])}, repeat=True)


def run(jobs: Workload, cluster: Cluster, name: str, sun_w: float = 0.0) -> Outcome:
    rules = Rules(event_rule="per_instant", ties="completion_first", pools=Pools())
    return simulate(jobs, cluster, site_of(sun_w), rules, scheduler(name))


@pytest.mark.parametrize("name", ["fcfs+easy-green-order", "fcfs+green:sigma=1e9"])
@pytest.mark.parametrize("cluster", [POOL, ON_NODES])
def test_what_overtakes_stays_powered_and_ends_before_the_reservation(cluster: Cluster, name: str) -> None:
    """The second job starts after the dip; the last one overtakes it at 4, which leaves the fourth no power then."""
    jobs = jobs_of([5, 8, 4, 12, 10], [3, 4, 1, 2, 1], nodes=[-1] * 5, power_w=[1.0] * 5)
    outcome = run(jobs, cluster, name)
    assert outcome.start_s.tolist() == [0, 20, 0, 28, 4]
    assert outcome.promised_start_s[1] == 20


GPU_JOBS = jobs_of(
    [6, 4, 5, 5, 6], [2, 1, 1, 1, 1], nodes=[2, 1, 1, 1, 1], gpus=[2, 1, 1, 0, 0], power_w=[1.0] * 5
)  # fmt: skip
"""The second job waits for a GPU until 6, the third, which would last into the dip, until 20."""


@pytest.mark.parametrize(
    ("name", "sun_w", "start_s"),
    [
        ("fcfs+easy-green-order", 0.0, [0, 6, 20, 0, 6]),
        ("fcfs+green:sigma=1", 1e6, [0, 6, 20, 0, 6]),
        ("fcfs+green:sigma=1", 0.0, [0, 6, 20, 20, 20]),
    ],
)
@pytest.mark.parametrize("cluster", [POOL, ON_NODES])
def test_jobs_without_gpus_overtake_one_that_waits_for_them(
    cluster: Cluster, name: str, sun_w: float, start_s: list[float]
) -> None:
    assert run(GPU_JOBS, cluster, name, sun_w).start_s.tolist() == start_s


@CASES
@given(data=st.data())
def test_green_order_on_a_pool_with_gpus_against_a_second_implementation(data: st.DataObject) -> None:
    jobs, levels, policy = (
        data.draw(pool_jobs()),
        data.draw(level_lists(6, 3)),
        data.draw(st.sampled_from(sorted(SCORES))),
    )
    power_w = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(jobs), max_size=len(jobs))), np.float64)
    key = [power * job.requested_s * job.processors for power, job in zip(power_w.tolist(), jobs, strict=True)]
    plain = plain_machine(jobs, [Node(6, 3)], levels, policy, "power", "easy-green-order", key)
    check(workload_of(jobs).with_columns(power_w=power_w), Cluster.of_units(6, 3), plain, policy)


@pytest.mark.parametrize("name", ["fcfs+easy-green-order", "fcfs+green:sigma=40"])
@CASES
@given(jobs=node_jobs(), capacity=capacities(), sun_w=st.sampled_from([0.0, 30.0, 90.0]))
def test_a_reservation_is_not_delayed(name: str, jobs: Workload, capacity: Capacity, sun_w: float) -> None:
    """Where requests are exact and jobs start only if they stay powered."""
    exact = jobs.with_columns(
        requested_time_s=jobs.run_time_s, exclusive=0 * jobs.exclusive, power_w=jobs.processors * 1.0
    )
    outcome = run(exact, Cluster.of_nodes(GROUPS, powered=capacity), name, sun_w)
    promised = np.isfinite(outcome.promised_start_s)
    assert (outcome.start_s[promised] <= outcome.promised_start_s[promised]).all()
    assert outcome.stays is not None
    assert not outcome.stays.suspensions.any()


def test_second_implementation_overtakes() -> None:
    """Of two jobs that may overtake, the one that draws less goes first, although it came later."""
    jobs = [Job(*each, nodes=1) for each in ((0, 9, 9, 4), (1, 9, 9, 6), (2, 3, 3, 2), (2, 3, 3, 2))]
    plain = plain_machine(jobs, [Node(6, 3)], [(0.0, 6, 3)], "fcfs", "power", "easy-green-order", [0, 0, 2, 1])
    plain.run()
    assert [plain.start_s[j] for j in range(4)] == [0, 9, 5, 2]
