"""Synthetic weather from a seed: irradiance and wind with the statistics of San Francisco, for the embedded site.

The parameters were fitted to six years (2016 to 2021) of hourly irradiance and wind speed there. The random numbers are
raw bits of PCG64, which NumPy promises never to change, and values are rounded far below any accuracy, so a seed gives
the same bytes on every machine. A longer series of the same seed starts with the same weather.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import erfc, gamma, sqrt, tau

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.combine import Align, combine
from greenbatch.energy.randomness import autoregressive, normals, scores
from greenbatch.energy.series import Series
from greenbatch.energy.site import Site
from greenbatch.energy.solar import pv
from greenbatch.energy.units import Quantity
from greenbatch.energy.wind import turbine
from greenbatch.errors import InputError
from greenbatch.notes import Note

Floats = NDArray[np.float64]

_HOUR_S, _DAY_S = 3600.0, 86_400.0
_QUANTILES = (
    (0.0, 0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0),
    (0.03, 0.09, 0.24, 0.34, 0.60, 0.90, 1.02, 1.07, 1.11, 1.24, 1.30),
)
"""Clear-sky index (irradiance / clear-sky irradiance) at each probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Climate:
    """Location and weather statistics; the defaults are San Francisco's.

    Raises:
        InputError: a value is out of range.
    """

    latitude_deg: float = 37.77
    """North is positive, -90..90. [deg]"""
    longitude_deg: float = -122.42
    """East is positive, -180..180. [deg]"""
    utc_offset_h: float = -8.0
    """Standard time minus UTC. [h]"""
    day_memory: float = 0.45
    """Correlation of cloudiness from day to day, 0..1."""
    hour_memory: float = 0.47
    """Correlation of the remaining cloudiness from hour to hour, 0..1."""
    day_weight: float = 0.85
    """Weight of the daily part, 0..1; the squares of both weights add up to 1."""
    wind_mean_m_s: float = 6.74
    """Mean speed, > 0. [m/s]"""
    wind_shape: float = 2.17
    """Weibull shape, > 0.5."""
    wind_memory: float = 0.91
    """Correlation of wind from hour to hour, in the normal scores, 0..1."""
    wind_daily: float = 0.24
    """Amplitude of the daily cycle / mean, 0..1."""
    wind_peak_h: float = 15.5
    """Hour of standard time at which wind is strongest, 0..24. [h]"""

    def __post_init__(self) -> None:
        for name, (low, high) in _CLIMATE_RANGES.items():
            if not low <= getattr(self, name) <= high:
                problem = f"is {getattr(self, name)}"
                raise InputError(problem, field=f"site.climate.{name}", fix=f"it must be {low:g} to {high:g}")


_CLIMATE_RANGES = {
    "latitude_deg": (-90, 90),
    "longitude_deg": (-180, 180),
    "utc_offset_h": (-12, 14),
    "day_memory": (0, 0.999),
    "hour_memory": (0, 0.999),
    "day_weight": (0, 1),
    "wind_mean_m_s": (0.1, 30),
    "wind_shape": (0.8, 10),
    "wind_memory": (0, 0.9999),
    "wind_daily": (0, 0.9),
    "wind_peak_h": (0, 24),
}


def synthetic_irradiance(
    *, seed: int = 0, days: int = 365, first_day: int = 1, step_s: float = 3600.0, climate: Climate | None = None
) -> Series:
    """Global horizontal irradiance [W/m2]: Haurwitz's clear-sky irradiance times a random clear-sky index.

    The index has a daily and an hourly part, each a first-order autoregressive normal process; their weighted sum is
    mapped to a probability and, by a table of quantiles, to an index. Shorter steps keep the hourly correlation.
    Source: Haurwitz 1945 for the clear sky; the index is fitted as described in the module.

    Args:
        seed: >= 0; the same seed gives the same bytes.
        days: length, >= 1; 365 days from day 1 are a typical year.
        first_day: day of the year of the first day, 1..365.
        step_s: length of a step; must divide an hour. [s]
        climate: place and statistics.

    Raises:
        InputError: a parameter is out of range.
    """
    where = climate or Climate()
    a_day = _steps_a_day(days, first_day, step_s, seed)
    per_hour = a_day / 24
    day_part = autoregressive(normals(seed, 0, days), where.day_memory)
    hour_part = autoregressive(normals(seed, 1, days * a_day), where.hour_memory ** (1 / per_hour))
    score = where.day_weight * np.repeat(day_part, a_day) + sqrt(1 - where.day_weight**2) * hour_part
    index = np.interp(_probability(score), *_QUANTILES)
    sky = clear_sky(where, days=days, first_day=first_day, step_s=step_s)
    return _series(
        "synthetic sun",
        "irradiance_w_m2",
        np.round(index * sky, 3),
        seed=seed,
        days=days,
        first_day=first_day,
        step_s=step_s,
        climate=where,
    )


def synthetic_wind(
    *, seed: int = 0, days: int = 365, first_day: int = 1, step_s: float = 3600.0, climate: Climate | None = None
) -> Series:
    """Wind speed [m/s]: Weibull distributed, correlated from hour to hour, stronger in the afternoon.

    HOMER's method: an autoregressive normal process plus the normal scores of the daily profile
    ``mean (1 + d cos(...))``, scaled to variance 1, is mapped to a probability and, by the Weibull distribution, to a
    speed. The variance of the sum follows from the parameters, not from the sample, so that more days do not change
    the first ones.

    Args:
        seed: >= 0; the same seed gives the same bytes. Sun and wind of one seed are independent.
        days: length, >= 1; 365 days from day 1 are a typical year.
        first_day: day of the year of the first day, 1..365; the wind has no seasons.
        step_s: length of a step; must divide an hour. [s]
        climate: place and statistics.

    Raises:
        InputError: a parameter is out of range.
    """
    where = climate or Climate()
    a_day = _steps_a_day(days, first_day, step_s, seed)
    scale_m_s = where.wind_mean_m_s / gamma(1 + 1 / where.wind_shape)
    hour = (np.arange(a_day) + 0.5) * 24 / a_day
    profile_m_s = where.wind_mean_m_s * (1 + where.wind_daily * np.cos(tau * (hour - where.wind_peak_h) / 24))
    daily = scores(1 - np.exp(-((profile_m_s / scale_m_s) ** where.wind_shape)))
    daily -= daily.mean()
    noise = autoregressive(normals(seed, 2, days * a_day), where.wind_memory ** (24 / a_day))
    score = (noise + np.tile(daily, days)) / sqrt(1 + float(np.mean(daily**2)))
    speed_m_s = np.round(scale_m_s * (-np.log(_probability(-score))) ** (1 / where.wind_shape), 4)
    return _series(
        "synthetic wind", "wind_m_s", speed_m_s, seed=seed, days=days, first_day=first_day, step_s=step_s, climate=where
    )


def synthetic_site(
    *,
    name: str = "synthetic",
    seed: int = 0,
    days: int = 365,
    first_day: int = 1,
    step_s: float = 3600.0,
    area_m2: float = 200.0,
    efficiency: float = 0.2,
    rated_w: float = 7200.0,
    factor: float = 1.0,
    round_w: float | None = 0.01,
    climate: Climate | None = None,
    align: Align = "trace-start",
    unix_start_s: float | None = None,
    repeat: bool = True,
    forecast_horizon_s: float = 86_400.0,
    signals: Mapping[str, Series] | None = None,
    until_s: float | None = None,
) -> Site:
    """The embedded site: GAS-MARL's panel and turbine (Table 2) under synthetic weather.

    Args:
        name: name of the site.
        seed: see `synthetic_irradiance`.
        days: see `synthetic_irradiance`.
        first_day: see `synthetic_irradiance`.
        step_s: see `synthetic_irradiance`. [s]
        area_m2: see `solar.pv`. [m2]
        efficiency: see `solar.pv`.
        rated_w: see `wind.turbine`. [W]
        factor: scales area and rated power: processors of the cluster / 256.
        round_w: see `solar.pv`. [W]
        climate: place and statistics.
        align: see `combine.combine`.
        unix_start_s: see `combine.combine`. [s]
        repeat: see `Site`.
        forecast_horizon_s: see `Site`. [s]
        signals: see `combine.combine`.
        until_s: see `combine.combine`. [s]

    Raises:
        InputError: a parameter is out of range.
    """
    sun = synthetic_irradiance(seed=seed, days=days, first_day=first_day, step_s=step_s, climate=climate)
    air = synthetic_wind(seed=seed, days=days, first_day=first_day, step_s=step_s, climate=climate)
    return combine(
        name,
        {
            "solar": pv(sun, area_m2=area_m2, efficiency=efficiency, factor=factor, round_w=round_w),
            "wind": turbine(air, rated_w=rated_w, factor=factor, round_w=round_w),
        },
        align=align,
        unix_start_s=unix_start_s,
        repeat=repeat,
        forecast_horizon_s=forecast_horizon_s,
        signals=signals,
        until_s=until_s,
    )


def clear_sky(climate: Climate, *, days: int, first_day: int = 1, step_s: float = 3600.0) -> Floats:
    """Clear-sky irradiance [W/m2] at the middle of each step, shape (steps,).

    ``1098 cos z exp(-0.059 / cos z)``, 0 when the sun is down. Source: Haurwitz 1945, Insolation in relation to
    cloudiness and cloud density, J. Meteorology 2; standard geometry with the declination after Cooper.
    """
    a_day = round(_DAY_S / step_s)
    day = ((first_day - 1 + np.arange(days)) % 365 + 1)[:, None]
    clock_h = ((np.arange(a_day) + 0.5) * 24 / a_day)[None, :]
    orbit = tau * (day - 81) / 364
    equation_min = 9.87 * np.sin(2 * orbit) - 7.53 * np.cos(orbit) - 1.5 * np.sin(orbit)
    solar_h = clock_h + (4 * (climate.longitude_deg - 15 * climate.utc_offset_h) + equation_min) / 60
    declination = np.radians(23.45 * np.sin(tau * (284 + day) / 365))
    latitude = np.radians(climate.latitude_deg)
    cos_zenith = np.sin(latitude) * np.sin(declination) + np.cos(latitude) * np.cos(declination) * np.cos(
        np.radians(15 * (solar_h - 12))
    )
    up = np.maximum(cos_zenith, 1e-9)
    irradiance: Floats = np.where(cos_zenith > 0, 1098 * up * np.exp(-0.059 / up), 0.0).ravel()
    return irradiance


def _series(
    name: str,
    quantity: Quantity,
    values: Floats,
    *,
    seed: int,
    days: int,
    first_day: int,
    step_s: float,
    climate: Climate,
) -> Series:
    """A complete typical year can be aligned with a calendar, anything else only with the start of a trace."""
    return Series(
        name=name,
        quantity=quantity,
        values=values,
        step_s=step_s,
        clock="typical-year" if (days, first_day) == (365, 1) else "elapsed",
        utc_offset_s=climate.utc_offset_h * _HOUR_S,
        notes=(Note(f"{name}: seed {seed}, {days} days from day {first_day} of the year", level="fact"),),
    )


def _steps_a_day(days: int, first_day: int, step_s: float, seed: int) -> int:
    for name, value, low, high in (
        ("days", days, 1, 36_500),
        ("first_day", first_day, 1, 365),
        ("seed", seed, 0, 2**63),
    ):
        if not isinstance(value, int) or not low <= value <= high:
            raise InputError(f"is {value}", field=f"site.{name}", fix=f"give a whole number from {low} to {high}")
    if not 0 < step_s <= _HOUR_S or abs(_HOUR_S / step_s - round(_HOUR_S / step_s)) > 1e-9:
        raise InputError(f"is {step_s}", field="site.step_s", fix="the step must divide an hour")
    if days * _DAY_S / step_s > 20_000_000:
        raise InputError(
            f"{days} days of {step_s:g} s are too many steps", field="site.step_s", fix="give longer steps"
        )
    return 24 * round(_HOUR_S / step_s)


def _probability(score: Floats) -> Floats:
    return np.array([0.5 * erfc(-z) for z in (score / sqrt(2)).tolist()])
