"""Speed of simulations in which the capacity follows the power: ticks per second of CPU time on one core.

Rules, and an agent that sees the resource image of 48 ticks, the tables of `tests/rare/agent.toml` and can choose at
every tick in which jobs wait: it starts ready jobs that fit, then waits. Its own time does not count. Synthetic jobs as
in RARE, load 100 %, 90 % of the resources powered at random. Each figure is the best of several rounds.

    python benchmarks/rare.py --json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rare"))
from cases_rare import agent, rare

from greenbatch.engine.simulate import simulate
from greenbatch.envs.batch import BatchEnv
from greenbatch.schedulers import scheduler

WANTED = {"rules": {10: 500_000, 1200: 50_000}, "image": {10: 100_000, 1200: 10_000}}
"""Ticks per second that are asked for, by number of resources."""
EPISODE_TICKS, ENVIRONMENTS = 500, 16


def of_rule(size: int, name: str, ticks: int, rounds: int) -> float:
    """Ticks per second of a rule."""
    scenario, best_s = rare(size, ticks, level=0.9), np.inf
    for _ in range(rounds + 1):
        begun_s = time.process_time()
        simulate(scenario.workload, scenario.cluster, None, scenario.rules, scheduler(name))
        best_s = min(best_s, time.process_time() - begun_s)
    return ticks / best_s


def of_agent(size: int, *, image: bool, tables: bool, rounds: int) -> dict[str, float]:
    """Ticks and decisions per second of a batch of episodes."""
    scenario = rare(size, 4 * EPISODE_TICKS, level=0.9, until_end=False)
    changes: dict[str, Any] = {"action": {"only_fitting": True}}
    if not image:
        changes["observation__image"] = {"ticks": 0}
    if not tables:
        changes |= {f"observation__{name}": {"rows": 0, "columns": []} for name in ("running", "supply")}
    env = BatchEnv(scenario, agent(**changes), environments=ENVIRONMENTS, episode_s=float(EPISODE_TICKS))
    starts = np.linspace(0, len(scenario.workload) - env.jobs, ENVIRONMENTS).astype(int)
    best_s, decisions = np.inf, 0
    for _ in range(rounds + 1):
        begun_s = time.process_time()
        seen = env.reset(starts)
        spent_s, decisions = time.process_time() - begun_s, 0
        while count := len(seen.environment):
            first = np.array([np.argmax(seen.selectable[low:]) for low in seen.queue_offsets[:-1]])
            actions = np.stack([first, np.zeros(count, np.int64)], axis=1)
            begun_s = time.process_time()
            seen, _, _ = env.step(actions)
            spent_s += time.process_time() - begun_s
            decisions += count
        best_s = min(best_s, spent_s)
    return {"ticks_per_s": ENVIRONMENTS * EPISODE_TICKS / best_s, "decisions_per_s": decisions / best_s}


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    for size, ticks in ((10, 200_000), (1200, 50_000)):
        for name in ("qos+none", "fcfs+first-fit"):
            found[f"{size} {name}"] = {
                "ticks_per_s": of_rule(size, name, ticks, asked.rounds),
                "wanted": WANTED["rules"][size],
            }
        for label, image, tables in (("image and queue", True, False), ("tables", False, True), ("all", True, True)):
            found[f"{size} agent, {label}"] = {
                **of_agent(size, image=image, tables=tables, rounds=asked.rounds), "wanted": WANTED["image"][size],
            }  # fmt: skip
    if asked.json:
        print(json.dumps(found, indent=1))
        return
    for name, each in found.items():
        beside = f", {each['decisions_per_s']:,.0f} decisions/s" if "decisions_per_s" in each else ""
        print(f"{name:28} {each['ticks_per_s']:12,.0f} ticks/s (wanted {each['wanted']:,}){beside}")


if __name__ == "__main__":
    main()
