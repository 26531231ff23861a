"""Time series in equal steps, read from CSV or Parquet with declared columns, unit and time zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.columns import Columns, numbers, read_columns
from greenbatch.energy.exports import SPELLINGS
from greenbatch.energy.resample import Label
from greenbatch.energy.rounding import rounded
from greenbatch.energy.samples import (
    ClockChanges,
    Duplicates,
    Gaps,
    Negative,
    Repairs,
    Samples,
    Unsorted,
    equal_steps_of,
)
from greenbatch.energy.stamps import Clock as FileClock
from greenbatch.energy.stamps import TimeKind, read_times
from greenbatch.energy.units import CURRENCIES, Quantity, bounds, internal_unit, unit_named, unit_names, wrong_magnitude
from greenbatch.errors import InputError
from greenbatch.notes import Note

Floats = NDArray[np.float64]
Decimal = Literal[".", ","]
Clock = Literal["elapsed", "unix", "typical-year"]
"""Zero of ``start_s``: the data's own, 1970 in UTC, or 1 January 00:00 standard time of any year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One quantity in equal steps, constant within a step.

    Raises:
        InputError: the step is not > 0, there are no values, or a value is not plausible for its quantity.
    """

    name: str
    """Name of the series, shown in messages."""
    quantity: Quantity
    """Quantity of the values; its name carries the unit."""
    values: Floats
    """Mean over each step, shape (n,), finite."""
    step_s: float
    """Length of a step, > 0. [s]"""
    start_s: float = 0.0
    """Start of step 0 on the clock. [s]"""
    clock: Clock = "elapsed"
    utc_offset_s: float = 0.0
    """Standard time minus UTC, for a typical year. [s]"""
    notes: tuple[Note, ...] = ()
    """What was filled, averaged or assumed; shares are of the hours of the series."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """File name -> SHA-256."""
    currency: str = ""
    """Currency of a price."""

    def __post_init__(self) -> None:
        if not 0 < self.step_s < np.inf:
            raise InputError(f"is {self.step_s}", field=f"{self.name}.step_s", fix="it must be > 0")
        if self.values.ndim != 1 or not self.values.size:
            raise InputError(f"has shape {self.values.shape}", field=self.name, fix="give one row of at least one step")
        if (self.quantity == "price_per_kwh") != (self.currency in CURRENCIES):
            fix = "use one of " + ", ".join(CURRENCIES) + " for a price, none for anything else"
            raise InputError(f"is {self.currency!r}", field=f"{self.name}.currency", fix=fix)
        low, high = bounds(self.quantity, self.currency)
        if (wrong := np.flatnonzero(~((self.values >= low) & (self.values <= high)))).size:
            problem = f"step {wrong[0]} is {self.values[wrong[0]]:.10g} {self.unit}"
            raise InputError(problem, field=self.name, fix=f"plausible: {low:g} to {high:g}; check the unit")

    @property
    def unit(self) -> str:
        """The internal unit of the values."""
        return internal_unit(self.quantity, self.currency)

    @property
    def length_s(self) -> float:
        """Time that the series covers. [s]"""
        return float(self.values.size * self.step_s)

    @property
    def end_s(self) -> float:
        """Time at which the last step ends, on the clock of the series. [s]"""
        return self.start_s + self.length_s

    def derived(self, quantity: Quantity, values: Floats, *notes: Note) -> Self:
        """Another quantity in the same steps."""
        return replace(self, quantity=quantity, values=values, notes=(*self.notes, *notes))

    def needs(self, quantity: Quantity, *, user: str) -> None:
        """Refuse a series of another quantity.

        Raises:
            InputError: it holds another quantity.
        """
        if self.quantity != quantity:
            units = ", ".join(unit_names(quantity))
            problem = f"holds {self.quantity}, but {user} requires {quantity}"
            raise InputError(problem, field=self.name, fix=f"choose such a column and one of the units {units}")


def same_steps(series: Series, other: Series) -> Floats:
    """Values of a series that has the same steps as another one.

    Raises:
        InputError: length, start, step or clock differ.
    """
    steps, others = ((each.values.size, each.start_s, each.step_s, each.clock) for each in (series, other))
    if steps != others:
        problem = f"does not have the same steps as {other.name}"
        raise InputError(problem, field=series.name, fix="take both from one file")
    return series.values


def power(
    series: Series,
    *,
    rated_w: float | None = None,
    factor: float = 1.0,
    round_w: float | None = None,
) -> Series:
    """Power [W] of a plant from a measured or modeled series, in a unit of power or as a share of its rated power.

    Args:
        series: power, or share of the rated power.
        rated_w: rated power, > 0. A share requires it; for power it is a check: slots above 1.5 times the rated power
            and a series that never reaches a hundredth of it are refused because the unit is probably wrong. [W]
        factor: scales the power, > 0: processors of the cluster / processors it was meant for.
        round_w: round the power to a multiple of this, a power of ten. [W]

    Raises:
        InputError: a parameter is out of range, or the series is neither power nor share.
    """
    for name, value in (("rated_w", rated_w), ("factor", factor)):
        if value is not None and not 0 < value < np.inf:
            raise InputError(f"is {value}", field=f"power.{name}", fix="it must be > 0")
    if series.quantity == "share":
        if rated_w is None:
            raise InputError("is missing", field="power.rated_w", fix=f"{series.name} holds shares of it")
        values = series.values * rated_w
    else:
        series.needs("power_w", user="power")
        values = series.values
        if rated_w is not None and not rated_w / 100 <= values.max(initial=0) <= 1.5 * rated_w:
            problem = f"never exceeds {values.max():.6g} W, but the plant is rated {rated_w:g} W"
            raise InputError(problem, field=series.name, fix="check the declared unit (W, kW or MW) and rated_w")
    return series.derived("power_w", rounded(values * factor, round_w, field="power.round_w"))


def read_series(
    file: str | Path,
    *,
    columns: Sequence[str],
    unit: str,
    time_kind: TimeKind,
    time_column: str | None = None,
    time_columns: Sequence[str] | None = None,
    repeated_column: str | None = None,
    time_zone: str | None = None,
    time_format: str | None = None,
    label: Label = "start",
    step_s: float | None = None,
    gaps: Gaps = "refuse",
    longest_step_s: float | None = None,
    unsorted: Unsorted = "refuse",
    duplicates: Duplicates = "refuse",
    negative: Negative = "refuse",
    clock_changes: ClockChanges = "refuse",
    missing: Sequence[float] = (),
    where: Mapping[str, str] | None = None,
    delimiter: str = ",",
    decimal: Decimal = ".",
    name: str | None = None,
) -> Series:
    """Read one quantity from a CSV(.gz) or Parquet file.

    Args:
        file: the file; gzip is recognized by its content, Parquet by its name.
        columns: one column; or, with ``time_kind="ignore"``, several that follow each other in time (GAS-MARL's
            files have one column per year under one set of labels).
        unit: unit in the file, a key of ``units.UNITS``; the unit of a price has its currency, ``EUR/MWh``.
        time_kind: what the time column contains, see ``stamps.TimeKind``; with ``"ignore"`` the rows are equal steps of
            ``step_s``, starting at 0.
        time_column: name of the time column; not required with ``"ignore"``.
        time_columns: names of the columns whose texts together are the stamp, instead of ``time_column``: a date and an
            hour. With ``label="end"`` an hour names the interval that ends with it, "hour ending 01:00 to 24:00".
        repeated_column: column with "Y" in the second of two equal local hours, "N" in all others; by default the order
            of the rows tells them apart.
        time_zone: IANA zone or fixed offset; only for ``time_kind="local"``.
        time_format: ``strptime`` format of the stamps; by default ISO 8601. With ``...`` at its end, what follows in a
            cell is not read; numbers must then have leading zeros.
        label: whether a stamp marks the start, the middle or the end of its interval.
        step_s: step of the result; by default the usual step of the file. [s]
        gaps: refuse or fill missing values and distances above ``longest_step_s``; see ``samples.Repairs``.
        longest_step_s: longest distance that is not a gap; by default 1.5 usual steps. [s]
        unsorted: refuse or sort rows that are out of order.
        duplicates: refuse equal times, or keep the first or last of them. Two series in one file are refused all the
            same: choose one with ``where``.
        negative: refuse values below zero or set them to zero (night offset of pyranometers).
        clock_changes: refuse or repair local stamps that count every day as 24 hours: ``fill`` drops those that the
            clocks skip in spring, and uses those of the doubled hour in autumn for both hours if they stand once.
        missing: numbers that mean "no value", such as -9999.
        where: column -> the text that a row must have in it; other rows are not read. For files of several series:
            markets, components, nodes of a grid.
        delimiter: field separator of a CSV file.
        decimal: the decimal mark; with the comma, points group thousands, "1.065,50".
        name: name of the series; by default the file's name.

    Raises:
        InputError: the file is not as declared; the error names file, line, column and fix.
    """
    repairs = Repairs(
        gaps=gaps, longest_step_s=longest_step_s, unsorted=unsorted, duplicates=duplicates, negative=negative,
        clock_changes=clock_changes,
    )  # fmt: skip
    stamps = () if time_kind == "ignore" else _stamp_columns(file, time_column, time_columns)
    _check_columns(file, columns, time_kind, step_s)
    if repeated_column is not None and time_kind != "local":
        fix = 'leave it out, or set time_kind = "local"'
        problem = f"is {repeated_column!r}, but stamps are {time_kind}"
        raise InputError(problem, file=file, field="repeated_column", fix=fix)
    flags = [] if repeated_column is None else [repeated_column]
    wanted = [*columns, *stamps, *flags]
    table = read_columns(file, wanted, delimiter=delimiter, where=where, spellings=SPELLINGS)
    values, notes = column_values(table, columns, unit, missing=missing, negative=negative, decimal=decimal)
    if stamps:
        clock = FileClock(
            kind=time_kind, columns=stamps, time_zone=time_zone, time_format=time_format, ends=label == "end",
            repeated_column=repeated_column,
        )  # fmt: skip
        times_s, jump_s = read_times(table, clock)
    else:
        times_s = np.asarray(np.arange(values.size) * float(step_s or 0), dtype=np.float64)
        jump_s = np.zeros(values.size)
        notes.append(Note(f"rows taken as equal steps of {step_s:g} s from 0, whatever their labels say", level="fact"))
    samples = Samples(
        table=table,
        time_column=" + ".join(stamps) if stamps else "rows",
        columns=columns,
        times_s=times_s,
        values=values,
        jump_s=jump_s,
        cells=np.arange(values.size),
        unix=time_kind not in {"elapsed", "ignore"},
    )
    return series_of(samples, repairs, label=label, step_s=step_s, unit=unit, name=name, notes=notes)


def series_of(
    samples: Samples,
    repairs: Repairs,
    *,
    label: Label,
    step_s: float | None,
    unit: str,
    name: str | None = None,
    notes: Sequence[Note] = (),
) -> Series:
    """A series in equal steps from the samples of a file in some unit; notes on repairs carry the file's name.

    Raises:
        InputError: a repair is not allowed, or the unit is probably wrong.
    """
    kind = unit_named(unit)
    start_s, step, values, repaired = equal_steps_of(samples, repairs, label=label, step_s=step_s)
    file = Path(samples.table.file).name
    series = Series(
        name=name or file,
        quantity=kind.quantity,
        currency=kind.currency,
        values=values,
        step_s=step,
        start_s=start_s,
        clock="unix" if samples.unix else "elapsed",
        inputs={file: samples.table.sha256},
        notes=tuple(
            replace(note, what=f"{file} {', '.join(samples.columns)}: {note.what}", about=file)
            for note in (*notes, *repaired)
        ),
    )
    if values.size * step >= 2 * 86_400 and (wrong := wrong_magnitude(values, series.quantity, series.currency)):
        raise InputError(wrong[0], file=samples.table.file, field=samples.columns[0], fix=wrong[1])
    return series


def column_values(
    table: Columns, columns: Sequence[str], unit: str, *, missing: Sequence[float] = (), negative: Negative = "refuse",
    decimal: Decimal = ".",
) -> tuple[Floats, list[Note]]:  # fmt: skip
    """Values of the concatenated columns in the internal unit, NaN if missing, and notes on repairs.

    Raises:
        InputError: a cell is not a number, or outside the plausible range of its quantity.
    """
    kind = unit_named(unit)
    low, high = bounds(kind.quantity, kind.currency)
    parts: list[Floats] = []
    zeroed = 0
    for column in columns:
        with np.errstate(over="ignore"):  # an infinite value is refused below
            given = numbers(table, column, missing, decimal=decimal)
            values = np.asarray(given * kind.scale + kind.offset, dtype=np.float64)
        if negative == "zero" and low == 0:
            zeroed += int(np.count_nonzero(values < 0))
            values = np.asarray(np.where(values < 0, 0.0, values), dtype=np.float64)
        if (wrong := np.flatnonzero((values < low) | (values > high))).size:
            row = int(wrong[0])
            known = f"plausible: {low:g} to {high:g} {internal_unit(kind.quantity, kind.currency)}"
            more = 'set negative = "zero"' if low == 0 and values[row] < 0 else "declare the code under missing"
            problem = f"{table.cells[column][row]} {unit} is not plausible"
            raise table.refuse(row, problem, field=column, fix=f"{known}; check the unit, or {more}")
        parts.append(values)
    all_values = np.concatenate(parts)
    share = ((zeroed / all_values.size, "hours"),)
    return all_values, [Note("negative values set to zero", zeroed, shares=share)] if zeroed else []


def _check_columns(file: str | Path, columns: Sequence[str], time_kind: TimeKind, step_s: float | None) -> None:
    if isinstance(columns, str) or not columns or len(set(columns)) != len(columns):
        raise InputError(f"is {columns!r}", file=file, field="columns", fix="give a list of different column names")
    if step_s is not None and not 0 < step_s < np.inf:
        raise InputError(f"is {step_s}", file=file, field="step_s", fix="it must be > 0")
    if time_kind == "ignore":
        if step_s is None:
            fix = "rows without times require the length of a step"
            raise InputError("is missing", file=file, field="step_s", fix=fix)
        return
    if len(columns) > 1:
        fix = 'give one column; only time_kind = "ignore" concatenates columns'
        raise InputError(f"has {len(columns)} columns", file=file, field="columns", fix=fix)


def _stamp_columns(file: str | Path, one: str | None, several: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that make up a stamp."""
    if one is not None and several:
        raise InputError("is given beside time_column", file=file, field="time_columns", fix="give one of the two")
    if one is None and not several:
        raise InputError("is missing", file=file, field="time_column", fix='name it, or set time_kind = "ignore"')
    return tuple(several) if several else (str(one),)
