"""Rollouts: simulate windows in a batched environment with a network as policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from greenbatch.learning.networks import segments
from greenbatch.learning.networks.layers import Actor, Critic
from greenbatch.learning.networks.observations import Batch, Copy, Decisions, Observed, as_batch, copied, stack
from greenbatch.learning.training.loads import loads

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


_LOAD = 2048
"""Decisions per batch when values are computed."""


class Environments(Protocol):
    """The part of ``greenbatch.envs.batch.BatchEnv`` that rollouts use."""

    @property
    def environments(self) -> int:
        """Maximum number of parallel simulations."""
        ...

    @property
    def values(self) -> Floats:
        """(environments, T): current value of every reward term."""
        ...

    @property
    def now_s(self) -> Floats:
        """(environments,): clock of every simulation. [s]"""
        ...

    def reset(self, starts: Sequence[int]) -> Observed:
        """Start one simulation per window, given their first jobs."""
        ...

    def step(self, actions: Integers) -> tuple[Observed, Floats, NDArray[np.bool_]]:
        """Apply one decision per simulation, (A, 2); return the next observation, rewards (A,) and ended (A,)."""
        ...


@dataclass(frozen=True)
class Trajectories:
    """Observations, actions and rewards of N decisions, trajectory after trajectory (W of them)."""

    decisions: Decisions
    offsets: Integers
    """(W + 1,): where the decisions of each trajectory begin."""
    time_s: Floats
    """(N,): when. [s]"""
    rows: Tensor
    """int64 (N,): chosen row within the decision's rows."""
    delays: Tensor
    """int64 (N,): chosen delay."""
    log_probabilities: Tensor
    """float32 (N,): joint log-probability of row and delay under the policy that chose them."""
    values: Floats
    """(N,), or with costs (N, 1 + K): values of the critic, of the reward and of every cost; 0 without a critic."""
    rewards: Floats
    """(N,)."""
    returns: Floats
    """(W,): sum of rewards."""
    terms: Floats
    """(W, T): value of every reward term at the end."""
    costs: Floats
    """(N, K): by how much the reward terms that are costs have changed until the next decision, or the end."""


class Choice:
    """Chooses rows and delays: sampled with a generator, arg-max without one."""

    def __init__(
        self,
        actor: Actor,
        generator: torch.Generator | None,
        device: torch.device | str = "cpu",
        *,
        simulations: int,
    ) -> None:
        """Prepare for a number of simulations; an actor with a memory knows nothing of them yet."""
        self.actor, self.generator, self.device = actor, generator, device
        self.memory = torch.zeros(simulations, actor.memory, device=device)

    def __call__(self, batch: Batch, simulation: Integers) -> tuple[Tensor, Tensor, Tensor]:
        """Rows (A,), delays (A,), joint log-probabilities (A,) at the next decision of simulations (A,)."""
        if not self.actor.memory:
            return self._choose(batch, *self.actor.encode(batch))
        known = torch.from_numpy(simulation).to(self.device)
        batch = replace(batch, memory=self.memory[known])
        logits, encoded = self.actor.encode(batch)
        self.memory[known] = encoded[-1]
        return self._choose(batch, logits, encoded)

    def _choose(self, batch: Batch, logits: Tensor, encoded: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
        scores = segments.log_softmax(logits, batch.queue_offsets, batch.selectable, batch.queue_owner)
        if self.generator is None:
            rows = segments.arg_max(scores, batch.queue_offsets, batch.selectable)
        else:
            rows = segments.sample(scores, batch.queue_offsets, self.generator)
        chosen = batch.queue_offsets[:-1] + rows
        joint = scores[chosen]
        delay_logits = self.actor.delay_logits(batch, encoded, chosen)
        if delay_logits is None:
            return rows, torch.zeros_like(rows), joint
        delay_scores = torch.log_softmax(delay_logits.masked_fill(~batch.delays, segments.NEVER), 1)
        delays = delay_scores.argmax(1) if self.generator is None else _sample_rows(delay_scores, self.generator)
        return rows, delays, joint + delay_scores.gather(1, delays.unsqueeze(1)).squeeze(1)


def _sample_rows(log_probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Sample one column per row of (A, D), with the packed sampler on segments of equal length."""
    count, options = log_probabilities.shape
    offsets = torch.arange(count + 1, device=log_probabilities.device) * options
    return segments.sample(log_probabilities.reshape(-1), offsets, generator)


@torch.no_grad()
def values_of(
    critic: Critic, decisions: Decisions, device: torch.device | str = "cpu", offsets: Integers | None = None
) -> Floats:  # fmt: skip
    """Values of all decisions (N,), computed in a few large batches of similar length.

    Args:
        critic: the critic.
        decisions: trajectory after trajectory (N).
        device: device of the critic.
        offsets: where the trajectories begin (W + 1,), for a critic with a memory.
    """
    whole = None if offsets is None else torch.from_numpy(offsets)
    made = loads(decisions.queued, _LOAD, whole)
    decisions = decisions.to(device)
    parts = [critic(decisions.take(*load)).double().cpu() for load in made]
    order = torch.cat([load.decisions for load in made])
    values: Floats = torch.cat(parts)[torch.argsort(order)].numpy()
    return values


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch on one thread: matrix products of a step are so small that a second thread would mostly spin."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Log:
    """Records of a rollout, one entry per step."""

    def __init__(self) -> None:
        self.observations: list[Copy] = []
        self.trajectory: list[Integers] = []
        self.time_s: list[Floats] = []
        self.rows: list[Tensor] = []
        self.delays: list[Tensor] = []
        self.log_probabilities: list[Tensor] = []
        self.rewards: list[Floats] = []
        self.costs: list[Floats] = []


@torch.no_grad()
def collect(
    env: Environments,
    starts: Sequence[int],
    actor: Actor,
    critic: Critic | None,
    generator: torch.Generator,
    device: torch.device | str = "cpu",
    costs: Sequence[int] = (),
) -> Trajectories:
    """Simulate all windows to their ends with sampled actions and return the trajectories.

    Args:
        env: a batched environment; if there are more windows than it holds, they are simulated in several loads.
        starts: first job of each window (W); repeat windows for group-relative advantages.
        actor: the policy.
        critic: without one, ``values`` are 0.
        generator: on ``device``; the only source of randomness.
        device: device of the networks.
        costs: numbers of the reward terms that are costs (K); the critic has a value of each, after the reward's.
    """
    log = _Log()
    choose = Choice(actor, generator, device, simulations=len(starts))

    def act(observation: Observed, first: int) -> Integers:
        copy = copied(observation)
        simulation = copy.environment + first
        rows, delays, joint = choose(as_batch(copy, device), simulation)
        log.observations.append(copy)
        log.trajectory.append(simulation)
        log.time_s.append(env.now_s[copy.environment])
        for name, part in zip(("rows", "delays", "log_probabilities"), (rows, delays, joint), strict=True):
            getattr(log, name).append(part.cpu())
        return torch.stack([rows, delays], 1).cpu().numpy()

    with _one_thread():
        returns, terms = _play(env, starts, act, log, costs)
        return _sorted(log, returns, terms, critic, device, whole=actor.memory > 0)


@torch.no_grad()
def play(
    env: Environments,
    starts: Sequence[int],
    actor: Actor,
    generator: torch.Generator | None = None,
    device: torch.device | str = "cpu",
) -> tuple[Floats, Floats]:
    """Simulate all windows; return only returns (W,) and reward terms (W, T). Without a generator: arg-max."""
    choose = Choice(actor, generator, device, simulations=len(starts))

    def act(observation: Observed, first: int) -> Integers:
        rows, delays, _ = choose(as_batch(observation, device), observation.environment + first)
        return torch.stack([rows, delays], 1).cpu().numpy()

    with _one_thread():
        return _play(env, starts, act, _Log())


def _play(
    env: Environments,
    starts: Sequence[int],
    act: Callable[[Observed, int], Integers],
    log: _Log,
    costs: Sequence[int] = (),
) -> tuple[Floats, Floats]:
    """The loop over steps; ``act(observation, first window of this load)`` returns the actions."""
    returns = np.zeros(len(starts))
    terms = np.zeros((len(starts), env.values.shape[1]))
    for first in range(0, len(starts), env.environments):
        load = starts[first : first + env.environments]
        observation = env.reset(load)
        alive = np.array(observation.environment)
        while len(alive):
            actions = act(observation, first)
            before = env.values[alive[:, None], costs] if costs else None
            observation, gained, _ = env.step(actions)
            gained = np.array(gained, dtype=np.float64)
            log.rewards.append(gained)
            if before is not None:
                log.costs.append(env.values[alive[:, None], costs] - before)
            returns[alive + first] += gained
            alive = np.array(observation.environment)
        terms[first : first + len(load)] = env.values[: len(load)]
    return returns, terms


def _sorted(
    log: _Log, returns: Floats, terms: Floats, critic: Critic | None, device: torch.device | str, *, whole: bool
) -> Trajectories:
    """Reorder from time-major to trajectory-major; ``whole``: the critic has a memory."""
    trajectory = np.concatenate(log.trajectory)
    order = np.argsort(trajectory, kind="stable")
    place = torch.from_numpy(order)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(trajectory, minlength=len(returns)))]).astype(np.int64)
    decisions = stack(log.observations).reordered(place)
    values = np.zeros(len(order))
    if critic is not None:
        values = values_of(critic, decisions, device, offsets if whole else None)
    return Trajectories(
        decisions=decisions,
        offsets=offsets,
        time_s=np.concatenate(log.time_s)[order],
        rows=torch.cat(log.rows)[place],
        delays=torch.cat(log.delays)[place],
        log_probabilities=torch.cat(log.log_probabilities)[place],
        values=values,
        rewards=np.concatenate(log.rewards)[order],
        returns=returns,
        terms=terms,
        costs=np.concatenate(log.costs)[order] if log.costs else np.zeros((len(order), 0)),
    )
