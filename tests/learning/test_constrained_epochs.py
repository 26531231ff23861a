"""What an epoch of a constrained training computes, against plain formulas: every cost with its own sign and critic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny_plan

from greenbatch.learning.runs.folder import LOG, open_run
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.training.loop import PolicyTraining, TrainingSetup, train
from greenbatch.learning.training.multipliers import Multipliers
from greenbatch.presets.constraints import Constraint, Controller

BOUNDS: dict[str, dict[str, float]] = {
    "utilization": {"at_least": 0.6, "scale": 3.0},
    "avg_wait_s": {"at_most": 500.0},
}
"""In another order than the reward's terms, of both kinds, with and without a scale of its own."""
TERMS = {"avg_bounded_slowdown": -1.0, "avg_wait_s": -0.01, "utilization": 0.0}
MADE: dict[str, Any] = {
    "training.constraints": BOUNDS, "reward.terms": TERMS, "reward.form": "dense", "training.gamma": 0.9,
    "training.gae_lambda": 0.8, "training.advantage": "gae", "training.rollouts": 2, "training.jobs": 30,
    "training.validation.jobs": 30,
}  # fmt: skip


def setup_of(place: Path, **more: Any) -> TrainingSetup:
    return TrainingSetup(tiny_plan(place, overrides={**MADE, **more}), torch.device("cpu"))


def to_go(rewards: np.ndarray, gamma: float) -> np.ndarray:
    found, later = np.zeros(len(rewards)), 0.0
    for n in reversed(range(len(rewards))):
        found[n] = later = rewards[n] + gamma * later
    return found


def plain_gae(rewards: np.ndarray, values: np.ndarray, gamma: float, keep: float) -> np.ndarray:
    errors = rewards + gamma * np.append(values[1:], 0.0) - values
    return to_go(errors, gamma * keep)


def scaled(numbers: np.ndarray) -> np.ndarray:
    return (numbers - numbers.mean()) / numbers.std(ddof=1)


@pytest.mark.parametrize("form", ["returns", "gae"])
def test_advantages_and_targets_of_costs_are_those_of_their_own_terms_and_critics(tmp_path: Path, form: str) -> None:
    setup = setup_of(tmp_path, **{"training.critic_target": form})
    played, group = setup.collect(0, 0.0)
    terms = setup.training_environment(0.0).terms
    for k, name in enumerate(BOUNDS):
        sums = np.add.reduceat(played.costs[:, k], played.offsets[:-1])
        np.testing.assert_allclose(sums, played.terms[:, terms.index(name)])
        assert np.ptp(sums) > 0
    multipliers = Multipliers(setup.settings.constraints, setup.settings.controller)
    multipliers.values = np.array([0.5, 2.0])
    ascended, targets = setup.aims(played, group, multipliers)
    gains = [played.rewards, -3.0 * played.costs[:, 0], played.costs[:, 1] / 500]
    advantages, aims = [], []
    for gained, values in zip(gains, played.values.T, strict=True):
        spans = [slice(*pair) for pair in zip(played.offsets[:-1], played.offsets[1:], strict=True)]
        each = np.concatenate([plain_gae(gained[span], values[span], 0.9, 0.8) for span in spans])
        aims.append(
            np.concatenate([to_go(gained[span], 0.9) for span in spans]) if form == "returns" else each + values
        )
        advantages.append(scaled(each))
    np.testing.assert_allclose(ascended, (advantages[0] - 0.5 * advantages[1] - 2.0 * advantages[2]) / 3.5, atol=1e-6)
    np.testing.assert_allclose(targets, np.column_stack(aims), atol=1e-9)


def test_costs_of_rollouts_of_a_window_are_compared_with_each_other(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, **{"training.advantage": "group", "training.rollouts": 3})
    played, group = setup.collect(0, 0.0)
    multipliers = Multipliers(setup.settings.constraints, setup.settings.controller)
    multipliers.values = np.array([1.0, 0.5])
    ascended, targets = setup.aims(played, group, multipliers)
    assert targets is None
    weighed = (played.rewards + 3.0 * played.costs[:, 0] - 0.5 * played.costs[:, 1] / 500) / 2.5
    total = np.add.reduceat(weighed, played.offsets[:-1]).reshape(-1, 3)
    spread = np.where(total.std(axis=1, keepdims=True) > 1e-12, total.std(axis=1, keepdims=True), np.inf)
    compared = ((total - total.mean(axis=1, keepdims=True)) / spread).ravel()
    np.testing.assert_allclose(ascended, scaled(np.repeat(compared, np.diff(played.offsets))), atol=1e-6)


def test_the_log_has_the_multipliers_that_follow_from_its_terms(tmp_path: Path) -> None:
    more = {"training.windows": 1, "training.rollouts": 1}
    train(tiny_plan(tmp_path, overrides={**MADE, **more}), tmp_path / "run")
    lines = [line for line in read_log(tmp_path / "run" / LOG) if "policy_loss" in line]
    promised = {name: Constraint(**bound) for name, bound in BOUNDS.items()}
    multipliers = Multipliers(promised, Controller())
    for line in lines:
        expected = multipliers.update(np.array([line[name] for name in BOUNDS]))
        assert [line[f"multiplier_{name}"] for name in BOUNDS] == pytest.approx(expected.tolist())
        assert line["beyond_utilization"] == (line["utilization"] < 0.6)
        assert line["beyond_avg_wait_s"] == (line["avg_wait_s"] > 500)


def test_the_worst_broken_bound_counts_for_the_best_actor(tmp_path: Path) -> None:
    bounds = {"utilization": {"at_least": 0.01}, "avg_wait_s": {"at_most": 1e-3}, "avg_turnaround_s": {"at_most": 1e-2}}
    found = setup_of(tmp_path, **{"training.constraints": bounds}).validate()
    worst = found.terms["avg_wait_s"] / 1e-3 - 1
    assert worst > 0
    assert found.excess == pytest.approx(max(worst, found.terms["avg_turnaround_s"] / 1e-2 - 1))


def test_an_average_of_weights_that_breaks_a_bound_is_not_kept(tmp_path: Path) -> None:
    """It is offered as any other actor: here a stricter keeper is the best so far."""
    limits = {"avg_wait_s": {"at_most": 1e-3}}
    plan = tiny_plan(tmp_path, overrides={"training.constraints": limits, "training.swa.start": 0.5})
    setup = TrainingSetup(plan, torch.device("cpu"))
    with open_run(tmp_path / "run", plan, replace_earlier=False) as home:
        training = PolicyTraining(setup, home, lambda _: None, tensorboard=False)
        training.state.offer(-1e9, {}, training.state.actor_weights(), excess=0.0)
        training.state.counters.validated_epoch = 0
        training.run()
        training.close()
    assert training.state.counters.averaged > 0
    assert (training.state.counters.best_figure, training.state.counters.best_averaged) == (-1e9, False)
