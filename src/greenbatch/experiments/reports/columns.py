"""The columns of a comparison's tables: metrics, headers, units and digits, as data."""

# ruff: noqa: RUF001 - typographic dashes, minus and multiplication signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from greenbatch.experiments.running.frames import values_of
from greenbatch.metrics.money import MONEY

if TYPE_CHECKING:
    import polars

Style = Literal["significant", "fixed", "count"]

SMALL = 0.1
"""Values below it are small in a column's usual unit."""


@dataclass(frozen=True, slots=True)
class Column:
    """Format of one metric."""

    metric: str
    header: str
    unit: str = ""
    scale: float = 1.0
    """Factor from the metric's unit to the displayed one."""
    digits: int = 1
    """Decimals, or significant digits; of a count, decimals where it is not whole."""
    style: Style = "fixed"
    short: str = ""
    """Header for narrow output (a terminal); ``header`` if empty."""
    small: tuple[str, float] | None = None
    """Unit and scale that replace the usual ones where all values are small, see `fitted`."""

    def fitted(self, values: Iterable[float]) -> Column:
        """The column in its small unit if it has one and no value reaches 0.1 in the usual unit, e.g. waits of seconds.

        Args:
            values: what it will show, in the metric's unit; values that are not finite do not count.
        """
        sizes = [abs(value * self.scale) for value in values if math.isfinite(value)]
        if self.small is None or not sizes or max(sizes) >= SMALL:
            return self
        unit, scale = self.small
        return replace(self, unit=unit, scale=scale, small=None)

    def number(self, value: float, *, signed: bool = False) -> str:
        """A value in the column's unit; an en dash if undefined."""
        if not math.isfinite(value):
            return "–"
        shown, digits = value * self.scale, self.digits
        if self.style == "significant" and shown:
            digits = min(max(self.digits - 1 - math.floor(math.log10(abs(shown))), 0), 6)
        if self.style == "count" and shown == round(shown):
            digits = 0
        text = f"{shown:{'+' if signed else ''},.{digits}f}"
        if not any(c in "123456789" for c in text):
            text = text.lstrip("+-")
        return text.replace("-", "−")


_SLOWDOWN = partial(Column, digits=4, style="significant")
_ENERGY = partial(Column, unit="kWh", digits=4, style="significant", small=("Wh", 1000.0))
_HOURS = partial(Column, unit="h", scale=1 / 3600, digits=2, small=("s", 1.0))
_PERCENT = partial(Column, unit="%", scale=100.0, digits=1)

MAIN = (
    _SLOWDOWN("avg_bounded_slowdown", "Bounded slowdown", short="Bounded slowdown"),
    _PERCENT("renewable_utilization", "Renewable utilization", short="Renewable"),
    _ENERGY("horizon_brown_kwh", "Brown energy over the horizon", short="Brown"),
    Column("makespan_ratio", "Makespan over baseline", "×", digits=3, short="Makespan"),
    _HOURS("avg_wait_s", "Mean wait"),
    _HOURS("p95_wait_s", "Wait, 95th percentile", digits=1, short="Wait p95"),
    _PERCENT("utilization", "Utilization", short="Used"),
)
"""Columns of the main table; those without any value are omitted."""

WITHOUT_SUPPLY = (
    MAIN[0],
    _ENERGY("energy_kwh", "Energy", short="Energy"),
    Column("edp_js", "Energy-delay product", "kWh h", 1 / 3.6e6 / 3600, 4, "significant", "EDP", ("MJ s", 1e-6)),
    *MAIN[3:],
)
"""The same where no power supply is known: energy and its product with the makespan instead of its sources."""

VALUED = (
    Column("total_job_value", "Value of finished jobs", digits=4, style="significant", short="Value"),
    _PERCENT("value_ratio", "Value ratio", short="Ratio"),
    _PERCENT("completion_ratio", "Jobs completed", short="Completed"),
    _PERCENT("utilization_available", "Powered machine used", short="Used"),
    Column("accrued_cost", "Accrued cost", digits=4, style="significant", short="Cost"),
    _PERCENT("late_share", "Jobs late", short="Late"),
    Column("suspensions", "Suspensions", digits=1, style="count"),
    _HOURS("avg_wait_s", "Mean wait of finished jobs", short="Mean wait"),
)
"""Columns of the main table where jobs have values, before the energy of a site."""

LONGEST_WAIT = _HOURS("max_wait_s", "Longest wait", digits=1)
"""Stands where waits are shown: means hide the job that waits for days."""

PAID = (
    Column("horizon_cost", "Cost over the horizon", MONEY, digits=4, style="significant", short="Cost"),
    Column(
        "horizon_carbon_kg", "Carbon over the horizon", "kg", digits=4, style="significant", short="Carbon",
        small=("g", 1000.0),
    ),
)  # fmt: skip
"""Further columns where the site states prices or intensities, behind brown energy."""

COMMON_BROWN = _ENERGY("common_horizon_brown_kwh", "Brown energy, common horizon", short="Brown")
"""Brown energy up to the last end of all schedulers compared; it therefore depends on which ones are compared."""

CLASS_COLUMNS = (
    _SLOWDOWN("avg_bounded_slowdown_under_5min", "< 5 min"),
    _SLOWDOWN("avg_bounded_slowdown_5min_to_1h", "5 min – 1 h"),
    _SLOWDOWN("avg_bounded_slowdown_1h_to_4h", "1 – 4 h"),
    _SLOWDOWN("avg_bounded_slowdown_over_4h", "> 4 h"),
    _HOURS("avg_wait_s_under_5min", "Wait, < 5 min"),
    _HOURS("avg_wait_s_over_4h", "Wait, > 4 h"),
)
"""Columns of the table by run-time class."""

CLASS_COUNTS = ("jobs_under_5min", "jobs_5min_to_1h", "jobs_1h_to_4h", "jobs_over_4h")
"""Jobs of the classes, in the order of the first columns."""

DETAIL = (
    _SLOWDOWN("median_bounded_slowdown", "Bounded slowdown, median"),
    _SLOWDOWN("p95_bounded_slowdown", "95th percentile"),
    _SLOWDOWN("p99_bounded_slowdown", "99th percentile"),
    _SLOWDOWN("max_bounded_slowdown", "maximum"),
    _SLOWDOWN("max_user_bounded_slowdown", "worst user"),
    _HOURS("avg_turnaround_s", "Turnaround"),
    Column("makespan_s", "Makespan", "d", 1 / 86_400, 2, small=("s", 1.0)),
    _ENERGY("horizon_energy_kwh", "Energy over the horizon"),
    _ENERGY("energy_kwh", "Energy, whole schedule"),
    _ENERGY("brown_kwh", "Brown energy, whole schedule"),
    COMMON_BROWN,
    _ENERGY("renewable_curtailed_kwh", "Curtailed"),
    Column("peak_power_w", "Peak power", "kW", 1e-3, 2),
    Column("horizon_peak_import_w", "Peak of imports", "kW", 1e-3, 2),
    _ENERGY("horizon_over_limit_kwh", "Imports above the limit"),
    Column("horizon_cost_per_kwh", "Cost", f"{MONEY}/kWh", digits=3, style="significant"),
    Column("horizon_carbon_g_per_kwh", "Carbon", "g/kWh", digits=3, style="significant"),
    _PERCENT("horizon_self_consumption", "Self-consumption"),
    _PERCENT("horizon_autarky", "Autarky"),
    Column("horizon_storage_cycles", "Cycles of storage", digits=1),
    _ENERGY("horizon_storage_loss_kwh", "Losses of storage"),
    Column("killed", "Killed at time limit", "jobs", style="count"),
)
"""Further metrics, without intervals."""


RECORD = (
    _HOURS("median_wait_error_s", "Difference of waits, median", short="Median"),
    _HOURS("p95_wait_error_s", "95th percentile", short="p95"),
    _HOURS("avg_wait_error_s", "Mean wait minus recorded", short="Mean difference"),
    Column("late_starts", "Later than recorded", "jobs", style="count"),
)
"""Columns of the table of differences to the recorded schedule."""


def main_columns(frame: polars.DataFrame, currency: str = "") -> tuple[Column, ...]:
    """The columns of the main table of a tidy frame, in units that fit its values.

    `MAIN`, with those of `PAID` that have values; or `WITHOUT_SUPPLY`; each with `LONGEST_WAIT`. Where jobs have
    values, `VALUED`, and brown energy if there is a site.

    Args:
        frame: tidy results.
        currency: name of the currency of the site's prices, such as ``EUR``.
    """

    def known(column: Column) -> bool:
        return any(math.isfinite(value) for value in values_of(frame, column.metric))

    if known(VALUED[0]):
        supply = (MAIN[1], MAIN[2]) if known(MAIN[1]) else ()
        chosen = (*VALUED[:5], *filter(known, (*VALUED[5:-1], *supply, *PAID)), VALUED[-1], LONGEST_WAIT)
        return tuple(fitted(column, frame, currency) for column in chosen)
    columns = (*MAIN[:3], *filter(known, PAID), *MAIN[3:]) if known(MAIN[1]) else WITHOUT_SUPPLY
    return tuple(fitted(column, frame, currency) for column in (*columns[:-1], LONGEST_WAIT, columns[-1]))


def terminal_columns(frame: polars.DataFrame, currency: str = "") -> tuple[Column, ...]:
    """The columns of the table in a terminal: the first five, what is paid, and the longest wait."""
    columns, paid = main_columns(frame, currency), {column.metric for column in PAID}
    return (*columns[: 5 + sum(column.metric in paid for column in columns)], columns[-2])


def fitted(column: Column, frame: polars.DataFrame, currency: str = "") -> Column:
    """A column in the unit that fits the values of a tidy frame, with the name of the currency where it is known."""
    column = column.fitted(values_of(frame, column.metric))
    return replace(column, unit=named(column.unit, currency))


def named(unit: str, currency: str) -> str:
    """A unit with the name of the currency instead of ``currency``, where it is known."""
    return unit.replace(MONEY, currency) if currency else unit
