"""Power of photovoltaics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.rounding import rounded
from greenbatch.energy.series import Series, same_steps
from greenbatch.energy.weather import Weather
from greenbatch.errors import InputError
from greenbatch.notes import Note

Floats = NDArray[np.float64]

_TYPICAL_YEAR_UNIX_S = 978_307_200.0
"""1 January 2001, 00:00 UTC: the year whose solar positions are used for typical years, see `series.Clock`."""


def pv(
    irradiance: Series, *, area_m2: float, efficiency: float = 0.2, factor: float = 1.0, round_w: float | None = None
) -> Series:
    """Power [W] of a PV panel with constant efficiency.

    ``P = efficiency * irradiance * area``. Source: GAS-MARL Eq. 17 and Table 2 (efficiency 0.2, area 200 m2).

    Args:
        irradiance: in the plane of the panel (GAS-MARL uses global horizontal irradiance). [W/m2]
        area_m2: effective irradiated area, > 0. [m2]
        efficiency: conversion efficiency, in (0, 1].
        factor: scales the area, > 0: processors of the cluster / processors the area was meant for.
        round_w: round the power to a multiple of this, a power of ten; GAS-MARL's simulator rounds to 0.01. [W]

    Raises:
        InputError: a parameter is out of range, or the series is not irradiance.
    """
    irradiance.needs("irradiance_w_m2", user="pv")
    _check("pv", area_m2=(area_m2, 1e-9, 1e9), efficiency=(efficiency, 1e-9, 1), factor=(factor, 1e-9, 1e9))
    power_w = efficiency * irradiance.values * (area_m2 * factor)
    return irradiance.derived("power_w", rounded(power_w, round_w, field="pv.round_w"))


def pvwatts(
    weather: Weather,
    *,
    rated_w: float,
    tilt_deg: float,
    azimuth_deg: float = 180.0,
    temperature_coefficient_per_k: float = -0.004,
    losses: float = 0.14,
    inverter_efficiency: float = 0.96,
    dc_ac_ratio: float = 1.2,
    albedo: float = 0.2,
    factor: float = 1.0,
    round_w: float | None = None,
) -> Series:
    """AC power [W] of a fixed array from real weather, after PVWatts.

    Solar position at the middle of each step; plane-of-array irradiance after Hay and Davies (direct and diffuse
    irradiance after Erbs if the file lacks them); reflection losses at the glass; cell temperature of an open rack
    (Sandia) with the file's wind (default 1 m/s) and air temperature (default 20 degC); DC power, losses, inverter.
    Source: Dobos 2014, PVWatts version 5 manual, NREL/TP-6A20-62641; formulas as in pvlib.

    Args:
        weather: with ``ghi_w_m2``, latitude and longitude.
        rated_w: DC power at 1000 W/m2 and 25 degC, > 0. [W]
        tilt_deg: from horizontal, 0..90. [deg]
        azimuth_deg: 0 north, 90 east, 180 south, 0..360. [deg]
        temperature_coefficient_per_k: of the power, -0.01..0. [1/K]
        losses: share lost to soiling, mismatch, wiring etc., 0..1.
        inverter_efficiency: at rated power, in (0, 1].
        dc_ac_ratio: ``rated_w`` / the inverter's rated AC power, > 0; the inverter clips above it.
        albedo: of the ground, 0..1.
        factor: scales the array, > 0: processors of the cluster / processors it was meant for.
        round_w: round the power to a multiple of this, a power of ten. [W]

    Raises:
        InputError: pvlib is not installed, the weather lacks irradiance or location, or a parameter is out of range.
    """
    _check(
        "pvwatts",
        rated_w=(rated_w, 1e-9, 1e11),
        tilt_deg=(tilt_deg, 0, 90),
        azimuth_deg=(azimuth_deg, 0, 360),
        temperature_coefficient_per_k=(temperature_coefficient_per_k, -0.01, 0),
        losses=(losses, 0, 1),
        inverter_efficiency=(inverter_efficiency, 1e-3, 1),
        dc_ac_ratio=(dc_ac_ratio, 0.1, 10),
        albedo=(albedo, 0, 1),
        factor=(factor, 1e-9, 1e9),
    )
    try:
        from pvlib import iam, inverter, irradiance, pvsystem, temperature
    except ImportError:
        raise InputError("requires pvlib", field="pvwatts", fix="pip install 'greenbatch[weather]'") from None
    ghi = weather["ghi_w_m2"]
    sun, beam, diffuse, notes = _sky(weather, ghi)
    angle = irradiance.aoi(tilt_deg, azimuth_deg, sun["apparent_zenith"], sun["azimuth"])
    on_array = irradiance.get_total_irradiance(
        tilt_deg,
        azimuth_deg,
        sun["apparent_zenith"],
        sun["azimuth"],
        beam,
        ghi.values,
        diffuse,
        dni_extra=irradiance.get_extra_radiation(sun.index.day_of_year.to_numpy()),
        albedo=albedo,
        model="haydavies",
    )
    into_cells = on_array["poa_direct"] * iam.physical(angle) + on_array["poa_diffuse"]
    air_c, wind_m_s = _beside(weather, ghi, "temperature_c", 20.0, notes), _beside(weather, ghi, "wind_m_s", 1.0, notes)
    rack = temperature.TEMPERATURE_MODEL_PARAMETERS["sapm"]["open_rack_glass_glass"]
    cell_c = temperature.sapm_cell(on_array["poa_global"], air_c, wind_m_s, **rack)
    dc_w = pvsystem.pvwatts_dc(into_cells, cell_c, rated_w * factor, temperature_coefficient_per_k) * (1 - losses)
    # The inverter's DC limit is its AC rating divided by its efficiency.
    limit_w = rated_w * factor / dc_ac_ratio / inverter_efficiency
    ac_w = np.nan_to_num(np.asarray(inverter.pvwatts(dc_w, limit_w, inverter_efficiency), dtype=np.float64))
    return ghi.derived("power_w", rounded(np.maximum(ac_w, 0.0), round_w, field="pvwatts.round_w"), *notes)


def _sky(weather: Weather, ghi: Series) -> tuple[Any, Any, Any, list[Note]]:
    """Solar position, direct and diffuse irradiance at the middle of each step."""
    import pandas
    from pvlib import irradiance, solarposition

    if weather.latitude_deg is None or weather.longitude_deg is None:
        fix = "give latitude_deg and longitude_deg with the weather"
        raise InputError("the file does not state its location", file=weather.name, field="latitude_deg", fix=fix)
    if ghi.clock == "elapsed":
        raise InputError("has no dates, so the solar position is unknown", field=ghi.name, fix="read it with its times")
    zero_s = 0.0 if ghi.clock == "unix" else _TYPICAL_YEAR_UNIX_S - ghi.utc_offset_s
    middle_s = zero_s + ghi.start_s + (np.arange(ghi.values.size) + 0.5) * ghi.step_s
    times = pandas.to_datetime(middle_s, unit="s", utc=True)
    sun = solarposition.get_solarposition(
        times, weather.latitude_deg, weather.longitude_deg, altitude=weather.elevation_m or 0.0
    )
    if "dni_w_m2" in weather.series and "dhi_w_m2" in weather.series:
        return sun, same_steps(weather["dni_w_m2"], ghi), same_steps(weather["dhi_w_m2"], ghi), []
    split = irradiance.erbs(ghi.values, sun["zenith"], times.day_of_year.to_numpy())
    return (
        sun,
        split["dni"],
        split["dhi"],
        [Note(f"{ghi.name}: direct and diffuse irradiance after Erbs", level="fact")],
    )


def _beside(weather: Weather, ghi: Series, quantity: str, otherwise: float, notes: list[Note]) -> Floats | float:
    """A series of the file with the steps of the irradiance (the lowest of several heights), or a default value."""
    series = weather.lowest(quantity)
    if series is not None:
        return same_steps(series, ghi)
    notes.append(Note(f"{weather.name}: {quantity} taken as {otherwise:g}", level="change"))
    return otherwise


def _check(model: str, **parameters: tuple[float, float, float]) -> None:
    for name, (value, low, high) in parameters.items():
        if not low <= value <= high:
            raise InputError(f"is {value}", field=f"{model}.{name}", fix=f"it must be {low:g} to {high:g}")
