"""The study ``cost-aware``: who is compared on what, as data.

It asks the question of Le Hai et al., "Toward Sustainable and Cost-Efficient HPC systems: A Deep Reinforcement Learning
Job Scheduling approach", on public data: the paper's site, tariffs and windows are not published. Its printed figures
are therefore of other data. They stand beside ours in tables of their own and enter no computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from greenbatch.experiments.papers.studies import Agent, Goal, Study

NAME = "cost-aware"
"""Name of the study and of its published figures."""

SEARCHES = 240
"""Plans per search of GA and ACO: a quarter of their default, so that the tables are made in minutes."""
BETA = 0.3
"""Weight of cost in searches that know prices, relative to all load at the usual price: the paper's 1.5 per EUR/kWh
at its 0.2 EUR/kWh."""

METRICS: Mapping[str, str] = {
    "Bounded slowdown": "avg_bounded_slowdown",  # the first one stands beside the budgets of trainings
    "Total cost": "energy_cost",
    "Green ratio": "renewable_utilization",
    "Cost efficiency": "energy_cost_per_kwh",
    "Waiting": "avg_wait_s",
    "Makespan": "makespan_s",
    "beside, cost": "horizon_cost",
    "beside, carbon": "horizon_carbon_kg",
}
"""The six metrics of Tables 1 and 2, and two that a longer schedule does not improve; brown energy over the horizon,
the ratio of makespans and work left at the horizon are in `study_results.BESIDE`."""

STUDY = Study(
    name=NAME,
    title="Cost-aware scheduling, after Tables 1 and 2 of Le Hai et al., on other data",
    traces={"HPC2N": "cost-aware/hpc2n", "SDSC-BLUE": "cost-aware/sdsc-blue"},
    usual_traces=("HPC2N", "SDSC-BLUE"),
    agents=(
        Agent(column="Multi-Action RL", preset="cost-aware"),
        Agent(column="No Cost Signal", preset="no-cost-signal"),
        Agent(column="One-Action", preset="one-action"),
        Agent(column="Cost-aware plus", preset="cost-aware-plus", backfills=("none",),
              knobs=(":makespan_bound=1.1", ":makespan_bound=1.055")),
    ),
    goals=(Goal(name="cost", metrics=METRICS),),
    usual_goals=("cost",),
    backfills=("none", "easy"),
    usual_backfills=("none",),
    other_backfills={"none": ("easy",)},
    baseline="fcfs+easy",
    rival="f2+easy",
)  # fmt: skip
"""The study as far as its tests are concerned."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """The study as far as its trainings are concerned, see `studies.train_missing`."""

    traces: Mapping[str, str]
    """Trace -> the scenario that its agents are trained on."""


LESSONS = Lessons({"HPC2N": "cost-aware/hpc2n-training", "SDSC-BLUE": "cost-aware/sdsc-blue-training"})
"""Agents are trained on the jobs, prices and carbon of the year before."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row without training."""

    column: str
    """The paper's name, or ours."""
    policy: str
    backfills: tuple[str, ...] = ("none", "easy")
    reason: str = ""
    """Why the paper has no such row."""


_WITH_COST, _OURS = "the same search with cost in its objective", "our own rule"

RULES: tuple[Rule, ...] = (
    Rule("FCFS", "fcfs"),
    Rule("F2", "f2"),
    Rule("LPTPN", "lptpn", ("none",)),
    Rule("GA", f"ga:evaluations={SEARCHES}"),
    Rule("ACO", f"aco:evaluations={SEARCHES}"),
    Rule("GA with cost", f"ga:cost={BETA}:evaluations={SEARCHES}", ("easy",), _WITH_COST),
    Rule("ACO with cost", f"aco:cost={BETA}:evaluations={SEARCHES}", ("easy",), _WITH_COST),
    Rule("cheapest-start:psi=2", "cheapest-start:psi=2", ("none",), _OURS),
    Rule("foresee", "foresee", ("none",), _OURS),
    Rule("cheapest-start for cost", "cheapest-start:psi=2:brown=0:cost=1", ("none",), _OURS),
    Rule("foresee for cost", "foresee:brown=0:cost=1", ("none",), _OURS),
)
"""Rules and searches, in the order of the tables. The paper mentions no backfilling, so they have none, and EASY."""

UNTRAINED = "Untrained masked agent"
"""Row of the paper's agent with the weights that its training begins with."""
