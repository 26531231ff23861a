"""Reports as one HTML file with summary, tables, pictures, warnings and provenance, without scripts or network."""

# ruff: noqa: RUF001 - typographic dashes and signs are meant for the reader.

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.experiments.drawing import color_of
from greenbatch.experiments.plots import box_plots, gantt_plots, power_plots, published_plots, queue_plot, tradeoff_plot
from greenbatch.experiments.statistics import Difference, differences, intervals, schedulers
from greenbatch.experiments.tables import (
    DETAIL,
    MAIN,
    Column,
    Section,
    Table,
    class_table,
    comparison_table,
    difference_table,
    reproduction_tables,
    warning_lines,
)
from greenbatch.files import write_bytes
from greenbatch.metrics import METRICS

if TYPE_CHECKING:
    import polars

TEMPLATES = Path(__file__).parent / "templates"
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COLUMNS = {column.metric: column for column in MAIN}
BROWN = "horizon_brown_kwh"
TILES = ("avg_bounded_slowdown", "avg_wait_s", "renewable_utilization", BROWN, "makespan_ratio")
"""Key figures; they must be read together."""


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One tile at the top of the report: the best scheduler in one metric."""

    label: str
    value: str
    unit: str
    scheduler: str
    comment: str


def _shown(column: Column, value: float) -> str:
    unit = {"": "", "%": "%", "×": "×"}.get(column.unit, f" {column.unit}")
    return column.number(value) + unit


def _comment(column: Column, got: Difference, baseline: str) -> str:
    """The best scheduler relative to the baseline, in words."""
    d = got.difference
    if not d.count:
        return ""
    if column.unit == "%":
        size = f"{column.number(abs(d.mean))} points {'above' if d.mean > 0 else 'below'} {baseline}"
    elif math.isfinite(got.relative):
        percent = f"{abs(got.relative):.{0 if abs(got.relative) >= 0.01 else 1}%}"
        size = f"{percent} {'above' if d.mean > 0 else 'below'} {baseline}"
    else:
        size = f"{column.number(d.mean, signed=True)} to {baseline}"
    if d.count < 2:
        return size
    sure = "" if got.clear else ", not significant"
    return f"{size}, better in {got.better} of {d.count} windows{sure}"


def key_figures(frame: polars.DataFrame, baseline: str) -> list[KeyFigure]:
    """The best scheduler for each key figure."""
    tiles = []
    for column in (_COLUMNS[metric] for metric in TILES):
        means = _means(frame, column)
        if not means:
            continue
        lower = METRICS[column.metric].better == "lower"
        best = _best(frame, column, baseline)
        comment = "the baseline" if best == baseline else _to_baseline(frame, column, best, baseline)
        label = f"{'Lowest' if lower else 'Highest'} {column.header[0].lower()}{column.header[1:]}"
        tiles.append(KeyFigure(label, column.number(means[best]), column.unit, best, comment))
    return tiles


def _means(frame: polars.DataFrame, column: Column) -> dict[str, float]:
    """Scheduler -> mean over the windows, where it is defined."""
    return {name: i.mean for name, i in intervals(frame, column.metric).items() if math.isfinite(i.mean)}


def _best(frame: polars.DataFrame, column: Column, baseline: str) -> str:
    """The best scheduler; the baseline wins ties."""
    means = _means(frame, column)
    sign = 1 if METRICS[column.metric].better == "lower" else -1
    return min(means, key=lambda name: (sign * means[name], name != baseline))


def _to_baseline(frame: polars.DataFrame, column: Column, name: str, baseline: str) -> str:
    return _comment(column, differences(frame, column.metric, baseline)[name], baseline)


def summary_lines(frame: polars.DataFrame, outcomes: Mapping[str, Outcome], baseline: str) -> list[str]:
    """Summary in sentences computed from the numbers: the findings first, then the setting."""
    names, windows = schedulers(frame), frame["window"].n_unique()
    example = next(iter(outcomes.values()))
    powered = bool(_means(frame, _COLUMNS["renewable_utilization"]))
    power = f" and the renewable supply of site {example.site.name}" if powered and example.site else ""
    count = _number(len(names), "scheduler")
    setting = (
        f"{count[0].upper()}{count[1:]} ran the same {_number(windows, 'window')} of {len(example.workload):,} jobs"
        f"{' each' if windows > 1 else ''} on {example.cluster.processors:,} processors{power}."
    )
    return [*_service_lines(frame, baseline), *(_power_lines(frame, baseline) if powered else []), setting]


def _service_lines(frame: polars.DataFrame, baseline: str) -> list[str]:
    """The schedulers with the lowest slowdown, with its mean wait, and with the shortest mean wait."""
    slow, wait = _COLUMNS["avg_bounded_slowdown"], _COLUMNS["avg_wait_s"]
    slowdowns, waits = _means(frame, slow), _means(frame, wait)
    if not slowdowns:
        return []
    best, lines = _best(frame, slow, baseline), []
    if best == baseline:
        lead = f"None has a lower mean bounded slowdown than {baseline}, {slow.number(slowdowns[best])}"
    else:
        lead = (
            f"{best} has the lowest mean bounded slowdown, {slow.number(slowdowns[best])}, "
            f"{_to_baseline(frame, slow, best, baseline)}"
        )
    if best in waits:
        patient = _best(frame, wait, baseline)
        lead += f"{', while' if waits[best] > 1.05 * waits.get(baseline, math.inf) else ';'} its jobs wait "
        lead += f"{_shown(wait, waits[best])} on average"
        if best != baseline:
            lead += _beside(waits[best], waits.get(baseline, math.nan), baseline)
        if wait.number(waits[patient]) == wait.number(waits[best]):
            lead += ", the shortest mean wait"
        else:
            lines.append(f"{patient} has the shortest mean wait, {_shown(wait, waits[patient])}.")
    return [f"{lead}.", *lines]


def _beside(value: float, other: float, baseline: str) -> str:
    """A figure relative to the baseline's, in words; empty if undefined."""
    if not other > 0:
        return ""
    ratio = value / other
    if abs(ratio - 1) < 0.05:
        return f", about as long as {baseline}'s"
    return f", {f'{ratio:,.1f} times' if ratio > 1 else f'{1 - ratio:.0%} less than'} {baseline}'s"


def _power_lines(frame: polars.DataFrame, baseline: str) -> list[str]:
    share, energy, stretch = (_COLUMNS[name] for name in ("renewable_utilization", BROWN, "makespan_ratio"))
    green, brown, ratio = (_means(frame, column) for column in (share, energy, stretch))
    greenest = _best(frame, share, baseline)
    told = f", with a makespan {ratio[greenest]:.2f} times that of {baseline}" if greenest in ratio else ""
    lines = [f"{greenest} uses the largest renewable share, {_shown(share, green[greenest])}{told}."]
    if not brown:
        return lines
    least = _best(frame, energy, baseline)
    if least == baseline:
        lines.append(
            f"Over the same span of time, idle power included, none draws less brown energy than {baseline}, "
            f"{_shown(energy, brown[least])}."
        )
    else:
        lines.append(
            f"Over the same span of time, idle power included, {least} draws the least brown energy: "
            f"{_shown(energy, brown[least])}, {_to_baseline(frame, energy, least, baseline)}."
        )
    if intervals(frame, "horizon_unfinished_share")[least].mean > 0:
        lines.append("That is understated: some of its work is unfinished when the span ends.")
    return lines


def _number(count: int, noun: str) -> str:
    figure = _WORDS[count] if count < len(_WORDS) else f"{count:,}"
    return f"{figure} {noun}" + ("" if count == 1 else "s")


def data_notes(outcomes: Mapping[str, Outcome], notes: Sequence[str] = ()) -> list[str]:
    """Everything repaired, dropped, filled or assumed when reading the inputs, without duplicates."""
    lines = [str(note) for note in notes]
    for outcome in outcomes.values():
        lines += [f"{outcome.workload.name}: {note}" for note in outcome.workload.notes]
        if outcome.site is not None:
            lines += [f"{outcome.site.name}: {note}" for note in outcome.site.notes]
    return list(dict.fromkeys(lines))


def definitions() -> list[tuple[str, str]]:
    """Label and formula, from the docstring, of the metrics of the main table and its horizon, as HTML."""
    from markupsafe import Markup, escape

    found: list[tuple[str, str]] = []
    for m in (METRICS[name] for name in (*_COLUMNS, "horizon_s", "horizon_unfinished_share")):
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


def sections(frame: polars.DataFrame, outcomes: Mapping[str, Outcome], baseline: str, example: str) -> list[Section]:
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
            f"{one}cluster power over the same 48 hours each, the busiest; what rises above the green line is brown.",
            tuple(power_plots(outcomes)),
        ),
        Section("Schedules", f"{one}which processors ran what, on one time axis.", tuple(gantt_plots(outcomes))),
    ]
    from greenbatch.experiments.model_sections import model_sections

    return [section for section in (*found, *model_sections(outcomes)) if section.pictures or section.tables]


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
    tables = [comparison_table(frame), difference_table(frame, baseline), class_table(frame)]
    detail = comparison_table(frame, columns=DETAIL, title="Further figures", show_intervals=False)
    context = {
        "title": title, "command": command, "baseline": baseline,
        "summary": summary_lines(frame, outcomes, baseline), "tiles": key_figures(frame, baseline),
        "warnings": [*warning_lines(frame, baseline), *warnings],
        "tables": [table for table in (*tables, detail) if table.rows and table.columns],
        "colors": {name: color_of(k) for k, name in enumerate(names)},
        "sections": sections(frame, outcomes, baseline, example), "notes": data_notes(outcomes, notes),
        "definitions": definitions(), "provenance": provenance_blocks(provenance or {}),
    }  # fmt: skip
    write_bytes(Path(path), render(context).encode())


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

    Raises:
        InputError: the file cannot be written.
    """
    context = {
        "title": title, "command": command, "baseline": "", "summary": list(summary), "tiles": [],
        "warnings": list(warnings), "tables": list(tables), "colors": {}, "sections": list(sections),
        "notes": list(notes), "definitions": list(explained), "provenance": provenance_blocks(provenance or {}),
    }  # fmt: skip
    write_bytes(Path(path), render(context).encode())


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
    from greenbatch.experiments.reproduce import VERDICTS, summary

    seen = {str(cell["verdict"]) for cell in cells}
    write_page(
        path, title=title, command=command, tables=reproduction_tables(cells),
        sections=[Section("Pictures", "", tuple(published_plots(cells)))] if cells else [],
        summary=[summary(cells)["text"]], notes=notes, provenance=provenance,
        explained=[(verdict, meaning) for verdict, meaning in VERDICTS.items() if verdict in seen],
    )  # fmt: skip
