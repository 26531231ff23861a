"""Agents on machines whose capacity follows the power: against an environment in plain Python, batches and rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases_rare import agent, jobs, rare
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rare import PlainEnv, plain_env

from greenbatch.engine.observe.image import unpacked
from greenbatch.engine.observe.reward_terms import FINISHED_VALUE, TERMS
from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv, Observation
from greenbatch.envs.single import SchedulingEnv
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler

OF_VALUE = [name for name, term in TERMS.items() if term.code >= FINISHED_VALUE]
EVERY_TERM = agent(reward={"terms": dict.fromkeys(OF_VALUE, 1.0)})


def pick(plain: PlainEnv, row: int) -> int | str:
    """What a row of the queue's table means."""
    if row < len(plain.ready):
        return row
    return "suspend" if plain.pools.suspends == "swap" and row == len(plain.ready) else "wait"


def assert_sees(seen: Observation, plain: PlainEnv, scenario: Any) -> None:
    """Rows, masks, image and what the tables say about jobs and capacity."""
    suspends = plain.pools.suspends == "swap"
    fit = [plain.fits(job, job.length) for job in plain.ready]
    masks = [*([True] * len(fit)), *([plain.may_suspend()] if suspends else []), True]
    assert seen.selectable.tolist() == masks
    np.testing.assert_array_equal(unpacked(seen.image[0], sum(plain.size)), plain.image(48))
    largest, length = scenario.workload.value.max(), scenario.workload.requested_time_s.max()
    due = [np.clip((job.due - plain.now) / 48, -2, 2) for job in plain.ready]
    slack = [np.clip((job.due - plain.now - job.length) / 48, -2, 2) for job in plain.ready]
    size, gpus = plain.size
    rows = [
        [job.value / largest, job.qos, at, left, min((plain.now - job.enter) / 48, 2), job.length / length,
         job.cpu / size, job.gpu / gpus, can, 0, 0]
        for job, at, left, can in zip(plain.ready, due, slack, fit, strict=True)
    ]  # fmt: skip
    rows += [[0] * 9 + [1, 0]] if suspends else []
    np.testing.assert_allclose(seen.queue, [*rows, [0] * 10 + [1]], rtol=1e-5, atol=1e-6)
    ahead = []
    for t in range(48):
        powered = plain.level(plain.now + min(t, int(plain.pools.horizon_s) or t))
        used = plain.used(plain.now + t)
        ahead.append(
            [(powered[0] - used[0]) / size, (powered[1] - used[1]) / gpus, powered[0] / size, powered[1] / gpus]
        )
    np.testing.assert_allclose(seen.supply[0], ahead, rtol=1e-6)
    running = sorted(plain.running.items(), key=lambda item: item[1])
    shown = [[job.value, job.qos, job.due, end, job.cpu, job.gpu] for job, end in running][:20]
    theirs = seen.running * [largest, 1, 1, length, size, gpus]
    assert len(theirs) == len(shown)
    if shown:
        np.testing.assert_allclose(theirs[:, 3], [row[3] - plain.now for row in shown], rtol=1e-5)
        for column in (0, 1, 4, 5):  # jobs with the same end may be in another order
            np.testing.assert_allclose(sorted(theirs[:, column]), sorted(row[column] for row in shown), rtol=1e-5)
    free = plain.free(plain.now)
    state = [
        free[0] / size, free[1] / gpus, plain.level(plain.now)[0] / size, len(plain.ready) / 10,
        (len(plain.queue) - len(plain.ready)) / 144, len(plain.suspended) / 144, len(plain.running) / 20,
    ]  # fmt: skip
    np.testing.assert_allclose(seen.state[0], state, rtol=1e-6)


def follow(env: BatchEnv, plain: PlainEnv, seen: Observation, scenario: Any, seed: int) -> None:
    """Random actions, half of them of those that can be carried out, in both environments to the end."""
    rng, going = np.random.default_rng(seed), True
    while len(seen.environment):
        assert going
        assert env.now_s[0] == plain.now
        assert_sees(seen, plain, scenario)
        fit = [k for k, job in enumerate(plain.ready) if plain.fits(job, job.length)]
        row = int(rng.choice(fit) if fit and rng.random() < 0.5 else rng.integers(len(seen.queue)))
        going = plain.step(pick(plain, row))
        seen, _, _ = env.step(np.array([[row, 0]]))
        expected = plain.terms()
        for name, value in zip(env.terms, env.values[0].tolist(), strict=True):
            assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name
    assert not going


CASES: list[dict[str, Any]] = [
    {},
    {"level": 0.8},
    {"level": 0.6, "suspends": "power"},
    {"level": 0.7, "suspends": "swap"},
    {"suspends": "swap", "actions_per_tick": 1},
    {"level": 0.8, "admission": "qos", "ready": 4, "load": 1.5, "waiting": 6},
    {"level": 0.5, "horizon_s": 5.0},
]


@pytest.mark.plain
@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_episode_is_that_of_the_plain_environment(case: dict[str, Any]) -> None:
    scenario = rare(10, 100, seed=3, **case)
    env = BatchEnv(scenario, EVERY_TERM, environments=1, jobs=len(scenario.workload))
    follow(env, plain_env(scenario), env.reset([0]), scenario, 1)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.integers(3, 9), st.sampled_from(["never", "power", "swap"]), st.sampled_from([0.5, 0.9]))
def test_windows_are_episodes_of_their_own(seed: int, size: int, suspends: str, level: float) -> None:
    """A window begins with an empty machine at a later time of the same power, and ends after its length."""
    scenario = rare(size, 300, seed=seed, level=level, suspends=suspends)
    env = BatchEnv(scenario, EVERY_TERM, environments=1, episode_s=60.0)
    start = seed % (len(scenario.workload) - env.jobs)
    follow(env, plain_env(scenario, 60, start, env.jobs), env.reset([start]), scenario, seed)


@pytest.mark.parametrize("suspends", ["never", "power"])
@pytest.mark.parametrize("rule", ["fcfs", "qos", "hvf"])
def test_an_agent_that_follows_a_rule_is_that_rule(rule: str, suspends: str) -> None:
    scenario = rare(10, 400, level=0.8, suspends=suspends)
    env = BatchEnv(scenario, agent(), environments=1, jobs=len(scenario.workload))
    seen = env.reset([0])
    while len(seen.environment):
        column = {"qos": 1, "hvf": 0}.get(rule)
        row = 0 if column is None else int(np.argmax(seen.queue[:-1, column]))
        seen, _, _ = env.step(np.array([[row, 0]]))
    outcome = simulate(scenario.workload, scenario.cluster, None, scenario.rules, scheduler(f"{rule}+none"))
    np.testing.assert_array_equal(env.starts_s[0], outcome.start_s)
    assert outcome.stays is not None
    assert env.values[0, 0] == pytest.approx(outcome.workload.value[outcome.stays.state == 4].sum())


def story(env: BatchEnv, starts: list[int]) -> list[Any]:
    """All that agents, the same in each window whatever stands beside it, see and get."""
    agents = [np.random.default_rng(start) for start in starts]
    told: list[Any] = [[] for _ in starts]
    seen = env.reset(starts)
    while len(seen.environment):
        actions = []
        for a, b in enumerate(seen.environment):
            rows = slice(seen.queue_offsets[a], seen.queue_offsets[a + 1])
            beside = slice(seen.running_offsets[a], seen.running_offsets[a + 1])
            told[b] += [
                seen.queue[rows].copy(), seen.selectable[rows].copy(), seen.running[beside].copy(),
                seen.supply[a].copy(), seen.state[a].copy(), seen.image[a].copy(),
            ]  # fmt: skip
            actions.append([agents[b].choice(np.flatnonzero(seen.selectable[rows])), 0])
        before = seen.environment.copy()
        seen, rewards, ended = env.step(np.array(actions))
        for b, reward, end in zip(before, rewards, ended, strict=True):
            told[b] += [reward, end]
    return [[*each, env.values[b].copy(), env.starts_s[b].copy()] for b, each in enumerate(told)]


def test_neither_the_batch_nor_the_threads_change_anything() -> None:
    scenario = rare(10, 600, level=0.8, suspends="swap")
    starts, options = [0, 7, 7, 100, 31], {"episode_s": 100.0}
    together = story(BatchEnv(scenario, EVERY_TERM, environments=5, **options), starts)
    threaded = story(BatchEnv(scenario, EVERY_TERM, environments=8, threads=3, **options), starts)
    one = BatchEnv(scenario, EVERY_TERM, environments=1, **options)
    for start, mine, other in zip(starts, together, threaded, strict=True):
        for single, left, right in zip(story(one, [start])[0], mine, other, strict=True):
            np.testing.assert_array_equal(left, right)
            np.testing.assert_array_equal(left, single)


def test_the_log_is_never_too_small() -> None:
    """The capacity changes at every tick for a long time in which no job waits: no decision is due in between."""
    scenario = rare(10, 5000, load=0.002, level=0.5, suspends="power")
    env = BatchEnv(scenario, EVERY_TERM, environments=1, jobs=len(scenario.workload))
    follow(env, plain_env(scenario), env.reset([0]), scenario, 2)


@pytest.mark.parametrize("suspends", ["never", "swap"])
def test_the_single_environment_keeps_gymnasiums_contract(suspends: str) -> None:
    scenario = rare(10, 400, level=0.8, suspends=suspends)
    env = SchedulingEnv(scenario, agent(), episode_s=50.0)
    check_env(env, skip_render_check=True)
    assert env.action_space.nvec.tolist() == [10 + 1 + (suspends == "swap")]  # type: ignore[attr-defined]
    seen, _ = env.reset(seed=1)
    assert seen["image"].shape == (2, 48, 20)
    batch = BatchEnv(scenario, agent(), environments=1, episode_s=50.0)
    theirs = batch.reset([3])
    seen, _ = env.reset(options={"start": 3})
    ended, rng = False, np.random.default_rng(0)
    while not ended:
        np.testing.assert_array_equal(seen["image"], unpacked(theirs.image[0], 20))
        shown = seen["tables"][: 12 * 11 if suspends == "swap" else 11 * 11].reshape(-1, 11)
        np.testing.assert_array_equal(shown[: len(theirs.queue)], theirs.queue)
        masks = env.action_masks()
        np.testing.assert_array_equal(masks[: len(theirs.queue)], theirs.selectable)
        assert not masks[len(theirs.queue) :].any()
        row = int(rng.choice(np.flatnonzero(masks)))
        seen, reward, ended, _, _ = env.step(row)
        theirs, rewards, over = batch.step(np.array([[row, 0]]))
        assert (reward, ended) == (rewards[0], over[0])


def test_only_what_fits_can_be_masked() -> None:
    scenario = rare(10, 300, level=0.7)
    env, plain = (
        BatchEnv(scenario, agent(action={"only_fitting": True}), environments=1, jobs=len(scenario.workload)),
        plain_env(scenario),
    )
    seen = env.reset([0])
    hidden = 0
    while len(seen.environment):
        fit = [plain.fits(job, job.length) for job in plain.ready]
        now = [job.cpu <= plain.free(plain.now)[0] and job.gpu <= plain.free(plain.now)[1] for job in plain.ready]
        hidden += sum(now) > sum(fit)
        assert seen.selectable.tolist() == [*fit, True]
        row = int(np.argmax(seen.selectable))
        plain.step(pick(plain, row))
        seen, _, _ = env.step(np.array([[row, 0]]))
    assert hidden > 10  # jobs that fit now but not for as long as they run


def test_what_a_machine_does_not_have_is_refused() -> None:
    from greenbatch.scenarios import load_scenario

    other = load_scenario("default", overrides={"workload.generator.jobs": 50})
    with pytest.raises(InputError, match="ticks ahead"):
        BatchEnv(other, agent(), environments=1, jobs=20)
    with pytest.raises(InputError, match="capacity follows the power"):
        BatchEnv(other, "gas-marl", environments=1, episode_s=10.0)
    with pytest.raises(InputError, match="slots of the supply and of ticks ahead"):
        agent(observation__supply={"columns": [{"feature": "power"}, {"feature": "free_gpus"}]})
    assert len(jobs(10, 10, 1.0, 0, 5)) > 0
