"""Advantages: generalized advantage estimation, or relative to other rollouts of the same window.

All arrays hold decisions, trajectory after trajectory; ``offsets`` int64 (W + 1,) marks where each begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _columns(offsets: Integers) -> tuple[Integers, Integers]:
    """Trajectory and step of each decision."""
    lengths = np.diff(offsets)
    return np.repeat(np.arange(len(lengths)), lengths), np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)


def rewards_to_go(rewards: Floats, offsets: Integers, gamma: float | Floats = 1.0) -> Floats:
    """Discounted sum of the rewards from each decision to its trajectory's end: (N,)."""
    return gae(rewards, np.zeros(len(rewards)), offsets, gamma, 1.0)


def gae(
    rewards: Floats, values: Floats, offsets: Integers, gamma: float | Floats = 1.0, trace: float = 0.97
) -> Floats:  # fmt: skip
    """Generalized advantage estimates (Schulman et al. 2016, eq. 16) of complete trajectories.

    A_t = sum over k of (gamma * trace)^k * (r_{t+k} + gamma * V_{t+k+1} - V_{t+k}); the value after the last decision
    is 0 because all trajectories are complete. Where discounts differ, their product replaces the power.

    Args:
        rewards: (N,) float64.
        values: (N,) values of the critic.
        offsets: int64 (W + 1,); an empty trajectory is allowed.
        gamma: discount, 0 to 1, or those from each decision to the next, (N,).
        trace: lambda, 0 to 1.

    Returns:
        Advantages (N,); advantage + value is the critic's target.
    """
    trajectory, step = _columns(offsets)
    steps = int(np.diff(offsets).max(initial=0))
    table = np.zeros((steps + 1, len(offsets) - 1))
    discount, delta = np.full(len(rewards), gamma), rewards - values
    onward = np.zeros_like(table)
    onward[step, trajectory] = discount * trace
    follows = step + 1 < np.diff(offsets)[trajectory]
    delta[follows] += discount[follows] * values[1:][follows[:-1]]
    table[step, trajectory] = delta
    for row in range(steps - 1, -1, -1):
        table[row] += onward[row] * table[row + 1]
    result: Floats = table[step, trajectory]
    return result


def group_relative(
    rewards: Floats, offsets: Integers, group: Integers, *, dense: bool = False, scaled: bool = True
) -> Floats:
    """Advantages without a critic: rollouts of one window are each other's baseline (GRPO, Shao et al. 2024).

    Args:
        rewards: (N,).
        offsets: int64 (W + 1,).
        group: int64 (W,); trajectories of the same window have the same number.
        dense: instead of the whole return, compare each decision's reward to go with its mean over the group at the
            same step (over rollouts that are still running).
        scaled: divide by the standard deviation (population) of the group's returns; 0 for groups without spread.

    Returns:
        (N,).
    """
    trajectory, step = _columns(offsets)
    to_go = rewards_to_go(rewards, offsets)
    _, group = np.unique(group, return_inverse=True)
    groups = int(group.max(initial=-1)) + 1
    returns = np.zeros(len(offsets) - 1)
    begun = np.diff(offsets) > 0
    returns[begun] = to_go[offsets[:-1][begun]]
    size = np.bincount(group, minlength=groups)
    mean = np.bincount(group, returns, minlength=groups) / size
    spread = np.sqrt(np.bincount(group, (returns - mean[group]) ** 2, minlength=groups) / size)
    if dense:
        cell = group[trajectory] * (int(step.max(initial=0)) + 1) + step
        baseline = (np.bincount(cell, to_go) / np.maximum(np.bincount(cell), 1))[cell]
        result: Floats = to_go - baseline
    else:
        result = (returns - mean[group])[trajectory]
    if scaled:
        flat = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
        factor = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, spread))
        result = result * factor[group[trajectory]]
    return result


def normalized(advantages: Floats, *, unbiased: bool = True, epsilon: float = 1e-9) -> Floats:
    """(A - mean) / (std + epsilon) over a whole epoch, as published (GAS-MARL: unbiased, 1e-9)."""
    if len(advantages) < 2:
        return np.zeros_like(advantages)
    result: Floats = (advantages - advantages.mean()) / (advantages.std(ddof=int(unbiased)) + epsilon)
    return result
