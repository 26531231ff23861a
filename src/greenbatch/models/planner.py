"""The look-ahead planner with learned weights as a scheduler: ``gas-marl-plus@FOLDER:makespan_bound=1.25``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.program import Program
from greenbatch.engine.settings import Parameter
from greenbatch.errors import InputError
from greenbatch.models.model import BOUND, Model
from greenbatch.policies.compiled.lookahead.plan import lookahead_pass
from greenbatch.policies.registry import entry_of
from greenbatch.policies.rules import f2

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

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs.

        Raises:
            InputError: the power of a job is unknown.
        """
        preset = self.model.preset
        if np.isnan(workload.power_w).any():
            problem = f"{preset.name} requires the power of jobs, which {workload.name} does not state"
            raise InputError(problem, file=self.model.folder, fix="set workload.power in the scenario")
        decider = lookahead_pass(self.numbers, baseline_rule(workload))
        return replace(program_of(preset), name=self.name, decider=decider)

    def policy(self) -> None:
        """None: the engine decides."""


def baseline_rule(workload: Workload) -> Program:
    """Program of the baseline for makespans and the lag."""
    return replace(entry_of(f2).plan(workload), name=BASELINE, backfill="easy-schedgym")


def program_of(preset: Preset) -> Program:
    """The engine program of a planner, without its numbers."""
    return Program(name=preset.name, settings=dict(preset.settings), needs_site=True)


def planner_scheduler(name: str, model: Model, parameters: Mapping[str, float], backfill: str) -> PlannerScheduler:
    """The scheduler of a planner's model.

    Args:
        name: name of the scheduler in reports.
        model: the model.
        parameters: the given ones of `parameters_of`. Between two bounds of the search, the model's weights are
            interpolated.
        backfill: must be ``none`` because the planner considers every waiting job.

    Raises:
        InputError: there is a backfilling.
    """
    if backfill != "none":
        fix = f"write {name.rpartition('+')[0]} or {name.rpartition('+')[0]}+none"
        raise InputError(
            f"{model.preset.name} considers every waiting job itself and does not support backfilling",
            field=name,
            fix=fix,
        )
    target = parameters.get("makespan_bound", parameters_of(model)["makespan_bound"].default)
    bounds = _bounds(model)
    table = np.stack([model.weights[f"{BOUND}{each:g}"].astype(np.float64) for each in bounds])
    weights = np.array([np.interp(target, bounds, column) for column in table.T])
    return PlannerScheduler(name, model, np.ascontiguousarray(weights))


def parameters_of(model: Model) -> dict[str, Parameter]:
    """Options accepted after the folder of a planner's model."""
    lowest, highest = _bounds(model)[[0, -1]]
    meaning = "target for the makespan, relative to F2 with backfilling; train a model for others"
    bound = Parameter(default=float(highest), lowest=float(lowest), highest=float(highest), meaning=meaning)
    return {"makespan_bound": bound}


def _bounds(model: Model) -> NDArray[np.float64]:
    return np.sort([float(key.removeprefix(BOUND)) for key in model.weights])
