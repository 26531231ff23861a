"""Renewable power from a series of slots, and the grid; without a site, the grid alone.

A site with a PUE or a base load has a `facility.Facility` instead, whose forecast is read alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.energy import Site
from greenbatch.engine.codes import SUPPLY_EXHAUSTED
from greenbatch.engine.power import ranked  # noqa: F401  (registers commands to storage)
from greenbatch.engine.power.balance import NO_RATES, NO_STORAGE, enter
from greenbatch.engine.power.facility import Facility
from greenbatch.engine.power.limited import Limited
from greenbatch.engine.power.metered import Metered, metered
from greenbatch.engine.power.protocol import LEFT_THE_SERIES, Power, flow, forecast_w, power_of, served_w
from greenbatch.engine.power.slots import covering
from greenbatch.engine.power.uncertain import Erring, Remembered, uncertain
from greenbatch.engine.records import Clock, Floats, Ledger, Slots, record_of, shared


@shared("supply_w")
class Supplied(NamedTuple):
    """A series of renewable power."""

    slots: Slots
    supply_w: Floats
    """Renewable power per slot, shape (slots,). [W]"""


@power_of.register
def power_of_site(site: Site) -> Supplied | Facility | Remembered | Erring | Metered | Limited:
    """The supply of a site, with a meter if energy costs something or can be stored, and the limit that holds jobs."""
    is_plain = site.storage is None and site.grid is None
    power = supplied_by(site) if is_plain else metered(site, supplied_by(site, plain=False))
    limit_w = site.held_limit_w
    if limit_w == np.inf:
        return power
    least_w = max(limit_w - site.base_load_w, 0.0) / np.max(site.pue)
    return Limited(power.slots, power, supplied_by(site, plain=False, import_w=limit_w), np.array([least_w]))


def supplied_by(
    site: Site, *, plain: bool = True, import_w: float = 0.0
) -> Supplied | Facility | Remembered | Erring:  # fmt: skip
    """What is generated, and what is forecast of it.

    Args:
        site: the site.
        plain: `Supplied` if that is enough; otherwise never, which saves compiling it.
        import_w: power from the grid that is added to what the cluster can be supplied with, see `power.limited`. [W]
    """
    slots = record_of(
        Slots, step_s=site.step_s, origin_s=site.origin_s, count=site.slots, repeats=site.repeat,
        forecast=site.horizon_slots,
    )  # fmt: skip
    supply_w = np.array(site.load_limit_w(import_w), dtype=np.float64, order="C")
    is_perfect = site.forecast_model.kind == "perfect"
    if plain and is_perfect and not site.has_overhead:
        return Supplied(slots, supply_w)
    renewable_w = np.array(site.renewable_w, dtype=np.float64, order="C")
    pue = np.ascontiguousarray(np.broadcast_to(site.pue, renewable_w.shape), dtype=np.float64)
    truth = Facility(slots, supply_w, renewable_w, pue, np.array([site.base_load_w - import_w], dtype=np.float64))
    return truth if is_perfect else uncertain(site, truth)


@power_of.register
def unsupplied(site: None) -> Supplied:
    """The grid alone."""
    return Supplied(record_of(Slots, step_s=1.0), np.zeros(1))


@forecast_w.register(Facility)
@forecast_w.register(Supplied)
def forecast_of_series(power: Supplied | Facility, clock: Clock, slot: int, current: int) -> float:
    """The series itself for the forecast's slots from the current one on; later slots repeat that window."""
    slots = power.slots
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
    return float(power.supply_w[shown])


@served_w.register(Supplied)
def served_by_series_w(power: Supplied, slot: int, load_w: float) -> tuple[float, float]:
    """The cluster draws all that is drawn."""
    return load_w, power.supply_w[slot]


@flow.register(Erring)
@flow.register(Remembered)
@flow.register(Facility)
@flow.register(Supplied)
def flow_from_series(
    power: Power, load_w: float, from_s: float, to_s: float, ledger: Ledger, rows: Floats, count: int
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
