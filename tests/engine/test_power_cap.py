"""A power cap: no job starts that would lift the power of the cluster above it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Capacity, Cluster, NodeGroup
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Decision, Start, View
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

POOL = Cluster.pooled(8, idle_power_per_machine_w=100.0)
NODES = Cluster.of_nodes((
    NodeGroup(name="a", count=2, processors=4, static_power_w=100.0, idle_fraction=0.5, power_per_processor_w=20.0),
    NodeGroup(name="b", count=1, processors=8, static_power_w=300.0, idle_fraction=0.5, power_per_processor_w=10.0),
))  # fmt: skip


def jobs_of(**columns: object) -> Workload:
    return Workload.from_columns("jobs", columns)


def run(jobs: Workload, cluster: Cluster, name: str, cap_w: float, **rules: object) -> Outcome:
    return simulate(jobs, cluster, None, Rules(power_cap_w=cap_w, **rules), scheduler(name))  # type: ignore[arg-type]


def test_a_job_waits_for_power_by_hand() -> None:
    jobs = jobs_of(submit_s=[0, 1, 2], run_time_s=[10, 10, 3], processors=[1, 1, 1], power_w=[100.0, 150.0, 60.0])
    assert run(jobs, POOL, "fcfs+none", 300.0).start_s.tolist() == [0, 10, 20]
    assert run(jobs, POOL, "fcfs+easy", 300.0).start_s.tolist() == [0, 10, 2]  # 260 W until 5; job 1 from 10 on
    assert run(jobs, POOL, "fcfs+easy", 0.0).start_s.tolist() == [0, 1, 2]


def test_a_candidate_that_outlives_the_reservation_leaves_the_power_of_the_head() -> None:
    jobs = jobs_of(submit_s=[0, 1, 2, 3], run_time_s=[10, 10, 50, 50], processors=[1] * 4,
                   power_w=[100.0, 150.0, 60.0, 40.0])  # fmt: skip
    # At 10, job 1 takes the machine to 250 W: 50 W are left, which is too little for job 2 and enough for job 3
    assert run(jobs, POOL, "fcfs+easy", 300.0).start_s.tolist() == [0, 10, 20, 3]


def test_a_node_that_is_off_adds_all_of_its_static_power() -> None:
    """Each node draws nothing at first and 110 W with a job; a node that idles before would add 60 W only."""
    node = NodeGroup(name="n", count=2, processors=1, static_power_w=100.0, idle_fraction=0.5)
    jobs = jobs_of(submit_s=[0, 1, 20], run_time_s=[10, 10, 10], processors=[1, 1, 1], power_w=[10.0, 10.0, 10.0])
    outcome = run(jobs, Cluster.of_nodes((node,), power_on="first-use"), "fcfs+easy+worst-fit", 200.0)
    assert outcome.start_s.tolist() == [0, 10, 20]


def test_the_reservation_counts_the_gpus_of_running_jobs() -> None:
    """The first job draws 110 W of 115; from its end on, the second one leaves 95 W to the third."""
    node = NodeGroup(
        name="n", count=1, processors=4, static_power_w=0.0, power_per_processor_w=10.0, gpus=1, power_per_gpu_w=100.0
    )
    jobs = jobs_of(submit_s=[0, 1, 2], run_time_s=[10, 10, 50], processors=[1] * 3, gpus=[1, 0, 0],
                   power_w=[np.nan, 20.0, 5.0])  # fmt: skip
    assert run(jobs, Cluster.of_nodes((node,)), "fcfs+easy", 115.0).start_s.tolist() == [0, 10, 2]


@st.composite
def workloads(draw: st.DrawFn, *, powered: bool) -> Workload:
    n = draw(st.integers(1, 25))
    runs = draw(st.lists(st.integers(1, 100), min_size=n, max_size=n))
    power_w = draw(st.lists(st.integers(0, 200), min_size=n, max_size=n)) if powered else [np.nan] * n
    factor = draw(st.sampled_from([1, 2]))
    return jobs_of(
        submit_s=sorted(draw(st.lists(st.integers(0, 300), min_size=n, max_size=n))), run_time_s=runs,
        requested_time_s=[factor * each for each in runs], power_w=power_w,
        processors=draw(st.lists(st.integers(1, 8), min_size=n, max_size=n)),
    )  # fmt: skip


def test_jobs_of_other_partitions_leave_the_power_of_a_blocked_job() -> None:
    """Job 1 of partition a needs the power that job 0 has until 10 s; jobs of partition b must not take it before."""
    nodes = Cluster.of_nodes(tuple(
        NodeGroup(name=name, count=1, processors=4, static_power_w=0.0, partitions=(name,)) for name in "ab"
    ))  # fmt: skip
    jobs = jobs_of(submit_s=[0, 1, 2, 12], run_time_s=[10, 10, 20, 20], processors=[1] * 4,
                   power_w=[100.0, 150.0, 60.0, 60.0], partition=[0, 0, 1, 1])  # fmt: skip
    jobs = replace(jobs, names={"partition": {0: "a", 1: "b"}})
    outcome = run(jobs, nodes, "fcfs+easy", 200.0)
    assert outcome.start_s.tolist() == [0, 10, 20, 20]
    assert outcome.promised_start_s[1] == 10


def test_a_cap_below_what_the_nodes_of_a_job_add_is_told() -> None:
    """Idle, the node draws 50 W; the job would make it 110 W."""
    node = NodeGroup(name="n", count=1, processors=2, static_power_w=100.0, idle_fraction=0.5)
    jobs = jobs_of(submit_s=[0], run_time_s=[10], processors=[1], power_w=[10.0])
    with pytest.raises(InputError, match=r"rules.power_cap_w: leaves 1 jobs waiting forever"):
        run(jobs, Cluster.of_nodes((node,)), "fcfs+easy", 75.0)


NAMES = st.sampled_from(["fcfs+none", "fcfs+easy", "sjf+easy", "f2+first-fit", "fcfs+easy-schedgym"])


@settings(max_examples=20, deadline=None)
@given(jobs=workloads(powered=True), name=NAMES, cap_w=st.integers(300, 700), sticky=st.booleans())
def test_the_cap_is_kept_on_a_pool(jobs: Workload, name: str, cap_w: int, sticky: bool) -> None:
    rules = {"commitment": "sticky" if sticky else "reconsider"}
    outcome = run(jobs, POOL, name, float(cap_w), **rules)
    assert outcome.profile_load_w.max() <= cap_w * (1 + 1e-9)
    if 100 + jobs.power_w.sum() <= cap_w:
        np.testing.assert_array_equal(outcome.start_s, run(jobs, POOL, name, 0.0, **rules).start_s)
    if name.endswith("easy") and (jobs.run_time_s == jobs.requested_time_s).all() and not sticky and "fcfs" in name:
        promised = ~np.isnan(outcome.promised_start_s)
        assert (outcome.start_s[promised] <= outcome.promised_start_s[promised] + 1e-6).all()


@settings(max_examples=20, deadline=None)
@given(jobs=workloads(powered=False), name=NAMES, cap_w=st.integers(690, 1200))
def test_the_cap_is_kept_on_nodes(jobs: Workload, name: str, cap_w: int) -> None:
    outcome = run(jobs, NODES, name, float(cap_w))
    assert outcome.profile_load_w.max() <= cap_w * (1 + 1e-9)
    full_w, rise_w = 2 * 100 + 300 + 8 * 20 + 8 * 10, 2 * 50 + 150  # of nodes that begin to be used
    if cap_w >= full_w + rise_w:  # a reservation may count it for the head and for a candidate
        np.testing.assert_array_equal(outcome.start_s, run(jobs, NODES, name, 0.0).start_s)


@pytest.mark.parametrize("name", ["lptpn+none", "fcfs+easy-irmasim"])
def test_what_does_not_know_the_cap_refuses_it(name: str) -> None:
    jobs = jobs_of(submit_s=[0], run_time_s=[1], processors=[1], power_w=[1.0])
    with pytest.raises(InputError, match=r"a cap on the power|power supply|nodes"):
        run(jobs, POOL, name, 300.0)


def test_impossible_caps_are_refused() -> None:
    jobs = jobs_of(submit_s=[0], run_time_s=[1], processors=[1], power_w=[250.0])
    with pytest.raises(InputError, match="job 1 and idle nodes draw 350 W"):
        run(jobs, POOL, "fcfs+easy", 300.0)
    for cap_w in (-1.0, np.nan, np.inf, 0.5):
        with pytest.raises(InputError, match="power_cap_w"):
            Rules(power_cap_w=cap_w)


class Hungry:
    """Start each job on the second node."""

    def decide(self, view: View) -> Decision:
        return Start(0, nodes=(1,))


def test_a_policy_that_chooses_nodes_keeps_the_cap_on_them() -> None:
    """The first node would do; the one that is chosen draws 80 W more than the cap allows."""
    frugal = NodeGroup(name="frugal", count=1, processors=2, static_power_w=20.0, idle_fraction=0.5)
    hungry = NodeGroup(name="hungry", count=1, processors=2, static_power_w=200.0, idle_fraction=0.5)
    jobs = jobs_of(submit_s=[0], run_time_s=[10], processors=[2], power_w=[10.0])
    cluster = Cluster.of_nodes((frugal, hungry))
    with pytest.raises(InputError, match="draw too much"):
        simulate(jobs, cluster, None, Rules(power_cap_w=140.0), scheduler(Hungry))
    assert simulate(jobs, cluster, None, Rules(power_cap_w=230.0), scheduler(Hungry)).start_s[0] == 0.0


# ---------------------------------------------------------------- a capacity that changes

ON_NODES = Cluster.of_nodes([NodeGroup(name="a", count=2, processors=2, static_power_w=50.0, idle_fraction=1.0)])
IN_UNITS = Cluster.of_units(4, 0, idle_power_w=100.0)


@pytest.mark.parametrize("machine", [ON_NODES, IN_UNITS])
@pytest.mark.parametrize("name", ["fcfs", "fcfs+easy"])
def test_what_is_powered_later_draws_its_idle_power_under_the_cap(machine: Cluster, name: str) -> None:
    """Half of the machine draws 50 W, and all of it 100 W from 10 s on: beside the first job, 5 W are left, not 55."""
    levels = Capacity(time_s=np.array([0.0, 10.0]), processors=np.array([2, 4]), gpus=np.zeros(2, int))
    jobs = Workload.from_columns("two", {
        "submit_s": [0, 0], "run_time_s": [20, 20], "processors": [1, 1], "power_w": [60.0, 30.0],
    })  # fmt: skip
    done = simulate(jobs, replace(machine, powered=levels), None, Rules(power_cap_w=165.0), scheduler(name))
    assert done.start_s.tolist() == [0.0, 20.0]
    assert done.profile_load_w.max() == 160.0
