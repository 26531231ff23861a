"""What filling is worth: ``python docs/filling.py runs/fresh`` prints a table of the results page.

The models of the protocol ``fresh`` with and without filling, on 40 generated windows that their searches have not
seen: workloads of other seeds, years of weather in turn. Needs the weather of GAS-MARL, see ``greenbatch data list``;
takes about a minute.
"""

# ruff: noqa: RUF001 - multiplication signs are meant for the reader.

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from greenbatch.experiments.papers.fresh import COURSES, GOALS, PRESET, fresh_cell
from greenbatch.learning.search.planner import YEAR_S, Trial
from greenbatch.models.model import load_model
from greenbatch.models.planner import numbers_at
from greenbatch.presets.preset import preset
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.regenerate import regenerated

JOBS, WINDOWS, YEARS = 1024, 10, 3
"""Jobs of a window, windows of each workload, and years of weather."""
SHIFTS = (-100, -99, -98, -97)
"""Seeds of the workloads, relative to those of the scenario; searches add 0 and more."""
SEEDS = (0, 1, 2)


def filling_table(place: Path) -> list[str]:
    """Figures with and without filling.

    Args:
        place: folder of the trainings.
    """
    lines = [
        "| Jobs | Bound [×] | Filling | Utilization [%] | Slowdown | Makespan [×] |", "|:---|---:|:---|---:|---:|---:|",
    ]  # fmt: skip
    made, random = preset(PRESET), np.random.default_rng(0)
    for course in (COURSES[name] for name in ("Lublin-256", "Cirne", "Jann")):
        worlds = [regenerated(load_scenario(course.scenario), shift) for shift in SHIFTS]
        starts = [np.sort(random.integers(0, len(world.workload) - JOBS, WINDOWS)) for world in worlds]
        trials = [Trial(world, made, JOBS, WINDOWS, 1) for world in worlds]
        models = [load_model(place / fresh_cell(course, seed, place).folder) for seed in SEEDS]
        for bound in GOALS:
            for fill in (0.0, made.fill):
                found = []
                for trial, some in zip(trials, starts, strict=True):
                    trial.fill = fill
                    shifts_s = np.arange(WINDOWS) % YEARS * YEAR_S
                    found += [trial(numbers_at(model, bound), some, shifts_s) for model in models]
                green, slow, ratio = np.concatenate(found).mean(axis=0)
                told = f"{fill:.0%}" if fill else "none"
                lines.append(f"| {course.name} | {bound} | {told} | {100 * green:.1f} | {slow:.2f} | {ratio:.3f} |")
    return lines


if __name__ == "__main__":
    print("\n".join(filling_table(Path(sys.argv[1]))))
