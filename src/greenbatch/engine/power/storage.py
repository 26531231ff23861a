"""Storage: what is in it after a time at constant power, exactly, and when it is full or empty.

Energy is counted from the lower end of the window of states of charge, so that it lies in ``[0, usable_j]``.
Self-discharge is a share of that energy per time. Energy that was charged from renewable power is mixed with the rest:
the renewable share of what is taken out is that of what is in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.machine_code.compile import compiled_small


class Battery:
    """What a battery can do."""

    usable_j: float
    """Energy between the limits of its state of charge."""
    charge_w: float
    """Largest power that it takes."""
    discharge_w: float
    """Largest power that it gives."""
    charge_efficiency: float
    discharge_efficiency: float
    loss_per_s: float
    """Self-discharge: share of the energy lost per second."""


class StateOfCharge:
    """What is in a battery; changes."""

    stored_j: float
    """Above the lower limit, 0 to ``usable_j``."""
    green_j: float
    """The part of it that was charged from renewable power."""
    planned_slot: int
    """Slot that was planned last, see `power.arbitrage`."""
    pieces: int
    """Pieces of the cost-to-go of that plan."""
    command_w: float
    """Power that the scheduler wants it to take, < 0 to give."""
    ranked_slot: int
    """Slot that was ranked last, see `power.ranked`."""
    rank: float
    """Its rank."""
    by_sun: int
    """1 if that is a rank by renewable power."""


class Change(NamedTuple):
    """What a battery does until a time."""

    bus_w: float
    """Power that it takes, < 0 if it gives. [W]"""
    until_s: float
    """How long it can do so, at most as long as was asked for. [s]"""


@compiled_small
def holding_w(battery: Battery) -> float:
    """Power that keeps a full battery full. [W]"""
    return battery.loss_per_s * battery.usable_j / battery.charge_efficiency


@compiled_small
def within(battery: Battery, charge: StateOfCharge, bus_w: float) -> float:
    """The power closest to the one asked for that the battery can take (> 0) or give (< 0) now. [W]

    A full battery takes what it loses; an empty one gives nothing.
    """
    bus_w = min(max(bus_w, -battery.discharge_w), battery.charge_w)
    if bus_w > 0.0 and charge.stored_j >= battery.usable_j:
        return float(min(bus_w, holding_w(battery)))
    if bus_w < 0.0 and charge.stored_j <= 0.0:
        return 0.0
    return float(bus_w)


@compiled_small
def rate_w(battery: Battery, bus_w: float) -> float:
    """Change of the energy inside at a power outside, without self-discharge. [W]"""
    return bus_w * battery.charge_efficiency if bus_w > 0.0 else bus_w / battery.discharge_efficiency


@compiled_small
def after(battery: Battery, energy_j: float, inside_w: float, seconds: float) -> float:
    """Energy after a time at a constant power inside. [J]"""
    if battery.loss_per_s == 0.0:
        return float(energy_j + inside_w * seconds)
    steady_j = inside_w / battery.loss_per_s
    return float(energy_j - (energy_j - steady_j) * -np.expm1(-battery.loss_per_s * seconds))


@compiled_small
def reached_s(battery: Battery, energy_j: float, inside_w: float) -> float:
    """Time until the battery is full or empty at a constant power inside, infinite if it never is. [s]"""
    rises = inside_w > battery.loss_per_s * energy_j
    if not rises and inside_w >= 0.0:
        return np.inf
    to_j = battery.usable_j if rises else 0.0
    if battery.loss_per_s == 0.0:
        return float((to_j - energy_j) / inside_w)
    steady_j = inside_w / battery.loss_per_s
    if rises and steady_j <= to_j:
        return np.inf
    return float(np.log1p((energy_j - to_j) / (to_j - steady_j)) / battery.loss_per_s)


@compiled_small
def use(battery: Battery, charge: StateOfCharge, asked_w: float, green_w: float, from_s: float, to_s: float) -> Change:
    """Charge or discharge until a time, or until the battery is full or empty.

    Args:
        battery: what it can do.
        charge: what is in it; changed.
        asked_w: power to take, < 0 to give. [W]
        green_w: renewable power that it can take. [W]
        from_s: now. [s]
        to_s: the latest end. [s]
    """
    bus_w = within(battery, charge, asked_w)
    inside_w, until_s = rate_w(battery, bus_w), to_s
    is_full = bus_w > 0.0 and charge.stored_j >= battery.usable_j and bus_w >= holding_w(battery)
    seconds = to_s - from_s
    limit_s = np.inf if is_full else reached_s(battery, charge.stored_j, inside_w)
    if limit_s < seconds:
        until_s = min(max(from_s + limit_s, np.nextafter(from_s, np.inf)), to_s)
        seconds = until_s - from_s
    share = charge.green_j / charge.stored_j if charge.stored_j > 0.0 else 0.0
    if bus_w > 0.0:
        into_w = rate_w(battery, min(bus_w, green_w))
        charge.green_j = after(battery, charge.green_j, into_w, seconds)
        charge.stored_j = battery.usable_j if is_full else after(battery, charge.stored_j, inside_w, seconds)
    else:
        charge.stored_j = after(battery, charge.stored_j, inside_w, seconds)
        charge.green_j = share * charge.stored_j
    if limit_s <= seconds:
        charge.stored_j = battery.usable_j if inside_w > 0.0 else 0.0
    charge.stored_j = min(max(charge.stored_j, 0.0), battery.usable_j)
    charge.green_j = min(max(charge.green_j, 0.0), charge.stored_j)
    return Change(bus_w, until_s)
