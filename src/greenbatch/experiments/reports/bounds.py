"""Bounds of windows as a table and as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.experiments.reports.tables import Cell, Table, write
from greenbatch.experiments.running.bounds import WindowBound, bound_rows

if TYPE_CHECKING:
    from greenbatch.scenarios import Scenario

COLUMNS = (
    ("Renewable utilization", "", "Renewable"),
    ("least of a window", "", "least"),
    ("most of a window", "", "most"),
    ("Brown energy", "kWh", "Brown"),
)


def bounds_table(bounds: Sequence[WindowBound]) -> Table:
    """Means over the windows, one row per makespan."""
    rows, count = [], len({each.start for each in bounds})
    for ratio in dict.fromkeys(bound.makespan_ratio for bound in bounds):
        utilization, brown_kwh = np.array(
            [(each.renewable_utilization, each.brown_kwh) for each in bounds if each.makespan_ratio == ratio]
        ).T
        figures = (utilization.mean(), utilization.min(), utilization.max())
        figures = figures[: 3 if count > 1 else 1]
        cells = (*(Cell(f"{figure:.4f}") for figure in figures), Cell(f"{brown_kwh.mean():,.0f}"))
        rows.append((f"at most {ratio:g} x", cells))
    one = bounds[0]
    windows = f"{count} windows of {one.jobs:,} jobs" if count > 1 else f"{one.jobs:,} jobs from {one.start:,}"
    notes = (
        f"No schedule has a larger renewable utilization, or takes less from the grid from the first submission to the "
        f"latest end; makespan relative to {one.reference}. "
        f"{'Means of the windows. ' if count > 1 else ''}Schedules need not come close: jobs may be known in advance, "
        "and overlap by less than an interval.",
    )
    title = f"{one.scenario}: what no schedule can beat, {windows}"
    return Table(
        title,
        COLUMNS if count > 1 else (COLUMNS[0], COLUMNS[-1]),
        tuple(rows),
        corner="Latest end allowed",
        notes=notes,
    )


def write_bounds(bounds: Sequence[WindowBound], scenario: Scenario, folder: Path, command: Sequence[str]) -> None:
    """Write bounds.json, table.md and provenance.json."""
    from greenbatch.provenance import provenance
    from greenbatch.scenarios.sources import sources

    objects = ",\n".join(json.dumps(row, allow_nan=False) for row in bound_rows(bounds))
    (folder / "bounds.json").write_text(f"[\n{objects}\n]\n", encoding="utf-8")
    (folder / "table.md").write_text(write(bounds_table(bounds), "markdown") + "\n", encoding="utf-8")
    settings = {"starts": list(dict.fromkeys(bound.start for bound in bounds)), "jobs": bounds[0].jobs,
                "makespan": list(dict.fromkeys(bound.makespan_ratio for bound in bounds))}  # fmt: skip
    write_record(folder, provenance(**sources(scenario), settings=settings, command=command))
