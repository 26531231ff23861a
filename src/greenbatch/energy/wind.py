"""Power of wind turbines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.rounding import rounded
from greenbatch.energy.series import Series
from greenbatch.errors import InputError

Floats = NDArray[np.float64]


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
    """Power [W] of a turbine that rises linearly from cut-in to rated speed.

    0 for ``v <= cut_in`` or ``v >= cut_out``; ``P_r (v - v_in) / (v_r - v_in)`` for ``v_in < v < v_r``; ``P_r`` from
    ``v_r`` on. Source: GAS-MARL Eq. 18 and Table 2 (7200 W, 2.5, 15 and 30 m/s). The equation leaves ``v = v_r``
    undefined; the linear branch and the plateau meet there, so it is ``P_r``, as in GAS-MARL's simulator.

    Args:
        wind: speed at the hub. [m/s]
        rated_w: power at and above the rated speed, > 0. [W]
        cut_in_m_s: no power up to here, >= 0. [m/s]
        rated_m_s: full power from here on, > cut-in. [m/s]
        cut_out_m_s: stops from here on, > rated. [m/s]
        factor: scales the rated power, > 0: processors of the cluster / processors it was meant for.
        round_w: round the power to this many watts, a power of ten; GAS-MARL's simulator rounds to 0.01. [W]

    Raises:
        InputError: a parameter is out of range, or the series is not wind speed.
    """
    wind.needs("wind_m_s", user="turbine")
    check_turbine(rated_w, cut_in_m_s, rated_m_s, cut_out_m_s, factor)
    full_w, speed = rated_w * factor, wind.values
    linear_w = full_w * (speed - cut_in_m_s) / (rated_m_s - cut_in_m_s)
    power_w = np.where(speed < rated_m_s, linear_w, full_w)
    power_w[(speed <= cut_in_m_s) | (speed >= cut_out_m_s)] = 0.0
    return wind.derived("power_w", rounded(power_w, round_w, field="turbine.round_w"))


def check_turbine(rated_w: float, cut_in_m_s: float, rated_m_s: float, cut_out_m_s: float, factor: float) -> None:
    """Refuse impossible turbines.

    Raises:
        InputError: power or factor not positive, or the speeds not in order.
    """
    for name, value in (("rated_w", rated_w), ("factor", factor)):
        if not 0 < value < np.inf:
            raise InputError(f"is {value}", field=f"turbine.{name}", fix="it must be > 0")
    if not 0 <= cut_in_m_s < rated_m_s < cut_out_m_s < np.inf:
        raise InputError(
            f"cut-in, rated and cut-out are {cut_in_m_s:g}, {rated_m_s:g} and {cut_out_m_s:g} m/s",
            field="turbine",
            fix="they must rise from 0: cut-in < rated < cut-out",
        )
