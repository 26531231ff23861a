"""Layouts of weather files: EPW, TMY3, NSRDB PSM3/PSM4, windpowerlib's CSV, PVGIS' CSV and Open-Meteo's JSON.

A reader only locates the cells, times and location; `weather` reads and checks values and resamples them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.columns import Columns, read_rows
from greenbatch.energy.resample import Label
from greenbatch.energy.series import Clock
from greenbatch.energy.stamps import Clock as FileClock
from greenbatch.energy.stamps import read_times, zone_offset_s
from greenbatch.errors import InputError
from greenbatch.notes import Note

Floats = NDArray[np.float64]

_HOUR_S, _DAY_S = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a file holds a quantity."""

    column: str
    unit: str
    missing: tuple[float, ...] = ()
    """Codes for "no value"."""
    label: Label | None = None
    """Which point of its interval a stamp marks, if it differs from the rest of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherFile:
    """Contents of a weather file before its values are checked."""

    layout: str
    table: Columns
    time_column: str
    times_s: Floats
    """Unix time, or seconds since the start of the typical year. [s]"""
    clock: Clock
    label: Label
    cells: Mapping[str, Cell]
    """Name of a series -> its cells."""
    utc_offset_s: float = 0.0
    place: Mapping[str, float] = field(default_factory=dict)
    """``latitude_deg``, ``longitude_deg``, ``elevation_m``, if the file states them."""
    notes: tuple[Note, ...] = ()


def find_layout(text: str, *, file: str, digest: str, time_zone: str | None) -> WeatherFile:
    """Recognize the layout of a weather file by its first lines and read it.

    Raises:
        InputError: no layout matches, or the file does not follow its layout.
    """
    head = text.lstrip()[:4000]
    if head.startswith("{"):
        return _open_meteo(text, file=file, digest=digest, time_zone=time_zone)
    rows, lines = read_rows(text, file=file)
    for fits, read in _LAYOUTS:
        if fits(rows):
            return read(rows, lines, file, digest, time_zone)
    fix = "download it as EPW; also read: TMY3, NSRDB PSM3/PSM4, PVGIS TMY CSV, windpowerlib CSV, Open-Meteo JSON"
    if len(rows) > 1 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:  # a plain table
        fix += '; or read a column of it with kind = "pv", "turbine" or "power"'
    raise InputError("is not a weather file that greenbatch knows", file=file, line=1, fix=fix)


_EPW = {
    "temperature_c": (6, Cell("dry bulb temperature", "degC", (99.9,))),
    "pressure_pa": (9, Cell("atmospheric pressure", "Pa", (999_999.0,))),
    "ghi_w_m2": (13, Cell("global horizontal radiation", "W/m2", (9999.0,))),
    "dni_w_m2": (14, Cell("direct normal radiation", "W/m2", (9999.0,))),
    "dhi_w_m2": (15, Cell("diffuse horizontal radiation", "W/m2", (9999.0,))),
    "wind_m_s": (21, Cell("wind speed", "m/s", (999.0,))),
}
"""Position of the field in a data line; codes after EnergyPlus, Auxiliary Programs, "EPW CSV format"."""


def _epw(rows: list[list[str]], lines: list[int], file: str, digest: str, time_zone: str | None) -> WeatherFile:
    place = _numbers(file, 1, rows[0], {"latitude_deg": 6, "longitude_deg": 7, "utc_offset_h": 8, "elevation_m": 9})
    start = next((k + 1 for k, row in enumerate(rows) if row[0].strip().upper() == "DATA PERIODS"), None)
    if start is None or start >= len(rows):
        raise InputError("has no data below DATA PERIODS", file=file, fix="give a complete EPW file")
    per_hour = int(_numbers(file, lines[start - 1], rows[start - 1], {"per_hour": 2})["per_hour"])
    table = _table(
        file,
        digest,
        rows[start:],
        lines[start:],
        {"year": 0, "month": 1, "day": 2, "hour": 3, "minute": 4, **{c.column: at for at, c in _EPW.values()}},
    )
    stamps = _integers(table, {"year": (1, 9999), "month": (1, 12), "day": (1, 31), "hour": (1, 24), "minute": (0, 60)})
    # Hours 1..24 mark the end of the interval. The minute counts only with several records per hour; else it may be
    # 0, 30 or 60.
    minutes = stamps["minute"] if per_hour > 1 else np.full(stamps["minute"].shape, 60)
    return _calendar(
        "EPW", table, "hour", stamps, (stamps["hour"] - 1) * _HOUR_S + minutes * 60.0,
        label="end", cells={name: cell for name, (_, cell) in _EPW.items()}, place=place, time_zone=time_zone,
    )  # fmt: skip


_TMY3 = {
    "temperature_c": Cell("Dry-bulb (C)", "degC", (-9900.0,)),
    "pressure_pa": Cell("Pressure (mbar)", "mbar", (-9900.0,)),
    "ghi_w_m2": Cell("GHI (W/m^2)", "W/m2", (-9900.0,)),
    "dni_w_m2": Cell("DNI (W/m^2)", "W/m2", (-9900.0,)),
    "dhi_w_m2": Cell("DHI (W/m^2)", "W/m2", (-9900.0,)),
    "wind_m_s": Cell("Wspd (m/s)", "m/s", (-9900.0,)),
}
"""Source: NREL/TP-581-43156, Users Manual for TMY3 Data Sets, Table 1-3."""


def _tmy3(rows: list[list[str]], lines: list[int], file: str, digest: str, time_zone: str | None) -> WeatherFile:
    place = _numbers(file, 1, rows[0], {"utc_offset_h": 3, "latitude_deg": 4, "longitude_deg": 5, "elevation_m": 6})
    header = [name.strip() for name in rows[1]]
    day, hour = "Date (MM/DD/YYYY)", "Time (HH:MM)"
    places = {name: _place(file, lines[1], header, name) for name in (day, hour, *(c.column for c in _TMY3.values()))}
    table = _table(file, digest, rows[2:], lines[2:], places)
    parts: dict[str, list[str]] = {"month": [], "day": [], "year": [], "hour": [], "minute": []}
    for row, (stamp, clock) in enumerate(zip(table.cells[day], table.cells[hour], strict=True)):
        pieces = [*stamp.split("/"), *clock.split(":")]
        if len(pieces) != 5:
            fix = "write MM/DD/YYYY and HH:MM"
            raise table.refuse(row, f"{stamp!r} {clock!r} is not a date and a time", field=day, fix=fix)
        for name, piece in zip(parts, pieces, strict=True):
            parts[name].append(piece)
    table.cells.update(parts)
    stamps = _integers(table, {"year": (1, 9999), "month": (1, 12), "day": (1, 31), "hour": (0, 24), "minute": (0, 59)})
    seconds = stamps["hour"] * _HOUR_S + stamps["minute"] * 60.0
    return _calendar(
        "TMY3", table, hour, stamps, seconds, label="end", cells=_TMY3, place=place, time_zone=time_zone
    )  # fmt: skip


_PSM = {
    "temperature_c": Cell("Temperature", "degC", (-9999.0,)),
    "pressure_pa": Cell("Pressure", "mbar", (-9999.0,)),
    "ghi_w_m2": Cell("GHI", "W/m2", (-9999.0,)),
    "dni_w_m2": Cell("DNI", "W/m2", (-9999.0,)),
    "dhi_w_m2": Cell("DHI", "W/m2", (-9999.0,)),
    "wind_m_s": Cell("Wind Speed", "m/s", (-9999.0,)),
}
_PSM_TIMES = {"year": "Year", "month": "Month", "day": "Day", "hour": "Hour", "minute": "Minute"}
_PSM_PLACE = {"latitude_deg": "Latitude", "longitude_deg": "Longitude", "elevation_m": "Elevation"}


def _psm(rows: list[list[str]], lines: list[int], file: str, digest: str, time_zone: str | None) -> WeatherFile:
    """NSRDB's files start with two lines about the location; tables saved from them may not."""
    place: dict[str, float] = {}
    at = next(k for k, row in enumerate(rows[:3]) if {"Year", "Month"} <= set(row))
    if at == 2:
        about = {name: k for k, name in enumerate(rows[0])}
        known = {
            key: about[name] for key, name in (*_PSM_PLACE.items(), ("utc_offset_h", "Time Zone")) if name in about
        }
        place = _numbers(file, lines[1], rows[1], known)
    header = [name.strip() for name in rows[at]]
    # Files with a location pad the header with empty names; tables lack the columns that were not requested from NSRDB.
    cells = {name: cell for name, cell in _PSM.items() if cell.column in header}
    names = {**_PSM_TIMES, **{cell.column: cell.column for cell in cells.values()}}
    places = {key: _place(file, lines[at], header, name) for key, name in names.items()}
    table = _table(file, digest, rows[at + 1 :], lines[at + 1 :], places)
    stamps = _integers(table, {"year": (1, 9999), "month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59)})
    seconds = stamps["hour"] * _HOUR_S + stamps["minute"] * 60.0
    return _calendar(
        "NSRDB PSM", table, "minute", stamps, seconds, label="middle", cells=cells, place=place, time_zone=time_zone
    )  # fmt: skip


_WINDPOWERLIB = {
    "temperature": ("temperature_c", "K"),
    "pressure": ("pressure_pa", "Pa"),
    "wind_speed": ("wind_m_s", "m/s"),
}


def _windpowerlib(
    rows: list[list[str]], lines: list[int], file: str, digest: str, time_zone: str | None
) -> WeatherFile:
    """Two header lines, name and height; stamps have an offset. Series are named ``wind_m_s_80m`` etc."""
    if time_zone is not None:
        problem = f"is {time_zone!r}, but the stamps have an offset"
        raise InputError(problem, file=file, field="time_zone", fix="leave it out")
    if len(rows) < 3 or len(rows[0]) != len(rows[1]):
        raise InputError(
            "requires two header lines and data", file=file, line=2, fix="give the name and height of each column"
        )
    columns = [f"{name.strip()} at {height.strip()} m" for name, height in zip(rows[0], rows[1], strict=True)]
    table = _table(file, digest, rows[2:], lines[2:], {name: k for k, name in enumerate(columns)})
    cells = {}
    for name, height, column in zip(rows[0], rows[1], columns, strict=True):
        if name.strip() in _WINDPOWERLIB:
            series, unit = _WINDPOWERLIB[name.strip()]
            cells[f"{series}_{height.strip()}m"] = Cell(column, unit)
    times_s, _ = read_times(table, FileClock(kind="offset", columns=columns[:1]))
    return WeatherFile(
        layout="windpowerlib",
        table=table,
        time_column=columns[0],
        times_s=times_s,
        clock="unix",
        label="start",
        cells=cells,
    )


_PVGIS = {
    "T2m": ("temperature_c", "degC"),
    "SP": ("pressure_pa", "Pa"),
    "G(h)": ("ghi_w_m2", "W/m2"),
    "Gb(n)": ("dni_w_m2", "W/m2"),
    "Gd(h)": ("dhi_w_m2", "W/m2"),
    "WS10m": ("wind_m_s_10m", "m/s"),
}
_PVGIS_STAMP = re.compile(r"(\d{4})(\d{2})(\d{2}):(\d{2})(\d{2})")
_PVGIS_PLACE = {
    "latitude_deg": "Latitude (decimal degrees)", "longitude_deg": "Longitude (decimal degrees)",
    "elevation_m": "Elevation (m)",
}  # fmt: skip


def _pvgis(rows: list[list[str]], lines: list[int], file: str, digest: str, time_zone: str | None) -> WeatherFile:
    """A typical year of PVGIS as CSV: some lines about the place and the months, hours in UTC, some lines of words."""
    start = next((k for k, row in enumerate(rows) if row[0].strip() == "time(UTC)"), None)
    if start is None:
        fix = "download the typical meteorological year (TMY), as CSV or EPW"
        raise InputError("is a file of PVGIS, but no typical year", file=file, field="time(UTC)", fix=fix)
    header = [name.strip() for name in rows[start]]
    about = {row[0].partition(":")[0].strip(): row[0].partition(":")[2].strip() for row in rows[:start]}
    place: dict[str, float] = {}
    for key, name in _PVGIS_PLACE.items():
        if name in about:
            place |= _numbers(file, lines[list(about).index(name)], [about[name]], {key: 0})
    end = next((k for k, row in enumerate(rows) if k > start and len(row) < len(header)), len(rows))
    places = {name: header.index(name) for name in ("time(UTC)", *_PVGIS) if name in header}
    table = _table(file, digest, rows[start + 1 : end], lines[start + 1 : end], places)
    parts: dict[str, list[str]] = {"year": [], "month": [], "day": [], "hour": [], "minute": []}
    for row, stamp in enumerate(table.cells["time(UTC)"]):
        if (found := _PVGIS_STAMP.fullmatch(stamp)) is None:
            raise table.refuse(row, f"{stamp!r} is not a stamp", field="time(UTC)", fix="write 20240131:1300")
        for name, piece in zip(parts, found.groups(), strict=True):
            parts[name].append(piece)
    table.cells.update(parts)
    stamps = _integers(table, {"year": (1, 9999), "month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59)})
    return _calendar(
        "PVGIS", table, "time(UTC)", stamps, stamps["hour"] * _HOUR_S + stamps["minute"] * 60.0, label="start",
        cells={series: Cell(name, unit) for name, (series, unit) in _PVGIS.items() if name in header},
        place={"utc_offset_h": 0.0, **place}, time_zone=time_zone,
    )  # fmt: skip


_OPEN_METEO: dict[str, tuple[str, Label]] = {
    "temperature_2m": ("temperature_c", "start"),
    "surface_pressure": ("pressure_pa", "start"),
    "shortwave_radiation": ("ghi_w_m2", "end"),
    "direct_normal_irradiance": ("dni_w_m2", "end"),
    "diffuse_radiation": ("dhi_w_m2", "end"),
    "windspeed_10m": ("wind_m_s_10m", "start"),
    "wind_speed_10m": ("wind_m_s_10m", "start"),
    "windspeed_80m": ("wind_m_s_80m", "start"),
    "wind_speed_80m": ("wind_m_s_80m", "start"),
    "windspeed_100m": ("wind_m_s_100m", "start"),
    "wind_speed_100m": ("wind_m_s_100m", "start"),
    "wind_speed_120m": ("wind_m_s_120m", "start"),
}
"""Variable -> series, and which point its stamp marks: radiation is the mean of the preceding hour, others instants."""
_OPEN_METEO_UNITS = {
    "°C": "degC", "°F": "degF", "km/h": "km/h", "m/s": "m/s", "mp/h": "mph", "kn": "kn", "W/m²": "W/m2", "hPa": "hPa",
}  # fmt: skip


def _open_meteo(text: str, *, file: str, digest: str, time_zone: str | None) -> WeatherFile:
    """Stamps are local with one fixed offset for the whole file (``utc_offset_seconds``), without clock changes.

    With ``timeformat=unixtime`` they are Unix seconds instead, which no offset moves.
    """
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", file=file, line=error.lineno, fix="download it again") from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, deeply nested brackets
        raise InputError("is JSON in an unknown format", file=file, fix="download it again") from None
    if {"inputs", "outputs"} <= set(data):
        raise InputError("is JSON of PVGIS", file=file, fix="download the typical year (TMY) as CSV or EPW")
    hourly = data.get("hourly")
    if not isinstance(hourly, dict) or not isinstance(hourly.get("time"), list) or not hourly["time"]:
        raise InputError("has no list of hours", file=file, field="hourly.time", fix="ask Open-Meteo for hourly values")
    units = data.get("hourly_units") or {}
    count, columns, cells = len(hourly["time"]), {}, {}
    for name, (series, label) in _OPEN_METEO.items():
        if name not in hourly:
            continue
        if not isinstance(hourly[name], list) or len(hourly[name]) != count:
            raise InputError(
                f"is not a list of {count} values", file=file, field=f"hourly.{name}", fix="download it again"
            )
        if units.get(name) not in _OPEN_METEO_UNITS:
            problem, fix = f"unit {units.get(name)!r} is not known", "use one of " + ", ".join(_OPEN_METEO_UNITS)
            raise InputError(problem, file=file, field=f"hourly_units.{name}", fix=fix)
        columns[f"hourly.{name}"] = ["" if value is None else str(value) for value in hourly[name]]
        cells[series] = Cell(f"hourly.{name}", _OPEN_METEO_UNITS[units[name]], label=label)
    columns["hourly.time"] = [str(stamp) for stamp in hourly["time"]]
    offset_s = _number(file, data, "utc_offset_seconds") if time_zone is None else zone_offset_s(time_zone)
    table = Columns(file, digest, columns, None)
    unix = units.get("time") == "unixtime"
    times_s, _ = read_times(table, FileClock(kind="unix" if unix else "utc", columns=["hourly.time"]))
    known = {"latitude_deg": "latitude", "longitude_deg": "longitude", "elevation_m": "elevation"}
    return WeatherFile(
        layout="Open-Meteo",
        table=table,
        time_column="hourly.time",
        times_s=times_s if unix else times_s - offset_s,
        clock="unix",
        label="start",
        cells=cells,
        utc_offset_s=offset_s,
        place={key: _number(file, data, name) for key, name in known.items() if name in data},
        notes=() if unix else (Note(f"stamps taken as UTC{offset_s / _HOUR_S:+g} h all year", level="fact"),),
    )


def _calendar(
    layout: str, table: Columns, time_column: str, stamps: Mapping[str, NDArray[np.int64]], seconds: Floats, *,
    label: Label, cells: Mapping[str, Cell], place: Mapping[str, float], time_zone: str | None,
) -> WeatherFile:  # fmt: skip
    """Convert dates and seconds of the day to Unix time, or rows of different years to one typical year."""
    if time_zone is None and "utc_offset_h" not in place:
        fix = 'give the offset of its stamps, for instance time_zone = "-08:00"'
        raise InputError("the file does not state its time zone", file=table.file, field="time_zone", fix=fix)
    offset_s = place["utc_offset_h"] * _HOUR_S if time_zone is None else zone_offset_s(time_zone)
    day_numbers = _day_numbers(table, stamps, time_column)
    # Real years are contiguous; the months of a typical year come from different years.
    jumps = np.diff(day_numbers)
    typical = bool(jumps.size and (jumps.min() < 0 or jumps.max() > 31))
    notes, keep = [], np.ones(day_numbers.shape, dtype=np.bool_)
    if typical:
        together = f"typical year: rows of {np.unique(stamps['year']).size} years put together"
        notes.append(Note(together, level="fact"))
        keep = ~((stamps["month"] == 2) & (stamps["day"] == 29))
        if not keep.all():
            left = int(np.count_nonzero(~keep))
            notes.append(Note("rows of 29 February left out", left, shares=((left / keep.size, "hours"),)))
        day_numbers = _day_numbers(table, {**stamps, "year": np.where(keep, 2001, 2004)}, time_column)
        day_numbers = day_numbers - (date(2001, 1, 1) - date(1970, 1, 1)).days
    times_s = day_numbers * _DAY_S + seconds - (0.0 if typical else offset_s)
    kept = np.flatnonzero(keep).tolist()
    if not all(keep):
        lines = tuple(table.lines[row] for row in kept)
        cut = {name: [column[row] for row in kept] for name, column in table.cells.items()}
        table = Columns(table.file, table.sha256, cut, lines[0], lines)
    return WeatherFile(
        layout=layout, table=table, time_column=time_column, times_s=times_s[keep],
        clock="typical-year" if typical else "unix", label=label, cells=cells, utc_offset_s=offset_s,
        place={key: value for key, value in place.items() if key != "utc_offset_h"}, notes=tuple(notes),
    )  # fmt: skip


def _day_numbers(table: Columns, stamps: Mapping[str, NDArray[np.int64]], time_column: str) -> NDArray[np.int64]:
    """Days since 1970."""
    numbers = []
    dates = zip(*(stamps[part].tolist() for part in ("year", "month", "day")), strict=True)
    for row, (year, month, day) in enumerate(dates):
        try:
            numbers.append((date(year, month, day) - date(1970, 1, 1)).days)
        except ValueError:
            problem = f"{year}-{month:02}-{day:02} is not a date"
            raise table.refuse(row, problem, field=time_column, fix="correct the line") from None
    return np.array(numbers, dtype=np.int64)


def _table(file: str, digest: str, rows: list[list[str]], lines: list[int], places: Mapping[str, int]) -> Columns:
    if not rows:
        raise InputError("has no data rows", file=file, fix="give the whole file")
    last = max(places.values())
    for row, line in zip(rows, lines, strict=True):
        if len(row) <= last:
            raise InputError(
                f"has {len(row)} fields, expected {last + 1}", file=file, line=line, fix="complete the line"
            )
    return Columns(
        file, digest, {name: [row[at].strip() for row in rows] for name, at in places.items()}, lines[0], tuple(lines)
    )


def _integers(table: Columns, ranges: Mapping[str, tuple[int, int]]) -> dict[str, NDArray[np.int64]]:
    parsed = {}
    for name, (low, high) in ranges.items():
        values = []
        for row, cell in enumerate(table.cells[name]):
            if not cell.isdecimal() or len(cell) > 9 or not low <= int(cell) <= high:
                fix = f"give a whole number from {low} to {high}"
                raise table.refuse(row, f"{cell!r} is out of range", field=name, fix=fix)
            values.append(int(cell))
        parsed[name] = np.array(values, dtype=np.int64)
    return parsed


def _numbers(file: str, line: int, row: Sequence[str], places: Mapping[str, int]) -> dict[str, float]:
    values = {}
    for name, at in places.items():
        text = row[at].strip() if at < len(row) else ""
        try:
            values[name] = float(text)
        except ValueError:
            values[name] = math.nan
        if not math.isfinite(values[name]):
            raise InputError(f"{text!r} is not a number", file=file, line=line, field=name, fix="correct the header")
    return values


def _number(file: str, data: Mapping[str, Any], name: str) -> float:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e9 < value < 1e9:
        raise InputError(f"is {value!r}, not a number", file=file, field=name, fix="download the file again")
    return float(value)


def _place(file: str, line: int, header: Sequence[str], name: str) -> int:
    if name not in header:
        raise InputError("no such column", file=file, line=line, field=name, fix="give the file as it was downloaded")
    return list(header).index(name)


_Rows = list[list[str]]
_LAYOUTS: tuple[
    tuple[Callable[[_Rows], bool], Callable[[_Rows, list[int], str, str, str | None], WeatherFile]], ...
] = (
    (lambda rows: bool(rows) and rows[0][0].strip().upper() == "LOCATION", _epw),
    (lambda rows: bool(rows) and rows[0][0].strip() == "variable_name", _windpowerlib),
    (lambda rows: len(rows) > 1 and "Date (MM/DD/YYYY)" in [cell.strip() for cell in rows[1]], _tmy3),
    (lambda rows: bool(rows) and rows[0][0].startswith(_PVGIS_PLACE["latitude_deg"]), _pvgis),
    (lambda rows: any({"Year", "Month"} <= set(row) for row in rows[:3]), _psm),
)
"""Test for a layout, and its reader."""
