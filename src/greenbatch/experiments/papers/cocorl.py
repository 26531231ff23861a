"""The study ``cocorl``: who is compared on what, as data.

CoCoRL (dissertation, 2023, chapter 6) claims more value than four rules at a lower accrued cost, which it holds below a
limit. Its figures 6.4 to 6.12 are not in the text at hand, so the published figures are the *ranges* that sentences
state (``published/cocorl.csv``). Workloads are read as in the shipped scenarios ``cocorl/…``.

The limit is set as in section 6.6.5: the agent is trained without a constraint, what it accrues on average is 11 parts,
and 7 of them are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from greenbatch.experiments.papers.studies import Agent, Cell, Goal, Study

NAME = "cocorl"
"""Name of the study and of its published ranges."""
COST, VALUE = "accrued_cost", "value_ratio"
"""What is constrained, and what is maximized (§6.5.1, Table B.1; §6.6.2)."""
SHARE = 7.0 / 11.0
"""Limit over the accrued cost of the agent without a constraint (§6.6.5: 7,000 of 11,000)."""
AIM = 0.8
"""Share of the limit that trainings aim at: on other episodes an agent accrues more or less."""
FREE = "cocorl-plus-unlimited"
"""Preset of the agent without a constraint, by which the limit is set."""
BASE = "qos+none"
"""The rule that makespans are relative to."""
LOADS = (20, 40, 60, 80, 100, 120)
"""Offered work over what the machine can do, in percent (§6.6.1)."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs of the study."""

    about: str
    load_key: str
    """Key of the scenario that states the load."""


_REAL = "workload.to_pool.load"
WORKLOADS: dict[str, Workload] = {
    "synthetic": Workload("synthetic jobs", "workload.generator.load"),
    "sdsc-sp2": Workload("jobs of SDSC SP2", _REAL),
    "sdsc-blue": Workload("jobs of SDSC Blue Horizon", _REAL),
    "hpc2n": Workload("jobs of HPC2N", _REAL),
    "gleamm": Workload("synthetic jobs with the power of sun and wind", "workload.generator.load"),
}
"""Name, after ``cocorl/`` that of the scenario -> jobs."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A workload at a load."""

    workload: str
    load: int
    """[%]"""

    @property
    def about(self) -> str:
        """In words."""
        return f"{WORKLOADS[self.workload].about}, load {self.load} %"

    @property
    def scenario(self) -> str:
        """Name of the scenario of the test."""
        return f"cocorl/{self.workload}"

    @property
    def overrides(self) -> dict[str, Any]:
        """What is changed in the scenario, in test and training alike: dotted key -> value."""
        return {WORKLOADS[self.workload].load_key: self.load / 100}


SETTINGS: dict[str, Setting] = {
    f"{workload}-{load}": Setting(workload, load) for workload in WORKLOADS for load in LOADS
}
"""Name, as given to ``--traces`` -> setting."""
USUAL = tuple(f"{workload}-{load}" for workload in ("synthetic", "sdsc-sp2", "sdsc-blue") for load in (80, 100, 120))
"""Settings by default: those in which delays depend on the scheduler."""

STRICT = ("qos+none", "sjf+none", "hvf+none", "fcfs+none")
"""The paper's rules, which do not backfill (§6.6.2)."""
BACKFILLED = ("qos+first-fit", "sjf+first-fit", "hvf+first-fit", "fcfs+first-fit")
"""The same with backfilling, which the paper's framework does not support."""
PACKER = "packer"
"""Our own rule: the ready jobs that fit together and weigh most."""
RULES = (*STRICT, *BACKFILLED, PACKER)
HEURISTICS = {"QoS": "qos+none", "SJF": "sjf+none", "HVF": "hvf+none", "FCFS": "fcfs+none"}
"""The paper's rules by the names in its sentences."""

AGENTS = (
    Agent(column="CoCoRL plus without a limit", preset=FREE, backfills=("none",)),
    Agent(column="CoCoRL plus", preset="cocorl-plus", backfills=("none",)),
    Agent(column="CoCoRL", preset="cocorl", backfills=("none",)),
)
USUAL_PRESETS = (FREE, "cocorl-plus")
"""Trained by default: half a minute each. ``cocorl`` takes hours."""

STUDY = Study(
    name=NAME,
    title="CoCoRL, Figs. 6.4 to 6.12",
    traces={name: f"{setting.scenario}-training" for name, setting in SETTINGS.items()},
    usual_traces=USUAL,
    agents=AGENTS,
    goals=(Goal(name="value", metrics={}),),
    usual_goals=("value",),
    backfills=("none",),
    usual_backfills=("none",),
    baseline=BASE,
    rival="sjf+first-fit",
)
"""The study as far as its trainings are concerned."""


def training_changes(cell: Cell) -> dict[str, Any]:
    """What is changed in the scenario that an agent is trained on: the load."""
    return SETTINGS[cell.trace].overrides


def limited(limits: Mapping[str, float]) -> Study:
    """The study with the limits of its settings: name -> largest mean of the accrued cost."""
    changes = {name: {f"training.constraints.{COST}.at_most": limit} for name, limit in limits.items()}
    agents = tuple(agent if agent.preset == FREE else replace(agent, overrides=changes) for agent in AGENTS)
    return replace(STUDY, agents=agents)
