"""Time of one decision of a trained actor: wall time, one thread, no torch.

``python benchmarks/decision.py`` prints a table with the targets, ``--json`` one object of named figures. A decision is
the network and the arg-max of both actions, from packed rows to the chosen row and delay; computing those rows from a
`View` is timed separately. Weights are random, since the time does not depend on them (``--model FOLDER`` also times a
trained model). Each figure is the median of a few thousand decisions on different rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from greenbatch.engine.observe.batch import observe_view
from greenbatch.engine.views.decode_nodes import MachineOfViews
from greenbatch.engine.views.interface import Start, Wait
from greenbatch.engine.views.session import Session
from greenbatch.models.model import load_model
from greenbatch.models.network import graph_of
from greenbatch.models.onnx_graph import build, load
from greenbatch.presets.layout import layout_of, program_of
from greenbatch.presets.preset import preset, resolve
from greenbatch.presets.shapes import Shapes, shapes_of
from greenbatch.scenarios import load_scenario

TARGETS: dict[str, float] = {
    "gas_marl_256_queued_64_running_us": 150.0,
    "gas_marl_10_queued_64_running_us": 50.0,
    "gas_marl_10_queued_us": 50.0,
    "pairs_10_queued_40_nodes_us": 200.0,
}
"""Figure -> upper limit on one core of a machine of 2025. [µs]"""

Figures = dict[str, Any]
ACTIONS = ("row", "delay")
REPEATS, OBSERVATIONS = 4000, 50
BUSY = 60
"""Running jobs beside which a decision among pairs is timed."""


def stack(prefix: str, *widths: int) -> dict[str, tuple[int, int]]:
    """Shapes of linear layers ``prefix.0``, ``prefix.1``, ..."""
    return {f"{prefix}.{number}": (after, before) for number, (before, after) in enumerate(pairwise(widths))}


def layers(kind: str, s: Shapes) -> dict[str, tuple[int, int]]:
    """Shapes of all layers of an actor, as in `greenbatch.learning.networks`."""
    queue, running, supply = len(s.queue), len(s.running), len(s.supply)
    if kind == "kernel":
        return stack("rows", queue, 32, 16, 8, 1)
    if kind == "ineps":
        return stack("rows", queue, 16, 16, 8, 8, 4, 4, 1)
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
    """Random inputs of several decisions."""
    rng = np.random.default_rng(queued)
    sizes = {"queue": (queued, len(shapes.queue)), "running": (running, len(shapes.running)),
             "supply": (shapes.forecast, len(shapes.supply))}  # fmt: skip
    inputs = [each.name for each in session.get_inputs()]
    flags = {"selectable": np.ones(queued, np.bool_), "delays": np.ones(shapes.delays, np.bool_)}
    return [
        {name: flags[name] if name in flags else rng.random(sizes[name], np.float32) for name in inputs}
        for _ in range(OBSERVATIONS)
    ]


def median_us(work: Callable[[int], Any], repeats: int = REPEATS) -> float:
    """Median wall time of a call; each call is passed its number. [µs]"""
    for number in range(OBSERVATIONS):
        work(number)
    times = []
    for number in range(repeats):
        begin = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6


SIZES = {
    "256_queued_64_running": (256, 64), "64_queued_20_running": (64, 20), "10_queued_64_running": (10, 64),
    "10_queued": (10, 10), "1_queued": (1, 10),
}  # fmt: skip
"""Figure -> waiting and running jobs."""


def time_network(figures: Figures, name: str, session: Any, shapes: Shapes) -> None:
    """The network and the arg-max, with long and short queues."""
    for label, (queued, running) in SIZES.items():
        inputs = rows(session, shapes, min(queued, shapes.queue_rows), min(running, max(shapes.running_rows, 1)))

        def decide(number: int, inputs: list[dict[str, Any]] = inputs) -> Any:
            return session.run(ACTIONS, inputs[number % OBSERVATIONS])

        figures[f"{name}_{label}_us"] = median_us(decide)


def networks(figures: Figures) -> None:
    """Each kind of network on the tables of its preset."""
    for kind, name in (("gas-marl", "gas-marl"), ("context", "gas-marl"), ("kernel", "rlscheduler")):
        shapes = shapes_of(preset(name))
        time_network(figures, kind.replace("-", "_"), actor(kind, shapes), shapes)


def one_model(figures: Figures, folder: str) -> None:
    """A trained model: reading it, and its decisions."""
    begin = time.perf_counter()
    model = load_model(folder)
    session = load(graph_of(model))
    figures["model_read_ms"] = 1e3 * (time.perf_counter() - begin)
    time_network(figures, "model", session, shapes_of(model.preset))


def observations(figures: Figures) -> None:
    """From a view to GAS-MARL's tables, for the longest queue of a window on the embedded scenario and a short one."""
    scenario = load_scenario("default")
    made = resolve(preset("gas-marl"), scenario)
    layout, views = layout_of(made), {}
    session = Session(
        scenario.window(0, 2000), scenario.cluster, scenario.site, scenario.rules, program_of(made, "none")
    )
    while (view := session.view()) is not None:
        views[len(view.job_id)] = view
        session.apply(Start(0))
    for label, queued in (("longest_queue", max(views)), ("10_queued", 10)):
        figures[f"view_to_rows_{label}_us"] = median_us(lambda _, view=views[queued]: observe_view(view, layout))
    figures["longest_queue"] = max(views)


def pairs(figures: Figures) -> None:
    """A decision of InEPS's network from a view of ten waiting jobs and forty busy nodes, as a policy makes it."""
    scenario = load_scenario("ineps/convergence")
    made = resolve(preset("ineps"), scenario)
    layout, shapes = layout_of(made), shapes_of(made)
    network = actor("ineps", shapes)
    session = Session(scenario.window(), scenario.cluster, None, scenario.rules, program_of(made, "none"))
    view = session.view()
    while view is not None and len(view.job_id) < made.observation.queue.rows:
        session.apply(Wait() if len(view.running.job_id) > BUSY else Start(0))
        view = session.view()
    if view is None:
        raise RuntimeError("the queue was never long enough")
    machines, inputs = MachineOfViews(scenario.cluster), [each.name for each in network.get_inputs()]

    def observed(_: int) -> Any:
        return observe_view(view, layout, machines(view))

    def decided(_: int) -> Any:
        seen = observe_view(view, layout, machines(view))
        return network.run(("row",), given(seen, inputs))

    figures["pairs_10_queued_40_nodes_rows"] = len(observed(0).queue)
    figures["pairs_10_queued_40_nodes_view_to_rows_us"] = median_us(observed)
    figures["pairs_10_queued_40_nodes_us"] = median_us(decided)


def given(seen: Any, inputs: list[str]) -> dict[str, Any]:
    """Some inputs of a network for one observation."""
    tables = {"queue": seen.queue, "selectable": seen.selectable, "running": seen.running, "supply": seen.supply[0],
              "state": seen.state[0], "delays": seen.delays[0]}  # fmt: skip
    return {name: tables[name] for name in inputs}


def table(figures: Figures, targets: Mapping[str, float] = TARGETS) -> str:
    """Figures with their targets."""
    lines = []
    for name, value in figures.items():
        shown = f"{value:,.1f}" if isinstance(value, float) else str(value)
        target = targets.get(name)
        goal = "" if target is None else f"<= {target:g}   {'reached' if value <= target else 'MISSED'}"
        lines.append(f"{name:45} {shown:>12}   {goal}".rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--model", metavar="FOLDER", help="also time a trained model")
    options = parser.parse_args()
    figures: Figures = {"machine": platform.machine(), "load_average": os.getloadavg()[0]}
    networks(figures)
    observations(figures)
    pairs(figures)
    if options.model:
        one_model(figures, options.model)
    print(json.dumps(figures, indent=2) if options.json else table(figures))


if __name__ == "__main__":
    main()
