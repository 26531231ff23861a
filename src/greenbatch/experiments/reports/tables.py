"""Tables of a comparison: from a tidy frame to a neutral `Table`, printed in a terminal, as Markdown or as LaTeX.

A tidy frame has the columns ``window`` (any name), ``scheduler``, ``metric``, ``value``; a missing or NaN value means
undefined. Renewable utilization is always shown with bounded slowdown, makespan ratio and brown energy over the
scenario's horizon, because stretching the schedule alone raises it.
"""

# ruff: noqa: RUF001 - typographic dashes, minus and multiplication signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from greenbatch.cluster import Cluster
from greenbatch.errors import InputError, visible
from greenbatch.experiments.reports.columns import (
    CLASS_COLUMNS,
    CLASS_COUNTS,
    RECORD,
    Column,
    fitted,
    main_columns,
)
from greenbatch.experiments.running.frames import by_window, schedulers
from greenbatch.experiments.running.statistics import FEW_WINDOWS, Difference, Interval, differences, intervals
from greenbatch.metrics import METRICS

if TYPE_CHECKING:
    import polars

Mark = Literal["", "best", "good", "bad"]

STRETCH_LIMIT = 1.05
"""Makespan ratio above which a gain in renewable utilization causes a warning."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure as text."""

    text: str
    interval: str = ""
    """Interval, ``[low, high]``; empty for none."""
    remark: str = ""
    """Short remark."""
    mark: Mark = ""
    """``best`` of its column; ``good`` or ``bad``: a difference whose interval excludes 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", visible(self.text))


@dataclass(frozen=True, slots=True)
class Table:
    """A table, independent of its output format."""

    title: str
    columns: tuple[tuple[str, str, str], ...]
    """Header, unit and short header of every column of figures."""
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    """Row names and cells."""
    corner: str = "Scheduler"
    """Header of the column of row names."""
    notes: tuple[str, ...] = ()
    """Lines under the table."""
    legend: str = ""
    """Meaning of bold type; empty if nothing is bold."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", visible(self.title))
        object.__setattr__(self, "columns", tuple((visible(a), b, visible(c)) for a, b, c in self.columns))
        object.__setattr__(self, "rows", tuple((visible(name), cells) for name, cells in self.rows))
        object.__setattr__(self, "notes", tuple(map(visible, self.notes)))

    @property
    def lines(self) -> tuple[str, ...]:
        """The notes with the legend after the first, for formats that show bold."""
        first = " ".join(filter(None, (*self.notes[:1], self.legend)))
        return tuple(filter(None, (first, *self.notes[1:])))


def _best(column: Column, table: Mapping[str, Interval]) -> set[str]:
    """Schedulers with the best mean as displayed; empty if all are equal or the metric has no better direction."""
    better = METRICS[column.metric].better if column.metric in METRICS else "neither"
    defined = {name: i.mean for name, i in table.items() if math.isfinite(i.mean)}
    if better == "neither" or len(defined) < 2:
        return set()
    top = min(defined.values()) if better == "lower" else max(defined.values())
    winners = {name for name, mean in defined.items() if column.number(mean) == column.number(top)}
    return set() if len(winners) == len(defined) else winners


def _span(column: Column, interval: Interval, *, signed: bool = False) -> str:
    if not interval.low < interval.high:  # also NaN
        return ""
    return f"[{column.number(interval.low, signed=signed)}, {column.number(interval.high, signed=signed)}]"


def comparison_table(
    frame: polars.DataFrame,
    *,
    columns: Sequence[Column] | None = None,
    title: str = "Schedulers compared",
    show_intervals: bool = True,
    notes: Sequence[str] = (),
    currency: str = "",
    idle: str = "idle power included",
) -> Table:
    """One row per scheduler, one column per metric: mean over windows, 95% interval, the best value marked.

    The columns are those of `columns.main_columns` if none are given, in units that fit the values; those without any
    value are omitted. Money has the name of the currency, if it is given. With energy over the horizon, notes state its
    length and the schedulers that leave work unfinished at its end.
    """
    names, count = schedulers(frame), frame["window"].n_unique()
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    shown: list[tuple[str, str, str]] = []
    columns = main_columns(frame) if columns is None else columns
    columns = [fitted(column, frame, currency) for column in columns]
    every = {column: intervals(frame, column.metric) for column in columns}
    found = {column: table for column, table in every.items() if any(i.count for i in table.values())}
    same = [column for column, table in found.items() if len(names) > 1 and _same_for_all(column, table)]
    same = same if len(same) < len(found) else []
    for column, table in found.items():
        if column in same:
            continue
        shown.append((column.header, column.unit, column.short or column.header))
        best = _best(column, table) if count >= FEW_WINDOWS else set()
        for name, interval in table.items():
            span = _span(column, interval) if show_intervals else ""
            cells[name].append(Cell(column.number(interval.mean), span, mark="best" if name in best else ""))
    told = [f"{each.header} {each.number(next(iter(found[each].values())).mean)} {each.unit}".rstrip() for each in same]
    rows = tuple((name, tuple(cells[name])) for name in names)
    over = any(column.metric == "horizon_brown_kwh" for column in columns)
    lines = (_sample(count, intervals=show_intervals), *([f"The same for all: {', '.join(told)}."] if told else []),
             *(horizon_notes(frame, idle) if over else ()), *notes)  # fmt: skip
    return Table(title, tuple(shown), rows, notes=lines, legend=_legend(rows, "Bold: best of the column."))


def _same_for_all(column: Column, table: Mapping[str, Interval]) -> bool:
    """Whether means and intervals of all schedulers are shown alike."""
    return len({(column.number(i.mean), _span(column, i)) for i in table.values()}) == 1


def _legend(rows: Sequence[tuple[str, Sequence[Cell]]], meaning: str) -> str:
    return meaning if any(cell.mark for _, row in rows for cell in row) else ""


def _sample(count: int, *, intervals: bool) -> str:
    """What the means cover, with a caution if the windows are few."""
    if count < 2:
        return "One window, so no interval."
    sample = f"Mean of {count} windows"
    return " ".join([f"{sample} [95% bootstrap interval].", *few_notes(count)]) if intervals else f"{sample}."


def few_notes(count: int) -> list[str]:
    """A line where windows are too few for an interval."""
    few = f"{count} windows are too few for an interval, so nothing is bold; give at least {FEW_WINDOWS}."
    return [few] if 1 < count < FEW_WINDOWS else []


def idle_words(cluster: Cluster) -> str:
    """Whether energies include the idle power of a machine: it may be unknown, and then counts as 0 W."""
    if not cluster.idle_power_w > 0:
        return "without idle power, of which none is stated"
    dark = cluster.on_nodes and not all(group.static_power_w > 0 for group in cluster.groups)
    return "idle power included where it is stated" if dark else "idle power included"


def horizon_notes(frame: polars.DataFrame, idle: str) -> list[str]:
    """How long the scenario's horizon is, and one line for every scheduler with unfinished work at its end."""
    length = intervals(frame, "horizon_s")
    if not any(i.count for i in intervals(frame, "horizon_brown_kwh").values()):
        return []
    days = max((i.mean for i in length.values() if i.count), default=math.nan) / 86_400
    lines = [f"Brown energy: from the first submission over the scenario's horizon, {days:.1f} days"
             f"{' on average' if frame['window'].n_unique() > 1 else ''}, {idle}."]  # fmt: skip
    share = intervals(frame, "horizon_unfinished_share")
    for name in schedulers(frame):
        left = [work for work in by_window(frame, name, "horizon_unfinished_share").values() if work > 0]
        if left:
            lines.append(
                f"{name} leaves work undone at the horizon in {len(left)} of {share[name].count} windows, "
                f"{share[name].mean:.1%} of all work: its energy over the horizon is understated."
            )
    return lines


def class_table(frame: polars.DataFrame) -> Table:
    """Bounded slowdown and wait by run-time class, with the number of jobs in each class."""
    counts = []
    for metric, header in zip(CLASS_COUNTS, (column.header for column in CLASS_COLUMNS), strict=False):
        means = [i.mean for i in intervals(frame, metric).values() if i.count]
        if means:
            ends = dict.fromkeys(f"{mean:,.0f}" for mean in (min(means), max(means)))
            counts.append(f"{header}: {' to '.join(ends)}")
    per = " per window" if frame["window"].n_unique() > 1 else ""
    notes = [f"Jobs{per}: {'; '.join(counts)}."] if counts else []
    return comparison_table(frame, columns=CLASS_COLUMNS, title="Bounded slowdown by run time of the job", notes=notes)


def record_table(frame: polars.DataFrame) -> Table | None:
    """How well each scheduler reproduces the recorded waits; None unless ``as-recorded`` is among the schedulers."""
    if not any(map(is_record, schedulers(frame))):
        return None
    note = "Difference of waits: |simulated - recorded|, job by job; it shows how well a scheduler describes the site."
    return comparison_table(frame, columns=RECORD, title="Compared with the record", notes=[note])


def is_record(scheduler: str) -> bool:
    """Whether a scheduler repeats the recorded starts."""
    return scheduler.partition("+")[0] == "as-recorded"


def _difference_cell(column: Column, got: Difference) -> Cell:
    """A difference with interval and wins; marked if the interval excludes 0 over at least `FEW_WINDOWS` windows."""
    interval = got.difference
    if not interval.count:
        return Cell("–")
    wins = "" if METRICS[column.metric].better == "neither" else f"{got.better} of {interval.count}"
    clear = got.clear and interval.count >= FEW_WINDOWS
    mark: Mark = "" if not clear else "good" if got.better > got.worse else "bad"
    return Cell(column.number(interval.mean, signed=True), _span(column, interval, signed=True), wins, mark)


def difference_table(
    frame: polars.DataFrame, baseline: str, *, columns: Sequence[Column] | None = None, notes: Sequence[str] = (),
    currency: str = "",
) -> Table:  # fmt: skip
    """Each scheduler minus the baseline, paired by window, with interval and win count; columns as in the main table.

    Differences are marked if their interval excludes 0 over at least `FEW_WINDOWS` windows.

    Raises:
        InputError: the baseline is not in the frame.
    """
    cells: dict[str, list[Cell]] = {name: [] for name in schedulers(frame) if name != baseline}
    shown: list[tuple[str, str, str]] = []
    columns = main_columns(frame) if columns is None else columns
    columns = [fitted(column, frame, currency) for column in columns]
    every = {column: differences(frame, column.metric, baseline) for column in columns}
    found = {column: table for column, table in every.items() if any(d.difference.count for d in table.values())}
    apart = {column: table for column, table in found.items() if not _no_difference(column, table)}
    for column, table in (apart or found).items():
        unit = "points" if column.unit == "%" else "" if column.unit == "×" else column.unit
        shown.append((column.header, unit, column.short or column.header))
        for name, got in table.items():
            cells[name].append(_difference_cell(column, got))
    rows = tuple((name, tuple(row)) for name, row in cells.items())
    note = "k of n: better than the baseline in k of n windows."
    title = f"Difference to {baseline}, window by window"
    notes = (note, *few_notes(frame["window"].n_unique()), *notes)
    legend = _legend(rows, "Bold: the 95% interval of the difference excludes zero.")
    return Table(title, tuple(shown), rows, notes=notes, legend=legend)


def _no_difference(column: Column, table: Mapping[str, Difference]) -> bool:
    """Whether all differences, and the ends of their intervals, are shown as 0."""
    ends = [end for got in table.values() for end in (got.difference.mean, got.difference.low, got.difference.high)]
    return not any(c in "123456789" for end in ends if math.isfinite(end) for c in column.number(end))


def _header(header: str, unit: str) -> str:
    return f"{header} [{unit}]" if unit else header


def to_markdown(table: Table) -> str:
    """The table as GitHub-flavored Markdown; the best value is bold."""

    def safe(text: str) -> str:
        return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")

    def cell(c: Cell) -> str:
        body = f"**{safe(c.text)}**" if c.mark else safe(c.text)
        return " ".join(filter(None, (body, safe(c.interval), f"({safe(c.remark)})" if c.remark else "")))

    headers = [table.corner, *(_header(header, unit) for header, unit, _ in table.columns)]
    lines = [f"### {safe(table.title)}", "", "| " + " | ".join(map(safe, headers)) + " |"]
    lines.append("|:---|" + "---:|" * len(table.columns))
    lines += [f"| {safe(name)} | " + " | ".join(map(cell, cells)) + " |" for name, cells in table.rows]
    lines += [f"\n{safe(note)}" for note in table.lines]
    return "\n".join(lines) + "\n"


_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "×": r"$\times$", "−": r"$-$", "–": r"--",
}  # fmt: skip


def to_latex(table: Table) -> str:
    r"""The table as LaTeX for ``\usepackage{booktabs}``; the best value is bold, intervals are small."""

    def safe(text: str) -> str:
        return "".join(_TEX.get(character, character) for character in text)

    def cell(c: Cell) -> str:
        body = rf"\textbf{{{safe(c.text)}}}" if c.mark else safe(c.text)
        more = " ".join(filter(None, (c.interval, f"({c.remark})" if c.remark else "")))
        return rf"{body} {{\scriptsize {safe(more)}}}" if more else body

    headers = [table.corner, *(_header(header, unit) for header, unit, _ in table.columns)]
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{safe(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\toprule"]
    lines += [" & ".join(map(safe, headers)) + r" \\", r"\midrule"]
    lines += [" & ".join([safe(name), *map(cell, cells)]) + r" \\" for name, cells in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\small {safe(note)}" for note in table.lines]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


WRITERS = {"markdown": to_markdown, "latex": to_latex}
"""Format -> function from a table to text."""


def write(table: Table, form: str) -> str:
    """The table as text in a format of `WRITERS`.

    Raises:
        InputError: the format is unknown.
    """
    if form not in WRITERS:
        raise InputError(f"unknown table format {form!r}", field="format", fix="use " + " or ".join(WRITERS))
    return WRITERS[form](table)
