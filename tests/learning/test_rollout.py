"""Rollouts: what is kept is what was seen, done and got."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_env import GAS, RICH, SmallEnv

from greenbatch.learning.networks import build
from greenbatch.learning.training.ppo import likelihood
from greenbatch.learning.training.rollout import Trajectories, collect, play, values_of
from greenbatch.presets.shapes import Shapes

STARTS = [0, 1, 2, 3, 4, 5, 6]
LENGTHS = [2, 3, 4, 2, 3, 4, 2]


def _played(kind: str, shapes: Shapes, environments: int = 7, seed: int = 0) -> tuple[Trajectories, tuple]:
    nets = build({"kind": kind}, shapes, 0)
    return collect(SmallEnv(shapes, environments), STARTS, *nets, torch.Generator().manual_seed(seed)), nets


@pytest.mark.parametrize("kind", ["kernel", "gas-marl", "maskable-ppo", "attention", "context"])
@pytest.mark.parametrize("shapes", [GAS, RICH])
def test_trajectories_hold_what_happened(kind: str, shapes: Shapes) -> None:
    """The small environment's reward is a function of what was seen and chosen: it must be that of what is kept."""
    played, (actor, critic) = _played(kind, shapes)
    assert np.diff(played.offsets).tolist() == LENGTHS
    decisions = played.decisions
    chosen = decisions.queue_offsets[:-1] + played.rows
    assert decisions.selectable[chosen].all()
    assert decisions.delays[torch.arange(len(chosen)), played.delays].all()
    rewards = decisions.queue[chosen, 0].double() + 10.0 * played.delays
    np.testing.assert_allclose(played.rewards, rewards)
    np.testing.assert_allclose(played.returns, np.add.reduceat(played.rewards, played.offsets[:-1]))
    np.testing.assert_allclose(played.terms[:, 0], played.returns)
    new, _ = likelihood(actor, decisions.batch(), played.rows, played.delays)
    torch.testing.assert_close(new.detach(), played.log_probabilities, atol=1e-5, rtol=0)
    np.testing.assert_allclose(played.values, critic(decisions.batch()).detach(), atol=1e-5)


def test_the_generator_is_the_only_source_of_randomness() -> None:
    first, again, other = (_played("gas-marl", GAS, seed=seed)[0] for seed in (1, 1, 2))
    assert first.rows.equal(again.rows)
    assert first.delays.equal(again.delays)
    assert first.log_probabilities.equal(again.log_probabilities)
    assert not (len(first.rows) == len(other.rows) and first.rows.equal(other.rows))


def test_more_windows_than_environments_are_played_in_turn() -> None:
    played, _ = _played("kernel", GAS, environments=3)
    assert np.diff(played.offsets).tolist() == LENGTHS
    np.testing.assert_allclose(played.terms[:, 0], played.returns)


def test_arg_max_does_not_depend_on_how_many_are_played_at_once() -> None:
    actor, _ = build({"kind": "gas-marl"}, GAS, 0)
    results = [play(SmallEnv(GAS, count), STARTS, actor) for count in (1, 3, 7)]
    for returns, terms in results:
        np.testing.assert_array_equal(returns, results[0][0])
        np.testing.assert_array_equal(terms[:, 0], returns)


def test_without_a_critic_values_are_0() -> None:
    actor, critic = build({"kind": "gas-marl"}, GAS, 0)
    played = collect(SmallEnv(GAS, 7), STARTS, actor, None, torch.Generator().manual_seed(0))
    assert not played.values.any()
    expected = critic(played.decisions.batch()).detach().numpy()
    np.testing.assert_allclose(values_of(critic, played.decisions), expected, atol=1e-5)
