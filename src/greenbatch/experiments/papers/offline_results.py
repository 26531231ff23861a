"""Test rules and agents of the study ``offline`` on draws, ask agents what they would do, and read their logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from greenbatch.experiments.papers.offline import DRAWS, LEARNERS, MIXES, RULES, SETTINGS, VALUE
from greenbatch.experiments.papers.offline_agreement import Pupil, agreements
from greenbatch.experiments.papers.offline_curves import curve_of
from greenbatch.experiments.papers.studies import KIND, Selection, Study
from greenbatch.experiments.papers.study_results import (
    Entry,
    Result,
    agent_entries,
    plain_entries,
    result_from,
    simulated,
)
from greenbatch.experiments.papers.untrained import untrained_entry
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from greenbatch.experiments.running.cells import Progress
    from greenbatch.scenarios import Scenario

METRICS = (VALUE, "value_ratio", "completion_ratio", "utilization_available", "late_share", "accrued_cost")
"""Metrics of the rows."""
UNTRAINED = "Untrained masked agent"
"""Row of our network with the weights that its training begins with, which draws among the jobs that fit."""


def offline_results(
    study: Study, which: Selection, place: Path | None = None, *, draws: Sequence[int] | None = None,
    workers: Workers | None = None, progress: Progress | None = None,
) -> list[Result]:  # fmt: skip
    """One result per size.

    Rows of agents have ``agreement`` (see `offline_agreement.agreements`) and ``validations``, a curve per seed.

    Args:
        study: the study with the selected mixes, see `offline.study_of`.
        which: the selected sizes and agents.
        place: folder of the trainings; without it there are rules alone.
        draws: numbers of the episodes, instead of the usual ones.
        workers: number of processes, see `compare`.
        progress: called before every simulation.
    """
    made, numbers = [], DRAWS if draws is None else tuple(draws)
    for name in which.traces:
        scenario = scenario_of(name)
        with TemporaryDirectory() as scratch:
            untrained = [
                untrained_entry(study, "offline", name, scenario, Path(scratch), label=UNTRAINED, kind=KIND,
                                reason="the weights that training begins with", knob=":sample=1")
            ] if find_spec("torch") else []  # fmt: skip
            agents = [] if place is None else agent_entries(study, which, place, name, KIND)
            entries = [*plain_entries(RULES), *untrained, *agents]
            frame = simulated(study, scenario, entries, numbers, 0, progress, workers)
        result = result_from(study, which, name, KIND, entries, numbers, 0, frame, METRICS)
        made.append(_told(result, scenario, agents, numbers, progress))
    return made


def _told(
    result: Result, scenario: Scenario, agents: Sequence[Entry], draws: Sequence[int], progress: Progress | None
) -> Result:
    """The result, whose rows of agents also tell agreement and validations."""
    trained = [entry for entry in agents if entry.seeds]
    rules = tuple(dict.fromkeys(rule for entry in trained for rule in _rules_of(entry)))
    pupils = [Pupil(name=entry.label, models=entry.seeds, rules=_rules_of(entry) or rules) for entry in trained]
    found = agreements(scenario, pupils, draws, progress) if pupils else {}
    more: dict[str, dict[str, Any]] = {
        entry.label: {
            "agreement": found[entry.label],
            "validations": [asdict(curve_of(seed, folder)) for seed, folder in entry.seeds.items()],
        }
        for entry in trained
    }
    return replace(result, rows=[{**row, **more.get(row["scheduler"], {})} for row in result.rows])


def _rules_of(entry: Entry) -> tuple[str, ...]:
    """The rules of the dataset that an agent learned from; none if there is no dataset."""
    mix = LEARNERS[entry.column].mix
    return tuple(MIXES[mix].shares) if mix else ()


def scenario_of(name: str) -> Scenario:
    """The scenario of a size's test."""
    from greenbatch.scenarios import load_scenario

    return load_scenario(SETTINGS[name].scenario, overrides=SETTINGS[name].overrides)
