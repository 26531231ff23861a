"""The bill of an operator by calendar month."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greenbatch.cluster import Cluster
from greenbatch.energy import Grid, Site
from greenbatch.energy.storage import Storage
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import evaluate, horizon_of, measure
from greenbatch.metrics.months import bill, months_of
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

CLUSTER = Cluster.pooled(2, idle_power_per_machine_w=10.0)
HOUR_S, DAY_S = 3600.0, 86_400.0
FEBRUARY_S = 1_738_364_400.0
"""2025-02-01 in Berlin, an hour before that in UTC. [s]"""


def workload(count: int, step_s: float, zone: str | None) -> Workload:
    """A job of 100 W for three hours every ``step_s``, from 31 January 2025, 20:00 in Berlin, on."""
    columns = {
        "submit_s": np.arange(count) * step_s, "run_time_s": np.full(count, 3 * HOUR_S),
        "requested_time_s": np.full(count, 3 * HOUR_S), "processors": np.ones(count, np.int64),
        "power_w": np.full(count, 100.0),
    }  # fmt: skip
    made = Workload.from_columns("months", columns)
    return replace(made, unix_start_s=FEBRUARY_S - 4 * HOUR_S, time_zone=zone)


def site(storage: Storage | None = None) -> Site:
    """90 days of one-hour slots, some sun, prices of both signs, and a demand charge by month."""
    slots = 90 * 24
    hour = np.arange(slots)
    grid = Grid(
        import_price=np.sin(hour) * 0.2 + 0.1, export_price=np.full(slots, 0.05), currency="EUR",
        carbon_g_per_kwh=300 + 100 * np.cos(hour), demand_charge=7.0,
        month=np.where(hour < 4, 0, np.where(hour < 4 + 28 * 24, 1, 2 + (hour >= 4 + 59 * 24))),
    )  # fmt: skip
    sun_w = np.where(hour % 24 >= 20, 150.0, 0.0)
    return Site(name="s", step_s=HOUR_S, sources_w={"solar": sun_w}, grid=grid, storage=storage)


def test_months_are_those_of_the_traces_time_zone() -> None:
    """A job at 20:00 on 31 January in Berlin is one of January, and midnight belongs to February."""
    found = months_of(workload(3, 4 * HOUR_S, "Europe/Berlin"))
    assert found is not None
    assert found.names == ("2025-01", "2025-02")
    assert found.edges_s[1] == 4 * HOUR_S
    assert found.of(np.array([0.0, 4 * HOUR_S - 1, 4 * HOUR_S, 90 * DAY_S])).tolist() == [0, 0, 1, 2]
    in_utc = months_of(workload(3, 4 * HOUR_S, None))
    assert in_utc is not None
    assert in_utc.edges_s[1] == 5 * HOUR_S


@pytest.mark.parametrize("made", [workload(1, 1.0, None), replace(workload(9, DAY_S, None), unix_start_s=None)])
def test_no_months_within_one_or_without_dates(made: Workload) -> None:
    """One month is no division, and without dates there is none."""
    assert months_of(made) is None


def test_long_traces_are_divided_by_years() -> None:
    """Over 24 months would be a long table."""
    found = months_of(workload(4, 365 * DAY_S, "UTC"))
    assert found is not None
    assert found.names == ("2025", "2026", "2027", "2028")


@pytest.mark.parametrize("storage", [None, Storage(capacity_kwh=1.0, charge_w=200.0, discharge_w=200.0)])
def test_months_add_up_to_the_horizon(storage: Storage | None) -> None:
    """Energy, cost with demand charge, and carbon of all months are those of the horizon, also with a battery."""
    jobs, machine = workload(60, 0.9 * DAY_S, "Europe/Berlin"), CLUSTER
    outcome = simulate(jobs, machine, site(storage), Rules(), scheduler("fcfs+easy"))
    run, horizon = measure(outcome), horizon_of(jobs, machine, outcome.site, outcome.rules, 1.5)
    months = months_of(jobs)
    assert months is not None
    found, whole = bill(run, horizon, months), evaluate(outcome, horizon=horizon)
    assert len(months.names) == 3
    assert found.used_j.sum() / 3.6e6 == pytest.approx(whole["horizon_energy_kwh"], rel=1e-12)
    assert found.import_j.sum() / 3.6e6 == pytest.approx(whole["horizon_brown_kwh"], rel=1e-9)
    assert found.cost.sum() == pytest.approx(whole["horizon_cost"], rel=1e-9)
    assert found.carbon_g.sum() / 1e3 == pytest.approx(whole["horizon_carbon_kg"], rel=1e-9)
    assert (found.import_j[:3] > 0).all()
    assert found.used_j[3] / 10.0 == pytest.approx(horizon.end_s - months.edges_s[3])  # later: idle power
    assert found.cost[0] > 0.1 * 7.0  # the demand charge of January


def test_months_that_the_horizon_does_not_reach_have_no_bill() -> None:
    """They are not months in which nothing was paid."""
    jobs = workload(60, 0.9 * DAY_S, "Europe/Berlin")
    outcome = simulate(jobs, CLUSTER, site(), Rules(), scheduler("fcfs+easy"))
    months = months_of(jobs)
    assert months is not None
    horizon = horizon_of(jobs, CLUSTER, outcome.site, outcome.rules, 0.3)  # ends in February
    found = bill(measure(outcome), horizon, months)
    assert np.isfinite(found.cost[:2]).all()
    assert np.isnan(found.cost[2])
    assert found.used_j[1] > 0
    assert np.isnan(found.used_j[2])
