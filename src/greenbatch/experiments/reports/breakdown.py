"""Who gains and who waits: tables of a comparison by partition, account and user."""

# ruff: noqa: RUF001 - typographic dashes and signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.columns import Column, named
from greenbatch.experiments.reports.findings import listed
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Cell, Mark, Table
from greenbatch.experiments.running.frames import by_window, schedulers
from greenbatch.experiments.running.statistics import FEW_WINDOWS, paired_difference
from greenbatch.metrics.breakdown import BY, NODE_GROUP
from greenbatch.metrics.money import MONEY
from greenbatch.metrics.months import MONTH

if TYPE_CHECKING:
    import polars

CLEAR = 0.05
"""Relative difference of mean waits from which a part gains or loses; differences below a minute do not count."""
_LEAST_S = 60.0
_NO_WAIT_S = 1.0
_WAIT = Column("avg_wait_s", "Mean wait", "h", 1 / 3600, 2, small=("s", 1.0))
_FIGURES = (
    _WAIT,
    Column("p95_wait_s", "Wait, 95th percentile", "h", 1 / 3600, 1, small=("s", 1.0)),
    Column("avg_bounded_slowdown", "Bounded slowdown", digits=4, style="significant"),
)
_SIZES = (
    Column("jobs", "Jobs", style="count"),
    Column("processor_hours", "Processor-hours", "h", digits=0),
    Column("energy_kwh", "Energy", "kWh", digits=4, style="significant", small=("Wh", 1000.0)),
    Column("cost", "Cost", MONEY, digits=4, style="significant"),
    Column("carbon_kg", "Carbon", "kg", digits=4, style="significant", small=("g", 1000.0)),
)
_RULE = (
    "Energy, cost and carbon add up to those of the site: at each instant they are divided among all that draws power "
    "then, in proportion to it."
)
_ENERGIES = tuple(
    Column(f"{kind}_energy_kwh", header, "kWh", digits=4, style="significant", small=("Wh", 1000.0))
    for kind, header in (
        ("node", "Energy of the nodes"), ("idle", "Idle"), ("static", "Static"), ("dynamic", "Dynamic"),
    )
)  # fmt: skip
"""Of all nodes of a group, whoever uses them."""
_BILL = (
    Column("month_cost", "Cost with demand charge", MONEY, digits=4, style="significant"),
    Column("month_carbon_kg", "Carbon", "kg", digits=4, style="significant", small=("g", 1000.0)),
    Column("month_brown_kwh", "Energy from the grid", "kWh", digits=4, style="significant", small=("Wh", 1000.0)),
    Column("month_renewable_share", "Renewable share", "%", 100.0, 1),
)
"""Of the whole site in the month, idle power included; waits and sizes are those of the jobs submitted in it."""


def kinds(breakdown: polars.DataFrame) -> list[str]:
    """By what the jobs of a comparison are divided, in the order of `metrics.breakdown.BY`; months come last."""
    return [by for by in (*BY, NODE_GROUP, MONTH) if by in breakdown["by"]]


def gains_table(breakdown: polars.DataFrame, baseline: str) -> Table | None:
    """Mean wait by partition (or account, or user) under every scheduler, with the change from the baseline.

    None if the jobs are not divided, or none waits for a second on average. Changes are marked if their interval over
    at least `FEW_WINDOWS` windows is clear.
    """
    for by in kinds(breakdown):
        if _largest(part_means(breakdown, by, _WAIT.metric)) < _NO_WAIT_S:
            return None
        table = _by_scheduler(breakdown, by, _WAIT, baseline)
        return Table(
            f"Who gains and who waits: mean wait by {by}", table.columns, table.rows, by.capitalize(),
            notes=(f"Below each figure: change from {baseline}.", *_gain_lines(breakdown, by, baseline)),
        )  # fmt: skip
    return None


def breakdown_sections(breakdown: polars.DataFrame, baseline: str, currency: str = "") -> list[Section]:
    """A section with the tables of each division of the jobs: size, waits, slowdown and energy."""
    found = []
    sizes, bill = (
        [replace(column, unit=named(column.unit, currency)) for column in group] for group in (_SIZES, _BILL)
    )
    for by in kinds(breakdown):
        tables = [
            _sizes(breakdown, by, baseline, sizes),
            *(_by_scheduler(breakdown, by, each, baseline) for each in _FIGURES),
        ]
        if energies := _energies(breakdown, by, baseline):
            tables.append(energies)
        tables += [
            _by_scheduler(breakdown, by, each, baseline)
            for each in (*sizes, _ENERGIES[0], *bill)
            if _differs(breakdown, by, each.metric)
        ]
        which = f"The {by}s with most work; others are added up."
        if by == MONTH:
            which = (
                "Jobs by the month of submission; the bill is that of the whole site, later the rest of the horizon."
            )
        if by == NODE_GROUP:
            which = "Jobs by the group of their first node."
        text = f"{which} Below each figure: change from {baseline}."
        found.append(Section(f"By {by}", text, tables=tuple(tables), folded=True))
    return found


def part_means(breakdown: polars.DataFrame, by: str, metric: str) -> dict[str, dict[str, float]]:
    """Part -> scheduler -> mean of a figure over the windows that define it; parts in descending order of work."""
    import polars

    rows = breakdown.filter((polars.col("by") == by) & (polars.col("metric") == metric))
    means = rows.group_by("part", "scheduler", maintain_order=True).agg(polars.col("value").mean())
    found: dict[str, dict[str, float]] = {}
    for part, scheduler, value in means.iter_rows():
        found.setdefault(part, {})[scheduler] = math.nan if value is None else value
    return found


def means_frame(breakdown: polars.DataFrame) -> polars.DataFrame:
    """One row per kind, part and scheduler with the means of all figures over the windows, for a spreadsheet."""
    keys = ["by", "part", "scheduler"]
    return breakdown.pivot("metric", index=keys, values="value", aggregate_function="mean")


def _largest(means: dict[str, dict[str, float]]) -> float:
    return max((value for values in means.values() for value in values.values() if math.isfinite(value)), default=0.0)


def _by_scheduler(breakdown: polars.DataFrame, by: str, column: Column, baseline: str) -> Table:
    """One row per part, one column per scheduler."""
    names, every = schedulers(breakdown), part_means(breakdown, by, column.metric)
    column = column.fitted(value for means in every.values() for value in means.values())
    rows = tuple(
        (part, tuple(_cell(breakdown, by, part, column, name, baseline, means) for name in names))
        for part, means in every.items()
    )
    columns = tuple((name, column.unit, name) for name in names)
    return Table(f"{column.header} by {by}", columns, rows, by.capitalize())


def _cell(
    breakdown: polars.DataFrame, by: str, part: str, column: Column, name: str, baseline: str, means: dict[str, float]
) -> Cell:  # fmt: skip
    mean, base = means.get(name, math.nan), means.get(baseline, math.nan)
    if name == baseline or not math.isfinite(mean - base):
        return Cell(column.number(mean))
    least = _LEAST_S if column.metric.endswith("_s") else 0.0
    change = column.number(mean - base, signed=True)
    if base > least:
        change = f"{mean / base:,.1f}×" if mean > 3 * base else f"{mean / base - 1:+.0%}".replace("-", "−")
    return Cell(column.number(mean), remark=change, mark=_mark(breakdown, by, part, column.metric, name, baseline))


def _mark(breakdown: polars.DataFrame, by: str, part: str, metric: str, name: str, baseline: str) -> Mark:
    """Whether the difference to the baseline is clear over enough windows; lower is better."""
    import polars

    if breakdown["window"].n_unique() < FEW_WINDOWS or metric != _WAIT.metric:
        return ""
    rows = breakdown.filter((polars.col("by") == by) & (polars.col("part") == part))
    ours, theirs = by_window(rows, name, metric), by_window(rows, baseline, metric)
    got = paired_difference(list(ours.values()), [theirs[window] for window in ours])
    if not got.clear or got.difference.count < FEW_WINDOWS:
        return ""
    return "good" if got.difference.mean < 0 else "bad"


def _sizes(breakdown: polars.DataFrame, by: str, baseline: str, columns: Sequence[Column]) -> Table:
    """Jobs, processor-hours, energy, cost and emissions of each part, and of what belongs to no job."""
    table = _under_baseline(f"Work by {by}", breakdown, by, columns, baseline)
    return table if len(table.columns) < 3 else replace(table, notes=(*table.notes, _RULE))


def _energies(breakdown: polars.DataFrame, by: str, baseline: str) -> Table | None:
    """Idle, static and dynamic energy of the nodes of each group, under the baseline; None if it is not of groups."""
    if by != NODE_GROUP or not any(_differs_from_zero(breakdown, by, each.metric) for each in _ENERGIES):
        return None
    table = _under_baseline(f"Energy by {by}", breakdown, by, _ENERGIES, baseline)
    told = "Idle: while nothing runs on a node. Static: while jobs do, without its busy processors and GPUs (dynamic)."
    return replace(table, notes=(*table.notes, told))


def _under_baseline(
    title: str, breakdown: polars.DataFrame, by: str, wanted: Sequence[Column], baseline: str
) -> Table:  # fmt: skip
    """Figures of each part under the baseline; only those that are defined."""
    means = [part_means(breakdown, by, column.metric) for column in wanted]
    known = [{part: values.get(baseline, math.nan) for part, values in each.items()} for each in means]
    shown = [
        (column.fitted(each.values()), each)
        for column, each in zip(wanted, known, strict=True)
        if any(map(math.isfinite, each.values()))
    ]  # fmt: skip
    rows = tuple(
        (part, tuple(Cell(column.number(each.get(part, math.nan))) for column, each in shown))
        for part in dict.fromkeys(part for each in known for part in each)
    )
    columns = tuple((column.header, column.unit, column.header) for column, _ in shown)
    per = "per window, " if breakdown["window"].n_unique() > 1 else ""
    return Table(title, columns, rows, by.capitalize(), notes=(f"Means {per}under {baseline}.",))


def _differs_from_zero(breakdown: polars.DataFrame, by: str, metric: str) -> bool:
    """Whether a figure of some part is known and not zero under some scheduler."""
    values = [value for each in part_means(breakdown, by, metric).values() for value in each.values()]
    return any(math.isfinite(value) and value != 0 for value in values)


def _differs(breakdown: polars.DataFrame, by: str, metric: str) -> bool:
    """Whether a figure depends on the scheduler."""
    for values in part_means(breakdown, by, metric).values():
        known = [value for value in values.values() if math.isfinite(value)]
        if known and max(known) - min(known) > 0.001 * abs(min(known)):
            return True
    return False


def _gain_lines(breakdown: polars.DataFrame, by: str, baseline: str) -> list[str]:
    """One sentence per scheduler: which parts wait less than under the baseline, and which wait longer."""
    waits = part_means(breakdown, by, _WAIT.metric)
    lines = []
    for name in schedulers(breakdown):
        less, more = (_parts(waits, name, baseline, sign) for sign in (-1, 1))
        told = [
            f"{word} for {'all' if len(parts) == len(waits) else listed(parts)}"
            for word, parts in (("shorter", less), ("longer", more))
            if parts
        ]
        if name != baseline:
            lines.append(f"{name}: {' and '.join(told) or 'about the same for all'}.")
    return [f"Mean wait compared with {baseline}, by {by}. {' '.join(lines)}"] if lines else []


def _parts(waits: dict[str, dict[str, float]], name: str, baseline: str, sign: int) -> Sequence[str]:
    """Parts whose mean wait changes clearly in one direction."""
    found = []
    for part, means in waits.items():
        change_s = sign * (means[name] - means[baseline])
        if change_s >= max(_LEAST_S, CLEAR * means[baseline]):
            found.append(part)
    return found
