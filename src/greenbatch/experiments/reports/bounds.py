"""Bounds of windows as a table and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.experiments.reports.tables import Cell, Table, write
from greenbatch.experiments.running.bounds import SpanBound, WindowBound, bound_rows

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


def span_table(bounds: Sequence[SpanBound], currency: str = "") -> Table:
    """Sums over the windows: what is possible at least, a scheduler, and how much of its figures could be saved."""
    one, rows = bounds[0], []
    sums = {
        name: [sum(getattr(each, prefix + name) or 0.0 for each in bounds) for prefix in ("", "reference_")]
        for name in ("brown_kwh", "cost", "carbon_kg") if getattr(one, name) is not None
    }  # fmt: skip
    for label, figures in (("least possible", [each[0] for each in sums.values()]),
                           (one.reference, [each[1] for each in sums.values()])):  # fmt: skip
        rows.append((label, tuple(Cell(f"{figure:,.0f}") for figure in figures)))
    saved = [1.0 - least / of if of > 0.0 else np.nan for least, of in sums.values()]
    rows.append(("could be saved at most", tuple(Cell("" if np.isnan(each) else f"{each:.1%}") for each in saved)))
    heads = {"brown_kwh": ("Brown energy", "kWh", "Brown"), "cost": ("Cost of energy", currency, "Cost"),
             "carbon_kg": ("Carbon", "kg", "Carbon")}  # fmt: skip
    hours, latest_h = one.within_s / 3600.0, max(each.reference_within_s for each in bounds) / 3600.0
    late = (
        f"{one.reference} itself does not keep that time: it ends a job {latest_h:,.1f} h late. "
        if latest_h > hours else f"{one.reference} ends no job more than {latest_h:,.1f} h late. "
    )  # fmt: skip
    windows = f"{len(bounds)} windows of {one.jobs:,} jobs" if len(bounds) > 1 else f"{one.jobs:,} jobs"
    notes = (
        f"No schedule takes, pays or emits less in which each job ends at most {hours:g} h after its submission and "
        f"run time. {late}Demand charges are left out. Schedules need not come close: jobs may be cut up freely and "
        "known in advance.",
    )
    title = f"{one.scenario}: what no schedule can beat within {hours:g} h, {windows}"
    return Table(title, tuple(heads[name] for name in sums), tuple(rows), corner="", notes=notes)


def write_bounds(
    bounds: Sequence[WindowBound] | Sequence[SpanBound], table: Table, settings: Mapping[str, Any], scenario: Scenario,
    folder: Path, command: Sequence[str],
) -> None:  # fmt: skip
    """Write bounds.json, table.md and provenance.json, with what was set beside the windows."""
    from greenbatch.provenance import provenance
    from greenbatch.scenarios.sources import sources

    objects = ",\n".join(json.dumps(row, allow_nan=False) for row in bound_rows(bounds))
    (folder / "bounds.json").write_text(f"[\n{objects}\n]\n", encoding="utf-8")
    (folder / "table.md").write_text(write(table, "markdown") + "\n", encoding="utf-8")
    windows = {"starts": list(dict.fromkeys(bound.start for bound in bounds)), "jobs": bounds[0].jobs}
    write_record(folder, provenance(**sources(scenario), settings={**windows, **settings}, command=command))
