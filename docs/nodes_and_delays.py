"""``green-ineps`` beside ``gas-marl-plus`` with placements: prints the tables of the results page.

``python docs/nodes_and_delays.py FOLDER`` takes the folder of the trainings, ``seed-0``, ``seed-1``, ... of
``green-ineps``, and ``plain-0``, ... of the planner with a placement, as the page's commands write them. Needs the
Lublin trace and the weather of San Francisco, see ``greenbatch data list``; takes a few minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import greenbatch as gb
from greenbatch.experiments.running.statistics import mean_interval, paired_difference
from greenbatch.learning.runs.windows import HELD_OUT_STARTS

SCENARIO = "ineps/green"
OPPONENT = "gas-marl-plus@lublin-256+none+worst-fit"
SHIPPED = "green-ineps@lublin-256+none"
"""Seed 0 of the trainings."""
PLACEMENTS = ("worst-fit", "low-energy", "high-edp")
"""The best ones of the opponent; ``high-total-cores`` lies between them, and the others use more brown energy."""
COLUMNS = {"horizon_brown_kwh": 1.0, "avg_bounded_slowdown": 1.0, "makespan_s": 3600.0}
"""Metric -> the unit in which it is shown."""
HEAD = (
    "| Windows | Scheduler | Brown energy [kWh] | Slowdown | Makespan [h] |"
    " Less brown energy, paired [%] | More slowdown, paired | More makespan, paired [h] |"
)


def agents(folder: Path) -> dict[str, list[str]]:
    """Label -> schedulers, one per seed."""
    ours = [f"green-ineps@{each.parent}/model+none" for each in sorted(folder.glob("seed-*/model"))]
    plain = [f"green-ineps@{each.parent}/model+none+worst-fit" for each in sorted(folder.glob("plain-*/model"))]
    fixed = {name: [name] for name in (f"gas-marl-plus@lublin-256+none+{placement}" for placement in PLACEMENTS)}
    searched = {"the planner with worst-fit, searched here": plain} if plain else {}
    return {"fcfs+easy": ["fcfs+easy"], **fixed, **searched, "green-ineps": ours, SHIPPED: [SHIPPED]}


def rows(label: str, schedulers: dict[str, list[str]], starts: tuple[int, ...]) -> list[str]:
    """A line per agent: means with intervals over windows and seeds, and paired differences to the opponent."""
    names = [name for seeds in schedulers.values() for name in seeds]
    frame = gb.compare(SCENARIO, names, starts=list(starts), jobs=1024, baseline="fcfs+easy").frame

    def values(seeds: list[str], metric: str) -> np.ndarray:
        found = [frame.filter((frame["scheduler"] == name) & (frame["metric"] == metric)) for name in seeds]
        return np.array([each.sort("window")["value"].to_list() for each in found]) / COLUMNS[metric]

    lines = []
    for agent, seeds in schedulers.items():
        cells = []
        for metric in COLUMNS:
            mean = mean_interval(values(seeds, metric))
            cells.append(f"{mean.mean:.4g} [{mean.low:.4g}, {mean.high:.4g}]")
        for metric in COLUMNS if agent != OPPONENT else ():
            theirs = values([OPPONENT], metric)
            given = paired_difference(values(seeds, metric), theirs)
            sign, scale = (-1.0, 100.0 / theirs.mean()) if metric == "horizon_brown_kwh" else (1.0, 1.0)
            mean, low, high = (
                sign * scale * each for each in (given.difference.mean, given.difference.low, given.difference.high)
            )
            cells.append(f"{mean:+.2f} [{min(low, high):+.2f}, {max(low, high):+.2f}]")
        shown = f"{agent} ({len(seeds)} seeds)" if len(seeds) > 1 else f"`{agent}`"
        lines.append(f"| {label} | {shown} | {' | '.join(cells + [''] * (6 - len(cells)))} |")
    return lines


def main(folder: Path) -> None:
    """Print the table: the scenario's windows, which are in-sample, and the held-out ones."""
    starts = gb.load_scenario(SCENARIO).evaluation.starts or ()
    schedulers = agents(folder)
    print(HEAD)
    print("|:---|:---|---:|---:|---:|---:|---:|---:|")
    print("\n".join([*rows("the scenario's", schedulers, starts), *rows("held-out", schedulers, HELD_OUT_STARTS)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
