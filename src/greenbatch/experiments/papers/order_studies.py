"""What a paper trains on one workload and tests on orders of others, as data, and the cells of its training.

InEPS trains an agent on a workload and tests it on another one of the same jobs in another order, so that windows of a
trace (`studies`) do not fit. A cell is a training in a folder as there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.experiments.papers.studies import Agent, Cell, Goal, known_names
from greenbatch.learning.several import state_of

if TYPE_CHECKING:
    from greenbatch.scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """An agent with its goal: a column of the paper, or an additional one."""

    agent: Agent
    goal: Goal
    family: str
    """Name that the models for energy and for the energy-delay product share."""

    @property
    def column(self) -> str:
        """Its name in tables."""
        return self.agent.column


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A workload whose orders models are tested on."""

    name: str
    scenario: str
    trained_on: str
    """The trace that its models are trained on."""
    rules: str = ""
    """Trace of the paper's protocol whose plain rules are shown beside; by default the one of this name."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Dotted key of the scenario -> value."""
    about: str = ""
    """How it differs from its scenario, or its scenario from that of the training."""

    def load(self) -> Scenario:
        """The scenario."""
        from greenbatch.scenarios import load_scenario

        return load_scenario(self.scenario, overrides=self.overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStudy:
    """What a paper trains, and the workloads whose orders it tests on."""

    name: str
    """Name of the protocol with its plain rules and published figures."""
    title: str
    traces: Mapping[str, str]
    """What is trained on, as the paper names it -> scenario."""
    variants: tuple[Variant, ...]
    trials: tuple[Trial, ...]
    tuned: Mapping[str, str]
    """Family of models -> what its settings were chosen on."""

    @property
    def presets(self) -> tuple[str, ...]:
        """The presets, each once."""
        return tuple(dict.fromkeys(variant.agent.preset for variant in self.variants))

    def variant(self, cell: Cell) -> Variant:
        """The variant that a cell is a training of."""
        return next(v for v in self.variants if (v.agent, v.goal) == (cell.agent, cell.goal))


ENERGY, EDP = Goal(name="energy", metrics={}), Goal(name="edp", metrics={})
EDP_AS_PUBLISHED = Goal(name="edp", metrics={}, terms={"energy_kwh": 0.0, "edp_steps_js": -1.0})
"""The published reward for the energy-delay product: each increment of energy times that of time."""
TABLE_5 = {"training.windows": 3, "training.jobs": 50, "training.minibatch": 25}
AS_IN_THE_PAPER = {"Adaptability": TABLE_5, "Adaptability as published": TABLE_5}
FEW_EPOCHS = {"Convergence": {"training.epochs": 20}, "Convergence as published": {"training.epochs": 20}}
"""Forty nodes take long, and more epochs bring nothing there."""


def _nodes(*groups: tuple[str, int, int]) -> list[dict[str, Any]]:
    """Node groups of Table 3: type, first node, count."""
    table = {"type0": (8, 4.2, 68.81, 6.49), "type1": (16, 3.8, 56.33, 5.32), "type2": (32, 3.4, 45.09, 4.26),
             "type3": (48, 3.0, 35.11, 3.31)}  # fmt: skip
    keys = ("processors", "clock_ghz", "static_power_w", "power_per_processor_w")
    return [
        {"name": name, "node_names": f"node[{first}-{first + count - 1}]", "flop_per_cycle": 1,
         "idle_fraction": 0.3959, **dict(zip(keys, table[name], strict=True))} for name, first, count in groups
    ]  # fmt: skip


CONVERGENCE, MIXED = "ineps/convergence-mixed", "ineps/adaptability-mixed"
PUBLISHED = "with contention, events and idle power as published"

ORDER_STUDIES: dict[str, OrderStudy] = {
    "ineps": OrderStudy(
        name="ineps",
        title="InEPS, Figs. 5, 6 and 8 and Table 7, trained here",
        traces={"Convergence": CONVERGENCE, "Convergence as published": f"{CONVERGENCE}-as-published",
                "Adaptability": MIXED, "Adaptability as published": f"{MIXED}-as-published"},
        variants=(
            Variant(agent=Agent(column="Energy InEPS", preset="ineps", overrides=AS_IN_THE_PAPER), goal=ENERGY,
                    family="InEPS"),
            Variant(agent=Agent(column="EDP InEPS", preset="ineps", overrides=AS_IN_THE_PAPER), goal=EDP_AS_PUBLISHED,
                    family="InEPS"),
            Variant(agent=Agent(column="Energy InEPS plus", preset="ineps-plus", overrides=FEW_EPOCHS), goal=ENERGY,
                    family="InEPS plus"),
            Variant(agent=Agent(column="EDP InEPS plus", preset="ineps-plus-edp", overrides=FEW_EPOCHS), goal=EDP,
                    family="InEPS plus"),
        ),
        trials=(
            Trial(name="Convergence", scenario="ineps/as-published", trained_on="Convergence as published",
                  about=PUBLISHED),
            Trial(name="Convergence as worded", scenario="ineps/convergence", trained_on="Convergence"),
            Trial(name="Memory-intensive", scenario="ineps/adaptability-memory-as-published",
                 trained_on="Adaptability as published", about=PUBLISHED),
            Trial(name="Memory-intensive as worded", scenario="ineps/adaptability-memory", trained_on="Adaptability"),
            Trial(name="Computation-intensive", scenario="ineps/adaptability-compute-as-published",
                 trained_on="Adaptability as published", about=PUBLISHED),
            Trial(name="Computation-intensive as worded", scenario="ineps/adaptability-compute",
                 trained_on="Adaptability"),
            Trial(name="Mixed, twice the nodes", scenario=MIXED, trained_on="Adaptability",
                 rules="Memory-intensive as worded",
                 overrides={"workload.generator.jobs": 100,
                            "cluster.groups": _nodes(("type0", 0, 20), ("type3", 20, 4))},
                 about="its first 100 jobs on 20 nodes of type 0 and 4 of type 3"),
            Trial(name="Mixed, other nodes", scenario=MIXED, trained_on="Adaptability",
                 rules="Memory-intensive as worded",
                 overrides={"workload.generator.jobs": 100,
                            "cluster.groups": _nodes(("type1", 0, 5), ("type2", 5, 3))},
                 about="its first 100 jobs on 5 nodes of type 1 and 3 of type 2 (Table 3), as many processors"),
        ),
        tuned={
            "InEPS": "hyperparameters as published, those that the paper leaves open as the preset says",
            "InEPS plus": "features and settings of the preset chosen on other orders of these workloads",
        },
    ),
}  # fmt: skip
"""All studies of this kind by name."""


def order_cells(
    study: OrderStudy, *, traces: Sequence[str] | None = None, presets: Sequence[str] | None = None,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
) -> list[Cell]:  # fmt: skip
    """The selected trainings in order: all seeds of one variant before the next; names in any case, None for all.

    Raises:
        InputError: a name is unknown, or no seed is given.
    """
    if not seeds:
        raise InputError("names no seed", field="--seeds", fix="give 0,1,2")
    chosen = known_names(presets, study.presets, study.presets, "--presets")
    return [
        Cell(agent=variant.agent, goal=variant.goal, trace=trace, backfill="none", windows="published", eta=None,
             seed=seed)
        for trace in known_names(traces, tuple(study.traces), study.traces, "--traces")
        for variant in study.variants if variant.agent.preset in chosen
        for seed in dict.fromkeys(seeds)
    ]  # fmt: skip


def trained_cells(cells: Sequence[Cell], place: Path) -> list[Cell]:
    """The cells of traces and variants with a finished training in a folder; all of them if there is none."""

    def group(cell: Cell) -> tuple[Any, ...]:
        return cell.trace, cell.agent.preset, cell.goal.name

    found = {group(cell) for cell in cells if state_of(place / cell.folder) == "finished"}
    return [cell for cell in cells if not found or group(cell) in found]
