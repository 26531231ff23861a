"""A built-in policy with parameters that a search has found, as a scheduler: ``rare-plus@FOLDER``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.program import Program
from greenbatch.engine.settings import Parameter
from greenbatch.models.model import Model
from greenbatch.models.policy_numbers import NUMBERS, searched_of

if TYPE_CHECKING:
    from greenbatch.presets.preset import Preset
    from greenbatch.workload import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PolicyScheduler:
    """A policy of the engine with the parameters of a model."""

    name: str
    model: Model
    numbers: Floats

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs."""
        return policy_program(self.model.preset, self.numbers, workload, self.name)

    def policy(self) -> None:
        """None: the engine decides."""


def policy_program(preset: Preset, numbers: Floats, workload: Workload, name: str) -> Program:
    """The program of a preset's policy with some parameters; those not searched have their defaults."""
    from greenbatch.policies.registry import ENTRIES

    entry = ENTRIES[preset.network["policy"]]
    given = {each.name: float(number) for each, number in zip(searched_of(preset), numbers, strict=True)}
    return replace(entry.plan(workload, **{**entry.defaults, **given}), name=name)


def policy_scheduler(name: str, model: Model, parameters: Mapping[str, float]) -> PolicyScheduler:
    """The scheduler of a model; given parameters replace those that were found."""
    numbers = model.weights[NUMBERS].astype(np.float64)
    for k, each in enumerate(searched_of(model.preset)):
        numbers[k] = parameters.get(each.name, numbers[k])
    return PolicyScheduler(name, model, numbers)


def parameters_of(model: Model) -> dict[str, Parameter]:
    """Options accepted after the folder of a model: the parameters that were found."""
    from greenbatch.policies.registry import ENTRIES

    known = ENTRIES[model.preset.network["policy"]].parameters
    found = zip(searched_of(model.preset), model.weights[NUMBERS], strict=True)
    return {each.name: replace(known[each.name], default=float(number)) for each, number in found}
