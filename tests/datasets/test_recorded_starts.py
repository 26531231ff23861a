"""Schedules as decisions: starts are reproduced exactly, and actions played back see and earn the same."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import greenbatch as gb
from greenbatch.cluster import NodeGroup
from greenbatch.datasets.tables import Tables
from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv
from greenbatch.envs.replay import Followed, Schedule, follow, joined, recorded, simulated
from greenbatch.errors import InputError
from greenbatch.presets.preset import Preset, check, preset
from greenbatch.presets.shapes import shapes_of
from greenbatch.scenarios import Scenario
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

sys.path.insert(0, str(Path(__file__).parents[1] / "rare"))
from cases_rare import agent, rare


def schedule(env: BatchEnv, name: str, start: int) -> Schedule:
    """What a scheduler does in a window of an environment."""
    scenario, rules = env.scenario, env.scenario.rules
    window = scenario.workload.take(slice(start, start + env.jobs))
    if env.episode_s:
        rules = replace(rules, pools=replace(rules.pools, end_s=0.0, episode_s=env.episode_s))
    return simulated(simulate(window, scenario.cluster, scenario.site, rules, scheduler(name)))


def decisions(env: BatchEnv, name: str, starts: list[int]) -> tuple[list[Schedule], list[Followed], np.ndarray]:
    """The schedules, their decisions, and the starts that these lead to."""
    schedules = [schedule(env, name, start) for start in starts]
    done = follow(env, starts, schedules)
    return schedules, done, env.starts_s[: len(starts)]


def assert_exact(schedules: list[Schedule], done: list[Followed], starts_s: np.ndarray) -> None:
    for wanted, found, start_s in zip(schedules, done, starts_s, strict=True):
        np.testing.assert_array_equal(start_s, wanted.start_s)
        assert (found.late, found.unseen, found.left, found.held) == (0, 0, 0, 0)


def assert_played_back(env: BatchEnv, start: int, done: Followed) -> None:
    """The actions lead to the same observations bit for bit, and to the same rewards, through `BatchEnv.step`."""
    tables = Tables(shapes_of(env.preset), env.jobs)
    ours, k, total = tables.arrays(joined(done.seen)), 0, 0.0
    seen = env.reset([start])
    while len(seen.environment):
        assert env.now_s[0] == done.time_s[k]
        for name, each in tables.arrays(seen).items():
            np.testing.assert_array_equal(each[0], ours[name][k], err_msg=f"{name} of decision {k}")
        assert seen.selectable[done.actions[k]]
        seen, rewards, _ = env.step(np.array([[done.actions[k], 0]]))
        assert rewards[0] == done.rewards[k]
        total, k = total + rewards[0], k + 1
    assert k == len(done.actions)
    assert total == pytest.approx(env.values[0] @ env.weights, rel=1e-12)
    np.testing.assert_array_equal(env.values[0], done.values)


# ---------------------------------------------------------------- simulated schedules


@pytest.mark.parametrize("name", ["qos+none", "fcfs+first-fit", "packer"])
def test_a_schedule_of_strict_rules_is_repeated_and_seen_as_an_agent_would(name: str) -> None:
    env = BatchEnv(gb.load_scenario("rare/10"), "rare", environments=2, episode_s=60.0)
    starts = [0, 150]
    schedules, done, starts_s = decisions(env, name, starts)
    assert_exact(schedules, done, starts_s)
    for start, each in zip(starts, done, strict=True):
        assert np.isnan(schedules[0].start_s).any()
        assert_played_back(env, start, each)


def test_jobs_of_one_tick_start_in_the_order_of_the_scheduler() -> None:
    """Without backfilling, ``qos`` starts the ready job of the highest QoS: it is the row that it takes."""
    env = BatchEnv(gb.load_scenario("rare/10"), "rare", environments=1, episode_s=200.0)
    _, (done,), _ = decisions(env, "qos+none", [0])
    seen = joined(done.seen)
    column = shapes_of(env.preset).queue.index("qos")
    several = 0
    for k, row in enumerate(done.actions):
        qos = seen.queue[seen.queue_offsets[k] : seen.queue_offsets[k + 1] - 1, column]
        if row < len(qos):
            assert qos[row] == qos.max()
            several += (qos < qos[row]).any()
    assert several > 20


@pytest.mark.parametrize(
    ("scenario", "name", "scheduler_name"),
    [("gas-marl/lublin-256", "maskable-ppo", "fcfs+easy"), ("gas-marl/lublin-256", "gas-marl", "f2+green"),
     ("rlscheduler/lublin-1", "rlscheduler", "sjf+none")],
)  # fmt: skip
def test_presets_that_cannot_wait_decide_at_starts_alone(
    scenario: str, name: str, scheduler_name: str, greenbatch_data: Any
) -> None:
    greenbatch_data("swf")
    env = BatchEnv(gb.load_scenario(scenario), name, environments=2, jobs=64)
    schedules, done, starts_s = decisions(env, scheduler_name, [500, 4000])
    assert_exact(schedules, done, starts_s)
    for wanted, found in zip(schedules, done, strict=True):
        assert len(found.actions) == 64
        np.testing.assert_array_equal(found.time_s, np.sort(wanted.start_s))
        assert found.rewards.sum() == pytest.approx(found.values @ env.weights)


@settings(max_examples=3, deadline=None)
@given(
    name=st.sampled_from(["qos+none", "hvf+first-fit", "fcfs+easy", "packer", "random-action:seed=3"]),
    seed=st.integers(0, 10_000), level=st.sampled_from([1.0, 0.7]), ready=st.integers(1, 10),
    suspends=st.sampled_from(["never", "power"]), load=st.sampled_from([0.6, 1.2]),
)  # fmt: skip
def test_any_schedule_of_a_changing_machine_is_repeated(
    name: str, seed: int, level: float, ready: int, suspends: str, load: float
) -> None:
    scenario = rare(10, 80, seed=seed, level=level, ready=ready, suspends=suspends, load=load, actions_per_tick=1000)
    env = BatchEnv(scenario, agent(), environments=1, jobs=len(scenario.workload))
    schedules, done, starts_s = decisions(env, name, [0])
    assert_exact(schedules, done, starts_s)
    assert_played_back(env, 0, done[0])


def test_a_schedule_is_the_same_in_several_threads_and_over_several_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greenbatch.envs.replay.LOAD", 30)
    scenario = gb.load_scenario("rare/10")
    one, two = (BatchEnv(scenario, "rare", environments=3, episode_s=60.0, threads=n) for n in (1, 2))
    starts = [0, 50, 100]
    for found, again in zip(decisions(one, "qos+none", starts)[1], decisions(two, "qos+none", starts)[1], strict=True):
        assert len(found.seen) > 1
        for ours, theirs in zip(joined(found.seen), joined(again.seen), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(found.actions, again.actions)
        np.testing.assert_array_equal(found.rewards, again.rewards)


def of_nodes(seed: int, **cluster: Any) -> Scenario:
    """Jobs on nodes of two speeds."""
    random, n = np.random.default_rng(seed), 60
    group = NodeGroup(name="slow", count=3, processors=4, speed=0.5, static_power_w=10.0, power_per_processor_w=5.0)
    groups = (group, replace(group, name="fast", count=2, processors=6, speed=1.0))
    jobs = Workload.from_columns("random", {
        "submit_s": np.cumsum(random.integers(0, 40, n)), "run_time_s": random.integers(5, 400, n),
        "processors": random.integers(1, 9, n), "nodes": random.choice([-1, 2], n),
    })  # fmt: skip
    base = gb.load_scenario("default", overrides={"workload.generator.jobs": 10})
    return replace(base, workload=jobs, cluster=gb.Cluster.of_nodes(groups, **cluster), site=None)


@pytest.mark.parametrize("placement", ["first", "pack", "fastest"])
def test_a_schedule_on_nodes_is_repeated_with_its_placement(placement: str) -> None:
    env = BatchEnv(of_nodes(5), "rlscheduler", environments=2, jobs=40, backfill=f"none+{placement}")
    assert_exact(*decisions(env, f"sjf+first-fit+{placement}", [0, 20]))


# ---------------------------------------------------------------- what does not go as recorded


def by_hand(*rows: tuple[float, ...], processors: int) -> Scenario:
    """Jobs (submission, run time, processors, recorded wait) on a pool without a power supply."""
    submit_s, run_s, size, wait_s = np.array(rows, dtype=float).T
    columns = {"submit_s": submit_s, "run_time_s": run_s, "processors": size, "recorded_wait_s": wait_s}
    base = gb.load_scenario("default", overrides={"workload.generator.jobs": 10})
    machine = gb.Cluster.pooled(processors)
    return replace(base, workload=Workload.from_columns("hand", columns), cluster=machine, site=None)


def sees(rows: int, *, wait: bool = False, **action: Any) -> Preset:
    """A preset that sees some rows, and is asked every second if it may wait."""
    return check({
        "name": "tiny", "description": "tiny", "settings": {"sticky": 0, **({"tick_s": 1} if wait else {})},
        "observation": {"queue": {"rows": rows, "columns": [{"feature": "wait"}, {"feature": "processors"}]}},
        "action": {"wait": wait, "only_fitting": True, **action}, "reward": {"terms": {"avg_wait_s": -1.0}},
    })  # fmt: skip


def as_recorded(scenario: Scenario, made: Preset) -> tuple[Followed, list[float]]:
    env = BatchEnv(scenario, made, environments=1, jobs=len(scenario.workload))
    (done,) = follow(env, [0], [recorded(scenario.window())])
    return done, env.starts_s[0].tolist()


@pytest.mark.plain
def test_what_does_not_fit_starts_once_it_does_and_is_counted() -> None:
    #                  submit run size wait: recorded starts 0, 5, 6 and 30 on 8 processors
    scenario = by_hand((0, 20, 3, 0), (1, 10, 3, 4), (2, 10, 1, 4), (3, 5, 4, 27), processors=4)
    done, starts_s = as_recorded(scenario, sees(10))
    assert starts_s == [0, 20, 6, 30]
    assert done.time_s.tolist() == [0, 6, 20, 30]
    assert done.actions.tolist() == [0, 1, 0, 0]
    assert (done.late, done.unseen, done.left) == (1, 0, 0)


@pytest.mark.plain
def test_what_is_not_seen_starts_once_it_is_and_is_counted() -> None:
    scenario = by_hand((0, 50, 1, 9), (1, 50, 1, 2), (2, 50, 1, 2), (3, 50, 1, 5), processors=4)
    done, starts_s = as_recorded(scenario, sees(2))
    assert starts_s == [9, 3, 4, 8]  # the third is the second row from 3 s on
    done, starts_s = as_recorded(scenario, sees(1))
    assert starts_s == [9, 9, 9, 9]
    assert (done.late, done.unseen, done.left) == (3, 3, 0)


@pytest.mark.plain
def test_agents_that_may_wait_do_so_at_every_decision_without_a_start() -> None:
    scenario = by_hand((0, 3, 1, 2.5), (1, 2, 1, 3), processors=4)
    done, starts_s = as_recorded(scenario, sees(10, wait=True))
    assert starts_s == [2.5, 4]
    assert done.time_s.tolist() == [0, 1, 2, 2.5, 2.5, 3, 4]  # at every second, and when a start comes in between
    assert done.actions.tolist() == [1, 2, 2, 0, 1, 1, 0]
    forbidden, again = as_recorded(scenario, sees(10, wait=True, longest_hold_s=1.0))
    assert again == starts_s
    assert forbidden.time_s.tolist() == [0, 1, 2.5, 4]
    assert forbidden.held == 3  # at 2, at 2.5 after the start, and at 3 s


@pytest.mark.parametrize(("scenario", "jobs"), [("logs/hpc2n", 150), ("logs/sdsc-blue", 300)])
def test_a_real_log_is_repeated_but_for_what_does_not_fit(scenario: str, jobs: int, greenbatch_data: Any) -> None:
    greenbatch_data("swf")
    made = gb.load_scenario(scenario)
    env = BatchEnv(made, "rlscheduler", environments=1, jobs=jobs)
    window = made.window(20_000, jobs)
    (done,) = follow(env, [20_000], [recorded(window)])
    recorded_s, start_s = window.submit_s + window.recorded_wait_s, env.starts_s[0]
    assert np.ptp(window.submit_s) > 86_400
    assert (start_s >= recorded_s).all()
    assert done.late == np.count_nonzero(start_s > recorded_s) < jobs / 10
    assert (done.left, done.held, len(done.actions)) == (0, 0, jobs)
    np.testing.assert_array_equal(done.time_s, np.sort(start_s))
    if done.late == 0:
        assert env.values[0][0] == pytest.approx(gb.evaluate(gb.simulate(made, "as-recorded", start=20_000, jobs=jobs))
                                                 ["avg_bounded_slowdown"])  # fmt: skip


# ---------------------------------------------------------------- what cannot be followed


def test_agents_that_choose_nodes_are_refused() -> None:
    env = BatchEnv(gb.load_scenario("ineps/convergence-1s"), "ineps", environments=1, jobs=5)
    with pytest.raises(InputError, match="chooses nodes, and a schedule does not say which of them"):
        follow(env, [0], [Schedule(np.zeros(5), np.arange(5))])


def test_nodes_that_boot_are_refused() -> None:
    env = BatchEnv(of_nodes(0, power_on="on-demand"), "rlscheduler", environments=1, jobs=5)
    with pytest.raises(InputError, match="boot on demand, and a schedule does not say when a job was given to them"):
        follow(env, [0], [Schedule(np.zeros(5), np.arange(5))])


def test_suspensions_by_policies_and_presets_that_always_delay_are_refused() -> None:
    env = BatchEnv(rare(10, 50, suspends="swap"), agent(), environments=1, jobs=10)
    with pytest.raises(InputError, match="swap"):
        follow(env, [0], [Schedule(np.zeros(10), np.arange(10))])
    late = preset("gas-marl").model_copy(
        update={"action": preset("gas-marl").action.model_copy(update={"delays": preset("gas-marl").action.delays[1:]})}
    )
    env = BatchEnv(gb.load_scenario("default"), late, environments=1, jobs=10)
    with pytest.raises(InputError, match="without a delay"):
        follow(env, [0], [Schedule(np.zeros(10), np.arange(10))])
