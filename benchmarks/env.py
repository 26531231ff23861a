"""Speed of the batched environment: decisions per second of CPU time, one thread, with full observations.

Waiting jobs under GAS-MARL's preset, and pairs of a job and one of 12 nodes under that of InEPS. A decision is one
environment step, including steps with a single choice (their share is printed). The agent is random and its own time
does not count; the reset does. Each figure is the best of several rounds, because other programs on
the machine can only slow a round down.

    python benchmarks/env.py --json
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from greenbatch.envs.batch import BatchEnv
from greenbatch.learning.search.ranking import choose
from greenbatch.scenarios import load_scenario

SCENARIO, NODES = "gas-marl/lublin-256", "ineps/adaptability-mixed"
AUTHORS_PER_S = 900.0
"""The published environment under EASY, measured once on a similar machine. [decisions/s]"""


def round_of(env: BatchEnv, starts: Any, delays: int) -> dict[str, float]:
    """Simulate the windows once with a random agent."""
    agent = np.random.default_rng(0)
    begun_s = time.thread_time()
    seen = env.reset(starts)
    cpu_s = time.thread_time() - begun_s
    decisions = single = rows = 0
    while count := len(seen.environment):
        choices = np.diff(seen.queue_offsets)
        if env.layout.per_node:  # the best of random scores among the pairs that can be chosen
            scores = np.where(seen.selectable, agent.random(len(seen.selectable), np.float32), np.float32(-1))
            actions = choose(seen, scores)
        else:
            actions = np.column_stack([agent.random(count) * choices, agent.random(count) * delays]).astype(np.int64)
        decisions, single, rows = decisions + count, single + int((choices == 1).sum()), rows + int(choices.sum())
        begun_s = time.thread_time()
        seen, _, _ = env.step(actions)
        cpu_s += time.thread_time() - begun_s
    return {"per_s": decisions / cpu_s, "decisions": decisions, "single": single / decisions, "rows": rows / decisions}


def measure(backfill: str, environments: int, delays: int, rounds: int) -> dict[str, float]:
    """The best of several rounds."""
    scenario = load_scenario(SCENARIO)
    env = BatchEnv(scenario, "gas-marl", environments=environments, jobs=256, backfill=backfill)
    starts = np.random.default_rng(1).integers(256, len(scenario.workload) - 257, environments)
    return best_of(env, starts, delays, rounds)


def measure_pairs(environments: int, rounds: int) -> dict[str, float]:
    """The same for pairs of a job and a node."""
    scenario = load_scenario(NODES)
    env = BatchEnv(scenario, "ineps", environments=environments, jobs=100)
    return best_of(env, np.random.default_rng(1).integers(0, len(scenario.workload) - 100, environments), 1, rounds)


def best_of(env: BatchEnv, starts: Any, delays: int, rounds: int) -> dict[str, float]:
    """The best of several rounds, after one that compiles and touches the memory."""
    round_of(env, starts, delays)
    return max((round_of(env, starts, delays) for _ in range(rounds)), key=lambda figures: figures["per_s"])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true", help="print JSON")
    arguments.add_argument("--rounds", type=int, default=8, help="rounds per figure")
    arguments.add_argument("--environments", type=int, default=512, help="parallel simulations")
    options = arguments.parse_args()
    figures: dict[str, Any] = {"environments": options.environments, "authors_easy_decisions_per_s": AUTHORS_PER_S}
    for name, backfill, delays in (
        ("easy", "easy-schedgym", 1), ("green", "green", 1), ("green_random_delays", "green", 13), ("none", "none", 1),
        ("pairs_12_nodes", "", 1),
    ):  # fmt: skip
        if backfill:
            best = measure(backfill, options.environments, delays, options.rounds)
        else:
            best = measure_pairs(options.environments, options.rounds)
        figures |= {
            f"{name}_decisions_per_s": round(best["per_s"]), f"{name}_single_choice_share": round(best["single"], 3),
            f"{name}_queue_rows": round(best["rows"], 1), f"{name}_decisions": best["decisions"],
        }  # fmt: skip
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for key, value in figures.items():
        print(f"{key:40s} {value}")


if __name__ == "__main__":
    main()
