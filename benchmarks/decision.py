"""How long one decision of a trained actor takes: wall time, one thread, no torch.

``python benchmarks/decision.py`` prints a table with the targets, ``--json`` one object of named figures. A decision is
the network and the arg-max of both actions, from packed rows to the chosen row and delay; the time to compute those
rows from a `View` is a figure of its own. Weights are random: the time does not depend on them. Each figure is the
median of some thousand decisions on ever other rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from greenbatch.envs.preset import preset
from greenbatch.learning.graph import build, load
from greenbatch.learning.shapes import Shapes, shapes_of

TARGETS: dict[str, float] = {"gas_marl_256_queued_64_running_us": 150.0, "gas_marl_10_queued_us": 50.0}
"""Figure -> what it must not exceed on one core of a machine of 2025. [µs]"""

Figures = dict[str, Any]
REPEATS, OBSERVATIONS = 4000, 50


def stack(prefix: str, *widths: int) -> dict[str, tuple[int, int]]:
    """Shapes of linear layers ``prefix.0``, ``prefix.1``, ..."""
    pairs = zip(widths, widths[1:], strict=False)
    return {f"{prefix}.{number}": (after, before) for number, (before, after) in enumerate(pairs)}


def layers(kind: str, s: Shapes) -> dict[str, tuple[int, int]]:
    """Shapes of all layers of an actor, as in `greenbatch.learning.networks`."""
    queue, running, supply = len(s.queue), len(s.running), len(s.supply)
    if kind == "kernel":
        return stack("rows", queue, 32, 16, 8, 1)
    if kind == "context":
        pooled = 4 * 64 + s.forecast * supply
        return {
            **stack("encode_queue", queue, 64, 64), **stack("encode_running", running, 64),
            **stack("context", pooled, 32), **stack("score", 96, 64, 1), **stack("delay", 96, 64, s.delays),
        }  # fmt: skip
    slots = s.queue_rows + s.running_rows + s.forecast + 1
    return {
        **stack("encode_queue", queue, 64, 128), **stack("encode_running", running, 64, 128),
        **stack("encode_supply", supply, 64, 128), **stack("score", 128, 64, 16, 1), "chosen": (128, queue),
        **stack("squeeze", 128, 32, 8), **stack("delay", 8 * slots, 64, s.delays),
    }  # fmt: skip


def actor(kind: str, shapes: Shapes) -> Any:
    """A session with random weights."""
    rng = np.random.default_rng(0)
    weights = {}
    for name, (after, before) in layers(kind, shapes).items():
        weights[f"{name}.weight"] = (rng.standard_normal((after, before)) / before**0.5).astype(np.float32)
        weights[f"{name}.bias"] = (0.1 * rng.standard_normal(after)).astype(np.float32)
    return load(build({"kind": kind}, shapes, weights))


def rows(session: Any, shapes: Shapes, queued: int, running: int) -> list[dict[str, Any]]:
    """Random inputs of some decisions."""
    rng = np.random.default_rng(queued)
    sizes = {"queue": (queued, len(shapes.queue)), "running": (running, len(shapes.running)),
             "supply": (shapes.forecast, len(shapes.supply))}  # fmt: skip
    wanted = [each.name for each in session.get_inputs()]
    flags = {"selectable": np.ones(queued, np.bool_), "delays": np.ones(shapes.delays, np.bool_)}
    return [
        {name: flags[name] if name in flags else rng.random(sizes[name], np.float32) for name in wanted}
        for _ in range(OBSERVATIONS)
    ]


def median_us(work: Callable[[int], Any], repeats: int = REPEATS) -> float:
    """Median wall time of a call with the numbers of the calls. [µs]"""
    for number in range(OBSERVATIONS):
        work(number)
    times = []
    for number in range(repeats):
        begin = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6


def networks(figures: Figures) -> None:
    """The network and the arg-max of each kind, with long and short queues."""
    for kind, name in (("gas-marl", "gas-marl"), ("context", "gas-marl"), ("kernel", "rlscheduler")):
        shapes = shapes_of(preset(name))
        session = actor(kind, shapes)
        for queued, running, label in (
            (256, 64, "256_queued_64_running"), (64, 20, "64_queued_20_running"), (10, 64, "10_queued_64_running"),
            (10, 10, "10_queued"), (1, 10, "1_queued"),
        ):  # fmt: skip
            given = rows(session, shapes, min(queued, shapes.queue_rows), running)
            figure = f"{kind.replace('-', '_')}_{label if kind != 'kernel' else label.partition('_running')[0]}_us"
            figures[figure] = median_us(lambda number: session.run(None, given[number % OBSERVATIONS]))  # noqa: B023


def measure() -> Figures:
    """All figures."""
    figures: Figures = {"machine": platform.machine(), "load_average": os.getloadavg()[0]}
    networks(figures)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = measure()
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
