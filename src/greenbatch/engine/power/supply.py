"""The power supply of a site: its own sources, the grid and storage, for a facility that draws more than its cluster.

What a site lacks costs a branch and no other type: without overhead the PUE is 1, without prices all costs are 0,
without a battery nothing is stored, without a limit of imports the load may be anything.

The facility draws PUE x power of the cluster + base load. Energies are those of the facility; schedulers see the power
that is left for the cluster, and decide in watts of the cluster. Storage stands at the bus between own sources, the
facility and the grid; schedulers see the forecast of the sources, not what storage may add to it.

The limit of imports that jobs are held for is one of the load: in a slot the cluster may draw what its sources and the
grid at its limit can supply, ``max(0, renewable + limit - base load) / PUE``, forecast as the sources are. What a
battery could deliver is not counted on, and what exceeds the limit is imported all the same.
"""

from __future__ import annotations

from typing import NamedTuple, get_type_hints

import numpy as np

from greenbatch.energy import Site
from greenbatch.energy.storage import DAY_S, Storage
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.apart import compiled_apart
from greenbatch.engine.compile import compiled_small
from greenbatch.engine.power.ahead import PERFECT, TRUTH, Ahead, ahead_of, expected_w, shown_w
from greenbatch.engine.power.arbitrage import Here, Prices, arbitrage, plan_ahead
from greenbatch.engine.power.balance import NO_RATES, NO_STORAGE, Pieces, Rates, Stored, enter
from greenbatch.engine.power.costs import costs_of, rates_of, relative_to_usual, weighed
from greenbatch.engine.power.dispatch import NAMES, PRICE_ARBITRAGE, SCHEDULER, Dispatch, asked_w
from greenbatch.engine.power.protocol import (
    LEFT_THE_SERIES,
    Power,
    Weights,
    allowed_w,
    always_allowed_w,
    command,
    commanded_w,
    flow,
    forecast_w,
    is_commanded,
    power_of,
    rates_at,
    served_w,
    weigh,
)
from greenbatch.engine.power.series import SeriesSupply
from greenbatch.engine.power.slots import covering, slots_ahead
from greenbatch.engine.power.storage import Battery, Charge, use
from greenbatch.engine.records import Clock, Floats, Ledger, Slots, record_of, shared
from greenbatch.engine.views.interface import Costs
from greenbatch.engine.views.interface import Storage as SeenStorage

NEVER = -(2**62)
"""No slot."""


@shared("rates", "weighed", "relative")
class CostTables(NamedTuple):
    """What energy costs and emits in each slot; without rows, nothing."""

    rates: Floats
    """`balance.Rates`, shape (slots, 5)."""
    weighed: Floats
    """`arbitrage.Prices`, shape (slots, 3)."""
    relative: Floats
    """What a joule costs and emits relative to the usual price and intensity, see `costs.relative_to_usual`, shape
    (slots, 4)."""


@shared("supply_w", "renewable_w", "pue", "base_load_w", "allowed_w", "import_w")
class PowerSupply(NamedTuple):
    """The supply of a site."""

    slots: Slots
    supply_w: Floats
    """Power of the cluster that renewable power can supply per slot, `energy.Site.available_w`, shape (slots,). [W]"""
    renewable_w: Floats
    """Renewable power per slot, shape (slots,). [W]"""
    pue: Floats
    """Power of the facility without its base load per power of the cluster, per slot, >= 1, shape (slots,)."""
    base_load_w: Floats
    """Base load of the facility, shape (1,). [W]"""
    allowed_w: Floats
    """Largest load of the cluster per slot, shape (slots,); without rows, any. [W]"""
    import_w: Floats
    """Limit of imports that jobs are held for, and the load that no forecast forbids in any slot, shape (2,). [W]"""
    ahead: Ahead
    tariff: CostTables
    battery: Battery
    charge: Charge
    dispatch: Dispatch


_NOTHING, _EMPTY = Storage(capacity_kwh=0.0, charge_w=1.0, discharge_w=1.0), np.zeros(0)
FREE = CostTables(np.zeros((0, 5)), np.zeros((0, 3)), np.zeros((0, 4)))
"""Energy that costs and emits nothing."""


def tariff_of(costs: Costs, carbon_price_per_kg: float = 0.0) -> CostTables:
    """The tables of some costs.

    Args:
        costs: of each slot.
        carbon_price_per_kg: what emissions are worth to the dispatch of storage.
    """
    return CostTables(rates_of(costs), weighed(costs, carbon_price_per_kg), relative_to_usual(costs))


def stored_by(storage: Storage, horizon_slots: int) -> tuple[Battery, Charge, Dispatch]:
    """A battery, what is in it at first, and its rule, which plans for some slots ahead."""
    battery = record_of(
        Battery, usable_j=storage.usable_j, charge_w=storage.charge_w, discharge_w=storage.discharge_w,
        charge_efficiency=storage.charge_efficiency, discharge_efficiency=storage.discharge_efficiency,
        loss_per_s=-np.log1p(-storage.self_discharge_per_day) / DAY_S,
    )  # fmt: skip
    charge = record_of(Charge, stored_j=storage.initial_j, planned_slot=NEVER, ranked_slot=NEVER)
    rule, limit_w = NAMES[storage.dispatch], np.array([storage.limit_w or 0.0])
    plan = arbitrage(horizon_slots if rule == PRICE_ARBITRAGE else 1, storage.wear_per_kwh / JOULES_PER_KWH)
    return battery, charge, Dispatch(np.array([rule], np.int64), limit_w, plan)


@power_of.register
def power_of_site(site: Site) -> SeriesSupply | PowerSupply:
    """The supply of a site: a bare series if it has nothing but sources that are forecast as they come."""
    if site.grid or site.storage or site.has_overhead or site.forecast_model.kind != "perfect":
        return supply_of_site(site)
    return SeriesSupply(_slots(site), _column(site.load_limit_w(0.0)))


def supply_of_site(site: Site) -> PowerSupply:
    """The supply of a site, whatever it has."""
    limit_w, storage = site.held_limit_w, site.storage or _NOTHING
    least_w = max(limit_w - site.base_load_w, 0.0) / np.max(site.pue)
    costs = site.grid is not None or site.storage is not None
    battery, charge, dispatch = stored_by(storage, site.horizon_slots)
    return PowerSupply(
        slots=_slots(site), supply_w=_column(site.load_limit_w(0.0)), renewable_w=_column(site.renewable_w),
        pue=_column(np.broadcast_to(site.pue, site.slots)), base_load_w=np.array([float(site.base_load_w)]),
        allowed_w=_EMPTY if limit_w == np.inf else _column(site.load_limit_w(limit_w)),
        import_w=np.array([limit_w, least_w]), ahead=ahead_of(site),
        tariff=tariff_of(costs_of(site), storage.carbon_price_per_kg) if costs else FREE,
        battery=battery, charge=charge, dispatch=dispatch,
    )  # fmt: skip


def _slots(site: Site) -> Slots:
    return record_of(
        Slots, step_s=site.step_s, origin_s=site.origin_s, count=site.slots, repeats=site.repeat,
        forecast=site.horizon_slots,
    )  # fmt: skip


def _column(values: Floats) -> Floats:
    return np.array(values, dtype=np.float64, order="C")


def supply_of_series(
    slots: Slots, power_w: Floats, costs: Costs | None, seen: SeenStorage | None, limit_w: Floats | None
) -> SeriesSupply | PowerSupply:  # fmt: skip
    """A supply without overhead that is forecast as it comes: a bare series if there is nothing else.

    Args:
        slots: the grid of the series.
        power_w: power in each slot. [W]
        costs: of energy; None if it costs nothing.
        seen: the storage that a policy commands.
        limit_w: largest load in each slot. [W]
    """
    if costs is None and seen is None and limit_w is None:
        return SeriesSupply(slots, power_w)
    battery, charge, dispatch = _NO_STORAGE if seen is None else _of_seen(seen)
    limits_w = (_EMPTY, _NO_LIMIT) if limit_w is None else (limit_w, np.array([0.0, limit_w.min()]))
    tariff = FREE if costs is None else tariff_of(costs)
    ones = np.ones(power_w.shape[0])
    return PowerSupply(slots, power_w, power_w, ones, _ZERO, *limits_w, TRUTH, tariff, battery, charge, dispatch)


_NO_STORAGE, _NO_LIMIT, _ZERO = stored_by(_NOTHING, 1), np.array([np.inf, np.inf]), np.zeros(1)


def _of_seen(seen: SeenStorage) -> tuple[Battery, Charge, Dispatch]:
    """The storage that a view shows."""
    battery = record_of(Battery, **{name: getattr(seen, name) for name in get_type_hints(Battery)})
    charge = record_of(
        Charge, stored_j=seen.stored_j, command_w=seen.command_w, planned_slot=NEVER, ranked_slot=NEVER
    )  # fmt: skip
    return battery, charge, _NO_STORAGE[2]._replace(rule=np.array([SCHEDULER], np.int64))


def seen_storage(power: Power) -> SeenStorage | None:
    """What a policy sees of the storage that it commands; None if it commands none."""
    if not isinstance(power, PowerSupply) or not is_commanded(power):
        return None
    known, charge = {name: float(getattr(power.battery, name)) for name in get_type_hints(Battery)}, power.charge
    return SeenStorage(stored_j=float(charge.stored_j), command_w=float(charge.command_w), **known)


@compiled_small
def _expected_w(
    power: PowerSupply, clock: Clock, slot: int, current: int, power_w: Floats, import_w: float
) -> float:  # fmt: skip
    """What a series of the supply is expected to be: what the sources and a power from the grid leave. [W]"""
    if power.ahead.kind[0] == PERFECT:
        return shown_w(power.slots, power_w, clock, slot, current)
    shown, renewable_w = expected_w(power.ahead, power.slots, power.renewable_w, clock, slot, current)
    if shown < 0:
        return float(power_w[current % power.slots.count])
    return float(max(renewable_w - (power.base_load_w[0] - import_w), 0.0) / power.pue[shown])


@forecast_w.register(PowerSupply)
def forecast_of_supply(power: PowerSupply, clock: Clock, slot: int, current: int) -> float:
    """What the sources are expected to leave for the cluster. [W]"""
    return _expected_w(power, clock, slot, current, power.supply_w, 0.0)


@allowed_w.register(PowerSupply)
def allowed_by_grid_w(power: PowerSupply, clock: Clock, slot: int, current: int) -> float:
    """What the sources and the grid at its limit are expected to allow the cluster. [W]"""
    return _expected_w(power, clock, slot, current, power.allowed_w, power.import_w[0])


@always_allowed_w.register(PowerSupply)
def always_allowed_by_grid_w(power: PowerSupply) -> float:
    """What the grid at its limit carries alone; infinite without a limit. [W]"""
    return float(power.import_w[1])


@weigh.register(PowerSupply)
def weigh_by_costs(power: PowerSupply, clock: Clock, slot: int, current: int, weights: Weights) -> tuple[float, float]:
    """By the costs of the slot, which are known as far ahead as the power."""
    of = power.tariff.relative
    if of.shape[0] == 0:
        return weights.brown, 0.0
    shown = (current + slots_ahead(power.slots, clock, slot, current)) % power.slots.count
    grid = weights.brown + weights.cost * of[shown, 0] + weights.carbon * of[shown, 2]
    return grid, weights.cost * of[shown, 1] + weights.carbon * of[shown, 3]


@served_w.register(PowerSupply)
def served_in_facility_w(power: PowerSupply, slot: int, load_w: float) -> tuple[float, float]:
    """Renewable power serves the whole facility."""
    return power.pue[slot] * load_w + power.base_load_w[0], power.renewable_w[slot]


@rates_at.register(PowerSupply)
def rates_of_slot(power: PowerSupply, slot: int) -> Rates:
    """Those of the grid and the own sources."""
    of = power.tariff.rates
    if of.shape[0] == 0:
        return NO_RATES
    return Rates(of[slot, 0], of[slot, 1], of[slot, 2], of[slot, 3], of[slot, 4])


@is_commanded.register(PowerSupply)
def is_dispatched_by_scheduler(power: PowerSupply) -> bool:
    """By its rule of dispatch."""
    return bool(power.dispatch.rule[0] == SCHEDULER)


@command.register(PowerSupply)
def command_battery(power: PowerSupply, power_w: float) -> None:
    """Remember it in the battery."""
    power.charge.command_w = power_w


@commanded_w.register(PowerSupply)
def commanded_of_battery_w(power: PowerSupply) -> float:
    """That of the battery."""
    return float(power.charge.command_w)


@flow.register(PowerSupply)
def flow_of_supply(
    power: PowerSupply, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    """See `cut_and_enter`."""
    return cut_and_enter(power, load_w, from_s, to_s, ledger, rows, count)


@compiled_apart()
def cut_and_enter(
    power: PowerSupply, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Pieces, count: int
) -> int:  # fmt: skip
    """Cut the interval at the slots, and where the battery is full or empty; renewable power is used first."""
    slots, battery, charge, at_s, before = power.slots, power.battery, power.charge, from_s, count
    while at_s < to_s:
        number, edge_s = covering(slots, at_s)
        if not slots.repeats and not 0 <= number < slots.count:
            return LEFT_THE_SERIES
        slot, next_s = number % slots.count, min(to_s, edge_s)
        drawn_w, renewable_w = served_w(power, slot, load_w)
        rates = rates_at(power, slot)
        if battery.usable_j == 0.0:
            count = enter(ledger, at_s, next_s, drawn_w, renewable_w, NO_STORAGE, rates, rows, count)
            at_s = next_s
            continue
        if charge.planned_slot != number:
            if power.dispatch.rule[0] == PRICE_ARBITRAGE:
                plan_ahead(power.dispatch.arbitrage, power, power.tariff.weighed, battery, number, load_w)
            charge.planned_slot = number
        prices = power.tariff.weighed
        here = Here(at_s, next_s, drawn_w - renewable_w, Prices(prices[slot, 0], prices[slot, 1], prices[slot, 2]))
        green = charge.green_j / charge.stored_j if charge.stored_j > 0.0 else 0.0
        wanted_w = asked_w(power.dispatch, battery, charge, here)
        change = use(battery, charge, wanted_w, max(-here.net_w, 0.0), at_s, next_s)
        stored = Stored(change.bus_w, green, charge.stored_j)
        count = enter(ledger, at_s, change.until_s, drawn_w, renewable_w, stored, rates, rows, count)
        at_s = change.until_s
    return count - before
