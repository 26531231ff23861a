"""A classic control task: our PPO balances a pole about as well as stable-baselines3's with the same settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from small_env import Observation

from greenbatch.learning.networks import build
from greenbatch.learning.training.advantages import gae, normalized
from greenbatch.learning.training.ppo import Learner, UpdateSettings
from greenbatch.learning.training.rollout import collect, play
from greenbatch.presets.shapes import Shapes

STEPS, BATCH, MINIBATCH, RATE = 3000, 1024, 128, 3e-3
SHAPES = Shapes(queue=("left", "right"), queue_rows=2, empty=(0.0, 0.0), state=("x", "v", "angle", "spin"))
TESTED = 3
"""Episodes of the comparison; 500 is the most that one can reach."""


class Poles:
    """Several poles with the interface of ``BatchEnv``: two rows, push left and push right; the pole is the state."""

    def __init__(self, environments: int) -> None:
        self.environments = environments
        self.values, self.now_s = np.zeros((environments, 1)), np.zeros(environments)
        self._poles = [gymnasium.make("CartPole-v1") for _ in range(environments)]
        self._states: dict[int, Any] = {}

    def reset(self, starts: Sequence[int]) -> Observation:
        self.values[:] = 0.0
        self._states = {number: self._poles[number].reset(seed=int(seed))[0] for number, seed in enumerate(starts)}
        return self._show()

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray]:
        alive, ended = list(self._states), []
        for number, (row, _) in zip(alive, actions, strict=True):
            state, reward, fallen, late, _ = self._poles[number].step(int(row))
            self.values[number] += reward
            self._states[number] = state
            ended.append(fallen or late)
        self._states = {number: state for number, state in self._states.items() if not ended[alive.index(number)]}
        return self._show(), np.ones(len(alive)), np.array(ended)

    def _show(self) -> Observation:
        alive = np.array(list(self._states), dtype=np.int64)
        count = len(alive)
        return Observation(
            environment=alive,
            queue=np.tile(np.eye(2, dtype=np.float32), (count, 1)),
            queue_offsets=2 * np.arange(count + 1),
            selectable=np.ones(2 * count, dtype=bool),
            running=np.zeros((0, 0), dtype=np.float32),
            running_offsets=np.zeros(count + 1, dtype=np.int64),
            supply=np.zeros((count, 0, 0), dtype=np.float32),
            slot=np.zeros(count, dtype=np.int64),
            state=np.array(list(self._states.values()), dtype=np.float32).reshape(count, 4),
            delays=np.ones((count, 1), dtype=bool),
            image=np.zeros((count, 2, 0, 0), dtype=np.uint8),
        )


def _ours() -> float:
    """Mean return of greedy episodes after training on about as many steps."""
    actor, critic = build({"kind": "context"}, SHAPES, 0)
    settings = UpdateSettings(passes=10, minibatch=MINIBATCH, actor_rate=RATE, critic_rate=RATE, adam_epsilon=1e-5)
    learner, env = Learner(actor, critic, settings), Poles(64)
    generator = torch.Generator().manual_seed(0)
    done, length, seed = 0, 20.0, 0
    while done < STEPS:
        windows = int(np.clip(BATCH / length, 4, 64))
        played = collect(env, range(seed, seed + windows), actor, critic, generator)
        advantages = gae(played.rewards, played.values, played.offsets, 0.99, 0.95)
        learner.update(played, normalized(advantages), advantages + played.values, generator)
        done, length, seed = done + len(played.rows), len(played.rows) / windows, seed + windows
    return float(play(env, range(10_000, 10_000 + TESTED), actor)[0].mean())


def _sb3() -> float:
    import stable_baselines3 as sb3

    env = gymnasium.make("CartPole-v1")
    model = sb3.PPO("MlpPolicy", env, n_steps=BATCH, batch_size=MINIBATCH, learning_rate=RATE, seed=0, device="cpu")
    model.learn(STEPS)
    returns = []
    for seed in range(10_000, 10_000 + TESTED):
        state, total, over = env.reset(seed=seed)[0], 0.0, False
        while not over:
            state, reward, fallen, late, _ = env.step(int(model.predict(state, deterministic=True)[0]))
            total, over = total + float(reward), fallen or late
        returns.append(total)
    return float(np.mean(returns))


def test_a_pole_is_balanced_about_as_well_as_by_stable_baselines3() -> None:
    ours, theirs = _ours(), _sb3()
    assert theirs > 150
    assert ours > 150
    assert ours >= 0.6 * theirs
