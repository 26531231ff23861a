"""Agents as their training begins: what a network does without having learned anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from greenbatch.learning.runs.plan import Plan


def write_untrained(plan: Plan, folder: Path) -> None:
    """Write the model of a training before its first epoch to ``folder/model``; requires torch.

    Args:
        plan: the training, of a network.
        folder: the folder of the training.
    """
    from greenbatch.learning.training.device import device_of
    from greenbatch.learning.training.frame import Setup, write_model
    from greenbatch.learning.training.state import State

    prepare: type[Setup]
    if plan.settings.off_policy is None:
        from greenbatch.learning.training.loop import TrainingSetup

        prepare = TrainingSetup
    else:
        from greenbatch.learning.offpolicy.loop import OffPolicySetup

        prepare = OffPolicySetup
    setup = prepare(plan, device_of(plan.device))
    write_model(folder, setup, State(setup.learner))
