"""Units that a series may be declared in, the internal unit of each, and the range of plausible values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from greenbatch.errors import InputError

Quantity = Literal["power_w", "irradiance_w_m2", "wind_m_s", "temperature_c", "pressure_pa", "share"]


@dataclass(frozen=True, slots=True)
class Unit:
    """``internal value = value * scale + offset``."""

    quantity: Quantity
    scale: float = 1.0
    offset: float = 0.0


UNITS: dict[str, Unit] = {
    "W": Unit("power_w"),
    "kW": Unit("power_w", 1e3),
    "MW": Unit("power_w", 1e6),
    "GW": Unit("power_w", 1e9),
    "W/m2": Unit("irradiance_w_m2"),
    "kW/m2": Unit("irradiance_w_m2", 1e3),
    "m/s": Unit("wind_m_s"),
    "km/h": Unit("wind_m_s", 1 / 3.6),
    "mph": Unit("wind_m_s", 0.44704),
    "kn": Unit("wind_m_s", 1852 / 3600),
    "degC": Unit("temperature_c"),
    "K": Unit("temperature_c", 1.0, -273.15),
    "degF": Unit("temperature_c", 5 / 9, -160 / 9),
    "Pa": Unit("pressure_pa"),
    "hPa": Unit("pressure_pa", 1e2),
    "mbar": Unit("pressure_pa", 1e2),
    "kPa": Unit("pressure_pa", 1e3),
    "share": Unit("share"),
    "%": Unit("share", 1e-2),
}
"""Declared unit -> conversion to the internal unit."""

BOUNDS: dict[Quantity, tuple[float, float]] = {
    "power_w": (0.0, 1e11),
    "irradiance_w_m2": (0.0, 2000.0),
    "wind_m_s": (0.0, 120.0),
    "temperature_c": (-95.0, 65.0),
    "pressure_pa": (3e4, 1.15e5),
    "share": (0.0, 1.5),
}
"""Lowest and highest plausible value, both inclusive. Cloud enhancement raises irradiance to about 1900 W/m2 and PV
above its rated power; the strongest recorded gust is 113 m/s; air temperature is -89..57 degC; pressure is 110 kPa at
the Dead Sea and 33 kPa on Everest; no plant reaches 100 GW."""

CANONICAL: dict[Quantity, str] = {
    "power_w": "W",
    "irradiance_w_m2": "W/m2",
    "wind_m_s": "m/s",
    "temperature_c": "degC",
    "pressure_pa": "Pa",
    "share": "share",
}
"""Quantity -> internal unit."""


def unit_named(name: str) -> Unit:
    """The unit of that name.

    Raises:
        InputError: there is no such unit.
    """
    if name not in UNITS:
        raise InputError(f"unknown unit {name!r}", field="unit", fix="use one of " + ", ".join(UNITS))
    return UNITS[name]
