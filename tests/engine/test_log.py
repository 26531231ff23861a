"""One log: energy during the run is energy by replay, and neither a full log nor a fork changes a simulation."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import ESTIMATES, clusters, job_lists, site, supplies, workload
from digests import BACKFILLS, CLUSTER, SITE, digest, digests, random_decision, random_jobs
from hypothesis import given, settings
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine import simulate as engine
from greenbatch.engine import state as states
from greenbatch.engine.accounts import books
from greenbatch.engine.entry_points import step, with_decider
from greenbatch.engine.failures import check
from greenbatch.engine.log import drain, new_readings
from greenbatch.engine.observe.stacked import fork, leaves
from greenbatch.engine.outcome import Outcome, outcome_of
from greenbatch.engine.prepare import prepare
from greenbatch.engine.program import Program, decider_of
from greenbatch.engine.records import Ledger
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.state import State
from greenbatch.engine.views import session as sessions
from greenbatch.engine.views.interface import Queue
from greenbatch.engine.views.session import Session
from greenbatch.errors import SupplyExhausted
from greenbatch.schedulers import scheduler

DECIDERS = (
    "fcfs+easy",
    "wfp3+green:sigma=300",
    "f2+conservative",
    "lptpn:sigma=300",
    "lptpn-published:sigma=300",
    "cheapest-start:horizon=60:tick=7:short=6:hold=900",
    "gas-marl-plus@default",
)
"""One scheduler for every kind of decider."""


class Run(NamedTuple):
    """A simulation, one decision at a time, with the engine's own decider."""

    state: State
    decider: Any
    outcome: Any
    """Function that returns the outcome of a state that has come to its end."""


def begin(name: str, jobs: Any, cluster: Cluster, power: Site | None, rules: Rules, accrue: int = 0) -> Run:
    program = scheduler(name).program(jobs)
    state = prepare(jobs, cluster, power, rules, program)
    state.rules.accrue = accrue

    def outcome(ended: State) -> Outcome:
        check(ended, name, power)
        readings = new_readings(len(jobs), cluster.first_power_w)
        drain(ended, readings)
        return outcome_of(ended, readings, name, jobs, cluster, power, rules)

    return Run(state, decider_of(program, jobs, cluster, rules), outcome)


def one_decision(run: Run) -> bool:
    if not step("advance", run.state)(run.state):
        return False
    with_decider("decide", run.state, run.decider)(run.state, run.decider)
    return True


# ---------------------------------------------------------------- energy during the run, and afterwards


@pytest.mark.parametrize("name", DECIDERS)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_energy_added_up_during_the_run_is_energy_by_replay(name: str, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    unit_s = data.draw(st.sampled_from([1.0, 0.1, 1 / 3]))
    jobs = workload(data.draw(job_lists(cluster.processors, data.draw(st.sampled_from(ESTIMATES)), unit_s=unit_s)))
    supply, watt = data.draw(supplies()), data.draw(st.sampled_from([1.0, 1e-3, 1.1]))
    supply = supply._replace(
        renewable_w=[power * watt for power in supply.renewable_w], origin_s=supply.origin_s * 0.9,
        step_s=supply.step_s * data.draw(st.sampled_from([1.0, 0.3, 1 / 7])),
    )  # fmt: skip
    commitment: Any = data.draw(st.sampled_from(["sticky", "reconsider"]))
    power = data.draw(st.sampled_from([site(supply), None])) if name == "f2+conservative" else site(supply)
    run = begin(name, jobs, cluster, power, Rules(commitment=commitment), accrue=1)
    with_decider("run", run.state, run.decider)(run.state, run.decider)
    outcome = run.outcome(run.state)
    after, scale = books(outcome), books(outcome).load_j + books(outcome).renewable_j
    for field in Ledger.__annotations__.keys() - {"peak_w"}:  # no energy
        assert getattr(run.state.ledger, field) == pytest.approx(getattr(after, field), rel=1e-9, abs=1e-9 * scale)
    assert digest(outcome) == digest(simulate(jobs, cluster, power, Rules(commitment=commitment), scheduler(name)))


def test_energy_during_the_run_by_hand() -> None:
    """60 W from 3 to 13 s and 100 W to 18 s, idle 20 W; sun 0, 90, 30 W in slots of 10 s."""
    jobs = workload([Job(3, 10, 10, 2, 40.0), Job(3, 5, 5, 2, 80.0)])
    sun = Site(name="sun", step_s=10.0, sources_w={"pv": np.array([0.0, 90.0, 30.0])}, repeat=True)
    cluster = Cluster.pooled(2, idle_power_per_machine_w=20.0)
    run = begin("fcfs+none", jobs, cluster, sun, Rules(), accrue=1)
    while one_decision(run):
        pass
    found = run.state.ledger
    energies = [found.load_j, found.renewable_j, found.renewable_used_j, found.curtailed_j, found.grid_j]
    assert energies == [60 * 10 + 100 * 5, 90 * 8, 60 * 3 + 90 * 5, 30 * 3, 60 * 7 + 10 * 5]
    assert found.cost == 0.0


def test_energy_during_the_run_needs_the_supply() -> None:
    """Rules look at no forecast, so without `accrue` the same run ends."""
    jobs, day = workload([Job(0, 40, 40, 1, 40.0)]), Site(name="day", step_s=10.0, sources_w={"all": np.ones(3)})
    for accrue in (0, 1):
        run = begin("fcfs+none", jobs, Cluster.pooled(2), day, Rules(), accrue=accrue)
        while one_decision(run):
            pass
        if accrue == 0:
            assert run.outcome(run.state).end_s.tolist() == [40.0]
            continue
        with pytest.raises(SupplyExhausted, match=r"'day' (covers|ends)"):
            run.outcome(run.state)


# ---------------------------------------------------------------- a log that is full


@pytest.fixture
def count_drains(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of the log whenever it is full."""
    rows: list[int] = []
    for module in (engine, sessions):
        drained = module.drained

        def counted(state: State, into: Any, drained: Any = drained) -> State:
            rows.append(int(state.clock.logged))
            return drained(state, into)  # type: ignore[no-any-return]

        monkeypatch.setattr(module, "drained", counted)
    return rows


@pytest.fixture(scope="module")
def wanted() -> dict[str, str]:
    """Of any decider, backfilling and rule, and of a session with delays."""
    return digests(every=4)


def test_tables_that_go_back_to_their_beginning_now_and_then_give_the_same_bytes(
    wanted: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenbatch.engine.running._REWIND", 5)
    assert digests(every=4) == wanted


def test_a_full_log_changes_nothing(
    wanted: dict[str, str], count_drains: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not count_drains
    monkeypatch.setattr(states, "LOG_ROWS", 1)
    assert digests(every=4) == wanted
    assert len(count_drains) > len(wanted)
    assert max(count_drains) > 5


@pytest.mark.compiled
@pytest.mark.parametrize("backfill", [*BACKFILLS[:-1], "green:sigma=300"])
def test_a_full_log_changes_nothing_of_a_rule_in_python(
    backfill: str, count_drains: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def expansion(queue: Queue) -> Any:
        return [-wait / asked for wait, asked in zip(queue.wait_s, queue.requested_time_s, strict=True)]

    def run(number: int) -> str:
        return digest(
            simulate(workload(random_jobs(number)), CLUSTER, SITE, Rules(), scheduler(expansion, backfill=backfill))
        )

    wanted = [run(number) for number in range(4)]
    assert not count_drains
    monkeypatch.setattr(states, "LOG_ROWS", 30)
    assert [run(number) for number in range(4)] == wanted
    assert len(count_drains) >= 4


@pytest.mark.compiled
def test_a_full_log_changes_nothing_of_a_shipped_model(
    count_drains: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job._replace(submit_s=job.submit_s * 600, run_s=job.run_s * 600, requested_s=job.requested_s * 600)
            for job in random_jobs(3)]  # fmt: skip
    how, hourly = scheduler("gas-marl-plus@default"), Site(
        name="s", step_s=3600.0, sources_w={"all": np.array([0.0, 0.0, 300.0, 100.0])}, repeat=True
    )  # fmt: skip
    wanted = simulate(workload(jobs), CLUSTER, hourly, Rules(), how)
    monkeypatch.setattr(states, "LOG_ROWS", 30)
    assert digest(simulate(workload(jobs), CLUSTER, hourly, Rules(), how)) == digest(wanted)
    assert len(count_drains) > 2


# ---------------------------------------------------------------- forks


def play(session: Session, random: np.random.Generator, decisions: int = 10**9) -> None:
    """Some random decisions, or all."""
    for _ in range(decisions):
        if (view := session.view()) is None:
            return
        session.apply(random_decision(view, random))


@pytest.mark.parametrize(
    ("rows", "backfill", "commitment"),
    [(states.LOG_ROWS, "none", "sticky"), (30, "easy", "reconsider"), (30, "green", "sticky"),
     (states.LOG_ROWS, "green", "reconsider")],
)  # fmt: skip
def test_a_session_and_its_fork_go_on_independently(
    rows: int, backfill: str, commitment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both end as runs that were never forked, although they take turns and decide differently."""
    monkeypatch.setattr(states, "LOG_ROWS", rows)
    program = Program(name="x", backfill=backfill)

    def fresh(number: int) -> Session:
        return Session(workload(random_jobs(number)), CLUSTER, SITE, Rules(commitment=commitment), program)

    ends = set()
    for number in range(3):
        first = fresh(number)
        play(first, np.random.default_rng(number), 7 * number)
        second = first.fork()
        for turn in range(4):
            play(first, np.random.default_rng([1, turn]), 5)
            play(second, np.random.default_rng([2, turn]), 5)
        play(second, np.random.default_rng(20))
        play(first, np.random.default_rng(10))
        for branch, one in ((1, first), (2, second)):
            alone = fresh(number)
            play(alone, np.random.default_rng(number), 7 * number)
            for turn in range(4):
                play(alone, np.random.default_rng([branch, turn]), 5)
            play(alone, np.random.default_rng(10 * branch))
            assert digest(one.outcome()) == digest(alone.outcome())
            ends.add(digest(one.outcome()))
    assert len(ends) > 3  # most forks end otherwise than their originals


@pytest.mark.parametrize("name", DECIDERS)
def test_a_state_and_its_decider_can_be_forked(name: str) -> None:
    """At any decision; the original is not touched by what the fork does, nor the fork by the original."""
    jobs = workload(random_jobs(4, 20))
    whole = digest(simulate(jobs, CLUSTER, SITE, Rules(), scheduler(name)))
    for decisions in (0, 1, 12):
        run = begin(name, jobs, CLUSTER, SITE, Rules())
        for _ in range(decisions):
            one_decision(run)
        forked = run._replace(state=fork(run.state), decider=fork(run.decider))
        own, others = dict(leaves(run.state)), dict(leaves(forked.state))
        assert not [name for name, each in own.items() if np.shares_memory(each, others[name])]
        for each in (forked, run):
            while one_decision(each):
                pass
            assert digest(each.outcome(each.state)) == whole


# ---------------------------------------------------------------- Ctrl-C

INTERRUPTED_WHEN_FULL = """
import os, signal, sys, threading, time
from greenbatch.cluster import Cluster
from greenbatch.engine import simulate as engine, state
from greenbatch.engine.records import Event, table_of
from greenbatch.engine.rules import Rules
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

drained, run, calls, clocks = engine.drained, engine._to_the_end, [], []
state.LOG_ROWS = 20

def interrupted(full, readings):
    calls.append(full.log.shape[0])
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)  # the main thread has asked to stop
        return drained(full, readings)._replace(log=table_of(Event, 10_000))  # it never is full again
    return drained(full, readings)

def watched(part, begun, *others):
    clocks.append(begun.clock)
    return run(part, begun, *others)

engine.drained, engine._to_the_end = interrupted, watched
count = 300
columns = {"submit_s": [*range(count), count], "run_time_s": [5.0] * count + [1e9], "processors": [2] * (count + 1)}
columns["submit_s"].append(count + 1), columns["run_time_s"].append(1.0), columns["processors"].append(2)
try:
    jobs = Workload.from_columns("long", columns)
    engine.simulate(jobs, Cluster.pooled(2), None, Rules(tick_s=1.0), scheduler("fcfs+easy"))
except KeyboardInterrupt:
    time.sleep(0.5)
    running = [each for each in threading.enumerate() if each is not threading.main_thread()]
    print("stopped", len(running), len(calls), calls[-1] > 20, float(clocks[0].now_s) < 1e5)
"""
"""Three hundred short jobs that fill the log several times, then one that waits through ten thousand million ticks."""


def test_ctrl_c_stops_a_run_while_its_log_is_read() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHEN_FULL], capture_output=True, text=True, check=False, timeout=300
    )  # fmt: skip
    assert done.stdout == "stopped 0 3 True True\n", done.stderr
