"""What rounding must not do."""

from __future__ import annotations

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.policies import scheduler
from greenbatch.workload import Workload


def test_where_waiting_costs_nothing_the_cheapest_start_is_still_found_within_the_horizon() -> None:
    """The supply repeats every 24 min: without a price of waiting, rounding alone would tell a day from the next."""
    draw = np.random.default_rng(1)
    submit_s, run_s = np.sort(draw.uniform(0, 1e4, 2)), draw.uniform(1, 5000, 2)
    columns = {
        "submit_s": submit_s, "run_time_s": run_s, "requested_time_s": run_s * draw.uniform(0.5, 3, 2),
        "processors": draw.integers(1, 5, 2), "power_w": draw.uniform(0, 333.3, 2),
    }  # fmt: skip
    power_w = np.random.default_rng(101).uniform(0, 500, 24)
    site = Site(name="s", step_s=60.0, sources_w={"all": power_w}, repeat=True, forecast_horizon_s=86_400.0)
    rule = scheduler("cheapest-start:psi=0:hold=0")
    outcome = simulate(Workload.from_columns("two", columns), Cluster.pooled(4), site, Rules(), rule)
    assert (outcome.start_s - submit_s <= 86_400.0).all()
