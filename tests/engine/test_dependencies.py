"""Jobs that follow others: against an event loop in plain Python, by hand, and beside known submissions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import ESTIMATES, clusters, job_lists, site, supplies, workload
from driven import run_from_views
from hypothesis import given, settings
from plain import Machine
from test_node_machine import jobs_for, node_clusters
from test_plain_schedules import SCORES, check

from greenbatch.cluster import Capacity, Cluster
from greenbatch.energy import Site
from greenbatch.engine.dependencies import preceding_rows
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import run_program, simulate
from greenbatch.engine.views.interface import View, Wait
from greenbatch.engine.views.session import Session, run_policy
from greenbatch.errors import GreenbatchError
from greenbatch.policies.compiled.min_min import min_min_policy
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

OBEY = Rules(dependencies="obey")
Follows = dict[int, tuple[int, float | None]]
"""Row of a job -> row of the job before it, and the think time, if known. [s]"""


@dataclass
class Closed(Machine):
    """The plain batch system with users who wait for the end of a job, think, and submit the next one."""

    follows: Follows = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.jobs, self.later = list(self.jobs), dict(self.follows)
        self.coming = [j for j in self.coming if j not in self.follows]

    def goes_on(self) -> bool:
        return super().goes_on() or bool(self.later)

    def one_event(self, wake_s: float) -> None:
        before = list(self.running)
        super().one_event(wake_s)
        for ended in (j for j in before if j not in self.running):
            for j in [j for j, (first, _) in self.later.items() if first == ended]:
                _, think_s = self.later.pop(j)
                recorded_s = self.jobs[j].submit_s
                submit_s = max(recorded_s, self.now_s) if think_s is None else self.now_s + think_s
                self.jobs[j] = self.jobs[j]._replace(submit_s=submit_s)
                self.coming = sorted([*self.coming, j], key=lambda j: (self.jobs[j].submit_s, j))


@st.composite
def chains(draw: st.DrawFn, count: int, thinks: st.SearchStrategy[float | None]) -> Follows:
    """Some jobs follow one of those before them."""
    rows = [row for row in range(1, count) if draw(st.booleans())]
    return {row: (draw(st.integers(0, row - 1)), draw(thinks)) for row in rows}


def following(jobs: Workload, follows: Follows) -> Workload:
    """Jobs of which some follow others."""
    before, think_s = np.full(len(jobs), -1), np.full(len(jobs), np.nan)
    for row, (first, think) in follows.items():
        before[row], think_s[row] = jobs.job_id[first], np.nan if think is None else think
    return jobs.with_columns(preceding_job=before, think_time_s=think_s)


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@settings(max_examples=30, deadline=None)
@given(data=st.data(), policy=st.sampled_from(sorted(SCORES)))
def test_schedules_are_those_of_the_event_loop(backfill: str, policy: str, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES))))
    follows = data.draw(chains(len(jobs), st.sampled_from([0.0, 1.0, 7.0, None])))
    rules: dict[str, Any] = {
        "event_rule": data.draw(st.sampled_from(["per_event", "per_instant"])),
        "overrun": data.draw(st.sampled_from(["kill", "extend"])),
        "ties": data.draw(st.sampled_from(["arrival_first", "completion_first"])),
    }
    plain = Closed(
        jobs, cluster.processors, SCORES[policy], backfill, per_instant=rules["event_rule"] == "per_instant",
        kill=rules["overrun"] == "kill", completion_first=rules["ties"] == "completion_first", follows=follows,
    )  # fmt: skip
    outcome = simulate(
        following(workload(jobs), follows), cluster, None, replace(OBEY, **rules), scheduler(f"{policy}+{backfill}")
    )
    check(outcome, plain)
    assert outcome.workload.submit_s.tolist() == [job.submit_s for job in plain.jobs]


def check_submissions(outcome: Outcome, jobs: Workload, follows: Follows) -> None:
    """Every submission is the recorded one, or the think time after the end of the job before."""
    for row, submit_s in enumerate(outcome.workload.submit_s):
        first, think_s = follows.get(row, (None, None))
        assert submit_s == (jobs.submit_s[row] if first is None else outcome.end_s[first] + think_s)
    assert (outcome.start_s >= outcome.workload.submit_s).all()


UNEVEN = st.integers(1, 40).map(lambda k: k + k / 64 + 1 / 128)
"""Think times after which no two things happen at one instant: else a known submission comes before an end."""


@pytest.mark.parametrize("name", ["fcfs+easy", "wfp3+easy", "fcfs+green", "foresee", "sjf+first-fit"])
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_known_submissions_give_the_same_schedule(name: str, data: st.DataObject) -> None:
    """Once it is known when jobs are submitted, the same schedule follows without dependencies."""
    cluster, power = data.draw(clusters()), site(data.draw(supplies()))
    jobs = workload(data.draw(job_lists(cluster.processors, ties=False)))
    follows = data.draw(chains(len(jobs), UNEVEN))
    outcome = simulate(following(jobs, follows), cluster, power, OBEY, scheduler(name))
    check_submissions(outcome, jobs, follows)
    open_loop = simulate(outcome.workload, cluster, power, Rules(), scheduler(name))
    assert open_loop.start_s.tolist() == outcome.start_s.tolist()


@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_on_nodes(data: st.DataObject) -> None:
    cluster = data.draw(node_clusters(partitions=True))
    jobs = data.draw(jobs_for(cluster))
    follows = data.draw(chains(len(jobs), UNEVEN))
    outcome = simulate(following(jobs, follows), cluster, None, OBEY, scheduler("fcfs+easy"))
    check_submissions(outcome, jobs, follows)
    assert simulate(outcome.workload, cluster, None, Rules(), scheduler("fcfs+easy")).start_s.tolist() == (
        outcome.start_s.tolist()
    )


@pytest.mark.parametrize("commitment", ["sticky", "reconsider"])
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_from_views(commitment: Any, data: st.DataObject) -> None:
    cluster, rules = data.draw(clusters()), replace(OBEY, commitment=commitment)
    jobs = workload(data.draw(job_lists(cluster.processors, ties=False)))
    given_jobs = following(jobs, data.draw(chains(len(jobs), UNEVEN)))
    inside = simulate(given_jobs, cluster, None, rules, scheduler("sjf+easy"))
    driven = run_from_views(scheduler("sjf+easy"), given_jobs, cluster, None, rules)
    assert driven.start_s.tolist() == inside.start_s.tolist()
    assert driven.workload.submit_s.tolist() == inside.workload.submit_s.tolist()


def hand(**columns: list[float]) -> Workload:
    return Workload.from_columns("hand", {name: np.array(values) for name, values in columns.items()})


POOL = Cluster.pooled(4)
CHAIN = hand(
    job_id=[1, 2, 3, 4], submit_s=[0, 5, 1, 200], run_time_s=[100, 10, 30, 5], processors=[4, 4, 4, 4],
    preceding_job=[-1, 1, -1, 2], think_time_s=[np.nan, 50, np.nan, np.nan],
)  # fmt: skip


def test_by_hand() -> None:
    """Job 2 comes at 100 + 50, job 4 as recorded, at 200, because job 2 ends before; job 3 runs from 100 to 130."""
    outcome = simulate(CHAIN, POOL, None, OBEY, scheduler("fcfs+easy"))
    assert outcome.workload.submit_s.tolist() == [0, 150, 1, 200]
    assert outcome.start_s.tolist() == [0, 150, 100, 200]
    slow = CHAIN.with_columns(run_time_s=np.array([180.0, 10, 30, 5]), requested_time_s=np.array([180.0, 10, 30, 5]))
    outcome = simulate(slow, POOL, None, OBEY, scheduler("fcfs+easy"))
    assert outcome.workload.submit_s.tolist() == [0, 230, 1, 240]  # job 4 has no think time: when job 2 ends, at 240
    assert outcome.start_s.tolist() == [0, 230, 180, 240]
    ignored = simulate(CHAIN, POOL, None, Rules(), scheduler("fcfs+easy"))
    assert ignored.workload is CHAIN
    assert ignored.start_s.tolist() == [0, 130, 100, 200]


def test_only_earlier_jobs_of_the_window_are_followed() -> None:
    jobs = CHAIN.with_columns(preceding_job=np.array([1, 4, 9, 3]))  # itself, a later job, one that is not there
    assert preceding_rows(jobs).tolist() == [-1, -1, -1, 2]
    assert preceding_rows(CHAIN.take(slice(1, None))).tolist() == [-1, -1, 0]
    cut = simulate(CHAIN.take(slice(1, None)), POOL, None, OBEY, scheduler("fcfs+easy"))
    assert cut.workload.submit_s.tolist() == [5, 1, 200]


def test_scores_use_the_simulated_submission() -> None:
    """Both wait at 21: job 3 was submitted at 12, job 2 only at 20, though it was recorded before."""
    jobs = hand(
        submit_s=[0, 1, 12, 0], run_time_s=[10, 5, 5, 21], processors=[1, 4, 4, 3], preceding_job=[-1, 1, -1, -1],
        think_time_s=[np.nan, 10, np.nan, np.nan],
    )  # fmt: skip
    for name in ("fcfs+none", "fcfs+easy", "fcfs+first-fit", "fcfs+conservative"):
        outcome = simulate(jobs, POOL, None, OBEY, scheduler(name))
        assert outcome.start_s.tolist() == [0, 26, 21, 0], name


def test_a_pool_with_gpus() -> None:
    jobs = CHAIN.with_columns(gpus=np.array([2, 2, 2, 2]))
    outcome = simulate(jobs, Cluster.of_units(4, 2), None, OBEY, scheduler("fcfs+easy"))
    assert outcome.start_s.tolist() == [0, 150, 100, 200]


def test_the_recorded_waits_after_simulated_submissions() -> None:
    jobs = CHAIN.with_columns(recorded_wait_s=np.array([10.0, 0, 120, 0]))
    outcome = simulate(jobs, POOL, None, OBEY, scheduler("as-recorded"))
    assert outcome.workload.submit_s.tolist() == [0, 160, 1, 200]
    assert outcome.start_s.tolist() == [10, 160, 121, 200]


@pytest.mark.usefixtures("impatient")
def test_a_policy_that_waits_forever_is_told_although_jobs_follow() -> None:
    class Never:
        def decide(self, view: View) -> Wait:
            return Wait(view.now_s + 86_400.0)

    session = Session(CHAIN, POOL, None, OBEY, Program(name="never", settings={"tick_s": 86_400.0}))
    with pytest.raises(GreenbatchError, match="waiting forever"):
        run_policy(session, Never())


def test_a_job_is_due_by_its_simulated_submission() -> None:
    """Due at submission + run time / QoS: of two jobs that wait, at 0.5 the follower is due at 150 + 20, at 0.1 at 250.

    The job that is due last is suspended when two processors fail, at 155.
    """
    levels = Capacity(time_s=np.array([0.0, 155.0, 165.0]), processors=np.array([4, 2, 4]), gpus=np.zeros(3, np.int64))
    pools = Pools(suspends="power", victim="latest-due")
    for qos, suspended in ((0.5, [0, 0, 1]), (0.1, [0, 1, 0])):
        jobs = hand(
            job_id=[1, 2, 3], submit_s=[0, 5, 120], run_time_s=[100, 10, 50], processors=[2, 2, 2], gpus=[0, 0, 0],
            preceding_job=[-1, 1, -1], think_time_s=[np.nan, 50, np.nan], qos=[1.0, qos, 0.5],
        )  # fmt: skip
        outcome = simulate(
            jobs, Cluster.of_units(4, powered=levels), None, replace(OBEY, pools=pools), scheduler("fcfs+easy")
        )
        assert outcome.start_s.tolist() == [0, 150, 120]
        assert outcome.stays is not None
        assert outcome.stays.suspensions.tolist() == suspended


def test_a_rejected_job_has_ended_for_those_that_follow_it() -> None:
    """Job 2 asks for too much at 150; job 4, without a think time, comes as recorded, or then if that is later."""
    jobs = CHAIN.with_columns(processors=np.array([2, 4, 2, 2]))
    rules = replace(OBEY, pools=Pools(largest_request=3))
    for recorded_s, submit_s in ((200.0, 200.0), (6.0, 150.0)):
        given_jobs = jobs.with_columns(submit_s=np.array([0.0, 5, 1, recorded_s]))
        outcome = simulate(given_jobs, Cluster.of_units(4, powered=ON), None, rules, scheduler("fcfs+easy"))
        assert outcome.workload.submit_s.tolist() == [0, 150, 1, submit_s]
        np.testing.assert_array_equal(outcome.start_s, [0, np.nan, 1, submit_s])


def test_what_follows_a_job_that_has_not_ended_by_the_end_of_the_run_never_comes() -> None:
    rules = replace(OBEY, pools=Pools(end_s=90.0))
    outcome = simulate(CHAIN, Cluster.of_units(4, powered=ON), None, rules, scheduler("fcfs+easy"))
    assert outcome.workload.submit_s.tolist() == [0, 90, 1, 200]
    assert outcome.waits_until_s.tolist() == [0, 90, 90, 200]
    np.testing.assert_array_equal(outcome.start_s, [0, np.nan, np.nan, np.nan])


ON = Capacity.constant(4, 0)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), name=st.sampled_from(["fcfs+easy", "sjf+first-fit", "packer", "qos+none"]))
def test_with_pools_known_submissions_give_the_same_schedule(name: str, data: st.DataObject) -> None:
    """Ready jobs, when jobs are due, and whom a lack of power suspends, all by simulated submissions."""
    jobs = workload(data.draw(job_lists(4, ties=False)))
    jobs = jobs.with_columns(qos=np.array([data.draw(st.sampled_from([0.2, 0.5, 1.0])) for _ in range(len(jobs))]))
    follows = data.draw(chains(len(jobs), UNEVEN))
    levels = Capacity(time_s=np.array([0.0, 30.3, 50.7]), processors=np.array([4, 2, 4]), gpus=np.zeros(3, np.int64))
    pools = Pools(ready=data.draw(st.integers(0, 3)), admission="qos", suspends="power", victim="latest-due")
    cluster, rules = Cluster.of_units(4, powered=levels), replace(OBEY, pools=pools)
    outcome = simulate(following(jobs, follows), cluster, None, rules, scheduler(name))
    check_submissions(outcome, jobs, follows)
    open_loop = simulate(outcome.workload, cluster, None, Rules(pools=pools), scheduler(name))
    assert open_loop.start_s.tolist() == outcome.start_s.tolist()
    assert open_loop.end_s.tolist() == outcome.end_s.tolist()


@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_a_planner_of_the_window_learns_of_submissions(data: st.DataObject) -> None:
    """It plans as if it had known them; half-hours take that the jobs last for hours."""
    cluster, name = data.draw(clusters()), "gas-marl-plus@lublin-256"
    jobs = workload(data.draw(job_lists(cluster.processors, ties=False)))
    jobs = jobs.with_columns(
        **{each: getattr(jobs, each) * 300 for each in ("submit_s", "run_time_s", "requested_time_s")}
    )
    power = Site(name="sun", step_s=3600.0, sources_w={"all": np.array([0.0, 90.0, 200.0, 40.0])}, repeat=True)
    follows = data.draw(chains(len(jobs), UNEVEN))
    outcome = simulate(following(jobs, follows), cluster, power, OBEY, scheduler(name))
    check_submissions(outcome, jobs, follows)
    open_loop = simulate(outcome.workload, cluster, power, Rules(), scheduler(name))
    assert open_loop.start_s.tolist() == outcome.start_s.tolist()


def test_a_planner_is_told_of_the_jobs_that_have_been_submitted() -> None:
    told: list[list[float]] = []

    def learn(decider: Any, jobs: Workload, _: Cluster, rules: Rules) -> Any:
        assert rules.dependencies == "ignore"
        told.append(jobs.submit_s.tolist())
        return decider

    asks = min_min_policy(1.0)
    program = Program(name="mine", row="rule", decider=replace(asks, learn=learn))
    outcome = run_program(CHAIN, POOL, None, OBEY, program)
    assert outcome.start_s.tolist() == [0, 150, 100, 200]
    assert told == [[0], [0, 1], [0, 150, 1], [0, 150, 1, 200]]
