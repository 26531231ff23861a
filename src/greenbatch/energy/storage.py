"""A battery on the site: its size, its limits and the rule that decides when it is charged."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.errors import InputError

Dispatch = Literal["greedy", "price-arbitrage", "peak-shaving", "scheduler"]
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A battery between own sources, the facility and the grid.

    Raises:
        InputError: a value is out of range.
    """

    capacity_kwh: float
    """Energy that it holds, >= 0; 0 for none. [kWh]"""
    charge_w: float
    """Largest power that it takes, > 0. [W]"""
    discharge_w: float
    """Largest power that it gives, > 0. [W]"""
    charge_efficiency: float = 0.95
    """Share of the energy taken that is stored, in (0, 1]."""
    discharge_efficiency: float = 0.95
    """Share of the energy withdrawn that is given, in (0, 1]."""
    lowest_charge: float = 0.1
    """Lowest state of charge, as a share of the capacity, in [0, 1)."""
    highest_charge: float = 0.9
    """Highest state of charge, above the lowest, at most 1."""
    initial_charge: float | None = None
    """State of charge at the begin of an account, the lowest by default; all of it bought before."""
    self_discharge_per_day: float = 0.0
    """Share of the energy above the lowest state of charge that is lost in a day, in [0, 1)."""
    dispatch: Dispatch = "greedy"
    """When it is charged, see `engine.power.dispatch`; ``scheduler``: as the scheduler commands."""
    limit_w: float | None = None
    """Limit on imports for ``peak-shaving``. [W]"""
    wear_per_kwh: float = 0.0
    """Cost of a kWh that it gives, for ageing, which ``price-arbitrage`` weighs; in the currency of the site, >= 0."""
    carbon_price_per_kg: float = 0.0
    """What ``price-arbitrage`` adds to prices for emissions, in the currency of the site per kg, >= 0."""

    def __post_init__(self) -> None:
        for name, (low, high, open_low) in _RANGES.items():
            value = getattr(self, name)
            if not (low < value if open_low else low <= value) or not value <= high:
                self._refuse(name, f"it must be {'>' if open_low else '>='} {low:g} and at most {high:g}")
        if not self.lowest_charge < self.highest_charge:
            self._refuse("highest_charge", f"it must exceed lowest_charge, {self.lowest_charge:g}")
        if self.initial_charge is not None and not self.lowest_charge <= self.initial_charge <= self.highest_charge:
            self._refuse("initial_charge", f"it must be {self.lowest_charge:g} to {self.highest_charge:g}")
        if self.dispatch not in get_args(Dispatch):
            self._refuse("dispatch", "use one of " + ", ".join(get_args(Dispatch)))
        if (self.limit_w is None) == (self.dispatch == "peak-shaving"):
            self._refuse("limit_w", "give it with dispatch = peak-shaving, and only then")
        if self.limit_w is not None and not 0 <= self.limit_w <= 1e15:
            self._refuse("limit_w", "it must be >= 0 and at most 1e+15")

    def _refuse(self, name: str, fix: str) -> None:
        value = getattr(self, name)
        raise InputError("is missing" if value is None else f"is {value}", field=f"site.storage.{name}", fix=fix)

    @property
    def usable_j(self) -> float:
        """Energy between the lowest and the highest state of charge. [J]"""
        return self.capacity_kwh * JOULES_PER_KWH * (self.highest_charge - self.lowest_charge)

    @property
    def initial_j(self) -> float:
        """Energy above the lowest state of charge at first. [J]"""
        share = 0.0 if self.initial_charge is None else self.initial_charge - self.lowest_charge
        return self.capacity_kwh * JOULES_PER_KWH * share

    @property
    def loss_per_s(self) -> float:
        """Share of the energy above the lowest state of charge that is lost per second, all the time."""
        return float(-np.log1p(-self.self_discharge_per_day) / DAY_S)

    def scaled(self, factor: float) -> Storage:
        """The same battery, larger by a factor."""
        larger = {name: getattr(self, name) * factor for name in ("capacity_kwh", "charge_w", "discharge_w")}
        same = {each.name: getattr(self, each.name) for each in fields(self)}
        return Storage(**{**same, **larger, "limit_w": None if self.limit_w is None else self.limit_w * factor})


_RANGES: dict[str, tuple[float, float, bool]] = {
    "capacity_kwh": (0.0, 1e12, False), "charge_w": (0.0, 1e15, True), "discharge_w": (0.0, 1e15, True),
    "charge_efficiency": (0.0, 1.0, True), "discharge_efficiency": (0.0, 1.0, True),
    "lowest_charge": (0.0, 1.0, False), "highest_charge": (0.0, 1.0, False),
    "self_discharge_per_day": (0.0, 0.999, False), "wear_per_kwh": (0.0, 1e6, False),
    "carbon_price_per_kg": (0.0, 1e6, False),
}  # fmt: skip
"""Field -> lowest, highest value, and whether the lowest itself is excluded."""
