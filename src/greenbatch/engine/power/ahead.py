"""The power that a supply is expected to leave for its cluster in the slots ahead: what policies see.

The forecast is one of renewable power, as in `energy.forecasts`; what it leaves for the cluster follows from the base
load and the PUE of the slot. Energies follow from what really comes.

A forecast costs a few lookups, whatever its length: no table is larger than the series.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.energy import Site
from greenbatch.energy import forecasts as plain
from greenbatch.engine.codes import SUPPLY_EXHAUSTED
from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.power.slots import slots_ahead
from greenbatch.engine.records import Clock, Floats, Ints, Slots, shared

erring_w = compiled_small(plain.erring_w)

PERFECT, REMEMBERED, ERRING = range(3)
"""Kinds of forecasts: the truth, the same slot of the day in the past, the truth with an error."""


@shared("kind", "slots_a_day", "expected_w", "random", "leads", "powers")
class Ahead(NamedTuple):
    """How a series is forecast; tables that a kind does not use are empty."""

    kind: Ints
    """Code, shape (1,)."""
    slots_a_day: Ints
    """Remembered: number of slots of a day, shape (1,)."""
    expected_w: Floats
    """Remembered: renewable power expected a day before each slot, NaN where there is no past, shape (slots,). [W]"""
    random: Floats
    """Erring: `energy.forecasts.random_series`, shape (slots,)."""
    leads: Floats
    """Erring: `energy.forecasts.leads`, shape (slots of a forecast, 3)."""
    powers: Floats
    """Erring: `energy.forecasts.POWERS`."""


_NONE, _NO_LEADS = np.zeros(0), np.zeros((0, 3))
TRUTH = Ahead(np.array([PERFECT], np.int64), np.ones(1, np.int64), _NONE, _NONE, _NO_LEADS, _NONE)
"""Perfect forecasts."""


def ahead_of(site: Site) -> Ahead:
    """How a site is forecast."""
    model, step_s = site.forecast_model, site.step_s
    if model.kind == "perfect":
        return TRUTH
    if model.past_days:
        rows, renewable_w = np.arange(site.slots), np.array(site.renewable_w, dtype=np.float64, order="C")
        expected_w = plain.daily_means(renewable_w, rows, step_s=step_s, days=model.past_days, repeats=site.repeat)
        a_day = np.array([plain.slots_a_day(step_s)], np.int64)
        return TRUTH._replace(kind=np.array([REMEMBERED], np.int64), slots_a_day=a_day, expected_w=expected_w)
    random = plain.random_series(site.slots, step_s, model.correlation_h, model.seed)
    leads = plain.leads(model, step_s, site.slots, site.horizon_slots)
    return TRUTH._replace(
        kind=np.array([ERRING], np.int64), random=np.array(random), leads=np.array(leads),
        powers=np.array(plain.POWERS),
    )  # fmt: skip


@compiled_small
def shown_w(slots: Slots, power_w: Floats, clock: Clock, slot: int, current: int) -> float:
    """The series itself for the forecast's slots from the current one on; later slots repeat that window. [W]"""
    window = slots.forecast
    if not slots.repeats:
        if current < 0 or current >= slots.count:
            clock.status = SUPPLY_EXHAUSTED
            return 0.0
        window = min(window, slots.count - current)
    ahead = slot - current
    if ahead >= window:
        ahead %= window
    shown = current + ahead
    if shown < 0 or shown >= slots.count:  # a division is slow and rarely required
        shown %= slots.count
    return float(power_w[shown])


@compiled
def expected_w(
    by: Ahead, slots: Slots, renewable_w: Floats, clock: Clock, slot: int, current: int
) -> tuple[int, float]:  # fmt: skip
    """The slot of the series that a forecast with errors shows, -1 for the current one, and its renewable power. [W]

    The current slot is measured and therefore known.
    """
    ahead = slots_ahead(slots, clock, slot, current)
    if ahead == 0:
        return -1, 0.0
    here, shown = current % slots.count, (current + ahead) % slots.count
    if by.kind[0] == REMEMBERED:
        a_day = by.slots_a_day[0]
        known = current + ahead - (ahead - 1) // a_day * a_day
        usual_w = by.expected_w[known % slots.count]
        return shown, renewable_w[here] if np.isnan(usual_w) else usual_w
    truth_w, leads = renewable_w[shown], by.leads
    if truth_w == 0.0:
        return shown, 0.0
    return shown, erring_w(
        truth_w, by.random[shown], by.random[here], leads[ahead, 0], leads[ahead, 1], leads[ahead, 2], by.powers
    )
