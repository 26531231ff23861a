"""Predictions as features: the same numbers in a batch, in a view, and in the engine's own columns."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from greenbatch.engine.observe.batch import observe_view
from greenbatch.engine.views.interface import Predicted, Start, Wait
from greenbatch.engine.views.session import Session
from greenbatch.envs.batch import BatchEnv
from greenbatch.envs.single import SchedulingEnv
from greenbatch.presets.layout import program_of
from greenbatch.presets.preset import Preset, check, preset
from greenbatch.scenarios import Scenario, load_scenario

pytestmark = pytest.mark.plain

FEATURES = ("expected_time", "shortest_time", "longest_time", "mean_time", "slowdown_price")
STARTS, JOBS = (3, 40, 41), 40


def scenario(predictor: str) -> Scenario:
    """Jobs of few users who ask for more than they need, as for the scenario default."""
    base = load_scenario("default", overrides={"workload.generator.jobs": 120, "rules.predictor": predictor})
    jobs, random = base.workload, np.random.default_rng(5)
    asked_s = np.round(jobs.run_time_s / 900 + 1) * 900 * random.choice([1, 3], len(jobs))
    return replace(base, workload=jobs.with_columns(user=random.integers(0, 4, len(jobs)), requested_time_s=asked_s))


def looking(*features: str) -> Preset:
    """A preset that sees some features of jobs, without scales, and may wait."""
    raw: Any = copy.deepcopy(preset("gas-marl").model_dump(mode="json"))
    raw["observation"]["queue"] |= {
        "columns": [{"feature": name} for name in features] + [{"feature": "is_wait"}], "empty": [], "rows": 20,
    }  # fmt: skip
    raw["observation"]["padded_width"] = 0
    raw["observation"]["running"]["rows"] = raw["observation"]["supply"]["rows"] = 0
    raw["action"] = {"delays": [{"kind": "none"}], "wait": True, "longest_hold_s": 20_000.0}
    raw["settings"] = {"tick_s": 1800.0}
    return check(raw)


def tables(env: BatchEnv, starts: tuple[int, ...], seed: int = 0) -> list[list[np.ndarray]]:
    """What each window shows to an agent that starts jobs at random, or waits."""
    story: list[list[np.ndarray]] = [[] for _ in starts]
    agents = [np.random.default_rng([seed, start]) for start in starts]
    seen = env.reset(starts)
    while len(seen.environment):
        actions = []
        for a, b in enumerate(seen.environment):
            rows = slice(seen.queue_offsets[a], seen.queue_offsets[a + 1])
            story[b].append(seen.queue[rows].copy())
            actions.append([agents[b].choice(np.flatnonzero(seen.selectable[rows])), 0])
        seen, _, _ = env.step(np.array(actions))
    return story


@pytest.mark.parametrize("predictor", ["requested", "last-two", "like-jobs", "learned"])
def test_three_paths_show_the_same_predictions(predictor: str) -> None:
    question = scenario(predictor)
    env = BatchEnv(question, looking(*FEATURES), environments=1, jobs=JOBS)
    single = SchedulingEnv(question, looking(*FEATURES), jobs=JOBS)
    program = program_of(env.preset, None)
    agent, foretold = np.random.default_rng(0), 0
    for start in STARTS[:2]:
        jobs = question.window(start, JOBS)
        session = Session(jobs, question.cluster, question.site, question.rules, program)
        seen, (padded, _) = env.reset([start]), single.reset(options={"start": start})
        while (view := session.view()) is not None:
            rows = len(seen.queue)
            np.testing.assert_array_equal(observe_view(view, env.layout).queue, seen.queue)
            np.testing.assert_array_equal(padded[: seen.queue.size].reshape(rows, -1), seen.queue)
            wanted = view.queue.predicted
            if predictor == "requested":
                asked_s = view.queue.requested_time_s
                wanted = Predicted(asked_s, asked_s, asked_s, asked_s, 1 / np.maximum(asked_s, 10.0))
            columns = np.stack(wanted, axis=1)[: rows - 1]
            np.testing.assert_array_equal(seen.queue[:-1, :5], columns.astype(np.float32))
            foretold += bool((columns[:, 0] < view.queue.requested_time_s[: rows - 1]).any())
            row = int(agent.choice(np.flatnonzero(seen.selectable)))
            session.apply(Wait() if row == rows - 1 else Start(row))
            seen, _, _ = env.step(np.array([[row, 0]]))
            padded = single.step([row])[0]
    assert (foretold == 0) if predictor == "requested" else (foretold > 30)


@pytest.mark.parametrize("predictor", ["last-two", "learned"])
def test_windows_learn_on_their_own(predictor: str) -> None:
    """Neither other windows, nor threads, nor what was learned in an earlier window show."""
    question = scenario(predictor)
    together = tables(BatchEnv(question, looking(*FEATURES), environments=4, jobs=JOBS, threads=2), STARTS)
    one = BatchEnv(question, looking(*FEATURES), environments=1, jobs=JOBS)
    for start, story in zip(STARTS, together, strict=True):
        for ours, theirs in zip(tables(one, (start,))[0], story, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_who_sees_no_predictions_pays_for_none() -> None:
    """The compiled code is then that without a predictor, and so is what is seen."""
    envs = [BatchEnv(scenario(each), looking("wait"), environments=2, jobs=JOBS) for each in ("requested", "learned")]
    assert envs[0]._step is envs[1]._step
    asked, learned = (tables(env, STARTS[:2]) for env in envs)
    for ours, theirs in zip(asked[1], learned[1], strict=True):
        np.testing.assert_array_equal(ours, theirs)
