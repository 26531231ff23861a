"""What rounding must not do."""

from __future__ import annotations

import numpy as np
import pytest

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.forecast import project_surplus
from greenbatch.engine.power.protocol import BROWN
from greenbatch.engine.prepare import prepare
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload


@pytest.mark.compiled  # thousands of start times
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


@pytest.mark.parametrize("step_s", [0.1, 0.3, 0.7, 1 / 3, 7.0])
@pytest.mark.parametrize("begin_s", [0.1, 1 / 3, 12_345.6])
def test_a_fractional_step_makes_no_more_pieces_than_there_is_room_for(step_s: float, begin_s: float) -> None:
    columns = {"submit_s": [begin_s], "run_time_s": [2.2], "processors": [1], "power_w": [1.0]}
    site = Site(name="s", step_s=step_s, sources_w={"all": np.array([100.0, 300.0, 500.0])}, repeat=True)
    jobs, program = Workload.from_columns("one", columns), scheduler("cheapest-start:horizon=500:tick=100")
    state = prepare(jobs, Cluster.pooled(4), site, Rules(), program.program(jobs))
    until_s = begin_s + 500.0 + 2.2 + 2 * 100.0
    surplus = state.scratch.surplus
    surplus["length_s"] = -1.0
    project_surplus(state, begin_s, until_s, BROWN)
    count = int(state.clock.segments)
    assert count <= (until_s - begin_s) / step_s + 2 <= len(surplus) - 1
    lengths = surplus["length_s"][:count]
    assert lengths[1:-1] == pytest.approx(np.full(count - 2, step_s), rel=1e-6)
    assert lengths.sum() == pytest.approx(until_s - begin_s)
