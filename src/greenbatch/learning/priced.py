"""A planner with learned prices as a scheduler: ``gas-marl-plus@FOLDER:makespan_bound=1.25``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.program import Program
from greenbatch.errors import InputError
from greenbatch.learning.model import BOUND, Model
from greenbatch.policies import scheduler

if TYPE_CHECKING:
    from greenbatch.envs.preset import Preset
    from greenbatch.workload import Workload

BASELINE = "f2+easy-schedgym"
"""The rule whose makespan a bound is a multiple of."""
PARAMETERS = ("makespan_bound",)
"""What may be said behind the folder: the makespan to hold to, relative to F2 with backfilling."""


@dataclass(frozen=True, slots=True)
class PricedScheduler:
    """A model whose prices the engine's planner follows."""

    name: str
    model: Model
    numbers: NDArray[np.float64]

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs.

        Raises:
            InputError: the power of a job is not known.
        """
        preset = self.model.preset
        if np.isnan(workload.power_w).any():
            problem = f"{preset.name} looks at the power of jobs, {workload.name} does not know it"
            raise InputError(problem, file=self.model.folder, fix="set workload.power in the scenario")
        return replace(program_of(preset), name=self.name, numbers=self.numbers, unheld=unheld_rule(workload))

    def policy(self) -> None:
        """The engine itself decides."""


def unheld_rule(workload: Workload) -> Program:
    """What makespans and the lag are measured by."""
    return scheduler(BASELINE).program(workload)


def program_of(preset: Preset) -> Program:
    """What the engine needs to know to plan with prices, but for the numbers."""
    return Program(name=preset.name, settings=dict(preset.settings), needs_site=True)


def priced(name: str, model: Model, parameters: Mapping[str, float], backfill: str) -> PricedScheduler:
    """The scheduler of a planner's model.

    Args:
        name: how it is named, for reports.
        model: the model.
        parameters: see `PARAMETERS`; the largest bound if not given. In between, so are the numbers.
        backfill: must be none: the planner looks at every waiting job.

    Raises:
        InputError: a backfilling, another parameter, or a bound that the model does not reach.
    """
    if backfill != "none":
        fix = f"write {name.rpartition('+')[0]} or {name.rpartition('+')[0]}+none"
        raise InputError(
            f"{model.preset.name} looks at every waiting job, so it takes no backfilling", field=name, fix=fix
        )
    for key in parameters:
        if key not in PARAMETERS:
            raise InputError(
                f"{model.preset.name} has no parameter {key!r}", field=name, fix="it takes " + ", ".join(PARAMETERS)
            )
    known = np.sort([float(key.removeprefix(BOUND)) for key in model.weights])
    wanted = parameters.get("makespan_bound", float(known[-1]))
    if not known[0] <= wanted <= known[-1]:
        fix = f"give {known[0]:g} to {known[-1]:g}, or train one for it"
        raise InputError(f"makespan_bound is {wanted:g}", field=name, fix=fix)
    table = np.stack([model.weights[f"{BOUND}{each:g}"].astype(np.float64) for each in known])
    numbers = np.array([np.interp(wanted, known, column) for column in table.T])
    return PricedScheduler(name, model, np.ascontiguousarray(numbers))
