"""Energy accounting: which sources the energy of a power profile came from.

All energies come from this one integrator. Between two instants, load and supply are constant; supply is used in the
order renewable, battery, grid. Storage is not modeled yet; it would go into `settle`, which gets the intervals in time
order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy import Site
from greenbatch.engine.compile import compiled
from greenbatch.errors import SupplyExhausted

if TYPE_CHECKING:
    from greenbatch.engine.outcome import Outcome

Floats = NDArray[np.float64]


class Books(NamedTuple):
    """Energy over an interval; renewable_used + grid = load and renewable_used + curtailed = renewable. [J]"""

    load_j: float
    renewable_j: float
    renewable_used_j: float
    curtailed_j: float
    grid_j: float


class Segments(NamedTuple):
    """Intervals over which load and supply are constant, in time order, each of shape (m,)."""

    start_s: Floats
    end_s: Floats
    load_w: Floats
    renewable_w: Floats
    renewable_used_w: Floats


@compiled
def split(
    time_s: Any, load_w: Any, idle_w: float, supply_w: Any, origin_s: float, step_s: float,
    start_s: float, end_s: float, out: Any,
) -> int:  # fmt: skip
    """Cut an interval at load changes and supply slots; write (start, end, load, renewable) rows, return their number.

    Before the first and after the last instant of the profile, the load is the idle power. The supply repeats.
    """
    n, slots = time_s.shape[0], supply_w.shape[0]
    at_s, k, count = start_s, np.searchsorted(time_s, start_s, side="right"), 0
    while at_s < end_s:
        next_s = min(end_s, time_s[k]) if k < n else end_s
        renewable = 0.0
        if slots > 0:
            slot = np.floor((at_s - origin_s) / step_s)
            edge_s = origin_s + (slot + 1.0) * step_s
            if edge_s <= at_s:  # a fractional step, rounded down
                slot += 1.0
                edge_s += step_s
            next_s = min(next_s, edge_s)
            renewable = supply_w[int(slot) % slots]
        if out.shape[0] > 0:
            out[count, 0], out[count, 1] = at_s, next_s
            out[count, 2] = load_w[k - 1] if 0 < k < n else idle_w
            out[count, 3] = renewable
        count += 1
        at_s = next_s
        while k < n and time_s[k] <= at_s:
            k += 1
    return count


@compiled
def settle(rows: Any, used_w: Any) -> tuple[float, float, float, float, float]:
    """Account for each interval of `split` in time order; fill the renewable power used, return the sums of `Books`."""
    load_j = renewable_j = used_j = curtailed_j = grid_j = 0.0
    for i in range(rows.shape[0]):
        seconds, load, renewable = rows[i, 1] - rows[i, 0], rows[i, 2], rows[i, 3]
        used = min(load, renewable)
        used_w[i] = used
        load_j += load * seconds
        renewable_j += renewable * seconds
        used_j += used * seconds
        curtailed_j += (renewable - used) * seconds
        grid_j += (load - used) * seconds
    return load_j, renewable_j, used_j, curtailed_j, grid_j


def _rows(outcome: Outcome, start_s: float, end_s: float, site: Site | None) -> Floats:
    supply_w, origin_s, step_s = np.zeros(0), 0.0, 1.0
    if site is not None:
        supply_w, origin_s, step_s = np.ascontiguousarray(site.renewable_w), site.origin_s, site.step_s
        last_s = origin_s + site.slots * step_s
        if not site.repeat and end_s > start_s and (start_s < origin_s or end_s > last_s):
            raise SupplyExhausted(
                f"the power series of site {site.name!r} covers trace seconds {origin_s:g} to {last_s:g}, but the "
                f"books need {start_s:g} to {end_s:g} (give a longer series or set site.repeat = true)"
            )
    profile = (outcome.profile_time_s, outcome.profile_load_w, outcome.cluster.idle_power_w, supply_w, origin_s, step_s)
    count = split(*profile, start_s, end_s, np.zeros((0, 4)))
    rows = np.empty((count, 4))
    if count:
        split(*profile, start_s, end_s, rows)
    return rows


def _span(outcome: Outcome, start_s: float | None, end_s: float | None) -> tuple[float, float]:
    first_s = float(outcome.profile_time_s[0]) if start_s is None else float(start_s)
    last_s = float(outcome.profile_time_s[-1]) if end_s is None else float(end_s)
    return first_s, last_s


def power_segments(outcome: Outcome, start_s: float | None = None, end_s: float | None = None) -> Segments:
    """Load and supply over time, by default from the first start to the last end.

    Raises:
        SupplyExhausted: the interval leaves a power series that does not repeat.
    """
    rows = _rows(outcome, *_span(outcome, start_s, end_s), outcome.site)
    used_w = np.empty(len(rows))
    settle(rows, used_w)
    start, end, load, renewable = (np.ascontiguousarray(column) for column in rows.T)
    return Segments(start, end, load, renewable, used_w)


def books(outcome: Outcome, start_s: float | None = None, end_s: float | None = None) -> Books:
    """Energy over an interval, by default from the first start to the last end. [J]

    Outside the schedule the cluster is idle.

    Raises:
        SupplyExhausted: the interval leaves a power series that does not repeat.
    """
    rows = _rows(outcome, *_span(outcome, start_s, end_s), outcome.site)
    return Books(*settle(rows, np.empty(len(rows))))
