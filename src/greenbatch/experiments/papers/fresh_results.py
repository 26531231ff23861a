"""Test the agents of the protocol ``fresh`` beside models that have seen the test windows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from greenbatch.experiments.papers.fresh import AGENT, COURSES, FRESH, SHIPPED_MODELS, fresh_cell
from greenbatch.experiments.papers.studies import Selection
from greenbatch.experiments.papers.study_results import Entry, Result, result_of
from greenbatch.experiments.running.cells import Progress
from greenbatch.learning.several import state_of
from greenbatch.workers import Workers

IN_SAMPLE = "in-sample: the trace itself"
"""Kind of training of the shipped models."""
RANDOM, COUNT, SEED = "random", 40, 1
"""Name, number and seed of further windows of the published traces, on which bounds are tested."""


def fresh_results(
    place: Path, *, traces: Sequence[str], seeds: Sequence[int], progress: Progress | None = None,
    workers: Workers | None = None,
) -> list[Result]:  # fmt: skip
    """One result per trace and kind of windows: the published ones, and random ones.

    Args:
        place: folder of the trainings; courses without a finished one get a row that says so.
        traces: the test traces.
        seeds: seeds of the trainings.
        progress: called before every simulation.
        workers: number of processes, or a Ray cluster, see `compare`.
    """
    from greenbatch.scenarios import load_scenario

    which = Selection(
        traces=tuple(traces), presets=(AGENT.preset,), goals=FRESH.usual_goals, backfills=("none",),
        windows=("published",), seeds=tuple(seeds),
    )  # fmt: skip
    made = []
    for trace in traces:
        scenario = load_scenario(FRESH.traces[trace])
        own = scenario.evaluation
        random = scenario.random_starts(COUNT, own.jobs, SEED)
        entries = [*_rules(trace), *_agents(trace, place, seeds)]
        for kind, starts in (("published", own.starts or ()), (RANDOM, random)):
            asked = FRESH, which, scenario, trace, kind, entries, starts, own.jobs
            made.append(result_of(*asked, progress, workers=workers))
    return made


def _rules(trace: str) -> list[Entry]:
    """The baseline, the rival, and the shipped model for both bounds."""
    made = []
    for name in (FRESH.baseline, FRESH.rival):
        policy, _, backfill = name.partition("+")
        made.append(
            Entry(label=f"{policy.upper()}+{backfill}", column=policy.upper(), backfill=backfill, rule=name, seeds={})
        )
    for knob in AGENT.knobs:
        rule = f"gas-marl-plus@{SHIPPED_MODELS[trace]}{knob}+none"
        made.append(
            Entry(
                label=f"GAS-MARL plus{knob}, shipped",
                column="GAS-MARL plus",
                backfill="",
                rule=rule,
                seeds={},
                knob=knob,
                reason=IN_SAMPLE,
            )
        )  # fmt: skip  (no backfilling, so that it is not taken for a plain rule without)
    return made


def _agents(trace: str, place: Path, seeds: Sequence[int]) -> list[Entry]:
    made = []
    for course in COURSES.values():
        if trace not in course.tests:
            continue
        cells = [fresh_cell(course, seed, place) for seed in seeds]
        finished = {cell.seed: place / cell.folder for cell in cells if state_of(place / cell.folder) == "finished"}
        made += [
            Entry(label=f"{AGENT.column}{knob}, trained on {course.tests[trace]}", column=AGENT.column, backfill="none",
                  cell=cells[0], seeds=finished, knob=knob, reason=course.tests[trace],
                  missing=tuple(seed for seed in seeds if seed not in finished))
            for knob in AGENT.knobs
        ]  # fmt: skip
    return made
