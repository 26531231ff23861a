"""Test rules and agents of the study ``cocorl`` on the episodes of its settings."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from greenbatch.experiments.papers.cocorl import COST, FREE, RULES, SETTINGS, STUDY, VALUE
from greenbatch.experiments.papers.studies import KIND, Selection
from greenbatch.experiments.papers.study_results import Result, agent_entries, plain_entries, result_from, simulated
from greenbatch.experiments.papers.untrained import untrained_entry
from greenbatch.experiments.running.compare import choose_windows
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from greenbatch.experiments.running.cells import Progress
    from greenbatch.scenarios import Scenario

METRICS = (VALUE, COST, "completion_ratio", "utilization_available", "late_share", "total_job_value")
"""Metrics of the rows."""
UNTRAINED = "Untrained masked agent"
"""Row of our network with the weights that its training begins with, which draws among the jobs that fit."""


def cocorl_results(
    which: Selection, place: Path | None = None, *, starts: Sequence[int] | None = None, workers: Workers | None = None,
    progress: Progress | None = None,
) -> list[Result]:  # fmt: skip
    """One result per setting.

    Args:
        which: the selected settings and agents.
        place: folder of the trainings; without it there are rules alone.
        starts: first jobs of the episodes, instead of the scenario's own.
        workers: number of processes, see `compare`.
        progress: called before every simulation.
    """
    made = []
    for name in which.traces:
        scenario = scenario_of(name)
        windows, jobs = choose_windows(scenario, starts=starts)
        with TemporaryDirectory() as scratch:
            untrained = [
                untrained_entry(STUDY, FREE, name, scenario, Path(scratch), label=UNTRAINED, kind=KIND,
                                reason="the weights that training begins with", knob=":sample=1")
            ] if find_spec("torch") else []  # fmt: skip
            agents = [] if place is None else agent_entries(STUDY, which, place, name, KIND)
            entries = [*plain_entries(RULES), *untrained, *agents]
            frame = simulated(STUDY, scenario, entries, windows, jobs, progress, workers)
        made.append(result_from(STUDY, which, name, KIND, entries, windows, jobs, frame, METRICS))
    return made


def scenario_of(name: str) -> Scenario:
    """The scenario of a setting's test."""
    from greenbatch.scenarios import load_scenario

    return load_scenario(SETTINGS[name].scenario, overrides=SETTINGS[name].overrides)
