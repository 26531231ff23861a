"""Power of photovoltaics."""

from __future__ import annotations

from greenbatch.energy.rounding import rounded
from greenbatch.energy.series import Series
from greenbatch.errors import InputError


def pv(
    irradiance: Series, *, area_m2: float, efficiency: float = 0.2, factor: float = 1.0, round_w: float | None = None
) -> Series:
    """Power [W] of a panel that turns a constant share of the irradiance on its area into power.

    ``P = efficiency * irradiance * area``. Source: GAS-MARL Eq. 17 and Table 2 (efficiency 0.2, area 200 m2).

    Args:
        irradiance: on the plane of the panel (GAS-MARL takes global horizontal irradiance). [W/m2]
        area_m2: effective irradiated area, > 0. [m2]
        efficiency: conversion efficiency, in (0, 1].
        factor: scales the area, > 0: processors of the cluster / processors the area was meant for.
        round_w: round the power to this many watts, a power of ten; GAS-MARL's simulator rounds to 0.01. [W]

    Raises:
        InputError: a parameter is out of range, or the series is not irradiance.
    """
    irradiance.needs("irradiance_w_m2", user="pv")
    for name, value, high in (("area_m2", area_m2, 1e9), ("efficiency", efficiency, 1.0), ("factor", factor, 1e9)):
        if not 0 < value <= high:
            raise InputError(f"is {value}", field=f"pv.{name}", fix=f"it must be > 0 and <= {high:g}")
    power_w = efficiency * irradiance.values * (area_m2 * factor)
    return irradiance.derived("power_w", rounded(power_w, round_w, field="pv.round_w"))
