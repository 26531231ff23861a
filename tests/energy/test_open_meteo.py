"""Weather as the Open-Meteo API exports it (JSON): units, gaps and time zones."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenbatch.energy import Weather, read_weather
from greenbatch.errors import InputError

WIND_M_S = [2.0, 4.0, 6.0, 8.0, 5.0, 3.0]
SUN = [0.0, 0.0, 120.0, 340.0, 500.0, 610.0]
TEMPERATURE_C = [-3.0, -2.5, 0.0, 2.0, 4.5, 6.0]
START = datetime(2024, 3, 31)  # clocks change in Europe, but not in a file of Open-Meteo


def export(
    tmp_path: Path, *, wind: tuple[str, float] = ("m/s", 1.0), celsius: bool = True, offset_s: int = 0,
    unixtime: bool = False, **change: Any,
) -> Path:  # fmt: skip
    """An export of six hours from midnight UTC on, in the units and the zone asked for."""
    local = [START + timedelta(hours=hour, seconds=offset_s) for hour in range(6)]
    unix_s = [int((START - datetime(1970, 1, 1)).total_seconds()) + 3600 * hour for hour in range(6)]
    unit, factor = wind
    hourly: dict[str, Any] = {
        "time": unix_s if unixtime else [stamp.strftime("%Y-%m-%dT%H:%M") for stamp in local],
        "shortwave_radiation": SUN,
        "temperature_2m": TEMPERATURE_C if celsius else [1.8 * value + 32 for value in TEMPERATURE_C],
        "wind_speed_10m": [value * factor for value in WIND_M_S],
    }
    data = {
        "latitude": 52.52, "longitude": 13.42, "elevation": 38.0, "generationtime_ms": 0.1,
        "utc_offset_seconds": offset_s, "timezone": "Europe/Berlin", "timezone_abbreviation": "CET",
        "hourly_units": {"time": "unixtime" if unixtime else "iso8601", "shortwave_radiation": "W/m²",
                         "temperature_2m": "°C" if celsius else "°F", "wind_speed_10m": unit},
        "hourly": {**hourly, **change},
    }  # fmt: skip
    path = tmp_path / "export.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def same(weather: Weather) -> None:
    """The weather is that of the export, whatever its units and zone."""
    midnight_s = (START - datetime(1970, 1, 1)).total_seconds()
    for name, values in (("wind_m_s_10m", WIND_M_S), ("temperature_c", TEMPERATURE_C)):
        np.testing.assert_allclose(weather[name].values, values, atol=1e-9)
        assert (weather[name].start_s, weather[name].step_s) == (midnight_s, 3600)
    np.testing.assert_allclose(weather["ghi_w_m2"].values, SUN)
    assert weather["ghi_w_m2"].start_s == midnight_s - 3600  # radiation is the mean of the preceding hour
    assert (weather.latitude_deg, weather.longitude_deg, weather.elevation_m) == (52.52, 13.42, 38.0)


@pytest.mark.parametrize("wind", [("m/s", 1.0), ("km/h", 3.6), ("mp/h", 3600 / 1609.344), ("kn", 3600 / 1852)])
@pytest.mark.parametrize("celsius", [True, False])
def test_units_are_those_that_the_file_states(tmp_path: Path, wind: tuple[str, float], celsius: bool) -> None:
    same(read_weather(export(tmp_path, wind=wind, celsius=celsius)))


@pytest.mark.parametrize("offset_s", [0, 3600, 7200, -25_200, 20_700])  # Nepal is 5:45 ahead
def test_stamps_are_local_with_the_offset_of_the_file_all_the_time(tmp_path: Path, offset_s: int) -> None:
    weather = read_weather(export(tmp_path, offset_s=offset_s))
    same(weather)
    assert f"stamps taken as UTC{offset_s / 3600:+g} h all year" in map(str, weather.notes)


@pytest.mark.parametrize("offset_s", [0, 7200])
def test_unix_times_are_moved_by_no_offset(tmp_path: Path, offset_s: int) -> None:
    same(read_weather(export(tmp_path, offset_s=offset_s, unixtime=True)))


def test_missing_values_are_refused_or_filled(tmp_path: Path) -> None:
    path = export(tmp_path, wind_speed_10m=[2.0, 4.0, None, 8.0, 5.0, 3.0])
    with pytest.raises(InputError, match=r"hourly.wind_speed_10m: the value is missing in row 3"):
        read_weather(path)
    filled = read_weather(path, gaps="interpolate")["wind_m_s_10m"]
    assert filled.values.tolist() == WIND_M_S  # 6 lies between 4 and 8
    assert any("missing values filled" in str(note) for note in filled.notes)


def test_missing_hours_are_refused_or_filled(tmp_path: Path) -> None:
    cut = {name: values[:2] + values[3:] for name, values in json.loads(export(tmp_path).read_text())["hourly"].items()}
    path = export(tmp_path, **cut)
    with pytest.raises(InputError, match=r"hourly.time: a gap of 7200 s"):
        read_weather(path)
    weather = read_weather(path, gaps="interpolate")
    assert weather["wind_m_s_10m"].values.tolist() == WIND_M_S


def test_a_variable_without_any_value_is_left_out(tmp_path: Path) -> None:
    weather = read_weather(export(tmp_path, temperature_2m=[None] * 6))
    assert "temperature_c" not in weather.series
    assert "temperature_c left out: no value in the whole file" in map(str, weather.notes)
