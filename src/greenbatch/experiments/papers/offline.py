"""The study ``offline``: who learns from whose decisions and is compared on what, as data.

The dissertation on RARE (2023), chapter 7, trains agents by behavior cloning, offline, online, and offline followed by
online, on decisions of rules. Its figures 7.3 to 7.7 are not in the text at hand: the claims of its sentences are in
``published/offline-claims.csv``, and tables 7.1 and 7.2 in ``published/offline.csv``. All its experiments have
synthetic jobs at a load of 120 % (§7.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenbatch.experiments.papers.cocorl import BACKFILLED, PACKER, STRICT
from greenbatch.experiments.papers.studies import Agent, Cell, Goal, Study, known_names

NAME = "offline"
"""Name of the study and of its published figures."""
VALUE = "total_job_value"
"""The paper's metric (§7.5)."""
BASE = "qos+none"
"""The paper's baseline (§7.5)."""
RIVAL = "qos+first-fit"
"""What agents are compared with: the same rule with backfilling, which the paper's framework does not support."""
RULES = (*STRICT, *BACKFILLED, PACKER)
DRAWS = tuple(range(100, 120))
"""Numbers of the test episodes, which no training draws; the paper has 10 for each training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A machine at a load of 120 %."""

    size: int
    """Processors, and as many GPUs."""
    scenario: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """What is changed in the scenario, in test and training alike: dotted key -> value."""

    @property
    def about(self) -> str:
        """In words."""
        return f"{self.size:,} processors and GPUs, load 120 %"


def _sized(size: int) -> Setting:
    """Requests of up to half of the machine, as in the shipped scenarios."""
    shipped = size in {10, 50}
    changes = {
        "workload.generator.processors": size, "cluster.processors": size, "cluster.gpus": size,
        "rules.pools.largest_request": size // 2,
    }  # fmt: skip
    return Setting(
        size=size, scenario=f"offline/{size if shipped else 10}", overrides={} if shipped else changes
    )  # fmt: skip


SETTINGS: dict[str, Setting] = {str(size): _sized(size) for size in (10, 20, 30, 40, 50, 100)}
"""Name, as given to ``--traces`` -> setting."""
USUAL = ("10",)
"""Settings by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A dataset: whose decisions, in which shares."""

    about: str
    shares: Mapping[str, float]
    """Rule -> its share of the episodes. [%]"""
    quality: str = ""
    """Row of Table 7.2 that it stands for (our reading), if any."""

    @property
    def overrides(self) -> dict[str, Any]:
        """What a training that learns from it sets in its preset: dotted key -> value."""
        table = "training.off_policy"
        own = {"schedulers": list(self.shares), "shares": list(self.shares.values()), "dataset": ""}
        return {f"{table}.{key}": value for key, value in own.items()}


MIXES: dict[str, Mix] = {
    "combo": Mix(about="QoS, SJF, HVF and FCFS", shares=dict.fromkeys(STRICT, 25.0), quality="Low"),
    "qos-sjf": Mix(about="QoS and SJF", shares={"qos+none": 50.0, "sjf+none": 50.0}, quality="Medium"),
    "qos": Mix(about="QoS alone", shares={"qos+none": 100.0}, quality="High"),
    "combo-first-fit": Mix(
        about="QoS, SJF, HVF and FCFS with first-fit backfilling", shares=dict.fromkeys(BACKFILLED, 25.0)
    ),
}
"""Name, as given to ``--mixes`` -> dataset (§7.5.1); the last one is ours."""
USUAL_MIXES = ("combo", "qos")
"""Mixes by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way to learn."""

    column: str
    """Name in the tables."""
    preset: str
    """Ours: a small network over the ready jobs."""
    published: str
    """The preset with the numbers of Table A.4."""
    table: str
    """Name in Tables 7.1 and 7.2."""
    learns_from_data: bool = True


METHODS: dict[str, Method] = {
    "bc": Method(column="BC", preset="bc", published="rare-clone", table="BC"),
    "offline": Method(column="Offline", preset="offline", published="rare-offline", table="Offline"),
    "offline-online": Method(
        column="Offline-online", preset="offline-online", published="rare-offline-online", table="Offline+Online"
    ),
    "online": Method(
        column="Online", preset="online", published="rare-online", table="Online", learns_from_data=False
    ),
}  # fmt: skip
"""Name in ``published/offline-claims.csv`` -> method."""
USUAL_PRESETS = tuple(method.preset for method in METHODS.values())
"""Trained by default: a minute or a few each. Those of Table A.4 take hours."""
LONGEST_JOBS = {"training.jobs": 1_100, "training.validation.jobs": 1_100}
"""More jobs than are submitted in an episode at this load; the presets of Table A.4 are made for 100 %."""
AS_PUBLISHED = " as published"
"""Ends the names of agents with the numbers of Table A.4."""


@dataclass(frozen=True, slots=True)
class Learner:
    """A method with the dataset that it learns from: an agent of the study."""

    method: str
    mix: str
    """Empty if it learns from none."""
    published: bool
    """Whether its numbers are those of Table A.4."""

    @property
    def column(self) -> str:
        """Name in the tables."""
        return " ".join(filter(None, (METHODS[self.method].column, self.mix))) + AS_PUBLISHED * self.published

    @property
    def agent(self) -> Agent:
        """As it is trained."""
        made = METHODS[self.method]
        values = (LONGEST_JOBS if self.published else {}) | (MIXES[self.mix].overrides if self.mix else {})
        return Agent(
            column=self.column, preset=made.published if self.published else made.preset, backfills=("none",),
            variant=self.mix, overrides=dict.fromkeys(SETTINGS, values),
        )  # fmt: skip


def learners(mixes: Sequence[str]) -> list[Learner]:
    """Ours and those as published, by method and mix."""
    return [
        Learner(name, mix, published)
        for published in (False, True)
        for name, method in METHODS.items()
        for mix in (mixes if method.learns_from_data else ("",))
    ]


LEARNERS: dict[str, Learner] = {learner.column: learner for learner in learners(tuple(MIXES))}
"""Column of a row -> learner."""


def study_of(mixes: Sequence[str] | None = None) -> Study:
    """The study as far as its trainings are concerned.

    Args:
        mixes: names of `MIXES`, in any case; the usual ones if None.

    Raises:
        InputError: there is no such mix.
    """
    chosen = known_names(mixes, USUAL_MIXES, MIXES, "--mixes")
    return Study(
        name=NAME,
        title="Offline and online learning, Figs. 7.3 to 7.7, Tables 7.1 and 7.2",
        traces={name: f"{setting.scenario}-training" for name, setting in SETTINGS.items()},
        usual_traces=USUAL,
        agents=tuple(learner.agent for learner in learners(chosen)),
        goals=(Goal(name="value", metrics={}),),
        usual_goals=("value",),
        backfills=("none",),
        usual_backfills=("none",),
        baseline=BASE,
        rival=RIVAL,
    )


def training_changes(cell: Cell) -> Mapping[str, Any]:
    """What is changed in the scenario that an agent is trained on: the size of the machine."""
    return SETTINGS[cell.trace].overrides
