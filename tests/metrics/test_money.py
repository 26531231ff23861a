"""Money, carbon and storage of a run, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greenbatch.cluster import Cluster
from greenbatch.energy import Grid, Site, Storage
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import Horizon, evaluate, measure
from greenbatch.metrics.money import shares_over
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

HOUR_S = 3600.0
HORIZON = Horizon(start_s=0.0, end_s=4 * HOUR_S, reference_makespan_s=4 * HOUR_S)
GRID = Grid(
    currency="EUR", import_price=np.array([0.30, 0.10, -0.20, 0.50]), export_price=np.array([0.08, 0.04, -0.05, 0.0]),
    source_price={"sun": np.full(4, 0.02)}, demand_charge=10.0, month=np.array([0, 0, 0, 1]),
    carbon_g_per_kwh=np.array([400.0, 300.0, 200.0, 100.0]), source_g_per_kwh={"sun": 50.0},
)  # fmt: skip
SITE = Site(
    name="p", step_s=HOUR_S, sources_w={"sun": np.array([0.0, 3000.0, 2500.0, 0.0]), "wind": np.zeros(4)}, grid=GRID
)
LOAD_W = (2000.0, 1000.0, 1000.0, 3000.0)


def run(site: Site, load_w: tuple[float, ...] = LOAD_W) -> Outcome:
    """Load that is constant in each hour."""
    hours = np.arange(len(load_w)) * HOUR_S
    an_hour = np.full(len(load_w), HOUR_S)
    jobs = Workload.from_columns(
        "by hand",
        {
            "submit_s": hours, "run_time_s": an_hour, "requested_time_s": an_hour, "power_w": np.array(load_w),
            "processors": np.ones(len(load_w), dtype=np.int64),
        },
    )  # fmt: skip
    cluster = Cluster.pooled(1, idle_power_per_machine_w=0.0)
    return simulate(jobs, cluster, site, Rules(), scheduler("fcfs+none"))


def figures(site: Site, horizon: Horizon = HORIZON) -> dict[str, float]:
    return evaluate(run(site), horizon=horizon)


def test_cost_and_carbon() -> None:
    """2 kWh at 0.30; 1 kWh of sun at 0.02 and 2 sold at 0.04; 1 kWh of sun, the rest is curtailed; 3 kWh at 0.50."""
    found = figures(SITE)
    assert found["horizon_demand_charge"] == pytest.approx(10.0 * (2.0 + 3.0))
    energy = 2 * 0.30 + (1 * 0.02 - 2 * 0.04) + 1 * 0.02 + 3 * 0.50
    assert found["horizon_cost"] == pytest.approx(energy + 50.0)
    assert found["horizon_cost_per_kwh"] == pytest.approx((energy + 50.0) / 7)
    assert found["horizon_carbon_kg"] == pytest.approx((2 * 400 + 2 * 50 + 3 * 100) / 1e3)
    assert found["horizon_carbon_g_per_kwh"] == pytest.approx(1200 / 7)
    assert found["horizon_carbon_g_per_job"] == pytest.approx(300.0)
    assert found["horizon_peak_import_w"] == 3000.0
    assert found["horizon_self_consumption"] == pytest.approx(2.0 / 5.5)
    assert found["horizon_autarky"] == pytest.approx(2.0 / 7.0)
    assert all(np.isnan(found[f"horizon_{name}"]) for name in ("storage_cycles", "stored_kwh", "storage_loss_kwh"))


def test_imports_above_the_limit() -> None:
    """Hour 0 imports 2 kW, hour 3 imports 3 kW."""
    assert figures(replace(SITE, grid=replace(GRID, import_limit_w=1750.0)))["horizon_over_limit_kwh"] == 0.25 + 1.25
    assert np.isnan(figures(SITE)["horizon_over_limit_kwh"])


def test_storage_is_paid_for_when_it_is_charged() -> None:
    """1.5 kWh of sun are stored in hour 1 instead of sold, the other 1.5 in hour 2; 1.5 of them are given in hour 3."""
    storage = Storage(
        capacity_kwh=4.0, charge_w=1500.0, discharge_w=1500.0, charge_efficiency=0.8, discharge_efficiency=0.625,
        lowest_charge=0.0, highest_charge=1.0,
    )  # fmt: skip
    found = figures(replace(SITE, storage=storage))
    energy = 2 * 0.30 + (2.5 * 0.02 - 0.5 * 0.04) + 2.5 * 0.02 + 1.5 * 0.50
    assert found["horizon_cost"] == pytest.approx(energy + 10.0 * (2.0 + 1.5))
    assert found["horizon_carbon_kg"] == pytest.approx((2 * 400 + 5 * 50 + 1.5 * 100) / 1e3)
    assert found["horizon_self_consumption"] == pytest.approx(5.0 / 5.5)
    assert found["horizon_autarky"] == pytest.approx(3.5 / 7.0)
    assert found["horizon_storage_cycles"] == pytest.approx(2.4 / 4.0)
    assert found["horizon_stored_kwh"] == pytest.approx(0.0, abs=1e-9)
    assert found["horizon_storage_loss_kwh"] == pytest.approx(3.0 - 1.5)
    assert found["horizon_brown_kwh"] == pytest.approx(2.0 + 1.5)
    assert found["renewable_utilization"] == pytest.approx(3.5 / 7.0)


def test_what_storage_held_at_first_is_not_lost() -> None:
    """It holds 2 of 4 kWh, and gives 1 kWh to the 2 kWh of the first hour, for which it withdraws 1.25 kWh."""
    storage = Storage(
        capacity_kwh=4.0, charge_w=1000.0, discharge_w=1000.0, charge_efficiency=1.0, discharge_efficiency=0.8,
        lowest_charge=0.0, highest_charge=1.0, initial_charge=0.5,
    )  # fmt: skip
    site = replace(SITE, sources_w={"sun": np.zeros(4), "wind": np.zeros(4)}, storage=storage)
    found = figures(site, replace(HORIZON, end_s=HOUR_S))
    assert found["horizon_stored_kwh"] == pytest.approx(0.75)
    assert found["horizon_storage_loss_kwh"] == pytest.approx(0.25)


def test_each_job_pays_for_its_energy() -> None:
    """The jobs of the four hours, of which the second and the third run on sun; cooling adds a quarter of its own."""
    costs, emissions = [2 * 0.30, 0.02, 0.02, 3 * 0.50], [2 * 400, 50, 50, 3 * 100]
    shares = shares_over(measure(run(SITE)))
    assert shares.rest == ("idle", "sold")
    assert shares.cost.tolist() == pytest.approx([*costs, 0, -2 * 0.04])
    assert shares.carbon_g.tolist() == pytest.approx([*emissions, 0, 0])
    cooled = shares_over(measure(run(replace(SITE, pue=1.25))))
    assert cooled.rest == ("idle", "cooling and losses", "sold")
    assert cooled.cost.tolist() == pytest.approx([*costs, 0, sum(costs) / 4, -1.75 * 0.04])
    assert np.isnan(shares_over(measure(run(replace(SITE, grid=None)))).cost).all()


def test_jobs_share_the_cost_of_an_hour_and_idle_power_keeps_its_own() -> None:
    """1 kW of idle power, and two jobs of 1 kW side by side, of which one runs for half an hour."""
    hour = np.array([HOUR_S, HOUR_S / 2])
    jobs = Workload.from_columns(
        "by hand",
        {"submit_s": np.zeros(2), "run_time_s": hour, "requested_time_s": hour, "power_w": np.full(2, 1000.0),
         "processors": np.ones(2, dtype=np.int64)},
    )  # fmt: skip
    cluster = Cluster.pooled(2, processors_per_machine=2, idle_power_per_machine_w=1000.0)
    found = measure(simulate(jobs, cluster, SITE, Rules(), scheduler("fcfs+none")))
    assert shares_over(found).cost.tolist() == pytest.approx([1.0 * 0.30, 0.5 * 0.30, 1.0 * 0.30, 0])
    assert found.books is not None
    assert found.books.cost == pytest.approx(2.5 * 0.30)
    horizon = shares_over(found, HORIZON)
    assert horizon.rest == ("idle", "sold", "demand charge")
    assert horizon.cost[-1] == pytest.approx(10.0 * (2.5 + 1.0)), "idle power of the last hour is a peak as well"


def test_a_peak_is_the_mean_of_a_slot() -> None:
    """Half an hour of 2 kW is a mean of 1 kW."""
    short = Horizon(start_s=0.0, end_s=0.5 * HOUR_S, reference_makespan_s=HOUR_S)
    assert figures(SITE, short)["horizon_peak_import_w"] == pytest.approx(1000.0)
    late = Horizon(start_s=2.5 * HOUR_S, end_s=4 * HOUR_S, reference_makespan_s=HOUR_S)
    assert figures(SITE, late)["horizon_demand_charge"] == pytest.approx(10.0 * (0.0 + 3.0))


def test_the_months_of_a_series_that_repeats_are_others_every_time() -> None:
    """Over two passes, four months have peaks of 2, 3, 0 and 0 kW; idle machines draw nothing."""
    twice = Horizon(start_s=0.0, end_s=8 * HOUR_S, reference_makespan_s=HOUR_S)
    found = figures(replace(SITE, repeat=True), twice)
    assert found["horizon_demand_charge"] == pytest.approx(50.0)
    both = evaluate(run(replace(SITE, repeat=True), LOAD_W * 2), horizon=twice)
    assert both["horizon_demand_charge"] == pytest.approx(100.0)


def test_without_prices_or_intensities_there_is_no_money_and_no_carbon() -> None:
    plain = figures(replace(SITE, grid=None))
    free = figures(replace(SITE, grid=Grid(import_price=np.zeros(4))))
    for name in ("cost", "cost_per_kwh", "demand_charge", "carbon_kg", "carbon_g_per_kwh", "carbon_g_per_job"):
        assert np.isnan(plain[f"horizon_{name}"])
        assert np.isnan(free[f"horizon_{name}"])
