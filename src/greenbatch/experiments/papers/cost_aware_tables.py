"""The tables of the study ``cost-aware``: ours, and the paper's, which are of other data.

All are made of rows (`study_results.Result.rows`), so that those of an earlier run show the same.
"""

# ruff: noqa: RUF001 - typographic dashes, minus and multiplication signs are meant for the reader.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from greenbatch.experiments.papers.cost_aware import NAME
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.study_tables import COVERS, figure_cell
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.tables import Cell, Mark, Table
from greenbatch.experiments.running.statistics import (
    FEW_WINDOWS,
    Interval,
    Verdict,
    mean_interval,
    paired_difference,
    verdict,
)  # fmt: skip

Row = Mapping[str, Any]

COST, BROWN, GREEN, PER_KWH = "horizon_cost", "horizon_brown_kwh", "renewable_utilization", "energy_cost_per_kwh"
SLOWDOWN, RATIO, UNFINISHED = "avg_bounded_slowdown", "makespan_ratio", "horizon_unfinished_share"
CURRENCY = "USD"
"""Currency of both sites."""
BASE = "FCFS+easy"
"""The row that others are compared with."""
NEARLY = 1.05
"""Makespan, relative to the base, up to which a schedule is not called stretched."""

COLUMNS = (
    Column(COST, "Cost over the horizon", CURRENCY, 1.0, 4, "significant", "Cost"),
    Column(BROWN, "Brown energy over the horizon", "kWh", 1.0, 4, "significant", "Brown"),
    Column("energy_cost", "Total cost of the schedule", CURRENCY, 1.0, 4, "significant", "Schedule"),
    Column(GREEN, "Green ratio", "%", 100.0, 1, short="Green"),
    Column(PER_KWH, "Cost efficiency", f"{CURRENCY}/kWh", 1.0, 3, "significant", "Per kWh"),
    Column(SLOWDOWN, "Avg bounded slowdown", "", 1.0, 4, "significant", "Slowdown"),
    Column("avg_wait_s", "Avg waiting", "h", 1 / 3600, 2, short="Wait"),
    Column("makespan_s", "Makespan", "h", 1 / 3600, 1),
    Column(RATIO, "Makespan over FCFS+easy", "×", digits=3, short="Makespan ×"),
    Column("horizon_carbon_kg", "Carbon over the horizon", "kg", 1.0, 4, "significant", "Carbon"),
)
"""The paper's six metrics, and cost, brown energy, carbon and makespan that stand beside them."""
NARROW = (COST, BROWN, GREEN, PER_KWH, SLOWDOWN, "avg_wait_s", RATIO)
"""Metrics that fit a terminal."""
OURS = "Cost-aware plus"
"""Column of our own agent, which tables compare with every other scheduler."""


class Aim(NamedTuple):
    """What our own agent is to reach against another scheduler."""

    metric: str
    header: str
    unit: str
    most: float
    """The goal is met where the whole interval is at most this."""
    relative: bool = True
    """Relative to the other's mean: as a change in percent, or with ``×`` as a ratio."""
    sign: float = 1.0
    """-1 for metrics of which more is better."""


AIMS = (
    Aim(COST, "Cost over the horizon", "%", 0.0),
    Aim(BROWN, "Brown energy over the horizon", "%", 0.0),
    Aim(GREEN, "Green ratio", "points", 1.0, relative=False, sign=-1.0),
    Aim("makespan_s", "Makespan", "×", 1.1),
    Aim(SLOWDOWN, "Avg bounded slowdown", "×", 1.05),
)
"""Less cost, less brown energy, a green ratio at most a point lower, and bounds on makespan and slowdown."""
CHANGES = (COST, BROWN, SLOWDOWN, "avg_wait_s")
"""Metrics of which differences are shown."""

STRETCHED = (
    "Green ratio and cost efficiency both improve where a schedule is merely stretched, because an idle machine runs "
    "mostly on renewable power: read them with cost and brown energy over the horizon, which is the same span of time "
    "for all schedulers, and with makespan and slowdown. Total cost, green ratio and cost efficiency are measured from "
    "the first start to the last end of each schedule, as in the paper."
)
OTHER_DATA = (
    "Figures as printed, in EUR, of F-DATA and PM100 with measured power at a site and under tariffs that are not "
    "published: other data than ours, so not comparable, and never part of a mean or an interval here."
)
PAPER = (
    ("total_cost_eur", "Total cost", "EUR"), ("green_ratio_percent", "Green ratio", "%"),
    ("cost_eur_per_kwh", "Cost efficiency", "EUR/kWh"), (SLOWDOWN, "Avg bounded slowdown", ""),
    ("avg_wait_h", "Avg waiting", "h"), ("makespan_h", "Makespan", "h"),
)  # fmt: skip
"""Metric, header and unit of the paper's columns."""


def our_tables(rows: Sequence[Row], *, narrow: bool = False) -> list[Table]:
    """Two tables per trace: figures, and differences to the base window by window.

    Args:
        rows: the rows of all traces.
        narrow: omit columns that do not fit a terminal.
    """
    made = []
    for trace in dict.fromkeys(row["trace"] for row in rows):
        own = [row for row in rows if row["trace"] == trace]
        made += [figure_table(trace, own, narrow=narrow), change_table(trace, own)]
    return [table for table in made if table.rows]


def figure_table(trace: str, rows: Sequence[Row], *, narrow: bool = False) -> Table:
    """The figures of one trace."""
    shown = [
        column for column in COLUMNS
        if (not narrow or column.metric in NARROW) and any(column.metric in row["figures"] for row in rows)
    ]  # fmt: skip
    lines = tuple((row["scheduler"], tuple(_figure(column, row, wide=not narrow) for column in shown)) for row in rows)
    first = next((row for row in rows if row["figures"]), rows[0])
    count = len(first["starts"])
    windows = f"{count} window{'s' if count > 1 else ''} of {first['jobs']:,} jobs. {COVERS}"
    late = ["≥: work was left at the end of the horizon, so the figure is understated."]
    notes = (windows, STRETCHED, *(late if any(map(_unfinished, rows)) else ()))
    headers = tuple((column.header, column.unit, column.short or column.header) for column in shown)
    return Table(f"{trace}: cost, green ratio and service", headers, lines, notes=notes)


def _figure(column: Column, row: Row, *, wide: bool) -> Cell:
    cell = figure_cell(column, row, wide=wide)
    over = column.metric in {COST, BROWN, "horizon_carbon_kg"}
    return replace(cell, text=f"≥ {cell.text}") if over and _unfinished(row) else cell


def _unfinished(row: Row) -> bool:
    return bool(row["figures"].get(UNFINISHED, {}).get("mean"))


def change_table(trace: str, rows: Sequence[Row]) -> Table:
    """Every scheduler minus the base, window by window; without those that leave work at the end of the horizon."""
    columns = [column for column in COLUMNS if column.metric in CHANGES]
    lines = tuple(
        (row["scheduler"], tuple(_change_cell(column, at) for column, at in zip(columns, found, strict=True)))
        for row in rows
        if row["scheduler"] != BASE and not _unfinished(row)
        and all(found := [change(rows, row["scheduler"], column.metric) for column in columns])
    )  # fmt: skip
    headers = tuple((column.header, column.unit, column.short or column.header) for column in columns)
    note = f"Difference to {BASE} in the same windows. {COVERS}"
    legend = f"Bold: the interval excludes zero over at least {FEW_WINDOWS} windows."
    return Table(f"{trace}: difference to {BASE}", headers, lines, notes=(note,), legend=legend)


def change(rows: Sequence[Row], scheduler: str, metric: str) -> Interval | None:
    """Mean difference of a scheduler to the base over seeds and windows, with its interval; None if unknown.

    Args:
        rows: the rows of one trace.
        scheduler: name of a row.
        metric: name of a metric, in whose unit the difference is.
    """
    own, base = (_values(rows, name, metric) for name in (scheduler, BASE))
    return None if own is None or base is None else mean_interval(own - base)


def _values(rows: Sequence[Row], scheduler: str, metric: str) -> Any:
    """Values of a row, shape (seeds, windows); None if it has none."""
    figure = next((row["figures"].get(metric) for row in rows if row["scheduler"] == scheduler), None)
    return None if not figure else np.array(figure["values"], dtype=np.float64)


def _change_cell(column: Column, at: Interval | None) -> Cell:
    if at is None:
        return Cell("–")
    low, high = (column.number(end, signed=True) for end in (at.low, at.high))
    clear = at.count >= FEW_WINDOWS and (at.low > 0 or at.high < 0)
    mark: Mark = ("good" if at.mean < 0 else "bad") if clear else ""
    return Cell(column.number(at.mean, signed=True), f"[{low}, {high}]" if at.low < at.high else "", mark=mark)


def rival_tables(rows: Sequence[Row]) -> list[Table]:
    """One table per trace and row of our own agent: its paired differences to every other scheduler.

    Args:
        rows: the rows of all traces.
    """
    made = []
    for ours in (row for row in rows if row["column"] == OURS and row["figures"]):
        others = [
            row for row in rows
            if row["trace"] == ours["trace"] and row["column"] != OURS and row["figures"] and not _unfinished(row)
        ]  # fmt: skip
        lines = tuple((row["scheduler"], tuple(_aim_cell(aim, ours, row) for aim in AIMS)) for row in others)
        headers = tuple((aim.header, aim.unit, aim.header) for aim in AIMS)
        note = (
            "Paired by window, relative to the mean of the other [95% interval over windows and over the seeds of both "
            "agents: bootstrap and Student's t, combined in quadrature]."
        )
        legend = (
            "Goals: less cost, less brown energy, a green ratio at most a point lower, at most 1.1 times the makespan "
            "and 1.05 times the slowdown. Bold: the whole interval meets the goal, or misses it."
        )
        title = f"{ours['trace']}: {ours['scheduler']} against others"
        made.append(Table(title, headers, lines, notes=(note,), legend=legend))
    return [table for table in made if table.rows]


def reached(aim: Aim, ours: Row, other: Row) -> tuple[Interval, Verdict]:
    """Where our own agent is relative to another scheduler, in the unit of an aim, and whether that meets it."""
    mine, theirs = (np.array(row["figures"][aim.metric]["values"], dtype=np.float64) for row in (ours, other))
    gap = paired_difference(mine, theirs).difference
    scale = 100.0 if aim.unit != "×" else 1.0
    scale /= float(theirs.mean()) if aim.relative else 1.0
    shift = 1.0 if aim.unit == "×" else 0.0
    at = Interval(shift + scale * gap.mean, shift + scale * gap.low, shift + scale * gap.high, gap.count)
    low, high = sorted(aim.sign * end for end in (at.low, at.high))
    return at, verdict(replace(at, low=low, high=high), aim.most, "lower")


def _aim_cell(aim: Aim, ours: Row, other: Row) -> Cell:
    at, met = reached(aim, ours, other)
    form = ".3f" if aim.unit == "×" else "+.1f"
    mean, low, high = (f"{end:{form}}".replace("-", "−") for end in (at.mean, at.low, at.high))
    mark: Mark = "" if at.count < FEW_WINDOWS else "good" if met == "met" else "bad" if met == "missed" else ""
    return Cell(mean, f"[{low}, {high}]" if at.low < at.high else "", mark=mark)


def paper_tables() -> list[Table]:
    """Tables 1 and 2 as printed."""
    printed = published(NAME)
    made = []
    for number, trace in dict.fromkeys((each["table"], each["trace"]) for each in printed):
        own = {(p["scheduler"], p["metric"]): p["value"] for p in printed if p["table"] == number}
        names = dict.fromkeys(name for name, _ in own)
        lines = tuple((name, tuple(Cell(own[name, metric]) for metric, *_ in PAPER)) for name in names)
        headers = tuple((header, unit, header) for _, header, unit in PAPER)
        made.append(Table(f"Other data: {number} of the paper, {trace}", headers, lines, notes=(OTHER_DATA,)))
    return made


def findings(rows: Sequence[Row]) -> list[str]:
    """One line per trace and kind of schedulers: the cheapest one, and the cheapest that is not stretched."""
    made = []
    for trace in dict.fromkeys(row["trace"] for row in rows):
        own = [row for row in rows if row["trace"] == trace and row["figures"] and not _unfinished(row)]
        for kind, group in (
            ("rules and searches", [row for row in own if row["agent"] is None]),
            ("agents", [row for row in own if row["agent"] is not None]),
        ):
            short = [row for row in group if _mean(row, RATIO) <= NEARLY]
            told = [
                f"{what} {_told(own, min(some, key=_cost))}"
                for what, some in (("the cheapest is", group), (f"up to {NEARLY:g} times the makespan it is", short))
                if some
            ]
            if told:
                made.append(f"{trace}, {kind} that finish within the horizon: {'; '.join(dict.fromkeys(told))}.")
    return made


def _cost(row: Row) -> float:
    return _mean(row, COST)


def _mean(row: Row, metric: str) -> float:
    return float(row["figures"][metric]["mean"])


def _told(rows: Sequence[Row], row: Row) -> str:
    """Name and what it saves and costs, relative to the base."""
    name = str(row["scheduler"])
    if name == BASE:
        return name
    base = next(each for each in rows if each["scheduler"] == BASE)
    parts = []
    for metric, what in ((COST, "cost"), (BROWN, "brown energy")):
        at, whole = change(rows, name, metric), _mean(base, metric)
        if at is not None:
            low, high = (f"{100 * end / whole:+.1f}" for end in (at.low, at.high))
            span = f" [{low}, {high}]" if at.low < at.high else ""
            parts.append(f"{100 * at.mean / whole:+.1f} %{span} {what}".replace("-", "−"))
    return (
        f"{name} ({', '.join(parts)}; {_mean(row, RATIO):.2f} times the makespan, bounded slowdown "
        f"{_mean(row, SLOWDOWN):.4g} against {_mean(base, SLOWDOWN):.4g})"
    )
