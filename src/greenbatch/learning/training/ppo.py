"""Proximal policy optimization over packed decisions (Schulman et al. 2017), with two-part actions.

Losses are plain functions; ``Learner`` holds the networks and their two Adam optimizers and performs the updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from greenbatch.learning.adam import Adam
from greenbatch.learning.networks import segments
from greenbatch.learning.networks.layers import Actor, Critic
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.training.loads import Load, loads
from greenbatch.learning.training.rollout import Trajectories


@dataclass(frozen=True)
class UpdateSettings:
    """Settings of an update. Defaults: GAS-MARL as published."""

    passes: int = 8
    """Passes of the actor over the epoch."""
    critic_passes: int | None = None
    """Passes of the critic; None: as many as the actor's. A KL stop does not stop the critic."""
    minibatch: int = 256
    """Decisions per minibatch; 0: the whole epoch. The last minibatch of a pass may be smaller, and those of networks
    with a memory consist of whole trajectories."""
    clip: float = 0.2
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    target_kl: float | None = None
    """Stop the actor after the first pass whose mean KL exceeds 1.5 times this. [nat]"""
    max_gradient_norm: float | None = 0.5
    """For actor and critic separately; None: no clipping."""
    actor_rate: float = 1e-4
    critic_rate: float = 5e-4
    adam_epsilon: float = 1e-6


class Report(NamedTuple):
    """Means over an update's minibatches."""

    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    """Approximate KL of the actor's last pass [nat]."""
    clipped: float
    """Fraction of decisions whose ratio is outside the clipping interval."""
    gradient_norm: float
    """Gradient norm of the actor, before clipping."""
    passes: int
    """Passes of the actor."""
    minibatches: int


def likelihood(actor: Actor, batch: Batch, rows: Tensor, delays: Tensor) -> tuple[Tensor, Tensor]:
    """Joint log-probability and entropy [nat] of job and delay, each (A,).

    The entropy of the delay is conditional on the chosen row.
    """
    chosen = batch.queue_offsets[:-1] + rows
    logits, delay_logits = actor.evaluate(batch, chosen)
    scores = segments.log_softmax(logits, batch.queue_offsets, batch.selectable, batch.queue_owner)
    joint, entropy = scores[chosen], segments.entropy(scores, batch.queue_offsets, batch.queue_owner)
    if delay_logits is None:
        return joint, entropy
    delay_scores = torch.log_softmax(delay_logits.masked_fill(~batch.delays, segments.NEVER), 1)
    joint = joint + delay_scores.gather(1, delays.unsqueeze(1)).squeeze(1)
    return joint, entropy - (delay_scores.exp() * delay_scores).sum(1)


def policy_loss(new: Tensor, old: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """Clipped surrogate loss -min(r A, clip(r, 1 - clip, 1 + clip) A) per decision: (A,)."""
    ratio = (new - old).exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * advantages)


class Learner:
    """Actor and critic with their optimizers."""

    def __init__(self, actor: Actor, critic: Critic | None, settings: UpdateSettings) -> None:
        self.actor, self.critic, self.settings = actor, critic, settings
        self.actor_optimizer = self._adam(actor, settings.actor_rate)
        self.critic_optimizer = None if critic is None else self._adam(critic, settings.critic_rate)

    @property
    def modules(self) -> dict[str, torch.nn.Module]:
        """What a checkpoint contains of networks, by name."""
        return {"actor": self.actor} | ({} if self.critic is None else {"critic": self.critic})

    @property
    def optimizers(self) -> dict[str, Adam]:
        """What a checkpoint contains of optimizers, by name."""
        found: dict[str, Adam] = {"actor_adam": self.actor_optimizer}
        return found if self.critic_optimizer is None else {**found, "critic_adam": self.critic_optimizer}

    def _adam(self, module: torch.nn.Module, rate: float) -> Adam:
        return Adam(module.parameters(), rate, self.settings.adam_epsilon)

    def update(
        self,
        trajectories: Trajectories,
        advantages: NDArray[np.float64],
        targets: NDArray[np.float64] | None,
        generator: torch.Generator,
        settings: UpdateSettings | None = None,
    ) -> Report:
        """One epoch's update.

        Args:
            trajectories: collected with the current networks.
            advantages: (N,), used as they are, normalized or not.
            targets: (N,), or with costs (N, 1 + K), targets of the critic; None without a critic.
            generator: shuffles the minibatches (on the CPU).
            settings: settings of this epoch, including learning rates, if they follow a schedule.
        """
        settings = self.settings if settings is None else settings
        self.actor_optimizer.rate = settings.actor_rate
        if self.critic_optimizer is not None:
            self.critic_optimizer.rate = settings.critic_rate
        device = next(self.actor.parameters()).device
        epoch = _Epoch(trajectories, advantages, targets, device, whole=self.actor.memory > 0)
        critic_passes = settings.passes if settings.critic_passes is None else settings.critic_passes
        critic_passes = 0 if self.critic is None else critic_passes
        meter, acting, passes = _Meter(), True, 0
        with _Second(device) as second:
            for number in range(max(settings.passes, critic_passes)):
                acting = acting and number < settings.passes
                valuing = number < critic_passes
                if not (acting or valuing):
                    break
                kl = 0.0
                for part in self._parts(epoch, settings, generator, second, meter, valuing=valuing):
                    if acting:
                        kl += self._actor_step(part, settings, meter) * len(part.rows)
                if acting:
                    passes, meter.kl = passes + 1, kl / len(epoch)
                    acting = settings.target_kl is None or meter.kl <= 1.5 * settings.target_kl
        return meter.report(passes)

    def _parts(
        self,
        epoch: _Epoch,
        settings: UpdateSettings,
        generator: torch.Generator,
        second: _Second,
        meter: _Meter,
        *,
        valuing: bool,
    ) -> Iterator[_Part]:
        """Minibatches of a pass for the actor; meanwhile the critic is updated and the next minibatch is gathered."""
        shuffled = loads(epoch.decisions.queued.cpu(), settings.minibatch, epoch.offsets, generator)
        part = self._gather(epoch, shuffled[0])

        def meanwhile(part: _Part, chosen: Load | None) -> _Part | None:
            if valuing:
                self._critic_step(part, settings, meter)
            return None if chosen is None else self._gather(epoch, chosen)

        for chosen in (*shuffled[1:], None):
            following = second.begin(meanwhile, part, chosen)
            yield part
            prepared = following()
            if prepared is not None:
                part = prepared

    def _gather(self, epoch: _Epoch, chosen: Load) -> _Part:
        part = epoch.take(chosen)
        self.actor.prepare(part.batch)
        return part

    def _actor_step(self, part: _Part, settings: UpdateSettings, meter: _Meter) -> float:
        new, entropy = likelihood(self.actor, part.batch, part.rows, part.delays)
        losses = policy_loss(new, part.old, part.advantages, settings.clip)
        loss = losses.mean()
        total = loss - settings.entropy * entropy.mean() if settings.entropy else loss
        self.actor_optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]  # torch leaves backward untyped
        norm = self.actor_optimizer.clip(settings.max_gradient_norm)
        self.actor_optimizer.step()
        with torch.no_grad():
            change = new - part.old
            kl = -change.mean()
            clipped = (change.exp() - 1.0).abs().gt(settings.clip).float().mean()
        meter.actor += torch.stack([loss.detach(), entropy.detach().mean(), clipped, norm]).cpu()
        meter.acted += 1
        return float(kl)

    def _critic_step(self, part: _Part, settings: UpdateSettings, meter: _Meter) -> None:
        critic, optimizer = self.critic, self.critic_optimizer
        if critic is None or optimizer is None:
            return
        loss = (critic(part.batch) - part.targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.clip(settings.max_gradient_norm)
        optimizer.step()
        meter.value_loss += float(loss.detach())
        meter.valued += 1


class _Part(NamedTuple):
    """A minibatch."""

    batch: Batch
    rows: Tensor
    delays: Tensor
    old: Tensor
    advantages: Tensor
    targets: Tensor


class _Epoch:
    """An epoch's decisions with the inputs of the losses, on the device of the networks."""

    def __init__(
        self,
        trajectories: Trajectories,
        advantages: NDArray[np.float64],
        targets: NDArray[np.float64] | None,
        device: torch.device,
        *,
        whole: bool,
    ) -> None:
        """Move all of it; ``whole``: the networks have a memory and need whole trajectories."""
        self.device, self.offsets = device, torch.from_numpy(trajectories.offsets) if whole else None
        numbers = advantages if targets is None else targets
        self.decisions = trajectories.decisions.to(device)
        self.columns = (
            trajectories.rows.to(device),
            trajectories.delays.to(device),
            trajectories.log_probabilities.to(device),
            torch.as_tensor(advantages, dtype=torch.float32, device=device),
            torch.as_tensor(numbers, dtype=torch.float32, device=device),
        )

    def __len__(self) -> int:
        return len(self.decisions)

    def take(self, chosen: Load) -> _Part:
        """The decisions ``chosen`` (M,)."""
        decisions, sequences = chosen.decisions.to(self.device), chosen.sequences
        sequences = None if sequences is None else sequences.to(self.device)
        return _Part(self.decisions.take(decisions, sequences), *(column[decisions] for column in self.columns))


class _Second:
    """Runs the critic's half of the work in parallel with the actor's, on a CPU with at least two threads.

    Actor and critic share no parameters, so the result is the same either way.
    """

    def __init__(self, device: torch.device) -> None:
        self.threads = torch.get_num_threads()
        self.pool: ThreadPoolExecutor | None = None
        if device.type == "cpu" and self.threads > 1:
            half = self.threads // 2
            self.pool = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(half,))

    def __enter__(self) -> _Second:
        if self.pool is not None:
            torch.set_num_threads(self.threads - self.threads // 2)
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()
            torch.set_num_threads(self.threads)

    def begin(
        self, work: Callable[[_Part, Load | None], _Part | None], part: _Part, chosen: Load | None
    ) -> Callable[[], _Part | None]:
        """Start work; the returned function waits for its result."""
        if self.pool is None:
            return lambda: work(part, chosen)
        return self.pool.submit(work, part, chosen).result


class _Meter:
    """Sums over an update's minibatches."""

    def __init__(self) -> None:
        self.actor = torch.zeros(4)
        self.acted = self.valued = 0
        self.value_loss = self.kl = 0.0

    def report(self, passes: int) -> Report:
        """Means."""
        loss, entropy, clipped, norm = (self.actor / max(self.acted, 1)).tolist()
        value_loss = self.value_loss / max(self.valued, 1)
        return Report(loss, value_loss, entropy, self.kl, clipped, norm, passes, max(self.acted, self.valued))
