"""What each paper trains, as data, and the training of missing cells.

A study lists a paper's agents (presets), their rewards, its traces and its backfillings. A cell is one training in one
folder: a finished training is reused, an interrupted one resumes. The paper decides what is trained, the preset how. If
an agent of ours uses another penalty factor than the paper, or a bound on slowdown, its `etas` and `overrides` state
it, and so do the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from greenbatch.errors import InputError
from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.running.cells import Progress
from greenbatch.presets.training import MODES
from greenbatch.workers import Workers, several, where

if TYPE_CHECKING:
    from greenbatch.learning.runs.plan import Plan
    from greenbatch.scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A preset that reproduces a learned column of the paper, or an additional one."""

    column: str
    preset: str
    against: str = ""
    """Published column that it is compared with, if the paper has no column of the same name."""
    weighed: bool = False
    """Whether its reward weights bounded slowdown by a penalty factor eta."""
    etas: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Trace -> penalty factor, instead of the paper's."""
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """Trace -> values that replace the preset's there: dotted key -> value."""
    knobs: tuple[str, ...] = ("",)
    """Parameters that each of its models is evaluated with, spelled as after a model's folder."""
    backfills: tuple[str, ...] = ()
    """The only backfillings it is trained with, regardless of the selection; if empty, the selected ones."""
    variant: str = ""
    """Tells it from other agents of the study with the same preset, in the folders of its trainings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """An objective of training, and the tables that report it."""

    name: str
    metrics: Mapping[str, str]
    """Table -> metric."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """Reward terms and their weights, instead of the preset's."""
    reason: str = ""
    """Why these tables are not comparable, if they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a paper trains."""

    name: str
    """Name of the protocol with its plain rules and published figures."""
    title: str
    traces: Mapping[str, str]
    """Trace as the paper names it -> scenario."""
    usual_traces: tuple[str, ...]
    agents: tuple[Agent, ...]
    goals: tuple[Goal, ...]
    usual_goals: tuple[str, ...]
    backfills: tuple[str, ...]
    usual_backfills: tuple[str, ...]
    etas: Mapping[str, float] = field(default_factory=dict)
    """Trace -> the paper's penalty factor."""
    other_backfills: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Backfilling in training -> additional backfillings in evaluation."""
    across: bool = False
    """Whether models are also evaluated on the other traces."""
    baseline: str = "f2+easy-schedgym"
    """The scheduler that makespans are relative to."""
    rival: str = "f2+green"
    """The scheduler that agents are compared with window by window."""
    rules_beside: tuple[str, ...] = ()
    """Additional plain rules, without backfilling."""

    def eta(self, agent: Agent, trace: str) -> float | None:
        """An agent's default penalty factor on a trace."""
        return agent.etas.get(trace, self.etas.get(trace))

    def agent(self, preset: str) -> Agent:
        """The agent of a preset, the first of several."""
        return next(agent for agent in self.agents if agent.preset == preset)


class Trains(Protocol):
    """A study of any kind, as far as its training needs it."""

    @property
    def traces(self) -> Mapping[str, str]:
        """Trace of a cell -> the scenario that it is trained on."""


KIND = "published"
"""How training jobs are drawn in studies without held-out windows, and name of their tests, in folders and rows."""
SLOWDOWN_LIMITS = {"Lublin-256": (7.0, 12.0), "Cirne": (5.0, 8.0), "Jann": (6.0, 8.0)}
"""Trace -> upper limits on the mean bounded slowdown of `gas-marl-plus` at 1.5 and 1.25 times the makespan of F2 with
backfilling; its search limits slowdown to 85 % of them."""

STUDIES: dict[str, Study] = {
    "gas-marl": Study(
        name="gas-marl",
        title="GAS-MARL, Tables 3 and 4, trained here",
        traces=PROTOCOLS["gas-marl"].traces,
        usual_traces=("Lublin-256", "Cirne", "Jann"),
        agents=(
            Agent(column="PPO", preset="maskable-ppo", weighed=True),
            Agent(column="GAS-MARL", preset="gas-marl", weighed=True),
            Agent(column="GAS-MARL, group-relative", preset="gas-marl-group", weighed=True, against="GAS-MARL",
                  etas={"Cirne": 0.012, "Jann": 0.02}),
            Agent(column="GAS-MARL plus", preset="gas-marl-plus", backfills=("none",),
                  knobs=(":makespan_bound=1.5", ":makespan_bound=1.4", ":makespan_bound=1.25"), overrides={
                      trace: {"training.search.slowdown": [round(0.85 * limit, 2) for limit in limits]}
                      for trace, limits in SLOWDOWN_LIMITS.items()
                  }),
        ),
        goals=(
            Goal(name="renewable", metrics={"Table 3": "avg_bounded_slowdown", "Table 4": "renewable_utilization"}),
        ),
        usual_goals=("renewable",),
        backfills=("none", "easy-schedgym", "green"),
        usual_backfills=("green",),
        etas={"Lublin-256": 0.002, "Cirne": 0.008, "Jann": 0.003},
        other_backfills={"none": ("green",)},
        rules_beside=("cheapest-start:psi=8", "cheapest-start:psi=2"),
    ),
    "rlscheduler": Study(
        name="rlscheduler",
        title="RLScheduler, Tables V to VIII, trained here",
        traces=PROTOCOLS["rlscheduler"].traces,
        usual_traces=("Lublin-1", "Lublin-2"),
        agents=(
            Agent(column="RL", preset="rlscheduler"),
            Agent(column="RL plus", preset="rlscheduler-plus", against="RL"),
        ),
        goals=(
            Goal(name="bounded-slowdown", metrics={"Table V": "avg_bounded_slowdown"}),
            Goal(name="utilization", metrics={"Table VI": "utilization_to_last_start"}, terms={"utilization": 1.0}),
            Goal(name="fairness", metrics={"Table VIII": "max_user_bounded_slowdown"},
                 terms={"max_user_bounded_slowdown": -1.0},
                 reason="the published figure is the sum of a user's slowdowns in sequences of 128 jobs"),
            Goal(name="slowdown", metrics={"Table X": "avg_slowdown"}, terms={"avg_slowdown": -1.0},
                 reason="the published figures were made with other windows"),
            Goal(name="wait", metrics={"Table XI": "avg_wait_s"}, terms={"avg_wait_s": -1.0},
                 reason="the published figures were made with other windows"),
        ),
        usual_goals=("bounded-slowdown", "utilization"),
        backfills=("none", "easy-schedgym"),
        usual_backfills=("none", "easy-schedgym"),
        across=True,
        rival="f2+easy-schedgym",
    ),
}  # fmt: skip
"""All studies by name. Agents whose preset is not shipped are omitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One training."""

    agent: Agent
    goal: Goal
    trace: str
    backfill: str
    windows: str
    """How its training windows are sampled, see `learning.runs.windows`."""
    eta: float | None
    """Penalty factor; None if the reward has none or the preset's is used."""
    seed: int

    @property
    def folder(self) -> Path:
        """Its folder, relative to the folder of the study."""
        goal = f"_{self.goal.name}" if self.goal.terms else ""
        eta = "" if self.eta is None else f"_eta{self.eta:g}"
        preset = f"{self.agent.preset}{self.agent.variant and '_'}{self.agent.variant}"
        name = f"{preset}_{self.backfill}{goal}{eta}"  # no comma, plus or colon: schedulers are named by it
        return Path(self.trace.lower(), name, self.windows, f"seed-{self.seed}")

    @property
    def overrides(self) -> dict[str, Any]:
        """Values of the study that replace the preset's: dotted key -> value."""
        made = dict(self.agent.overrides.get(self.trace, {}))
        if self.goal.terms:
            return {**made, "reward.terms": dict(self.goal.terms)}
        return made if self.eta is None else {**made, "reward.terms.avg_bounded_slowdown": -self.eta}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The selected cells of a study."""

    traces: tuple[str, ...]
    presets: tuple[str, ...]
    goals: tuple[str, ...]
    backfills: tuple[str, ...]
    windows: tuple[str, ...]
    seeds: tuple[int, ...]
    etas: tuple[float, ...] = ()
    """Penalty factors; if empty, the paper's for each trace."""


def study(name: str) -> Study:
    """The study of a paper.

    Raises:
        InputError: there is no such study.
    """
    if name not in STUDIES:
        raise InputError(f"there is no study {name!r}", field="PROTOCOL", fix="known: " + ", ".join(STUDIES))
    return STUDIES[name]


def select(
    study: Study,
    *,
    traces: Sequence[str] | None = None,
    presets: Sequence[str] | None = None,
    goals: Sequence[str] | None = None,
    backfills: Sequence[str] | None = None,
    windows: str = "both",
    seeds: Sequence[int] = (0, 1, 2),
    etas: Sequence[float] = (),
) -> Selection:
    """Select cells of a study by name, in any case; None stands for the study's defaults.

    Raises:
        InputError: a name is unknown, or penalty factors are given and no selected agent has one.
    """
    shipped = [agent.preset for agent in study.agents if _ships(agent.preset)]
    if windows not in (*MODES, "both"):
        raise InputError(
            f"is {windows!r}", field="--windows", fix="give published, held-out or both; gas-marl also has fresh"
        )
    agents = known_names(presets, shipped, shipped, "--presets")
    if etas and not any(study.agent(name).weighed for name in agents):
        problem = f"has no effect on {', '.join(agents)}, without a penalty factor"
        raise InputError(problem, field="--eta", fix="leave it out")
    for eta in etas:
        if not 0 <= eta < 1e6:
            raise InputError(f"is {eta:g}", field="--eta", fix="give a number >= 0")
    if not seeds:
        raise InputError("names no seed", field="--seeds", fix="give 0,1,2")
    return Selection(
        traces=known_names(traces, study.usual_traces, study.traces, "--traces"),
        presets=agents,
        goals=known_names(goals, study.usual_goals, [goal.name for goal in study.goals], "--goals"),
        backfills=known_names(backfills, study.usual_backfills, study.backfills, "--backfills"),
        windows=MODES if windows == "both" else (windows,),
        seeds=tuple(seeds),
        etas=tuple(etas),
    )


def cells_of(study: Study, which: Selection) -> list[Cell]:
    """The selected trainings in order: all seeds of one column before the next column."""
    made = []
    for windows in which.windows:
        for trace in which.traces:
            for agent in (agent for preset in which.presets for agent in study.agents if agent.preset == preset):
                for backfill in agent.backfills or which.backfills:
                    for goal in (goal for goal in study.goals if goal.name in which.goals):
                        for eta in _etas(study, agent, trace, which.etas):
                            made += [
                                Cell(agent=agent, goal=goal, trace=trace, backfill=backfill, windows=windows, eta=eta,
                                     seed=seed) for seed in which.seeds
                            ]  # fmt: skip
    return made


def _etas(study: Study, agent: Agent, trace: str, given: Sequence[float]) -> Sequence[float | None]:
    if not agent.weighed:
        return (None,)
    return given or (study.eta(agent, trace),)


def _ships(preset: str) -> bool:
    from greenbatch.presets.preset import shipped_names

    return preset in shipped_names()


def known_names(
    given: Sequence[str] | None, default: Sequence[str], known: Iterable[str], flag: str
) -> tuple[str, ...]:  # fmt: skip
    """The given names in their canonical spelling; input may be in any case."""
    spelled = {name.lower(): name for name in known}
    found = []
    for name in default if given is None else given:
        if name.lower() not in spelled:
            raise InputError(f"{name!r} is not known", field=flag, fix="known: " + ", ".join(spelled.values()))
        found.append(spelled[name.lower()])
    return tuple(found)


# ---------------------------------------------------------------- folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Length and threads of trainings."""

    epochs: int | None = None
    """The preset's if not given."""
    minutes: float | None = None
    threads: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Values that replace the presets': dotted key -> value."""
    command: Sequence[str] = ()


def trained_part(study: Study, which: Selection, place: Path) -> Selection:
    """The selected traces, presets and windows with a finished training in a folder; all of them if there is none."""
    from greenbatch.learning.several import state_of

    found = [cell for cell in cells_of(study, which) if state_of(place / cell.folder) == "finished"]
    if not found:
        return which
    return replace(
        which,
        traces=tuple(trace for trace in which.traces if any(cell.trace == trace for cell in found)),
        presets=tuple(name for name in which.presets if any(cell.agent.preset == name for cell in found)),
        windows=tuple(kind for kind in which.windows if any(cell.windows == kind for cell in found)),
    )


def plan_of(cell: Cell, scenario: Scenario, budget: Budget) -> Plan:
    """The training plan of a cell.

    Raises:
        InputError: a value is invalid, or the study sets it already.
    """
    from greenbatch.learning.runs.plan import make_plan

    if twice := sorted(set(budget.overrides) & set(cell.overrides)):
        problem = f"{twice[0]} is set by the study for {cell.agent.preset} on {cell.trace}"
        other = "give --eta, or " if cell.eta is not None else ""
        raise InputError(problem, field="--set", fix=f"{other}train it with greenbatch train")
    return make_plan(
        cell.agent.preset, scenario, overrides={**budget.overrides, **cell.overrides}, windows=cell.windows,
        backfill=cell.backfill, epochs=budget.epochs, minutes=budget.minutes, seed=cell.seed, threads=budget.threads,
        command=budget.command,
    )  # fmt: skip


def train_missing(
    study: Trains, cells: Sequence[Cell], place: Path, budget: Budget, progress: Progress | None = None,
    tell: Callable[[str], None] | None = None, changes: Callable[[Cell], Mapping[str, Any]] | None = None,
    workers: Workers | None = None,
) -> None:  # fmt: skip
    """Train all unfinished cells, one after another or, with workers, several at a time.

    Args:
        study: the paper.
        cells: the selected cells.
        place: folder of the study; each cell has a subfolder.
        budget: length and threads. A finished or interrupted training with another budget is refused.
        progress: called with (what, done, total) after every epoch.
        tell: called with one line after each training.
        changes: what is changed in the scenario of a preset and a trace: dotted key -> value.
        workers: number of trainings at a time, or a Ray cluster whose machines all see the folder; ``progress`` is
            then called after every training. The results do not depend on it.

    Raises:
        InputError: a folder contains a different training, or a machine trained elsewhere than in the folder.
        KeyboardInterrupt: stopped by the user; finished trainings are kept and the interrupted one can be resumed.
    """
    from greenbatch.learning.several import train_several, unfinished
    from greenbatch.scenarios import load_scenario

    worlds = {(cell.agent.preset, cell.trace): cell for cell in cells}
    scenarios = {
        world: load_scenario(study.traces[cell.trace], overrides=None if changes is None else changes(cell))
        for world, cell in worlds.items()
    }
    names = {place / cell.folder: cell.folder for cell in cells}
    plans = {place / cell.folder: plan_of(cell, scenarios[cell.agent.preset, cell.trace], budget) for cell in cells}
    left, chosen, done = unfinished(plans), workers or 1, list[Path]()

    def say(what: str) -> None:
        if progress is not None:
            progress(what, len(done), len(left))

    def watch(folder: Path, each: Mapping[str, Any]) -> None:
        say(f"{names[folder]}: epoch {each['epoch']}, {each['progress']:.0%}")

    with closing(train_several(left, workers=chosen, watch=watch)) as found:
        for folder, counters in found:
            done.append(folder)
            if several(chosen):
                say(f"trainings {where(chosen)}")
            if tell is not None:
                tell(f"trained {names[folder]}: {counters.text}")
