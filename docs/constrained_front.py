"""A limit on slowdown against penalty factors for it: the tables of the section on constraints in ``learning.md``.

``python docs/constrained_front.py train OUT`` trains what is missing in OUT, 35 trainings of a minute on one core; it
resumes if stopped. ``python docs/constrained_front.py table OUT`` prints the tables, in two minutes.

All agents are `PRESET`, trained equally long, on generated jobs and other years of weather than those of the tests.
They differ in one thing: slowdown has a limit, or a weight eta in the reward. For each limit, the best eta is the one
with the most renewable share on the validation windows among those whose slowdown there is within the limit, or within
what the training with the limit aims at, by means over the seeds. Tests are on all windows of the published trace, of
which no agent has seen anything.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from cost_front import figures
from numpy.typing import NDArray
from texts import table

from greenbatch.experiments.papers.studies import state_of
from greenbatch.experiments.running.statistics import Interval, mean_interval, paired_difference, verdict
from greenbatch.learning.runs.plan import make_plan
from greenbatch.learning.training import train
from greenbatch.models.model import MODEL, read_record
from greenbatch.scenarios import load_scenario

PRESET = "gas-marl-constrained"
TRAINING, TESTS = "gas-marl/fresh-lublin-256", "gas-marl/lublin-256"
JOBS = 128
"""Jobs of a window, in trainings and tests."""
FEW = {"evaluation.windows": 1, "evaluation.jobs": JOBS}
"""Test windows of the training scenario, which are not used: its own would leave no room for the validation."""
SEEDS = range(5)
ETAS = (0.0, 0.001, 0.004, 0.016)
LIMITS = (20.0, 25.0, 30.0)
AIM = 0.8
"""A training aims at so much of the limit: the mean that it keeps is one of other windows, of which there are few."""
SHARE, SLOWDOWN, MAKESPAN, BROWN = METRICS = (
    "renewable_utilization", "avg_bounded_slowdown", "makespan_s", "horizon_brown_kwh",
)  # fmt: skip


@dataclass(frozen=True)
class Agent:
    """One way to treat slowdown, trained with every seed."""

    name: str
    overrides: dict[str, Any]
    """Dotted key of the preset -> value."""
    place: Path
    """Folder of all trainings."""

    def folder(self, seed: int) -> Path:
        """Folder of a training."""
        return self.place / self.name / str(seed)

    def train(self, seed: int) -> None:
        """Train, or resume; what is finished stays."""
        if state_of(self.folder(seed)) != "finished":
            scenario = load_scenario(TRAINING, overrides=FEW)
            plan = make_plan(PRESET, scenario, windows="held-out", seed=seed, threads=1, overrides=self.overrides)
            train(plan, self.folder(seed))

    @cached_property
    def validated(self) -> dict[str, float]:
        """Renewable share and slowdown on the validation windows, means over the seeds."""
        found = [read_record(self.folder(seed) / MODEL).validation.terms for seed in SEEDS]
        return {term: float(np.mean([each[term] for each in found])) for term in (SHARE, SLOWDOWN)}

    @cached_property
    def tested(self) -> dict[str, NDArray[np.float64]]:
        """Metric -> its values on the test windows, shape (seeds, windows)."""
        question = load_scenario(TESTS, overrides={"evaluation.jobs": JOBS})
        starts = range(0, len(question.workload) - JOBS + 1, JOBS)
        names = [f"{PRESET}@{self.folder(seed) / MODEL}+green" for seed in SEEDS]
        values = np.stack([figures(question, name, starts, METRICS) for name in names])
        return {metric: values[..., k] for k, metric in enumerate(METRICS)}


def penalized(place: Path) -> list[Agent]:
    """Agents with a weight of slowdown instead of a limit."""
    return [
        Agent(f"eta={eta:g}", {"training.constraints": {}, f"reward.terms.{SLOWDOWN}": -eta}, place) for eta in ETAS
    ]


def limited(place: Path) -> dict[float, Agent]:
    """Limit -> the agent that keeps it."""
    key = f"training.constraints.{SLOWDOWN}.at_most"
    return {limit: Agent(f"limit={limit:g}", {key: AIM * limit}, place) for limit in LIMITS}


def best(agents: list[Agent], limit: float) -> Agent | None:
    """The agent with the most renewable share among those within a limit, on the validation windows."""
    within = [agent for agent in agents if agent.validated[SLOWDOWN] <= limit]
    return max(within, key=lambda agent: agent.validated[SHARE], default=None)


def shown(found: Interval, factor: float = 1.0, form: str = ".1f") -> str:
    """A mean with its interval."""
    mean, low, high = (format(factor * each, form) for each in (found.mean, found.low, found.high))
    return f"{mean} [{low}, {high}]"


def row(agent: Agent) -> list[str]:
    """What an agent reaches on validation and test windows."""
    share, slowdown = (mean_interval(agent.tested[metric]) for metric in (SHARE, SLOWDOWN))
    validated = f"{100 * agent.validated[SHARE]:.1f}", f"{agent.validated[SLOWDOWN]:.1f}"
    return [agent.name, *validated, shown(share, 100.0), shown(slowdown), f"{agent.tested[MAKESPAN].mean() / 3600:.1f}"]


def against(limit: float, agent: Agent, bound: float, etas: list[Agent]) -> list[str]:
    """Whether an agent keeps its limit on the test windows, and paired differences to the best eta within a bound."""
    slowdown, other = mean_interval(agent.tested[SLOWDOWN]), best(etas, bound)
    start = [f"{limit:g}", shown(slowdown), verdict(slowdown, limit, "lower"), f"{bound:g}"]
    if other is None:
        return [*start, "none", "", "", ""]
    share = paired_difference(agent.tested[SHARE], other.tested[SHARE]).difference
    cells = [shown(share, 100.0, "+.1f")]
    for metric in (MAKESPAN, BROWN):
        gap = paired_difference(agent.tested[metric], other.tested[metric]).difference
        cells.append(shown(gap, 100.0 / other.tested[metric].mean(), "+.1f"))
    return [*start, other.name, *cells]


def main(what: str, out: str) -> None:
    """Train, or print the tables."""
    etas, limits = penalized(Path(out)), limited(Path(out))
    if what == "train":
        for seed in SEEDS:
            for agent in (*limits.values(), *etas):
                agent.train(seed)
                print(f"{agent.name}, seed {seed}: finished", flush=True)
        return
    head = ("Agent", "Share, validation [%]", "Slowdown, validation", "Share [%]", "Slowdown", "Makespan [h]")
    print(table(head, map(row, (*etas, *limits.values()))))
    compared = (
        "Limit", "Slowdown", "Limit kept", "Validation within", "Best eta", "Share [points]", "Makespan [%]",
        "Brown energy [%]",
    )  # fmt: skip
    rows = [against(limit, agent, part * limit, etas) for limit, agent in limits.items() for part in (1.0, AIM)]
    print(table(compared, rows))
    windows = etas[0].tested[SHARE].shape[1]
    print(f"{len(SEEDS)} seeds, {windows} windows of {JOBS} jobs; intervals (95 %) are over both")


if __name__ == "__main__":
    main(*sys.argv[1:])
