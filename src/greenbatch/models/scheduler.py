"""A trained model as a scheduler: a network that decides at each view, weights of the look-ahead planner,
or parameters of a policy.
"""

from __future__ import annotations

from collections.abc import Mapping

from greenbatch.engine.capabilities import asked, refuse
from greenbatch.engine.settings import Parameter
from greenbatch.models import network, parameters, planner
from greenbatch.models.model import Model
from greenbatch.models.network import NetworkScheduler
from greenbatch.models.parameters import PolicyScheduler
from greenbatch.models.planner import PlannerScheduler
from greenbatch.presets.preset import kinds_of

ModelScheduler = NetworkScheduler | PlannerScheduler | PolicyScheduler
"""Every kind of scheduler that a model can be."""


def parameters_of(model: Model) -> Mapping[str, Parameter]:
    """Options accepted after the folder of a model."""
    if model.preset.is_policy:
        return parameters.parameters_of(model)
    return planner.parameters_of(model) if model.preset.is_planner else network.PARAMETERS


def model_scheduler(
    name: str, model: Model, options: Mapping[str, float], backfill: str, settings: Mapping[str, float],
    placement: str = "", placement_seed: int = 0,
) -> ModelScheduler:  # fmt: skip
    """The scheduler of a model.

    Args:
        name: name of the scheduler in reports.
        model: the model.
        options: the given ones of `parameters_of`.
        backfill: the backfilling.
        settings: engine settings from the parameters of backfilling, and those of commands to storage.
        placement: which nodes a job takes; empty if not given.
        placement_seed: of random placements.

    Raises:
        InputError: a parameter, the backfilling or the placement does not suit the model, or its weights do not fit
            its network.
    """
    refuse(name, kinds_of(model.preset), asked(backfill, placement))
    if model.preset.is_policy:
        return parameters.policy_scheduler(name, model, options)
    if model.preset.is_planner:
        return planner.planner_scheduler(name, model, options, placement, placement_seed, settings)
    return network.network_scheduler(name, model, options, backfill, settings, placement, placement_seed)
