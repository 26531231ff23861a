"""The supply of a facility that draws more than its cluster: PUE x power of the cluster + base load.

Energies are those of the facility. Schedulers see the power that is left for the cluster, and decide in watts of the
cluster as everywhere else.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.power.protocol import served_w
from greenbatch.engine.records import Floats, Slots, shared


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


@served_w.register(Facility)
def served_in_facility_w(power: Facility, slot: int, load_w: float) -> tuple[float, float]:
    """Renewable power serves the whole facility."""
    return power.pue[slot] * load_w + power.base_load_w[0], power.renewable_w[slot]
