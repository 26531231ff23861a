"""What fills the buffer: random actions, the actor with some random actions, schedulers, or a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from greenbatch.datasets.dataset import Dataset
from greenbatch.datasets.recording import Recording, play
from greenbatch.datasets.tables import Arrays, Tables
from greenbatch.learning.networks import segments
from greenbatch.learning.networks.layers import Actor
from greenbatch.learning.networks.observations import Batch, as_batch
from greenbatch.learning.training.rollout import Environments

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Behavior(Protocol):
    """Chooses rows of an observation."""

    def __call__(self, batch: Batch, window: Ints) -> Tensor:
        """Rows int64 (A,), for decisions of the windows numbered ``window`` (A,)."""
        ...


class Exploring:
    """The actor's policy, but a random row among those allowed with probability ``epsilon`` (epsilon-greedy)."""

    def __init__(self, actor: Actor | None, epsilon: float, generator: torch.Generator) -> None:
        self.actor, self.epsilon, self.generator = actor, epsilon, generator

    def __call__(self, batch: Batch, window: Ints) -> Tensor:
        """Rows int64 (A,)."""
        del window
        rows = self._sample(torch.zeros_like(batch.queue[:, 0]), batch)
        if self.actor is None:
            return rows
        own = self._sample(self.actor(batch), batch)
        coin = torch.rand(rows.shape[0], generator=self.generator, device=rows.device)
        return torch.where(coin < self.epsilon, rows, own)

    def _sample(self, logits: Tensor, batch: Batch) -> Tensor:
        scores = segments.log_softmax(logits, batch.queue_offsets, batch.selectable, batch.queue_owner)
        return segments.sample(scores, batch.queue_offsets, self.generator)


class Recorded:
    """Rows that were chosen before, in the order in which they were asked for."""

    def __init__(self, rows: Ints) -> None:
        self.rows, self.at = torch.from_numpy(np.asarray(rows, np.int64)), 0

    def __call__(self, batch: Batch, window: Ints) -> Tensor:
        """Rows int64 (A,)."""
        del batch
        self.at += len(window)
        return self.rows[self.at - len(window) : self.at]


class Played(NamedTuple):
    """Complete trajectories of some windows."""

    seen: Arrays
    """Fields of the N decisions, trajectory after trajectory."""
    actions: Ints
    """Chosen rows, (N,)."""
    rewards: Floats
    """(N,)."""
    offsets: Ints
    """(W + 1,)."""
    time_s: Floats
    """When, (N,). [s]"""
    asked: Ints
    """Chosen rows in the order in which they were asked for, (N,)."""
    returns: Floats
    """Sum of the rewards of each trajectory, (W,)."""
    terms: Floats
    """Value of every reward term at the end of each, (W, T)."""


@torch.no_grad()
def play_loads(
    env: Environments, starts: Sequence[int], tables: Tables, behavior: Behavior, device: torch.device | str = "cpu"
) -> Iterator[Played]:
    """Simulate windows to their ends, as many at a time as the environment holds."""
    for first in range(0, len(starts), env.environments):
        load = starts[first : first + env.environments]
        seen: list[Arrays] = []
        rows: list[Ints] = []
        rewards: list[Floats] = []
        windows: list[Ints] = []
        times: list[Floats] = []
        observation = env.reset(load)
        while len(observation.environment):
            windows.append(np.array(observation.environment))
            seen.append(tables.arrays(observation))
            times.append(env.now_s[observation.environment])
            chosen = behavior(as_batch(observation, device), windows[-1] + first).cpu().numpy()
            rows.append(chosen)
            observation, gained, _ = env.step(np.stack([chosen, np.zeros_like(chosen)], 1))
            rewards.append(np.array(gained, dtype=np.float64))
        yield _sorted(seen, rows, rewards, windows, times, env.values[: len(load)].copy())


def recorded_loads(made: Recording, tables: Tables) -> Iterator[Played]:
    """What schedulers decide, as many windows at a time as the recording's environment holds."""
    for played in play(made):
        yield Played(
            seen=tables.arrays(played.seen), actions=played.actions, rewards=played.rewards, offsets=played.offsets,
            time_s=played.time_s, asked=played.actions, returns=_sums(played.rewards, played.offsets),
            terms=played.values,
        )  # fmt: skip


def dataset_load(dataset: Dataset) -> Played:
    """All decisions of a dataset."""
    terms = [_sums(each, dataset.offsets) for each in dataset.increments.values()]
    return Played(
        seen=dataset.observations, actions=dataset.actions, rewards=dataset.rewards, offsets=dataset.offsets,
        time_s=dataset.time_s, asked=dataset.actions, returns=_sums(dataset.rewards, dataset.offsets),
        terms=np.stack(terms, axis=1),
    )  # fmt: skip


def _sums(numbers: Floats, offsets: Ints) -> Floats:
    """Sum of each trajectory's numbers, (W,)."""
    total = np.append(0.0, np.cumsum(numbers))
    return np.asarray(total[offsets[1:]] - total[offsets[:-1]])


def _sorted(
    seen: list[Arrays], rows: list[Ints], rewards: list[Floats], windows: list[Ints], times: list[Floats], terms: Floats
) -> Played:  # fmt: skip
    """From the order of steps to that of trajectories."""
    window, asked, gained = np.concatenate(windows), np.concatenate(rows), np.concatenate(rewards)
    order = np.argsort(window, kind="stable")
    lengths = np.bincount(window, minlength=len(terms))
    returns: Floats = np.bincount(window, gained, len(terms)).astype(np.float64)
    return Played(
        seen={name: np.concatenate([each[name] for each in seen])[order] for name in seen[0]},
        actions=asked[order], rewards=gained[order], offsets=np.concatenate(([0], np.cumsum(lengths))),
        time_s=np.concatenate(times)[order], asked=asked, returns=returns, terms=terms,
    )  # fmt: skip
