"""Advantages against closed forms and against stable-baselines3's numbers."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.learning.discounts import discounts, since_start
from greenbatch.learning.training.advantages import gae, group_relative, normalized, rewards_to_go


def _offsets(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _plain_gae(rewards: np.ndarray, values: np.ndarray, gamma: float, trace: float) -> list[float]:
    """The sum of equation 16, term by term, for one trajectory."""
    following = np.append(values[1:], 0.0)
    delta = rewards + gamma * following - values
    steps = len(rewards)
    return [sum((gamma * trace) ** k * delta[t + k] for k in range(steps - t)) for t in range(steps)]


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_gae_is_its_sum(lengths: list[int], gamma: float, trace: float, seed: int) -> None:
    g = np.random.default_rng(seed)
    offsets = _offsets(lengths)
    rewards, values = g.normal(size=(2, offsets[-1]))
    got = gae(rewards, values, offsets, gamma, trace)
    for first, last in itertools.pairwise(offsets):
        expected = _plain_gae(rewards[first:last], values[first:last], gamma, trace)
        np.testing.assert_allclose(got[first:last], expected, rtol=1e-9, atol=1e-12)


def test_sparse_reward_without_discount_and_with_lambda_1() -> None:
    """A = R - V: what GAS-MARL's returns come to."""
    rewards, values = np.array([0.0, 0.0, 5.0, 0.0, -2.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert gae(rewards, values, _offsets([3, 2]), 1.0, 1.0).tolist() == [4.0, 3.0, 2.0, -6.0, -7.0]
    assert rewards_to_go(rewards, _offsets([3, 2])).tolist() == [5.0, 5.0, 5.0, -2.0, -2.0]


def test_lambda_0_is_one_step() -> None:
    rewards, values = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    assert gae(rewards, values, _offsets([2]), 0.5, 0.0).tolist() == [1.0 + 10.0 - 10.0, 2.0 - 20.0]


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.floats(0.1, 1), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_discounts_over_time_are_those_of_the_time_that_passes(lengths: list[int], gamma: float, seed: int) -> None:
    """Rewards to go against their sum; windows do not begin where others ended, and decisions may share an instant."""
    g = np.random.default_rng(seed)
    offsets = _offsets(lengths)
    time_s = np.cumsum(g.integers(0, 3, offsets[-1])).astype(float)
    rewards = g.normal(size=offsets[-1])
    got = rewards_to_go(rewards, offsets, discounts(time_s, offsets, gamma, 2.0))
    counted = rewards * since_start(time_s, offsets, gamma, 2.0)
    begun = offsets[:-1][np.diff(offsets) > 0]
    np.testing.assert_allclose(got[begun], [counted[a:b].sum() for a, b in itertools.pairwise(offsets) if b > a])
    for first, last in itertools.pairwise(offsets):
        for t in range(first, last):
            expected = sum(gamma ** ((time_s[k] - time_s[t]) / 2.0) * rewards[k] for k in range(t, last))
            np.testing.assert_allclose(got[t], expected, rtol=1e-9, atol=1e-12)


def test_decisions_at_one_instant_delay_nothing_over_time() -> None:
    """Two jobs of value 1 start at 0 and the machine earns 8 at 10: one decision more costs nothing."""
    both = np.array([1.0, 1.0, 8.0])
    time_s, offsets = np.array([0.0, 0.0, 10.0]), _offsets([3])
    assert rewards_to_go(both, offsets, discounts(time_s, offsets, 0.5, 10.0)).tolist() == [6.0, 5.0, 8.0]
    assert rewards_to_go(both, offsets, discounts(time_s, offsets, 0.5)).tolist() == [3.5, 5.0, 8.0]


def test_gae_is_that_of_stable_baselines3() -> None:
    import torch
    from gymnasium.spaces import Box, Discrete
    from stable_baselines3.common import buffers

    g = np.random.default_rng(0)
    lengths, gamma, trace = [4, 3, 5], 0.97, 0.9
    rewards, values = g.normal(size=(2, 12))
    box = Box(0, 1, (1,))
    buffer = buffers.RolloutBuffer(12, box, Discrete(2), device="cpu", gae_lambda=trace, gamma=gamma, n_envs=1)
    begins = set(_offsets(lengths).tolist())
    for t in range(12):
        value, none = torch.tensor([values[t]]), torch.zeros(1)
        buffer.add(np.zeros((1, 1)), np.zeros((1, 1)), rewards[[t]], np.array([float(t in begins)]), value, none)
    buffer.compute_returns_and_advantage(torch.zeros(1), np.array([True]))
    mine = gae(rewards, values, _offsets(lengths), gamma, trace)
    np.testing.assert_allclose(mine, buffer.advantages[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mine + values, buffer.returns[:, 0], rtol=1e-5, atol=1e-6)


def test_group_relative_returns() -> None:
    """Two windows with two and three rollouts: (R - mean) / population deviation, the same for every decision."""
    offsets = _offsets([2, 1, 1, 2, 1])
    rewards = np.array([0.0, 1.0, 3.0, 10.0, 0.0, 20.0, 60.0])
    group = np.array([7, 7, 2, 2, 2])
    plain = group_relative(rewards, offsets, group, scaled=False)
    assert plain.tolist() == [-1.0, -1.0, 1.0, -20.0, -10.0, -10.0, 30.0]
    spread = np.sqrt((400 + 100 + 900) / 3)
    expected = [-1.0, -1.0, 1.0, -20 / spread, -10 / spread, -10 / spread, 30 / spread]
    np.testing.assert_allclose(group_relative(rewards, offsets, group), expected)


def test_groups_without_spread_teach_nothing() -> None:
    rewards = np.array([0.1 + 0.2, 0.3, 5.0])
    assert group_relative(rewards, _offsets([1, 1, 1]), np.array([0, 0, 1])).tolist() == [0.0, 0.0, 0.0]


def test_dense_groups_compare_rewards_to_go_at_the_same_step() -> None:
    """Rewards-to-go 3, 2 and 5, 1, 1: step 0 mean 4, step 1 mean 1.5, step 2 alone."""
    rewards, offsets = np.array([1.0, 2.0, 4.0, 0.0, 1.0]), _offsets([2, 3])
    got = group_relative(rewards, offsets, np.array([0, 0]), dense=True, scaled=False)
    assert got.tolist() == [-1.0, 0.5, 1.0, -0.5, 0.0]


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
@settings(deadline=None, max_examples=60)
def test_normalized_is_the_published_formula(values: list[float]) -> None:
    array = np.array(values)
    expected = (array - array.mean()) / (np.sqrt(((array - array.mean()) ** 2).sum() / (len(array) - 1)) + 1e-9)
    np.testing.assert_allclose(normalized(array), expected, rtol=1e-9, atol=1e-9)


def test_one_advantage_alone_is_0() -> None:
    assert normalized(np.array([3.0])).tolist() == [0.0]
