"""Dispatch of storage: how much power it is asked to take or give in a piece of a slot. One class per rule.

A new rule is a class with its parameters, implementations of these functions, and a line in `metered.dispatch_of`.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.power.protocol import Power
from greenbatch.engine.power.storage import Battery, Charge
from greenbatch.engine.records import Floats
from greenbatch.engine.variants import variant

class Here(NamedTuple):
    """Where a piece begins."""

    at_s: float
    until_s: float
    """End of its slot. [s]"""
    net_w: float
    """Load of the facility less renewable power: < 0 for a surplus. [W]"""
    buy: float
    """Cost of a joule from the grid, as dispatch weighs it."""
    sell: float
    """Gain of a joule of surplus."""


class Greedy(NamedTuple):
    """Take all surplus, give whenever the load exceeds renewable power.

    Venkataswamy (2023), Algorithm 5, in energy instead of power per step and with its branches the right way round: as
    printed, the branch for a battery that can serve the load is taken if it cannot, the battery is drained by the
    whole need even beyond empty, and the charging rate is not limited.
    """

    unused: Floats
    """No parameters; shape (0,)."""


class PeakShaving(NamedTuple):
    """Keep imports below a limit: give above it, take surplus, and refill from the grid below it."""

    limit_w: Floats
    """Limit on imports, shape (1,). [W]"""


class Controlled(NamedTuple):
    """Take or give what the scheduler asks for, see `interface.Charge`."""

    unused: Floats
    """No parameters; shape (0,)."""


@variant(default=True)
def look_ahead(
    dispatch: object, power: Power, weighed: Floats, battery: Battery, slot: int, load_w: float
) -> None:  # fmt: skip
    """Prepare for a slot: called once in each.

    Args:
        dispatch: the rule; its type selects.
        power: the supply without storage.
        weighed: cost of a joule from the grid and gain of one of surplus in each slot of the series, shape (slots, 2).
        battery: what the battery can do.
        slot: number of the slot, not wrapped.
        load_w: load of the cluster at its first piece. [W]
    """
    return


@variant()
def asked_w(dispatch: object, battery: Battery, charge: Charge, here: Here) -> float:
    """Power that the battery is asked to take, < 0 to give, until the slot ends. [W]

    Args:
        dispatch: the rule; its type selects.
        battery: what the battery can do.
        charge: what is in it.
        here: load, renewable power and time.
    """
    raise TypeError


@asked_w.register(Greedy)
def greedy_w(dispatch: Greedy, battery: Battery, charge: Charge, here: Here) -> float:
    """All that is left, or all that is missing."""
    return -here.net_w


@asked_w.register(PeakShaving)
def shaving_w(dispatch: PeakShaving, battery: Battery, charge: Charge, here: Here) -> float:
    """What brings imports to the limit, from either side."""
    return float(dispatch.limit_w[0] - here.net_w)


@asked_w.register(Controlled)
def controlled_w(dispatch: Controlled, battery: Battery, charge: Charge, here: Here) -> float:
    """The setpoint."""
    return charge.setpoint_w
