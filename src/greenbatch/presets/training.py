"""The keys of a preset's ``[training]`` table, with ranges and defaults, and the jobs held out.

Defaults are GAS-MARL's (paper, section 4.2.3; ``(code)`` marks what only its code says).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from greenbatch.presets.constraints import Constraint, Controller
from greenbatch.presets.off_policy import OffPolicy
from greenbatch.presets.term_names import Terms
from greenbatch.scenarios.check import problems
from greenbatch.scenarios.section import Count, Natural, NotNegative, Positive, Section, Seed, Text

Mode = Literal["published", "held-out"]
MODES: tuple[Mode, ...] = ("published", "held-out")
"""Which windows a training may draw, see `learning.runs.windows`."""
HELD_OUT = range(2000, 4401)
"""Jobs that held-out training never sees, 0-based in order of job id."""

Share = Annotated[float, Field(ge=0, le=1)]
Windows = Annotated[int, Field(ge=1, le=100_000)]
Jobs = Annotated[int, Field(ge=1, le=1_000_000)]
Passes = Annotated[int, Field(ge=1, le=10_000)]
Schedule = Literal["constant", "linear", "cosine"]


class Averaging(Section):
    """Stochastic weight averaging: the mean of the actor's weights over the last part of the training.

    Source: Izmailov et al. 2018, arXiv:1803.05407; InEPS, section 3.4, with ``start = 0.75`` and ``anneal = 0.15``.
    InEPS's epochs are passes over one simulation's decisions; here the fractions are of the whole training.
    """

    start: Share = 1.0
    """Fraction of the training after which averaging starts; 1 = no averaging."""
    every: Count = 1
    """Epochs between averaged weights."""
    anneal: Share = 0.0
    """Fraction of the training over which the actor's learning rate changes linearly from its value at ``start`` to
    ``lr``, where it stays; 0 = it follows ``lr_schedule`` to the end."""
    lr: Positive = 1.0
    """The actor's learning rate after that, relative to ``actor_lr``."""

    @model_validator(mode="after")
    def _fits_together(self) -> Averaging:
        if self.lr != 1.0 and not self.anneal:
            raise ValueError(f"lr is {self.lr:g}, but anneal is 0; give anneal above 0")
        if self.anneal and self.start == 1.0:
            raise ValueError(f"anneal is {self.anneal:g}, but start is 1, so nothing is averaged; give start below 1")
        if self.start + self.anneal > 1.0 + 1e-9:
            raise ValueError(f"start + anneal is {self.start + self.anneal:g}; give at most 1")
        return self


class Filter(Section):
    """Trajectory filtering (RLScheduler, section IV-C): first without easy windows, then all windows.

    In the first phase, windows are drawn from those whose metric under SJF lies in (median, 2 x mean) of a random
    sample; in the second phase from all.
    """

    kind: Literal["none", "median"] = "none"
    share: Share = 0.5
    """Length of the first phase, as a fraction of the training."""
    samples: Annotated[int, Field(ge=2, le=100_000)] = 1000
    """Number of sampled windows, simulated under SJF."""
    metric: Text = "avg_bounded_slowdown"
    """Name of a metric, see ``docs/metrics.md``."""


class Stage(Section):
    """One stage of the curriculum: different windows or reward weights from a fraction of the training on."""

    start: Share
    """Fraction of the training at which the stage starts."""
    jobs: Jobs | None = None
    """Jobs per window; by default ``training.jobs``."""
    weights: Terms = Field(default_factory=dict)
    """Reward term -> weight; overrides the preset's."""


class Validation(Section):
    """Windows on which the actor decides by arg-max, to keep the best one. They are never test windows."""

    windows: Annotated[int, Field(ge=0, le=10_000)] = 8
    """Number of windows; 0 = no validation."""
    jobs: Jobs = 256
    every: Count = 10
    """Epochs between validations."""


Preference = Annotated[tuple[NotNegative, NotNegative, NotNegative], Field(strict=False)]


class Search(Section):
    """Search for the weights of a planner or a ranking, see `learning.search`."""

    population: Annotated[int, Field(ge=4, le=1000)] = 18
    """Candidates per generation."""
    sigma: Positive = 0.5
    """Initial step size: of weights, or for the planner in the steps of ``lookahead.weights.NUMBERS``."""
    diagonal: bool = False
    """Learn a step size per number, but no correlations: faster if there are many numbers."""
    fixed_windows: bool = False
    """Use the same windows in every generation, evenly spread over the trace, instead of new ones."""
    balance: Share | Literal["ranks"] = 0.5
    """Ranking: power of the mean cost of a window by which its cost is divided, or "ranks": of the candidates, so that
    all windows count the same."""
    mixed: bool = False
    """Ranking: windows have submission times of the trace and jobs drawn from all training windows, two or more kinds
    of jobs (by executable) in random shares: for a model that serves other mixes than that of the trace."""
    years: Annotated[int, Field(ge=1, le=100)] = 1
    """Planner: windows are simulated under the weather of this many years of the power series.

    A repeating series of one year has the same weather in all of them."""
    workloads: Annotated[int, Field(ge=0, le=1000)] = 0
    """Planner: number of workloads of the scenario's generator that windows come from; their seeds count on from the
    scenario's, and each seed of the training has others. 0 = the scenario's own jobs."""
    gap_factors: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (1.0,)
    """Planner: factors of the gaps between submissions of these workloads, in turn, for a model of several loads."""
    beside: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    """Planner: further scenarios, for one model of all of them; the objective is their mean."""
    memory: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Planner: generations over which the centers are averaged (exponentially) to become the model; 1 = the last
    center."""
    makespan_bound: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (1.5,)
    """Planner: makespan bounds, relative to F2 with backfilling. There is one model per bound; each search starts where
    the last one ended."""
    aim: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (1.475,)
    """Planner: mean makespan of the windows, relative to F2 with backfilling, above which a candidate is penalized."""
    most: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (1.65,)
    """Planner: the same for single windows; the penalty is the mean excess over all windows."""
    slowdown: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (6.0,)
    """Planner: mean bounded slowdown above which a candidate is penalized; for cost and carbon, relative to that of F2
    with backfilling."""
    preferences: Annotated[tuple[Preference, ...], Field(strict=False)] = ()
    """Planner: weights of brown energy, cost and carbon that its windows have in turn, for one model of all of them; by
    default all have those of ``[network]``."""
    begin: str = Field(default="", max_length=1000)
    """Planner: model with whose weights the search begins, as ``gas-marl-plus@lublin-256``; by default with none."""
    placement: str = Field(default="first", max_length=100)
    """Planner: on nodes, which ones a job takes during the search; a model that chooses nodes takes ``first``."""

    @model_validator(mode="after")
    def _one_each(self) -> Search:
        if not len(self.makespan_bound) == len(self.aim) == len(self.most) == len(self.slowdown):
            raise ValueError(
                "makespan_bound, aim, most and slowdown have different lengths; give one of each per model"
            )
        if len({f"{bound:g}" for bound in self.makespan_bound}) < len(self.makespan_bound):
            raise ValueError("makespan_bound has equal values, to six digits; give different ones")
        return self


class TrainingSettings(Section):
    """Training of a model."""

    epochs: Count = 300
    windows: Windows = 100
    """Windows per epoch."""
    jobs: Jobs = 256
    """Jobs per window."""
    episode_s: NotNegative = 0.0
    """Where capacity follows the power: windows, those of validations too, end so long after their beginning, unless
    the scenario says when (``rules.pools.episode_s``); 0 = when all of their jobs have ended. [s]"""
    rollouts: Annotated[int, Field(ge=1, le=1024)] = 1
    """Simulations per window, with different random actions: the group of ``advantage = "group"``."""
    advantage: Literal["gae", "group"] = "gae"
    """``gae``: generalized advantage estimation with a critic; ``group``: the return of a rollout compared with the
    mean over all rollouts of its window, without a critic."""
    dense_groups: bool = False
    """With ``group``: compare each decision's reward to go with those of the other rollouts at the same step."""
    normalize: bool = True
    """Normalize the advantages of an epoch to mean 0 and standard deviation 1 (code)."""
    critic_target: Literal["returns", "gae"] = "returns"
    """Target of the critic: ``returns``, the rewards to go (code), or ``gae``, advantage + value."""
    gamma: Annotated[float, Field(gt=0, le=1)] = 1.0
    gamma_s: NotNegative = 0.0
    """Simulated time over which ``gamma`` discounts once; 0 = from each decision to the next, also where no time passes
    between them. [s]"""
    gae_lambda: Share = 0.97
    clip: Annotated[float, Field(gt=0, le=10)] = 0.2
    passes: Passes = 8
    """Passes over an epoch's decisions."""
    critic_passes: Passes | None = None
    """Passes of the critic; by default as many as the actor's."""
    minibatch: Natural = 256
    """Decisions per minibatch; 0 = all decisions of the epoch. Networks with a memory take the whole trajectories that
    begin among them."""
    actor_lr: Positive = 1e-4
    critic_lr: Positive = 5e-4
    lr_schedule: Schedule = "constant"
    lr_final: Share = 0.0
    """Final learning rates, as a fraction of the initial ones, for schedules other than constant."""
    adam_eps: Positive = 1e-6
    """Adam's epsilon (code)."""
    entropy: NotNegative = 0.0
    """Weight of the entropy bonus."""
    entropy_final: NotNegative | None = None
    """Final weight of the entropy bonus, reached linearly; by default constant."""
    target_kl: NotNegative = 0.0
    """The actor's passes over an epoch stop after the first one whose mean KL divergence from the old policy exceeds
    1.5 times this; 0 = never. [nat]"""
    grad_clip: NotNegative = 0.5
    """Maximum norm of a gradient; 0 = no clipping (code)."""
    constraints: Annotated[dict[str, Constraint], Field(max_length=64)] = Field(default_factory=dict)
    """Reward term -> bound of its mean over episodes: the reward is maximized subject to these. With ``gae``
    and ``normalize``, the advantages of reward and costs are normalized one by one before they are weighed."""
    controller: Controller = Controller()
    """How the weights of the constraints follow from their excess."""
    swa: Averaging = Averaging()
    filter: Filter = Filter()
    curriculum: Annotated[tuple[Stage, ...], Field(strict=False)] = ()
    validation: Validation = Validation()
    keep: Literal["best", "last"] = "best"
    """Which actor becomes the model: the best on the validation windows, or the last (or averaged) one."""
    patience: Natural = 0
    """Number of validations without improvement after which training stops; 0 = never."""
    environments: Natural = 0
    """Simulations that are stepped together; 0 = all rollouts of an epoch."""
    search: Search | None = None
    """For a planner or a ranking: an epoch is a generation, and of the other keys only ``epochs``, ``windows``,
    ``jobs``, ``keep``, ``validation``, ``seed`` and ``threads`` are used."""
    off_policy: OffPolicy | None = None
    """For an actor-critic that learns from a replay buffer instead of PPO; see ``presets.off_policy.NEEDED`` for the
    other keys it uses."""
    seed: Seed = 0
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """Threads of the simulator and of torch; 0 = as many as this process may use."""

    @model_validator(mode="after")
    def _fits_together(self) -> TrainingSettings:
        if self.advantage == "group" and self.rollouts < 2:
            raise ValueError("advantage is 'group', but rollouts is 1; give rollouts of 2 or more")
        starts = [stage.start for stage in self.curriculum]
        if starts != sorted(set(starts)):
            raise ValueError("the stages of the curriculum are not in order of their starts; order them by start")
        if self.patience and not self.validation.windows:
            raise ValueError("patience requires validation; give validation.windows of 1 or more")
        if self.off_policy is not None and self.search is not None:
            raise ValueError("a training is either a search or off-policy; leave out search or off_policy")
        if self.gamma_s and (self.gamma == 1 or self.advantage == "group"):
            raise ValueError(
                "gamma_s has no effect where nothing is discounted; leave it out, or give gamma below 1 with gae"
            )
        if self.off_policy is not None and self.off_policy.holds_for(self.epochs):
            raise ValueError("the actor never learns: critic_steps take all steps; give fewer, or more epochs")
        if self.constraints and (self.search is not None or self.off_policy is not None):
            raise ValueError("constraints are kept by PPO alone; leave out constraints, or search and off_policy")
        return self

    def stage(self, progress: float) -> tuple[int, dict[str, float]]:
        """Jobs per window and changed reward weights at a fraction of the training in [0, 1]."""
        reached = [stage for stage in self.curriculum if stage.start <= progress]
        jobs = next((stage.jobs for stage in reversed(reached) if stage.jobs is not None), self.jobs)
        weights: dict[str, float] = {}
        for stage in reached:
            weights |= stage.weights
        return jobs, weights

    def lr_factor(self, progress: float) -> float:
        """Learning rate relative to the initial one, at a fraction of the training in [0, 1]."""
        left = {"constant": 1.0, "linear": 1 - progress, "cosine": 0.5 * (1 + math.cos(math.pi * progress))}
        share = left[self.lr_schedule]
        return share + (1 - share) * self.lr_final

    def actor_lr_factor(self, progress: float) -> float:
        """The same for the actor alone, whose rate has its own course while weights are averaged."""
        swa = self.swa
        if not swa.anneal or progress < swa.start:
            return self.lr_factor(progress)
        first = self.lr_factor(swa.start)
        return first + (swa.lr - first) * min((progress - swa.start) / swa.anneal, 1.0)

    def entropy_weight(self, progress: float) -> float:
        """Weight of the entropy bonus at a fraction of the training in [0, 1]."""
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
        lines: path of a key in the file -> line, for messages.

    Raises:
        InputError: a key is unknown, of the wrong type or out of range; the error names the first one and a fix.
    """
    raw = dict(table)
    try:
        return TrainingSettings.model_validate(raw)
    except ValidationError as error:
        found = problems(error, raw, TrainingSettings, file=file, lines=lines or {}, within=("training",))
    raise found[0]
