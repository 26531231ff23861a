"""Cells of a comparison or a sweep: all schedulers on one window of one scenario.

What is sent for a cell is its description, and what comes back are its figures; the scenarios are sent once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from greenbatch.workers import Workers, choose, several, spread, where

if TYPE_CHECKING:
    from greenbatch.cluster import Cluster
    from greenbatch.engine.outcome import Outcome
    from greenbatch.engine.program import Scheduler
    from greenbatch.metrics import Parts
    from greenbatch.scenarios import Scenario
    from greenbatch.workload import Workload

Progress = Callable[[str, int, int], None]
"""Called with (what is being simulated, number done, total)."""

Metrics = dict[str, dict[str, float]]
"""Scheduler -> metric -> value, of one cell."""


class Cell(NamedTuple):
    """All schedulers on one window of one scenario."""

    value: str
    """Text of the value of a sweep; empty in a comparison."""
    start: int
    """First job of the window, or number of the draw."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Figures:
    """The metrics of a cell in a few kilobytes, as they are sent and held."""

    names: tuple[tuple[str, tuple[str, ...]], ...]
    """Schedulers and the names of their metrics."""
    values: NDArray[np.float64]
    """The values in that order."""

    @classmethod
    def of(cls, metrics: Metrics) -> Figures:
        """Metrics in this form."""
        names = tuple((scheduler, tuple(found)) for scheduler, found in metrics.items())
        return cls(names, np.array([value for found in metrics.values() for value in found.values()], np.float64))

    def metrics(self) -> Metrics:
        """Scheduler -> metric -> value."""
        values = iter(self.values.tolist())
        return {scheduler: {name: next(values) for name in names} for scheduler, names in self.names}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Question:
    """What the cells have in common."""

    scenarios: Mapping[str, Scenario]
    """Text of each value of a sweep -> the scenario with it; the text of a comparison is empty."""
    deciders: Mapping[str, Scheduler]
    """The schedulers by name."""
    jobs: int
    """Jobs per window; 0 for draws of the generator."""
    baseline: str
    """Name of the scheduler that ratios refer to."""
    parts: Mapping[str, Parts] = field(init=False)
    """Text of each value -> partitions, accounts and users whose figures are counted."""

    def __post_init__(self) -> None:
        from greenbatch.metrics import parts_of

        known: dict[tuple[int, int], Parts] = {}
        found = {}
        for text, each in self.scenarios.items():
            same = id(each.workload), id(each.cluster) if each.cluster.on_nodes else 0
            if same not in known:
                known[same] = parts_of(each.workload, each.cluster, by_month=self.jobs == len(each.workload))
            found[text] = known[same]
        object.__setattr__(self, "parts", found)

    def figures(self, cell: Cell) -> Figures:
        """The figures of a cell."""
        window = self.window(cell)
        return Figures.of(self.metrics(cell, window, self.simulated(cell, window)))

    def simulated(
        self, cell: Cell, window: tuple[Workload, Cluster], show: Callable[[str, int], None] = lambda *_: None,
        outcomes: dict[str, Outcome] | None = None,
    ) -> dict[str, Outcome]:  # fmt: skip
        """The outcomes of all schedulers.

        Args:
            cell: the cell.
            window: its jobs and machine.
            show: called before every simulation with the scheduler and the number of those before it.
            outcomes: receives each outcome at once, so that an interruption leaves what was simulated before.
        """
        from greenbatch.engine.simulate import simulate

        found = {} if outcomes is None else outcomes
        scenario, (workload, cluster) = self.scenarios[cell.value], window
        for run, (name, decider) in enumerate(self.deciders.items()):
            show(name, run)
            found[name] = simulate(workload, cluster, scenario.site, scenario.rules, decider)
        return found

    def metrics(self, cell: Cell, window: tuple[Workload, Cluster], outcomes: Mapping[str, Outcome]) -> Metrics:
        """The metrics of a cell by the outcomes of its schedulers, or of some of them."""
        from greenbatch.metrics import Cut, evaluate_window, horizon_of

        scenario, (workload, cluster) = self.scenarios[cell.value], window
        own = scenario.evaluation
        cut = Cut(**cast(Any, own.cut))
        horizon = horizon_of(
            workload, cluster, scenario.site, scenario.rules, own.horizon, cover_record=own.cover_record
        )
        return evaluate_window(outcomes, baseline=self.baseline, cut=cut, horizon=horizon, parts=self.parts[cell.value])

    def window(self, cell: Cell) -> tuple[Workload, Cluster]:
        """The jobs of a cell, and the machine."""
        from greenbatch.scenarios.regenerate import question

        return question(self.scenarios[cell.value], cell.start, self.jobs)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Played:
    """The finished cells, and the outcomes of the first."""

    figures: dict[Cell, Figures] = field(default_factory=dict)
    """Each finished cell -> its figures, as they were finished."""
    example: dict[str, Outcome] = field(default_factory=dict)
    """Outcomes of the first cell; some of them, if it was interrupted."""
    interruption: KeyboardInterrupt | None = None
    """Of the user, if there was one: cells are missing."""


def play(
    question: Question,
    cells: Sequence[Cell],
    progress: Progress | None = None,
    *,
    finished: Mapping[Cell, Figures] | None = None,
    workers: Workers | None = None,
    keep: Callable[[Cell, Figures], None] = lambda *_: None,
) -> Played:
    """Simulate cells. An interruption by the user ends it and is kept in the answer.

    Args:
        question: what they have in common.
        cells: the cells. The first is simulated in this process, for its outcomes.
        progress: called before every simulation; with several processes, after every cell.
        finished: figures of cells that need no simulation; those of the first are computed again.
        workers: number of processes, or a Ray cluster; None to choose by the duration of the first cell.
        keep: called with each cell that was simulated, and its figures.
    """
    asked = set(cells[1:])
    found = Played(figures={cell: each for cell, each in (finished or {}).items() if cell in asked})
    count, runs = len(question.deciders), len(cells) * len(question.deciders)
    names: dict[Any, Any] = {}

    def tell(what: str, run: int = 0) -> None:
        if progress is not None:
            progress(what, len(found.figures) * count + run, runs)

    def here(cell: Cell) -> Figures:
        first = cell == cells[0] != cells[-1]  # the first of several compiles the engine, and runs alone
        at = _named(cell, question)
        outcomes: dict[str, Outcome] = found.example if cell == cells[0] else {}
        window = question.window(cell)
        question.simulated(cell, window, lambda name, run: tell(f"{name} on {at}", 0 if first else run), outcomes)
        return Figures.of(question.metrics(cell, window, outcomes))

    def done(cell: Cell, figures: Figures) -> None:
        found.figures[cell] = Figures(names.setdefault(figures.names, figures.names), figures.values)  # names once
        keep(cell, figures)

    begun = perf_counter()
    try:
        done(cells[0], here(cells[0]))
        left = [cell for cell in cells if cell not in found.figures]
        chosen = choose(workers, (perf_counter() - begun) * len(left))
        with closing(spread(left, here, question.figures, chosen)) as results:
            for cell, figures in results:
                done(cell, figures)
                if several(chosen):
                    tell(f"windows {where(chosen)}")
    except KeyboardInterrupt as interruption:
        found.interruption = interruption
    return found


def _named(cell: Cell, question: Question) -> str:
    """A cell in words, such as ``jobs 0 to 255 at 0.4``."""
    span = f"jobs {cell.start} to {cell.start + question.jobs - 1}" if question.jobs else f"draw {cell.start}"
    return f"{span} at {cell.value}" if cell.value else span


def windows_of(figures: Mapping[Cell, Figures], value: str, starts: Collection[int]) -> dict[int, Metrics]:
    """First job of each finished window of a value -> its metrics, in the order of the starts."""
    return {start: figures[Cell(value, start)].metrics() for start in starts if Cell(value, start) in figures}
