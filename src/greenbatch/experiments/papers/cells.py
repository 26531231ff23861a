"""Cells of a paper's tables, published and ours, as tables, as pictures and as a report."""

# ruff: noqa: RUF001 - typographic dashes, minus and multiplication signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from greenbatch.experiments.papers.agreement import agreement
from greenbatch.experiments.papers.headroom import COVERS
from greenbatch.experiments.papers.protocols import REDUCTIONS
from greenbatch.experiments.papers.reproduce import VERDICTS, name_of, summary
from greenbatch.experiments.reports.drawing import (
    COLORS,
    PALE,
    Picture,
    drawing,
    new_figure,
    plain_log_ticks,
    slug,
    wrapped,
)
from greenbatch.experiments.reports.page import write_page
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.metrics import METRICS


def reproduction_tables(cells: Sequence[Mapping[str, object]]) -> list[Table]:
    """Published figures and ours: one table per table, trace and metric of the paper, one row per scheduler.

    Each cell has table, trace, backfill, scheduler, metric, published, ours, digits, verdict and optionally a reason;
    ``digits`` is the number of decimals printed in the paper; ``published`` or ``ours`` may be None.
    """

    def figure(cell: Mapping[str, object], key: str) -> Cell:
        value, digits = cell[key], cell["digits"]
        if not isinstance(value, (int, float)) or not math.isfinite(value) or not isinstance(digits, int):
            return Cell("–")
        return Cell(f"{value:.{digits}f}".replace("-", "−"))

    groups: dict[str, list[tuple[str, tuple[Cell, ...]]]] = {}
    bounded: set[str] = set()
    for cell in cells:
        title = ", ".join(str(cell[key]) for key in ("table", "trace") if cell.get(key)) + f": {label_of(cell)}"
        verdict = str(cell["verdict"])
        judged = Cell(verdict, "", str(cell.get("reason") or ""), "best" if verdict == "equal" else "")
        title = f"{title[0].upper()}{title[1:]}"
        row = (figure(cell, "published"), figure(cell, "ours"), *_bound_cells(cell), judged)
        groups.setdefault(title, []).append((name_of(cell), row))
        bounded |= {title} if "bound" in cell else set()
    made = []
    for title, rows in groups.items():
        kept = range(5) if title in bounded else (0, 1, 4)
        headers = tuple((header, "", header) for header in ("Published", "Ours", "Bound", "Left", "Verdict"))
        shown = tuple((name, tuple(row[k] for k in kept)) for name, row in rows)
        notes = (COVERS,) if title in bounded else ()
        made.append(Table(title, tuple(headers[k] for k in kept), shown, notes=notes))
    return made


def _bound_cells(cell: Mapping[str, object]) -> tuple[Cell, Cell]:
    """The bound at the makespan of a scheduler, and how much is left to it."""
    bound, ours, digits = cell.get("bound"), cell.get("ours"), cell.get("digits")
    if not isinstance(bound, float) or not isinstance(ours, float):
        return Cell("–"), Cell("–")
    return Cell(f"{bound:.{digits}f}"), Cell(f"{bound - ours:.{digits}f}")


def label_of(cell: Mapping[str, object]) -> str:
    """What the figure of a cell is, in words."""
    metric = str(cell["metric"])
    if metric in REDUCTIONS:
        return REDUCTIONS[metric].label
    return METRICS[metric].label if metric in METRICS else metric


def published_plots(cells: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Published figures (open circles) and ours (dots), one picture per metric, one line per table cell."""
    metrics = list(dict.fromkeys(str(cell["metric"]) for cell in cells))
    return [_published(metric, [cell for cell in cells if str(cell["metric"]) == metric]) for metric in metrics]


def _published(metric: str, cells: Sequence[Mapping[str, Any]]) -> Picture:
    def number(value: Any) -> float:
        return float(value) if isinstance(value, (int, float)) else np.nan

    names = [" · ".join(filter(None, (str(cell.get("trace") or ""), name_of(cell)))) for cell in cells]
    theirs, ours = (np.array([number(cell[key]) for cell in cells]) for key in ("published", "ours"))
    labels = [wrapped(name, 32) for name in names]
    lines = np.array([label.count("\n") + 1 for label in labels])
    rows = -(np.cumsum(lines) - (lines + 1) / 2)
    both = np.concatenate([theirs, ours])
    both = both[np.isfinite(both)]
    with drawing():
        figure, axes = new_figure(0.9 + 0.17 * lines.sum())
        axes.hlines(rows, np.fmin(theirs, ours), np.fmax(theirs, ours), color=PALE, linewidth=1.5)
        axes.plot(theirs, rows, "o", markersize=6, fillstyle="none", color=COLORS[4], label="published")
        axes.plot(ours, rows, ".", markersize=5, color=COLORS[0], label="ours")
        axes.set_yticks(rows, labels, multialignment="right")
        axes.set_ylim(-lines.sum() + 0.4, 0.6)
        if both.size and both.min() > 0 and both.max() / both.min() > 12:
            axes.set_xscale("log")
            plain_log_ticks(axes)
        axes.set_xlabel(label_of(cells[0]), loc="right")
        figure.legend(loc="outside upper left", ncols=2)
        told = summary(cells)["text"]
        alt = f"Dot plot of {len(cells)} figures of {label_of(cells[0])}, published and ours. {told}"
        caption = told
        return Picture(f"published-{slug(metric)}", f"Published and ours: {label_of(cells[0])}", caption, alt, figure)


def write_reproduction(
    path: str | Path,
    *,
    title: str,
    command: str,
    cells: Sequence[Mapping[str, Any]],
    notes: Sequence[str] = (),
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Write a comparison of published figures and ours as one self-contained HTML file.

    Args:
        path: the file; replaced atomically, untouched on failure.
        title: title of the page.
        command: the command line that made it.
        cells: table, trace, backfill, scheduler, metric, published, ours, digits, verdict and reason of each cell.
        notes: notes.
        provenance: as in `write_report`.

    Raises:
        InputError: the file cannot be written.
    """
    seen = {str(cell["verdict"]) for cell in cells}
    write_page(
        path, title=title, command=command, first=agreement(cells, {str(c["metric"]): label_of(c) for c in cells}),
        sections=[
            Section("Tables", "", tables=tuple(reproduction_tables(cells))),
            *([Section("Figure by figure", "", tuple(published_plots(cells)), folded=True)] if cells else []),
        ],
        notes=notes, provenance=provenance,
        explained=[(verdict, meaning) for verdict, meaning in VERDICTS.items() if verdict in seen],
    )  # fmt: skip
