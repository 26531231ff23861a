"""Play windows with a policy: a batched environment and a network make trajectories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from greenbatch.learning import segments
from greenbatch.learning.networks.layers import Actor, Critic
from greenbatch.learning.observations import Batch, Copy, Decisions, Observed, as_batch, copied, stack

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


_LOAD = 2048
"""Decisions whose values are computed at once."""


class Environments(Protocol):
    """``greenbatch.envs.batch.BatchEnv``, as far as a rollout knows it."""

    @property
    def environments(self) -> int:
        """How many windows can be played at once."""
        ...

    @property
    def values(self) -> Floats:
        """(environments, T): value so far of every reward term."""
        ...

    def reset(self, starts: Sequence[int]) -> Observed:
        """Begin windows at these first jobs."""
        ...

    def step(self, actions: Integers) -> tuple[Observed, Floats, NDArray[np.bool_]]:
        """One decision each: (A, 2) -> next observation, rewards (A,), ended (A,) of those that acted."""
        ...


@dataclass(frozen=True)
class Trajectories:
    """What was seen, done and got: N decisions, trajectory after trajectory (W of them)."""

    decisions: Decisions
    offsets: Integers
    """(W + 1,): decisions of trajectory w."""
    rows: Tensor
    """int64 (N,): chosen row within the decision's rows."""
    delays: Tensor
    """int64 (N,): chosen delay."""
    log_probabilities: Tensor
    """float32 (N,): of both choices together, when they were made."""
    values: Floats
    """(N,): the critic's; 0 without one."""
    rewards: Floats
    """(N,)."""
    returns: Floats
    """(W,): sum of rewards."""
    terms: Floats
    """(W, T): value of every reward term at the end."""


class Choice:
    """How rows and delays are picked: sampled with a generator, or the largest logit without one."""

    def __init__(self, actor: Actor, generator: torch.Generator | None, device: torch.device | str = "cpu") -> None:
        self.actor, self.generator, self.device = actor, generator, device

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Rows (A,), delays (A,), joint log-probabilities (A,)."""
        logits, encoded = self.actor.encode(batch)
        scores = segments.log_softmax(logits, batch.queue_offsets, batch.selectable, batch.queue_owner)
        if self.generator is None:
            rows = segments.arg_max(scores, batch.queue_offsets, batch.selectable)
        else:
            rows = segments.sample(scores, batch.queue_offsets, self.generator)
        chosen = batch.queue_offsets[:-1] + rows
        together = scores[chosen]
        delay_logits = self.actor.delay_logits(batch, encoded, chosen)
        if delay_logits is None:
            return rows, torch.zeros_like(rows), together
        delay_scores = torch.log_softmax(delay_logits.masked_fill(~batch.delays, segments.NEVER), 1)
        delays = delay_scores.argmax(1) if self.generator is None else _sample_rows(delay_scores, self.generator)
        return rows, delays, together + delay_scores.gather(1, delays.unsqueeze(1)).squeeze(1)


def _sample_rows(log_probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """One column of each row of (A, D) at random: the packed sampler on segments of equal length."""
    count, options = log_probabilities.shape
    offsets = torch.arange(count + 1, device=log_probabilities.device) * options
    return segments.sample(log_probabilities.reshape(-1), offsets, generator)


@torch.no_grad()
def values_of(critic: Critic, decisions: Decisions, device: torch.device | str = "cpu") -> Floats:
    """The critic's values of all decisions (N,): in a few large batches of queues of like length."""
    order = torch.argsort(decisions.queued, descending=True, stable=True)
    decisions = decisions.to(device)
    values = torch.zeros(len(order), dtype=torch.float64)
    for chosen in torch.split(order, _LOAD):
        values[chosen] = critic(decisions.take(chosen.to(device))).double().cpu()
    return values.numpy()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch on one thread: a step's products are so small that a second one mostly waits, and burns its core at it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Log:
    """Grows while windows are played."""

    def __init__(self) -> None:
        self.observations: list[Copy] = []
        self.trajectory: list[Integers] = []
        self.rows: list[Tensor] = []
        self.delays: list[Tensor] = []
        self.log_probabilities: list[Tensor] = []
        self.rewards: list[Floats] = []


@torch.no_grad()
def collect(
    env: Environments,
    starts: Sequence[int],
    actor: Actor,
    critic: Critic | None,
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> Trajectories:
    """Play all windows to their ends with sampled actions and keep everything.

    Args:
        env: a batched environment; more windows than it holds are played one load after another.
        starts: first job of each window (W); the same one several times for group-relative advantages.
        actor: the policy.
        critic: None leaves ``values`` 0.
        generator: on ``device``; the only source of randomness.
        device: where the networks are.
    """
    log = _Log()
    choose = Choice(actor, generator, device)

    def seen(observation: Observed, first: int) -> Integers:
        copy = copied(observation)
        batch = as_batch(copy, device)
        rows, delays, together = choose(batch)
        log.observations.append(copy)
        log.trajectory.append(copy.environment + first)
        for name, part in zip(("rows", "delays", "log_probabilities"), (rows, delays, together), strict=True):
            getattr(log, name).append(part.cpu())
        return torch.stack([rows, delays], 1).cpu().numpy()

    with _one_thread():
        returns, terms = _play(env, starts, seen, log.rewards)
        return _sorted(log, returns, terms, critic, device)


@torch.no_grad()
def play(
    env: Environments,
    starts: Sequence[int],
    actor: Actor,
    generator: torch.Generator | None = None,
    device: torch.device | str = "cpu",
) -> tuple[Floats, Floats]:
    """Play all windows and keep only the results: returns (W,) and reward terms (W, T). Arg-max without generator."""
    choose = Choice(actor, generator, device)

    def seen(observation: Observed, _: int) -> Integers:
        rows, delays, _together = choose(as_batch(observation, device))
        return torch.stack([rows, delays], 1).cpu().numpy()

    with _one_thread():
        return _play(env, starts, seen, [])


def _play(
    env: Environments, starts: Sequence[int], seen: Callable[[Observed, int], Integers], rewards: list[Floats]
) -> tuple[Floats, Floats]:
    """The loop over steps: ``seen(observation, first window of this load)`` gives the actions."""
    returns = np.zeros(len(starts))
    terms = np.zeros((len(starts), env.values.shape[1]))
    for first in range(0, len(starts), env.environments):
        load = starts[first : first + env.environments]
        observation = env.reset(load)
        alive = np.array(observation.environment)
        while len(alive):
            actions = seen(observation, first)
            observation, got, _ = env.step(actions)
            got = np.array(got, dtype=np.float64)
            rewards.append(got)
            returns[alive + first] += got
            alive = np.array(observation.environment)
        terms[first : first + len(load)] = env.values[: len(load)]
    return returns, terms


def _sorted(
    log: _Log, returns: Floats, terms: Floats, critic: Critic | None, device: torch.device | str
) -> Trajectories:
    """From time-major to trajectory-major."""
    trajectory = np.concatenate(log.trajectory)
    order = np.argsort(trajectory, kind="stable")
    place = torch.from_numpy(order)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(trajectory, minlength=len(returns)))]).astype(np.int64)
    decisions = stack(log.observations).reordered(place)
    return Trajectories(
        decisions=decisions,
        offsets=offsets,
        rows=torch.cat(log.rows)[place],
        delays=torch.cat(log.delays)[place],
        log_probabilities=torch.cat(log.log_probabilities)[place],
        values=np.zeros(len(order)) if critic is None else values_of(critic, decisions, device),
        rewards=np.concatenate(log.rewards)[order],
        returns=returns,
        terms=terms,
    )
