"""The files of a paper's tables: cells of the plain columns, and results of the trained ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from greenbatch.experiments.papers.cells import write_reproduction
from greenbatch.experiments.papers.protocols import PROTOCOLS
from greenbatch.experiments.papers.reproduce import summary
from greenbatch.experiments.papers.studies import Study
from greenbatch.experiments.papers.study_report import all_lines, all_tables, write_study
from greenbatch.experiments.papers.study_results import Result
from greenbatch.experiments.reports.page import write_page
from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Table, write
from greenbatch.files import write_parquet
from greenbatch.provenance import provenance
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.scenarios.sources import sources_of


def write_cells(protocol: str, cells: Sequence[dict[str, Any]], folder: Path, record: Mapping[str, Any]) -> None:
    """Write cells.json, summary.json, report.html and provenance.json.

    Args:
        protocol: name of the paper's protocol.
        cells: the cells.
        folder: the target folder.
        record: provenance.
    """
    for name, content in (("cells", list(cells)), ("summary", summary(cells))):
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    write_reproduction(
        folder / "report.html", title=PROTOCOLS[protocol].title, command=" ".join(record["run"]["command"]),
        cells=cells, notes=[*PROTOCOLS[protocol].readings, *record["notes"]], provenance=record,
    )  # fmt: skip
    write_record(folder, record)


def write_rows(made: Sequence[Result], folder: Path) -> None:
    """Write rows.json, and all metrics of all windows as results.parquet."""
    import polars as pl

    rows = [row for result in made for row in result.rows]
    objects = ",\n".join(json.dumps(row, allow_nan=False) for row in rows)
    (folder / "rows.json").write_text(f"[\n{objects}\n]\n", encoding="utf-8")
    kinds = [{"trace": pl.lit(result.trace), "windows": pl.lit(result.windows)} for result in made]
    frames = (result.frame.with_columns(**kind) for result, kind in zip(made, kinds, strict=True))
    write_parquet(pl.concat(frames), folder / "results.parquet")


def write_own(
    made: Sequence[Result], folder: Path, command: Sequence[str], *, study: Study, scenarios: Mapping[str, Scenario],
    tables: Sequence[Table], lines: Sequence[str], sections: Sequence[Section], summary: Sequence[str],
    notes: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write rows.json, results.parquet, table.md, report.html and provenance.json of a study with tables of its own.

    Args:
        made: one result per setting.
        folder: the target folder.
        command: the command line.
        study: the paper.
        scenarios: setting -> its scenario.
        tables: all tables; the first is that of the report's first screen.
        lines: written behind the tables.
        sections: of the report.
        summary: findings, on the report's first screen.
        notes: of the report.
    """
    write_rows(made, folder)
    text = "\n".join([*(write(table, "markdown") for table in tables), *(f"- {line}" for line in lines)])
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    settings = {"study": study.name, "episodes": {result.trace: list(result.starts) for result in made}}
    record = provenance(**sources_of(scenarios), settings=settings, command=command)
    write_page(
        folder / "report.html", title=study.title, command=" ".join(command), tables=tables[:1], sections=sections,
        summary=summary, notes=notes, provenance=record,
    )  # fmt: skip
    write_record(folder, record)


def write_results(paper: Study, made: Sequence[Result], folder: Path, command: Sequence[str]) -> None:
    """Write rows.json, results.parquet, table.md, report.html and provenance.json."""
    write_rows(made, folder)
    lines = [f"- {line}" for line in all_lines(made)]
    text = "\n".join([write(table, "markdown") for table in all_tables(made)] + lines)
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    scenarios = {result.trace: load_scenario(paper.traces[result.trace]) for result in made}
    record = provenance(
        **sources_of(scenarios),
        settings={"study": paper.name, "windows": {f"{r.trace}, {r.windows}": [list(r.starts), r.jobs] for r in made}},
        command=command,
    )
    write_study(folder / "report.html", paper, made, command=" ".join(command), provenance=record)
    write_record(folder, record)
