"""What the engine asks of a power supply: a NamedTuple with the field ``slots``, and these functions.

A new kind of supply is one file: its class, its implementations of the functions, and `power_of` for the site that
describes it.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple, Protocol

import numpy as np

from greenbatch.engine.power.balance import NO_RATES, Rates
from greenbatch.engine.records import Clock, Floats, Ledger, RuleSet, Slots
from greenbatch.machine_code.compile import compiled_small
from greenbatch.machine_code.variants import variant

LEFT_THE_SERIES = -1
"""Result of `flow` if a power series that does not repeat has ended."""


class Weights(NamedTuple):
    """What a joule from the grid weighs: energy, money and carbon in one unit, that of a joule at the usual price.

    At the usual price and the usual intensity of the grid, see `interface.Costs`, it weighs the sum of the three.
    """

    brown: float = 1.0
    """Weight of its energy."""
    cost: float = 0.0
    """Weight of its price over the usual one."""
    carbon: float = 0.0
    """Weight of its carbon over the usual intensity, at the margin if that is known."""


BROWN = Weights(1.0, 0.0, 0.0)
"""Only energy from the grid counts."""


@compiled_small
def is_brown(weights: Weights) -> bool:
    """Whether only energy from the grid counts, so that a joule weighs the same in all slots and never less than 0."""
    return weights.cost == 0.0 and weights.carbon == 0.0


@compiled_small
def usual_weight(weights: Weights) -> float:
    """What a joule from the grid weighs at the usual price and intensity."""
    return weights.brown + weights.cost + weights.carbon


class Power(Protocol):
    """A power supply, as a part of the state."""

    @property
    def slots(self) -> Slots:
        """The grid of its series."""


@singledispatch
def power_of(site: object) -> Power:
    """The supply that a site describes, None for a cluster without one; register a function for a new class of sites.

    Raises:
        TypeError: no supply is registered for it.
    """
    raise TypeError(f"no power supply is registered for {type(site).__name__}")


@variant()
def forecast_w(power: Power, clock: Clock, slot: int, current: int) -> float:
    """Renewable power expected in a slot, as seen from the current slot. [W]

    Sets the clock's status if the current slot is outside a series that does not repeat.
    """
    raise TypeError


@variant(default=True)
def allowed_w(power: Power, clock: Clock, slot: int, current: int) -> float:
    """Largest load of the cluster that the grid connection is expected to carry in a slot, as `forecast_w`. [W]"""
    return np.inf


@variant(default=True)
def always_allowed_w(power: Power) -> float:
    """Load that no forecast of `allowed_w` forbids; infinite if jobs are not held for the grid connection. [W]"""
    return np.inf


@variant(default=True)
def weigh(power: Power, clock: Clock, slot: int, current: int, weights: Weights) -> tuple[float, float]:
    """What a joule from the grid and one of the own surplus weigh in a slot, as seen from the current slot.

    Surplus that is used is not sold. Without prices and intensities, only the energy from the grid weighs anything.
    """
    return weights.brown, 0.0


@variant(default=True)
def is_commanded(power: Power) -> bool:
    """Whether the scheduler commands its storage."""
    return False


@variant(default=True)
def command(power: Power, power_w: float) -> None:
    """From now on, let storage take a power, < 0 to give, 0 for neither; nothing without storage. [W]"""


@variant(default=True)
def commanded_w(power: Power) -> float:
    """The command in force, 0 without storage. [W]"""
    return 0.0


@variant(default=True)
def ranked_w(power: Power, clock: Clock, load_w: float, rules: RuleSet) -> float:
    """The command that the rank of the current slot in the forecast asks for, see `power.ranked`. [W]"""
    return 0.0


@variant(default=True)
def rates_at(power: Power, slot: int) -> Rates:
    """What energy costs and emits in a slot of the series, per joule; nothing without prices."""
    return NO_RATES


@variant(inlined=False)
def flow(
    power: Power, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    """Serve a constant load over an interval and enter the energy in the ledger: the only place that integrates power.

    Args:
        power: the supply.
        load_w: the load. [W]
        from_s: start of the interval. [s]
        to_s: its end. [s]
        ledger: energies and cost to add to.
        rows: output; pieces of the interval over which the supply is constant are written from row ``count`` on, see
            `engine.power.balance.enter`. Without rows, pieces are only counted.
        count: pieces written so far.

    Returns:
        The number of pieces written now, or `LEFT_THE_SERIES`.
    """
    raise TypeError
