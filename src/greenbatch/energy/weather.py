"""Weather files as series: irradiance, temperature, pressure and wind in equal steps, with their location.

pvlib's readers are not used, so that errors name a line, missing values are never mistaken for numbers, and wind does
not require pvlib; the tests compare both on real files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from greenbatch.energy.samples import Duplicates, Gaps, Negative, Repairs, Samples, Unsorted
from greenbatch.energy.series import Series, column_values, series_of
from greenbatch.energy.weather_files import Cell, WeatherFile, find_layout
from greenbatch.errors import InputError
from greenbatch.files import decode, read_bytes
from greenbatch.notes import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Contents of a weather file."""

    name: str
    layout: str
    """``EPW``, ``TMY3``, ``NSRDB PSM``, ``windpowerlib``, ``PVGIS`` or ``Open-Meteo``."""
    series: Mapping[str, Series]
    """``ghi_w_m2``, ``dni_w_m2``, ``dhi_w_m2``, ``temperature_c``, ``pressure_pa``, ``wind_m_s``, if the file has
    them; with the height (``wind_m_s_80m``) if the file states it."""
    latitude_deg: float | None = None
    """North is positive. [deg]"""
    longitude_deg: float | None = None
    """East is positive. [deg]"""
    elevation_m: float | None = None
    """Above sea level. [m]"""
    notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> Series:
        """One series by name.

        Raises:
            InputError: the file has no such series.
        """
        if name not in self.series:
            raise InputError("no such series", file=self.name, field=name, fix="it has " + ", ".join(self.series))
        return self.series[name]

    def lowest(self, quantity: str) -> Series | None:
        """The series of a quantity at the lowest height, or None if the file has no such quantity."""
        heights = {name: name[len(quantity) :].strip("_m") or "0" for name in self.series if name.startswith(quantity)}
        return self.series[min(heights, key=lambda name: float(heights[name]))] if heights else None


_PLACE_RANGES = {"latitude_deg": (-90, 90), "longitude_deg": (-180, 180), "elevation_m": (-500, 9000)}


def read_weather(
    file: str | Path,
    *,
    columns: Sequence[str] | None = None,
    time_zone: str | None = None,
    gaps: Gaps = "refuse",
    longest_step_s: float | None = None,
    step_s: float | None = None,
    unsorted: Unsorted = "refuse",
    duplicates: Duplicates = "refuse",
    negative: Negative = "refuse",
    missing: Sequence[float] = (),
    latitude_deg: float | None = None,
    longitude_deg: float | None = None,
    elevation_m: float | None = None,
) -> Weather:
    """Read a weather file (plain or gzip); its layout is recognized by its first lines.

    EPW, TMY3 and NSRDB PSM rows of different years become one typical year (see ``series.Clock``). Stamps of EPW and
    TMY3 mark the end of their hour, those of NSRDB the middle of their interval. PVGIS gives values at an instant after
    each stamp; they hold for the hour.

    Args:
        file: EPW, TMY3, NSRDB PSM3 or PSM4, windpowerlib CSV, a typical year of PVGIS as CSV, or Open-Meteo JSON.
        columns: series to read; by default all series of the file that have values.
        time_zone: fixed offset of the stamps such as ``"-08:00"``, if the file does not state it.
        gaps: refuse or fill missing values and missing rows; see ``samples.Repairs``.
        longest_step_s: longest distance between rows that is not a gap; by default 1.5 usual steps. [s]
        step_s: step of the result; by default the usual step of the file. [s]
        unsorted: refuse or sort rows that are out of order.
        duplicates: refuse equal times, or keep the first or last of them.
        negative: refuse values below zero or set them to zero.
        missing: further numbers that mean "no value", besides those of the layout.
        latitude_deg: latitude, if the file does not state it, or to override it. [deg]
        longitude_deg: longitude, likewise. [deg]
        elevation_m: elevation, likewise. [m]

    Raises:
        InputError: the layout is unknown, or the file does not follow it; the error names file, line, field and fix.
    """
    repairs = Repairs(
        gaps=gaps, longest_step_s=longest_step_s, unsorted=unsorted, duplicates=duplicates, negative=negative
    )
    content, digest = read_bytes(file)
    text = decode(content, file, latin_1=True)
    parsed = find_layout(text, file=str(file), digest=digest, time_zone=time_zone)
    for name in columns or ():
        if name not in parsed.cells:
            fix = "the file has " + ", ".join(parsed.cells)
            raise InputError("no such series", file=file, field=name, fix=fix)
    series, notes = {}, list(parsed.notes)
    for name, cell in parsed.cells.items():
        if columns is not None and name not in columns:
            continue
        read = _read(parsed, cell, repairs, step_s=step_s, missing=missing, optional=columns is None)
        if read is None:
            notes.append(Note(f"{name} left out: no value in the whole file", level="fact"))
        else:
            series[name] = read
    if not series:
        raise InputError("has no series with values", file=file, fix="give a file with irradiance or wind")
    place = {"latitude_deg": latitude_deg, "longitude_deg": longitude_deg, "elevation_m": elevation_m}
    location = {key: parsed.place.get(key) if value is None else value for key, value in place.items()}
    for key, (low, high) in _PLACE_RANGES.items():
        if (value := location[key]) is not None and not low <= value <= high:
            raise InputError(f"is {value}", file=file, field=key, fix=f"it must be {low:g} to {high:g}")
    return Weather(
        name=Path(file).name,
        layout=parsed.layout,
        series=series,
        notes=tuple(notes),
        **location,
    )


def _read(
    parsed: WeatherFile, cell: Cell, repairs: Repairs, *, step_s: float | None, missing: Sequence[float], optional: bool
) -> Series | None:  # fmt: skip
    values, notes = column_values(
        parsed.table, [cell.column], cell.unit, missing=(*cell.missing, *missing), negative=repairs.negative
    )  # fmt: skip
    if optional and np.isnan(values).all():
        return None
    samples = Samples(
        table=parsed.table,
        time_column=parsed.time_column,
        columns=[cell.column],
        times_s=parsed.times_s,
        values=values,
        jump_s=np.zeros(values.size),
        cells=np.arange(values.size),
        unix=parsed.clock == "unix",
    )
    series = series_of(
        samples,
        repairs,
        label=cell.label or parsed.label,
        step_s=step_s,
        unit=cell.unit,
        notes=notes,
    )
    file = Path(parsed.table.file).name
    about_file = (replace(note, what=f"{file}: {note.what}", about=file) for note in parsed.notes)
    return replace(series, clock=parsed.clock, utc_offset_s=parsed.utc_offset_s, notes=(*about_file, *series.notes))
