"""Test the rules, searches and agents of the study ``cost-aware`` on the same windows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from greenbatch.experiments.papers.cost_aware import LESSONS, RULES, STUDY, UNTRAINED
from greenbatch.experiments.papers.studies import KIND, Cell, Selection, plan_of
from greenbatch.experiments.papers.study_results import Entry, Result, agent_entries, result_of
from greenbatch.experiments.papers.untrained import NOTHING_LEARNED, write_untrained
from greenbatch.experiments.running.cells import Progress
from greenbatch.experiments.running.compare import choose_windows
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from greenbatch.scenarios import Scenario


def cost_aware_results(
    which: Selection, place: Path | None = None, *, starts: Sequence[int] | None = None, workers: Workers | None = None,
    progress: Progress | None = None,
) -> list[Result]:  # fmt: skip
    """One result per trace.

    Args:
        which: the selected traces and agents.
        place: folder of the trainings; without it there are rules and searches alone.
        starts: first jobs of the test windows, instead of the scenarios' own.
        workers: number of processes, see `compare`.
        progress: called before every simulation.
    """
    from greenbatch.scenarios import load_scenario

    made = []
    for trace in which.traces:
        scenario = load_scenario(STUDY.traces[trace])
        own, jobs = choose_windows(scenario, starts=starts)
        with TemporaryDirectory() as scratch:
            agents = () if place is None else _agents(which, place, trace, Path(scratch))
            entries = (*rule_entries(scenario), *agents)
            made.append(
                result_of(STUDY, which, scenario, trace, KIND, entries, own, jobs, progress, workers=workers)
            )  # fmt: skip
    return made


def rule_entries(scenario: Scenario) -> list[Entry]:
    """The rows without training that a scenario allows."""
    priced = scenario.site is not None and scenario.site.grid is not None
    return [
        Entry(label=f"{rule.column}+{backfill}", column=rule.column, backfill=backfill, seeds={}, reason=rule.reason,
              rule=f"{rule.policy}+{backfill}")
        for rule in RULES if priced or "cost=" not in rule.policy
        for backfill in rule.backfills
    ]  # fmt: skip


def _agents(which: Selection, place: Path, trace: str, scratch: Path) -> list[Entry]:
    """The selected agents, trained or not, and the paper's agent as its training begins."""
    entries = agent_entries(STUDY, which, place, trace, KIND)
    first = STUDY.agents[0]
    if first.preset in which.presets:
        entries.insert(0, _untrained(first.preset, which.seeds, trace, scratch))
    return entries


def _untrained(preset: str, seeds: Sequence[int], trace: str, scratch: Path) -> Entry:
    from greenbatch.scenarios import load_scenario

    scenario, folders = load_scenario(LESSONS.traces[trace]), {}
    for seed in seeds:
        cell = Cell(agent=STUDY.agent(preset), goal=STUDY.goals[0], trace=trace, backfill="none", windows=KIND,
                    eta=None, seed=seed)  # fmt: skip
        folders[seed] = scratch / f"seed-{seed}"
        write_untrained(plan_of(cell, scenario, NOTHING_LEARNED), folders[seed])
    return Entry(label=f"{UNTRAINED}+none", column=UNTRAINED, backfill="none", cell=cell, seeds=folders,
                 reason="the weights that training begins with")  # fmt: skip
