"""Speed of training a network with a memory: decisions per second of processor time in rollouts and updates, one core.

``python benchmarks/recurrent.py`` simulates windows of `cocorl` on ``rare/10-training`` with untrained networks of the
published size, then takes one pass of the update. ``--windows 20`` takes fewer windows, ``--json`` prints one object.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from greenbatch.learning.runs.plan import make_plan
from greenbatch.learning.training.device import prepared
from greenbatch.learning.training.loop import TrainingSetup
from greenbatch.learning.training.multipliers import Multipliers
from greenbatch.scenarios import load_scenario

CPU = torch.device("cpu")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the processor time of this thread. [s]"""
    begin = time.thread_time()
    return work(), time.thread_time() - begin


def main() -> None:
    """Warm up with one epoch, measure the next."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    sizes = {"training.passes": 1, "training.windows": given.windows}
    plan = make_plan("cocorl", load_scenario("rare/10-training"), overrides=sizes, epochs=2, threads=1)
    figures: dict[str, float] = {}
    with prepared(1, CPU):
        setup = TrainingSetup(plan, CPU)
        none = Multipliers(setup.settings.constraints, setup.settings.controller)
        for epoch in range(2):
            (played, group), rollout_s = timed(lambda: setup.collect(epoch, 0.0))  # noqa: B023  (called at once)
            _, update_s = timed(lambda: setup.learn(epoch, 0.0, played, group, none))  # noqa: B023
            count = len(played.rows)
            figures = {
                "decisions": count, "longest_trajectory": int(np.diff(played.offsets).max()),
                "rollout_decisions_per_s": round(count / rollout_s),
                "update_decisions_per_s_and_pass": round(count / update_s),
                "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
            }  # fmt: skip
    print(json.dumps(figures) if given.json else "\n".join(f"{name:32} {value:,}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
