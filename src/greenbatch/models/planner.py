"""The look-ahead planner with learned weights as a scheduler: ``gas-marl-plus@FOLDER:makespan_bound=1.25``.

On nodes, a placement follows: ``gas-marl-plus@FOLDER+none+pack``, unless the model chooses nodes itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.power.protocol import BROWN, Weights
from greenbatch.engine.program import Program
from greenbatch.engine.settings import WEIGHTS, Parameter
from greenbatch.models.model import BOUND, Model
from greenbatch.policies.compiled.lookahead.plan import lookahead_policy
from greenbatch.policies.registry import entry_of
from greenbatch.policies.rules import f2
from greenbatch.presets.preset import kinds_of

if TYPE_CHECKING:
    from greenbatch.presets.preset import Preset
    from greenbatch.workload import Workload

BASELINE = "f2+easy-schedgym"
"""Scheduler whose makespan is the reference of a bound."""


@dataclass(frozen=True, slots=True)
class PlannerScheduler:
    """The engine's planner with the weights of a model."""

    name: str
    model: Model
    numbers: NDArray[np.float64]
    placement: str = "first"
    placement_seed: int = 0
    joule: Weights = BROWN
    """What a joule weighs."""
    settings: Mapping[str, float] = field(default_factory=dict)
    """Engine settings of commands to storage."""

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs; the engine refuses jobs whose power is not known to anyone."""
        base = program_of(self.model.preset)
        made = replace(
            base, name=self.name, settings={**(base.settings or {}), **self.settings}, placement=self.placement,
            placement_seed=self.placement_seed,
        )  # fmt: skip
        baseline = baseline_rule(workload, self.placement, self.placement_seed)
        return replace(made, decider=lookahead_policy(self.numbers, baseline, self.model.preset.fill, self.joule))

    def policy(self) -> None:
        """None: the engine decides."""


def baseline_rule(workload: Workload, placement: str = "first", placement_seed: int = 0) -> Program:
    """Program of the baseline for makespans and the lag."""
    made = replace(entry_of(f2).plan(workload), name=BASELINE, backfill="easy-schedgym")
    return replace(made, placement=placement, placement_seed=placement_seed)


def program_of(preset: Preset) -> Program:
    """The engine program of a planner, without its numbers."""
    return Program(name=preset.name, settings=dict(preset.settings), parts=tuple(kinds_of(preset)))


def planner_scheduler(
    name: str, model: Model, parameters: Mapping[str, float], placement: str, placement_seed: int,
    settings: Mapping[str, float],
) -> PlannerScheduler:  # fmt: skip
    """The scheduler of a planner's model.

    Args:
        name: name of the scheduler in reports.
        model: the model.
        parameters: the given ones of `parameters_of`. Between two bounds of the search, the model's weights are
            interpolated.
        placement: which nodes a job takes; ``first`` if empty.
        placement_seed: of random placements.
        settings: engine settings of commands to storage.
    """
    target = parameters.get("makespan_bound", parameters_of(model)["makespan_bound"].default)
    joule = Weights(*(parameters.get(weight, parameters_of(model)[weight].default) for weight in WEIGHTS))
    numbers = numbers_at(model, target)
    return PlannerScheduler(name, model, numbers, placement or "first", placement_seed, joule, settings)


def numbers_at(model: Model, makespan_bound: float) -> NDArray[np.float64]:
    """The weights of a model for a bound, between two bounds of its search by interpolation."""
    bounds = _bounds(model)
    table = np.stack([model.weights[f"{BOUND}{each:g}"].astype(np.float64) for each in bounds])
    return np.ascontiguousarray([np.interp(makespan_bound, bounds, column) for column in table.T])


def parameters_of(model: Model) -> dict[str, Parameter]:
    """Options accepted after the folder of a planner's model."""
    lowest, highest = _bounds(model)[[0, -1]]
    meaning = "target for the makespan, relative to F2 with backfilling; train a model for others"
    bound = Parameter(default=float(highest), lowest=float(lowest), highest=float(highest), meaning=meaning)
    usual = zip(WEIGHTS.items(), model.preset.joule, strict=True)
    return {"makespan_bound": bound} | {name: replace(weight, default=default) for (name, weight), default in usual}


def _bounds(model: Model) -> NDArray[np.float64]:
    return np.sort([float(key.removeprefix(BOUND)) for key in model.weights])
