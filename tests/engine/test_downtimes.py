"""No job runs into an outage, reservations are kept beside outages, and without outages nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import clusters, job_lists, site, supplies, workload
from hypothesis import given, settings
from test_node_machine import jobs_for, node_clusters

from greenbatch.cluster import Capacity, Cluster, NodeGroup
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import run_program
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Outage, Workload

ON_A_POOL = ("fcfs+none", "fcfs+easy", "sjf+easy", "wfp3+easy", "f2+green", "f2+first-fit", "fcfs+conservative")
ON_NODES = ("fcfs+none", "fcfs+easy", "sjf+easy+best-fit", "f2+first-fit+spread", "slurm-multifactor+easy", "min-min")


@st.composite
def outage_lists(draw: st.DrawFn, partitions: Sequence[str] = ("",)) -> tuple[Outage, ...]:
    """Up to three outages, which may overlap, of all jobs or of one partition; some forbid starts only."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        begin_s, partition = draw(st.integers(-3, 60)), draw(st.sampled_from([*partitions]))
        busy = draw(st.sampled_from([0, 4]))
        end_s = begin_s + draw(st.integers(1, 30))
        found.append(Outage(begin_s=begin_s, end_s=end_s, partition=partition, processors=8 - busy, of=8))
    return tuple(found)


def run(name: str, jobs: Workload, cluster: Cluster, rules: Rules, outages: tuple[Outage, ...], power=None) -> Outcome:  # type: ignore[no-untyped-def]
    program = scheduler(name).program(jobs)
    return run_program(jobs, cluster, power, rules, replace(program, outages=outages))


def of_partition(jobs: Workload, name: str) -> np.ndarray:  # type: ignore[type-arg]
    names = jobs.names.get("partition", {})
    return np.array([not name or names.get(int(number)) == name for number in jobs.partition])


def check(outcome: Outcome, outages: tuple[Outage, ...]) -> None:
    assert np.isfinite(outcome.start_s).all()
    for each in outages:
        here = of_partition(outcome.workload, each.partition)
        starts_in = (outcome.start_s >= each.begin_s) & (outcome.start_s < each.end_s)
        assert not (starts_in & here).any()
        if each.processors == each.of:
            runs_in = (outcome.start_s < each.end_s) & (outcome.end_s > each.begin_s)
            assert not (runs_in & here).any()


@settings(max_examples=15, deadline=None)
@given(data=st.data(), name=st.sampled_from(ON_A_POOL), commitment=st.sampled_from(["sticky", "reconsider"]))
def test_no_job_of_a_pool_runs_into_an_outage(data: st.DataObject, name: str, commitment: str) -> None:
    cluster, outages = data.draw(clusters()), data.draw(outage_lists())
    jobs, power = workload(data.draw(job_lists(cluster.processors))), site(data.draw(supplies()))
    rules = Rules(commitment=commitment)  # type: ignore[arg-type]
    outcome = run(name, jobs, cluster, rules, outages, power)
    check(outcome, outages)
    if name in ("fcfs+easy", "fcfs+none", "fcfs+conservative"):
        kept = ~(outcome.start_s > outcome.promised_start_s)
        assert kept.all(), "no job starts later than promised"
    early = (Outage(begin_s=-1e6, end_s=-1e5),)
    assert run(name, jobs, cluster, rules, early, power).start_s.tolist() == run(
        name, jobs, cluster, rules, (), power
    ).start_s.tolist()  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(data=st.data(), name=st.sampled_from(ON_NODES))
def test_no_job_on_nodes_runs_into_an_outage_of_its_partition(data: st.DataObject, name: str) -> None:
    cluster = data.draw(node_clusters(partitions=True))
    outages = data.draw(outage_lists(("", *cluster.partitions)))
    jobs = data.draw(jobs_for(cluster))
    outcome = run(name, jobs, cluster, Rules(), outages)
    check(outcome, outages)
    if name.startswith("fcfs"):
        assert (~(outcome.start_s > outcome.promised_start_s)).all()


def hand(**columns: list[float]) -> Workload:
    return Workload.from_columns("hand", {name: np.array(values) for name, values in columns.items()})


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_by_hand(backfill: str) -> None:
    """A job of 6 s waits for the end of the outage from 5 to 9 s; one of 3 s goes first, one of 2 s comes too late."""
    jobs = hand(submit_s=[1, 1, 4], run_time_s=[6, 3, 2], requested_time_s=[6, 3, 2], processors=[2, 2, 1])
    outage = Outage(begin_s=5, end_s=9)
    outcome = run(f"fcfs+{backfill}", jobs, Cluster.pooled(2), Rules(), (outage,))
    assert outcome.start_s.tolist() == [9, 1, 15]
    partly = replace(outage, processors=1, of=2)
    assert run("fcfs+easy", jobs, Cluster.pooled(2), Rules(), (partly,)).start_s.tolist() == [1, 9, 12]


PARTLY = Outage(begin_s=8, end_s=20, processors=1, of=6)
"""From 8 to 20 s nothing starts, but jobs may run."""
SIX_GPUS = Cluster.of_nodes((NodeGroup(name="a", count=1, processors=6, static_power_w=0, gpus=6),))


@pytest.mark.plain
@pytest.mark.parametrize("cluster", [Cluster.pooled(6), SIX_GPUS, Cluster.of_units(6, 6)])
def test_a_reservation_behind_an_outage_leaves_what_is_free_then(cluster: Cluster) -> None:
    """Job 2 needs 4 of 6 units, which are free at 10 s, when job 0 ends; the outage moves its reservation to 20 s.

    One unit would be left at 10 s, while job 1 runs, but two are at 20 s: job 3, which takes two from 3 to 33 s, delays
    nobody. Job 4, which takes another one until 34 s, would.
    """
    units, gpus = ([3, 1, 4, 2, 1], [0] * 5) if type(cluster) is Cluster else ([1] * 5, [3, 1, 4, 2, 1])
    jobs = hand(
        submit_s=[0, 0, 2, 3, 4], run_time_s=[10, 15, 5, 30, 30], requested_time_s=[10, 15, 5, 30, 30],
        processors=units, gpus=gpus,
    )  # fmt: skip
    assert run("fcfs+easy", jobs, cluster, Rules(), (PARTLY,)).start_s.tolist() == [0, 0, 20, 3, 25]


@pytest.mark.plain
def test_a_reservation_behind_an_outage_counts_what_is_powered_then() -> None:
    """At 10 s, 6 units are powered and job 1 leaves two; from 15 s on, only 4, which the reservation at 20 s takes."""
    levels = Capacity(time_s=np.array([0.0, 15.0]), processors=np.array([6, 4]), gpus=np.array([0, 0]))
    jobs = hand(
        submit_s=[0, 2, 3], run_time_s=[10, 5, 30], requested_time_s=[10, 5, 30], processors=[4, 4, 2], gpus=[0, 0, 0]
    )
    machine = Cluster.of_units(6, 0, powered=levels)
    assert run("fcfs+easy", jobs, machine, Rules(), (PARTLY,)).start_s.tolist() == [0, 20, 25]


@pytest.mark.plain
def test_a_reservation_that_a_power_cap_moves_leaves_what_is_free_then() -> None:
    """Job 2 has its processors at 10 s, but its power only at 15 s, when two processors are left beside it, not one."""
    jobs = hand(
        submit_s=[0, 0, 2, 3], run_time_s=[10, 15, 5, 30], requested_time_s=[10, 15, 5, 30], processors=[3, 1, 4, 2],
        power_w=[10, 60, 60, 1],
    )  # fmt: skip
    pool = Cluster.pooled(6, idle_power_per_machine_w=0.0)
    assert run("fcfs+easy", jobs, pool, Rules(power_cap_w=100.0), ()).start_s.tolist() == [0, 0, 15, 3]


def test_only_the_jobs_of_its_partition_wait_for_an_outage() -> None:
    cluster = Cluster.of_nodes((
        NodeGroup(name="a", count=1, processors=2, static_power_w=0, partitions=("a", "all")),
        NodeGroup(name="b", count=1, processors=2, static_power_w=0, partitions=("b", "all")),
    ))  # fmt: skip
    jobs = hand(
        submit_s=[0, 0, 0], run_time_s=[4, 4, 4], requested_time_s=[4, 4, 4], processors=[1, 1, 1], partition=[0, 1, 2]
    )
    jobs = replace(jobs, names={"partition": {0: "a", 1: "b", 2: "all"}})
    outcome = run("fcfs+easy", jobs, cluster, Rules(), (Outage(begin_s=2, end_s=9, partition="a"),))
    assert outcome.start_s.tolist() == [9, 0, 0]


def test_a_job_submitted_when_an_outage_ends_does_not_hide_the_end() -> None:
    jobs = hand(submit_s=[0, 9], run_time_s=[6, 1], requested_time_s=[6, 1], processors=[2, 2])
    outcome = run("fcfs+easy", jobs, Cluster.pooled(2), Rules(), (Outage(begin_s=5, end_s=9),))
    assert outcome.start_s.tolist() == [9, 15]


@pytest.mark.parametrize(
    ("outage", "word"),
    [
        (Outage(begin_s=5, end_s=5), "begin first"), (Outage(begin_s=np.nan, end_s=5), "finite"),
        (Outage(begin_s=0, end_s=np.inf), "finite"), (Outage(begin_s=0, end_s=1, partition="c"), "the cluster has p"),
    ],
)  # fmt: skip
def test_outages_that_cannot_be_are_refused(outage: Outage, word: str) -> None:
    cluster = Cluster.of_nodes((NodeGroup(name="a", count=1, processors=2, static_power_w=0, partitions=("p",)),))
    jobs = hand(submit_s=[0], run_time_s=[4], requested_time_s=[4], processors=[1])
    with pytest.raises(InputError, match=word):
        run("fcfs+easy", jobs, cluster, Rules(), (outage,))


def test_conservative_backfilling_on_nodes_waits_for_the_end_of_an_outage() -> None:
    """The first two jobs would last into it; the third one ends at its begin."""
    cluster = Cluster.of_nodes((NodeGroup(name="a", count=2, processors=2, static_power_w=0, memory_gb=8.0),))
    jobs = hand(submit_s=[0, 0, 0], run_time_s=[6, 6, 3], requested_time_s=[6, 6, 3], processors=[2, 4, 2])
    outcome = run("fcfs+conservative", jobs, cluster, Rules(), (Outage(begin_s=3, end_s=9),))
    assert outcome.start_s.tolist() == [9, 15, 0]
