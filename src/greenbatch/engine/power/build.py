"""The power supply that a site or a view describes, and what a view shows of its storage."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, get_type_hints

import numpy as np

from greenbatch.energy import Site
from greenbatch.energy import forecasts as plain
from greenbatch.energy.storage import Storage
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.power import table
from greenbatch.engine.power.arbitrage import plan_buffers
from greenbatch.engine.power.costs import costs_of, rates_of, relative_to_usual, weighed
from greenbatch.engine.power.dispatch import NAMES, PRICE_ARBITRAGE, SCHEDULER
from greenbatch.engine.power.protocol import Power, is_commanded, power_of
from greenbatch.engine.power.storage import Battery, StateOfCharge
from greenbatch.engine.power.table import PowerSupply, Terms
from greenbatch.engine.records import Floats, Slots, record_of
from greenbatch.engine.views.interface import Costs
from greenbatch.engine.views.interface import Storage as SeenStorage

NEVER = -(2**62)
"""No slot."""


def charge_of(stored_j: float = 0.0, command_w: float = 0.0) -> StateOfCharge:
    """What is in a battery at first."""
    return record_of(StateOfCharge, stored_j=stored_j, command_w=command_w, planned_slot=NEVER, ranked_slot=NEVER)


_NO_BATTERY, _NO_PLAN = record_of(Battery, charge_efficiency=1.0, discharge_efficiency=1.0), np.zeros((0, 0))
_NO_CHARGE = charge_of()
_NO_LIMIT = {"import_w": np.inf, "always_w": np.inf}
_BARE = record_of(Terms, **_NO_LIMIT)


def battery_of(storage: Storage | SeenStorage) -> Battery:
    """What a battery can do, as a site or a view describes it."""
    return record_of(Battery, **{name: getattr(storage, name) for name in get_type_hints(Battery)})


def bare_supply(slots: Slots, power_w: Floats) -> PowerSupply:
    """A supply that has nothing but its sources, forecast as they come."""
    return PowerSupply(slots, power_w.reshape(1, -1), _BARE, _NO_BATTERY, _NO_CHARGE, _NO_PLAN)


@power_of.register
def unsupplied(site: None) -> PowerSupply:
    """The grid alone."""
    return bare_supply(record_of(Slots, step_s=1.0), np.zeros(1))


@power_of.register
def power_of_site(site: Site) -> PowerSupply:
    """The supply of a site."""
    (series, terms), storage = _tables_of(site), site.storage
    if storage is None:
        return PowerSupply(slots_of(site), series, terms, _NO_BATTERY, _NO_CHARGE, _NO_PLAN)
    plan = plan_buffers(site.horizon_slots) if terms.dispatch == PRICE_ARBITRAGE else _NO_PLAN
    return PowerSupply(slots_of(site), series, terms, battery_of(storage), charge_of(storage.initial_j), plan)


def slots_of(site: Site) -> Slots:
    """The slots of a site."""
    return record_of(
        Slots, step_s=site.step_s, origin_s=site.origin_s, count=site.slots, repeats=site.repeat,
        forecast=site.horizon_slots,
    )  # fmt: skip


@lru_cache(maxsize=4)  # one simulation after the other has the same site
def _tables_of(site: Site) -> tuple[Floats, Terms]:
    """What simulations of a site share."""
    supply_w = site.load_limit_w(0.0)
    if not (site.grid or site.storage or site.has_overhead or site.forecast_model.kind != "perfect"):
        return np.array(supply_w, dtype=np.float64, order="C").reshape(1, -1), _BARE
    series = np.zeros((table.ROWS, site.slots))
    series[table.SUPPLY_W], series[table.RENEWABLE_W], series[table.PUE] = supply_w, site.renewable_w, site.pue
    terms, limit_w, storage = {**_NO_LIMIT, "base_load_w": site.base_load_w}, site.held_limit_w, site.storage
    if limit_w < np.inf:
        series[table.ALLOWED_W] = site.load_limit_w(limit_w)
        terms |= {"import_w": limit_w, "always_w": max(limit_w - site.base_load_w, 0.0) / np.max(site.pue)}
    if storage is not None:
        terms |= {"dispatch": NAMES[storage.dispatch], "peak_w": storage.limit_w or 0.0}
        terms["wear"] = storage.wear_per_kwh / JOULES_PER_KWH
    if site.grid is not None or storage is not None:
        terms |= _priced(series, costs_of(site), storage.carbon_price_per_kg if storage else 0.0)
    return series, record_of(Terms, **terms, **_forecast(series, site))


def _forecast(series: Floats, site: Site) -> dict[str, float]:
    """Fill in how a site is forecast; the fields of the terms."""
    model, step_s = site.forecast_model, site.step_s
    if model.kind == "perfect":
        return {"forecast": table.PERFECT}
    if model.past_days:
        rows, days = np.arange(site.slots), model.past_days
        renewable_w = np.array(site.renewable_w, dtype=np.float64, order="C")
        series[table.EXPECTED_W] = plain.daily_means(renewable_w, rows, step_s=step_s, days=days, repeats=site.repeat)
        return {"forecast": table.REMEMBERED, "slots_a_day": plain.slots_a_day(step_s)}
    leads = plain.leads(model, step_s, site.slots, site.horizon_slots)
    series[table.RANDOM] = plain.random_series(site.slots, step_s, model.correlation_h, model.seed)
    series[table.LEADS : table.LEADS + 3, : len(leads)] = leads.T
    return {"forecast": table.ERRING}


def _priced(series: Floats, costs: Costs, carbon_price_per_kg: float = 0.0) -> dict[str, float]:
    """Fill in what energy costs and emits; the fields of the terms.

    Args:
        series: the table.
        costs: of each slot.
        carbon_price_per_kg: what emissions are worth to the dispatch of storage.
    """
    series[table.RATES : table.RATES + 5] = rates_of(costs).T
    series[table.WEIGHED : table.WEIGHED + 3] = weighed(costs, carbon_price_per_kg).T
    series[table.RELATIVE : table.RELATIVE + 4] = relative_to_usual(costs).T
    return {"priced": 1}


def supply_of_series(
    slots: Slots, power_w: Floats, costs: Costs | None, seen: SeenStorage | None, limit_w: Floats | None
) -> PowerSupply:  # fmt: skip
    """A supply without overhead that is forecast as it comes.

    Args:
        slots: the grid of the series.
        power_w: power in each slot. [W]
        costs: of energy; None if it costs nothing.
        seen: the storage that a policy commands.
        limit_w: largest load in each slot. [W]
    """
    if costs is None and seen is None and limit_w is None:
        return bare_supply(slots, power_w)
    series = np.zeros((table.ROWS, power_w.shape[0]))
    series[table.SUPPLY_W] = series[table.RENEWABLE_W] = power_w
    series[table.PUE], terms = 1.0, dict(_NO_LIMIT)
    battery, charge = _NO_BATTERY, charge_of()
    if limit_w is not None:
        series[table.ALLOWED_W] = limit_w
        terms = {"import_w": 0.0, "always_w": limit_w.min()}
    if costs is not None:
        terms |= _priced(series, costs)
    if seen is not None:
        terms["dispatch"] = SCHEDULER
        battery, charge = battery_of(seen), charge_of(seen.stored_j, seen.command_w)
    return PowerSupply(slots, series, record_of(Terms, **terms), battery, charge, _NO_PLAN)


def seen_storage(power: Power) -> SeenStorage | None:
    """What a policy sees of the storage that it commands; None if it commands none."""
    if not is_commanded(power):
        return None
    of: Any = power
    known = {name: float(getattr(of.battery, name)) for name in get_type_hints(Battery)}
    return SeenStorage(stored_j=float(of.charge.stored_j), command_w=float(of.charge.command_w), **known)
