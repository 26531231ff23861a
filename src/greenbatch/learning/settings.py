"""What a preset's ``[training]`` table may say: every key, with its range and default.

Defaults are what GAS-MARL publishes (paper 4.2 and 5.1; what only its code says is marked so).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from greenbatch.scenarios.check import problems
from greenbatch.scenarios.section import Count, Natural, NotNegative, Positive, Section, Seed, Text

Share = Annotated[float, Field(ge=0, le=1)]
Windows = Annotated[int, Field(ge=1, le=100_000)]
Jobs = Annotated[int, Field(ge=1, le=1_000_000)]
Passes = Annotated[int, Field(ge=1, le=10_000)]
Schedule = Literal["constant", "linear", "cosine"]


class Averaging(Section):
    """Stochastic weight averaging: the mean of the actor's weights over the last part of the training."""

    start: Share = 1.0
    """Share of the training after which averaging begins; 1 = no averaging."""
    every: Count = 1
    """Epochs between two weights that are averaged."""


class Filter(Section):
    """Trajectory filtering (RLScheduler, section IV-C): easy windows out, then all windows.

    In the first phase windows are drawn from those whose metric under SJF lies in (median, 2 x mean) of a random
    sample; in the second from all.
    """

    kind: Literal["none", "median"] = "none"
    share: Share = 0.5
    """Share of the training that is the first phase."""
    samples: Annotated[int, Field(ge=2, le=100_000)] = 1000
    """Windows that SJF is simulated on."""
    metric: Text = "avg_bounded_slowdown"
    """Name of a metric, see ``docs/metrics.md``."""


class Stage(Section):
    """One stage of the curriculum: from a share of the training on, other windows or another weighting."""

    start: Share
    """Share of the training at which the stage begins."""
    jobs: Jobs | None = None
    """Jobs of a window; as in ``training.jobs`` if not given."""
    weights: dict[Text, float] = Field(default_factory=dict)
    """Reward term -> weight, instead of the preset's; the terms that are not named keep theirs."""


class Validation(Section):
    """Windows on which the actor decides by arg-max, to keep the best one. Never windows of a test."""

    windows: Annotated[int, Field(ge=0, le=10_000)] = 8
    """Number of windows; 0 = no validation."""
    jobs: Jobs = 256
    every: Count = 10
    """Epochs between two validations."""


class Search(Section):
    """How a planner's prices or a ranking's weights are searched for, see `learning.search`."""

    population: Annotated[int, Field(ge=4, le=1000)] = 18
    """Candidates of a generation."""
    sigma: Positive = 0.5
    """First step: of weights, or for prices in the steps of ``engine.prices.NUMBERS``."""
    diagonal: bool = False
    """Learn how far to step in each number only, not which numbers go together: faster where there are many."""
    fixed_windows: bool = False
    """The same windows in every generation, evenly spread over the trace, instead of new ones."""
    years: Annotated[int, Field(ge=1, le=100)] = 1
    """Prices: each window is played under the weather of one of so many years of the power series.

    A series of one year that repeats has the same weather in all of them."""
    makespan_bound: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (1.5,)
    """Prices: makespans, relative to F2 with backfilling, with a model for each; one begins where the last ended."""
    aim: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (1.475,)
    """Prices: mean makespan of the windows, relative to F2 with backfilling, beyond which a candidate pays."""
    most: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (1.65,)
    """Prices: the same of a single window; what windows exceed it by is averaged over them."""
    slowdown: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (6.0,)
    """Prices: bounded slowdown that the search for each holds to."""

    @model_validator(mode="after")
    def _one_each(self) -> Search:
        if not len(self.makespan_bound) == len(self.aim) == len(self.most) == len(self.slowdown):
            raise ValueError(
                "makespan_bound, aim, most and slowdown have different lengths; give one of each for every model"
            )
        if len({f"{bound:g}" for bound in self.makespan_bound}) < len(self.makespan_bound):
            raise ValueError("makespan_bound has the same one twice, to six digits; give different ones")
        return self


class TrainingSettings(Section):
    """How a network is trained."""

    epochs: Count = 300
    windows: Windows = 100
    """Windows of an epoch."""
    jobs: Jobs = 256
    """Jobs of a window."""
    rollouts: Annotated[int, Field(ge=1, le=1024)] = 1
    """Simulations of each window, each with other random choices: the group of ``advantage = "group"``."""
    advantage: Literal["gae", "group"] = "gae"
    """``gae``: generalized advantage estimation with a critic; ``group``: the return of a rollout against the mean of
    all rollouts of its window, without a critic."""
    dense_groups: bool = False
    """With ``group``: compare each decision's reward to go with that of the others at the same step."""
    normalize: bool = True
    """Advantages of an epoch are brought to mean 0 and deviation 1 (code)."""
    critic_target: Literal["returns", "gae"] = "returns"
    """What the critic learns: the rewards to go (code), or advantage + value."""
    gamma: Annotated[float, Field(gt=0, le=1)] = 1.0
    gae_lambda: Share = 0.97
    clip: Annotated[float, Field(gt=0, le=10)] = 0.2
    passes: Passes = 8
    """Passes over an epoch's decisions."""
    critic_passes: Passes | None = None
    """Passes of the critic, as many as the actor's if not given."""
    minibatch: Natural = 256
    """Decisions of a minibatch; 0 = all decisions of the epoch."""
    actor_lr: Positive = 1e-4
    critic_lr: Positive = 5e-4
    lr_schedule: Schedule = "constant"
    lr_final: Share = 0.0
    """Learning rates at the end, as a share of those at the start, of schedules other than constant."""
    adam_eps: Positive = 1e-6
    """Adam's epsilon (code)."""
    entropy: NotNegative = 0.0
    """Weight of the entropy bonus."""
    entropy_final: NotNegative | None = None
    """Weight at the end, reached linearly; the same as at the start if not given."""
    target_kl: NotNegative = 0.0
    """The actor's passes of an epoch end with the one whose mean KL divergence from the old policy is beyond 1.5 times
    this [nat]; 0 = never."""
    grad_clip: NotNegative = 0.5
    """Largest norm of a gradient; 0 = any (code)."""
    swa: Averaging = Averaging()
    filter: Filter = Filter()
    curriculum: Annotated[tuple[Stage, ...], Field(strict=False)] = ()
    validation: Validation = Validation()
    keep: Literal["best", "last"] = "best"
    """Which actor becomes the model: the best on the validation windows, or the last (or averaged) one."""
    patience: Natural = 0
    """Validations without a better figure after which training ends; 0 = never."""
    environments: Natural = 0
    """Simulations that are stepped together; 0 = all rollouts of an epoch."""
    search: Search | None = None
    """For a planner with prices or a ranking: an epoch is a generation then, and beside this table only ``epochs``,
    ``windows``, ``jobs``, ``keep``, ``validation``, ``seed`` and ``threads`` are taken."""
    seed: Seed = 0
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """Threads of the simulator and of torch; 0 = as many as this process may use."""

    @model_validator(mode="after")
    def _fits_together(self) -> TrainingSettings:
        if self.advantage == "group" and self.rollouts < 2:
            raise ValueError("advantage is 'group', but rollouts is 1; give rollouts of 2 or more")
        starts = [stage.start for stage in self.curriculum]
        if starts != sorted(set(starts)):
            raise ValueError("the stages of the curriculum do not start one after the other; order them by start")
        if self.patience and not self.validation.windows:
            raise ValueError("patience needs validation; give validation.windows of 1 or more")
        return self

    def stage(self, progress: float) -> tuple[int, dict[str, float]]:
        """Jobs of a window and changed reward weights at a share of the training, in [0, 1]."""
        reached = [stage for stage in self.curriculum if stage.start <= progress]
        jobs = next((stage.jobs for stage in reversed(reached) if stage.jobs is not None), self.jobs)
        weights: dict[str, float] = {}
        for stage in reached:
            weights |= stage.weights
        return jobs, weights

    def lr_factor(self, progress: float) -> float:
        """Learning rate as a share of the one at the start, at a share of the training in [0, 1]."""
        left = {"constant": 1.0, "linear": 1 - progress, "cosine": 0.5 * (1 + math.cos(math.pi * progress))}
        share = left[self.lr_schedule]
        return share + (1 - share) * self.lr_final

    def entropy_weight(self, progress: float) -> float:
        """Weight of the entropy bonus at a share of the training in [0, 1]."""
        final = self.entropy if self.entropy_final is None else self.entropy_final
        return self.entropy + (final - self.entropy) * progress


def read_training(
    table: Mapping[str, Any],
    *,
    file: str | Path | None = None,
    lines: Mapping[tuple[str | int, ...], int] | None = None,
) -> TrainingSettings:
    """A preset's ``[training]`` table, checked, with defaults filled in.

    Args:
        table: the table.
        file: the preset's file, for messages.
        lines: place of a key in the file, from the top -> line, for messages.

    Raises:
        InputError: the first thing that is unknown, of the wrong type or out of range; names the key and a fix.
    """
    raw = dict(table)
    try:
        return TrainingSettings.model_validate(raw)
    except ValidationError as error:
        found = problems(error, raw, TrainingSettings, file=file, lines=lines or {}, within=("training",))
    raise found[0]
