"""The supply of a facility that draws more than its cluster: PUE x power of the cluster + base load.

Energies are those of the facility. Schedulers see the power that is left for the cluster, and decide in watts of the
cluster as everywhere else.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.power.balance import enter
from greenbatch.engine.power.protocol import LEFT_THE_SERIES, flow
from greenbatch.engine.power.slots import covering
from greenbatch.engine.records import Floats, Ledger, Slots, shared


@shared("supply_w", "renewable_w", "pue", "base_load_w")
class Facility(NamedTuple):
    """A series of renewable power, and what the facility draws for the power of its cluster."""

    slots: Slots
    supply_w: Floats
    """Power of the cluster that renewable power can supply per slot, `energy.Site.available_w`, shape (slots,). [W]"""
    renewable_w: Floats
    """Renewable power per slot, shape (slots,). [W]"""
    pue: Floats
    """Power of the facility without its base load per power of the cluster, per slot, >= 1, shape (slots,)."""
    base_load_w: Floats
    """Base load of the facility, shape (1,). [W]"""


@flow.register(Facility)
def flow_in_facility(
    power: Facility, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    """Cut the interval at the slots; renewable power is used first, for the whole facility."""
    slots, at_s, before = power.slots, from_s, count
    while at_s < to_s:
        number, edge_s = covering(slots, at_s)
        if not slots.repeats and not 0 <= number < slots.count:
            return LEFT_THE_SERIES
        slot, next_s = number % slots.count, min(to_s, edge_s)
        facility_w = power.pue[slot] * load_w + power.base_load_w[0]
        count = enter(ledger, at_s, next_s, facility_w, power.renewable_w[slot], rows, count)
        at_s = next_s
    return count - before
