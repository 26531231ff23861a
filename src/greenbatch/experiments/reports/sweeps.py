"""The results of a sweep: a table and a picture per metric, one line per scheduler, and the files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.display import windows_text
from greenbatch.experiments.reports.answer import WAIT, objective_of
from greenbatch.experiments.reports.columns import Column, main_columns
from greenbatch.experiments.reports.curves import wrapped_axis
from greenbatch.experiments.reports.drawing import (
    PANEL_IN,
    WIDTH_IN,
    Picture,
    drawing,
    legend_room,
    new_figure,
    plain_log_ticks,
    slug,
    wrapped,
)
from greenbatch.experiments.reports.looks import Look, Looks, looks_of
from greenbatch.experiments.reports.means import Means
from greenbatch.experiments.reports.notes import notes_of_sweep
from greenbatch.experiments.reports.outputs import REPORT
from greenbatch.experiments.reports.page import definitions, write_page
from greenbatch.experiments.reports.payback import payback_summary, payback_tables
from greenbatch.experiments.reports.result_folder import write_record
from greenbatch.experiments.reports.sections import Section, scheduler_keys
from greenbatch.experiments.reports.summary import summary
from greenbatch.experiments.reports.sweep_lines import axis_of, fixed_lines, sweep_findings
from greenbatch.experiments.reports.sweep_screen import sweep_colors, sweep_screen, sweep_words
from greenbatch.experiments.reports.tables import Cell, Table, few_notes, write
from greenbatch.experiments.running.frames import with_breakdown
from greenbatch.experiments.running.statistics import Interval, intervals
from greenbatch.files import write_parquet
from greenbatch.notes import records
from greenbatch.provenance import provenance
from greenbatch.scenarios.sources import sources_of
from greenbatch.schedulers import input_files

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

    from greenbatch.experiments.running.sweep import Setting, Sweep
    from greenbatch.scenarios import Scenario

LOGARITHMIC = 30.0
"""Ratio of the largest to the smallest value above which the axis of values is logarithmic."""


def sweep_columns(sweep: Sweep) -> list[Column]:
    """The main columns that any scheduler has a figure in."""
    frame = sweep.frame
    known = set(frame.filter(frame["value"].is_not_null())["metric"])
    return [column for column in main_columns(frame, sweep.first.currency) if column.metric in known]


def shown_columns(sweep: Sweep) -> list[Column]:
    """Those of `sweep_columns` that tell schedulers or values apart; all if none does."""
    columns = sweep_columns(sweep)
    apart = [
        column for column in columns
        if len({column.number(i.mean) for each in means_by_value(sweep, column.metric).values() for i in each.values()})
        > 1
    ]  # fmt: skip
    return apart or columns


def means_by_value(sweep: Sweep, metric: str) -> dict[str, dict[str, Interval]]:
    """Scheduler -> text of the value -> mean over the windows with its interval."""
    tables = {text: intervals(each.frame, metric) for text, each in sweep.comparisons.items()}
    return {name: {text: table[name] for text, table in tables.items()} for name in sweep.schedulers}


def sweep_table(sweep: Sweep, column: Column, *, partial: Sequence[str] = ()) -> Table:
    """One row per scheduler, one column per value: means over the windows with 95% intervals."""
    rows = tuple(
        (name, tuple(Cell(column.number(each.mean), _span(column, each)) for each in by_value.values()))
        for name, by_value in means_by_value(sweep, column.metric).items()
    )
    unit = f" [{column.unit}]" if column.unit else ""
    first, count = sweep.first, len(sweep.first.starts)
    windows = windows_text(count, first.jobs, at_most=first.scenario.has_episodes)
    over = f"means over {windows}, with 95% intervals" if count > 1 else windows
    shown = tuple((text, "", text) for text in sweep.comparisons)
    title = f"{column.header}{unit} by {sweep.setting.key}"
    return Table(title, shown, rows, notes=(f"{first.scenario.name}: {over}.", *few_notes(count), *partial))


def _span(column: Column, each: Interval) -> str:
    return f"[{column.number(each.low)}, {column.number(each.high)}]" if each.low < each.high else ""


def sweep_means(sweep: Sweep, column: Column) -> Means:
    """The table of a metric with its numbers: scheduler, metric, value (the text), mean, low, high, windows."""
    import polars

    rows = [
        (name, column.metric, text, *(v if math.isfinite(v) else None for v in (i.mean, i.low, i.high)), i.count)
        for name, by_value in means_by_value(sweep, column.metric).items()
        for text, i in by_value.items()
    ]
    names = dict.fromkeys(("scheduler", "metric", "value"), polars.String)
    kinds = names | dict.fromkeys(("mean", "low", "high"), polars.Float64) | {"windows": polars.Int64}
    numbers = polars.DataFrame(rows, schema=kinds, orient="row")
    return Means(sweep_table(sweep, column), numbers, notes_of_sweep(sweep))


def sweep_plot(sweep: Sweep, column: Column, *, looks: Looks | None = None, panel: bool = False) -> Picture:
    """A metric against the value, one line per scheduler.

    Args:
        sweep: the comparisons.
        column: the metric and its unit.
        looks: scheduler -> color, marker and dash; by default `looks_of` the schedulers.
        panel: draw a panel of small multiples, without a legend.
    """
    key, texts, table = sweep.setting.key, list(sweep.comparisons), means_by_value(sweep, column.metric)
    numeric, looks = sweep.setting.numeric, looks_of(sweep.schedulers) if looks is None else looks
    at = [float(sweep.setting.values[text]) for text in texts] if numeric else [float(k) for k in range(len(texts))]
    logarithmic = numeric and min(at) > 0 and max(at) / min(at) > LOGARITHMIC
    columns, room = legend_room(list(table)) if not panel else (1, 0.0)
    with drawing():
        figure, axes = new_figure((1.75 if panel else 2.3) + room, PANEL_IN if panel else WIDTH_IN)
        for name, by_value in table.items():
            _line(axes, at, list(by_value.values()), column, name, looks[name])
        if logarithmic:
            axes.set_xscale("log")
            plain_log_ticks(axes)
        elif not numeric:
            axes.set_xticks(at, [wrapped(text, 14) for text in texts])
        unit = f" [{column.unit}]" if column.unit else ""
        axes.set(
            xlabel=wrapped_axis(f"{axis_of(key)}{' (log scale)' if logarithmic else ''}"),
            ylabel=f"[{column.unit}]" * bool(unit) if panel else wrapped_axis(f"{column.header.lower()}{unit}"),
        )
        if not panel:
            figure.legend(loc="outside lower left", ncols=columns)
        words = "; ".join(
            f"{name} " + ", ".join(f"{column.number(each.mean)} at {text}" for text, each in by_value.items())
            for name, by_value in table.items()
        )
        caption = "Means over the windows." if len(sweep.first.starts) > 1 else "One window."
        if any(each.low < each.high for by_value in table.values() for each in by_value.values()):
            caption += " Vertical lines: 95% intervals, which include the differences between windows."
        alt = f"Line chart of {column.header.lower()}{unit} against {key}: {words}."
        title = column.header if panel else f"{column.header} by {key}"
        return Picture(f"sweep-{slug(column.metric)}", title, caption, alt, figure)


def _line(axes: Axes, at: Sequence[float], means: Sequence[Interval], column: Column, name: str, look: Look) -> None:
    """The line of a scheduler, with intervals as vertical lines."""
    order = sorted(range(len(at)), key=at.__getitem__)
    axes.plot(
        [at[i] for i in order], [means[i].mean * column.scale for i in order], color=look.color, linestyle=look.dash,
        marker=look.marker, markersize=3.6, label=wrapped(name, 40),
    )  # fmt: skip
    for x, each in zip(at, means, strict=True):
        if each.low < each.high:
            ends = [each.low * column.scale, each.high * column.scale]
            axes.plot([x, x], ends, color=look.color, linewidth=0.7, alpha=0.5)


def sweep_record(
    setting: Setting, scenarios: Mapping[str, Scenario], schedulers: Sequence[str], baseline: str,
    starts: Sequence[int], jobs: int, *, seed: int | None, command: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """The provenance of a sweep: that of a comparison, with the scenario of every value.

    Args:
        setting: the key and its values.
        scenarios: text of each value -> its scenario.
        schedulers: names of the schedulers.
        baseline: the one that the others are compared with.
        starts: first job of each window.
        jobs: jobs per window.
        seed: seed of random windows; None for that of the scenarios.
        command: the command line.
    """
    found = sources_of(scenarios)
    found["inputs"] = {**found["inputs"], **input_files(list(schedulers))}
    settings = {
        "schedulers": list(schedulers), "baseline": baseline, "starts": list(starts), "jobs": jobs,
        "sweep": {"key": setting.key, "values": dict(setting.values)},
    }  # fmt: skip
    seed = next(iter(scenarios.values())).evaluation.seed if seed is None else seed
    return provenance(**found, settings=settings, seed=seed, command=command)


def write_sweep(
    sweep: Sweep, folder: Path, record: Mapping[str, Any], partial: Sequence[str] = (), unit_cost: float | None = None
) -> bool:  # fmt: skip
    """Write results.parquet (tidy, with a column for the value), table.md, table.tex, report.html and provenance.json.

    Args:
        sweep: the comparisons.
        folder: the target folder.
        record: provenance of the sweep.
        partial: a note for the tables if values or windows are missing.
        unit_cost: what one more unit of the key costs, see `payback.paybacks`.

    Returns:
        Whether the report was drawn. If the user interrupts, the other files are written: ``--resume`` requires them.
    """
    try:
        _write_figures(sweep, folder, partial, unit_cost)
        command = " ".join(record["run"]["command"])
        report_sweep(folder / REPORT, sweep, command=command, provenance=record, unit_cost=unit_cost)
        write_record(folder, record)
    except KeyboardInterrupt:
        _write_figures(sweep, folder, partial, unit_cost)
        write_record(folder, record)
    return (folder / REPORT).exists()


def _write_figures(sweep: Sweep, folder: Path, partial: Sequence[str], unit_cost: float | None) -> None:
    import polars

    parts: list[polars.DataFrame] = []
    frame = sweep.frame
    for text, each in sweep.comparisons.items():
        whole = with_breakdown(each.frame, each.breakdown)
        parts.append(
            whole.select(polars.lit(sweep.setting.shown(text), frame.dtypes[0]).alias(frame.columns[0]), polars.all())
        )
    write_parquet(polars.concat(parts), folder / "results.parquet")
    tables = [
        *payback_tables(sweep, unit_cost),
        *(sweep_table(sweep, column, partial=partial) for column in shown_columns(sweep)),
    ]
    for form, suffix in (("markdown", "md"), ("latex", "tex")):
        (folder / f"table.{suffix}").write_text("\n".join(write(table, form) for table in tables), encoding="utf-8")


def report_sweep(
    path: str | Path, sweep: Sweep, *, command: str, provenance: Mapping[str, Any],
    unit_cost: float | None = None,
) -> None:  # fmt: skip
    """Write the report of a sweep as one self-contained HTML file.

    Args:
        path: the file; replaced atomically, untouched on failure.
        sweep: the comparisons.
        command: the command line that made it.
        provenance: as in `report.write_report`.
        unit_cost: what one more unit of the key costs, see `payback.paybacks`.

    Raises:
        InputError: the file cannot be written.
    """
    columns, first, looks = shown_columns(sweep), sweep.first, looks_of(sweep.schedulers)
    words = sweep_words(sweep, unit_cost)
    values = ", ".join(sweep.comparisons)
    panels = tuple(sweep_plot(sweep, column, looks=looks, panel=True) for column in columns)
    main = {objective_of(sweep.frame), WAIT}
    shown, rest = ([sweep_table(sweep, column) for column in columns if (column.metric in main) is first_ones]
                   for first_ones in (True, False))  # fmt: skip
    sections = [Section("Figures by value", panels[0].caption, panels, panels=True,
                        keys=scheduler_keys(sweep.schedulers, looks))]  # fmt: skip
    if rest:
        sections.append(Section("Further tables", "", tables=tuple(rest), folded=True))
    write_page(
        path, title=f"{first.scenario.name}, by {sweep.setting.key}", command=command,
        first=sweep_screen(sweep, looks, words), baseline=first.baseline,
        tables=[*payback_tables(sweep, unit_cost), *shown], sections=sections,
        summary=[
            *words[1:],
            *sweep_findings(sweep),
            f"The same schedulers on the same windows with {sweep.setting.key} = {values}. Makespans are relative to "
            f"{first.baseline} with the same value.",
            *fixed_lines(sweep),
        ],
        notes=[*filter(None, [first.scenario.description]), *notes_of_sweep(sweep)],
        explained=definitions(columns), provenance=provenance, colors=sweep_colors(sweep, looks),
    )  # fmt: skip


def sweep_summary(sweep: Sweep, unit_cost: float | None = None) -> dict[str, Any]:
    """A sweep ready for JSON: ``answer`` in sentences, with a unit cost ``payback`` (see `payback.payback_summary`),
    ``key``, ``findings`` and what is ``fixed`` in sentences, ``notes`` and ``warnings`` of all
    values, and ``values`` (text -> the comparison's
    `summary`).
    """
    notes = notes_of_sweep(sweep)
    return {
        "answer": sweep_words(sweep, unit_cost),
        **({} if unit_cost is None else {"payback": payback_summary(sweep, unit_cost)}),
        "key": sweep.setting.key, "findings": sweep_findings(sweep), "fixed": fixed_lines(sweep),
        "warnings": [str(note) for note in notes if note.level == "warning"], "notes": records(notes),
        "values": {text: {"value": _plain(sweep.setting.values[text]), **summary(each)}
                   for text, each in sweep.comparisons.items()},
    }  # fmt: skip


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
