"""Reports as one HTML file with summary, tables, pictures, warnings and provenance, without scripts or network."""

# ruff: noqa: RUF001 - typographic dashes and signs are meant for the reader.

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.experiments.reports.answer import key_figures
from greenbatch.experiments.reports.breakdown import breakdown_sections, gains_table
from greenbatch.experiments.reports.cautions import comparison_notes, warning_lines
from greenbatch.experiments.reports.columns import DETAIL, MAIN, Column, main_columns
from greenbatch.experiments.reports.data_notes import changing
from greenbatch.experiments.reports.drawing import color_of
from greenbatch.experiments.reports.findings import summary_lines
from greenbatch.experiments.reports.outages import outage_sections
from greenbatch.experiments.reports.plots import box_plots, gantt_plots, power_plots, queue_plot
from greenbatch.experiments.reports.tables import (
    Section,
    Table,
    class_table,
    comparison_table,
    difference_table,
    record_table,
)
from greenbatch.experiments.reports.tradeoff import tradeoff_plot
from greenbatch.experiments.running.frames import schedulers
from greenbatch.experiments.running.model_warnings import marked
from greenbatch.files import write_bytes
from greenbatch.metrics import METRICS
from greenbatch.scenarios.pooled import ignored_requests

if TYPE_CHECKING:
    import polars

    from greenbatch.experiments.running.compare import Comparison

TEMPLATES = Path(__file__).parent / "templates"


def data_notes(outcomes: Mapping[str, Outcome], notes: Sequence[str] = ()) -> list[str]:
    """Everything repaired, dropped, filled or assumed when reading the inputs, without duplicates."""
    lines = [str(note) for note in notes]
    for outcome in outcomes.values():
        lines += [f"{outcome.workload.name}: {note}" for note in outcome.workload.notes]
        if outcome.site is not None:
            lines += [f"{outcome.site.name}: {note}" for note in outcome.site.notes]
    return list(dict.fromkeys(lines))


def definitions(columns: Sequence[Column] = MAIN) -> list[tuple[str, str]]:
    """Label and formula, from the docstring, of the metrics of some columns and of the horizon, as HTML."""
    from markupsafe import Markup, escape

    found: list[tuple[str, str]] = []
    for m in (METRICS[name] for name in (*(c.metric for c in columns), "horizon_s", "horizon_unfinished_share")):
        text = str(escape(" ".join(m.doc.replace(", shape (n,)", "").split())))
        text = re.sub(r"\*(\w+)\*", r"<em>\1</em>", re.sub(r"``?([^`]+)``?", r"<code>\1</code>", text))
        found.append((m.label, Markup(text)))  # noqa: S704 - escaped above, only our own tags are added
    return found


def provenance_blocks(provenance: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]], str]]:
    """(heading, rows of key and value, text) per entry: flat mappings as rows, nested values as JSON."""
    single: list[tuple[str, str]] = []
    blocks: list[tuple[str, list[tuple[str, str]], str]] = []
    for key, value in provenance.items():
        if not isinstance(value, (Mapping, list, tuple)):
            single.append((str(key), "–" if value is None else str(value)))
        elif isinstance(value, Mapping) and not any(isinstance(v, (Mapping, list, tuple)) for v in value.values()):
            blocks.append((str(key), [(str(k), "–" if v is None else str(v)) for k, v in value.items()], ""))
        else:
            blocks.append((str(key), [], json.dumps(value, indent=2, default=str, ensure_ascii=False)))
    return [("", single, ""), *blocks] if single else blocks


def sections(
    frame: polars.DataFrame, outcomes: Mapping[str, Outcome], baseline: str, example: str,
    deciders: Mapping[str, object], breakdown: polars.DataFrame | None = None,
) -> list[Section]:  # fmt: skip
    """All sections in order; those without pictures and tables are omitted."""
    trade = tradeoff_plot(frame, baseline)
    one = f"Window {example}: " if example else "One window: "
    found = [
        Section(
            "Trade-off and queue",
            f"Means over all windows, and the jobs that wait in {f'window {example}' if example else 'one window'}."
            if trade
            else f"{one}the jobs that wait.",
            (*([trade] if trade else []), queue_plot(outcomes, order=schedulers(frame))),
        ),
        Section(
            "Spread over the windows", "How much each figure varies from window to window.", tuple(box_plots(frame))
        ),
        Section(
            "Power against supply",
            f"{one}cluster power over the same 48 hours, the busiest; power above the green line comes from the grid.",
            tuple(power_plots(outcomes)),
        ),
        Section("Schedules", f"{one}which processors ran what, on one time axis.", tuple(gantt_plots(outcomes))),
    ]
    if breakdown is not None:
        found = [*breakdown_sections(breakdown, baseline), *found]
    from greenbatch.experiments.reports.model_sections import model_sections

    found += model_sections(deciders, outcomes)
    return [section for section in found if section.pictures or section.tables]


def render(context: Mapping[str, Any]) -> str:
    """Render the template; everything except our own SVG is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html.j2").render(context)


def write_report(
    path: str | Path,
    *,
    title: str,
    command: str,
    frame: polars.DataFrame,
    outcomes: Mapping[str, Outcome],
    baseline: str,
    notes: Sequence[str] = (),
    provenance: Mapping[str, Any] | None = None,
    example: str = "",
    warnings: Sequence[str] = (),
    setting: str = "Schedulers compared",
    sample: Sequence[str] = (),
    marks: Mapping[str, str] | None = None,
    deciders: Mapping[str, object] | None = None,
    breakdown: polars.DataFrame | None = None,
    more: Sequence[Section] = (),
) -> None:
    """Write the report of a comparison as one self-contained HTML file; same inputs, same bytes.

    Args:
        path: the file; replaced atomically, untouched on failure.
        title: title of the page.
        command: the command line that made it.
        frame: tidy results (window, scheduler, metric, value) of all windows.
        outcomes: scheduler -> outcome of one example window; the schedulers must be in the frame.
        baseline: the scheduler that the others are compared with.
        notes: further data notes, in addition to those of the workload and the site.
        provenance: versions, seeds, hashes, resolved scenario; nested mappings are shown as JSON.
        example: name of the example window.
        warnings: further warnings.
        setting: title of the main table, see `Comparison.title`.
        sample: notes under the main table, see `comparison_notes`.
        marks: schedulers that the summary and the key figures mark, see `Comparison.marks`.
        deciders: the schedulers by name; trained models among them get a section each.
        breakdown: figures of partitions, accounts and users, see `Comparison.breakdown`.
        more: further sections, which come first.

    Raises:
        InputError: the baseline or an outcome is not in the frame, there is no outcome, or the file cannot be written.
    """
    if not outcomes:
        raise InputError("there is no example window", field="outcomes", fix="give the outcomes of one window")
    names = schedulers(frame)
    for name in outcomes:
        if name not in names:
            raise InputError(f"{name!r} has an outcome but no row in the frame", field="outcomes")
    outcomes = {name: outcomes[name] for name in names if name in outcomes}
    tables = [
        comparison_table(frame, title=setting, notes=sample),
        difference_table(frame, baseline),
        record_table(frame),
        class_table(frame),
    ]
    remarks = data_notes(outcomes, notes)
    cluster = next((outcome.cluster for outcome in outcomes.values()), None)
    main = main_columns(frame)
    further = [column for column in DETAIL if column.metric not in {shown.metric for shown in main}]
    detail = comparison_table(frame, columns=further, title="Further figures", show_intervals=False)
    told = marked(frame, baseline, marks or {})
    context = {
        "title": title, "command": command, "baseline": baseline,
        "summary": summary_lines(told[0], outcomes, told[1]), "tiles": key_figures(*told),
        "gains": None if breakdown is None else gains_table(breakdown, baseline),
        "warnings": [*warning_lines(frame, baseline, cluster), *warnings, *changing(remarks)],
        "tables": [table for table in (*tables, detail) if table and table.rows and table.columns],
        "colors": {name: color_of(k) for all_names in (names, schedulers(told[0])) for k, name in enumerate(all_names)},
        "sections": [*more, *sections(frame, outcomes, baseline, example, deciders or {}, breakdown)],
        "notes": remarks,
        "definitions": definitions(main), "provenance": provenance_blocks(provenance or {}),
    }  # fmt: skip
    write_bytes(Path(path), render(context).encode())


def report_comparison(
    path: str | Path, comparison: Comparison, *, command: str, provenance: Mapping[str, Any]
) -> None:  # fmt: skip
    """Write the report of a comparison as one self-contained HTML file.

    Args:
        path: the file; replaced atomically, untouched on failure.
        comparison: the comparison.
        command: the command line that made it.
        provenance: as in `write_report`.

    Raises:
        InputError: the file cannot be written.
    """
    scenario = comparison.scenario
    ignored = map(str, ignored_requests(scenario.workload, scenario.cluster))
    write_report(
        path, title=f"greenbatch: {scenario.name}", command=command, frame=comparison.frame,
        outcomes=comparison.example, baseline=comparison.baseline, notes=[scenario.description, *ignored],
        provenance=provenance,
        example=str(comparison.starts[0]), warnings=comparison.warnings, setting=comparison.title,
        sample=comparison_notes(comparison), marks=comparison.marks, deciders=comparison.deciders,
        breakdown=comparison.breakdown, more=outage_sections(scenario.workload, comparison.frame, comparison.baseline),
    )  # fmt: skip


def write_page(
    path: str | Path,
    *,
    title: str,
    command: str,
    tables: Sequence[Table],
    sections: Sequence[Section] = (),
    summary: Sequence[str] = (),
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
    explained: Sequence[tuple[str, str]] = (),
    provenance: Mapping[str, Any] | None = None,
    colors: Mapping[str, str] | None = None,
) -> None:
    """Write tables and pictures as one self-contained HTML file.

    Args:
        path: the file; replaced atomically, untouched on failure.
        title: title of the page.
        command: the command line that made it.
        tables: tables in order.
        sections: sections with pictures.
        summary: lines at the top.
        warnings: warnings.
        notes: notes.
        explained: (word, meaning), see `definitions`.
        provenance: as in `write_report`.
        colors: scheduler -> its color, shown beside its name.

    Raises:
        InputError: the file cannot be written.
    """
    context: dict[str, Any] = {
        "title": title, "command": command, "baseline": "", "summary": list(summary), "tiles": [], "gains": None,
        "warnings": list(warnings), "tables": list(tables), "colors": dict(colors or {}), "sections": list(sections),
        "notes": list(notes), "definitions": list(explained), "provenance": provenance_blocks(provenance or {}),
    }  # fmt: skip
    write_bytes(Path(path), render(context).encode())
