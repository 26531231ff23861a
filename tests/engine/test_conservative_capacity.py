"""Conservative backfilling on machines of which not all is powered: by hand, and against a second implementation."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "rare"))

from kinds import rare
from nodes_plain import Job, Node
from powered_nodes_plain import PoweredMachine
from test_plain_nodes import SCORES, cluster_of, job_lists, node_lists, workload_of
from test_powered_nodes_plain import level_lists

from greenbatch.cluster import Capacity, Cluster, NodeGroup
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.plain

DIP = Capacity(time_s=np.array([0.0, 10.0, 20.0]), processors=np.array([4, 2, 4]), gpus=np.array([2, 0, 2]))
"""Half of the processors, and no GPU, from 10 s to 20 s."""
NODES = (NodeGroup(name="a", count=2, processors=2, gpus=1, static_power_w=0.0),)
POOL, ON_NODES = Cluster.of_units(4, 2, powered=DIP), Cluster.of_nodes(NODES, powered=DIP)


def jobs_of(run_s: list[float], processors: list[int], **columns: list[Any]) -> Workload:
    count = len(run_s)
    rest = {"submit_s": [0] * count, "gpus": [0] * count, "requested_time_s": run_s, "power_w": [0.0] * count}
    return Workload.from_columns("hand", {**rest, "run_time_s": run_s, "processors": processors, **columns})


def run(jobs: Workload, cluster: Cluster, suspends: Any = "never", name: str = "fcfs+conservative") -> Outcome:
    return simulate(jobs, cluster, None, Rules(pools=Pools(suspends=suspends)), scheduler(name))


@pytest.mark.parametrize("cluster", [POOL, ON_NODES])
def test_a_reservation_stays_powered(cluster: Cluster) -> None:
    """The first job would last into the dip on 3 processors; two nodes of the others are powered until then."""
    jobs = jobs_of([15, 15, 10, 5], [3, 2, 2, 2], nodes=[-1, 1, 1, 1])
    outcome = run(jobs, cluster)
    assert outcome.start_s.tolist() == [20, 0, 0, 15]
    assert outcome.promised_start_s.tolist() == outcome.start_s.tolist()


@pytest.mark.parametrize("cluster", [POOL, ON_NODES])
def test_gpus_are_reserved_as_well(cluster: Cluster) -> None:
    """One GPU each for 6 s: two at a time, and none during the dip; a job without GPUs fills it."""
    jobs = jobs_of([6, 6, 6, 3], [1, 1, 1, 1], nodes=[1] * 4, gpus=[1, 1, 1, 0])
    assert run(jobs, cluster).start_s.tolist() == [0, 0, 20, 0]
    longer = jobs_of([4, 4, 4, 9], [1, 1, 1, 1], nodes=[1] * 4, gpus=[1, 1, 1, 0])
    assert run(longer, cluster).start_s.tolist() == [0, 0, 4, 0]


@pytest.mark.parametrize("cluster", [POOL, ON_NODES])
def test_jobs_that_will_be_suspended_may_start(cluster: Cluster) -> None:
    """Where power that fails suspends jobs, what is there now is counted on for later."""
    jobs = jobs_of([15, 5], [3, 1], nodes=[-1, 1])
    outcome = run(jobs, cluster, "power")
    assert outcome.start_s.tolist() == [0, 0]
    assert outcome.end_s.tolist() == [25, 5]


def test_a_later_job_does_not_take_what_a_reservation_of_other_nodes_needs_powered() -> None:
    """Both nodes are empty, but only 2 processors are powered until 10 s, and the first job keeps them."""
    rises = Capacity(time_s=np.array([0.0, 10.0]), processors=np.array([2, 4]), gpus=np.array([2, 2]))
    jobs = jobs_of([4, 8, 2, 9], [1, 2, 1, 1], nodes=[1, 1, 1, 1], submit_s=[0, 1, 1, 1])
    assert run(jobs, Cluster.of_nodes(NODES, powered=rises)).start_s.tolist() == [0, 4, 1, 10]


def test_a_suspended_job_resumes_on_all_of_its_nodes() -> None:
    """The reservations of others kept room on one node only, when they were last made; it needs both, from 20 on."""
    jobs = jobs_of([15, 8, 8], [4, 1, 1], nodes=[2, 1, 1], submit_s=[0, 1, 1])
    outcome = run(jobs, ON_NODES, "power")
    assert outcome.placements is not None
    placed = outcome.placements
    on = [sorted(placed.node[placed.span == span].tolist()) for span in range(len(outcome.spans[0]))]
    assert outcome.spans[0].tolist() == [0, 0, 1, 2]
    assert on[:2] == [[0, 1], [0, 1]]
    assert outcome.end_s.tolist() == [25, 18, 18]


CASES = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("suspends", ["never", "power"])
@CASES
@given(data=st.data())
def test_nodes_against_a_second_implementation(suspends: Any, data: st.DataObject) -> None:
    nodes = [node._replace(speed=1.0) for node in data.draw(node_lists())]
    jobs = [job._replace(exclusive=False) for job in data.draw(job_lists(nodes))]
    levels = data.draw(level_lists(sum(n.processors for n in nodes), sum(n.gpus for n in nodes)))
    policy = data.draw(st.sampled_from(sorted(SCORES)))
    check(workload_of(jobs), cluster_of(nodes), plain_machine(jobs, nodes, levels, policy, suspends), policy)


@pytest.mark.parametrize("suspends", ["never", "power"])
@CASES
@given(data=st.data())
def test_a_pool_with_gpus_is_one_large_node(suspends: Any, data: st.DataObject) -> None:
    jobs, levels, policy = (
        data.draw(pool_jobs()),
        data.draw(level_lists(6, 3)),
        data.draw(st.sampled_from(sorted(SCORES))),
    )
    plain = plain_machine(jobs, [Node(6, 3)], levels, policy, suspends)
    check(workload_of(jobs), Cluster.of_units(6, 3), plain, policy)


@st.composite
def pool_jobs(draw: Any) -> list[Job]:
    """Jobs for a pool of 6 processors and 3 GPUs, as those that ask for the one node of a cluster."""
    count = draw(st.integers(1, 12))

    def whole(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    rows = zip(whole(0, 40), whole(1, 12), whole(1, 15), whole(1, 6), whole(0, 3), strict=True)
    return [
        Job(float(submit), float(ran), float(max(ran, asked)), processors, nodes=1, gpus=gpus)
        for submit, ran, asked, processors, gpus in rows
    ]


def plain_machine(
    jobs: list[Job], nodes: list[Node], levels: Any, policy: str, suspends: str, backfill: str = "conservative",
    key: Any = (),
) -> PoweredMachine:  # fmt: skip
    return PoweredMachine(
        jobs, nodes, SCORES[policy], backfill, "first", per_instant=True, completion_first=True, levels=levels,
        suspends=suspends == "power", key=list(key),
    )  # fmt: skip


def check(jobs: Workload, cluster: Cluster, plain: PoweredMachine, policy: str) -> None:
    """The same spans, nodes and first reservations."""
    time_s, processors, gpus = map(np.array, zip(*plain.levels, strict=True))
    powered = Capacity(time_s=time_s, processors=processors, gpus=gpus)
    pools = Pools(suspends="power" if plain.suspends else "never", victim="latest-start")
    rules = Rules(event_rule="per_instant", ties="completion_first", pools=pools)
    machine = replace(cluster, powered=powered)
    outcome = simulate(jobs, machine, None, rules, scheduler(f"{policy}+{plain.backfill}"))
    plain.run()
    wanted = sorted(each for each in plain.spans if each[1] != each[2])
    assert [*zip(*(each.tolist() for each in outcome.spans), strict=True)] == [span[:3] for span in wanted]
    first = [plain.first_reservation_s.get(j, np.nan) for j in range(len(jobs))]
    np.testing.assert_array_equal(outcome.promised_start_s, first)
    if outcome.placements is not None:
        at = outcome.placements
        placed = list(zip(at.span.tolist(), at.node.tolist(), at.processors.tolist(), strict=True))
        assert placed == [(k, part.node, part.processors) for k, span in enumerate(wanted) for part in span[3]]


@pytest.mark.parametrize("admission", ["fifo", "qos"])
@pytest.mark.parametrize("ready", [1, 2])
def test_jobs_that_are_not_ready_reserve_nothing(ready: int, admission: str) -> None:
    """Else they would hold what ready jobs need, and nothing would start any more."""
    where = rare(8, 40, seed=3, level=0.8, ready=ready, admission=admission, until_end=False)
    outcome = simulate(where.workload, where.cluster, None, where.rules, scheduler("sjf+conservative"))
    assert np.isfinite(outcome.end_s[outcome.workload.processors <= 4]).all()
