"""A supply whose grid connection has a limit that jobs are held for: `Limited` stands around any other supply.

The limit is one of the load: in a slot, the cluster may draw what its sources and the grid at its limit can supply,
``max(0, renewable + limit - base load) / PUE``. That is forecast as the power of the sources is, by a second supply
with a base load that is smaller by the limit. What a battery could deliver is not counted on.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.power.balance import Rates
from greenbatch.engine.power.protocol import (
    Power,
    Weights,
    command,
    commanded_w,
    flow,
    forecast_w,
    is_commanded,
    ranked_w,
    rates_at,
    served_w,
    weigh,
)
from greenbatch.engine.records import Clock, Floats, Ledger, Slots, shared, varying


@varying("supply", "allowed")
@shared("least_w")
class Limited(NamedTuple):
    """A supply, and the largest load that its grid connection allows."""

    slots: Slots
    """Those of the supply."""
    supply: Power
    allowed: Power
    """Its forecast is the largest load of the cluster in a slot, see `load_limit_w`."""
    least_w: Floats
    """Load that no forecast forbids in any slot, shape (1,). [W]"""


@forecast_w.register(Limited)
def forecast_of_supply(power: Limited, clock: Clock, slot: int, current: int) -> float:
    """That of the supply."""
    return forecast_w(power.supply, clock, slot, current)


@weigh.register(Limited)
def weigh_by_supply(power: Limited, clock: Clock, slot: int, current: int, weights: Weights) -> tuple[float, float]:
    """As in the supply."""
    return weigh(power.supply, clock, slot, current, weights)


@served_w.register(Limited)
def served_by_supply_w(power: Limited, slot: int, load_w: float) -> tuple[float, float]:
    """Those of the supply."""
    return served_w(power.supply, slot, load_w)


@rates_at.register(Limited)
def rates_of_supply(power: Limited, slot: int) -> Rates:
    """Those of the supply."""
    return rates_at(power.supply, slot)


@is_commanded.register(Limited)
def is_supply_commanded(power: Limited) -> bool:
    """As in the supply."""
    return is_commanded(power.supply)


@command.register(Limited)
def command_supply(power: Limited, power_w: float) -> None:
    """Of the supply."""
    command(power.supply, power_w)


@commanded_w.register(Limited)
def commanded_of_supply_w(power: Limited) -> float:
    """That of the supply."""
    return commanded_w(power.supply)


@ranked_w.register(Limited)
def ranked_of_supply_w(
    power: Limited, clock: Clock, load_w: float, below: float, above: float, carbon: float
) -> float:  # fmt: skip
    """That of the supply."""
    return ranked_w(power.supply, clock, load_w, below, above, carbon)


@flow.register(Limited)
def flow_through_supply(
    power: Limited, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    """That of the supply: what exceeds the limit is imported all the same."""
    return flow(power.supply, load_w, from_s, to_s, ledger, rows, count)
