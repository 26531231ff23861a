"""Time-of-use tariffs: prices by month, day of the week, holiday and hour of local time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.resample import mean_steps
from greenbatch.energy.stamps import utc_offsets
from greenbatch.errors import InputError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun", "holiday")
"""Kinds of days: those of the week that are no holidays, and holidays."""
GROUPS = {"weekday": DAYS[:5], "weekend": DAYS[5:7], "all": DAYS}
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
_DAY_MIN, _DAY_S = 1440, 86_400
_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
_DATE = re.compile(r"(?:(\d{4})-)?(\d{2})-(\d{2})")
_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Months, days and hours with one price.

    Raises:
        InputError: there is no such month, day or hour.
    """

    name: str
    """Name of the period, shown in messages: "peak", "night", ..."""
    value: float
    """Price in the unit of the tariff."""
    months: Sequence[int] = tuple(range(1, 13))
    """Months, 1 to 12; by default all."""
    days: Sequence[str] = ("all",)
    """``mon`` to ``sun``, which are days that are no holidays; ``holiday``; ``weekday``, Monday to Friday; ``weekend``,
    Saturday and Sunday; ``all``."""
    hours: Sequence[str] = ("00:00-24:00",)
    """Spans of local time, the end excluded: "07:00-19:30". One that runs over midnight, "22:00-06:00", is the end and
    the beginning of the same day."""

    def __post_init__(self) -> None:
        if not self.months or not set(self.months) <= set(range(1, 13)):
            raise InputError(f"is {list(self.months)}", field="months", fix="give numbers from 1 to 12")
        if not self.days or not set(self.days) <= {*DAYS, *GROUPS}:
            fix = "use " + ", ".join((*DAYS, *GROUPS))
            raise InputError(f"is {list(self.days)}", field="days", fix=fix)
        self.spans_min()

    def day_kinds(self) -> list[int]:
        """Positions in ``DAYS``, each once."""
        return sorted({DAYS.index(day) for given in self.days for day in GROUPS.get(given, (given,))})

    def spans_min(self) -> list[tuple[int, int]]:
        """Start and end of every span of hours within a day. [min]"""
        spans = []
        for text in self.hours:
            found = _HOURS.fullmatch(text)
            start, end = (60 * int(found[k]) + int(found[k + 1]) for k in (1, 3)) if found else (0, 0)
            if found is None or start == end or max(start, end) > _DAY_MIN or max(found[2], found[4]) >= "60":
                fix = 'write "07:00-19:30", from 00:00 to 24:00'
                raise InputError(f"{text!r} is not a span of hours", field="hours", fix=fix)
            spans += [(start, end)] if start < end else [(0, end), (start, _DAY_MIN)]
        return spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Prices by the calendar. Every minute of every month and kind of day has exactly one.

    Raises:
        InputError: two periods overlap or none applies, a holiday is not a date, or there is no such time zone.
    """

    periods: Sequence[Period]
    time_zone: str
    """IANA zone or fixed offset of the hours."""
    holidays: Sequence[str] = ()
    """Dates: "2024-12-25", or "12-25" in every year."""

    def __post_init__(self) -> None:
        utc_offsets(np.zeros(1), self.time_zone)
        _holidays(self.holidays)
        self.table()

    def table(self) -> Indices:
        """Index of the period by month, kind of day and minute, shape (12, 8, 1440); -1 on holidays without any."""
        table = np.full((12, len(DAYS), _DAY_MIN), _NONE)
        for index, period in enumerate(self.periods):
            if period.day_kinds() == [7] and not self.holidays:
                problem = f"period {period.name!r} is for holidays, but none are listed"
                raise InputError(problem, field="holidays", fix='list them, for instance "12-25"')
            for month, day, (start, end) in product(sorted(set(period.months)), period.day_kinds(), period.spans_min()):
                part = table[month - 1, day, start:end]
                if (taken := np.flatnonzero(part != _NONE)).size:
                    other = self.periods[part[taken[0]]].name
                    at = _when(month - 1, day, start + int(taken[0]))
                    problem = f"periods {other!r} and {period.name!r} overlap {at}"
                    raise InputError(problem, field="periods", fix="change the months, days or hours of one of them")
                part[:] = index
        self._check_complete(table)
        return table

    def _check_complete(self, table: Indices) -> None:
        needed = table if self.holidays else table[:, :7]
        if not (missing := np.argwhere(needed == _NONE)).size:
            return
        month, day, minute = missing[0].tolist()
        row = table[month, day]
        before, after = row[:minute][row[:minute] != _NONE], row[minute:][row[minute:] != _NONE]
        around = [f"after {self.periods[before[-1]].name!r}"] if before.size else []
        around += [f"before {self.periods[after[0]].name!r}"] if after.size else []
        problem = ", ".join([f"no period has a price {_when(month, day, minute)}", *around])
        raise InputError(problem, field="periods", fix="add a period, or extend one")

    def prices(self, start_s: float, step_s: float, slots: int) -> Floats:
        """Mean price in equal slots, in the unit of the tariff, shape (slots,).

        Args:
            start_s: Unix time at which slot 0 starts. [s]
            step_s: length of a slot. [s]
            slots: number of slots.
        """
        edges_min = (edge for period in self.periods for span in period.spans_min() for edge in span)
        fine_s = 60.0 * gcd(15, *edges_min)  # clocks change on quarter hours
        end_s = start_s + slots * step_s
        begins_s = np.arange(float(np.floor(start_s / fine_s)), float(np.ceil(end_s / fine_s))) * fine_s
        local_s = begins_s + utc_offsets(begins_s, self.time_zone)
        day = np.asarray(local_s // _DAY_S, dtype=np.int64)
        month, of_month = calendar_day(day)
        dates, yearly = _holidays(self.holidays)
        free = np.isin(day, dates) | np.isin(100 * (month % 12 + 1) + of_month, yearly)
        kind = np.where(free, len(DAYS) - 1, (day + 3) % 7)  # 1 January 1970 was a Thursday
        minute = np.asarray(local_s % _DAY_S // 60, dtype=np.int64)
        values = np.array([period.value for period in self.periods], dtype=np.float64)
        fine = values[self.table()[month % 12, kind, minute]]
        edges_s = np.clip(np.append(begins_s, begins_s[-1] + fine_s), start_s, end_s)
        return mean_steps(edges_s, fine, step_s=step_s)[:slots]


def calendar_day(day: Indices) -> tuple[Indices, Indices]:
    """Months since January 1970 and day of the month, 1 to 31, of days since 1 January 1970."""
    dates = day.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    return months.astype(np.int64), (dates - months.astype("datetime64[D]")).astype(np.int64) + 1


def calendar_months(start_s: float, step_s: float, slots: int, time_zone: str) -> Indices:
    """Calendar month of each slot in local time, numbered from 0, shape (slots,): ``Grid.month``.

    Args:
        start_s: Unix time at which slot 0 starts. [s]
        step_s: length of a slot. [s]
        slots: number of slots.
        time_zone: IANA zone or fixed offset.

    Raises:
        InputError: no such zone, or the slots are not in the years 1900 to 2100.
    """
    begins_s: Floats = start_s + np.arange(float(slots)) * step_s
    day = np.asarray((begins_s + utc_offsets(begins_s, time_zone)) // _DAY_S, dtype=np.int64)
    return np.unique(calendar_day(day)[0], return_inverse=True)[1]


def _holidays(given: Sequence[str]) -> tuple[list[int], list[int]]:
    """Days since 1970, and 100 x month + day of holidays of every year."""
    dates, yearly = [], []
    for text in given:
        found = _DATE.fullmatch(text)
        try:
            day = date(int(found[1] or 2000), int(found[2]), int(found[3])) if found else None
        except ValueError:
            day = None
        if found is None or day is None:
            fix = 'write "2024-12-25", or "12-25" for every year'
            raise InputError(f"{text!r} is not a date", field="holidays", fix=fix)
        if found[1]:
            dates.append((day - date(1970, 1, 1)).days)
        else:
            yearly.append(100 * day.month + day.day)
    return dates, yearly


def _when(month: int, day: int, minute: int) -> str:
    return f"on {DAYS[day]} at {minute // 60:02}:{minute % 60:02} in {_MONTHS[month]}"
