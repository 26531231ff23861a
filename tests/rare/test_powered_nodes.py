"""What holds of every run on nodes of which only some processors are powered, and that plain jobs run as on a pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_powered_properties import FINISHED, POOLS, REJECTED, SIZE, capacities, worked_s, workloads

from greenbatch.cluster import Capacity, Cluster, DvfsLevel, NodeGroup
from greenbatch.energy import Grid, Site
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start, Suspend, Wait
from greenbatch.engine.views.session import Session
from greenbatch.envs.batch import BatchEnv
from greenbatch.metrics.energy_use import energy_use
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.plain

RULES: dict[str, Any] = {"event_rule": "per_instant", "ties": "completion_first"}
READY = ("packer", "random-action:seed=3:of=allowed", "random-action:of=fitting")
SCHEDULERS = (
    "qos+none", "hvf+first-fit", "fcfs+easy", "sjf+none", "sjf+easy", "wfp3+first-fit", "f1+easy-green-order", *READY,
)  # fmt: skip


def on_nodes(workload: Workload, groups: list[NodeGroup], capacity: Capacity, pools: Pools | None, name: str,
             **parts: Any) -> Outcome:  # fmt: skip
    cluster = Cluster.of_nodes(groups, powered=capacity, **parts)
    return simulate(workload, cluster, None, Rules(**RULES, pools=pools), scheduler(name))


@given(workload=workloads(gpus=0), capacity=capacities(), pools=POOLS, name=st.sampled_from(SCHEDULERS))
@settings(max_examples=100, deadline=None)
def test_jobs_that_ask_for_processors_only_run_as_on_a_pool(
    workload: Workload, capacity: Capacity, pools: Pools, name: str
) -> None:
    nodes = [NodeGroup(name=each, count=2, processors=p, static_power_w=0.0) for each, p in (("a", 2), ("b", 1))]
    ours = on_nodes(workload, nodes, _without_gpus(capacity), pools, name)
    cluster = Cluster.of_units(SIZE, 0, powered=_without_gpus(capacity))
    pool = simulate(workload, cluster, None, Rules(**RULES, pools=pools), scheduler(name))
    for column in ("start_s", "end_s", "promised_start_s"):
        assert np.array_equal(getattr(ours, column), getattr(pool, column), equal_nan=True), column
    assert ours.stays is not None
    assert pool.stays is not None
    for column in ("state", "suspensions", "span_job", "span_start_s", "span_end_s"):
        assert np.array_equal(getattr(ours.stays, column), getattr(pool.stays, column), equal_nan=True), column
    at_s = np.linspace(ours.profile_time_s[0], ours.profile_time_s[-1], 50)
    jobs_w = [_power_at(each, at_s) for each in (ours, pool)]
    assert np.allclose(*jobs_w)


TWO_NODES = [NodeGroup(name="n", count=2, processors=2, static_power_w=0.0)]
ALL_ON = Capacity.constant(4, 0)


def ready_jobs(processors: list[int], nodes: list[int], power_w: list[float]) -> Workload:
    n = len(processors)
    return Workload.from_columns("ready", {
        "submit_s": np.arange(n), "run_time_s": [10] * n, "processors": processors, "nodes": nodes, "power_w": power_w,
    })  # fmt: skip


@pytest.mark.parametrize("name", ["packer", "random-action:of=fitting"])
def test_a_ready_job_that_does_not_fit_on_the_nodes_is_no_candidate(name: str) -> None:
    """Beside a job on each node, two processors are free, but not for the one that asks for two of one node."""
    jobs = ready_jobs([1, 1, 2, 1], [1, 1, 1, 1], [1.0] * 4)
    outcome = on_nodes(jobs, TWO_NODES, ALL_ON, None, f"{name}+none+spread")
    assert outcome.start_s.tolist() == [0, 1, 11, 3]


LIMITED = {
    "power cap": (Rules(**RULES, power_cap_w=100.0), None),
    "import limit": (Rules(**RULES), Site(
        name="grid", step_s=100.0, sources_w={"all": np.zeros(1)}, repeat=True,
        grid=Grid(currency="EUR", import_price=np.ones(1), import_limit_w=100.0, over_limit="hold"),
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", ["packer", "random-action:of=fitting"])
@pytest.mark.parametrize("limit", LIMITED)
@pytest.mark.parametrize(
    "cluster", [Cluster.of_nodes(TWO_NODES, powered=ALL_ON), Cluster.of_units(4, 0, powered=ALL_ON)]
)
def test_a_ready_job_that_a_limit_forbids_is_no_candidate(name: str, limit: str, cluster: Cluster) -> None:
    """The second job would lift 60 W to 110 W, the third one only to 100 W; the second starts when the first ends."""
    rules, site = LIMITED[limit]
    outcome = simulate(ready_jobs([1, 1, 1], [1, 1, 1], [60.0, 50.0, 40.0]), cluster, site, rules, scheduler(name))
    assert outcome.start_s.tolist() == [0, 10, 2]


def test_an_agent_that_chooses_nodes_waits_where_nothing_fits() -> None:
    """Nothing is powered before 10 s."""
    levels = Capacity(time_s=np.array([0.0, 10.0]), processors=np.array([0, 4]), gpus=np.array([0, 0]))
    outcome = on_nodes(ready_jobs([2], [1], [1.0]), TWO_NODES, levels, None, "ineps-plus@default")
    assert outcome.start_s.tolist() == [10]


def test_an_agent_that_chooses_nodes_sees_the_ready_jobs() -> None:
    """All wait for the first one. Once the second, which is ready, has started, the last is the next one by QoS."""
    jobs = ready_jobs([4, 1, 1, 1], [2, 1, 1, 1], [1.0] * 4).with_columns(qos=np.array([1.0, 0.5, 0.2, 0.9]))
    pools = Pools(ready=1, admission="qos")
    where = replace(
        load_scenario("default", overrides={"workload.generator.jobs": 10}), workload=jobs, site=None,
        cluster=Cluster.of_nodes(TWO_NODES, powered=ALL_ON), rules=Rules(**RULES, pools=pools),
    )  # fmt: skip
    env = BatchEnv(where, "ineps-plus", environments=1, jobs=4)
    seen, order = env.reset([0]), []
    while len(seen.environment):
        seen, _, _ = env.step(np.array([[np.argmax(seen.selectable), 0]]))
        order.append(np.flatnonzero(np.isfinite(env.starts_s[0])).tolist())
    assert order == [[0], [0, 1], [0, 1, 3], [0, 1, 2, 3]]
    assert env.starts_s[0].tolist() == [0, 10, 10, 10]


def _without_gpus(capacity: Capacity) -> Capacity:
    return Capacity(time_s=capacity.time_s, processors=capacity.processors, gpus=0 * capacity.gpus)


def _power_at(outcome: Outcome, time_s: Any) -> Any:
    return outcome.profile_load_w[np.searchsorted(outcome.profile_time_s, time_s, side="right") - 1]


@st.composite
def node_jobs(draw: Any) -> Workload:
    """Jobs that ask for processors, nodes, GPUs, memory or nodes of their own, on `GROUPS`."""
    made = draw(workloads(gpus=0))
    n = len(made)
    spread = np.array(draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    spread[spread == 0] = -1
    most = np.where(spread == 2, 4, np.where(spread == 1, 2, SIZE))
    processors = np.minimum(np.maximum(made.processors, spread), most)
    gpus = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    gpus = np.where(spread > 0, np.minimum(gpus, spread), 0)
    alone = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=n, max_size=n)))
    alone[(spread < 0) & (processors > 4)] = 0
    power_w = np.where(draw(st.booleans()), np.nan, made.power_w)
    return made.with_columns(processors=processors, nodes=spread, gpus=gpus, exclusive=alone, power_w=power_w)


GROUPS = [
    NodeGroup(name="a", count=2, processors=2, gpus=1, static_power_w=11.0, power_per_processor_w=3.0,
              power_per_gpu_w=7.0, idle_fraction=0.5),
    NodeGroup(name="b", count=2, processors=1, gpus=1, static_power_w=6.0, power_per_processor_w=2.0,
              power_per_gpu_w=7.0, idle_fraction=0.5),
]  # fmt: skip


def taken_at(outcome: Outcome, time_s: float) -> tuple[int, int]:
    """Processors and GPUs that jobs take at an instant, all of their nodes if they have them alone."""
    placed, (_, start_s, end_s) = outcome.placements, outcome.spans
    assert placed is not None
    here = (start_s[placed.span] <= time_s) & (time_s < end_s[placed.span])
    size = np.array([2, 2, 1, 1])[placed.node]
    alone = outcome.workload.exclusive[placed.job] == 1
    processors = np.where(alone, size, placed.processors)
    for node in range(4):
        assert processors[here & (placed.node == node)].sum() <= [2, 2, 1, 1][node]
    gpus = np.where(alone, 1, placed.gpus)
    return int(processors[here].sum()), int(gpus[here].sum())


def check_room(outcome: Outcome, capacity: Capacity) -> None:
    """No node holds more than it has, and no more is taken than is powered."""
    for time_s in np.unique(np.concatenate([outcome.stays.span_start_s, capacity.time_s])):  # type: ignore[union-attr]
        row = max(0, np.searchsorted(capacity.time_s, time_s, side="right") - 1)
        processors, gpus = taken_at(outcome, time_s)
        assert processors <= capacity.processors[row]
        assert gpus <= capacity.gpus[row]


@given(workload=node_jobs(), capacity=capacities(), pools=POOLS, name=st.sampled_from(SCHEDULERS))
@settings(max_examples=150, deadline=None)
def test_capacity_is_kept_work_conserved_and_the_books_balance(
    workload: Workload, capacity: Capacity, pools: Pools, name: str
) -> None:
    outcome = on_nodes(workload, GROUPS, capacity, pools, name)
    stays, placed = outcome.stays, outcome.placements
    assert stays is not None
    assert placed is not None
    check_room(outcome, capacity)
    finished = stays.state == FINISHED
    assert np.isin(stays.state, (FINISHED, REJECTED)).all()
    for job in np.flatnonzero(finished):
        assert any(np.isclose(workload.run_time_s[job], each) for each in worked_s(stays, job, pools.suspend_s))
    assert np.array_equal(np.bincount(placed.span, weights=placed.processors), workload.processors[stays.span_job])
    use = energy_use(outcome)
    held_s = np.diff(outcome.profile_time_s)
    energy_j = float(outcome.profile_load_w[:-1] @ held_s)
    first, last = np.nanmin(outcome.start_s) if finished.any() else 0.0, outcome.last_s
    at = (outcome.profile_time_s[:-1] >= first) & (outcome.profile_time_s[:-1] < last)
    energy_j = float(outcome.profile_load_w[:-1][at] @ held_s[at])
    assert use.idle_j.sum() + use.job_j.sum() == pytest.approx(energy_j, rel=1e-9, abs=1e-6)
    assert use.static_j.sum() + use.dynamic_j.sum() == pytest.approx(use.job_j.sum(), rel=1e-9, abs=1e-6)


@given(
    workload=node_jobs(), capacity=capacities(), pools=POOLS, name=st.sampled_from(SCHEDULERS),
    contention=st.sampled_from(["none", "repaired"]), level=st.integers(0, 1),
    speed=st.sampled_from([0.5, 1.0, 2.0]), volume_mb=st.sampled_from([0.0, 5e4, 1e6]),
    loses=st.sampled_from(["nothing", "all"]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_a_job_that_resumes_on_slower_nodes_does_the_same_work(
    workload: Workload, capacity: Capacity, pools: Pools, name: str, contention: Any, level: int, speed: float,
    volume_mb: float, loses: Any,
) -> None:  # fmt: skip
    """The slowest node of a span says how fast it works; jobs beside it can only slow it down."""
    groups = [GROUPS[0], replace(GROUPS[1], speed=speed)]
    workload = workload.with_columns(
        memory_volume_mb=np.full(len(workload), volume_mb), requested_time_s=np.full(len(workload), 1e6)
    )
    cluster = Cluster.of_nodes(groups, contention, powered=capacity, dvfs=(DvfsLevel(speed=0.75, power=0.5),)[:level])
    pools = replace(pools, loses=loses)
    rules = Rules(**RULES, pools=pools, dvfs_level=level)
    outcome = simulate(workload, cluster, None, rules, scheduler(name))
    stays, placed = outcome.stays, outcome.placements
    assert stays is not None
    assert placed is not None
    assert np.isin(stays.state, (FINISHED, REJECTED)).all()
    node_speed = np.array([1.0, 1.0, speed, speed]) * (0.75 if level else 1.0)
    slowest = np.full(len(stays.span_job), np.inf)
    np.minimum.at(slowest, placed.span, node_speed[placed.node])
    for job in np.flatnonzero(stays.state == FINISHED):
        own = stays.span_job == job
        lengths, rates = (stays.span_end_s - stays.span_start_s)[own], slowest[own]
        done = []
        for first_s in {0.0, pools.suspend_s} if stays.suspensions[job] >= len(lengths) else {0.0}:
            costs_s = [first_s, *[pools.suspend_s] * (len(lengths) - 1)][: len(lengths)]
            by_span = np.maximum(lengths - costs_s, 0.0) * rates
            done.append(float(by_span[-1] if loses == "all" else by_span.sum()))
        work_s = workload.run_time_s[job]
        if contention == "none" or volume_mb == 0.0:
            assert any(np.isclose(work_s, each) for each in done)
        else:
            assert max(done) >= work_s * (1 - 1e-9)


@given(workload=node_jobs(), capacity=capacities(), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_an_agent_may_suspend_jobs_on_nodes(workload: Workload, capacity: Capacity, seed: int) -> None:
    """At any decision; what it suspends gives back its nodes, and every job ends."""
    cluster = Cluster.of_nodes(GROUPS, powered=capacity)
    rules = Rules(**RULES, pools=Pools(suspends="swap", suspend_s=1.0, resume_s=1.0))
    session = Session(workload, cluster, None, rules, Program(name="any"))
    random, suspended = np.random.default_rng(seed), 0
    while (view := session.view()) is not None:
        ready = np.flatnonzero(view.capacity.ready)  # type: ignore[union-attr]
        may = len(view.running.job_id) > 0 and random.random() < 0.3 and suspended < 20
        suspended += may
        session.apply(Suspend() if may else Start(int(random.choice(ready))) if ready.size else Wait())
    outcome = session.outcome()
    check_room(outcome, capacity)
    assert np.isin(outcome.stays.state, (FINISHED, REJECTED)).all()  # type: ignore[union-attr]
