"""What the energy of single jobs costs and emits: their share of the account of the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.slots import edge_s, interval_at
from greenbatch.metrics.jobs import Floats, run_s

if TYPE_CHECKING:
    from greenbatch.energy import Site
    from greenbatch.engine.accounts import Segments
    from greenbatch.engine.outcome import Outcome


class Shares(NamedTuple):
    """Of each job, shape (n,); what is left of the account belongs to idle power."""

    cost: Floats
    """In the currency of the site, without the demand charge and what is fed in."""
    carbon_g: Floats
    """[g]"""


def slot_numbers(site: Site, pieces: Segments) -> NDArray[np.int64]:
    """Number of the slot of each piece, not wrapped, shape (m,)."""
    first = interval_at(pieces.start_s[0], site.origin_s, site.step_s)
    count = interval_at(pieces.end_s[-1], site.origin_s, site.step_s) - first + 1.0
    edges_s = edge_s(first + np.arange(count), site.origin_s, site.step_s)
    middle_s = 0.5 * (pieces.start_s + pieces.end_s)
    return np.asarray(int(first) + np.searchsorted(edges_s, middle_s, side="right") - 1, dtype=np.int64)


def own_taken_w(pieces: Segments) -> Floats:
    """Own renewable power that is used or stored in each piece, shape (m,). [W]"""
    bus_w = pieces.import_w - pieces.surplus_w + pieces.renewable_w - pieces.load_w
    return np.asarray(np.minimum(pieces.renewable_w, pieces.load_w + np.maximum(bus_w, 0.0)))


def shares_of_jobs(outcome: Outcome, site: Site, pieces: Segments, energy_j: Floats) -> Shares:
    """Cost and emissions of the energy of each job.

    At each instant, a joule costs what is paid for imports and own energy, over the load. A battery that is charged is
    paid for by those who run then, and what it gives is free. The power of a job is taken as constant while it runs.

    Args:
        outcome: the run.
        site: its site.
        pieces: its load and supply from the first start to the last end.
        energy_j: energy of each job, its part of cooling and losses included, shape (n,). [J]
    """
    from greenbatch.engine.power.metered import costs_of, rates_of

    rates = rates_of(costs_of(site))[slot_numbers(site, pieces) % site.slots]
    own_w = own_taken_w(pieces)
    edges_s = np.append(pieces.start_s, pieces.end_s[-1:])
    joules = np.where(pieces.load_w > 0, pieces.load_w, np.inf)
    mean_w = energy_j / np.maximum(run_s(outcome), 1e-9)

    def share(paid_w: Floats) -> Floats:
        total = np.append(0.0, np.cumsum(paid_w / joules * (pieces.end_s - pieces.start_s)))
        job, *span = outcome.spans
        before, after = (np.interp(at_s, edges_s, total) for at_s in span)
        weighed = np.bincount(job, weights=mean_w[job] * (after - before), minlength=len(mean_w))
        return weighed.astype(np.float64)

    cost = share(pieces.import_w * rates[:, 0] + own_w * rates[:, 2])
    return Shares(cost, share(pieces.import_w * rates[:, 3] + own_w * rates[:, 4]))
