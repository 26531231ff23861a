"""Units that a series may be declared in, the internal unit of each, and the range of plausible values.

A price has the currency of its unit: ``EUR/MWh`` becomes a price per kWh in EUR. Nothing here converts currencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError

Floats = NDArray[np.float64]
Quantity = Literal[
    "power_w", "irradiance_w_m2", "wind_m_s", "temperature_c", "pressure_pa", "share",
    "price_per_kwh", "carbon_g_per_kwh",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unit:
    """``internal value = value * scale + offset``."""

    quantity: Quantity
    scale: float = 1.0
    offset: float = 0.0
    currency: str = ""
    """Currency of a price, a key of ``CURRENCIES``."""


CURRENCIES: dict[str, float] = {
    "EUR": 1, "USD": 1, "GBP": 1, "CHF": 1, "AUD": 2, "CAD": 2, "SGD": 2, "PLN": 5, "BRL": 5, "CNY": 10, "DKK": 10,
    "NOK": 10, "SEK": 10, "ZAR": 20, "CZK": 25, "MXN": 25, "TWD": 40, "INR": 100, "JPY": 200, "HUF": 400, "KRW": 1500,
}  # fmt: skip
"""Currency (ISO 4217) -> roughly how much of it is worth a euro: the scale of what is plausible, never a conversion."""
_CENTS = {"ct": "EUR", "cent": "USD", "p": "GBP"}
"""Hundredth of a currency, as tariffs write it."""
JOULES_PER_KWH = 3.6e6
G_PER_LB = 453.59237
"""International avoirdupois pound. [g]"""

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
    "g/kWh": Unit("carbon_g_per_kwh"),
    "kg/kWh": Unit("carbon_g_per_kwh", 1e3),
    "kg/MWh": Unit("carbon_g_per_kwh"),
    "t/MWh": Unit("carbon_g_per_kwh", 1e3),
    "lb/MWh": Unit("carbon_g_per_kwh", G_PER_LB / 1e3),
    **{f"{code}/kWh": Unit("price_per_kwh", currency=code) for code in CURRENCIES},
    **{f"{code}/MWh": Unit("price_per_kwh", 1e-3, currency=code) for code in CURRENCIES},
    **{f"{cent}/kWh": Unit("price_per_kwh", 1e-2, currency=code) for cent, code in _CENTS.items()},
}
"""Declared unit -> conversion to the internal unit."""

BOUNDS: dict[Quantity, tuple[float, float]] = {
    "power_w": (0.0, 1e11),
    "irradiance_w_m2": (0.0, 2000.0),
    "wind_m_s": (0.0, 120.0),
    "temperature_c": (-95.0, 65.0),
    "pressure_pa": (3e4, 1.15e5),
    "share": (0.0, 1.5),
    "price_per_kwh": (-10.0, 100.0),
    "carbon_g_per_kwh": (0.0, 3000.0),
}
"""Lowest and highest plausible value, both inclusive. Cloud enhancement raises irradiance to about 1900 W/m2 and PV
above its rated power; the strongest recorded gust is 113 m/s; air temperature is -89..57 degC; pressure is 110 kPa at
the Dead Sea and 33 kPa on Everest; no plant reaches 100 GW. Prices are for currencies worth about a euro, see `bounds`:
markets cap them at a few euros per kWh, Texas in 2021 at 9 USD/kWh. Old lignite plants emit 1300 g/kWh."""

CANONICAL: dict[Quantity, str] = {
    "power_w": "W",
    "irradiance_w_m2": "W/m2",
    "wind_m_s": "m/s",
    "temperature_c": "degC",
    "pressure_pa": "Pa",
    "share": "share",
    "price_per_kwh": "per kWh",
    "carbon_g_per_kwh": "g/kWh",
}
"""Quantity -> internal unit."""


def bounds(quantity: Quantity, currency: str = "") -> tuple[float, float]:
    """Lowest and highest plausible value of a quantity, of a price in its currency."""
    low, high = BOUNDS[quantity]
    worth = CURRENCIES.get(currency, 1)
    return low * worth, high * worth


def internal_unit(quantity: Quantity, currency: str = "") -> str:
    """The internal unit of a quantity, with the currency of a price."""
    return f"{currency}/kWh" if currency else CANONICAL[quantity]


def wrong_magnitude(values: Floats, quantity: Quantity, currency: str = "") -> tuple[str, str] | None:
    """What makes the unit of plausible values improbable, and the question whether it is another one; else None."""
    highest, worth, unit = float(np.abs(values).max()), CURRENCIES.get(currency, 1), internal_unit(quantity, currency)
    if quantity == "irradiance_w_m2" and 0 < highest <= 2:
        return f"never exceeds {highest:g} W/m2", 'is the unit "kW/m2"?'
    if quantity == "price_per_kwh" and 0 < highest < 1e-3 * worth:
        return f"never exceeds {highest:.3g} {unit}", f'is the unit "{unit}"?'
    if quantity == "price_per_kwh" and np.quantile(values, 0.1) > worth:
        return f"is hardly ever below {worth:g} {unit}", f'is the unit "{currency}/MWh"?'
    if quantity == "carbon_g_per_kwh" and 0 < highest < 2:
        return f"never exceeds {highest:.3g} {unit}", 'is the unit "kg/kWh" or "t/MWh"?'
    return None


def unit_names(*quantities: Quantity) -> list[str]:
    """Names of the units of some quantities, or of all; those of prices in short."""
    plain = [name for name, kind in UNITS.items() if not kind.currency and kind.quantity in (quantities or BOUNDS)]
    if quantities and "price_per_kwh" not in quantities:
        return plain
    return [
        *plain,
        "EUR/kWh",
        "EUR/MWh",
        "the same of " + " ".join(list(CURRENCIES)[1:]),
        *(f"{c}/kWh" for c in _CENTS),
    ]


def unit_named(name: str) -> Unit:
    """The unit of that name.

    Raises:
        InputError: there is no such unit.
    """
    if name not in UNITS:
        money, _, energy = name.partition("/")
        if energy in {"kWh", "MWh"} and len(money) == 3 and money.isupper():
            fix = "use one of " + ", ".join(CURRENCIES)
            raise InputError(f"unknown currency {money!r}", field="unit", fix=fix)
        raise InputError(f"unknown unit {name!r}", field="unit", fix="use one of " + ", ".join(unit_names()))
    return UNITS[name]
