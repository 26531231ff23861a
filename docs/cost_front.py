"""What one model of brown energy, cost and carbon reaches on the test windows of a scenario.

``python docs/cost_front.py compare cost-aware/hpc2n AGENTS... --against fcfs+easy f2+easy`` prints paired differences
to other schedulers over the scenario's horizon; agents are one model per seed. ``python docs/cost_front.py front
cost-aware/hpc2n cost-aware-plus@MODEL 0,1,0=MODEL ...`` prints what the model reaches with several weights, and how
much worse it is than models trained for these weights alone. ``python docs/cost_front.py bounds
cost-aware/hpc2n-training cost-aware-plus@MODEL ...`` prints what bounds on the makespan are worth on windows of the
training, to choose one without the test windows; models are one per seed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.simulate import simulate
from greenbatch.experiments.running.statistics import paired_difference
from greenbatch.learning.runs.windows import spread, training_starts
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
BOUNDS = (1.05, 1.055, 1.06, 1.065, 1.07, 1.08, 1.09, 1.1)
"""Bounds on the makespan, from the lowest to the highest of the shipped model's search."""
TRIED = 40
"""Training windows on which bounds are compared, evenly spread."""


def figures(
    question: Scenario, name: str, starts: Iterable[int] | None = None, metrics: Sequence[str] = METRICS
) -> NDArray[np.float64]:
    """Metrics of a scheduler on windows of a scenario, by default its own, shape (windows, metrics)."""
    told, rows = question.evaluation, []
    for start in (told.starts or ()) if starts is None else map(int, starts):
        window = question.window(start, told.jobs)
        given = window, question.cluster, question.site, question.rules
        horizon = horizon_of(*given, told.horizon)
        found = evaluate(simulate(*given, scheduler(name)), horizon=horizon)
        rows.append([found[metric] for metric in metrics])
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


def bounds(question: Scenario, models: Sequence[str]) -> list[str]:
    """Slowdown, cost and brown energy at several bounds relative to F2 on training windows, with intervals."""
    told = question.evaluation
    starts = spread(training_starts(question, told.jobs, "published"), TRIED)
    lines = [
        "| Bound | Slowdown / F2+none | Slowdown / F2+easy | Cost / F2+easy | Brown / F2+easy |",
        "|:---|" + "---:|" * 4,
    ]
    bare, easy = (figures(question, name, starts) for name in ("f2+none", "f2+easy"))
    slow = METRICS.index("avg_bounded_slowdown")
    pairs = ((slow, bare), (slow, easy), (GOALS.index("horizon_cost"), easy), (GOALS.index("horizon_brown_kwh"), easy))
    for bound in BOUNDS:
        ours = np.stack([figures(question, f"{name}:makespan_bound={bound:g}+none", starts) for name in models])
        cells = []
        for metric, theirs in pairs:
            gap, usual = paired_difference(ours[..., metric], theirs[:, metric]).difference, theirs[:, metric].mean()
            mean, low, high = (1.0 + each / usual for each in (gap.mean, gap.low, gap.high))
            cells.append(f"{mean:.3f} [{low:.3f}, {high:.3f}]")
        lines.append(f"| {bound:g} | {' | '.join(cells)} |")
    return lines


def preferring(model: str, weights: Sequence[float]) -> str:
    """The scheduler of a model with weights."""
    brown, cost, carbon = weights
    return f"{model}:brown={brown:g}:cost={cost:g}:carbon={carbon:g}+none"


if __name__ == "__main__":
    what, scenario, *names = sys.argv[1:]
    if what == "front":
        print("\n".join(front(load_scenario(scenario), names[0], names[1:])))
    elif what == "bounds":
        print("\n".join(bounds(load_scenario(scenario), names)))
    else:
        cut = names.index("--against")
        print("\n".join(comparison(load_scenario(scenario), names[:cut], names[cut + 1 :])))
