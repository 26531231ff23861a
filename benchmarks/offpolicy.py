"""Gradient steps per minute of off-policy training, on one core: sampling, targets, losses, optimizers.

``python benchmarks/offpolicy.py`` fills a buffer with made-up observations of RARE's size (5 ready jobs, waiting, 10
resources of two types, 48 ticks), takes gradient steps of 1,024 transitions with each network, and prints steps per
minute of processor time: other processes on the machine then do not count. ``--json`` prints one object.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch

from greenbatch.datasets.tables import Tables
from greenbatch.learning.offpolicy.agent import make_agent
from greenbatch.learning.offpolicy.buffer import Replay
from greenbatch.learning.offpolicy.learner import Learner, Rates, Sample
from greenbatch.learning.offpolicy.tables import batch_of
from greenbatch.learning.training.device import prepared
from greenbatch.presets.off_policy import OffPolicy
from greenbatch.presets.shapes import Shapes

SHAPES = Shapes(
    queue=("value", "qos", "until_due", "wait", "requested_time", "processors", "gpus", "fits", "is_wait"),
    queue_rows=6, empty=(0.0,) * 9, running=("processors", "remaining_time"), running_rows=10,
    state=("free_processors", "free_gpus"), extras=1, image=(48, 20),
)  # fmt: skip
BATCH, STORED = 1024, 20_000
NETWORKS: dict[str, dict[str, Any]] = {
    "context": {"kind": "context"},
    "rare, small, vectors": {"kind": "rare", "size": "small", "sees": "jobs"},
    "rare, small, vectors, heads of two hidden layers": {"kind": "rare", "size": "small", "sees": "jobs", "layers": 2},
    "rare, large, vectors": {"kind": "rare", "size": "large", "sees": "jobs"},
    "rare, small, image and vectors": {"kind": "rare", "size": "small"},
    "rare, medium, image and vectors": {"kind": "rare", "size": "medium"},
    "rare, large, image and vectors": {"kind": "rare", "size": "large"},
}


def filled(tables: Tables, random: np.random.Generator) -> Replay:
    """A buffer of made-up trajectories of 100 decisions."""
    replay, count = Replay(tables.fields, STORED), STORED
    seen: dict[str, Any] = {
        name: random.random((count, *field.shape)).astype(field.dtype)
        for name, field in tables.fields.items() if field.shape
    }  # fmt: skip
    seen["queued"], seen["busy"] = random.integers(2, 7, count), random.integers(0, 11, count)
    seen["slot"], seen["selectable"] = np.zeros(count, np.int64), np.ones((count, 6), np.bool_)
    seen["image"] = random.integers(0, 256, (count, *tables.fields["image"].shape), dtype=np.uint8)
    offsets = np.arange(0, count + 1, 100)
    actions, rewards, discounts = random.integers(2, size=count), random.normal(size=count), np.full(count, 0.99)
    replay.add(seen, actions, rewards, offsets, discounts=discounts, n_step=1)
    return replay


def steps_per_minute(spec: dict[str, Any], loss: str, critics: int, repeats: int) -> float:
    """Gradient steps per minute of processor time, the best of some repeats."""
    random, tables = np.random.default_rng(0), Tables(SHAPES, 1000)
    replay = filled(tables, random)
    learner = Learner(make_agent(spec, SHAPES, critics, 0), OffPolicy(loss=loss, critics=critics), Rates())

    def step() -> None:
        places = replay.draw(BATCH, random)
        seen, following = (batch_of(replay.seen(at)) for at in (places, replay.following(places)))
        actions, rewards, discounts = map(torch.from_numpy, replay.outcomes(places))
        learner.step(Sample(seen, actions, rewards, discounts, following))

    return 60.0 / best_cpu_s(step, repeats)


def best_cpu_s(work: Any, repeats: int) -> float:
    """Processor seconds of the fastest of several runs, after a warm-up."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.thread_time()
        work()
        times.append(time.thread_time() - begin)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures: dict[str, float] = {}
    with prepared(1, torch.device("cpu")):
        for name, spec in NETWORKS.items():
            for loss, critics in (("binary", 1), ("soft", 2)):
                figures[f"{name}; {loss}, {critics} critic(s)"] = steps_per_minute(spec, loss, critics, given.repeats)
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{value:8,.0f} steps/min  {name}")


if __name__ == "__main__":
    main()
