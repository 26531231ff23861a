"""The grid connection of a site: what imports and exports cost, and how much carbon they cause."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import numbers, read_only
from greenbatch.display import Shown
from greenbatch.energy.units import CURRENCIES, Quantity, bounds, internal_unit
from greenbatch.errors import InputError

Floats = NDArray[np.float64]
Months = NDArray[np.int64]
OverLimit = Literal["count", "hold"]
"""What happens at the limit of imports."""
MOST_DEMAND_CHARGE = 1e4
"""Largest price of a kW of monthly peak, in currencies worth about a euro."""
_ONE = read_only(np.zeros(1))
_ONE_MONTH = read_only(np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Grid(Shown):
    """Prices and carbon intensity in the slots of a site, constant within a slot. The series are read-only.

    Series have the shape (slots,); where a single number is given for all slots, shape (1,), it is repeated.

    Raises:
        InputError: a value is not plausible, series differ in length, or there are prices without a currency.
    """

    currency: str = ""
    """Currency of all money (ISO 4217), a key of ``units.CURRENCIES``; ``""`` if there is no money."""
    import_price: Floats
    """Price of a kWh from the grid, may be negative, shape (slots,); all 0 if there is no money. [currency/kWh]"""
    export_price: Floats = field(default_factory=lambda: _ONE)
    """What the grid pays for a kWh fed in, shape (slots,); by default 0. [currency/kWh]"""
    source_price: Mapping[str, Floats] = field(default_factory=dict)
    """Source of the site -> what a kWh that it generates costs, shape (slots,). 0 for others. [currency/kWh]"""
    demand_charge: float = 0.0
    """Price of a kW of the highest import of each calendar month, >= 0. [currency/kW]"""
    month: Months = field(default_factory=lambda: _ONE_MONTH)
    """Calendar month of each slot in local time: 0 in the first slot and one more with each new month, shape (slots,).
    A slot belongs to the month in which it starts. `Site.month_at` continues it through a series that repeats."""
    time_zone: str = ""
    """Zone of the calendar months, an IANA name or a fixed offset; ``""`` if they are given by ``month`` alone."""
    carbon_g_per_kwh: Floats | None = None
    """Average carbon intensity of imports, shape (slots,); None if unknown. [g/kWh]"""
    marginal_g_per_kwh: Floats | None = None
    """Marginal carbon intensity: of the plants that one more kWh of demand would start, shape (slots,). [g/kWh]"""
    source_g_per_kwh: Mapping[str, float] = field(default_factory=dict)
    """Source of the site -> life-cycle carbon of a kWh that it generates, >= 0. 0 for others. [g/kWh]"""
    import_limit_w: float = np.inf
    """Largest power that the grid supplies, > 0. [W]"""
    over_limit: OverLimit = "count"
    """``count``: energy above the limit is counted, and schedulers do not know it; ``hold``: jobs wait until their
    power keeps imports within it, see `engine.import_limit`."""

    def __post_init__(self) -> None:
        if self.currency and self.currency not in CURRENCIES:
            fix = "use one of " + ", ".join(CURRENCIES)
            raise InputError(f"is {self.currency!r:.60}", field="grid.currency", fix=fix)
        self._keep("import_price", "price_per_kwh")
        if not self.slots:
            raise InputError("has no slots", field="grid.import_price", fix="give one price per slot")
        self._keep("export_price", "price_per_kwh")
        for name in ("carbon_g_per_kwh", "marginal_g_per_kwh"):
            if getattr(self, name) is not None:
                self._keep(name, "carbon_g_per_kwh")
        prices = {
            source: self._series(price, f"grid.source_price.{source}", "price_per_kwh")
            for source, price in self.source_price.items()
        }
        object.__setattr__(self, "source_price", prices)
        self._keep_months()
        _check_range(self.demand_charge, 0.0, MOST_DEMAND_CHARGE * CURRENCIES.get(self.currency, 1), "demand_charge")
        for source, carbon in self.source_g_per_kwh.items():
            _check_range(carbon, *bounds("carbon_g_per_kwh"), f"source_g_per_kwh.{source}")
        if not self.import_limit_w > 0:
            raise InputError(f"is {self.import_limit_w}", field="grid.import_limit_w", fix="it must be > 0")
        if self.over_limit not in get_args(OverLimit):
            fix = "use " + " or ".join(get_args(OverLimit))
            raise InputError(f"is {self.over_limit!r:.60}", field="grid.over_limit", fix=fix)
        if self.over_limit == "hold" and not np.isfinite(self.import_limit_w):
            fix = "give grid.import_limit_w, or leave over_limit out"
            raise InputError("is hold, but there is no limit", field="grid.over_limit", fix=fix)
        if not self.currency and self.has_money:
            fix = "give the currency of the prices"
            raise InputError("is missing", field="grid.currency", fix=fix)

    def _keep(self, name: str, quantity: Quantity) -> None:
        object.__setattr__(self, name, self._series(getattr(self, name), f"grid.{name}", quantity))

    def _series(self, values: Floats, name: str, quantity: Quantity) -> Floats:
        """A column with one plausible value per slot, read-only."""
        column = numbers(values, name)
        if column.shape == (1,) and name != "grid.import_price":
            column = read_only(np.full(self.slots, column[0]))
        if name != "grid.import_price" and column.shape != (self.slots,):
            fix = f"give {self.slots} values, one per slot of grid.import_price"
            raise InputError("does not match the slots", field=name, fix=fix)
        low, high = bounds(quantity, self.currency)
        if (wrong := np.flatnonzero(~((column >= low) & (column <= high)))).size:
            unit = internal_unit(quantity, self.currency if quantity == "price_per_kwh" else "")
            fix = f"plausible: {low:g} to {high:g} {unit}; check the unit"
            raise InputError(f"slot {wrong[0]} is {column[wrong[0]]:.10g} {unit}", field=name, fix=fix)
        return column

    def _keep_months(self) -> None:
        month = np.asarray(self.month)
        month = np.full(self.slots, month[0]) if month.shape == (1,) else month
        valid = month.shape == (self.slots,) and np.issubdtype(month.dtype, np.integer) and month[0] == 0
        if not valid or not np.isin(np.diff(month), (0, 1)).all():
            fix = f"give {self.slots} whole numbers that begin with 0 and grow by 1 with each month"
            raise InputError("does not number the months of the slots", field="grid.month", fix=fix)
        object.__setattr__(self, "month", read_only(month.astype(np.int64)))

    def check_site(self, slots: int, sources: Collection[str]) -> None:
        """Refuse a grid that does not belong to a site.

        Raises:
            InputError: the number of slots differs, or there are values for a source that the site does not have.
        """
        if self.slots != slots:
            fix = f"give {slots} values, one per slot of the site"
            raise InputError(f"has {self.slots} slots, the site {slots}", field="site.grid", fix=fix)
        for name in ("source_price", "source_g_per_kwh"):
            if unknown := [source for source in getattr(self, name) if source not in sources]:
                fix = "use one of " + ", ".join(sources)
                raise InputError(f"the site has no source {unknown[0]!r}", field=f"site.grid.{name}", fix=fix)

    @property
    def slots(self) -> int:
        """Number of slots."""
        return int(self.import_price.shape[0])

    @property
    def months(self) -> int:
        """Number of calendar months that the slots touch."""
        return int(self.month[-1]) + 1

    @property
    def has_money(self) -> bool:
        """Whether anything has a price."""
        prices = (self.import_price, self.export_price, *self.source_price.values())
        return self.demand_charge > 0 or any(bool(np.any(price != 0)) for price in prices)

    @property
    def has_carbon(self) -> bool:
        """Whether any carbon is known."""
        return self.carbon_g_per_kwh is not None or bool(self.source_g_per_kwh)

    def month_at(self, number: NDArray[np.int64]) -> Months:
        """Month of slots by number if there are no dates, beyond the series too, same shape.

        Slot ``k`` of a series that repeats is slot ``k % slots`` of its pass ``k // slots``. Every pass has months of
        its own, so that no peak is shared by two passes: the last month of one and the first of the next are two.
        """
        lap, slot = np.divmod(number, self.slots)
        found: Months = lap * self.months + self.month[slot]
        return found

    def _facts(self) -> dict[str, str]:
        facts = {"grid": self.currency or "without money", "slots": f"{self.slots:,}"}
        if self.currency:
            low, mean, high = (float(f(self.import_price)) for f in (np.min, np.mean, np.max))
            facts["import"] = f"{mean:.4g} {self.currency}/kWh ({low:.4g} to {high:.4g})"
            facts["feed-in"] = f"{self.export_price.mean():.4g} {self.currency}/kWh"
            if self.demand_charge:
                facts["demand charge"] = f"{self.demand_charge:g} {self.currency}/kW in {self.months} months"
        for label, carbon in (("carbon", self.carbon_g_per_kwh), ("marginal", self.marginal_g_per_kwh)):
            if carbon is not None:
                facts[label] = f"{carbon.mean():.4g} g/kWh"
        if np.isfinite(self.import_limit_w):
            held = ", jobs are held for it" if self.over_limit == "hold" else ""
            facts["import limit"] = f"{self.import_limit_w / 1e3:,.4g} kW{held}"
        return facts


def _check_range(value: float, low: float, high: float, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not low <= value <= high:
        raise InputError(f"is {value!r:.60}", field=f"grid.{name}", fix=f"give a number from {low:g} to {high:g}")
