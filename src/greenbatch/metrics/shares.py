"""What the energy of single jobs costs and emits: their share of the account of the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from greenbatch.metrics.jobs import Floats, run_s

if TYPE_CHECKING:
    from greenbatch.metrics.measured import Measured


class Shares(NamedTuple):
    """Of each job, shape (n,); what is left of the account belongs to idle power."""

    cost: Floats
    """In the currency of the site, without the demand charge and what is fed in."""
    carbon_g: Floats
    """[g]"""


def shares_of_jobs(run: Measured) -> Shares | None:
    """Cost and emissions of the energy of each job; None without a grid or without job power.

    At each instant, a joule costs what is paid for imports and own energy, over the load. A battery that is charged is
    paid for by those who run then, and what it gives is free. The power of a job is taken as constant while it runs.
    """
    outcome, site = run.outcome, run.outcome.site
    if site is None or site.grid is None or not run.has_power or run.books is None:
        return None
    from greenbatch.engine.power.metered import rates_of

    pieces = run.pieces()
    middle_s = 0.5 * (pieces.start_s + pieces.end_s)
    slot = np.floor((middle_s - site.origin_s) / site.step_s).astype(np.int64) % site.slots
    rates = rates_of(site)[slot]
    bus_w = pieces.import_w - pieces.surplus_w + pieces.renewable_w - pieces.load_w
    own_w = np.minimum(pieces.renewable_w, pieces.load_w + np.maximum(bus_w, 0.0))
    edges_s = np.append(pieces.start_s, pieces.end_s[-1:])
    joules = np.where(pieces.load_w > 0, pieces.load_w, np.inf)
    mean_w = run.per_job("energy_j") / np.maximum(run_s(outcome), 1e-9) * _overhead(run)

    def share(paid_w: Floats) -> Floats:
        total = np.append(0.0, np.cumsum(paid_w / joules * (pieces.end_s - pieces.start_s)))
        before, after = (np.interp(at_s, edges_s, total) for at_s in (outcome.start_s, outcome.end_s))
        return np.asarray(mean_w * (after - before))

    cost = share(pieces.import_w * rates[:, 0] + own_w * rates[:, 2])
    return Shares(cost, share(pieces.import_w * rates[:, 3] + own_w * rates[:, 4]))


def _overhead(run: Measured) -> float:
    """Energy of the facility per energy of the cluster, on average: jobs pay for cooling and the base load too."""
    return run.energy_j / run.it_energy_j if run.it_energy_j > 0 else 1.0
