"""One engine, several ways in: compiled rules, plain rules, and Python policies behind the seam."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import ESTIMATES, clusters, job_lists, site, supplies, workload
from digests import CLUSTER, SITE, delayed, digest, digests, random_jobs
from hypothesis import given, settings
from numpy.typing import NDArray
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.decide import decide
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.program import CompiledPolicy, Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import run_program, simulate
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, wait_until
from greenbatch.engine.views.interface import Decision, Policy, Queue, Start, View, Wait
from greenbatch.engine.views.session import Session
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.policies import policy, rule
from greenbatch.policies.compiled.lptpn import lptpn_policy
from greenbatch.schedulers import entries, scheduler
from greenbatch.workload import Workload

BACKFILLS = ["none", "easy", "easy-schedgym", "easy-green-order", "green:sigma=200"]
RULES = ["fcfs", "sjf", "smallest", "largest", "wfp3", "unicep", "f1", "f2", "f3", "f4"]


@dataclass
class Decider:
    """A scheduler whose policy answers views, under a program of its own."""

    plan: Program
    decider: Policy

    def program(self, _: Workload) -> Program:
        return self.plan

    def policy(self) -> Policy:
        return self.decider


class LowestScore:
    """Start the waiting job with the lowest score, as a priority rule does."""

    def __init__(self, score: Any) -> None:
        self.score = score

    def decide(self, view: View) -> Decision:
        with np.errstate(divide="ignore"):
            return Start(int(np.argmin(self.score(view.queue))))


def same(a: Outcome, b: Outcome) -> None:
    """The same bytes."""
    np.testing.assert_array_equal(a.start_s, b.start_s)
    assert digest(a) == digest(b)


@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("commitment", ["reconsider", "sticky"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_built_in_rules_decide_the_same_behind_the_seam(commitment: Any, backfill: str, data: st.DataObject) -> None:
    """Sticky: distinct submissions, for a policy has no scores that could order twins."""
    cluster, name = data.draw(clusters()), data.draw(st.sampled_from(RULES))
    estimates = data.draw(st.sampled_from(ESTIMATES))
    jobs = workload(data.draw(job_lists(cluster.processors, estimates, ties=commitment != "sticky")))
    power = site(data.draw(supplies()))
    event_rule: Any = data.draw(st.sampled_from(["per_event", "per_instant"]))
    rules = Rules(commitment=commitment, event_rule=event_rule, overrun=data.draw(st.sampled_from(["kill", "extend"])))
    built_in = scheduler(f"{name}+{backfill}")
    program = built_in.program(jobs)
    behind = Program(name="seam", backfill=program.backfill, settings=program.settings)
    same(
        simulate(jobs, cluster, power, rules, Decider(behind, LowestScore(program.score))),
        simulate(jobs, cluster, power, rules, built_in),
    )


@pytest.mark.compiled
def test_rules_that_cannot_be_compiled_run_as_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenbatch.policies.registry.ENTRIES", entries())

    @rule("expansion-compiled")
    def compiled_twin(queue: Queue) -> NDArray[np.float64]:
        return -(queue.wait_s + queue.requested_time_s) / queue.requested_time_s

    @rule("expansion-plain")
    def plain_twin(queue: Queue) -> Any:
        table = [{"wait": w, "asked": r} for w, r in zip(queue.wait_s, queue.requested_time_s, strict=True)]
        return [-(row["wait"] + row["asked"]) / row["asked"] for row in table]

    for backfill in [*BACKFILLS, "conservative"]:
        for number in range(4):
            jobs = workload(random_jobs(number))
            fast, slow = scheduler(f"expansion-compiled+{backfill}"), scheduler(f"expansion-plain+{backfill}")
            assert fast.program(jobs).compiled is not None
            assert slow.program(jobs).compiled is None
            rules = Rules(overrun="extend" if number % 2 else "kill")
            same(simulate(jobs, CLUSTER, SITE, rules, slow), simulate(jobs, CLUSTER, SITE, rules, fast))


class LptpnInPython:
    """LPTPN as the paper words it, from nothing but what a view tells."""

    def __init__(self, threshold_j: float) -> None:
        self.threshold_j = threshold_j

    def decide(self, view: View) -> Decision:
        queue = view.queue
        for row in np.argsort(-queue.power_w * queue.requested_time_s, kind="stable").tolist():
            fits = queue.processors[row] <= queue.free_processors
            if fits and self.extra_brown_j(view, queue.power_w[row], queue.requested_time_s[row]) < self.threshold_j:
                return Start(row)
        if len(view.running.job_id) == 0:
            return Start(int(np.argmin(-queue.power_w * queue.requested_time_s)))
        return Wait()

    def extra_brown_j(self, view: View, power_w: float, seconds: float) -> float:
        """Second by second; beyond the forecast it starts over."""
        supply, running = view.supply, view.running
        times_s = view.now_s + np.arange(seconds)
        slot = np.floor((times_s - supply.start_s[0]) / (supply.end_s[0] - supply.start_s[0])).astype(int)
        green_w = supply.renewable_w[slot % len(supply.renewable_w)]
        gone_w = ((running.expected_end_s[None, :] <= times_s[:, None]) * running.power_w).sum(axis=1)
        load_w = view.load_w - gone_w
        brown_w = np.maximum(0.0, load_w + power_w - green_w) - np.maximum(0.0, load_w - green_w)
        return float(brown_w.sum())


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_lptpn_written_as_a_policy_equals_lptpn(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES)))))
    power, threshold_j = site(data.draw(supplies())), data.draw(st.integers(0, 400))
    rules = Rules(overrun=data.draw(st.sampled_from(["kill", "extend"])))
    behind = Program(name="seam", decider=lptpn_policy(0.0))  # woken at changes of supply
    ours = simulate(jobs, cluster, power, rules, Decider(behind, LptpnInPython(threshold_j)))
    same(ours, simulate(jobs, cluster, power, rules, scheduler(f"lptpn:sigma={threshold_j}")))


def test_a_view_shows_what_a_batch_system_knows_and_no_more() -> None:
    """Two runs that differ in actual run times alone show the same views until the first early end."""
    jobs = [Job(0, 9, 20, 2, 10.0), Job(1, 30, 30, 1, 20.0), Job(2, 5, 10, 4, 30.0), Job(3, 2, 8, 1, 5.0)]
    cluster = Cluster.pooled(4, processors_per_machine=4, idle_power_per_machine_w=7.0)
    session = Session(workload(jobs), cluster, SITE, Rules(), Program(name="x", backfill="none"))
    for _ in range(3):
        view = session.view()
        assert view is not None
        session.apply(Start(0))
    view = session.view()
    assert view is not None
    assert view.now_s == 3.0
    assert view.job_id.tolist() == [3, 4]
    assert view.queue.submit_s.tolist() == [2.0, 3.0]
    assert view.queue.wait_s.tolist() == [1.0, 0.0]
    assert view.queue.requested_time_s.tolist() == [10.0, 8.0]
    assert view.queue.processors.tolist() == [4.0, 1.0]
    assert view.queue.power_w.tolist() == [30.0, 5.0]
    assert (view.queue.free_processors, view.queue.total_processors) == (1.0, 4.0)
    assert view.running.job_id.tolist() == [1, 2]
    assert view.running.start_s.tolist() == [0.0, 1.0]
    assert view.running.expected_end_s.tolist() == [20.0, 31.0]
    assert view.running.processors.tolist() == [2, 1]
    assert view.running.power_w.tolist() == [10.0, 20.0]
    assert [column.tolist() for column in view.nodes] == [[4], [1], [7.0], [], [], [], [], [], []]
    assert view.load_w == 37.0
    assert view.supply.start_s.tolist() == [-4.0, 7.0, 18.0]
    assert view.supply.end_s.tolist() == [7.0, 18.0, 29.0]
    assert view.supply.renewable_w.tolist() == [0.0, 40.0, 150.0]
    assert (view.supply.origin_s, view.supply.step_s) == (-4.0, 11.0)
    assert view.last_submission_s == 3.0
    assert all(np.isnan(column).tolist() == [True, True] for column in view.attributes)
    view.queue.requested_time_s[:] = 0.0  # a policy cannot reach into the engine
    view.running.expected_end_s[:] = 0.0
    again = session.view()
    assert again is not None
    assert again.queue.requested_time_s.tolist() == [10.0, 8.0]
    assert again.running.expected_end_s.tolist() == [20.0, 31.0]
    dark = Session(workload(jobs), cluster, None, Rules(), Program(name="x")).view()
    assert dark is not None
    assert [len(column) for column in dark.supply[:3]] == [0, 0, 0]


def session_of(backfill: str = "none", commitment: Any = "sticky") -> Session:
    jobs = workload([Job(0, 10, 10, 1), Job(1, 5, 5, 1), Job(2, 50, 50, 2), Job(3, 4, 4, 1)])
    return Session(jobs, Cluster.pooled(2), None, Rules(commitment=commitment), Program(name="me", backfill=backfill))


def starts_after(decision: Start, **how: Any) -> list[float]:
    """Starts when job 2 is decided on thus, and all others are started at once in order of submission."""
    session = session_of(**how)
    for number in range(100):
        if session.view() is None:
            return session.outcome().start_s.tolist()
        session.apply(decision if number == 1 else Start(0))
    raise AssertionError


def test_delays_hold_a_job_and_all_behind_it() -> None:
    assert starts_after(Start(0)) == [0, 1, 10, 60]
    assert starts_after(Start.after_seconds(0, 3)) == [0, 4, 10, 60]
    assert starts_after(Start.after_seconds(0, 3), backfill="easy") == [0, 4, 10, 60]
    assert starts_after(Start.after_releases(0, 1)) == [0, 10, 15, 65]
    assert starts_after(Start.after_releases(0, 5)) == [0, 10, 15, 65]  # more than run: until all have ended
    assert starts_after(Start.after_releases(0, 0)) == [0, 1, 10, 60]
    assert starts_after(Start.after_seconds(0, 0)) == [0, 1, 10, 60]


def test_a_delay_by_releases_lasts_an_hour_at_most() -> None:
    jobs = workload([Job(0, 9000, 9000, 1), Job(1, 5, 5, 1)])
    session = Session(jobs, Cluster.pooled(2), None, Rules(commitment="sticky"), Program(name="me"))
    for decision in (Start(0), Start.after_releases(0, 1)):
        assert session.view() is not None
        session.apply(decision)
    assert session.view() is None
    assert session.outcome().start_s.tolist() == [0, 3601]


def test_delays_under_reconsider_are_forgotten_at_the_next_event() -> None:
    session = session_of(commitment="reconsider")
    seen = []
    while (view := session.view()) is not None:
        seen.append((view.now_s, view.job_id.tolist()))
        delayed = view.job_id[0] == 2 and view.now_s < 4
        session.apply(Start.after_seconds(0, 2.5) if delayed else Start(0))
    assert seen[:5] == [(0, [1]), (1, [2]), (2, [2, 3]), (3, [2, 3, 4]), (5.5, [2, 3, 4])]
    assert session.outcome().start_s[1] == 5.5


def test_mistakes_of_a_policy_are_named_in_one_line() -> None:
    for decision, message in (
        (Start(1), "me: chose row 1 of a queue of 1"),
        (Start(-1), "me: chose row -1 of a queue of 1"),
        (Start("0"), "me: chose row '0'"),
        (Start(0.5), "me: chose row 0.5"),
        (Start(0, 99), "me: chose a delay of kind 99"),
        (Start.after_seconds(0, 1e300), "me: chose a delay of 1e"),
        (Start.after_seconds(0, -1.0), "me: chose a delay of -1.0"),
        (Start.after_seconds(0, np.inf), "me: chose a delay of inf"),
        (Start.after_seconds(0, np.nan), "me: chose a delay of nan"),
        (Start.after_releases(0, -1), "me: chose a delay of -1"),
        (None, "me: returned None"),
    ):
        session = session_of()
        session.view()
        with pytest.raises(InputError, match=message):
            session.apply(decision)  # type: ignore[arg-type]  (None is what a forgotten return gives)
    with pytest.raises(InputError, match="conservative"):
        session_of("conservative")
    unfinished = session_of()
    unfinished.view()
    unfinished.apply(Start(0))
    with pytest.raises(GreenbatchError, match="me left 3 jobs waiting forever"):
        unfinished.outcome()


def test_a_policy_that_always_waits_is_an_error() -> None:
    class Lazy:
        def decide(self, view: View) -> Decision:
            return Wait()

    jobs = workload(random_jobs(1))
    with pytest.raises(GreenbatchError, match="lazy left 40 jobs waiting forever"):
        simulate(jobs, CLUSTER, SITE, Rules(), Decider(Program(name="lazy"), Lazy()))


@pytest.mark.parametrize("answer", [Wait(), Start.after_seconds(0, 60.0)])
@pytest.mark.usefixtures("impatient")
def test_a_policy_that_waits_forever_is_an_error_even_if_supply_changes_wake_it(answer: Decision) -> None:
    class Lazy:
        def decide(self, view: View) -> Decision:
            return answer

    jobs = workload(random_jobs(1))
    with pytest.raises(GreenbatchError, match=r"lazy left .* jobs waiting forever: .* decisions changed nothing"):
        simulate(jobs, CLUSTER, SITE, Rules(), Decider(Program(name="lazy", backfill="green"), Lazy()))


class Never(NamedTuple):
    """A compiled policy that only waits."""

    until_s: float


@decide.register(Never)
def wait_on(decider: Never, s: State) -> None:
    apply(s, wait_until(s.clock.now_s + decider.until_s))


@pytest.mark.parametrize(("wakes", "until_s"), [(True, np.inf), (False, 0.0)])
def test_a_compiled_policy_that_waits_forever_is_an_error(wakes: bool, until_s: float, impatient: int) -> None:
    """Woken at each change of supply for a year, which are more than the patience, or at once."""
    planner = CompiledPolicy(name="never", begin=lambda *given: Never(until_s), wakes_at_supply_changes=wakes)
    power = Site(name="half hours", step_s=1800.0, sources_w={"all": np.array([0.0, 100.0])}, repeat=True)
    message = rf"never left \d+ jobs waiting forever: {impatient} decisions changed nothing"
    with pytest.raises(GreenbatchError, match=message):
        run_program(workload(random_jobs(1)), CLUSTER, power, Rules(), Program(name="never", decider=planner))


def test_a_policy_object_serves_one_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenbatch.policies.registry.ENTRIES", entries())
    made = []

    @policy("counts")
    class Counts:
        def __init__(self) -> None:
            made.append(self)
            self.asked = 0

        def decide(self, view: View) -> Decision:
            self.asked += 1
            return Start(0)

    jobs = workload(random_jobs(1))
    decider = scheduler("counts+easy")
    same(simulate(jobs, CLUSTER, SITE, Rules(), decider), simulate(jobs, CLUSTER, SITE, Rules(), decider))
    assert len(made) == 2
    assert made[0].asked == made[1].asked > 0


def in_a_process(**environment: str) -> dict[str, str]:
    """The digests of a fresh process."""
    script = Path(__file__).with_name("digests.py")
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.compiled
def test_results_are_the_same_bytes_in_every_run_process_and_thread() -> None:
    here = digests()
    assert digests() == here
    assert in_a_process(NUMBA_NUM_THREADS="1") == here
    with ThreadPoolExecutor(2) as pool:
        assert all(there.result() == here for there in [pool.submit(digests) for _ in range(2)])


def test_a_driven_run_with_delays_is_the_same_twice() -> None:
    assert digest(delayed("green", "sticky")) == digest(delayed("green", "sticky"))
