"""The power that a supply is expected to leave for its cluster in the slots ahead: what policies see.

The forecast is one of renewable power, as in `energy.forecasts`; what it leaves for the cluster follows from the base
load and the PUE of the slot. Energies follow from what really comes.

A forecast costs a few lookups, whatever its length: no table is larger than the series.
"""

from __future__ import annotations

import numpy as np

from greenbatch.energy import forecasts as plain
from greenbatch.engine.power import table
from greenbatch.engine.power.slots import shown_slot, slots_ahead
from greenbatch.engine.power.table import PowerSupply
from greenbatch.machine_code.compile import compiled, compiled_small

erring_w = compiled_small(plain.erring_w)
_POWERS = np.array(plain.POWERS)


@compiled
def expected_w(power: PowerSupply, slot: int, current: int) -> tuple[int, float]:
    """The slot of the series that a forecast with errors shows, -1 for the current one, and its renewable power. [W]

    The current slot is measured and therefore known.
    """
    slots, of = power.slots, power.series
    ahead = slots_ahead(slots, slot, current)
    if ahead == 0:
        return -1, 0.0
    here, shown = current % slots.count, (current + ahead) % slots.count
    if power.terms.forecast == table.REMEMBERED:
        a_day = power.terms.slots_a_day
        known = current + ahead - (ahead - 1) // a_day * a_day
        usual_w = of[table.EXPECTED_W, known % slots.count]
        return shown, of[table.RENEWABLE_W, here] if np.isnan(usual_w) else usual_w
    truth_w = of[table.RENEWABLE_W, shown]
    if truth_w == 0.0:
        return shown, 0.0
    drawn, drawn_here, first = of[table.RANDOM, shown], of[table.RANDOM, here], table.LEADS
    leads = of[first, ahead], of[first + 1, ahead], of[first + 2, ahead]
    return shown, erring_w(truth_w, drawn, drawn_here, leads[0], leads[1], leads[2], _POWERS)


@compiled_small
def left_w(power: PowerSupply, slot: int, current: int, row: int, import_w: float) -> float:
    """What a row of the supply is expected to be: what the sources and a power from the grid leave. [W]"""
    if power.terms.forecast == table.PERFECT:
        return float(power.series[row, shown_slot(power.slots, slot, current)])
    shown, renewable_w = expected_w(power, slot, current)
    if shown < 0:
        return float(power.series[row, current % power.slots.count])
    return float(max(renewable_w - (power.terms.base_load_w - import_w), 0.0) / power.series[table.PUE, shown])
