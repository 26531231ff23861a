"""A supply with prices, carbon intensities and storage: `Metered` stands around any other supply.

Storage stands at the bus between own sources, the facility and the grid. Schedulers see the forecast of the supply, not
what storage may add to it.
"""

from __future__ import annotations

from typing import NamedTuple, get_type_hints

import numpy as np

from greenbatch.energy import Site
from greenbatch.energy.storage import DAY_S, Storage
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.interface import Costs
from greenbatch.engine.interface import Storage as SeenStorage
from greenbatch.engine.power.arbitrage import Here, Prices, arbitrage, plan_ahead
from greenbatch.engine.power.balance import NO_STORAGE, Rates, Stored, enter
from greenbatch.engine.power.dispatch import NAMES, PRICE_ARBITRAGE, SCHEDULER, Dispatch, asked_w
from greenbatch.engine.power.limited import Limited
from greenbatch.engine.power.protocol import (
    LEFT_THE_SERIES,
    Power,
    Weights,
    command,
    commanded_w,
    flow,
    forecast_w,
    is_commanded,
    rates_at,
    served_w,
    weigh,
)
from greenbatch.engine.power.slots import covering, slots_ahead
from greenbatch.engine.power.storage import Battery, Charge, use
from greenbatch.engine.records import Clock, Floats, Ledger, Slots, record_of, shared, varying

NEVER = -(2**62)
"""No slot."""
NOTHING_STORED = Storage(capacity_kwh=0.0, charge_w=1.0, discharge_w=1.0)
"""No storage."""


@varying("supply")
@shared("rates", "weighed", "relative")
class Metered(NamedTuple):
    """A supply with what its energy costs, and a battery."""

    slots: Slots
    """Those of the supply."""
    supply: Power
    """What is generated and what is forecast of it."""
    rates: Floats
    """`balance.Rates` of each slot, shape (slots, 5)."""
    weighed: Floats
    """`arbitrage.Prices` of each slot, shape (slots, 3)."""
    relative: Floats
    """What a joule costs and emits relative to the usual price and intensity, see `relative_to_usual`, shape
    (slots, 4)."""
    battery: Battery
    charge: Charge
    dispatch: Dispatch


def metered(site: Site, supply: Power) -> Metered:
    """The supply of a site with prices or storage."""
    return metered_by(costs_of(site), supply, site.storage or NOTHING_STORED, site.horizon_slots)


def metered_by(costs: Costs, supply: Power, storage: Storage, horizon_slots: int) -> Metered:
    """A supply with what its energy costs in each slot, and with storage that is planned for some slots ahead."""
    battery = record_of(
        Battery, usable_j=storage.usable_j, charge_w=storage.charge_w, discharge_w=storage.discharge_w,
        charge_efficiency=storage.charge_efficiency, discharge_efficiency=storage.discharge_efficiency,
        loss_per_s=-np.log1p(-storage.self_discharge_per_day) / DAY_S,
    )  # fmt: skip
    charge = record_of(Charge, stored_j=storage.initial_j, planned_slot=NEVER, ranked_slot=NEVER)
    prices, dispatch = weighed(costs, storage.carbon_price_per_kg), dispatch_of(horizon_slots, storage)
    return Metered(supply.slots, supply, rates_of(costs), prices, relative_to_usual(costs), battery, charge, dispatch)


def seen_storage(power: Power) -> SeenStorage | None:
    """What a policy sees of the storage that it commands; None if it commands none."""
    if isinstance(power, Limited):
        power = power.supply
    if not isinstance(power, Metered) or not is_commanded(power):
        return None
    known, charge = {name: float(getattr(power.battery, name)) for name in get_type_hints(Battery)}, power.charge
    return SeenStorage(stored_j=float(charge.stored_j), command_w=float(charge.command_w), **known)


def with_seen(power: Metered, seen: SeenStorage) -> Metered:
    """A supply with the storage that a view shows."""
    battery = record_of(Battery, **{name: getattr(seen, name) for name in get_type_hints(Battery)})
    charge = record_of(
        Charge, stored_j=seen.stored_j, command_w=seen.command_w, planned_slot=NEVER, ranked_slot=NEVER
    )  # fmt: skip
    rule = np.array([SCHEDULER], np.int64)
    return power._replace(battery=battery, charge=charge, dispatch=power.dispatch._replace(rule=rule))


def no_costs(slots: int) -> Costs:
    """Energy that costs and emits nothing, for a number of slots."""
    zero = np.zeros(slots)
    return Costs(zero, zero, zero, zero, zero, zero, 0.0, 0.0)


def costs_of(site: Site) -> Costs:
    """What energy costs and emits in each slot of a site; 0 without a grid.

    What is used or stored of the own sources is paid for at the mean price of what they generate in the slot. Surplus
    is sold where that brings money, and curtailed otherwise.
    """
    grid, zero = site.grid, np.zeros(site.slots)
    if grid is None:
        return no_costs(site.slots)
    shares = {name: np.divide(w, site.renewable_w, out=zero.copy(), where=w > 0) for name, w in site.sources_w.items()}
    own = sum((shares[name] * price for name, price in grid.source_price.items()), zero)
    own_g = sum((shares[name] * carbon for name, carbon in grid.source_g_per_kwh.items()), zero)
    grid_g = zero if grid.carbon_g_per_kwh is None else grid.carbon_g_per_kwh
    marginal_g = grid_g if grid.marginal_g_per_kwh is None else grid.marginal_g_per_kwh
    stated = slice(*site.stated) if site.stated else slice(None)
    usual, usual_g = float(np.abs(grid.import_price[stated]).mean()), float(np.abs(marginal_g[stated]).mean())
    sold = np.maximum(grid.export_price, 0.0)
    return Costs(grid.import_price, sold, own, grid_g, marginal_g, own_g, usual, usual_g)


def rates_of(costs: Costs) -> Floats:
    """`balance.Rates` of each slot, shape (slots, 5)."""
    columns = (
        costs.import_price_per_kwh, costs.export_price_per_kwh, costs.own_price_per_kwh, costs.carbon_g_per_kwh,
        costs.own_g_per_kwh,
    )  # fmt: skip
    return np.ascontiguousarray(np.stack(columns, axis=1) / JOULES_PER_KWH)


def relative_to_usual(costs: Costs) -> Floats:
    """Price of a joule from the grid and of one of the own surplus, and the carbon of both, shape (slots, 4).

    Relative to the mean absolute price and intensity, which no negative prices bring near 0; all 0 where that is 0.
    Surplus that is used costs what it would earn if sold, and carbon of the grid is that at the margin.
    """
    kept = costs.export_price_per_kwh + costs.own_price_per_kwh
    price, carbon = (
        1.0 / usual if usual > 0.0 else 0.0 for usual in (costs.usual_price_per_kwh, costs.usual_g_per_kwh)
    )
    columns = (
        costs.import_price_per_kwh * price,
        kept * price,
        costs.marginal_g_per_kwh * carbon,
        costs.own_g_per_kwh * carbon,
    )
    return np.ascontiguousarray(np.stack(columns, axis=1))


def weighed(costs: Costs, carbon_price_per_kg: float) -> Floats:
    """`arbitrage.Prices` of each slot, shape (slots, 3).

    Emissions are those at the margin, if they are known.
    """
    rates, grid_g = rates_of(costs), costs.marginal_g_per_kwh / JOULES_PER_KWH
    per_g = carbon_price_per_kg / 1e3
    bought = rates[:, 0] + per_g * grid_g
    kept = rates[:, 1] + rates[:, 2] + per_g * rates[:, 4]
    return np.ascontiguousarray(np.stack((bought, kept, rates[:, 1]), axis=1))


def dispatch_of(horizon_slots: int, storage: Storage) -> Dispatch:
    """The rule of a battery, with its parameters."""
    rule = NAMES[storage.dispatch]
    slots = horizon_slots if rule == PRICE_ARBITRAGE else 1
    limit_w = np.array([storage.limit_w or 0.0])
    return Dispatch(np.array([rule], np.int64), limit_w, arbitrage(slots, storage.wear_per_kwh / JOULES_PER_KWH))


@forecast_w.register(Metered)
def forecast_of_supply(power: Metered, clock: Clock, slot: int, current: int) -> float:
    """That of the supply."""
    return forecast_w(power.supply, clock, slot, current)


@weigh.register(Metered)
def weigh_by_costs(power: Metered, clock: Clock, slot: int, current: int, weights: Weights) -> tuple[float, float]:
    """By the costs of the slot, which are known as far ahead as the power."""
    shown = (current + slots_ahead(power.slots, clock, slot, current)) % power.slots.count
    of = power.relative
    grid = weights.brown + weights.cost * of[shown, 0] + weights.carbon * of[shown, 2]
    return grid, weights.cost * of[shown, 1] + weights.carbon * of[shown, 3]


@served_w.register(Metered)
def served_by_supply_w(power: Metered, slot: int, load_w: float) -> tuple[float, float]:
    """Those of the supply."""
    return served_w(power.supply, slot, load_w)


@rates_at.register(Metered)
def rates_of_slot(power: Metered, slot: int) -> Rates:
    """Those of the grid and the own sources."""
    of = power.rates
    return Rates(of[slot, 0], of[slot, 1], of[slot, 2], of[slot, 3], of[slot, 4])


@is_commanded.register(Metered)
def is_dispatched_by_scheduler(power: Metered) -> bool:
    """By its rule of dispatch."""
    return bool(power.dispatch.rule[0] == SCHEDULER)


@command.register(Metered)
def command_metered(power: Metered, power_w: float) -> None:
    """Remember it in the battery."""
    power.charge.command_w = power_w


@commanded_w.register(Metered)
def metered_commanded_w(power: Metered) -> float:
    """That of the battery."""
    return float(power.charge.command_w)


@flow.register(Metered)
def flow_through_meter(
    power: Metered, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    """Cut the interval at the slots, and where the battery is full or empty."""
    slots, battery, charge, at_s, before = power.slots, power.battery, power.charge, from_s, count
    while at_s < to_s:
        number, edge_s = covering(slots, at_s)
        if not slots.repeats and not 0 <= number < slots.count:
            return LEFT_THE_SERIES
        slot, next_s = number % slots.count, min(to_s, edge_s)
        drawn_w, renewable_w = served_w(power.supply, slot, load_w)
        rates = rates_at(power, slot)
        if battery.usable_j == 0.0:
            count = enter(ledger, at_s, next_s, drawn_w, renewable_w, NO_STORAGE, rates, rows, count)
            at_s = next_s
            continue
        if charge.planned_slot != number:
            if power.dispatch.rule[0] == PRICE_ARBITRAGE:
                plan_ahead(power.dispatch.arbitrage, power.supply, power.weighed, battery, number, load_w)
            charge.planned_slot = number
        weigh = power.weighed
        prices = Prices(weigh[slot, 0], weigh[slot, 1], weigh[slot, 2])
        here = Here(at_s, next_s, drawn_w - renewable_w, prices)
        green = charge.green_j / charge.stored_j if charge.stored_j > 0.0 else 0.0
        wanted_w = asked_w(power.dispatch, battery, charge, here)
        change = use(battery, charge, wanted_w, max(-here.net_w, 0.0), at_s, next_s)
        stored = Stored(change.bus_w, green, charge.stored_j)
        count = enter(ledger, at_s, change.until_s, drawn_w, renewable_w, stored, rates, rows, count)
        at_s = change.until_s
    return count - before
