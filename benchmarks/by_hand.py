"""Gain of hand-written passes over torch's autograd: CPU seconds of a rollout and of an update, side by side.

``python benchmarks/by_hand.py`` simulates real windows with untrained networks on one thread and updates them in
four ways: as it is; without `gasmarl_by_hand`; with autograd on rows padded to few sizes; with torch alone. The ways
take turns in separate processes, because kernels compiled for one displace those of another; the fastest turn counts.
``--json`` prints one object. The traces are looked up in ``GREENBATCH_DATA``, else the user's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from greenbatch.envs.batch import BatchEnv
from greenbatch.learning.networks import build, gasmarl, layers
from greenbatch.learning.networks.linear_by_hand import filled
from greenbatch.learning.training.advantages import gae, normalized
from greenbatch.learning.training.device import prepared
from greenbatch.learning.training.ppo import Learner, UpdateSettings
from greenbatch.learning.training.rollout import collect
from greenbatch.presets.shapes import shapes_of
from greenbatch.scenarios import load_scenario

CASES = (
    ("gas-marl", "gas-marl/lublin-256", "green"),
    ("cost-aware", "cost-aware/hpc2n-training", "none"),
    ("rlscheduler", "rlscheduler/lublin-1", "easy-schedgym"),
)
"""Preset, scenario, backfilling."""
WINDOWS, JOBS, MINIBATCH = 100, 256, 1024


def plain(rows: Tensor, parameters: tuple[Tensor, ...], *, last: bool) -> Tensor:
    """Linear layers with ReLU in plain torch."""
    for number in range(0, len(parameters), 2):
        rows = linear(rows, parameters[number], parameters[number + 1])
        if last or number + 2 < len(parameters):
            rows = torch.relu(rows)
    return rows


def padded(rows: Tensor, parameters: tuple[Tensor, ...], *, last: bool) -> Tensor:
    """The same on rows padded to few sizes."""
    return plain(filled(rows), parameters, last=last)[: len(rows)]


WAYS: Mapping[str, Mapping[str, Any]] = {
    "as it is": {},
    "without gasmarl_by_hand": {"through": layers.through},
    "autograd, padded rows": {"through": padded},
    "torch alone": {"through": plain},
}


def measure(preset: str, scenario: str, backfill: str, turns: int) -> dict[str, float]:
    """Best CPU seconds of a rollout and of one pass of updates over it."""
    env = BatchEnv(load_scenario(scenario), preset, environments=WINDOWS, jobs=JOBS, backfill=backfill)
    last = len(env.scenario.workload) - JOBS
    starts = [int(start) for start in np.random.default_rng(0).integers(JOBS, last, WINDOWS)]
    actor, critic = build(env.preset.network, shapes_of(env.preset), 0)
    nets = Learner(actor, critic, UpdateSettings(passes=1, minibatch=MINIBATCH))
    weights = [{name: each.clone() for name, each in net.state_dict().items()} for net in (actor, critic)]
    found = {"rollout": np.inf, "update": np.inf}
    for turn in range(turns + 1):  # the first does not count
        for net, kept in zip((actor, critic), weights, strict=True):
            net.load_state_dict(kept)
        begin = time.thread_time()
        epoch = collect(env, starts, actor, critic, torch.Generator().manual_seed(0))
        rollout = time.thread_time() - begin
        advantages = gae(epoch.rewards, epoch.values, epoch.offsets)
        begin = time.thread_time()
        nets.update(epoch, normalized(advantages), advantages + epoch.values, torch.Generator().manual_seed(0))
        update = time.thread_time() - begin
        if turn:
            found = {"rollout": min(found["rollout"], rollout), "update": min(found["update"], update)}
    return found


def one_way(way: str, turns: int) -> dict[str, float]:
    """CPU seconds of every case in one way."""
    found = {}
    patches = WAYS[way]
    with (
        prepared(1, torch.device("cpu")),
        patch.object(layers, "through", patches.get("through", layers.through)),
        patch.object(gasmarl, "_by_hand", (lambda _: False) if patches else gasmarl._by_hand),
    ):
        for case in CASES:
            found |= {f"{case[0]}, {what}": seconds for what, seconds in measure(*case, turns).items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--turns", type=int, default=3, help="processes of each way, and turns of each that count")
    parser.add_argument("--way", choices=list(WAYS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(one_way(options.way, options.turns)))
        return
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.turns):
        for way in WAYS:
            command = [sys.executable, __file__, "--way", way, "--turns", str(options.turns)]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for name, seconds in told.items():
                times = best.setdefault(name, {})
                times[way] = min(times.get(way, np.inf), seconds)
    if options.json:
        print(json.dumps({"load_average": os.getloadavg()[0], "seconds": best}, indent=2))
        return
    for name, times in best.items():
        for way, seconds in times.items():
            print(f"{name:22} {way:26} {seconds:8.3f} s {seconds / times['as it is']:6.2f} x")


if __name__ == "__main__":
    main()
