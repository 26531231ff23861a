"""A bare series of renewable power beside the grid; without a site, the grid alone.

`supply.PowerSupply` has all that a site can have. What has nothing but its sources, as the sites of most papers, is
simulated with this one: it has a tenth of the tables, which are passed at each step of an environment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.engine.power.ahead import shown_w
from greenbatch.engine.power.balance import NO_RATES, NO_STORAGE, enter
from greenbatch.engine.power.protocol import LEFT_THE_SERIES, flow, forecast_w, power_of, served_w
from greenbatch.engine.power.slots import covering
from greenbatch.engine.records import Clock, Floats, Ledger, Slots, record_of, shared


@shared("supply_w")
class SeriesSupply(NamedTuple):
    """A series of renewable power, forecast as it comes."""

    slots: Slots
    supply_w: Floats
    """Renewable power per slot, shape (slots,). [W]"""


@power_of.register
def unsupplied(site: None) -> SeriesSupply:
    """The grid alone."""
    return SeriesSupply(record_of(Slots, step_s=1.0), np.zeros(1))


@forecast_w.register(SeriesSupply)
def forecast_of_series(power: SeriesSupply, clock: Clock, slot: int, current: int) -> float:
    """The series itself."""
    return shown_w(power.slots, power.supply_w, clock, slot, current)


@served_w.register(SeriesSupply)
def served_by_series_w(power: SeriesSupply, slot: int, load_w: float) -> tuple[float, float]:
    """The cluster draws all that is drawn."""
    return load_w, power.supply_w[slot]


@flow.register(SeriesSupply)
def flow_from_series(
    power: SeriesSupply, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
) -> int:  # fmt: skip
    """Cut the interval at the slots; renewable power is used first."""
    slots, at_s, before = power.slots, from_s, count
    while at_s < to_s:
        next_s, drawn_w, renewable_w = to_s, load_w, 0.0
        if slots.count > 0:
            slot, edge_s = covering(slots, at_s)
            if not slots.repeats and not 0 <= slot < slots.count:
                return LEFT_THE_SERIES
            next_s = min(to_s, edge_s)
            drawn_w, renewable_w = served_w(power, slot % slots.count, load_w)
        count = enter(ledger, at_s, next_s, drawn_w, renewable_w, NO_STORAGE, NO_RATES, rows, count)
        at_s = next_s
    return count - before
