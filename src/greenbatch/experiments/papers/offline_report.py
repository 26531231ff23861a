"""The files of the study ``offline``: rows, tables, and a report with agreement, claims and online decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from greenbatch.experiments.papers.cocorl_tables import by_setting
from greenbatch.experiments.papers.offline import MIXES, USUAL_MIXES
from greenbatch.experiments.papers.offline_claims import (
    claim_findings,
    claim_table,
    recommendation_tables,
    sentence_lines,
)
from greenbatch.experiments.papers.offline_learning import agreement_tables, curve_plot, step_findings, steps_table
from greenbatch.experiments.papers.offline_results import UNTRAINED, scenario_of
from greenbatch.experiments.papers.offline_tables import WORTH, dataset_table, learner_of, setting_tables
from greenbatch.experiments.papers.outputs import write_own
from greenbatch.experiments.papers.study_report import training_sections
from greenbatch.experiments.papers.study_results import Result
from greenbatch.experiments.papers.study_tables import budget_table, not_trained
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Table


def rows_of(made: Sequence[Result]) -> list[dict[str, Any]]:
    """The rows of all results, without anything of the paper's figures."""
    return [row for result in made for row in result.rows]


def all_tables(made: Sequence[Result], *, narrow: bool = False) -> list[Table]:
    """Sizes, claims, agreement, recommendations, online decisions, datasets, and the budgets of trainings."""
    rows = rows_of(made)
    budgets = [budget_table(_trained(result), WORTH) for result in made]
    tables = [
        *setting_tables(rows, narrow=narrow), claim_table(rows), *agreement_tables(rows),
        *([] if narrow else recommendation_tables(rows)), steps_table(rows),
        dataset_table(rows, _mixes(rows)), *budgets,
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def _mixes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The usual datasets, and those that agents learn from."""
    learned = {learner.mix for learner in map(learner_of, rows) if learner is not None}
    return [mix for mix in MIXES if mix in learned or mix in USUAL_MIXES]


def _trained(result: Result) -> Result:
    """A result without agents that were not trained."""
    return replace(result, rows=[row for row in result.rows if row["column"] != UNTRAINED])


def findings(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How many claims hold, and how soon online training is caught up with."""
    return [*claim_findings(rows), *step_findings(rows)]


def all_lines(made: Sequence[Result]) -> list[str]:
    """The findings, the claims in the chapter's words, and what is not trained."""
    rows = rows_of(made)
    return [*findings(rows), *sentence_lines(rows), *(line for result in made for line in not_trained(result))]


def write_offline(made: Sequence[Result], folder: Path, command: Sequence[str]) -> None:
    """Write rows.json, results.parquet, table.md, report.html and provenance.json."""
    rows, tables = rows_of(made), all_tables(made)
    write_own(
        made, folder, command, study=made[0].study,
        scenarios={result.trace: scenario_of(result.trace) for result in made}, tables=tables, lines=all_lines(made),
        sections=list(_sections(made, tables[1:])), summary=findings(rows), notes=sentence_lines(rows),
    )  # fmt: skip


def _sections(made: Sequence[Result], tables: Sequence[Table]) -> Iterator[Section]:
    for setting, rows in by_setting(rows_of(made)).items():
        if picture := curve_plot(rows, setting):
            yield Section(f"{setting}: online decisions", "", (picture,))
    for table in tables:
        yield Section(table.title, "", tables=(table,), folded=True)
    for result in made:
        yield from training_sections(result)
