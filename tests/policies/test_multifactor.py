"""Slurm's multifactor priority: each factor by hand, and all of them against a second implementation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.cluster.priority import Partition, Priority, PriorityWeights
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.interface import Decision, Start, View
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload


def jobs_of(**columns) -> Workload:
    names = columns.pop("names", {})
    return Workload.from_columns("jobs", columns, names=names)


def starts(name: str, jobs: Workload, processors: int = 2, **rules) -> list[float]:
    return simulate(jobs, Cluster.pooled(processors), None, Rules(**rules), scheduler(name)).start_s.tolist()


def test_without_weights_it_is_first_come_first_served():
    jobs = jobs_of(submit_s=[0, 1, 2, 3], run_time_s=[9] * 4, processors=[2, 1, 2, 1], user=[1, 1, 2, 3])
    for backfill in ("none", "easy"):
        assert starts(f"slurm-multifactor+{backfill}", jobs) == starts(f"fcfs+{backfill}", jobs)


def test_fair_share_lets_those_go_first_who_used_less():
    jobs = jobs_of(submit_s=[0, 1, 2, 3, 4], run_time_s=[10] * 5, processors=[2] * 5, user=[1, 1, 1, 2, 3])
    assert starts("slurm-multifactor:fairshare=1000", jobs) == [0, 30, 40, 10, 20]


def test_past_use_decays():
    # User 1 used 8 times as much as user 2, but six half-lives earlier.
    jobs = jobs_of(submit_s=[0, 140, 141, 142], run_time_s=[80, 10, 10, 10], processors=[2] * 4, user=[1, 2, 1, 2])
    assert starts("slurm-multifactor:fairshare=1000:half_life=0", jobs) == [0, 140, 160, 150]
    assert starts("slurm-multifactor:fairshare=1000:half_life=10", jobs) == [0, 140, 150, 160]


@pytest.mark.plain
def test_the_boot_of_a_node_is_no_use():
    """User 1 has used 10 s when user 2 has used 15: neither the boot counts, nor does anything count twice."""
    node = NodeGroup(name="n", count=1, processors=2, static_power_w=0.0, boot_s=100.0, min_on_s=1000.0)
    jobs = jobs_of(submit_s=[0, 109, 110, 111], run_time_s=[10, 15, 5, 5], processors=[1, 1, 2, 2], user=[1, 2, 2, 1])
    name = scheduler("slurm-multifactor:fairshare=1000:half_life=0")
    outcome = simulate(jobs, Cluster.of_nodes((node,), power_on="on-demand"), None, Rules(), name)
    assert outcome.start_s.tolist() == [100, 109, 129, 124]


def test_the_factors_of_age_and_size():
    jobs = jobs_of(submit_s=[0, 1, 2, 3], run_time_s=[10] * 4, processors=[2, 1, 2, 2], user=[1] * 4)
    # Sizes 1/2 and 1; at 10 s the ages are 9, 8 and 7 of at most 100 s.
    assert starts("slurm-multifactor:size=1000", jobs) == [0, 30, 10, 20]
    assert starts("slurm-multifactor:size=1000:favor_small=1", jobs) == [0, 10, 20, 30]
    assert starts("slurm-multifactor:size=1:age=1000:max_age=100", jobs) == [0, 10, 20, 30]
    # From 5 s on all have the same age factor.
    assert starts("slurm-multifactor:size=10:age=1000:max_age=5", jobs) == [0, 30, 10, 20]


def test_priorities_are_whole_numbers():
    jobs = jobs_of(submit_s=[0, 1, 2], run_time_s=[10] * 3, processors=[2, 1, 2], user=[1] * 3)
    assert starts("slurm-multifactor:size=1", jobs) == [0, 20, 10]  # 0 and 1
    wide = jobs_of(submit_s=[0, 1, 2], run_time_s=[10] * 3, processors=[4, 2, 3], user=[1] * 3)
    assert starts("slurm-multifactor:size=1", wide, 4) == [0, 10, 20]  # 1/2 and 3/4: both 0


SITE = Priority(
    weights=PriorityWeights(partition=1000),
    partitions=(Partition(name="low", job_factor=1, default=True), Partition(name="high", job_factor=4)),
)
NODES = Cluster.of_nodes((NodeGroup(name="n", count=1, processors=2, static_power_w=0.0),))
BY_PARTITION = jobs_of(
    submit_s=[0, 1, 2, 3], run_time_s=[10] * 4, processors=[2] * 4, user=[1] * 4, partition=[1, 1, 2, -1],
    names={"partition": {1: "low", 2: "high"}},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PooledSite(Cluster):
    """A pool with the priorities of a ``slurm.conf``."""

    priority: Priority = field(default=SITE)


def on_site(priority: Priority, name: str = "slurm-multifactor") -> list[float]:
    cluster = PooledSite(Cluster.pooled(2).groups, priority)
    return simulate(BY_PARTITION, cluster, None, Rules(), scheduler(name)).start_s.tolist()


def test_weights_and_partitions_of_a_cluster():
    assert on_site(SITE) == [0, 20, 10, 30]
    assert on_site(SITE, "slurm-multifactor:partition=7") == [0, 20, 10, 30]
    assert on_site(SITE, "slurm-multifactor:age=7") == [0, 10, 20, 30], "given weights replace those of the cluster"
    low = tuple(replace(each, job_factor=5 - each.job_factor) for each in SITE.partitions)
    assert on_site(replace(SITE, partitions=low)) == [0, 10, 30, 20], "jobs without partition belong to the default one"


def test_a_higher_tier_goes_first_whatever_the_priority():
    tiers = tuple(replace(each, tier=2 if each.name == "low" else 1) for each in SITE.partitions)
    weights = PriorityWeights(partition=4_294_967_295)
    assert on_site(Priority(weights=weights, partitions=tiers)) == [0, 10, 30, 20]


def test_partitions_need_a_cluster_that_states_them():
    with pytest.raises(InputError, match="states no priority of its partitions"):
        starts("slurm-multifactor:partition=1", BY_PARTITION)


@pytest.mark.plain
def test_views_show_the_partitions_of_jobs():
    """Each view names its waiting jobs and their partitions anew; a driver starts them in the same order."""
    cluster = PooledSite(Cluster.pooled(2).groups, SITE)
    driver = ViewDriver(scheduler("slurm-multifactor").program(BY_PARTITION), None, cluster, Rules())
    session = Session(BY_PARTITION, cluster, None, Rules(), Program(name="batch system"))
    while (view := session.view()) is not None:
        session.apply(driver.decide(view))
    assert session.outcome().start_s.tolist() == [0, 20, 10, 30]


def test_conservative_backfilling_is_refused():
    with pytest.raises(InputError, match="use easy"):
        starts("slurm-multifactor:age=1+conservative", BY_PARTITION)


@dataclass
class Reference:
    """The same priorities from the history of all jobs, computed anew at every view, without a unit of usage."""

    weights: PriorityWeights
    user_of: dict[int, int]
    history: dict[int, list[float]] = field(default_factory=dict)
    users: set[int] = field(default_factory=set)
    last_s: float = 0.0
    waited: bool = False

    def decide(self, view: View) -> Decision:
        running = dict(zip(view.running.job_id.tolist(), range(len(view.running.job_id)), strict=True))
        for job, record in self.history.items():
            if job not in running and math.isinf(record[2]):
                record[2] = view.now_s if self.waited else max(min(view.now_s, record[3]), self.last_s)
        for job, k in running.items():
            if job not in self.history:
                self.history[job] = [float(view.running.processors[k]), float(view.running.start_s[k]), math.inf,
                                     float(view.running.expected_end_s[k])]  # fmt: skip
        queue = view.queue
        self.users |= {int(user) for user in queue.user}
        usage = {user: self.usage(user, view.now_s) for user in self.users}
        total = sum(usage.values())
        priority = []
        for k in range(len(queue.user)):
            part = usage[int(queue.user[k])] / total if total > 0 else 0.0
            size = queue.processors[k] / queue.total_processors
            priority.append(math.floor(
                self.weights.age * min(1.0, queue.wait_s[k] / self.weights.max_age_s)
                + self.weights.fair_share * 2.0 ** (-part * len(self.users))
                + self.weights.job_size * (1 - size if self.weights.favor_small else size) + 1e-6
            ))  # fmt: skip
        best = int(np.argmax(priority))
        self.last_s = view.now_s
        starts_now = queue.processors[best] <= queue.free_processors
        self.waited = len(queue.user) > int(starts_now)
        if starts_now:
            self.history[int(view.job_id[best])] = [
                float(queue.processors[best]), view.now_s, math.inf, view.now_s + float(queue.requested_time_s[best])
            ]  # fmt: skip
        return Start(best)

    def usage(self, user: int, now_s: float) -> float:
        found = 0.0
        for job, (processors, from_s, to_s, _) in self.history.items():
            if self.user_of[job] == user:
                for second in np.arange(from_s, min(to_s, now_s), 0.5):  # half seconds, each decayed at its middle
                    length = min(0.5, min(to_s, now_s) - second)
                    age_s = now_s - second - length / 2
                    half_life_s = self.weights.decay_half_life_s
                    found += processors * length * (2.0 ** (-age_s / half_life_s) if half_life_s else 1.0)
        return found


@st.composite
def loaded(draw: st.DrawFn) -> tuple[Workload, int]:
    """Jobs of up to four users whose requests are exact, so that ends are known whether or not jobs wait."""
    processors, count = draw(st.integers(2, 6)), draw(st.integers(2, 16))
    rows = draw(st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(1, processors), st.integers(-1, 3)),
        min_size=count, max_size=count,
    ))  # fmt: skip
    submit_s, run_s, wide, user = np.array(rows).T
    return jobs_of(submit_s=submit_s, run_time_s=run_s, processors=wide, user=user), processors


@settings(max_examples=60, deadline=None)
@given(given=loaded(), half_life=st.sampled_from([0, 1000, 100_000]), fairshare=st.sampled_from([10, 100_000]),
       age=st.sampled_from([0, 1000]), size=st.sampled_from([0, 77]), favor=st.integers(0, 1))  # fmt: skip
def test_against_a_second_implementation(given, half_life, fairshare, age, size, favor):
    jobs, processors = given
    name = (
        f"slurm-multifactor:fairshare={fairshare}:half_life={half_life}:age={age}:max_age=20:size={size}"
        f":favor_small={favor}"
    )
    weights = PriorityWeights(age=age, fair_share=fairshare, job_size=size, max_age_s=20, favor_small=bool(favor),
                              decay_half_life_s=half_life)  # fmt: skip
    user_of = dict(zip(jobs.job_id.tolist(), jobs.user.tolist(), strict=True))
    session = Session(jobs, Cluster.pooled(processors), None, Rules(), Program(name="reference"))
    reference = Reference(weights, user_of)
    while (view := session.view()) is not None:
        session.apply(reference.decide(view))
    assert starts(name, jobs, processors) == session.outcome().start_s.tolist()


def test_the_size_of_its_memory_depends_on_the_jobs_not_on_the_machine():
    jobs = jobs_of(submit_s=[0.0, 1.0], run_time_s=[10.0, 10.0], processors=[2**31 - 1, 1], user=[1, 2])
    assert starts("slurm-multifactor", jobs, 2**31 - 1) == [0.0, 10.0]
