"""Cost of training: core-microseconds per decision of rollouts, forward passes and updates, and the whole schedule.

``python benchmarks/training.py`` simulates real windows with untrained networks, measures the parts on one thread (best
of several, warm) and derives the cost of GAS-MARL's published schedule (300 epochs x 100 windows x 256 jobs, 8 passes);
then it times whole epochs on two threads. ``--whole`` trains the whole schedule instead. ``--json`` prints one object.
The trace is looked up in ``GREENBATCH_DATA``, else the user's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from greenbatch.envs.batch import BatchEnv
from greenbatch.learning.networks import build
from greenbatch.learning.training.advantages import gae, normalized
from greenbatch.learning.training.device import prepared
from greenbatch.learning.training.ppo import Learner, UpdateSettings, likelihood
from greenbatch.learning.training.rollout import Trajectories, collect
from greenbatch.presets.shapes import shapes_of
from greenbatch.scenarios import load_scenario

SCENARIO, WINDOWS, JOBS = "gas-marl/lublin-256", 100, 256
EPOCHS, PASSES = 300, 8
MINIBATCHES = (256, 1024, 4096)
TARGET_MINUTES, GOAL_MINUTES = 30.0, 15.0
CPU = torch.device("cpu")
Figures = dict[str, Any]


def best_cpu_s(work: Callable[[], Any], repeats: int = 4) -> float:
    """CPU seconds of this thread for the fastest of several runs, after a warm-up."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.thread_time()
        work()
        times.append(time.thread_time() - begin)
    return min(times)


def product_gflops() -> float:
    """Speed of a float32 matrix product in the mode that training uses: the present speed of this core. [GF/s]"""
    left, right, out = torch.randn(4096, 128), torch.randn(128, 128), torch.empty(4096, 128)
    return 2 * 4096 * 128 * 128 / best_cpu_s(lambda: torch.mm(left, right, out=out), 50) / 1e9


def environment(backfill: str) -> BatchEnv:
    """The published environment with all windows of an epoch in parallel."""
    return BatchEnv(load_scenario(SCENARIO), "gas-marl", environments=WINDOWS, jobs=JOBS, backfill=backfill)


def starts(env: BatchEnv) -> list[int]:
    """An epoch's windows."""
    last = len(env.scenario.workload) - JOBS
    return [int(start) for start in np.random.default_rng(0).integers(JOBS, last, WINDOWS)]


def learner(env: BatchEnv, minibatch: int, passes: int) -> Learner:
    """Untrained networks of the published sizes."""
    actor, critic = build(env.preset.network, shapes_of(env.preset), 0)
    return Learner(actor, critic, UpdateSettings(passes=passes, minibatch=minibatch))


def played(env: BatchEnv, nets: Learner, seed: int = 0) -> Trajectories:
    """An epoch's trajectories."""
    return collect(env, starts(env), nets.actor, nets.critic, torch.Generator().manual_seed(seed))


def update(nets: Learner, epoch: Trajectories) -> None:
    """The update of an epoch."""
    advantages = gae(epoch.rewards, epoch.values, epoch.offsets)
    nets.update(epoch, normalized(advantages), advantages + epoch.values, torch.Generator().manual_seed(0))


def parts(figures: Figures, backfill: str) -> None:
    """Cost of a decision under a backfilling, in core-microseconds, and its number of rows."""
    env = environment(backfill)
    nets = learner(env, 1024, 1)
    epoch = played(env, nets)
    seen, count = epoch.decisions, len(epoch.rows)
    figures[f"{backfill}_decisions_per_job"] = count / (WINDOWS * JOBS)
    figures[f"{backfill}_queue_rows"] = len(seen.queue) / count
    figures[f"{backfill}_running_rows"] = len(seen.running) / count
    figures[f"{backfill}_rollout_us"] = best_cpu_s(lambda: played(env, nets)) / count * 1e6
    for size in MINIBATCHES:
        some = torch.randperm(count, generator=torch.Generator().manual_seed(0))[:size]
        some = some[torch.argsort(seen.queued[some], descending=True)]
        batch, rows, delays = seen.take(some), epoch.rows[some], epoch.delays[some]
        with torch.no_grad():
            forward = best_cpu_s(lambda: (likelihood(nets.actor, batch, rows, delays), nets.critic(batch)), 10)  # noqa: B023  (called at once)
        nets = learner(env, size, 1)
        figures[f"{backfill}_supply_rows_{size}"] = len(batch.supply) / len(some)
        figures[f"{backfill}_forward_us_{size}"] = forward / len(some) * 1e6
        figures[f"{backfill}_update_us_{size}"] = best_cpu_s(lambda: update(nets, epoch)) / count * 1e6  # noqa: B023
    each = figures[f"{backfill}_rollout_us"] + PASSES * figures[f"{backfill}_update_us_1024"]
    figures[f"{backfill}_schedule_core_minutes"] = each * count * EPOCHS / 6e7


def epochs(figures: Figures, count: int) -> None:
    """Wall time of whole epochs on two threads, and the schedule's minutes at this pace."""
    env = environment("green")
    nets = learner(env, 1024, PASSES)
    update(nets, played(env, nets))
    wall, cpu, decisions = time.perf_counter(), time.process_time(), 0
    for number in range(count):
        epoch = played(env, nets, number)
        update(nets, epoch)
        decisions += len(epoch.rows)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    figures |= {
        "epoch_wall_s": wall / count,
        "epoch_cpu_s": cpu / count,
        "epoch_decisions": decisions / count,
        "schedule_minutes_at_this_pace": wall / count * EPOCHS / 60,
        "schedule_core_minutes_at_this_pace": cpu / count * EPOCHS / 60,
    }


def whole(figures: Figures) -> None:
    """The whole schedule, from the command line."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        begin = time.perf_counter()
        command = ["train", "gas-marl", "--scenario", SCENARIO, "--epochs", str(EPOCHS), "--out", str(out)]
        subprocess.run([sys.executable, "-m", "greenbatch", *command], check=True, stdout=sys.stderr)
        figures["schedule_minutes"] = (time.perf_counter() - begin) / 60


def table(figures: Figures) -> str:
    """One figure per line; the schedule's minutes with their target."""
    lines = []
    for name, value in figures.items():
        goal = ""
        if name in {"schedule_minutes", "schedule_minutes_at_this_pace"}:
            met = "reached" if value <= TARGET_MINUTES else "MISSED"
            goal = f"<= {TARGET_MINUTES:g} (goal {GOAL_MINUTES:g})   {met}"
        lines.append(f"{name:45} {value:>16,.4g}   {goal}".rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--whole", action="store_true", help="train the whole schedule instead of a few epochs")
    parser.add_argument("--epochs", type=int, default=3, help="whole epochs to time")
    options = parser.parse_args()
    figures: Figures = {"load_average": os.getloadavg()[0]}
    with prepared(1, CPU):
        figures["product_gflops"] = product_gflops()
        for backfill in ("green", "easy-schedgym", "none"):
            parts(figures, backfill)
    if options.whole:
        whole(figures)
    else:
        with prepared(2, CPU):
            epochs(figures, options.epochs)
    print(json.dumps(figures, indent=2) if options.json else table(figures))


if __name__ == "__main__":
    main()
