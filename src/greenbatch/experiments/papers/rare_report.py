"""The files of the study ``rare``: rows, tables, and a report with the published ranges beside ours."""

# ruff: noqa: RUF001 - minus signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.experiments.papers.outputs import write_own
from greenbatch.experiments.papers.rare import BESIDE, STUDY, UNTRAINED
from greenbatch.experiments.papers.rare_results import scenario_of
from greenbatch.experiments.papers.rare_tables import (
    WORTH,
    claim_table,
    claims,
    findings,
    range_text,
    sentence_lines,
    setting_tables,
)
from greenbatch.experiments.papers.study_report import training_sections
from greenbatch.experiments.papers.study_results import Result
from greenbatch.experiments.papers.study_tables import budget_table, not_trained
from greenbatch.experiments.reports.drawing import COLORS, PALE, Picture, drawing, new_figure, wrapped
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Table

if TYPE_CHECKING:
    from greenbatch.experiments.papers.rare_tables import Claim


def rows_of(made: Sequence[Result]) -> list[dict[str, Any]]:
    """The rows of all results, without anything of the paper's figures."""
    return [row for result in made for row in result.rows]


def all_tables(made: Sequence[Result], *, narrow: bool = False) -> list[Table]:
    """The published ranges beside ours, the settings, and the budgets of trainings."""
    rows = rows_of(made)
    claimed = claim_table(rows, narrow=narrow)
    budgets = [budget_table(_trained(result), WORTH) for result in made]
    return [*([claimed] if claimed.rows else []), *setting_tables(rows, narrow=narrow), *(t for t in budgets if t.rows)]


def _trained(result: Result) -> Result:
    """A result without agents that were not trained."""
    from dataclasses import replace

    rows = [row for row in result.rows if row["agent"] and row["column"] != UNTRAINED]
    return replace(result, rows=rows)


def all_lines(made: Sequence[Result]) -> list[str]:
    """The findings, the claims in the paper's words, and what is not trained."""
    rows = rows_of(made)
    return [*findings(rows), *sentence_lines(rows), *(line for result in made for line in not_trained(result))]


def write_rare(made: Sequence[Result], folder: Path, command: Sequence[str]) -> None:
    """Write rows.json, results.parquet, table.md, report.html and provenance.json."""
    rows, tables = rows_of(made), all_tables(made)
    write_own(
        made, folder, command, study=STUDY, scenarios={result.trace: scenario_of(result.trace) for result in made},
        tables=tables, lines=all_lines(made), sections=list(_sections(made, tables[1:])), summary=findings(rows),
        notes=sentence_lines(rows),
    )  # fmt: skip


def _sections(made: Sequence[Result], tables: Sequence[Table]) -> Iterator[Section]:
    if picture := range_plot(claims(rows_of(made))):
        yield Section("Published ranges and ours", "", (picture,))
    for table in tables:
        yield Section(table.title, "", tables=(table,), folded=True)
    for result in made:
        yield from training_sections(result)


def range_plot(told: Sequence[Claim]) -> Picture | None:
    """The published ranges as bars, with ours and the rules beside as dots; None without any."""
    told = [claim for claim in told if math.isfinite(claim.over.mean)]
    if not told:
        return None
    figures = [claim.printed["figure"].replace("none", "random actions") for claim in told]
    names = [f"{figure} · {claim.setting}" for figure, claim in zip(figures, told, strict=True)]
    labels = [wrapped(name, 34) for name in names]
    rows = -np.arange(len(told), dtype=float)
    top = max([claim.over.high for claim in told if math.isfinite(claim.over.high)] + [25.0]) + 3.0
    floor = min([0.0, *(claim.over.low for claim in told if math.isfinite(claim.over.low))]) - 3.0
    ends = [(max(low, floor), min(high, top)) for low, high in (claim.ends for claim in told)]
    with drawing():
        figure, axes = new_figure(0.9 + 0.19 * len(told))
        axes.axvline(0.0, color=PALE, linewidth=1)
        for row, (low, high) in zip(rows, ends, strict=True):
            axes.plot([low - 0.15, high + 0.15], [row, row], color=COLORS[1], alpha=0.45, linewidth=6,
                      solid_capstyle="butt", label="published" if row == 0 else None)  # fmt: skip
        for other, marker, color in zip(BESIDE, "^v", (COLORS[2], COLORS[3]), strict=True):
            axes.plot([c.beside[other].mean for c in told], rows, marker, markersize=3.5, color=color, label=other)
        mean = np.array([claim.over.mean for claim in told])
        reach = np.nan_to_num(np.abs([[c.over.low - c.over.mean, c.over.high - c.over.mean] for c in told]).T)
        axes.errorbar(mean, rows, xerr=reach, fmt="o", markersize=4, color=COLORS[0], linewidth=1, label="ours")
        axes.set_yticks(rows, labels, multialignment="right")
        axes.set(xlim=(floor, top), ylim=(rows[-1] - 0.7, 0.7))
        axes.set_xlabel("value above that of the best named rule [%]", loc="right")
        figure.legend(loc="outside upper left", ncols=4)
        both = zip(names, told, strict=True)
        texts = [f"{name}: published {range_text(claim)}, ours {claim.over.mean:.1f}" for name, claim in both]
        caption = "Bars that reach the edge have no published end there. Ours: 95% interval."
        alt = f"Dot plot of {len(told)} published ranges and ours, in percent. {'; '.join(texts)}."
        return Picture("published-ranges", "Published ranges and ours", caption, alt.replace("-", "−"), figure)
