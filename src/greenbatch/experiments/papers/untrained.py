"""Agents as their training begins: what a network does without having learned anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.experiments.papers.studies import Budget, Cell, Study, plan_of
from greenbatch.experiments.papers.study_results import Entry

if TYPE_CHECKING:
    from greenbatch.learning.runs.plan import Plan
    from greenbatch.scenarios import Scenario

NOTHING_LEARNED = Budget(overrides={"training.jobs": 1, "training.validation.windows": 0, "training.keep": "last"})
"""Of a training that is not carried out: no windows are needed to learn or to choose weights."""


def untrained_entry(
    study: Study, preset: str, trace: str, scenario: Scenario, scratch: Path, *, label: str, kind: str, reason: str,
    knob: str = "",
) -> Entry:  # fmt: skip
    """The row of an agent of a study with the weights that its training begins with; requires torch.

    Args:
        study: the paper.
        preset: the agent, a network.
        trace: name of the setting in the study.
        scenario: its scenario.
        scratch: folder of the model, which must last as long as the row is used.
        label: name of the row.
        kind: name of the tests.
        reason: what it is, for the tables.
        knob: parameters of the model, such as ``:sample=1``.
    """
    agent = study.agent(preset)
    network = {key: value for key, value in agent.overrides.get(trace, {}).items() if key.startswith("network.")}
    agent = replace(agent, knobs=(knob,), overrides={trace: network})
    cell = Cell(agent=agent, goal=study.goals[0], trace=trace, backfill="none", windows=kind, eta=None, seed=0)
    write_untrained(plan_of(cell, scenario, NOTHING_LEARNED), scratch)
    return Entry(
        label=label, column=label, backfill="none", cell=cell, seeds={0: scratch}, knob=knob, reason=reason
    )  # fmt: skip


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
