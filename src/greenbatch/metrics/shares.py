"""What single jobs use, cost and emit, and what belongs to none of them: parts of the account of a run.

The rule: at each instant, what is paid for imports and own energy is divided among all that draws power then, in
proportion to it. That is each running job (on nodes with its part of their static power), idle nodes, nodes that boot
or shut down, cooling and losses (PUE - 1), the base load, and storage that is charged. What storage gives was paid for
when it was charged, so it makes energy cheaper for all that draws power then. No job pays for another, or for what
would be there without it, and jobs that draw the same power at the same time pay the same. Emissions are divided
likewise. The revenue of surplus and the demand charge are parts of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.slots import edge_s, interval_at
from greenbatch.metrics.energy_use import job_energy
from greenbatch.metrics.jobs import Floats

if TYPE_CHECKING:
    from greenbatch.energy import Site
    from greenbatch.engine.accounts import Segments
    from greenbatch.engine.outcome import Outcome

IDLE, BOOTS, OVERHEAD, BASE_LOAD, STORAGE, SOLD, DEMAND_CHARGE = REST = (
    "idle", "boots", "cooling and losses", "base load", "storage", "sold", "demand charge",
)  # fmt: skip
"""What belongs to no job: idle processors and nodes; boots and shutdowns of nodes; what the facility draws for its
cluster in proportion (PUE - 1); what it draws besides; charging storage; surplus that is sold, whose cost is 0 or
negative; the demand charge."""
ROUNDING = 1e-9
"""Less than this part of the whole is nothing."""


class Shares(NamedTuple):
    """The parts of an interval, whose sums are its energy, cost and emissions: n jobs, then what belongs to none.

    Columns of shape (n + r,).
    """

    energy_j: Floats
    """[J]"""
    cost: Floats
    """In the currency of the site, NaN without prices."""
    carbon_g: Floats
    """Emissions, NaN without intensities. [g]"""
    rest: tuple[str, ...]
    """Those of `REST` that the site and the machine can have: the last r rows."""


def slot_numbers(site: Site, pieces: Segments) -> NDArray[np.int64]:
    """Number of the slot of each piece, not wrapped, shape (m,)."""
    first = interval_at(pieces.start_s[0], site.origin_s, site.step_s)
    count = interval_at(pieces.end_s[-1], site.origin_s, site.step_s) - first + 1.0
    edges_s = edge_s(first + np.arange(count), site.origin_s, site.step_s)
    middle_s = 0.5 * (pieces.start_s + pieces.end_s)
    return np.asarray(int(first) + np.searchsorted(edges_s, middle_s, side="right") - 1, dtype=np.int64)


def _charge_w(pieces: Segments) -> Floats:
    """Power that charges storage in each piece, shape (m,). [W]"""
    return np.maximum(pieces.import_w - pieces.surplus_w + pieces.renewable_w - pieces.load_w, 0.0)


def own_taken_w(pieces: Segments) -> Floats:
    """Own renewable power that is used or stored in each piece, shape (m,). [W]"""
    return np.minimum(pieces.renewable_w, pieces.load_w + _charge_w(pieces))


def shares_of(outcome: Outcome, pieces: Segments, demand_charge: float | None = None) -> Shares:
    """The parts of an interval; see the module for the rule.

    Args:
        outcome: the run; the power of all jobs is known.
        pieces: load and supply of the interval.
        demand_charge: that of the interval, in the currency of the site; None if it does not count.
    """
    site, names = outcome.site, _parts(outcome, demand_charge)
    length_s, slot = pieces.end_s - pieces.start_s, np.zeros(pieces.start_s.size, np.int64)
    pue, base_w = np.ones(slot.size), 0.0
    if site is not None and slot.size:
        slot, base_w = slot_numbers(site, pieces) % site.slots, site.base_load_w
        pue = np.broadcast_to(site.pue, site.slots)[slot]
    charge_w = _charge_w(pieces)
    cluster_w = (pieces.load_w - base_w) / pue
    powers_w = {OVERHEAD: (pue - 1.0) * cluster_w, BASE_LOAD: np.full(length_s.size, base_w), STORAGE: charge_w}
    edges_s = np.append(pieces.start_s, pieces.end_s[-1:])

    def divided(of_joule: Floats, **more: float) -> Floats:
        """Of each job and of the rest, by what a joule counts in each piece."""
        counts = of_joule * length_s
        total = np.append(0.0, np.cumsum(counts))

        def clock(time_s: Floats) -> Floats:
            return np.asarray(np.interp(time_s, edges_s, total)) if length_s.size else np.zeros_like(time_s)

        jobs, switching = job_energy(outcome, clock), outcome.switching
        rest = {name: float(counts @ power_w) for name, power_w in powers_w.items()}
        if switching is not None:
            rest[BOOTS] = float(switching.power_w @ (clock(switching.end_s) - clock(switching.begin_s)))
        whole = float(counts @ cluster_w)
        idle = whole - float(jobs.sum()) - rest.get(BOOTS, 0.0)
        rest[IDLE] = idle if abs(idle) > ROUNDING * abs(whole) else 0.0
        rest |= more
        return np.append(jobs, [rest.get(name, 0.0) for name in names])

    energy_j = divided(np.ones(length_s.size), **{STORAGE: 0.0})  # the account of energy has what is used
    cost = carbon_g = np.full(energy_j.size, np.nan)
    if site is not None and site.grid is not None and length_s.size:
        from greenbatch.engine.power.costs import costs_of, rates_of

        rates, own_w = rates_of(costs_of(site))[slot], own_taken_w(pieces)
        drawn_w = pieces.load_w + charge_w
        drawn_w = np.where(drawn_w > 0, drawn_w, np.inf)
        if site.grid.has_money:
            sold = -float(length_s @ (pieces.surplus_w * rates[:, 1]))
            paid_w = pieces.import_w * rates[:, 0] + own_w * rates[:, 2]
            cost = divided(paid_w / drawn_w, **{SOLD: sold, DEMAND_CHARGE: demand_charge or 0.0})
        if site.grid.has_carbon:
            carbon_g = divided((pieces.import_w * rates[:, 3] + own_w * rates[:, 4]) / drawn_w)
    return Shares(energy_j, cost, carbon_g, names)


def _parts(outcome: Outcome, demand_charge: float | None) -> tuple[str, ...]:
    """Which of `REST` a run can have."""
    site, grid = outcome.site, None if outcome.site is None else outcome.site.grid
    has_money = grid is not None and grid.has_money
    can_have = {
        IDLE: True,
        BOOTS: outcome.cluster.on_nodes and outcome.cluster.power_on == "on-demand",
        OVERHEAD: site is not None and bool(np.any(site.pue != 1.0)),
        BASE_LOAD: site is not None and site.base_load_w > 0,
        STORAGE: site is not None and site.storage is not None,
        SOLD: grid is not None and has_money and bool(np.any(grid.export_price > 0)),
        DEMAND_CHARGE: grid is not None and has_money and grid.demand_charge > 0 and demand_charge is not None,
    }
    return tuple(name for name in REST if can_have[name])
