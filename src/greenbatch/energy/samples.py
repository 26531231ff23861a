"""Samples of a file: wrong order, duplicates, missing values and gaps are refused, or repaired and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.columns import Columns
from greenbatch.energy.resample import SAME_S, Label, fill_between, mean_steps, own_steps, sample_edges, usual_step_s
from greenbatch.energy.several import several
from greenbatch.energy.stamps import show
from greenbatch.errors import InputError
from greenbatch.notes import Level, Note

Floats = NDArray[np.float64]
Gaps = Literal["refuse", "interpolate", "hold"]
Unsorted = Literal["refuse", "sort"]
Duplicates = Literal["refuse", "first", "last"]
Negative = Literal["refuse", "zero"]
ClockChanges = Literal["refuse", "fill"]

_PER_SAMPLE = ("times_s", "values", "jump_s", "cells")
"""Columns of `Samples`."""
MOST_STEPS = 20_000_000
"""Most steps of a series (190 years of 5 minutes); more are due to a wrong stamp."""
MOST_RESTATED = 0.01
"""Share of the times that may stand twice with other values without a warning, if that is allowed."""
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What may be repaired when a file is read; all other defects are refused. Each repair is counted.

    Raises:
        InputError: an option is not one of its choices, or ``longest_step_s`` is not > 0.
    """

    gaps: Gaps = "refuse"
    """Missing values, distances above ``longest_step_s``, local times that the spring clock change skips."""
    longest_step_s: float | None = None
    """Longest distance that is not a gap; by default 1.5 usual steps. [s]"""
    unsorted: Unsorted = "refuse"
    duplicates: Duplicates = "refuse"
    negative: Negative = "refuse"
    """Values below zero: night offset of pyranometers, self-consumption of inverters."""
    clock_changes: ClockChanges = "refuse"
    """Local stamps that count every day as 24 hours: those that the clocks skip in spring are dropped, and those that
    occur twice in autumn but stand once hold for both hours."""

    def __post_init__(self) -> None:
        choices = {
            "gaps": Gaps, "unsorted": Unsorted, "duplicates": Duplicates, "negative": Negative,
            "clock_changes": ClockChanges,
        }  # fmt: skip
        for field, options in choices.items():
            check_choice(getattr(self, field), get_args(options), field=field)
        if self.longest_step_s is not None and not self.longest_step_s > 0:
            raise InputError(f"is {self.longest_step_s}", field="longest_step_s", fix="it must be > 0")


def check_choice(value: str, options: Sequence[str], *, field: str) -> None:
    """Refuse a value that is not among the options.

    Raises:
        InputError: it is not; the error names the field and the options.
    """
    if value not in options:
        raise InputError(f"is {value!r}", field=field, fix="use one of " + ", ".join(options))


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Values with their times and the cell of the file that each was read from."""

    table: Columns
    time_column: str
    columns: Sequence[str]
    """Value columns, in the order in which they are concatenated."""
    times_s: Floats
    values: Floats
    """In the internal unit; NaN if missing."""
    jump_s: Floats
    """How far the clocks jump at each local time, see ``stamps.read_times``. [s]"""
    cells: NDArray[np.int64]
    """Row of the file + rows x index of the column."""
    unix: bool

    def take(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> Samples:
        """A selection of the samples."""
        parts = {name: getattr(self, name)[keep] for name in _PER_SAMPLE}
        return replace(self, **parts)

    def refuse(self, at: int, problem: str, *, fix: str, time: bool = False) -> InputError:
        """The error for one sample, or for its time."""
        rows = len(next(iter(self.table.cells.values())))
        column, row = divmod(int(self.cells[at]), rows)
        return self.table.refuse(row, problem, field=self.time_column if time else self.columns[column], fix=fix)

    def line(self, at: int) -> int | None:
        """The line of one sample, if the file has lines."""
        return self.table.place(int(self.cells[at]) % len(next(iter(self.table.cells.values()))))[0]

    def note(self, what: str, at: NDArray[np.int64], hours: float | None = None) -> Note:
        """A repair of some samples, with the share of the hours if it is not theirs."""
        share = at.size / self.times_s.size if hours is None else hours
        return Note(what, at.size, self.line(int(at[0])), shares=((min(share, 1.0), "hours"),))

    def show(self, at: int) -> str:
        """The time of one sample, formatted for messages."""
        return show(float(self.times_s[at]), unix=self.unix)


def in_order(samples: Samples, repairs: Repairs) -> tuple[Samples, list[Note]]:
    """Samples with strictly ascending times that all exist, and one note per kind of repair.

    Raises:
        InputError: a time is skipped by the clock change, out of order or duplicated, and the repair is not allowed; or
            equal times are those of several series.
    """
    notes: list[Note] = []
    skipped = samples.jump_s > 0
    if skipped.any():
        at = np.flatnonzero(skipped)
        if repairs.gaps == "refuse" and repairs.clock_changes == "refuse":
            fix = 'give the zone the stamps are in, or set clock_changes = "fill" to drop them'
            raise samples.refuse(int(at[0]), "this local time does not exist (clock change)", fix=fix, time=True)
        notes.append(samples.note("local times that do not exist dropped", at))
        samples = samples.take(~skipped)
    back = np.flatnonzero(np.diff(samples.times_s) < -SAME_S) + 1
    if back.size:
        _refuse_several(samples)
        if repairs.unsorted == "refuse":
            fix = 'sort the file, or set unsorted = "sort"'
            raise samples.refuse(int(back[0]), "the time is before the one above", fix=fix, time=True)
        notes.append(samples.note("rows out of order sorted", back))
        samples = samples.take(np.argsort(samples.times_s, kind="stable"))
    same = np.diff(samples.times_s) <= SAME_S
    if same.any():
        _refuse_several(samples)
        at = np.flatnonzero(same) + 1
        if repairs.duplicates == "refuse":
            fix = 'remove one, or set duplicates = "first" or "last"'
            raise samples.refuse(int(at[0]), "the time occurs twice", fix=fix, time=True)
        other = ~np.isclose(samples.values[at], samples.values[at - 1], rtol=1e-12, atol=0.0, equal_nan=True)
        if not other.all():
            notes.append(samples.note("rows that occur twice dropped", at[~other]))
        if other.any():
            what = f"equal times with other values, {repairs.duplicates} kept"
            level: Level = "change" if other.sum() <= MOST_RESTATED * samples.times_s.size else "warning"
            notes.append(replace(samples.note(what, at[other]), level=level))
        keep = np.append(True, ~same) if repairs.duplicates == "first" else np.append(~same, True)
        samples = samples.take(keep)
    return _both_hours(samples, notes) if repairs.clock_changes == "fill" else (samples, notes)


def _refuse_several(samples: Samples) -> None:
    """Refuse several series in one file, which no choice among equal times can repair."""
    samples = samples.take(np.argsort(samples.times_s, kind="stable"))
    rows = samples.cells % len(next(iter(samples.table.cells.values())))
    found = several(samples.table, samples.time_column, rows, samples.times_s, samples.values)
    if found is not None:
        raise samples.refuse(found.at, found.problem, fix=found.fix, time=True)


def _both_hours(samples: Samples, notes: list[Note]) -> tuple[Samples, list[Note]]:
    """Ascending samples with those of a doubled hour that stands once put into both hours, and one more note."""
    twice = samples.take(samples.jump_s < 0)
    first, second = (np.isin(twice.times_s + sign * twice.jump_s, twice.times_s) for sign in (-1, 1))
    once = twice.take(~(first | second))
    if not once.times_s.size:
        return samples, notes
    what = "stamps of a doubled hour that stand once used for both hours"
    note = once.note(what, np.arange(once.times_s.size), once.times_s.size / samples.times_s.size)
    once = replace(once, times_s=once.times_s - once.jump_s)
    parts: dict[str, Any] = {
        name: np.concatenate((getattr(samples, name), getattr(once, name))) for name in _PER_SAMPLE
    }
    samples = replace(samples, **parts)
    return samples.take(np.argsort(samples.times_s, kind="stable")), [*notes, note]


def equal_steps_of(
    samples: Samples, repairs: Repairs, *, label: Label, step_s: float | None
) -> tuple[float, float, Floats, list[Note]]:
    """Start [s], step [s], values in equal steps, and notes; gaps are refused or filled.

    Raises:
        InputError: a repair is not allowed, or the step cannot be determined.
    """
    check_choice(label, get_args(Label), field="label")
    samples, notes = in_order(samples, repairs)
    if samples.times_s.size < 2 and step_s is None:
        raise samples.refuse(0, "a single row does not define the step", fix="give step_s", time=True)
    usual_s, regular = usual_step_s(samples.times_s) if samples.times_s.size > 1 else (float(step_s or 0), True)
    if not regular and step_s is None:
        raise samples.refuse(1, "the steps are irregular", fix="give step_s and longest_step_s", time=True)
    if repairs.gaps != "refuse" and samples.unix:
        samples = samples.take(~_blank_leap_days(samples, usual_s))
    times_s, values, filled = _fill_gaps(samples, repairs, usual_s)
    edges_s = sample_edges(times_s, label=label, usual_s=usual_s)
    target_s = usual_s if step_s is None else step_s
    if (edges_s[-1] - edges_s[0]) / target_s > MOST_STEPS:
        problem = f"the rows cover more than {MOST_STEPS} steps of {target_s:g} s"
        raise samples.refuse(samples.cells.size - 1, problem, fix="check the stamps and step_s", time=True)
    steps = mean_steps(edges_s, values, step_s=target_s)
    if not steps.size:
        problem = f"the rows cover less than one step of {target_s:g} s"
        raise samples.refuse(0, problem, fix="give a shorter step_s", time=True)
    if steps is not values and (step_s is not None or not filled):
        rest_s = edges_s[-1] - edges_s[0] - steps.size * target_s
        rest = f", {rest_s:.10g} s at the end left out" if rest_s > SAME_S else ""
        filled.append(Note(f"steps of about {usual_s:.10g} s averaged to {target_s:.10g} s{rest}", level="fact"))
    return float(edges_s[0]), target_s, steps, [*notes, *filled]


def _fill_gaps(samples: Samples, repairs: Repairs, usual_s: float) -> tuple[Floats, Floats, list[Note]]:
    times_s, values, how = samples.times_s, samples.values, repairs.gaps
    notes: list[Note] = []
    missing = np.isnan(values)
    if missing.any():
        empty = np.flatnonzero(missing)
        if how == "refuse":
            fix = 'fill it, or set gaps = "interpolate" or "hold"'
            raise samples.refuse(int(empty[0]), "the value is missing", fix=fix)
        if missing.all():
            raise samples.refuse(int(empty[0]), "every value is missing", fix="choose another column")
        values = fill_between(times_s[~missing], values[~missing], times_s, how=how)
        notes.append(samples.note(f"missing values filled ({how})", empty))
    distances, whole_s = np.diff(times_s), float(times_s[-1] - times_s[0])
    longest_s = 1.5 * usual_s if repairs.longest_step_s is None else repairs.longest_step_s
    is_long = distances > longest_s + SAME_S
    if (held := np.flatnonzero((distances > 1.5 * usual_s) & (~is_long | own_steps(distances)))).size:
        is_long[held] = False
        what = f"steps up to {distances[held].max():.10g} s instead of {usual_s:.10g} s held"
        notes.append(replace(samples.note(what, held, distances[held].sum() / whole_s), level="fact"))
    long = np.flatnonzero(is_long)
    if not long.size:
        return times_s, values, notes
    at = int(long[0])
    if how == "refuse":
        problem = f"a gap of {distances[at]:.10g} s after {samples.show(at)}, where {usual_s:.10g} s are usual"
        fix = 'fill it, or set gaps = "interpolate" or "hold", or longest_step_s if this is not a gap'
        if samples.jump_s[at] < 0:
            fix += '; or clock_changes = "fill", because the clocks go back here'
        raise samples.refuse(at + 1, problem, fix=fix, time=True)
    if distances[long].sum() / usual_s > MOST_STEPS:
        far = int(long[np.argmax(distances[long])])
        problem = f"a gap of {distances[far]:.10g} s is too long to fill"
        raise samples.refuse(far + 1, problem, fix="check the stamp", time=True)
    new = [np.arange(times_s[k] + usual_s, times_s[k + 1] - usual_s * 1e-3, usual_s) for k in long]
    full_s = np.insert(times_s, np.repeat(long + 1, [part.size for part in new]), np.concatenate(new))
    full = fill_between(times_s, values, full_s, how=how)
    leap = np.array([samples.unix and _is_leap_day(times_s[k], distances[k], usual_s) for k in long])
    for k in long[leap]:
        inside = (full_s > times_s[k] + SAME_S) & (full_s < times_s[k + 1] - SAME_S)
        full[inside] = fill_between(times_s, values, full_s[inside] - _DAY_S, how="hold")
    leap_day = "29 February, which is missing, as 28 February"
    for gaps, what in ((long[leap], leap_day), (long[~leap], f"gaps filled ({how})")):
        if gaps.size:
            notes.append(samples.note(what, gaps + 1, (distances[gaps] - usual_s).sum() / whole_s))
    return full_s, full, notes


def _blank_leap_days(samples: Samples, usual_s: float) -> NDArray[np.bool_]:
    """Rows of a 29 February that has no values, shape (n,)."""
    known = np.flatnonzero(~np.isnan(samples.values))
    blank = np.zeros(samples.values.size, dtype=np.bool_)
    for k in np.flatnonzero(np.diff(known) > 1):
        before, after = known[k], known[k + 1]
        distance_s = float(samples.times_s[after] - samples.times_s[before])
        blank[before + 1 : after] = _is_leap_day(float(samples.times_s[before]), distance_s, usual_s)
    return blank


def _is_leap_day(before_s: float, distance_s: float, usual_s: float) -> bool:
    """Whether a gap is 29 February in some time zone: files of weather often leave it out."""
    if abs(distance_s - usual_s - _DAY_S) > SAME_S:
        return False
    noon = np.datetime64(round(before_s + usual_s + _DAY_S / 2), "s").astype("datetime64[h]")
    day = noon.astype("datetime64[D]")
    leap = [d for d in (day - 1, day, day + 1) if str(d).endswith("-02-29")]
    return bool(leap) and abs((noon - leap[0].astype("datetime64[h]")).astype(int) - 12) <= 14
