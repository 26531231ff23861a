"""The batched environment: what is seen, what may be done, what is rewarded; the same for any batch and any threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.engine.observe.features import QUEUE_FEATURES, STATE_FEATURES
from greenbatch.engine.observe.reward_terms import TERMS
from greenbatch.engine.program import Program
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start
from greenbatch.engine.views.session import Session
from greenbatch.envs.batch import BatchEnv, Observation
from greenbatch.errors import InputError, SupplyExhausted
from greenbatch.metrics import evaluate
from greenbatch.presets.preset import check, preset, resolve
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

Find = Callable[[str], Path]

SCENARIOS = {"lublin_256": "gas-marl/lublin-256", "Cirne": "gas-marl/cirne", "Jann": "gas-marl/jann"}
UNSCALED = {"Jann": {"site.reference_processors": 322}}
"""The episodes on Jann were played under the site of 256 processors."""
EMPTY_ROW = np.array([0, 1, 1, 1, 1, 1, 1, 0], np.float32)


@cache
def scenario() -> Scenario:
    return load_scenario("default", overrides={"workload.generator.jobs": 300})


@cache
def of_paper(trace: str) -> Scenario:
    """The scenario of the episodes on a trace, read once."""
    return load_scenario(SCENARIOS[trace], overrides=UNSCALED.get(trace))


@pytest.fixture
def small() -> Scenario:
    return scenario()


def preset_with(name: str = "gas-marl", **changes: Any) -> Any:
    """A shipped preset with some of its tables changed: ``observation_queue={"rows": 3}``."""
    raw = preset(name).model_dump()
    for place, values in changes.items():
        table = raw
        for key in place.split("__"):
            table = table[key]
        table.update(values)
    return check(raw)


def play(env: BatchEnv, starts: list[int], seed: int = 0) -> list[Any]:
    """All that a random agent, the same in each simulation whatever stands beside it, sees and gets."""
    agents = [np.random.default_rng([seed, start]) for start in starts]
    story: list[Any] = [[] for _ in starts]
    seen = env.reset(starts)
    while len(seen.environment):
        actions = []
        for a, b in enumerate(seen.environment):
            rows = slice(seen.queue_offsets[a], seen.queue_offsets[a + 1])
            beside = slice(seen.running_offsets[a], seen.running_offsets[a + 1])
            story[b].append(
                [seen.queue[rows].copy(), seen.selectable[rows].copy(), seen.running[beside].copy(),
                 seen.supply[a].copy(), seen.slot[a], seen.state[a].copy(), seen.delays[a].copy()]
            )  # fmt: skip
            row = agents[b].choice(np.flatnonzero(seen.selectable[rows]))
            actions.append([row, agents[b].choice(np.flatnonzero(seen.delays[a]))])
        before = seen.environment.copy()
        seen, rewards, ended = env.step(np.array(actions))
        for b, reward, end in zip(before, rewards, ended, strict=True):
            story[b] += [reward, end]
    for b in range(len(starts)):
        story[b] += [env.values[b].copy(), env.starts_s[b].copy()]
    return story


def assert_same(one: Any, other: Any) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        if isinstance(left, list):
            assert_same(left, right)
        else:
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("backfill", ["none", "easy", "green"])
@pytest.mark.parametrize("trace", ["lublin_256", "Cirne", "Jann"])
def test_gas_marl_sees_what_the_published_simulator_shows(
    trace: str, backfill: str, greenbatch_reference: Find, greenbatch_data: Find
) -> None:
    """Scripted episodes of the published simulator: 40 observations of 344 x 8, the clock, and the final metrics."""
    greenbatch_data("swf/lublin_256.swf.gz")
    episode = np.load(greenbatch_reference(f"gas-marl/rl_episodes/{trace}_{backfill}_300.npz"))
    name = {"easy": "easy-schedgym"}.get(backfill, backfill)
    env = BatchEnv(of_paper(trace), "gas-marl", environments=1, jobs=256, backfill=name)
    seen = env.reset([300])
    for number, (action, expected) in enumerate(
        zip(episode["actions"], episode["clock_queue_running_jobid"], strict=True)
    ):
        assert env.now_s[0] == expected[0]
        if number < len(episode["obs_first40"]):
            theirs = episode["obs_first40"][number].reshape(344, 8)
            rows, beside = len(seen.queue), len(seen.running)
            assert rows == min(expected[1], 256)
            assert beside == min(expected[2], 64)
            np.testing.assert_array_equal(seen.queue[:, [5, 7]], theirs[:rows, [5, 7]])
            np.testing.assert_allclose(seen.queue, theirs[:rows], rtol=0, atol=1e-6)
            np.testing.assert_array_equal(theirs[rows:256], np.broadcast_to(EMPTY_ROW, (256 - rows, 8)))
            np.testing.assert_allclose(seen.running, theirs[256 : 256 + beside, :4], rtol=0, atol=1e-6)
            np.testing.assert_allclose(seen.supply[0], theirs[320:, :2], rtol=0, atol=1e-6)
            assert seen.delays[0].tolist() == [True, *(n <= expected[2] for n in range(1, 6)), *[True] * 7]
            assert seen.selectable.all()
        seen, reward, ended = env.step(action[None])
        if number < len(episode["actions"]) - 1:
            assert reward[0] == 0.0
            assert not ended[0]
    assert ended[0]
    utilization, slowdown = float(episode["reutil"]), float(episode["bsld"])
    assert dict(zip(env.terms, env.values[0], strict=True)) == pytest.approx(
        {"renewable_utilization": utilization, "avg_bounded_slowdown": slowdown}, rel=1e-12
    )
    assert reward[0] == pytest.approx(utilization - 0.002 * slowdown, rel=1e-12)


@pytest.mark.parametrize("backfill", ["none", "easy", "green"])
def test_neither_the_batch_nor_the_threads_change_anything(small: Scenario, backfill: str) -> None:
    starts = [0, 7, 7, 100, 200, 31]
    together = play(BatchEnv(small, "gas-marl", environments=6, jobs=60, backfill=backfill), starts)
    threaded = play(BatchEnv(small, "gas-marl", environments=9, jobs=60, backfill=backfill, threads=3), starts)
    assert_same(together, threaded)
    one = BatchEnv(small, "gas-marl", environments=1, jobs=60, backfill=backfill)
    for start, story in zip(starts, together, strict=True):
        assert_same(story, play(one, [start])[0])


def test_a_batch_of_thousands_is_the_same_as_one_by_one(small: Scenario) -> None:
    starts = np.arange(4096) % 260
    env = BatchEnv(small, "rlscheduler", environments=4096, jobs=20, threads=2)
    seen = env.reset(starts)
    while len(seen.environment):
        seen, _, _ = env.step(np.zeros((len(seen.environment), 2), np.int64))
    one = BatchEnv(small, "rlscheduler", environments=1, jobs=20)
    for b in range(0, 4096, 257):
        seen = one.reset([int(starts[b])])
        while len(seen.environment):
            seen, _, _ = one.step(np.zeros((1, 2), np.int64))
        np.testing.assert_array_equal(env.values[b], one.values[0])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_the_environment_matches_a_session(data: st.DataObject) -> None:
    """The same actions through the interface: the same schedule."""
    small = scenario()
    backfill = data.draw(st.sampled_from(["none", "easy", "easy-schedgym", "green"]))
    made = preset_with()
    start, seed = data.draw(st.integers(0, 250)), data.draw(st.integers(0, 99))
    agent = np.random.default_rng(seed)
    env = BatchEnv(small, made, environments=1, jobs=40, backfill=backfill)
    program = Program(name="x", backfill=backfill, settings={"sticky": 1.0})
    session = Session(small.window(start, 40), small.cluster, small.site, small.rules, program)
    seen = env.reset([start])
    while len(seen.environment):
        view = session.view()
        assert view is not None
        assert view.now_s == env.now_s[0]
        assert len(view.job_id) == len(seen.queue)
        row, delay = int(agent.integers(len(seen.queue))), int(agent.choice(np.flatnonzero(seen.delays[0])))
        chosen = made.action.delays[delay]
        start_of = {
            "none": Start(row), "releases": Start.after_releases(row, int(chosen.amount)),
            "seconds": Start.after_seconds(row, chosen.amount),
        }  # fmt: skip
        session.apply(start_of[chosen.kind])
        seen, _, _ = env.step(np.array([[row, delay]]))
    assert session.view() is None
    outcome = session.outcome()
    np.testing.assert_array_equal(outcome.start_s, env.starts_s[0])


@settings(max_examples=10, deadline=None)
@given(start=st.integers(0, 250), seed=st.integers(0, 99))
def test_dense_rewards_add_up_to_the_sparse_one(start: int, seed: int) -> None:
    small = scenario()
    terms = {
        "renewable_utilization": 1.0, "avg_bounded_slowdown": -0.002, "makespan_area_ratio": -0.1,
        "brown_energy_ratio": -1.0,
    }  # fmt: skip
    rewards = {}
    for form in ("sparse", "dense"):
        env = BatchEnv(small, preset_with(reward={"terms": terms, "form": form}), environments=1, jobs=40)
        rewards[form] = [step for step in play(env, [start], seed)[0] if isinstance(step, float)]
    assert np.count_nonzero(rewards["sparse"]) == 1
    assert len(rewards["dense"]) == 1 or np.count_nonzero(rewards["dense"]) > 1
    assert sum(rewards["dense"]) == pytest.approx(sum(rewards["sparse"]), rel=1e-9)


def test_users_are_treated_by_their_means(small: Scenario) -> None:
    """Fairness terms against the metrics, with users that come and go; users without a number are left out."""
    users = np.arange(len(small.workload)) % 7 - 1
    question = replace(small, workload=small.workload.with_columns(user=users))
    names = {"max_user_bounded_slowdown": 1.0, "mean_user_bounded_slowdown": 1.0}
    env = BatchEnv(question, preset_with("rlscheduler", reward={"terms": names}), environments=2, jobs=50)
    seen = env.reset([5, 90])
    while len(seen.environment):
        seen, _, _ = env.step(np.zeros((len(seen.environment), 2), np.int64))
    for b, start in enumerate([5, 90]):
        rules = replace(question.rules, commitment="sticky")
        outcome = simulate(question.window(start, 50), question.cluster, question.site, rules, scheduler("fcfs+none"))
        metrics = evaluate(outcome)
        for name, value in zip(env.terms, env.values[b], strict=True):
            assert value == pytest.approx(metrics[name], rel=1e-12)


def test_a_queue_longer_than_its_table_shows_the_jobs_that_came_first(small: Scenario) -> None:
    whole = BatchEnv(small, preset_with("rlscheduler"), environments=1, jobs=200)
    cut = BatchEnv(small, preset_with("rlscheduler", observation__queue={"rows": 3}), environments=1, jobs=200)
    seen, less = whole.reset([0]), cut.reset([0])
    longest = 0
    while len(seen.environment):
        longest = max(longest, len(seen.queue))
        np.testing.assert_array_equal(less.queue, seen.queue[:3])
        seen, _, _ = whole.step(np.zeros((1, 2), np.int64))
        less, _, _ = cut.step(np.zeros((1, 2), np.int64))
    assert longest > 3
    assert len(less.environment) == 0


def waiting(**action: Any) -> Any:
    """A preset whose agent may wait, and may start only what fits."""
    raw = preset("gas-marl").model_dump()
    raw["observation"]["queue"]["columns"] = [{"feature": "wait"}, {"feature": "fits"}, {"feature": "is_wait"}]
    raw["action"] = {"wait": True, "only_fitting": True, **action}
    raw["settings"] = {"tick_s": 1800.0, "sticky": 0.0}
    return check(raw)


def test_waiting_is_an_additional_row(small: Scenario) -> None:
    env = BatchEnv(small, waiting(longest_hold_s=7200.0), environments=1, jobs=30, backfill="none")
    seen = env.reset([10])
    waits = 0
    while len(seen.environment):
        assert seen.queue[-1].tolist() == [0.0, 0.0, 1.0]
        assert (seen.queue[:-1, 2] == 0.0).all()
        np.testing.assert_array_equal(seen.selectable[:-1], seen.queue[:-1, 1] == 1.0)
        overdue = ((seen.queue[:-1, 0] > 7200.0) & (seen.queue[:-1, 1] == 1.0)).any()
        assert seen.selectable[-1] != overdue
        now_s, held = env.now_s[0], bool(seen.selectable[-1])
        row = len(seen.queue) - 1 if held else int(np.argmax(seen.selectable))
        seen, _, _ = env.step(np.array([[row, 0]]))
        waits += held
        assert env.now_s[0] > now_s or not held
    assert waits > 30
    assert np.isfinite(env.starts_s[0]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environments": 0}, "environments: is 0 (it must be >= 1)"),
        ({"jobs": -3}, "jobs: is -3 (it must be >= 1)"),
        ({"jobs": 10**9}, "jobs: is 1000000000, but default has 300 jobs (give fewer jobs)"),
        ({"threads": 0}, "threads: is 0 (it must be >= 1)"),
        ({"backfill": "conservative"}, "backfill: is 'conservative' (give one of none, easy, easy-schedgym"),
        ({"preset_": "gasmarl"}, "preset: there is no preset 'gasmarl' (did you mean gas-marl? known:"),
    ],
)
def test_what_does_not_fit_together_is_refused(small: Scenario, changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"preset_": "gas-marl", "environments": 1, "jobs": 10, **changes}
    with pytest.raises(InputError) as caught:
        BatchEnv(small, **arguments)
    assert str(caught.value).startswith(message)


def test_windows_and_actions_that_do_not_exist_are_refused(small: Scenario) -> None:
    env = BatchEnv(small, "gas-marl", environments=2, jobs=10)
    for starts, message in (
        ([0, 1, 2], "starts: 3 windows for 2 environments"), ([], "starts: 0 windows"),
        ([291], "start: is 291, but a window of 10 jobs must lie within the 300 jobs of default"),
        ([-1, 5], "start: is -1"), ([0.5, 1.0], "starts: are of type float64 (give whole numbers)"),
        ([[0], [1]], "starts: have shape (2, 1)"),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            env.reset(starts)
        assert str(caught.value).startswith(message)
    env.reset([0, 5])
    for actions, message in (
        ([[0, 0]], "actions: have shape (1, 2)"), ([[0, 0], [1, 0]], "actions: (1, 0) in simulation 1"),
        ([[-1, 0], [0, 0]], "actions: (-1, 0) in simulation 0"),
        ([[0, 13], [0, 0]], "actions: (0, 13) in simulation 0"),
        ([[0.9, 0.0], [0.0, 0.0]], "actions: are of type float64 (give whole numbers)"),
        ([[False, False], [False, False]], "actions: are of type bool"), ([0, 0], "actions: have shape (2,)"),
        (np.array([[2**63, 0], [0, 0]], np.uint64), "actions: (-9223372036854775808, 0) in simulation 0"),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            env.step(np.array(actions))
        assert str(caught.value).startswith(message)
    seen, _, _ = env.step(np.zeros((2, 2), np.int64))  # a refused action has changed nothing
    assert isinstance(seen, Observation)


@pytest.mark.parametrize("threads", [1, 3])
def test_there_is_no_step_before_the_first_window_nor_after_the_last(small: Scenario, threads: int) -> None:
    env = BatchEnv(small, "rlscheduler", environments=4, jobs=2, threads=threads)
    with pytest.raises(InputError, match="actions: there is no decision to make"):
        env.step(np.zeros((4, 2), np.int64))
    for starts in ([0, 1], [7], [0, 1, 2, 3]):
        seen = env.reset(starts)
        assert seen.environment.tolist() == list(range(len(starts)))
        while len(seen.environment):
            seen, _, _ = env.step(np.zeros((len(seen.environment), 2), np.int64))
        with pytest.raises(InputError, match="actions: there is no decision to make"):
            env.step(np.zeros((0, 2), np.int64))


def test_the_end_of_the_power_series_raises(small: Scenario) -> None:
    question = load_scenario(
        "default", overrides={"workload.generator.jobs": 300, "site.repeat": False, "site.days": 2}
    )
    env = BatchEnv(question, "gas-marl", environments=1, jobs=300)

    def to_the_end() -> None:
        seen = env.reset([0])
        while len(seen.environment):
            seen, _, _ = env.step(np.zeros((1, 2), np.int64))

    with pytest.raises(SupplyExhausted, match="synthetic"):
        to_the_end()


def test_normalizers_become_numbers_of_the_scenario(small: Scenario) -> None:
    made = resolve(preset("gas-marl"), small)
    scales = {column.feature: column.scale for column in made.observation.queue.columns}
    assert scales["processors"] == 256.0
    assert scales["requested_time"] == small.workload.run_time_s.max()
    assert scales["wait"] == 43_200.0
    with pytest.raises(InputError, match="delays jobs, which can starve them"):
        resolve(preset_with(settings={"sticky": 0.0}), small)
    with pytest.raises(InputError, match="requires decisions between events"):
        resolve(waiting().model_copy(update={"settings": {}}), small)
    with pytest.raises(InputError, match="gas-marl needs a power supply"):
        resolve(preset("gas-marl"), replace(small, site=None))


@pytest.mark.plain
@pytest.mark.compiled
@pytest.mark.parametrize("name", ["gas-marl", "rlscheduler"])
def test_a_small_window_from_end_to_end(name: str) -> None:
    """Every feature and every term of the reward once, in few jobs: also run as plain Python."""
    made = preset_with(name, reward={"terms": dict.fromkeys(TERMS, 1.0)})
    if name == "gas-marl":
        raw = made.model_dump()
        raw["observation"]["queue"]["columns"] = [{"feature": feature} for feature in QUEUE_FEATURES]
        raw["observation"]["state"]["columns"] = [{"feature": feature, "log": True} for feature in ("queued_work",)]
        raw["observation"]["state"]["columns"] += [{"feature": feature} for feature in STATE_FEATURES]
        made = check(raw)
    env = BatchEnv(scenario(), made, environments=2, jobs=12)
    story = play(env, [0, 30])
    assert all(np.isfinite(each[-2]).all() for each in story)
    assert all(np.isfinite(each[-1]).all() for each in story)
    assert len(story[0]) > 6
