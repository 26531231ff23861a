"""Test trained agents on orders of workloads, beside all fixed rules and agents that were not trained.

Agents take their best action. A contender is a scheduler with one set of figures per seed; rules with a random part
have the mean of their seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.experiments.papers.fixed_rules import fixed_rules
from greenbatch.experiments.papers.order_studies import OrderStudy, Trial, Variant
from greenbatch.experiments.papers.orders import METRICS, ORDERS, Floats, play
from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.studies import Budget, Cell, plan_of
from greenbatch.experiments.running.cells import Progress
from greenbatch.experiments.running.statistics import Interval, mean_interval
from greenbatch.learning.several import state_of
from greenbatch.workers import Workers

if TYPE_CHECKING:
    from greenbatch.engine.program import Scheduler

UNTRAINED = "InEPS, untrained"
"""The agent of the paper with the weights that its training begins with."""
UNTRAINED_PRESET = "ineps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A row of a table."""

    name: str
    variant: Variant | None = None
    """Trained agents: what was trained."""
    seeds: tuple[int, ...] = ()
    """Agents: seeds with a finished training, or of the initial weights."""
    missing: tuple[int, ...] = ()
    """Agents: selected seeds without a finished training."""

    @property
    def is_agent(self) -> bool:
        """Whether it is an agent, trained or not."""
        return self.variant is not None or self.name == UNTRAINED


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The figures of one trial."""

    study: OrderStudy
    trial: Trial
    orders: tuple[int, ...]
    """Seeds of the orders."""
    agents: tuple[Contender, ...]
    """The agent without training, then the trained ones."""
    paper_rules: tuple[str, ...]
    """Names of the paper's plain rules."""
    figures: Mapping[str, Floats]
    """Contender or rule -> figures, shape (seeds, orders, `METRICS`); rules have one row. Agents without a training are
    absent."""
    fixed: tuple[str, ...]
    """Names of all fixed rules."""

    def values(self, name: str, metric: str) -> Floats:
        """Figures of a contender, shape (seeds, orders)."""
        return np.asarray(self.figures[name][:, :, METRICS.index(metric)])

    def best_rule(self, metric: str) -> str:
        """The fixed rule of the lowest mean over these very orders: chosen in hindsight, which favors it."""
        return min(self.fixed, key=lambda name: self.values(name, metric).mean())

    def interval(self, name: str, metric: str) -> Interval:
        """Mean over seeds and orders with its interval."""
        return mean_interval(self.values(name, metric))

    def ratio(self, name: str, metric: str, to: str = "") -> Interval:
        """Mean ratio to a rule, by default the best fixed one, order by order, over seeds and orders."""
        return mean_interval(self.values(name, metric) / self.values(to or self.best_rule(metric), metric))


def evaluate_orders(
    study: OrderStudy,
    cells: Sequence[Cell],
    place: Path,
    *,
    orders: Sequence[int] = ORDERS,
    rules: Mapping[str, tuple[str, ...]] | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> list[TrialResult]:
    """Test the finished trainings of a study, one result per test of what is trained on.

    Args:
        study: the paper.
        cells: the selected trainings; unfinished ones get a row that says so.
        place: folder of the study.
        orders: seeds of the orders.
        rules: the fixed rules, by default all: name -> names of its schedulers.
        workers: number of processes, see `orders.play`.
        progress: called after every order.
    """
    trials = [trial for trial in study.trials if any(cell.trace == trial.trained_on for cell in cells)]
    with TemporaryDirectory() as scratch:
        _write_untrained(study, cells, Path(scratch))
        return [
            _tested(study, trial, cells, place, Path(scratch), tuple(orders), rules or fixed_rules(), workers, progress)
            for trial in trials
        ]


def _write_untrained(study: OrderStudy, cells: Sequence[Cell], scratch: Path) -> None:
    from greenbatch.experiments.papers.untrained import write_untrained
    from greenbatch.scenarios import load_scenario

    first = next(variant for variant in study.variants if variant.agent.preset == UNTRAINED_PRESET)
    for trace in dict.fromkeys(cell.trace for cell in cells):
        scenario = load_scenario(study.traces[trace])
        for seed in dict.fromkeys(cell.seed for cell in cells):
            cell = Cell(agent=first.agent, goal=first.goal, trace=trace, backfill="none", windows="published",
                        eta=None, seed=seed)  # fmt: skip
            write_untrained(plan_of(cell, scenario, Budget()), _untrained(scratch, trace, seed))


def _untrained(scratch: Path, trace: str, seed: int) -> Path:
    return scratch / trace / f"seed-{seed}"


def _tested(
    study: OrderStudy, trial: Trial, cells: Sequence[Cell], place: Path, scratch: Path, orders: tuple[int, ...],
    rules: Mapping[str, tuple[str, ...]], workers: Workers | None, progress: Progress | None,
) -> TrialResult:  # fmt: skip
    own = [cell for cell in cells if cell.trace == trial.trained_on]
    paper = _paper_rules(study, trial)
    members: dict[str, dict[str, Scheduler]] = {
        name: _by_name(specs) for name, specs in {**paper, **rules}.items()
    }  # fmt: skip
    seeds = tuple(dict.fromkeys(cell.seed for cell in own))
    agents = [Contender(name=UNTRAINED, seeds=seeds)]
    members[UNTRAINED] = {
        f"{UNTRAINED}, seed {seed}": model_of(UNTRAINED_PRESET, _untrained(scratch, trial.trained_on, seed))
        for seed in seeds
    }  # fmt: skip
    for variant in study.variants:
        mine = [cell for cell in own if study.variant(cell) == variant]
        done = [cell for cell in mine if state_of(place / cell.folder) == "finished"]
        if not mine:
            continue
        agents.append(Contender(
            name=variant.column, variant=variant, seeds=tuple(cell.seed for cell in done),
            missing=tuple(cell.seed for cell in mine if cell not in done),
        ))  # fmt: skip
        if done:
            members[variant.column] = {
                f"{variant.column}, seed {cell.seed}": model_of(variant.agent.preset, place / cell.folder)
                for cell in done
            }  # fmt: skip
    every = {name: scheduler for several in members.values() for name, scheduler in several.items()}
    played = play(trial.load(), every, orders, workers=workers, progress=_named(progress, trial))
    known = {contender.name for contender in agents}
    figures = {name: np.array([played[each] for each in several]) for name, several in members.items()}
    return TrialResult(
        study=study, trial=trial, orders=orders, agents=tuple(agents), paper_rules=tuple(paper), fixed=tuple(rules),
        figures={name: f if name in known else f.mean(axis=0, keepdims=True) for name, f in figures.items()},
    )  # fmt: skip


def _named(progress: Progress | None, trial: Trial) -> Progress | None:
    return None if progress is None else lambda _, done, total: progress(f"orders of {trial.name}", done, total)


def _paper_rules(study: OrderStudy, trial: Trial) -> dict[str, tuple[str, ...]]:
    """The paper's plain rules: name -> names of its schedulers."""
    rows = PROTOCOLS[study.name].rows_on(trial.rules or trial.name)
    return {row.column: row.specs(backfill) for row in rows for backfill in row.backfills}


def _by_name(specs: Sequence[str]) -> dict[str, Scheduler]:
    from greenbatch.schedulers import scheduler

    return {spec: scheduler(spec) for spec in specs}


def model_of(preset: str, folder: Path) -> Any:
    """The scheduler of a training of a preset in a folder."""
    from greenbatch.models.model import MODEL
    from greenbatch.schedulers import scheduler

    return scheduler(f"{preset}@{folder / MODEL}+none")
