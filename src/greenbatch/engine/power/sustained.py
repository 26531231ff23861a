"""What of a machine that follows the power of a site is expected to be supplied in the slots ahead.

The arithmetic is that of `energy.powered.powered_levels`, with the renewable power that is forecast.
"""

from __future__ import annotations

from greenbatch.energy import powered as plain
from greenbatch.engine.power import table
from greenbatch.engine.power.ahead import expected_w
from greenbatch.engine.power.table import PowerSupply
from greenbatch.engine.records import Floats, Int32s
from greenbatch.machine_code.compile import compiled
from greenbatch.machine_code.variants import variant

_supplied = compiled(plain.supplied)


@variant(PowerSupply, otherwise=False, inlined=False)
def sustain(power: PowerSupply, needed_w: Floats, stored_j: float, current: int, levels: Int32s) -> bool:
    """Fill in the level that is expected in each slot ahead; whether the power is forecast with errors.

    Args:
        power: the supply.
        needed_w: power of the cluster at each level, ascending from 0. [W]
        stored_j: what its battery holds at the begin of the current slot, if all that is powered is used. [J]
        current: number of the current slot.
        levels: changed; row k is k slots ahead.
    """
    if power.terms.forecast == table.PERFECT:
        return False
    of, slots, step_s = power.series, power.slots.count, power.slots.step_s
    for k in range(levels.shape[0]):
        shown, renewable_w = expected_w(power, current + k, current)
        if shown < 0:
            shown = current % slots
            renewable_w = of[table.RENEWABLE_W, shown]
        own_w, pue = renewable_w - power.terms.base_load_w, of[table.PUE, shown]
        level, stored_j = _supplied(needed_w, own_w, pue, power.battery, stored_j, step_s)
        levels[k] = level
    return True
