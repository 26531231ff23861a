"""The files of the study ``cocorl``: rows, tables, and a report with cost against its limit and multipliers' paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from greenbatch.experiments.papers.cocorl import BACKFILLED, COST, PACKER, SETTINGS, STUDY, VALUE
from greenbatch.experiments.papers.cocorl_results import scenario_of
from greenbatch.experiments.papers.cocorl_tables import (
    ACCRUED,
    RATIO,
    claim_table,
    findings,
    promise_table,
    promises,
    setting_tables,
)
from greenbatch.experiments.papers.outputs import write_own
from greenbatch.experiments.papers.study_report import training_sections
from greenbatch.experiments.papers.study_results import Result
from greenbatch.experiments.papers.study_tables import budget_table, not_trained
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.drawing import Picture, drawing, new_figure, slug
from greenbatch.experiments.reports.looks import looks_of
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Table

Row = Mapping[str, Any]


def rows_of(made: Sequence[Result]) -> list[dict[str, Any]]:
    """The rows of all results, without anything of the chapter's figures."""
    return [row for result in made for row in result.rows]


def all_tables(made: Sequence[Result], *, narrow: bool = False) -> list[Table]:
    """Limits, the published ranges beside ours, the settings, and the budgets of trainings."""
    rows = rows_of(made)
    first = [promise_table(rows, narrow=narrow), claim_table(rows)]
    budgets = [budget_table(result, ACCRUED) for result in made]
    return [*(t for t in first if t.rows), *setting_tables(rows, narrow=narrow), *(t for t in budgets if t.rows)]


def all_lines(made: Sequence[Result]) -> list[str]:
    """The findings, and what is not trained."""
    return [*findings(rows_of(made)), *(line for result in made for line in not_trained(result))]


def write_cocorl(made: Sequence[Result], folder: Path, command: Sequence[str]) -> None:
    """Write rows.json, results.parquet, table.md, report.html and provenance.json."""
    tables = all_tables(made)
    write_own(
        made, folder, command, study=STUDY, scenarios={result.trace: scenario_of(result.trace) for result in made},
        tables=tables, lines=all_lines(made), sections=list(_sections(made, tables[1:])),
        summary=findings(rows_of(made)),
    )  # fmt: skip


def _sections(made: Sequence[Result], tables: Sequence[Table]) -> Iterator[Section]:
    rows = rows_of(made)
    for workload in dict.fromkeys(SETTINGS[row["trace"]].workload for row in rows):
        own = [row for row in rows if SETTINGS[row["trace"]].workload == workload]
        pictures = [picture for column in (RATIO, ACCRUED) if (picture := load_plot(own, column, workload))]
        if pictures:
            yield Section(f"{workload}: by load", "", tuple(pictures))
    for table in tables:
        yield Section(table.title, "", tables=(table,), folded=True)
    for result in made:
        yield from training_sections(result)


def load_plot(rows: Sequence[Row], column: Column, workload: str) -> Picture | None:
    """A metric of rules with backfilling and of agents against the load; None with a single load.

    Limits are drawn beside the accrued cost. Source of the form: CoCoRL Figs. 6.4, 6.7 and 6.9.

    Args:
        rows: the rows of all loads of a workload.
        column: the metric.
        workload: its name.
    """
    loads = sorted({SETTINGS[row["trace"]].load for row in rows})
    shown = dict.fromkeys(
        row["scheduler"] for row in rows if row["agent"] or row["scheduler"] in (*BACKFILLED, PACKER)
    )  # fmt: skip
    if len(loads) < 2:
        return None
    looks, told = looks_of(list(shown)), []
    with drawing():
        figure, axes = new_figure(2.6 + 0.16 * len(shown))
        for name in shown:
            at = {SETTINGS[row["trace"]].load: row["figures"][column.metric]["mean"] for row in rows
                  if row["scheduler"] == name and column.metric in row["figures"]}  # fmt: skip
            points = [column.scale * at[load] for load in loads if load in at]
            look = looks[name]
            axes.plot([load for load in loads if load in at], points, color=look.color, linestyle=look.dash,
                      marker=look.marker, markersize=4, label=name)  # fmt: skip
            told.append(f"{name} {', '.join(f'{point:.4g}' for point in points)}")
        limits = {SETTINGS[made.setting].load: made.limit for made in promises(rows)}
        if column.metric == COST and limits:
            axes.plot(list(limits), list(limits.values()), "_", color="black", markersize=18, label="limit")
        axes.set_xticks(loads)
        axes.set(xlabel="load [%]", ylabel=f"{column.header.lower()}{f' [{column.unit}]' if column.unit else ''}")
        figure.legend(loc="outside lower left", ncols=2)
        better = "Higher" if column.metric == VALUE else "Lower"
        title = f"{column.header} by load, {workload}"
        alt = f"Line chart over the loads {', '.join(map(str, loads))} %: {'; '.join(told)}."
        return Picture(f"{slug(workload)}-{slug(column.metric)}", title, f"{better} is better.", alt, figure)
