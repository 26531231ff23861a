"""The fluid bound: by hand, and never beaten by a schedule on any machine under any supply."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.bounds import fluid_bound
from greenbatch.cluster import Capacity, Cluster, NodeGroup
from greenbatch.energy import Grid, Site, Storage
from greenbatch.engine.accounts import books
from greenbatch.engine.pools import Pools
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.plain

HOUR_S = 3600.0
FOUR = Cluster.pooled(4, processors_per_machine=4, idle_power_per_machine_w=100.0)
RULES = Rules()


def sunny(watts: list[float], **more: Any) -> Site:
    return Site(name="s", step_s=HOUR_S, sources_w={"sun": np.array(watts)}, repeat=True, **more)


def two(power_w: float = 1000.0) -> Workload:
    """Two jobs of an hour on two processors each, submitted at once."""
    columns = {"submit_s": [0, 0], "run_time_s": [HOUR_S] * 2, "processors": [2, 2], "power_w": [power_w] * 2}
    return Workload.from_columns("two", columns)


def test_without_time_jobs_run_at_once() -> None:
    bound = fluid_bound(two(), FOUR, sunny([500.0, 3000.0]), RULES, within_s=0.0)
    assert bound.brown_kwh == pytest.approx(2.1 - 0.5, abs=1e-4)
    assert (bound.first_s, bound.last_s) == (0.0, HOUR_S)
    assert math.isnan(bound.cost)


def test_with_an_hour_more_they_run_in_the_sun() -> None:
    """All but what idle nodes draw in the first hour beyond its sun; with 1,500 W there, each takes half."""
    site = sunny([50.0, 3000.0])
    assert fluid_bound(two(), FOUR, site, RULES, within_s=HOUR_S).brown_kwh == pytest.approx(0.05, abs=1e-4)
    half = sunny([0.0, 1100.0])
    assert fluid_bound(two(), FOUR, half, RULES, within_s=HOUR_S).brown_kwh == pytest.approx(0.1 + 1.0, abs=1e-4)


def test_pue_base_load_prices_and_carbon_by_hand() -> None:
    """1.5 x (100 W + jobs) + 200 W; the second hour costs half as much and emits twice as much."""
    grid = Grid(currency="EUR", import_price=np.array([0.4, 0.2]), carbon_g_per_kwh=np.array([100.0, 200.0]))
    site = sunny([0.0, 0.0], pue=1.5, base_load_w=200.0, grid=grid)
    bound = fluid_bound(two(), FOUR, site, RULES, within_s=HOUR_S)
    idle_kwh, jobs_kwh = 1.5 * 0.1 + 0.2, 1.5 * 2.0
    assert bound.brown_kwh == pytest.approx(2 * idle_kwh + jobs_kwh, abs=1e-4)
    assert bound.cost == pytest.approx(0.6 * idle_kwh + 0.2 * jobs_kwh, abs=1e-4)
    assert bound.carbon_kg == pytest.approx(0.3 * idle_kwh + 0.1 * jobs_kwh, abs=1e-4)


def test_surplus_that_is_sold_and_storage_by_hand() -> None:
    """A battery takes 0.5 kWh of the first hour's sun, which would be sold for less than it saves."""
    grid = Grid(currency="EUR", import_price=np.array([0.4, 0.4]), export_price=np.array([0.1, 0.1]))
    battery = Storage(capacity_kwh=1.0, charge_w=1e4, discharge_w=1e4, charge_efficiency=1.0, discharge_efficiency=1.0,
                      lowest_charge=0.0, highest_charge=0.5)  # fmt: skip
    site, late = sunny([1000.0, 0.0], grid=grid), two().with_columns(submit_s=np.array([HOUR_S] * 2))
    early = Workload.from_columns("e", {"submit_s": [0, HOUR_S], "run_time_s": [1.0, HOUR_S], "processors": [1, 4],
                                        "power_w": [0.0, 2000.0]})  # fmt: skip
    assert fluid_bound(late, FOUR, site, RULES, within_s=0.0).cost == pytest.approx(0.4 * 2.1, abs=1e-4)
    plain = fluid_bound(early, FOUR, site, RULES, within_s=0.0)
    assert plain.cost == pytest.approx(0.4 * 2.1 - 0.1 * 0.9, abs=1e-4)
    stored = fluid_bound(early, FOUR, replace(site, storage=battery), RULES, within_s=0.0)
    assert stored.cost == pytest.approx(0.4 * 1.6 - 0.1 * 0.4, abs=1e-4)


def test_a_time_that_no_schedule_keeps_is_refused() -> None:
    """Four jobs of an hour on all processors need four hours."""
    columns = {"submit_s": [0] * 4, "run_time_s": [HOUR_S] * 4, "processors": [4] * 4, "power_w": [400.0] * 4}
    jobs = Workload.from_columns("four", columns)
    with pytest.raises(InputError, match=r"within_s: is too short: no schedule ends all jobs in time"):
        fluid_bound(jobs, FOUR, sunny([0.0]), RULES, within_s=2.9 * HOUR_S)
    assert fluid_bound(jobs, FOUR, sunny([0.0]), RULES, within_s=3 * HOUR_S).brown_kwh == pytest.approx(2.0, abs=1e-4)
    pools = Rules(pools=Pools(waiting=3))
    with pytest.raises(InputError, match=r"rules\.pools\.waiting: may leave jobs out"):
        fluid_bound(jobs, Cluster.of_units(4), sunny([0.0]), pools, within_s=3 * HOUR_S)


GROUPS = (
    NodeGroup(name="a", count=2, processors=3, static_power_w=60.0, idle_fraction=0.5, power_per_processor_w=9.0),
    NodeGroup(name="b", count=1, processors=4, speed=1.5, static_power_w=40.0, idle_fraction=0.5,
              power_per_processor_w=7.0),
)  # fmt: skip
BOOTS = {"boot_s": 3.0, "boot_energy_j": 200.0, "shutdown_s": 2.0, "shutdown_energy_j": 80.0, "min_on_s": 4.0}
LEVELS = Capacity(time_s=np.array([0.0, 20.0, 35.0]), processors=np.array([10, 4, 10]), gpus=np.zeros(3, np.int64))
MACHINES = {
    "pool": Cluster.pooled(10, processors_per_machine=4, idle_power_per_machine_w=20.0),
    "machines on demand": Cluster.pooled(10, processors_per_machine=4, idle_power_per_machine_w=20.0,
                                         power_on="on-demand"),
    "nodes": Cluster.of_nodes(GROUPS),
    "nodes that boot": Cluster.of_nodes([replace(each, **BOOTS) for each in GROUPS], power_on="on-demand"),
    "varying capacity": Cluster.of_units(10, powered=LEVELS, idle_power_w=60.0),
}  # fmt: skip
GRID = Grid(
    currency="EUR", import_price=np.array([0.3, -0.1, 0.2, 0.15]), export_price=np.array([0.05, 0.0, 0.18, 0.1]),
    carbon_g_per_kwh=np.array([300.0, 100.0, 50.0, 400.0]), source_price={"sun": np.full(4, 0.04)},
    source_g_per_kwh={"sun": 30.0},
)  # fmt: skip
BATTERY = Storage(capacity_kwh=1e-3, charge_w=70.0, discharge_w=60.0, charge_efficiency=0.9, initial_charge=0.5)


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(), machine=st.sampled_from(sorted(MACHINES)), kill=st.booleans(), stored=st.booleans(),
    name=st.sampled_from(["fcfs+easy", "f2+green:sigma=300", "foresee:horizon=60:tick=7", "sjf+none"]),
)  # fmt: skip
def test_no_schedule_beats_it(data: st.DataObject, machine: str, kill: bool, stored: bool, name: str) -> None:
    """Whatever its jobs need, within the longest time that one of its jobs took beyond its run time."""
    n = data.draw(st.integers(1, 12))
    whole = lambda low, high: np.array(data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))  # noqa: E731
    run_s = whole(1, 12)
    columns: dict[str, Any] = {
        "submit_s": whole(0, 40), "run_time_s": run_s, "requested_time_s": whole(1, 14), "processors": whole(1, 10),
        "power_w": whole(1, 60).astype(float), "nodes": np.full(n, -1),
    }  # fmt: skip
    cluster = MACHINES[machine]
    if cluster.on_nodes and data.draw(st.booleans()):
        columns["power_w"] = np.full(n, np.nan)
    jobs = Workload.from_columns("random", columns)
    sun = np.array(data.draw(st.lists(st.sampled_from([0.0, 90.0, 400.0]), min_size=4, max_size=4)))
    site = Site(name="s", step_s=8.0, sources_w={"sun": sun}, repeat=True, grid=GRID, pue=1.25, base_load_w=15.0,
                storage=BATTERY if stored else None)  # fmt: skip
    pools = Pools(suspends="power", suspend_s=1.0, resume_s=1.0) if cluster.powered is not None else None
    rules = Rules(overrun="kill" if kill else "extend", pools=pools)
    if cluster.powered is not None and name.startswith("f2"):
        name = "fcfs+easy"
    outcome = simulate(jobs, cluster, site, rules, scheduler(name))
    ran_s = np.minimum(jobs.run_time_s, jobs.requested_time_s) if kill else jobs.run_time_s
    within_s = max(0.0, float((outcome.end_s - jobs.submit_s - ran_s).max()))
    bound = fluid_bound(jobs, cluster, site, rules, within_s=within_s)
    found = books(outcome, bound.first_s, bound.last_s)
    assert found.grid_j / 3.6e6 >= bound.brown_kwh
    assert found.cost >= bound.cost
    assert found.carbon_g / 1e3 >= bound.carbon_kg
