"""Dispatch by price: the optimum over the slots that are forecast, planned again in every slot.

The cost of a slot and the cost-to-go are convex and piecewise linear in the energy of the battery, so dynamic
programming over them is exact: each step merges the pieces of two functions in order of slope.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.power.ahead import left_w
from greenbatch.engine.power.storage import Battery
from greenbatch.engine.power.table import SUPPLY_W, WEIGHED, PowerSupply, served_w
from greenbatch.engine.records import Floats
from greenbatch.machine_code.compile import compiled, compiled_small

PIECES = 4
"""Pieces of the cost of a slot: storing what must be bought, storing surplus, serving the load, selling."""
NET_W, BUY, KEEP, SELL = range(4)
"""Rows of `table.PowerSupply.plan` with a value for each slot ahead, the current one first: expected load less
renewable power, < 0 for a surplus [W]; and what a joule weighs: cost of one from the grid, cost of an own one that is
stored instead of sold or curtailed, gain of a stored one that is sold."""
SLOT, VALUE, MERGED, PLAN_ROWS = 4, 6, 8, 10
"""The first of two rows, of slopes and of lengths [J]: the pieces of the cost of one slot; those of the cost-to-go at
the end of the current slot; and scratch for them."""
NOTHING = 1e-9
"""A charge or discharge below this share of the most that can be charged is rounding."""
LATER = 0.999
"""Saving later is worth this much of saving now."""


def plan_buffers(slots: int) -> Floats:
    """Buffers for a number of slots ahead, shape (PLAN_ROWS, PIECES * slots + 1)."""
    return np.zeros((PLAN_ROWS, PIECES * slots + 1))


@compiled_small
def kept(battery: Battery, seconds: float) -> float:
    """Share of the energy that is left after a time in which nothing is charged."""
    return float(np.exp(-battery.loss_per_s * seconds))


@compiled
def enter_slot(plan: Floats, battery: Battery, wear: float, seconds: float, net_w: float, k: int) -> None:
    """Write the cost of a slot by the energy that the battery gives up in it, from the most it takes to the most it
    gives, both counted inside.

    Args:
        plan: rows `BUY` to `SELL` must be filled.
        battery: what the battery can do.
        wear: cost of a joule that it gives.
        seconds: how long the slot lasts, or what is left of it. [s]
        net_w: load less renewable power. [W]
        k: how many slots ahead it is.
    """
    buy, keep, sell = plan[BUY, k], plan[KEEP, k], plan[SELL, k]
    into, out = battery.charge_efficiency, battery.discharge_efficiency
    most_in_j, most_out_j = battery.charge_w * into * seconds, battery.discharge_w / out * seconds
    surplus_j = min(max(-net_w, 0.0) * into * seconds, most_in_j)
    need_j = min(max(net_w, 0.0) / out * seconds, most_out_j)
    plan[SLOT, 0], plan[SLOT + 1, 0] = -buy / into, most_in_j - surplus_j
    plan[SLOT, 1], plan[SLOT + 1, 1] = -keep / into, surplus_j
    plan[SLOT, 2], plan[SLOT + 1, 2] = (wear - buy) * out, need_j
    plan[SLOT, 3], plan[SLOT + 1, 3] = (wear - sell) * out, most_out_j - need_j
    slope = -np.inf
    for piece in range(PIECES):  # convex at negative prices too; pieces without length have no slope of their own
        slope = max(slope, plan[SLOT, piece]) if plan[SLOT + 1, piece] > 0.0 else slope
        plan[SLOT, piece] = slope


@compiled_small
def _is_next(plan: Floats, i: int, count: int, k: int) -> bool:
    """Whether the piece of the cost-to-go is next; of equal ones, so that the load is served and all else waits."""
    if k >= PIECES or i >= count:
        return k >= PIECES
    return bool(plan[VALUE, i] < plan[SLOT, k] or (k == PIECES - 1 and plan[VALUE, i] == plan[SLOT, k]))


@compiled
def _step_back(plan: Floats, count: int, most_in_j: float, keep: float, usable_j: float) -> int:
    """Turn the cost-to-go at the end of the slot into that at its begin; return its number of pieces.

    The infimal convolution of both functions: their pieces in order of slope, and only what fits into the battery.
    """
    i, k, made, at_j, end_j = 0, 0, 0, -most_in_j, keep * usable_j
    while at_j < end_j and (i < count or k < PIECES):
        if _is_next(plan, i, count, k):
            slope, length_j = plan[VALUE, i], plan[VALUE + 1, i]
            i += 1
        else:
            slope, length_j = plan[SLOT, k], plan[SLOT + 1, k]
            k += 1
        inside_j = min(at_j + length_j, end_j) - max(at_j, 0.0)
        at_j += length_j
        if inside_j > 0.0:
            plan[MERGED, made], plan[MERGED + 1, made] = slope * keep, inside_j / keep
            made += 1
    for i in range(made):
        plan[VALUE, i], plan[VALUE + 1, i] = plan[MERGED, i], plan[MERGED + 1, i]
    return made


@compiled
def worth(plan: Floats, battery: Battery, wear: float, ahead: int) -> float:
    """What a joule in the battery is worth at the end of the forecast.

    No more than it costs to replace it, at the cheapest import of the forecast, and less than what it saves then, at
    the dearest.
    """
    cheapest, dearest = np.inf, -np.inf
    for k in range(ahead):
        cheapest, dearest = min(cheapest, plan[BUY, k]), max(dearest, plan[BUY, k])
    saved = (dearest - wear) * battery.discharge_efficiency * LATER
    return float(max(0.0, min(cheapest / battery.charge_efficiency, saved)))


@compiled
def plan_slots(plan: Floats, battery: Battery, wear: float, ahead: int, seconds: float, left: float) -> int:
    """Plan the slots after the current one; return the number of pieces of the cost-to-go.

    Args:
        plan: rows `NET_W` to `SELL` must be filled.
        battery: what the battery can do.
        wear: cost of a joule that it gives.
        ahead: number of slots, the current one included.
        seconds: length of a slot. [s]
        left: what a joule in the battery is worth after the last slot.
    """
    count, keep = 1, kept(battery, seconds)
    plan[VALUE, 0], plan[VALUE + 1, 0] = -left, battery.usable_j
    for k in range(ahead - 1, 0, -1):
        enter_slot(plan, battery, wear, seconds, plan[NET_W, k], k)
        count = _step_back(plan, count, battery.charge_w * battery.charge_efficiency * seconds, keep, battery.usable_j)
    return count


@compiled
def given_up_j(plan: Floats, count: int, most_in_j: float, begin_j: float) -> float:
    """Energy to give up in the current slot, < 0 to take, if ``begin_j`` would be left without. [J]"""
    i, k, at_j, given_j = 0, 0, -most_in_j, -most_in_j
    while at_j < begin_j and (i < count or k < PIECES):
        if _is_next(plan, i, count, k):
            at_j += plan[VALUE + 1, i]
            i += 1
        else:
            length_j = min(plan[SLOT + 1, k], begin_j - at_j)
            at_j, given_j = at_j + length_j, given_j + length_j
            k += 1
    return float(given_j)


@compiled
def plan_ahead(power: PowerSupply, slot: int, load_w: float) -> None:
    """Plan the slots ahead, as far as the supply is forecast.

    Args:
        power: the supply.
        slot: number of the current slot, inside the series, not wrapped.
        load_w: load of the cluster. [W]
    """
    slots, plan, wear, ahead = power.slots, power.plan, power.terms.wear, power.plan.shape[1] // PIECES
    if not slots.repeats:
        ahead = min(ahead, slots.count - slot)
    for k in range(ahead):
        shown = (slot + k) % slots.count
        drawn_w, _ = served_w(power, shown, load_w)
        free_of_cluster_w = left_w(power, slot + k, slot, SUPPLY_W, 0.0)
        free_w, _ = served_w(power, shown, free_of_cluster_w)
        plan[NET_W, k] = drawn_w - free_w if free_of_cluster_w > 0.0 else drawn_w
        for column in range(3):
            plan[BUY + column, k] = power.series[WEIGHED + column, shown]
    is_last = not slots.repeats and slot + ahead >= slots.count
    left = 0.0 if is_last else worth(plan, power.battery, wear, ahead)
    power.charge.pieces = plan_slots(plan, power.battery, wear, ahead, slots.step_s, left)


@compiled
def arbitrage_w(power: PowerSupply, seconds: float, net_w: float) -> float:
    """The constant power that leaves the best energy at the end of the current slot. [W]

    Args:
        power: the supply, planned for this slot.
        seconds: what is left of the slot. [s]
        net_w: load of the facility less renewable power. [W]
    """
    battery, charge = power.battery, power.charge
    enter_slot(power.plan, battery, power.terms.wear, seconds, net_w, 0)
    most_in_j = battery.charge_w * battery.charge_efficiency * seconds
    begin_j = kept(battery, seconds) * charge.stored_j
    given_j = given_up_j(power.plan, charge.pieces, most_in_j, begin_j)
    if abs(given_j) < NOTHING * most_in_j:
        return 0.0
    if given_j > 0.0:
        return float(-given_j * battery.discharge_efficiency / seconds)
    return float(-given_j / battery.charge_efficiency / seconds)
