"""Dispatch by price: the optimum over the slots that are forecast, planned again in every slot.

The cost of a slot and the cost-to-go are convex and piecewise linear in the energy of the battery, so dynamic
programming over them is exact: each step merges the pieces of two functions in order of slope.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.power.protocol import Power, forecast_w, served_w
from greenbatch.engine.power.storage import Battery, Charge
from greenbatch.engine.records import Clock, Floats, Ints, record_of, shared

PIECES = 4
"""Pieces of the cost of a slot: storing what must be bought, storing surplus, serving the load, selling."""

NOTHING = 1e-9
"""A charge or discharge below this share of the most that can be charged is rounding."""

LATER = 0.999
"""Saving later is worth this much of saving now."""


class Prices(NamedTuple):
    """What dispatch weighs in a slot, per joule."""

    buy: float
    """Cost of energy from the grid."""
    keep: float
    """Cost of own energy that is stored instead of sold or curtailed."""
    sell: float
    """Gain of stored energy that is sold."""


class Here(NamedTuple):
    """Where a piece begins."""

    at_s: float
    until_s: float
    """End of its slot. [s]"""
    net_w: float
    """Load of the facility less renewable power: < 0 for a surplus. [W]"""
    prices: Prices


@shared("wear")
class Arbitrage(NamedTuple):
    """Take when energy is cheap and give when it is dear, by the prices and the renewable power that are forecast.

    The load is expected to stay as it is. What is left at the end of the forecast is worth something, see `worth`.
    """

    wear: Floats
    """Cost of a joule that the battery gives, for its ageing, shape (1,)."""
    net_w: Floats
    """Expected load less renewable power of the slots ahead, the current one first, shape (slots,). [W]"""
    prices: Floats
    """`Prices` of each of them, shape (slots, 3)."""
    slot: Floats
    """Slopes and lengths [J] of the cost of one slot, shape (2, PIECES)."""
    value: Floats
    """The same of the cost-to-go at the end of the current slot, shape (2, PIECES * slots + 1)."""
    merged: Floats
    """Scratch of the same shape."""
    pieces: Ints
    """Number of pieces of ``value``, shape (1,)."""
    clock: Clock
    """Only for the status that a forecast may set."""


def arbitrage(slots: int, wear: float) -> Arbitrage:
    """The rule with buffers for a number of slots ahead and a cost of ageing per joule."""
    value, merged = np.zeros((2, 2, PIECES * slots + 1))
    return Arbitrage(
        wear=np.array([wear]), net_w=np.zeros(slots), prices=np.zeros((slots, 3)), slot=np.zeros((2, PIECES)),
        value=value, merged=merged,
        pieces=np.zeros(1, np.int64), clock=record_of(Clock),
    )  # fmt: skip


@compiled_small
def kept(battery: Battery, seconds: float) -> float:
    """Share of the energy that is left after a time in which nothing is charged."""
    return float(np.exp(-battery.loss_per_s * seconds))


@compiled
def enter_slot(d: Arbitrage, battery: Battery, seconds: float, net_w: float, prices: Prices) -> None:
    """Write the cost of a slot by the energy that the battery gives up in it, from the most it takes to the most it
    gives, both counted inside.
    """
    into, out = battery.charge_efficiency, battery.discharge_efficiency
    most_in_j, most_out_j = battery.charge_w * into * seconds, battery.discharge_w / out * seconds
    surplus_j = min(max(-net_w, 0.0) * into * seconds, most_in_j)
    need_j = min(max(net_w, 0.0) / out * seconds, most_out_j)
    d.slot[0, 0], d.slot[1, 0] = -prices.buy / into, most_in_j - surplus_j
    d.slot[0, 1], d.slot[1, 1] = -prices.keep / into, surplus_j
    d.slot[0, 2], d.slot[1, 2] = (d.wear[0] - prices.buy) * out, need_j
    d.slot[0, 3], d.slot[1, 3] = (d.wear[0] - prices.sell) * out, most_out_j - need_j
    slope = -np.inf
    for k in range(PIECES):  # convex at negative prices too; pieces without length have no slope of their own
        slope = max(slope, d.slot[0, k]) if d.slot[1, k] > 0.0 else slope
        d.slot[0, k] = slope


@compiled_small
def _is_next(d: Arbitrage, i: int, count: int, k: int) -> bool:
    """Whether the piece of the cost-to-go is next; of equal ones, so that the load is served and all else waits."""
    if k >= PIECES or i >= count:
        return k >= PIECES
    return bool(d.value[0, i] < d.slot[0, k] or (k == PIECES - 1 and d.value[0, i] == d.slot[0, k]))


@compiled
def _step_back(d: Arbitrage, count: int, most_in_j: float, keep: float, usable_j: float) -> int:
    """Turn the cost-to-go at the end of the slot into that at its begin; return its number of pieces.

    The infimal convolution of both functions: their pieces in order of slope, and only what fits into the battery.
    """
    i, k, made, at_j, end_j = 0, 0, 0, -most_in_j, keep * usable_j
    while at_j < end_j and (i < count or k < PIECES):
        if _is_next(d, i, count, k):
            slope, length_j = d.value[0, i], d.value[1, i]
            i += 1
        else:
            slope, length_j = d.slot[0, k], d.slot[1, k]
            k += 1
        inside_j = min(at_j + length_j, end_j) - max(at_j, 0.0)
        at_j += length_j
        if inside_j > 0.0:
            d.merged[0, made], d.merged[1, made] = slope * keep, inside_j / keep
            made += 1
    for i in range(made):
        d.value[0, i], d.value[1, i] = d.merged[0, i], d.merged[1, i]
    return made


@compiled
def worth(d: Arbitrage, battery: Battery, ahead: int) -> float:
    """What a joule in the battery is worth at the end of the forecast.

    No more than it costs to replace it, at the cheapest import of the forecast, and less than what it saves then, at
    the dearest.
    """
    cheapest, dearest = np.inf, -np.inf
    for k in range(ahead):
        cheapest, dearest = min(cheapest, d.prices[k, 0]), max(dearest, d.prices[k, 0])
    saved = (dearest - d.wear[0]) * battery.discharge_efficiency * LATER
    return float(max(0.0, min(cheapest / battery.charge_efficiency, saved)))


@compiled
def plan(d: Arbitrage, battery: Battery, ahead: int, seconds: float, left: float) -> None:
    """Plan the slots after the current one.

    Args:
        d: ``net_w`` and ``prices`` of the slots must be filled.
        battery: what the battery can do.
        ahead: number of slots, the current one included.
        seconds: length of a slot. [s]
        left: what a joule in the battery is worth after the last slot.
    """
    count, keep = 1, kept(battery, seconds)
    d.value[0, 0], d.value[1, 0] = -left, battery.usable_j
    for k in range(ahead - 1, 0, -1):
        enter_slot(d, battery, seconds, d.net_w[k], Prices(d.prices[k, 0], d.prices[k, 1], d.prices[k, 2]))
        count = _step_back(d, count, battery.charge_w * battery.charge_efficiency * seconds, keep, battery.usable_j)
    d.pieces[0] = count


@compiled
def given_up_j(d: Arbitrage, most_in_j: float, begin_j: float) -> float:
    """Energy to give up in the current slot, < 0 to take, if ``begin_j`` would be left without. [J]"""
    i, k, at_j, given_j, count = 0, 0, -most_in_j, -most_in_j, d.pieces[0]
    while at_j < begin_j and (i < count or k < PIECES):
        if _is_next(d, i, count, k):
            at_j += d.value[1, i]
            i += 1
        else:
            length_j = min(d.slot[1, k], begin_j - at_j)
            at_j, given_j = at_j + length_j, given_j + length_j
            k += 1
    return float(given_j)


@compiled
def plan_ahead(d: Arbitrage, power: Power, weighed: Floats, battery: Battery, slot: int, load_w: float) -> None:
    """Plan the slots ahead, as far as the supply is forecast.

    Args:
        d: buffers; filled.
        power: the supply without storage.
        weighed: `Prices` of each slot of the series, shape (slots, 3).
        battery: what the battery can do.
        slot: number of the current slot, not wrapped.
        load_w: load of the cluster. [W]
    """
    slots, ahead = power.slots, d.net_w.shape[0]
    if not slots.repeats:
        ahead = min(ahead, slots.count - slot)
    for k in range(ahead):
        shown = (slot + k) % slots.count
        drawn_w, _ = served_w(power, shown, load_w)
        left_w = forecast_w(power, d.clock, slot + k, slot)
        free_w, _ = served_w(power, shown, left_w)
        d.net_w[k] = drawn_w - free_w if left_w > 0.0 else drawn_w
        for column in range(3):
            d.prices[k, column] = weighed[shown, column]
    is_last = not slots.repeats and slot + ahead >= slots.count
    plan(d, battery, ahead, slots.step_s, 0.0 if is_last else worth(d, battery, ahead))


@compiled
def arbitrage_w(d: Arbitrage, battery: Battery, charge: Charge, here: Here) -> float:
    """The constant power that leaves the best energy at the end of the slot. [W]"""
    seconds = here.until_s - here.at_s
    enter_slot(d, battery, seconds, here.net_w, here.prices)
    most_in_j = battery.charge_w * battery.charge_efficiency * seconds
    given_j = given_up_j(d, most_in_j, kept(battery, seconds) * charge.stored_j)
    if abs(given_j) < NOTHING * most_in_j:
        return 0.0
    if given_j > 0.0:
        return float(-given_j * battery.discharge_efficiency / seconds)
    return float(-given_j / battery.charge_efficiency / seconds)
