"""The keys of a preset's ``[training.off_policy]`` table: a discrete actor-critic that learns from a replay buffer.

Defaults marked (Table A.2) are those of RARE (dissertation, chapter 5); those marked (super_sac) are of the library of
its author's coauthor (jakegrigsby/super_sac), which fill what the text leaves open.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from greenbatch.scenarios.section import Count, Natural, NotNegative, Positive, Section, Text

Loss = Literal["clone", "binary", "exponential", "soft"]
Share = Annotated[float, Field(ge=0, le=1)]

NEEDED = frozenset({
    "epochs", "windows", "jobs", "episode_s", "gamma", "gamma_s", "actor_lr", "critic_lr", "adam_eps", "grad_clip",
    "validation", "keep", "patience", "environments", "off_policy", "seed", "threads",
})  # fmt: skip
"""Keys of ``[training]`` that an off-policy training uses."""


class OffPolicy(Section):
    """Off-policy training, see `learning.offpolicy`; an epoch simulates windows, then takes gradient steps."""

    loss: Loss = "binary"
    """Loss of the actor: ``clone`` (behavior cloning), ``binary`` (CRR: copies actions whose advantage is positive),
    ``exponential`` (AWAC: copies them by exp(advantage / beta)) or ``soft`` (discrete SAC)."""
    beta: Positive = 1.0
    """Exponential: scale of advantages; with PopArt in standard deviations of the critic's targets."""
    largest_weight: Positive = 20.0
    """Exponential: maximum of the weight (CRR, appendix)."""
    critics: Annotated[int, Field(ge=1, le=16)] = 1
    """Number of critics (Table A.2)."""
    combine: Literal["min", "mean"] = "min"
    """How the values of several critics become one (super_sac)."""
    popart: bool = True
    """Normalize the critics' targets, preserving their outputs (van Hasselt et al. 2016) (Table A.2)."""
    popart_rate: Annotated[float, Field(gt=0, le=1)] = 1e-4
    """Rate of the running mean and variance of the targets (super_sac)."""
    tau: Annotated[float, Field(gt=0, le=1)] = 0.005
    """How far the target critics move towards the critics (super_sac)."""
    encoder_tau: Annotated[float, Field(gt=0, le=1)] = 0.01
    """The same for the encoder that actor and critics share, if there is one (super_sac)."""
    target_delay: Count = 2
    """Gradient steps between moves of the targets (super_sac)."""
    n_step: Annotated[int, Field(ge=1, le=1000)] = 1
    """Rewards that a target adds up before it relies on the target critics (super_sac)."""
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 1024
    """Transitions per gradient step (Table A.2)."""
    steps: Count = 100
    """Gradient steps per epoch."""
    warm_up_steps: Natural = 0
    """The first gradient steps clone the buffer's actions, whatever the loss."""
    warm_up_critics: bool = False
    """Critics learn in these steps as well, so that they know something when the actor begins to follow them."""
    critic_steps: Natural = 0
    """Gradient steps after these in which only the critics learn, and with them an encoder that the actor shares: the
    values of the policy that the actor begins with. The loss ``clone`` has none."""
    buffer: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1_750_000
    """Transitions that the replay buffer holds (Table A.4); then the oldest ones are overwritten."""
    memory_gb: Positive = 4.0
    """Memory that the replay buffer may take; a training that needs more is refused. [GB]"""
    fill_windows: Natural = 0
    """Windows simulated before the first gradient step, under ``schedulers``, without these at random."""
    schedulers: Annotated[tuple[Text, ...], Field(strict=False, max_length=64)] = ()
    """Schedulers whose decisions fill the buffer, as `greenbatch record` writes them."""
    shares: Annotated[tuple[Positive, ...], Field(strict=False, max_length=64)] = ()
    """Share of each in the windows, in any unit; by default equal ones."""
    dataset: str = ""
    """Folder of a recorded dataset that fills the buffer instead; the preset must observe what it contains."""
    online: bool = True
    """Simulate windows with the actor; otherwise it only learns from what filled the buffer."""
    online_from: Natural = 0
    """Epochs before the first windows of the actor."""
    epsilon: Share = 1.0
    """Share of random actions of the actor at first (super_sac)."""
    epsilon_final: Share = 0.1
    """The same after ``epsilon_decisions`` (super_sac)."""
    epsilon_decisions: Count = 1_000_000
    """Decisions over which the share falls linearly (super_sac)."""
    temperature: NotNegative = 0.1
    """Soft: initial weight of the entropy (super_sac)."""
    temperature_lr: NotNegative = 1e-4
    """Soft: learning rate of that weight; 0 = constant (super_sac)."""
    target_entropy: Share = 0.98
    """Soft: entropy aimed at, as a share of that of a uniform choice among the actions allowed (super_sac)."""

    @model_validator(mode="after")
    def _fits_together(self) -> OffPolicy:
        filled = self.fill_windows or self.dataset
        if not filled and not self.online:
            raise ValueError("online is false and fill_windows is 0, so there is nothing to learn from; give windows")
        if not filled and self.online_from:
            raise ValueError("online_from is above 0 and fill_windows is 0, so there is nothing to learn from at first")
        if self.schedulers and not filled:
            raise ValueError("schedulers fill the buffer, but fill_windows is 0; give fill_windows of 1 or more")
        if self.shares and len(self.shares) != len(self.schedulers):
            raise ValueError(f"shares are {len(self.shares)}, schedulers {len(self.schedulers)}; give one of each")
        if self.epsilon_final > self.epsilon:
            raise ValueError(f"epsilon_final is above epsilon {self.epsilon:g}; give a lower one")
        if self.temperature_lr and not self.temperature:
            raise ValueError("a temperature of 0 cannot be learned; give one above 0, or temperature_lr of 0")
        return self

    def holds_for(self, epochs: int) -> bool:
        """Whether the actor has no step of its own in a number of epochs."""
        held = self.critic_steps if self.loss != "clone" else 0
        return held > 0 and self.warm_up_steps + held >= epochs * self.steps

    def leaves_untrained(self, epochs: int) -> bool:
        """Whether the actor has taken no step at all in a number of epochs."""
        return self.warm_up_steps == 0 and self.holds_for(epochs)

    def simulates(self, epoch: int) -> bool:
        """Whether the actor simulates windows in an epoch, counted from 1."""
        return self.online and epoch > self.online_from

    def exploring(self, decisions: int) -> float:
        """Share of random actions after some decisions, in [0, 1]."""
        left = max(1.0 - decisions / self.epsilon_decisions, 0.0)
        return self.epsilon_final + (self.epsilon - self.epsilon_final) * left
