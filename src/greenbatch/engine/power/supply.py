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

from numba import from_dtype, types

from greenbatch.engine.codes import SUPPLY_EXHAUSTED
from greenbatch.engine.power import arbitrage, balance, dispatch, protocol, storage, table
from greenbatch.engine.power.ahead import left_w
from greenbatch.engine.power.balance import NO_RATES, NO_STORAGE, Pieces, Rates, Stored
from greenbatch.engine.power.protocol import LEFT_THE_SERIES, Weights
from greenbatch.engine.power.slots import covering, is_inside, shown_slot
from greenbatch.engine.power.table import PowerSupply
from greenbatch.engine.records import Clock, Floats, Ledger, dtype_of
from greenbatch.machine_code.apart import compiled_apart
from greenbatch.machine_code.compile import compiled_small


@protocol.forecast_w.register(PowerSupply)
def forecast_of_supply(power: PowerSupply, clock: Clock, slot: int, current: int) -> float:
    """What the sources are expected to leave for the cluster. [W]"""
    if not is_inside(power.slots, current):
        clock.status = SUPPLY_EXHAUSTED
        return 0.0
    return left_w(power, slot, current, table.SUPPLY_W, 0.0)


@protocol.allowed_w.register(PowerSupply)
def allowed_by_grid_w(power: PowerSupply, clock: Clock, slot: int, current: int) -> float:
    """What the sources and the grid at its limit are expected to allow the cluster. [W]"""
    if not is_inside(power.slots, current):
        clock.status = SUPPLY_EXHAUSTED
        return 0.0
    return left_w(power, slot, current, table.ALLOWED_W, power.terms.import_w)


@protocol.always_allowed_w.register(PowerSupply)
def always_allowed_by_grid_w(power: PowerSupply) -> float:
    """What the grid at its limit carries alone; infinite without a limit. [W]"""
    return float(power.terms.always_w)


@protocol.weigh.register(PowerSupply)
def weigh_by_costs(power: PowerSupply, clock: Clock, slot: int, current: int, weights: Weights) -> tuple[float, float]:
    """By the costs of the slot, which are known as far ahead as the power."""
    if power.terms.priced == 0:
        return weights.brown, 0.0
    if not is_inside(power.slots, current):
        clock.status = SUPPLY_EXHAUSTED
        return weights.brown, 0.0
    at, of = shown_slot(power.slots, slot, current), power.series
    grid = weights.brown + weights.cost * of[table.RELATIVE, at] + weights.carbon * of[table.RELATIVE + 2, at]
    return grid, weights.cost * of[table.RELATIVE + 1, at] + weights.carbon * of[table.RELATIVE + 3, at]


@protocol.rates_at.register(PowerSupply)
def rates_of_slot(power: PowerSupply, slot: int) -> Rates:
    """Those of the grid and the own sources."""
    if power.terms.priced == 0:
        return NO_RATES
    of, row = power.series, table.RATES
    return Rates(of[row, slot], of[row + 1, slot], of[row + 2, slot], of[row + 3, slot], of[row + 4, slot])


@protocol.is_commanded.register(PowerSupply)
def is_dispatched_by_scheduler(power: PowerSupply) -> bool:
    """By its rule of dispatch."""
    return bool(power.terms.dispatch == dispatch.SCHEDULER)


@protocol.command.register(PowerSupply)
def command_battery(power: PowerSupply, power_w: float) -> None:
    """Remember it in the battery."""
    power.charge.command_w = power_w


@protocol.commanded_w.register(PowerSupply)
def commanded_of_battery_w(power: PowerSupply) -> float:
    """That of the battery."""
    return float(power.charge.command_w)


@protocol.flow.register(PowerSupply)
def flow_of_supply(
    power: PowerSupply, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    """Cut the interval at the slots; renewable power is used first. What has only its sources needs no call."""
    if power.series.shape[0] > 1:
        return cut_and_enter(power, load_w, from_s, to_s, ledger, rows, count)
    slots, at_s, before = power.slots, from_s, count
    while at_s < to_s:
        next_s, renewable_w = to_s, 0.0
        if slots.count > 0:  # there is a site
            number, edge_s = covering(slots, at_s)
            if not is_inside(slots, number):
                return LEFT_THE_SERIES
            next_s, renewable_w = min(to_s, edge_s), power.series[table.SUPPLY_W, number % slots.count]
        count = balance.enter(ledger, at_s, next_s, load_w, renewable_w, NO_STORAGE, NO_RATES, rows, count)
        at_s = next_s
    return count - before


@compiled_apart(Ledger=from_dtype(dtype_of(Ledger)), Pieces=types.Array(types.float64, 2, "C"))
def cut_and_enter(
    power: PowerSupply, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Pieces, count: int
) -> int:  # fmt: skip
    """Cut the interval at the slots, and where the battery is full or empty, for a site with more than its sources."""
    slots, at_s, before = power.slots, from_s, count
    while at_s < to_s:
        number, edge_s = covering(slots, at_s)
        if not is_inside(slots, number):
            return LEFT_THE_SERIES
        slot, next_s = number % slots.count, min(to_s, edge_s)
        stored, rates = NO_STORAGE, protocol.rates_at(power, slot)
        drawn_w, renewable_w = table.served_w(power, slot, load_w)
        if power.battery.usable_j != 0.0:
            stored, next_s = _use_battery(power, number, load_w, drawn_w - renewable_w, at_s, next_s)
        count = balance.enter(ledger, at_s, next_s, drawn_w, renewable_w, stored, rates, rows, count)
        at_s = next_s
    return count - before


@compiled_small
def _use_battery(
    power: PowerSupply, number: int, load_w: float, net_w: float, at_s: float, until_s: float
) -> tuple[Stored, float]:  # fmt: skip
    """What the battery does, and until when it can.

    Args:
        power: the supply; the content of its battery changes.
        number: number of the slot, not wrapped.
        load_w: load of the cluster. [W]
        net_w: load of the facility less renewable power. [W]
        at_s: now. [s]
        until_s: end of the slot or of the interval. [s]
    """
    charge, rule = power.charge, power.terms.dispatch
    green = charge.green_j / charge.stored_j if charge.stored_j > 0.0 else 0.0
    if rule == dispatch.PRICE_ARBITRAGE:
        if charge.planned_slot != number:
            charge.planned_slot = number
            arbitrage.plan_ahead(power, number, load_w)
        wanted_w = arbitrage.arbitrage_w(power, until_s - at_s, net_w)
    else:
        wanted_w = dispatch.asked_w(rule, power.terms.peak_w, charge.command_w, net_w)
    change = storage.use(power.battery, charge, wanted_w, max(-net_w, 0.0), at_s, until_s)
    return Stored(change.bus_w, green, charge.stored_j), change.until_s
