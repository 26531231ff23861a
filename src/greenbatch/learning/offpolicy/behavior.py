"""Who acts while the buffer fills: rules that teach, random choice, the actor with some random actions, or a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from greenbatch.datasets.tables import Arrays, Tables
from greenbatch.errors import InputError
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


class Teachers:
    """Rules that take the row of the largest weighted sum of columns; windows have them in turn.

    Further actions, such as waiting, are taken only if no job can be.
    """

    def __init__(self, rules: Sequence[Mapping[str, float]], columns: Sequence[str], extras: int) -> None:
        """Prepare the rules.

        Args:
            rules: column of the queue -> weight.
            columns: columns of the queue.
            extras: last rows of the queue that are no jobs.

        Raises:
            InputError: there is no such column.
        """
        for number, rule in enumerate(rules):
            for name in rule:
                if name not in columns:
                    field, fix = f"training.off_policy.teachers.{number}", "one of " + ", ".join(columns)
                    raise InputError(f"the queue has no column {name!r}", field=field, fix=fix)
        weights = [[float(rule.get(name, 0.0)) for name in columns] for rule in rules]
        self.weights, self.extras = torch.tensor(weights), extras

    def __call__(self, batch: Batch, window: Ints) -> Tensor:
        """Rows int64 (A,); the first of equal ones."""
        rule = torch.from_numpy(window % len(self.weights)).to(batch.queue.device)[batch.queue_owner]
        scores = (batch.queue * self.weights.to(batch.queue.device)[rule]).sum(1)
        for last in range(self.extras):
            scores[batch.queue_offsets[1:] - 1 - last] = segments.NEVER / 2
        return segments.arg_max(scores, batch.queue_offsets, batch.selectable)


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
        observation = env.reset(load)
        while len(observation.environment):
            windows.append(np.array(observation.environment))
            seen.append(tables.arrays(observation))
            chosen = behavior(as_batch(observation, device), windows[-1] + first).cpu().numpy()
            rows.append(chosen)
            observation, gained, _ = env.step(np.stack([chosen, np.zeros_like(chosen)], 1))
            rewards.append(np.array(gained, dtype=np.float64))
        yield _sorted(seen, rows, rewards, windows, env.values[: len(load)].copy())


def _sorted(seen: list[Arrays], rows: list[Ints], rewards: list[Floats], windows: list[Ints], terms: Floats) -> Played:
    """From the order of steps to that of trajectories."""
    window, asked, gained = np.concatenate(windows), np.concatenate(rows), np.concatenate(rewards)
    order = np.argsort(window, kind="stable")
    lengths = np.bincount(window, minlength=len(terms))
    returns: Floats = np.bincount(window, gained, len(terms)).astype(np.float64)
    return Played(
        seen={name: np.concatenate([each[name] for each in seen])[order] for name in seen[0]},
        actions=asked[order], rewards=gained[order], offsets=np.concatenate(([0], np.cumsum(lengths))), asked=asked,
        returns=returns, terms=terms,
    )  # fmt: skip
