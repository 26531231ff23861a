"""The protocol ``fresh``: trained on generated jobs and other years of weather, tested on a paper's windows.

Nothing of the published traces is used to train, tune or select, except where a generator was fitted to one. So there
are three kinds of trainings:

*own model*: on the workload model of the test trace. For Lublin-256 the parameters are those of its authors; those for
Cirne and Jann were fitted to the test traces, which makes their trainings *in-model*.
*Lublin's model*: on that alone, whatever the test trace.
*other models*: on the two other models together (leave one model out).

Every training of one seed begins with that seed's training on Lublin's model, except the one that leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.studies import SLOWDOWN_LIMITS, STUDIES, Agent, Cell, Goal, Study, known_names

PRESET = "gas-marl-fresh"
FIRST = "Lublin-256"
"""The course that others begin with."""
REFINED = {"training.epochs": 40, "training.search.sigma": 0.15}
"""How a course that begins with another is trained: shorter, with smaller steps."""
MARGIN = 0.85
"""Slowdown that the search aims at, relative to the limit, as for `gas-marl-plus`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is trained on."""

    name: str
    """The test trace of the same model, or ``without-`` and the trace that is left out."""
    scenario: str
    tests: Mapping[str, str]
    """Test trace -> the kind of training that this is for it, one of `KINDS`."""
    overrides: Mapping[str, Any]
    """Values that replace the preset's: dotted key -> value."""
    first: str = FIRST
    """The course whose model of the same seed the search begins with; empty for none."""


BOUNDS = (1.5, 1.25)
"""Makespan bounds, in the order of `SLOWDOWN_LIMITS`."""
UTILIZATIONS = {"Lublin-256": (0.86, 0.80), "Cirne": (0.76, 0.70), "Jann": (0.81, 0.76)}
"""Trace -> renewable utilization that was to be reached within each bound; on Cirne more than of `gas-marl-plus`."""
GOALS: dict[float, dict[str, tuple[float, float]]] = {
    bound: {trace: (least[k], SLOWDOWN_LIMITS[trace][k]) for trace, least in UTILIZATIONS.items()}
    for k, bound in enumerate(BOUNDS)
}
"""Makespan bound -> trace -> least renewable utilization and largest bounded slowdown that were to be reached."""
BEYOND = 1.1
"""A single window is beyond a bound if its makespan exceeds it by more than this factor."""

OWN, IN_MODEL, ELSEWHERE, OTHERS = KINDS = (
    "its model, authors' parameters", "its model, fitted to the trace", "Lublin's model", "the two other models",
)  # fmt: skip


def _own(trace: str) -> dict[str, Any]:
    return {"training.search.slowdown": [round(MARGIN * limit, 2) for limit in SLOWDOWN_LIMITS[trace]]}


def _beside(scenario: str) -> dict[str, Any]:
    return {"training.search.beside": [scenario]}


COURSES: dict[str, Course] = {
    course.name: course
    for course in (
        Course(name="Lublin-256", scenario="gas-marl/fresh-lublin-256", first="", overrides=_own("Lublin-256"),
               tests={"Lublin-256": OWN, "Cirne": ELSEWHERE, "Jann": ELSEWHERE}),
        Course(name="Cirne", scenario="gas-marl/fresh-cirne", overrides=REFINED | _own("Cirne"),
               tests={"Cirne": IN_MODEL}),
        Course(name="Jann", scenario="gas-marl/fresh-jann", overrides=REFINED | _own("Jann"), tests={"Jann": IN_MODEL}),
        Course(name="without-Lublin-256", scenario="gas-marl/fresh-cirne", first="",
               overrides=_beside("gas-marl/fresh-jann"), tests={"Lublin-256": OTHERS}),
        Course(name="without-Cirne", scenario="gas-marl/fresh-lublin-256",
               overrides=REFINED | _beside("gas-marl/fresh-jann"), tests={"Cirne": OTHERS}),
        Course(name="without-Jann", scenario="gas-marl/fresh-lublin-256",
               overrides=REFINED | _beside("gas-marl/fresh-cirne"), tests={"Jann": OTHERS}),
    )
}  # fmt: skip
"""All courses by name, each after the one that it begins with."""

SHIPPED_MODELS = {"Lublin-256": "lublin-256", "Cirne": "cirne", "Jann": "jann"}
"""Trace -> the model of `gas-marl-plus` that is in-sample there."""

AGENT = Agent(
    column="GAS-MARL fresh", preset=PRESET, backfills=("none",), knobs=(":makespan_bound=1.5", ":makespan_bound=1.25")
)  # fmt: skip
GOAL = Goal(name="renewable", metrics=STUDIES["gas-marl"].goals[0].metrics)

FRESH: Study = replace(
    STUDIES["gas-marl"], title="GAS-MARL's windows, by agents that have seen none of them", agents=(AGENT,),
    goals=(GOAL,), rules_beside=(), traces=PROTOCOLS["gas-marl"].traces,
)  # fmt: skip
"""The study as far as its tests are concerned."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """The study as far as its trainings are concerned, see `studies.train_missing`."""

    @property
    def traces(self) -> Mapping[str, str]:
        """Course -> scenario."""
        return {name: course.scenario for name, course in COURSES.items()}


def fresh_cells(place: Path, *, courses: Sequence[str] | None = None, seeds: Sequence[int] = (0, 1, 2)) -> list[Cell]:
    """The trainings in an order in which each finds the one that it begins with; seed by seed.

    Args:
        place: folder of the study.
        courses: names of `COURSES`, in any case; by default all. Those that they begin with are trained too.
        seeds: seeds of each course.

    Raises:
        InputError: there is no such course.
    """
    chosen = known_names(courses, tuple(COURSES), COURSES, "--traces")
    needed = {name for course in chosen for name in (course, COURSES[course].first)}
    return [fresh_cell(course, seed, place) for seed in seeds for name, course in COURSES.items() if name in needed]


def fresh_cell(course: Course, seed: int, place: Path) -> Cell:
    """One training."""
    overrides = dict(course.overrides)
    if course.first:
        begun = fresh_cell(COURSES[course.first], seed, place)
        overrides["training.search.begin"] = (place / begun.folder).as_posix()
    agent = replace(AGENT, overrides={course.name: overrides})
    return Cell(
        agent=agent, goal=GOAL, trace=course.name, backfill="none", windows="published", eta=None, seed=seed
    )  # fmt: skip
