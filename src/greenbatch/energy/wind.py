"""Power of wind turbines; wind speed at hub height and corrected for air density."""

from __future__ import annotations

from math import log
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.rounding import rounded
from greenbatch.energy.samples import check_choice
from greenbatch.energy.series import Series, same_steps
from greenbatch.energy.weather import Weather
from greenbatch.errors import InputError
from greenbatch.notes import Note

Floats = NDArray[np.float64]
Curve = Literal["linear", "cubic"]
Law = Literal["power", "log"]

_SEA_LEVEL_PA = 101_325.0
_SEA_LEVEL_KG_M3 = 1.225
_GAS_J_KG_K = 287.05
"""Specific gas constant of dry air."""


def turbine(
    wind: Series,
    *,
    rated_w: float,
    cut_in_m_s: float = 2.5,
    rated_m_s: float = 15.0,
    cut_out_m_s: float = 30.0,
    factor: float = 1.0,
    round_w: float | None = None,
) -> Series:
    """Power [W] of a turbine whose power curve is linear between cut-in and rated speed.

    0 for ``v <= cut_in`` or ``v >= cut_out``; ``P_r (v - v_in) / (v_r - v_in)`` for ``v_in < v < v_r``; ``P_r`` from
    ``v_r`` on. Source: GAS-MARL Eq. 18 and Table 2 (7200 W, 2.5, 15 and 30 m/s). The equation leaves ``v = v_r``
    undefined; the linear branch and the plateau meet there, so it is ``P_r``, as in GAS-MARL's simulator.

    Args:
        wind: speed at the hub. [m/s]
        rated_w: power at and above the rated speed, > 0. [W]
        cut_in_m_s: no power up to this speed, >= 0. [m/s]
        rated_m_s: rated power from this speed on, > cut-in. [m/s]
        cut_out_m_s: no power from this speed on, > rated. [m/s]
        factor: scales the rated power, > 0: processors of the cluster / processors it was meant for.
        round_w: round the power to a multiple of this, a power of ten; GAS-MARL's simulator rounds to 0.01. [W]

    Raises:
        InputError: a parameter is out of range, or the series is not wind speed.
    """
    return _power("linear", wind, (cut_in_m_s, rated_m_s, cut_out_m_s), rated_w, factor=factor, round_w=round_w)


def cubic_turbine(
    wind: Series,
    *,
    rated_w: float,
    cut_in_m_s: float = 3.0,
    rated_m_s: float = 12.0,
    cut_out_m_s: float = 25.0,
    factor: float = 1.0,
    round_w: float | None = None,
) -> Series:
    """Power [W] of a generic turbine whose power curve is cubic between cut-in and rated speed.

    ``P_r (v^3 - v_in^3) / (v_r^3 - v_in^3)`` between cut-in and rated, otherwise like `turbine`. The defaults are
    typical of a large turbine. Extrapolate the wind to hub height with `at_hub`, correct for density with `at_density`.

    Args:
        wind: speed at the hub. [m/s]
        rated_w: power at and above the rated speed, > 0. [W]
        cut_in_m_s: no power up to this speed, >= 0. [m/s]
        rated_m_s: rated power from this speed on, > cut-in. [m/s]
        cut_out_m_s: no power from this speed on, > rated. [m/s]
        factor: scales the rated power, > 0: processors of the cluster / processors it was meant for.
        round_w: round the power to a multiple of this, a power of ten. [W]

    Raises:
        InputError: a parameter is out of range, or the series is not wind speed.
    """
    return _power("cubic", wind, (cut_in_m_s, rated_m_s, cut_out_m_s), rated_w, factor=factor, round_w=round_w)


def at_hub(
    wind: Series,
    *,
    measured_height_m: float,
    hub_height_m: float,
    law: Law = "power",
    shear_exponent: float = 1 / 7,
    roughness_length_m: float = 0.15,
) -> Series:
    """Wind speed [m/s] at hub height, extrapolated from another height.

    Power law: ``v (h_hub / h)^exponent``, 1/7 over open land. Logarithmic law: ``v ln(h_hub / z0) / ln(h / z0)``.
    Source: Burton et al., Wind Energy Handbook, section 2.6.

    Args:
        wind: measured speed. [m/s]
        measured_height_m: its height above ground, > 0. [m]
        hub_height_m: height of the hub, > 0. [m]
        law: ``"power"`` or ``"log"``.
        shear_exponent: of the power law, 0..1.
        roughness_length_m: of the logarithmic law, > 0 and below both heights. [m]

    Raises:
        InputError: a parameter is out of range, or the series is not wind speed.
    """
    wind.needs("wind_m_s", user="at_hub")
    check_choice(law, get_args(Law), field="turbine.law")
    for name, height_m in (("measured_height_m", measured_height_m), ("hub_height_m", hub_height_m)):
        if not 0 < height_m <= 1000:
            raise InputError(f"is {height_m}", field=f"turbine.{name}", fix="it must be > 0 and <= 1000 m")
    if law == "power":
        if not 0 <= shear_exponent <= 1:
            raise InputError(f"is {shear_exponent}", field="turbine.shear_exponent", fix="it must be 0 to 1")
        ratio = (hub_height_m / measured_height_m) ** shear_exponent
    else:
        if not 0 < roughness_length_m < min(hub_height_m, measured_height_m):
            fix = "it must be > 0 and below both heights"
            raise InputError(f"is {roughness_length_m}", field="turbine.roughness_length_m", fix=fix)
        ratio = log(hub_height_m / roughness_length_m) / log(measured_height_m / roughness_length_m)
    note = f"{wind.name}: wind at {measured_height_m:g} m times {ratio:.6g} for a hub at {hub_height_m:g} m ({law} law)"
    return wind.derived("wind_m_s", wind.values * ratio, Note(note, level="fact"))


def at_density(
    wind: Series, *, temperature: Series | None = None, pressure: Series | None = None, elevation_m: float | None = None
) -> Series:
    """Speed [m/s] at which air of sea-level density would carry the same power: ``v (rho / 1.225)^(1/3)``.

    ``rho = p / (287.05 T)``; the pressure comes from the series or, given an elevation, from the standard atmosphere;
    the temperature from the series, or 15 degC minus 6.5 K per km.
    Source: IEC 61400-12-1, normalization to a reference air density for turbines with active power control.

    Args:
        wind: speed at the hub. [m/s]
        temperature: air temperature in the same steps. [degC]
        pressure: air pressure in the same steps. [Pa]
        elevation_m: of the hub above sea level, -500..6000; instead of a pressure. [m]

    Raises:
        InputError: neither or both of pressure and elevation are given, or the series do not have the same steps.
    """
    wind.needs("wind_m_s", user="at_density")
    if (pressure is None) == (elevation_m is None):
        raise InputError("requires either pressure or elevation_m", field="turbine.density", fix="give one of them")
    height_m = elevation_m or 0.0
    if not -500 <= height_m <= 6000:
        raise InputError(f"is {height_m}", field="turbine.elevation_m", fix="it must be -500 to 6000 m")
    kelvin = np.full(wind.values.shape, 288.15 - 0.0065 * height_m)
    pascal = np.full(wind.values.shape, _SEA_LEVEL_PA * (1 - 2.25577e-5 * height_m) ** 5.25588)
    if temperature is not None:
        temperature.needs("temperature_c", user="at_density")
        kelvin = same_steps(temperature, wind) + 273.15
    if pressure is not None:
        pressure.needs("pressure_pa", user="at_density")
        pascal = same_steps(pressure, wind)
    density = pascal / (_GAS_J_KG_K * kelvin)
    note = f"{wind.name}: wind corrected for air of {density.mean():.4g} kg/m3 on average"
    return wind.derived("wind_m_s", wind.values * np.cbrt(density / _SEA_LEVEL_KG_M3), Note(note, level="fact"))


def weather_turbine(
    weather: Weather,
    *,
    rated_w: float,
    series: str = "wind_m_s",
    curve: Curve = "cubic",
    cut_in_m_s: float = 3.0,
    rated_m_s: float = 12.0,
    cut_out_m_s: float = 25.0,
    measured_height_m: float = 10.0,
    hub_height_m: float = 80.0,
    law: Law = "power",
    shear_exponent: float = 1 / 7,
    roughness_length_m: float = 0.15,
    density: bool = False,
    factor: float = 1.0,
    round_w: float | None = None,
) -> Series:
    """Power [W] of a turbine from a weather file: `at_hub`, optionally `at_density`, then the power curve.

    Args:
        weather: with wind speed.
        rated_w: power at and above the rated speed, > 0. [W]
        series: name of the file's wind series.
        curve: ``"cubic"`` as in `cubic_turbine` or ``"linear"`` as in `turbine`.
        cut_in_m_s: no power up to this speed, >= 0. [m/s]
        rated_m_s: rated power from this speed on, > cut-in. [m/s]
        cut_out_m_s: no power from this speed on, > rated. [m/s]
        measured_height_m: height of the wind series above ground, > 0; weather stations measure at 10 m. [m]
        hub_height_m: height of the hub, > 0. [m]
        law: see `at_hub`.
        shear_exponent: see `at_hub`.
        roughness_length_m: see `at_hub`. [m]
        density: correct for the file's air pressure and temperature, or its elevation if it has no pressure.
        factor: scales the rated power, > 0: processors of the cluster / processors it was meant for.
        round_w: round the power to a multiple of this, a power of ten. [W]

    Raises:
        InputError: the file lacks a series, or a parameter is out of range.
    """
    check_choice(curve, get_args(Curve), field="turbine.curve")
    wind = at_hub(
        weather[series],
        measured_height_m=measured_height_m,
        hub_height_m=hub_height_m,
        law=law,
        shear_exponent=shear_exponent,
        roughness_length_m=roughness_length_m,
    )
    if density:
        pressure = weather.lowest("pressure_pa")
        elevation_m = weather.elevation_m if pressure is None else None
        wind = at_density(wind, temperature=weather.lowest("temperature_c"), pressure=pressure, elevation_m=elevation_m)
    return _power(curve, wind, (cut_in_m_s, rated_m_s, cut_out_m_s), rated_w, factor=factor, round_w=round_w)


def _power(
    curve: Curve,
    wind: Series,
    speeds_m_s: tuple[float, float, float],
    rated_w: float,
    *,
    factor: float,
    round_w: float | None,
) -> Series:
    wind.needs("wind_m_s", user="a turbine")
    for name, value in (("rated_w", rated_w), ("factor", factor)):
        if not 0 < value < np.inf:
            raise InputError(f"is {value}", field=f"turbine.{name}", fix="it must be > 0")
    cut_in, rated, cut_out = speeds_m_s
    if not 0 <= cut_in < rated < cut_out < np.inf:
        problem = f"cut-in, rated and cut-out are {cut_in:g}, {rated:g} and {cut_out:g} m/s"
        raise InputError(problem, field="turbine", fix="they must satisfy 0 <= cut-in < rated < cut-out")
    full_w, speed = rated_w * factor, wind.values
    if curve == "linear":
        # The order of operations is that of GAS-MARL's simulator: after rounding to 0.01 W, dividing first would
        # change the last digit of some hours of the scaled site, and the eighth digit of its renewable utilization.
        rising_w = full_w * (speed - cut_in) / (rated - cut_in)
    else:
        rising_w = full_w * (speed**3 - cut_in**3) / (rated**3 - cut_in**3)
    power_w = np.where(speed < rated, rising_w, full_w)
    power_w[(speed <= cut_in) | (speed >= cut_out)] = 0.0
    return wind.derived("power_w", rounded(power_w, round_w, field="turbine.round_w"))
