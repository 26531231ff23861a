"""A decision process of five states and three actions whose values are known in closed form, for tests.

From every state an episode ends with a probability of 0.2.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STATES, ACTIONS, GAMMA, ENDS = 5, 3, 0.9, 0.2
_random = np.random.default_rng(3)
QUOTAS = _random.multinomial(16, np.full(STATES, 1 / STATES), size=(STATES, ACTIONS))
"""Of 20 transitions of a state and an action, those to each state; the other 4 end the episode."""
NEXT: Floats = QUOTAS / 20
REWARDS: Floats = _random.uniform(0.0, 2.0, (STATES, ACTIONS))
START: Floats = np.array([0.4, 0.2, 0.2, 0.1, 0.1])
UNIFORM: Floats = np.full((STATES, ACTIONS), 1 / ACTIONS)
PI: Floats = np.exp(0.8 * REWARDS) / np.exp(0.8 * REWARDS).sum(1, keepdims=True)
"""A policy that prefers high rewards."""


def values_of(policy: Floats) -> Floats:
    """Value of each state: V = sum over a of pi (R + gamma P V), shape (5,)."""
    gained, moved = (policy * REWARDS).sum(1), np.einsum("sa,sat->st", policy, NEXT)
    return np.linalg.solve(np.eye(STATES) - GAMMA * moved, gained)


def value_of(policy: Floats) -> float:
    """Mean discounted return."""
    return float(START @ values_of(policy))


@cache
def _played(episodes: int, seed: int) -> tuple[Ints, Ints, Ints]:
    """States and actions of a uniformly random behavior, and offsets, episode after episode."""
    random = np.random.default_rng(seed)
    states = random.choice(STATES, episodes, p=START)
    episode, steps = np.arange(episodes), []
    while len(states):
        actions = random.integers(0, ACTIONS, len(states))
        steps.append(np.stack([episode, states, actions]))
        upto = np.cumsum(NEXT[states, actions], axis=1)
        following = (random.random((len(states), 1)) >= upto).sum(1)
        goes_on = following < STATES
        states, episode = following[goes_on], episode[goes_on]
    table = np.concatenate(steps, axis=1)
    table = table[:, np.argsort(table[0], kind="stable")]
    return table[1], table[2], np.concatenate(([0], np.cumsum(np.bincount(table[0]))))


def recorded(episodes: int, seed: int, policy: Floats) -> tuple[Floats, Floats, Ints]:
    """Log-probabilities of a policy, rewards and offsets of the episodes of a uniformly random behavior."""
    states, actions, offsets = _played(episodes, seed)
    return np.log(policy[states, actions]), REWARDS[states, actions], offsets
