"""Small random windows, and what comes after a time changed, to see what a planner may know."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.outcome import Outcome
from greenbatch.workload import Workload

CLUSTER = Cluster.pooled(8, processors_per_machine=4, idle_power_per_machine_w=25.0)
DAY_S = 86_400.0


@st.composite
def windows(draw: st.DrawFn, most: int = 30) -> tuple[Workload, Site]:
    """Up to 30 jobs within about two days, some with requests that are too long, and weather for three weeks."""
    rng, n = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(1, most))
    run_s = np.maximum(rng.lognormal(8.0, 1.5, n).round(), 1.0)
    processors = rng.integers(1, 9, n)
    columns = {
        "submit_s": np.sort(rng.exponential(5000.0, n).cumsum().round(-1)), "run_time_s": run_s,
        "requested_time_s": np.ceil(run_s * draw(st.sampled_from([1.0, 3.0]))), "processors": processors,
        "power_w": processors * rng.uniform(5.0, 50.0, n),
    }  # fmt: skip
    supply_w = np.maximum(rng.normal(150.0, 200.0, 21 * 24), 0.0)
    return Workload.from_columns("jobs", columns), site_of(supply_w)


def site_of(supply_w: np.ndarray[Any, Any]) -> Site:
    """A site with hourly renewable power and a forecast of a day. [W]"""
    return Site(name="small", step_s=3600.0, sources_w={"all": supply_w}, repeat=True, forecast_horizon_s=DAY_S)


def changed_later(jobs: Workload, site: Site, outcome: Outcome, at_s: float) -> tuple[Workload, Site]:
    """Other jobs after a time, other run times of jobs that have not ended, other weather past the forecast."""
    later = jobs.submit_s >= at_s
    lasting = outcome.end_s > at_s
    processors, submit_s = jobs.processors.copy(), jobs.submit_s.copy()
    processors[later] = 9 - processors[later]
    submit_s[later] = at_s + 0.5 * (submit_s[later] - at_s)
    other = jobs.with_columns(
        processors=processors, submit_s=submit_s,
        run_time_s=np.where(lasting, jobs.requested_time_s, jobs.run_time_s),
        power_w=np.where(later, 7.0, jobs.power_w),
    )  # fmt: skip
    supply_w = site.renewable_w.copy()
    supply_w[int(np.ceil((at_s + DAY_S) / 3600.0)) :] = 400.0
    return other, site_of(supply_w)
