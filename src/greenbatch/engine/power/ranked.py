"""Commands to storage by rank: take energy in the cheapest slots of the forecast, and give it in the dearest.

The rank of a slot is the share of the forecast that is cheaper, plus half of the share that costs the same, so it lies
between 0 and 1, and is 1/2 if all slots are alike. What is cheap is said by price, carbon or both; where these do not
change, by renewable power, and then only surplus is taken.
"""

from __future__ import annotations

from greenbatch.engine.power.protocol import Weights, forecast_w, ranked_w, weigh
from greenbatch.engine.power.slots import slot_at
from greenbatch.engine.power.table import PowerSupply
from greenbatch.engine.records import Clock, RuleSet
from greenbatch.machine_code.compile import compiled


@compiled
def rank(power: PowerSupply, clock: Clock, slot: int, weights: Weights, by_sun: bool) -> tuple[float, bool]:
    """Rank of the current slot in the forecast, and whether any slot differs from it.

    Args:
        power: the supply.
        clock: gets a status if the slot is outside the series.
        slot: the current slot, not wrapped.
        weights: what a joule from the grid weighs.
        by_sun: rank by renewable power, most of it first.
    """
    slots = power.slots
    ahead = slots.forecast if slots.repeats else min(slots.forecast, slots.count - slot)
    less, same, here = 0, 0, 0.0
    for k in range(max(ahead, 1)):
        at = slot + k
        value = -forecast_w(power, clock, at, slot) if by_sun else weigh(power, clock, at, slot, weights)[0]
        here = value if k == 0 else here
        less += value < here
        same += value == here
    return (less + 0.5 * same) / max(ahead, 1), same < ahead


@ranked_w.register(PowerSupply)
def ranked_of_battery_w(power: PowerSupply, clock: Clock, load_w: float, rules: RuleSet) -> float:
    """All that the battery can take or give; by renewable power, at most the surplus."""
    slot, battery, charge = slot_at(power.slots, clock.now_s), power.battery, power.charge
    if charge.ranked_slot != slot:
        weights = Weights(0.0, 1.0 - rules.charge_carbon, rules.charge_carbon)
        charge.rank, differs = rank(power, clock, slot, weights, False)
        charge.by_sun = not differs
        if charge.by_sun:
            charge.rank, _ = rank(power, clock, slot, Weights(0.0, 0.0, 0.0), True)
        charge.ranked_slot = slot
    if charge.rank <= rules.charge_below:
        surplus_w = max(forecast_w(power, clock, slot, slot) - load_w, 0.0)
        return float(min(battery.charge_w, surplus_w) if charge.by_sun else battery.charge_w)
    return float(-battery.discharge_w) if charge.rank >= rules.charge_above else 0.0
