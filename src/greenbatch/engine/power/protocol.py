"""What the engine asks of a power supply: a NamedTuple with the field ``slots``, and these functions.

A new kind of supply is one file: its class, its implementations of the functions, and `power_of` for the site that
describes it.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Protocol

from greenbatch.engine.records import Clock, Floats, Ledger, Slots
from greenbatch.engine.variants import variant

LEFT_THE_SERIES = -1
"""Result of `flow` if a power series that does not repeat has ended."""


class Power(Protocol):
    """A power supply, as a part of the state."""

    @property
    def slots(self) -> Slots:
        """The grid of its series."""
        ...


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


@variant()
def served_w(power: Power, slot: int, load_w: float) -> tuple[float, float]:
    """What is drawn for a load of the cluster, and what really is renewable, in a slot of the series. [W]"""
    raise TypeError


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
