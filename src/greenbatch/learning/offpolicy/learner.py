"""Gradient steps of an off-policy actor-critic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from greenbatch.learning.adam import Adam
from greenbatch.learning.networks.layers import Actor
from greenbatch.learning.networks.observations import Batch
from greenbatch.learning.networks.rare import RareActor
from greenbatch.learning.offpolicy import losses
from greenbatch.learning.offpolicy.agent import Agent, Critics, dense, mask_of, of_rows
from greenbatch.learning.offpolicy.critics import COMBINED, PopArt, follow
from greenbatch.presets.off_policy import Loss, OffPolicy

Policy = Callable[[Batch], Tensor]
"""Log-probabilities of the rows, (A, most rows), about ``NEVER`` for those that may not be chosen."""


class Sample(NamedTuple):
    """Transitions of a gradient step."""

    batch: Batch
    """Observations of M decisions."""
    actions: Tensor
    """Chosen rows, int64 (M,)."""
    rewards: Tensor
    """Sums of rewards until the following observation, float32 (M,)."""
    discounts: Tensor
    """Of the value of the following observation, float32 (M,); 0 at the end of a trajectory."""
    following: Batch
    """Observations that follow."""


@dataclass(frozen=True)
class Rates:
    """Learning rates and clipping, the same for the whole training."""

    actor: float = 1e-4
    critic: float = 1e-4
    adam_epsilon: float = 1e-8
    largest_gradient: float | None = 40.0
    """Maximum norm of the gradients of actor, critics and encoder, separately; None: no clipping."""


FIGURES = (
    "actor_loss", "critic_loss", "entropy", "advantage", "copied", "value", "target", "temperature", "gradient_norm",
)  # fmt: skip
"""Means over gradient steps. ``copied`` is the mean weight of copied actions."""


class Learner:
    """Networks with their optimizers.

    A step is that of RARE's Algorithm 6: the losses of critics, encoder and actor are those of the same weights on the
    same transitions, the encoder follows the critics' loss alone, and the target networks follow behind. With a fixed
    ``policy`` the critics learn its values and the actor nothing (`evaluation.fitted`).
    """

    def __init__(self, agent: Agent, settings: OffPolicy, rates: Rates, *, policy: Policy | None = None) -> None:
        self.agent, self.settings, self.rates, self.policy = agent, settings, rates, policy
        self.popart = PopArt(settings.popart_rate).to(_device(agent.actor)) if settings.popart else None
        self.log_temperature = nn.Parameter(
            torch.tensor([math.log(settings.temperature or 1e-15)], device=_device(agent.actor))
        )
        shared = set() if agent.encoder is None else set(agent.encoder.parameters())
        self.actor_optimizer = self._adam((p for p in agent.actor.parameters() if p not in shared), rates.actor)
        self.critic_optimizer = self._adam(agent.critics.parameters(), rates.critic)
        self.encoder_optimizer = None if agent.encoder is None else self._adam(agent.encoder.parameters(), rates.critic)
        self.temperature_optimizer = Adam(
            [self.log_temperature], settings.temperature_lr, betas=(0.5, 0.999), fused=False
        )
        self.taken = 0
        """Gradient steps so far."""
        self._combine = COMBINED[settings.combine]

    @property
    def actor(self) -> Actor:
        """The actor, which becomes the model."""
        return self.agent.actor

    @property
    def modules(self) -> dict[str, nn.Module]:
        """What a checkpoint contains of networks, by name."""
        agent = self.agent
        found: dict[str, nn.Module | None] = {
            "actor": agent.actor, "critics": agent.critics, "targets": agent.targets,
            "target_encoder": agent.target_encoder, "popart": self.popart,
            "temperature": nn.ParameterDict({"log": self.log_temperature}),
        }  # fmt: skip
        return {name: module for name, module in found.items() if module is not None}

    @property
    def optimizers(self) -> dict[str, Adam]:
        """What a checkpoint contains of optimizers, by name."""
        found = {
            "actor_adam": self.actor_optimizer, "critics_adam": self.critic_optimizer,
            "encoder_adam": self.encoder_optimizer, "temperature_adam": self.temperature_optimizer,
        }  # fmt: skip
        return {name: optimizer for name, optimizer in found.items() if optimizer is not None}

    @property
    def loss(self) -> Loss:
        """Loss of the actor in the next step."""
        return "clone" if self.taken < self.settings.warm_up_steps else self.settings.loss

    @property
    def clones(self) -> bool:
        """Whether the next step only copies the buffer's actions."""
        warms_up = self.taken < self.settings.warm_up_steps
        return self.settings.loss == "clone" or (warms_up and not self.settings.warm_up_critics)

    @property
    def holds(self) -> bool:
        """Whether the next step leaves the actor as it is."""
        begins = self.settings.warm_up_steps
        return begins <= self.taken < begins + self.settings.critic_steps

    def step(self, sample: Sample) -> Tensor:
        """Take one gradient step; returns `FIGURES`, shape (9,)."""
        figures = self._clone(sample) if self.clones else self._learn(sample)
        self.taken += 1
        return figures

    def _clone(self, sample: Sample) -> Tensor:
        """Copy the actions; the encoder learns along, as there are no critics yet (super_sac)."""
        agent = self.agent
        log_pi = self._log_pi(self._features(sample.batch), sample.batch)
        loss = losses.copying(log_pi, sample.actions, torch.ones_like(sample.rewards))
        self._zero()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves backward untyped
        norm = self._clip(self.actor_optimizer)
        self.actor_optimizer.step()
        if self.encoder_optimizer is not None:
            self._clip(self.encoder_optimizer)
            self.encoder_optimizer.step()
            if agent.encoder is not None and agent.target_encoder is not None:
                follow(agent.target_encoder, agent.encoder, 1.0)  # the targets begin where the critics do
        zero = loss.new_zeros(())
        entropy, one = losses.entropy(log_pi.detach()).mean(), loss.new_ones(())
        return torch.stack([loss.detach(), zero, entropy, zero, one, zero, zero, zero, norm])

    def _learn(self, sample: Sample) -> Tensor:
        settings, agent = self.settings, self.agent
        targets = self._targets(sample)
        learned = targets
        if self.popart is not None:
            self.popart.update(targets, [*agent.critics.last, *agent.targets.last])
            learned = self.popart.normalized(targets)
        features = self._features(sample.batch)
        values = torch.stack([dense(rows, sample.batch) for rows in agent.critics(features, sample.batch)])
        critic_loss = losses.squared_errors(values, sample.actions, learned)
        fixed = self._combine(values.detach())
        log_pi = self._log_pi(None if features is None else features.detach(), sample.batch)
        known = log_pi.detach()
        advantage = losses.advantages(fixed, known, sample.actions)
        if self.loss == "soft":
            weights = torch.zeros_like(advantage)
            actor_loss = losses.soft(log_pi, fixed, self.log_temperature.detach().exp())
        else:
            weights = losses.WEIGHTS[self.loss](advantage, settings.beta, settings.largest_weight)
            actor_loss = losses.copying(log_pi, sample.actions, weights)
        self._zero()
        (critic_loss + actor_loss).backward()  # type: ignore[no-untyped-call]  # no weight is in both losses
        self._clip(self.critic_optimizer)
        self.critic_optimizer.step()
        if self.encoder_optimizer is not None:
            self._clip(self.encoder_optimizer)
            self.encoder_optimizer.step()
        norm = self._clip(self.actor_optimizer)
        if not self.holds:
            self.actor_optimizer.step()
        if self.loss == "soft" and settings.temperature_lr and not self.holds:
            self._warm(known, sample.batch)
        self._follow()
        return torch.stack([
            actor_loss.detach(), critic_loss.detach(), losses.entropy(known).mean(), advantage.mean(), weights.mean(),
            self._restored(losses.of(fixed, sample.actions).mean()), targets.mean(),
            self.log_temperature.detach().exp()[0], norm,
        ])  # fmt: skip

    @torch.no_grad()
    def _targets(self, sample: Sample) -> Tensor:
        """Targets in the unit of the rewards, (M,); the entropy is weighed in the unit that critics learn in."""
        agent, following = self.agent, sample.following
        features = self._features(following, agent.target_encoder)
        values = self._combine(torch.stack([dense(rows, following) for rows in agent.targets(features, following)]))
        log_pi = self._log_pi(features, following)
        temperature = self.log_temperature.exp() if self.loss == "soft" else 0.0
        value = losses.soft_value(values, log_pi, temperature)
        return sample.rewards + sample.discounts * self._restored(value)

    def _restored(self, values: Tensor) -> Tensor:
        if self.popart is None:
            return values
        return self.popart.restored(values).reshape(values.shape)

    def _features(self, batch: Batch, encoder: nn.Module | None = None) -> Tensor | None:
        """Features of the shared encoder, or of the targets' one; None without one."""
        actor = self.agent.actor
        return actor.features(batch, encoder) if isinstance(actor, RareActor) else None

    @torch.no_grad()
    def state_values(self, batch: Batch) -> Tensor:
        """Mean values under the policy by the target networks, in the unit of the rewards, (A,).

        The targets average the critics over steps, and with them their noise.
        """
        features = self._features(batch, self.agent.target_encoder)
        values = self._values(self.agent.targets, features, batch)
        return losses.expected(values, self._log_pi(features, batch))

    @torch.no_grad()
    def residuals(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """Values of the chosen rows minus their targets, and these targets, in the unit of the rewards, each (M,)."""
        targets, batch = self._targets(sample), sample.batch
        values = self._values(self.agent.critics, self._features(batch), batch)
        return losses.of(values, sample.actions) - targets, targets

    def _values(self, critics: Critics, features: Tensor | None, batch: Batch) -> Tensor:
        """Values of the rows, in the unit of the rewards, (A, most rows)."""
        return self._restored(self._combine(torch.stack([dense(rows, batch) for rows in critics(features, batch)])))

    def _log_pi(self, features: Tensor | None, batch: Batch) -> Tensor:
        if self.policy is not None:
            return self.policy(batch)
        return losses.log_policy(dense(of_rows(self.agent.actor, features, batch), batch), mask_of(batch))

    def _warm(self, log_pi: Tensor, batch: Batch) -> None:
        """Move the temperature towards the entropy aimed at."""
        aim = losses.entropy_aim(mask_of(batch), self.settings.target_entropy)
        self.temperature_optimizer.zero_grad()
        losses.temperature_loss(self.log_temperature, log_pi, aim).backward()  # type: ignore[no-untyped-call]
        self.temperature_optimizer.step()

    def _follow(self) -> None:
        settings, agent = self.settings, self.agent
        if (self.taken + 1) % settings.target_delay:
            return
        follow(agent.targets, agent.critics, settings.tau)
        if agent.encoder is not None and agent.target_encoder is not None:
            follow(agent.target_encoder, agent.encoder, settings.encoder_tau)

    def _adam(self, parameters: Iterable[nn.Parameter], rate: float) -> Adam:
        return Adam(parameters, rate, self.rates.adam_epsilon)

    def _zero(self) -> None:
        for optimizer in (self.actor_optimizer, self.critic_optimizer, self.encoder_optimizer):
            if optimizer is not None:
                optimizer.zero_grad()

    def _clip(self, optimizer: Adam) -> Tensor:
        return optimizer.clip(self.rates.largest_gradient)


def _device(module: nn.Module) -> Any:
    return next(module.parameters()).device
