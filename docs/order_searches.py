"""The table of the searches for an order in ``results.md``: ``python docs/order_searches.py`` prints it, in minutes.

Two windows of 256 jobs of each trace of GAS-MARL, five seeds of each search, with the penalty factors of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from texts import NOTHING, table

from greenbatch.engine.program import Scheduler
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.session import Session, run_policy
from greenbatch.experiments.papers.protocols import GA_ETA, PROTOCOLS
from greenbatch.metrics import evaluate
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

STARTS, JOBS, SEEDS = (2500, 7000), 256, range(5)
RULES, SEARCHES = ("fcfs", "f2"), ("ga-published", "ga", "aco")
BACKFILLS = ("none", "easy-schedgym", "green")
HEAD = ("Trace", "Scheduler", "Slowdown", "of single runs", "Utilization", "Objective", "Plans per window")


def run(scenario: Scenario, made: Scheduler, start: int) -> tuple[float, float, float]:
    """Slowdown, renewable utilization and plans of one window; NaN plans of a rule."""
    jobs = scenario.window(start, JOBS)
    parts, program = (jobs, scenario.cluster, scenario.site, scenario.rules), made.program(jobs)
    if program.policy is None:
        outcome, plans = simulate(*parts, made), np.nan
    else:
        policy = program.policy(program, *parts)
        outcome = run_policy(Session(*parts, program), policy)
        plans = float(getattr(policy, "evaluations", np.nan))
    metrics = evaluate(outcome)
    return metrics["avg_bounded_slowdown"], metrics["renewable_utilization"], plans


def row(trace: str, scenario: Scenario, name: str, specs: Sequence[str]) -> tuple[str, ...]:
    """A scheduler: means over the windows and its seeds."""
    found = np.array([run(scenario, scheduler(spec), start) for spec in specs for start in STARTS])
    slowdown, utilization, plans = found.mean(axis=0)
    low, high = found[:, 0].min(), found[:, 0].max()
    objective = utilization - GA_ETA[trace] * slowdown
    counted = NOTHING if np.isnan(plans) else f"{plans:,.0f}"
    return (
        trace, f"`{name}`", f"{slowdown:.2f}", f"{low:.1f} to {high:.1f}", f"{utilization:.4f}", f"{objective:.4f}",
        counted,
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    rows = []
    for trace, eta in GA_ETA.items():
        scenario = load_scenario(PROTOCOLS["gas-marl"].traces[trace])
        for backfill in BACKFILLS:
            rows += [row(trace, scenario, f"{rule}+{backfill}", [f"{rule}+{backfill}"]) for rule in RULES]
            for search in SEARCHES:
                specs = [f"{search}:eta={eta}:seed={seed}+{backfill}" for seed in SEEDS]
                rows.append(row(trace, scenario, f"{search}+{backfill}", specs))
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
