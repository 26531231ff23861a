"""Dated series beyond their own dates: the same date of another year, or whole weeks of a shorter series again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.resample import SAME_S
from greenbatch.energy.samples import MOST_STEPS
from greenbatch.energy.series import Series
from greenbatch.energy.stamps import show_date
from greenbatch.errors import InputError
from greenbatch.notes import Note

Ints = NDArray[np.int64]

YEARS = 4
"""Calendar years over which series are laid out, at least: one has a 29 February."""
OWN_YEAR, OTHER_YEAR, WEEKS = range(3)
"""Where the value of a step comes from: its own date, the same date of another year, whole weeks before or after."""
_DAY_S, _WEEK_S = 86_400, 604_800
_YEAR_DAYS = 365
_EPOCH = datetime(1970, 1, 1)


def dated(series: Series, unix_start_s: float) -> Series:
    """The series in Unix time; a typical year is repeated over four calendar years, from the workload's year on.

    Raises:
        InputError: it has no dates, or its typical year is not one of 365 days.
    """
    if series.clock == "unix":
        return series
    if series.clock == "elapsed":
        fix = 'use align = "trace-start", or a series with dates'
        raise InputError("has no dates", field=series.name, fix=fix)
    a_day = round(_DAY_S / series.step_s)
    if abs(a_day * series.step_s - _DAY_S) > SAME_S or series.values.size != _YEAR_DAYS * a_day:
        fix = 'use align = "trace-start"'
        raise InputError("is not a year of 365 days with a whole number of steps per day", field=series.name, fix=fix)
    year = (_EPOCH + timedelta(seconds=unix_start_s + series.utc_offset_s)).year
    days = (date(year, 1, 1) + timedelta(days=k) for k in range((date(year + YEARS, 1, 1) - date(year, 1, 1)).days))
    rows = [
        (date(2001, day.month, min(day.day, 28) if day.month == 2 else day.day) - date(2001, 1, 1)).days for day in days
    ]
    values = series.values.reshape(_YEAR_DAYS, a_day)[rows].ravel()
    start_s = (datetime(year, 1, 1) - _EPOCH).total_seconds() - series.utc_offset_s + series.start_s
    note = f"{series.name}: typical year laid out over {year} to {year + YEARS - 1}, 29 February as 28 February"
    return replace(
        series, clock="unix", values=values, start_s=start_s, notes=(*series.notes, Note(note, level="fact"))
    )


def whole_years_s(every: Mapping[str, Series], first_s: float, last_s: float) -> tuple[float, float]:
    """First and last Unix time of the calendar years that hold the jobs and a year more, at least `YEARS`. [s]

    A year begins where a typical year among the series does, else at midnight in UTC.
    """
    offset_s = next((series.utc_offset_s for series in every.values() if series.utc_offset_s), 0.0)
    first, last = ((_EPOCH + timedelta(seconds=at_s + offset_s)).year for at_s in (first_s, last_s))
    years = (datetime(first, 1, 1), datetime(max(first + YEARS, last + 2), 1, 1))
    begin_s, end_s = ((year - _EPOCH).total_seconds() - offset_s for year in years)
    return begin_s, end_s


def laid_out(
    key: str, series: Series, first_s: float, last_s: float, jobs_s: tuple[float, float]
) -> tuple[Series, list[Note]]:
    """A dated series from about ``first_s`` to ``last_s`` in its own steps, and a note if jobs fall on other dates.

    Args:
        key: name of the series at the site.
        series: in Unix time.
        first_s: Unix time that the result covers from. [s]
        last_s: Unix time that it covers to. [s]
        jobs_s: Unix time of the first submission and of the last end of a job, for the note. [s]
    """
    step_s, count = series.step_s, series.values.size
    first = min(int(np.floor((first_s - series.start_s) / step_s + SAME_S)), 0)
    last = max(int(np.ceil((last_s - series.start_s) / step_s - SAME_S)), count)
    if first == 0 and last == count:
        return series, []
    if last - first > MOST_STEPS:
        problem = f"its steps of {step_s:g} s, repeated over the years of the jobs, are more than {MOST_STEPS}"
        raise InputError(problem, field=key, fix="read the file with a longer step_s, or set site.repeat = false")
    rows = np.arange(first, last)
    source, kind = _sources(series, rows)
    begins_s = series.start_s + rows * step_s
    of_jobs = (begins_s + step_s > jobs_s[0]) & (begins_s < max(jobs_s[1], jobs_s[0] + step_s))
    again = "all" if series.length_s < _DAY_S else "whole days" if series.length_s < _WEEK_S else "whole weeks"
    words = {
        OTHER_YEAR: "outside these dates, values of the same date in another year",
        WEEKS: f"outside these dates, {again} of it again",
    }
    notes = []
    for which, told in words.items():
        if hours := float(np.mean(kind[of_jobs] == which)) if of_jobs.any() else 0.0:
            what = f"{key} {'(' + ', '.join(series.inputs) + ') ' if series.inputs else ''}covers "
            what += f"{show_date(series.start_s)} to {show_date(series.end_s)}: {told}"
            notes.append(Note(what, about=key, level="warning", shares=((hours, "hours"),)))
    return replace(series, values=series.values[source], start_s=series.start_s + first * step_s), notes


def _sources(series: Series, rows: Ints) -> tuple[Ints, Ints]:
    """Step of the series that each step beyond or within it takes its value from, and where that is, shape (n,)."""
    step_s, count = series.step_s, series.values.size
    source, kind = rows.copy(), np.full(rows.shape, OWN_YEAR)
    out = np.flatnonzero((rows < 0) | (rows >= count))
    shift_s = series.utc_offset_s + series.start_s
    local = (np.round((shift_s + rows[out] * step_s) * 1e3)).astype(np.int64).astype("datetime64[ms]")
    months, days = local.astype("datetime64[M]"), local.astype("datetime64[D]")
    year, month = months.astype("datetime64[Y]").astype(np.int64), months.astype(np.int64) % 12
    of_month, of_day = (days - months).astype(np.int64), (local - days).astype(np.int64) / 1e3
    period = _period(series)
    best, nearest = rows[out] % period, np.full(out.shape, np.iinfo(np.int64).max)
    edges = (np.array([shift_s, shift_s + series.length_s]) * 1e3).astype(np.int64).astype("datetime64[ms]")
    first_year, last_year = edges.astype("datetime64[Y]").astype(np.int64)
    for other in range(first_year, last_year + 1):
        leap_day = (month == 1) & (of_month == 28) & (not _is_leap(other + 1970))
        begin = (12 * (np.int64(other)) + month).astype("datetime64[M]").astype("datetime64[D]")
        day = (begin + (of_month - leap_day)).astype(np.int64)
        row = np.round((day * _DAY_S + of_day - shift_s) / step_s).astype(np.int64)
        closer = (row >= 0) & (row < count) & (np.abs(other - year) < nearest)
        best[closer], nearest[closer] = row[closer], np.abs(other - year)[closer]
    source[out] = best
    kind[out] = np.where(nearest < np.iinfo(np.int64).max, OTHER_YEAR, WEEKS)
    return source, kind


def _period(series: Series) -> int:
    """Steps after which a series that has no such date is used again: whole weeks, else days, else all of it."""
    for unit_s in (_WEEK_S, _DAY_S):
        whole = int(series.length_s / unit_s + 1e-9) * unit_s / series.step_s
        if whole >= 1:
            return round(whole)
    return series.values.size


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
