"""The files of the study ``cost-aware``: rows, tables, and a report with radar plots after the paper's Fig. 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.experiments.papers.cost_aware import NAME, STUDY
from greenbatch.experiments.papers.cost_aware_tables import CURRENCY, findings, our_tables, paper_tables, rival_tables
from greenbatch.experiments.papers.outputs import write_rows
from greenbatch.experiments.papers.study_report import training_sections
from greenbatch.experiments.papers.study_results import Result
from greenbatch.experiments.papers.study_tables import budget_table, not_trained
from greenbatch.experiments.reports.drawing import slug
from greenbatch.experiments.reports.page import definitions, write_page
from greenbatch.experiments.reports.radar import radar_plot
from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Table, write
from greenbatch.provenance import provenance
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.sources import sources_of

if TYPE_CHECKING:
    from greenbatch.experiments.reports.drawing import Picture

AXES = ("horizon_cost", "horizon_brown_kwh", "renewable_utilization", "avg_bounded_slowdown", "avg_wait_s",
        "makespan_ratio")  # fmt: skip
"""Axes of the radar plots. Cost and brown energy are over the horizon, unlike the paper's total cost and cost
efficiency, which a stretched schedule improves."""
LEFT_OUT = "LPTPN"
"""Left out of the radar plots, as in the paper: its waits would compress all others."""


def rows_of(made: Sequence[Result]) -> list[dict[str, Any]]:
    """The rows of all results, without anything of the paper's figures."""
    return [row for result in made for row in result.rows]


def all_tables(made: Sequence[Result], *, narrow: bool = False) -> list[Table]:
    """Our tables and the budgets of trainings, then the paper's tables of other data."""
    budgets = [budget_table(_trained(result)) for result in made]
    rows = rows_of(made)
    return [
        *our_tables(rows, narrow=narrow), *([] if narrow else rival_tables(rows)),
        *(table for table in budgets if table.rows), *paper_tables(),
    ]  # fmt: skip


def _trained(result: Result) -> Result:
    """A result without agents that were not trained."""
    return replace(result, rows=[row for row in result.rows if row["agent"] and _is_training(row)])


def _is_training(row: dict[str, Any]) -> bool:
    return any(row["column"] == agent.column for agent in STUDY.agents)


def all_lines(made: Sequence[Result]) -> list[str]:
    """The findings, and what is not trained."""
    return [*findings(rows_of(made)), *(line for result in made for line in not_trained(result))]


def write_cost_aware(made: Sequence[Result], folder: Path, command: Sequence[str]) -> None:
    """Write rows.json, results.parquet, table.md, report.html and provenance.json."""
    write_rows(made, folder)
    tables = all_tables(made)
    text = "\n".join([*(write(table, "markdown") for table in tables), *(f"- {line}" for line in all_lines(made))])
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    scenarios = {result.trace: load_scenario(STUDY.traces[result.trace]) for result in made}
    windows = {result.trace: [list(result.starts), result.jobs] for result in made}
    record = provenance(**sources_of(scenarios), settings={"study": NAME, "windows": windows}, command=command)
    write_page(
        folder / "report.html", title=STUDY.title, command=" ".join(command), tables=tables,
        sections=[section for result in made for section in _sections(result)], summary=all_lines(made),
        explained=definitions(), provenance=record,
    )  # fmt: skip
    write_record(folder, record)


def _sections(result: Result) -> Iterator[Section]:
    yield from training_sections(result)
    if picture := radar(result):
        text = "After Fig. 3 of the paper, without LPTPN, as there."
        yield Section(f"{result.trace}: all objectives", text, (picture,))


def radar(result: Result) -> Picture | None:
    """The radar plot of one trace; None where objectives do not differ."""
    names = [row["scheduler"] for row in result.rows if row["figures"] and row["column"] != LEFT_OUT]
    return radar_plot(
        result.frame, metrics=AXES, names=names, currency=CURRENCY, name=f"radar-{slug(result.trace)}"
    )  # fmt: skip
