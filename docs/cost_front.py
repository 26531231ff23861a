"""What one model of brown energy, cost and carbon reaches on the test windows of a scenario.

``python docs/cost_front.py compare cost-aware/hpc2n AGENTS... --against fcfs+easy f2+easy`` prints paired differences
to other schedulers over the scenario's horizon; agents are one model per seed. ``python docs/cost_front.py front
cost-aware/hpc2n cost-aware-plus@MODEL 0,1,0=MODEL ...`` prints what the model reaches with several weights, and how
much worse it is than models trained for these weights alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.simulate import simulate
from greenbatch.experiments.running.statistics import paired_difference
from greenbatch.metrics import evaluate
from greenbatch.metrics.horizon import horizon_of
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

GOALS = ("horizon_brown_kwh", "horizon_cost", "horizon_carbon_kg")
METRICS = (*GOALS, "avg_bounded_slowdown", "makespan_s", "avg_wait_s")
PREFERENCES = (
    (1.0, 0.0, 0.0), (0.7, 0.3, 0.0), (0.5, 0.5, 0.0), (0.3, 0.6, 0.1), (0.0, 1.0, 0.0), (0.0, 0.5, 0.5),
    (0.0, 0.0, 1.0),
)  # fmt: skip
"""Weights of brown energy, cost and carbon."""


def figures(question: Scenario, name: str) -> NDArray[np.float64]:
    """`METRICS` of a scheduler on the windows of a scenario, shape (windows, metrics)."""
    told, rows = question.evaluation, []
    for start in told.starts or ():
        window = question.window(start, told.jobs)
        given = window, question.cluster, question.site, question.rules
        horizon = horizon_of(*given, told.horizon)
        found = evaluate(simulate(*given, scheduler(name)), horizon=horizon)
        rows.append([found[metric] for metric in METRICS])
    return np.array(rows)


def comparison(question: Scenario, agents: Sequence[str], others: Sequence[str]) -> list[str]:
    """Paired differences of an agent, by its seeds, to other schedulers: mean and interval in percent of their mean."""
    ours = np.stack([figures(question, name) for name in agents])
    lines = [f"| Against | {' | '.join(METRICS)} |", "|:---|" + "---:|" * len(METRICS)]
    lines.append("| (mean) | " + " | ".join(f"{value:.4g}" for value in ours.mean(axis=(0, 1))) + " |")
    for name in others:
        theirs, cells = figures(question, name), []
        for k in range(len(METRICS)):
            gap, usual = paired_difference(ours[..., k], theirs[:, k]).difference, theirs[:, k].mean()
            mean, low, high = (100.0 * each / usual for each in (gap.mean, gap.low, gap.high))
            cells.append(f"{mean:+.1f} % [{low:+.1f}, {high:+.1f}]")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def front(question: Scenario, model: str, alone: Sequence[str]) -> list[str]:
    """What a model reaches with `PREFERENCES`, and with those of models trained for them alone."""
    reached = {each: figures(question, preferring(model, each)) for each in PREFERENCES}
    goals = {each: found[:, : len(GOALS)].mean(axis=0) for each, found in reached.items()}
    lines = [f"| Brown, cost, carbon | {' | '.join(METRICS)} | Dominated |"]
    lines.append("|:---|" + "---:|" * len(METRICS) + ":---|")
    for each, found in reached.items():
        beaten = any((goals[other] <= goals[each]).all() and (goals[other] < goals[each]).any() for other in goals)
        told = " | ".join(f"{value:.5g}" for value in found.mean(axis=0))
        lines.append(f"| {' '.join(f'{weight:g}' for weight in each)} | {told} | {'yes' if beaten else 'no'} |")
    for pair in alone:
        weights, _, folder = pair.partition("=")
        each = tuple(float(text) for text in weights.split(","))
        trained = figures(question, preferring(folder, each))[:, : len(GOALS)].mean(axis=0)
        here = figures(question, preferring(model, each))[:, : len(GOALS)].mean(axis=0)
        worse = float((here / trained) @ np.array(each) / sum(each)) - 1.0
        lines.append(f"weights {weights}: {100 * worse:+.2f} % relative to the model trained for them alone")
    return lines


def preferring(model: str, weights: Sequence[float]) -> str:
    """The scheduler of a model with weights."""
    brown, cost, carbon = weights
    return f"{model}:brown={brown:g}:cost={cost:g}:carbon={carbon:g}+none"


if __name__ == "__main__":
    what, scenario, *names = sys.argv[1:]
    if what == "front":
        print("\n".join(front(load_scenario(scenario), names[0], names[1:])))
    else:
        cut = names.index("--against")
        print("\n".join(comparison(load_scenario(scenario), names[:cut], names[cut + 1 :])))
