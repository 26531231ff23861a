"""Supplies whose forecast is not the truth: policies see the forecast, energies follow from what really comes.

The forecast is one of renewable power, as in `energy.forecasts`; what it leaves for the cluster follows from the base
load and the PUE of the slot. Both supplies keep them, as `Facility` does; without overhead they change nothing.

A forecast costs a few lookups, whatever its length: no table is larger than the series.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.energy import Site
from greenbatch.energy import forecasts as plain
from greenbatch.engine.compile import compiled_small
from greenbatch.engine.power.facility import Facility
from greenbatch.engine.power.protocol import forecast_w, served_w
from greenbatch.engine.power.slots import slots_ahead
from greenbatch.engine.records import Clock, Floats, Ints, Slots, shared

erring_w = compiled_small(plain.erring_w)

_SHARED = ("supply_w", "renewable_w", "pue", "base_load_w")


@shared(*_SHARED, "expected_w", "slots_a_day")
class Remembered(NamedTuple):
    """A supply that is forecast from the same slot of the day in the past."""

    slots: Slots
    supply_w: Floats
    """See `Facility`, as the next three."""
    renewable_w: Floats
    pue: Floats
    base_load_w: Floats
    expected_w: Floats
    """Renewable power expected a day before each slot, NaN where there is no past, shape (slots,). [W]"""
    slots_a_day: Ints
    """Number of slots of a day, shape (1,)."""


@shared(*_SHARED, "random", "leads", "powers")
class Erring(NamedTuple):
    """A supply whose forecast is the truth with an error."""

    slots: Slots
    supply_w: Floats
    """See `Facility`, as the next three."""
    renewable_w: Floats
    pue: Floats
    base_load_w: Floats
    random: Floats
    """`energy.forecasts.random_series`, shape (slots,)."""
    leads: Floats
    """`energy.forecasts.leads`, shape (slots of a forecast, 3)."""
    powers: Floats
    """`energy.forecasts.POWERS`."""


def uncertain(site: Site, truth: Facility) -> Remembered | Erring:
    """The supply of a site whose forecast is not perfect.

    Args:
        site: the site.
        truth: the same site with a perfect forecast.
    """
    model, common, step_s = site.forecast_model, truth._asdict(), site.step_s
    if model.past_days:
        rows, renewable_w = np.arange(site.slots), truth.renewable_w
        expected_w = plain.daily_means(renewable_w, rows, step_s=step_s, days=model.past_days, repeats=site.repeat)
        return Remembered(**common, expected_w=expected_w, slots_a_day=np.array([plain.slots_a_day(step_s)], np.int64))
    random = plain.random_series(site.slots, step_s, model.correlation_h, model.seed)
    leads = plain.leads(model, step_s, site.slots, site.horizon_slots)
    return Erring(**common, random=np.array(random), leads=np.array(leads), powers=np.array(plain.POWERS))


@forecast_w.register(Remembered)
def forecast_from_memory(power: Remembered, clock: Clock, slot: int, current: int) -> float:
    """The power of the current slot; of later ones what was usual at that time of the day, as far as it is known."""
    slots = power.slots
    ahead = slots_ahead(slots, clock, slot, current)
    if ahead == 0:
        return float(power.supply_w[current % slots.count])
    a_day, shown = power.slots_a_day[0], (current + ahead) % slots.count
    known = current + ahead - (ahead - 1) // a_day * a_day
    expected_w = power.expected_w[known % slots.count]
    if np.isnan(expected_w):
        expected_w = power.renewable_w[current % slots.count]
    return float(max(expected_w - power.base_load_w[0], 0.0) / power.pue[shown])


@forecast_w.register(Erring)
def forecast_with_error(power: Erring, clock: Clock, slot: int, current: int) -> float:
    """The power of the current slot; the truth with an error of later ones."""
    slots = power.slots
    ahead = slots_ahead(slots, clock, slot, current)
    here, shown = current % slots.count, (current + ahead) % slots.count
    if ahead == 0:
        return float(power.supply_w[here])
    truth_w, random, leads = power.renewable_w[shown], power.random, power.leads
    if truth_w == 0.0:
        expected_w = 0.0
    else:
        expected_w = erring_w(
            truth_w, random[shown], random[here], leads[ahead, 0], leads[ahead, 1], leads[ahead, 2], power.powers
        )
    return float(max(expected_w - power.base_load_w[0], 0.0) / power.pue[shown])


@served_w.register(Erring)
@served_w.register(Remembered)
def served_in_truth_w(power: Remembered | Erring, slot: int, load_w: float) -> tuple[float, float]:
    """What really comes, as in a facility."""
    return power.pue[slot] * load_w + power.base_load_w[0], power.renewable_w[slot]
