"""Time columns: elapsed seconds, Unix seconds, or calendar stamps with and without a zone, as float seconds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.columns import Columns, numbers
from greenbatch.errors import InputError

Floats = NDArray[np.float64]

TimeKind = Literal["elapsed", "unix", "utc", "local", "offset", "ignore"]
"""What a time column contains: seconds since the start; Unix seconds; stamps in UTC; naive stamps in a zone; stamps
with an offset; or ``"ignore"`` (rows are equal steps, starting at 0)."""

_FIXED = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_EPOCH = datetime(1970, 1, 1)
_EXAMPLE = datetime(2000, 12, 31, 23, 59, 59)
_DAY_S = 86_400.0
FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Years of stamps: the rules of clocks are known in these, and sums of times stay within the calendar."""
_MIDNIGHT = re.compile(r"(?:^|(?<=[ T]))24(?=:00|$)")
DATE_ONLY = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
YEARS_S = (-2_208_988_800.0, 4_133_980_800.0)
"""Unix time of their begin and end. [s]"""
_MOST_S = 1e11
"""3000 years: the longest elapsed time."""


def zone(name: str) -> tzinfo:
    """An IANA zone (``"Europe/Berlin"``), ``"UTC"``, or a fixed offset (``"+01:00"``, ``"UTC-8"``).

    Raises:
        InputError: no such zone.
    """
    if name.upper() in {"UTC", "Z"}:
        return UTC
    if (fixed := _FIXED.fullmatch(name)) is not None:
        sign = -1 if fixed[1] == "-" else 1
        offset = sign * timedelta(hours=int(fixed[2]), minutes=int(fixed[3] or 0))
        if abs(offset) <= timedelta(hours=14):
            return timezone(offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        fix = 'give an IANA name such as "Europe/Berlin", or an offset such as "+01:00"'
        raise InputError(f"there is no time zone {name!r}", field="time_zone", fix=fix) from None


def zone_offset_s(name: str) -> float:
    """Offset from UTC [s] of a fixed-offset zone.

    Raises:
        InputError: no such zone, or its clocks change.
    """
    fixed = zone(name)
    if isinstance(fixed, ZoneInfo):
        fix = 'give an offset such as "-08:00"; weather files keep standard time all year'
        raise InputError(f"{name!r} is not a fixed offset", field="time_zone", fix=fix)
    return (fixed.utcoffset(None) or timedelta(0)).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How the time columns of a file are read."""

    kind: TimeKind
    columns: Sequence[str]
    """One column, or several whose cells are joined by a space: a date and an hour."""
    time_zone: str | None = None
    """Required for ``kind="local"``, refused otherwise."""
    time_format: str | None = None
    """``strptime`` format of the stamps; by default ISO 8601. With ``...`` at its end, what follows in a cell is not
    read; numbers must then have leading zeros."""
    ends: bool = False
    """Stamps mark the end of their interval. If they are a date and an hour up to 24:00, they name the interval, "hour
    ending": the clocks are those at its begin."""
    repeated_column: str | None = None
    """Column that is "Y" in the second of two equal local hours."""

    @property
    def name(self) -> str:
        """The columns for messages."""
        return " + ".join(self.columns)


_SECOND = re.compile(r"(\d{1,2})X")
"""ISO New England's mark of the second of two equal hours, "02X"."""
_REPEATED = {"y": True, "yes": True, "true": True, "1": True, "n": False, "no": False, "false": False, "0": False}


def hour_beside(column: str) -> str:
    """The fix for a column of dates without hours."""
    return f'name both: time_columns = [{json.dumps(column)}, "Hour Ending"], with your file\'s column names'


def read_times(table: Columns, clock: Clock) -> tuple[Floats, Floats]:
    """Time of each row, and how far the clocks of the zone jump at its local time, shape (n,). [s]

    Elapsed times are unchanged; all others become Unix time. The jump is positive where the clocks skip the local time,
    negative where it occurs twice, else 0. The hour that occurs twice when the clocks go back is resolved by the order
    of the rows, its first occurrence is summer time, or by a column that says so.

    Raises:
        InputError: a stamp is missing, unreadable, or not of the declared kind.
    """
    kind, time_zone = clock.kind, clock.time_zone
    if kind not in get_args(TimeKind):
        raise InputError(f"is {kind!r}", field="time_kind", fix="use one of " + ", ".join(get_args(TimeKind)))
    if (kind == "local") != (time_zone is not None):
        problem, fix = f"is {time_zone!r}, but stamps are {kind}", 'leave it out, or set time_kind = "local"'
        if time_zone is None:
            problem, fix = "is missing", "local stamps require a time zone"
        raise InputError(problem, file=table.file, field="time_zone", fix=fix)
    if time_zone is not None:
        zone(time_zone)  # an unknown zone is refused before the first stamp
    cells = _joined(table, clock.columns)
    jump_s = np.zeros(len(cells))
    if kind in {"elapsed", "unix"}:
        column = clock.columns[0]
        times = numbers(table, column)
        if (missing := np.flatnonzero(np.isnan(times))).size:
            raise table.refuse(int(missing[0]), "the time is missing", field=column, fix="remove the line")
        low_s, high_s = YEARS_S if kind == "unix" else (-_MOST_S, _MOST_S)
        if (wrong := np.flatnonzero((times < low_s) | (times > high_s))).size:
            known = f"in the years {FIRST_YEAR} to {LAST_YEAR}" if kind == "unix" else "a plausible time"
            problem = f"{table.cells[column][wrong[0]]} s is not {known}"
            raise table.refuse(int(wrong[0]), problem, field=column, fix="give seconds, not milliseconds")
        return times, jump_s
    stamps = [_stamp(table, row, cell, clock) for row, cell in enumerate(cells)]
    for row, stamp in enumerate(stamps):
        _check_offset(table, row, stamp, clock.name, kind)
    if kind != "local":
        naive = (stamp.replace(tzinfo=None) - (stamp.utcoffset() or timedelta(0)) for stamp in stamps)
        return np.array([(stamp - _EPOCH).total_seconds() for stamp in naive], dtype=np.float64), jump_s
    names = clock.ends and (len(clock.columns) > 1 or any(_MIDNIGHT.search(cell) for cell in cells))
    back = timedelta(seconds=_usual_s(stamps) if names else 0)
    second_of = _second_of(table, clock.repeated_column)
    local, before = zone(time_zone or ""), -np.inf
    times = np.empty(len(cells))
    for row, stamp in enumerate(stamps):
        begins = stamp - back
        naive_s = (begins - _EPOCH).total_seconds()
        first, second = (_offset(local, begins, fold) for fold in (0, 1))
        jump_s[row] = second - first
        if second_of is None or first <= second:
            is_second = first > second and naive_s - first <= before
        else:
            is_second = second_of[row]
        before = naive_s - (second if is_second else first)
        times[row] = before + back.total_seconds()
    return times, jump_s


def _joined(table: Columns, columns: Sequence[str]) -> list[str]:
    """The text of each stamp."""
    if len(columns) == 1:
        return table.cells[columns[0]]
    parts = zip(*(table.cells[column] for column in columns), strict=True)
    return [" ".join(_SECOND.sub(r"\1", part) for part in row) for row in parts]


def _second_of(table: Columns, column: str | None) -> list[bool] | None:
    """Whether each row is the second of two equal local hours."""
    if column is None:
        return None
    for row, cell in enumerate(table.cells[column]):
        if cell.lower() not in _REPEATED:
            raise table.refuse(row, f"{cell!r} is neither Y nor N", field=column, fix="correct the cell")
    return [_REPEATED[cell.lower()] for cell in table.cells[column]]


def _usual_s(stamps: Sequence[datetime]) -> float:
    """The most common distance of neighboring stamps > 0. [s]"""
    distances = Counter((after - before).total_seconds() for before, after in pairwise(stamps))
    return max((s for s in distances if s > 0), key=lambda s: distances[s], default=3600.0)


def show(seconds: float, *, unix: bool) -> str:
    """A time formatted for messages: an ISO stamp in UTC, or elapsed seconds."""
    if not unix:
        return f"{seconds:.10g} s"
    return (_EPOCH + timedelta(seconds=float(seconds))).isoformat() + "Z"


def show_date(unix_s: float) -> str:
    """The date in UTC, with the time of day unless that is midnight."""
    return show(round(unix_s), unix=True).removesuffix("Z").removesuffix(":00").removesuffix("T00:00")


def utc_offsets(unix_s: Floats, name: str) -> Floats:
    """Local time minus UTC of a zone at ascending Unix times, same shape. [s]

    Raises:
        InputError: no such zone, or a time is not in the years of `YEARS_S`.
    """
    local = zone(name)
    if not unix_s.size:
        return np.zeros(0)
    if not YEARS_S[0] <= unix_s[0] <= unix_s[-1] <= YEARS_S[1]:
        problem = f"covers {show(float(unix_s[0]), unix=True)} to {show(float(unix_s[-1]), unix=True)}"
        fix = f"local time is known from {FIRST_YEAR} to {LAST_YEAR}; check the dates"
        raise InputError(problem, field="time_zone", fix=fix)

    def at(seconds: float) -> float:
        aware = datetime.fromtimestamp(seconds, UTC).astimezone(local)
        return (aware.utcoffset() or timedelta(0)).total_seconds()

    days_s = np.arange(unix_s[0] // _DAY_S, unix_s[-1] // _DAY_S + 2) * _DAY_S
    known_s = np.array([at(day_s) for day_s in days_s.tolist()])
    starts_s, offsets_s = [days_s[0]], [known_s[0]]
    for k in np.flatnonzero(np.diff(known_s)):  # a zone does not change its clocks twice a day
        low_s, high_s = int(days_s[k]), int(days_s[k + 1])
        while high_s - low_s > 1:
            middle_s = (low_s + high_s) // 2
            low_s, high_s = (middle_s, high_s) if at(middle_s) == known_s[k] else (low_s, middle_s)
        starts_s.append(high_s)
        offsets_s.append(known_s[k + 1])
    found: Floats = np.array(offsets_s)[np.searchsorted(starts_s, unix_s, side="right") - 1]
    return found


def _offset(local: tzinfo, stamp: datetime, fold: int) -> float:
    return (local.utcoffset(stamp.replace(fold=fold)) or timedelta(0)).total_seconds()


def _stamp(table: Columns, row: int, cell: str, clock: Clock) -> datetime:
    form = clock.time_format
    for days in (0, 1):  # 24:00 is the end of the day
        try:
            stamp = _parsed(_MIDNIGHT.sub("00", cell) if days else cell, form)
        except ValueError:
            continue
        except re.error:
            fix = 'name each part once, for instance "%d/%m/%Y %H:%M"'
            raise InputError(f"{form!r} is not a format", file=table.file, field="time_format", fix=fix) from None
        if not FIRST_YEAR <= stamp.year <= LAST_YEAR:
            problem = f"{cell!r} is not in the years {FIRST_YEAR} to {LAST_YEAR}"
            raise table.refuse(row, problem, field=clock.name, fix="correct the stamp")
        return stamp + timedelta(days=days)
    expected = f"a stamp of the form {form}" if form else "an ISO stamp such as 2024-01-31 13:00"
    fix = "correct it, or set time_format" + ("" if form else ' (for instance "%d/%m/%Y %H:%M")')
    if len(clock.columns) == 1 and DATE_ONLY.fullmatch(cell):
        fix += f"; if another column has the hour, {hour_beside(clock.columns[0])}"
    raise table.refuse(row, f"{cell!r} is not {expected}", field=clock.name, fix=fix)


def _parsed(cell: str, form: str | None) -> datetime:
    if not form:
        return datetime.fromisoformat(cell)
    if form.endswith("..."):
        head = form.removesuffix("...")
        return datetime.strptime(cell[: len(_EXAMPLE.strftime(head))], head)
    return datetime.strptime(cell, form)


def _check_offset(table: Columns, row: int, stamp: datetime, column: str, kind: TimeKind) -> None:
    offset = stamp.utcoffset()
    if kind == "offset" and offset is None:
        fix = 'set time_kind = "local" with a time_zone, or time_kind = "utc"'
        raise table.refuse(row, "the stamp has no offset", field=column, fix=fix)
    if (kind == "local" and offset is not None) or (kind == "utc" and offset):
        raise table.refuse(row, "the stamp has an offset", field=column, fix='set time_kind = "offset"')
