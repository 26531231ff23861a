"""A machine that follows a site whose forecast has errors: what is expected, and what happens to a broken promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.cluster import Cluster
from greenbatch.energy import ForecastModel, Site, Storage
from greenbatch.energy.forecasts import forecast_of
from greenbatch.energy.powered import powered_levels
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.pools import Pools
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Decision, Start, View
from greenbatch.engine.views.session import Session
from greenbatch.errors import InputError
from greenbatch.scenarios.build_powered import following_power
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

pytestmark = pytest.mark.plain

UNIT_W, PROCESSORS = 100.0, 4
BATTERY = Storage(
    capacity_kwh=0.001, charge_w=150.0, discharge_w=120.0, charge_efficiency=0.9, discharge_efficiency=0.8,
    self_discharge_per_day=0.5, initial_charge=0.5, lowest_charge=0.0, highest_charge=1.0,
)  # fmt: skip
NAMES = ("fcfs", "fcfs+easy", "fcfs+conservative", "f2+first-fit", "lptpn:sigma=300")


def site_of(sun_w: Any, model: ForecastModel, *, step_s: float = 10.0, storage: Storage | None = None) -> Site:
    """A site that supplies so much in each slot, again and again."""
    return Site(
        name="s", step_s=step_s, sources_w={"sun": np.asarray(sun_w, np.float64)}, repeat=True, storage=storage,
        forecast_model=model, forecast_horizon_s=step_s * (len(sun_w) - 1), pue=1.25, base_load_w=20.0,
    )  # fmt: skip


POOLS = Pools(suspends="power", end_s=500.0)


def machine_of(site: Site, jobs: Workload, gpus: int = 0) -> Cluster:
    """Processors of 100 W that are powered as the site supplies."""
    whole = Cluster.of_units(PROCESSORS, gpus, idle_power_w=10.0)
    return following_power(whole, UNIT_W, POOLS, jobs, site)


def jobs_of(**columns: Any) -> Workload:
    count = len(columns["submit_s"])
    given = {"requested_time_s": columns["run_time_s"], "power_w": np.full(count, 40.0), "gpus": np.zeros(count, int)}
    return Workload.from_columns("jobs", {**given, **columns})


def run(site: Site, jobs: Workload, name: str, rules: Rules | None = None) -> Outcome:
    return simulate(jobs, machine_of(site, jobs), site, rules or Rules(), scheduler(name))


ONE = jobs_of(submit_s=[0], run_time_s=[15], processors=[3])
FALLS = (520, 145, 520, 520, 520)
"""Power for 4, 1, 4, 4 and 4 processors: the facility draws 1.25 times theirs and 20 W."""


def test_what_is_promised_and_does_not_come_suspends_the_job() -> None:
    """Three times the power is told: the job starts at 0, is suspended at 10 with 5 s to do, and resumes at 20."""
    knows = run(site_of(FALLS, ForecastModel()), ONE, "fcfs")
    assert (knows.start_s[0], knows.stays.forced) == (20.0, 0)  # type: ignore[union-attr]
    told = run(site_of(FALLS, ForecastModel(bias=2.0)), ONE, "fcfs")
    assert told.stays is not None
    assert told.stays.forced == 1
    assert [*zip(told.stays.span_start_s, told.stays.span_end_s, strict=True)] == [(0.0, 10.0), (20.0, 25.0)]
    assert told.end_s[0] == 25.0


def test_what_is_not_expected_to_last_is_not_begun() -> None:
    """A tenth of the power is told: 3 processors are never expected to stay, and the job starts where it must not."""
    dark = site_of(FALLS, ForecastModel(bias=-0.9))
    assert run(dark, ONE, "fcfs", Rules(pools=Pools(suspends="power"))).start_s[0] == 0.0
    with pytest.raises(InputError, match="jobs are left then"):
        run(dark, ONE, "fcfs")


@st.composite
def sites(draw: Any) -> Site:
    sun_w = draw(st.lists(st.integers(0, 700), min_size=3, max_size=8))
    model = draw(st.sampled_from([
        ForecastModel(sigma=1.0, correlation_h=0.01, seed=3), ForecastModel(bias=0.6), ForecastModel(bias=-0.5),
    ]))  # fmt: skip
    return site_of(sun_w, model, storage=draw(st.sampled_from([None, BATTERY])))


@st.composite
def workloads(draw: Any) -> Workload:
    count = draw(st.integers(1, 8))

    def column(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    return jobs_of(
        submit_s=sorted(column(0, 40)), run_time_s=column(1, 30), processors=column(1, PROCESSORS), gpus=column(0, 2)
    )


class Watching:
    """Starts what it can, and keeps each view."""

    def __init__(self) -> None:
        self.views: list[View] = []

    def decide(self, view: View) -> Decision:
        self.views.append(view)
        return Start(0)


@settings(max_examples=25, deadline=None)
@given(site=sites(), jobs=workloads())
def test_what_is_shown_is_what_the_forecast_would_power(site: Site, jobs: Workload) -> None:
    """Each view, beside the levels of a site that would supply what is forecast from its slot on."""
    machine, watching = machine_of(site, jobs, gpus=2), Watching()
    session = Session(jobs, machine, site, Rules(pools=POOLS), Program(name="mine"))
    while (view := session.view()) is not None:
        session.apply(watching.decide(view))
    needed_w = np.array([0.0, 1.0, 3.0, 4.0, 6.0]) * UNIT_W
    _, level, stored_j = powered_levels(site, needed_w, 4000.0)
    for view in watching.views:
        slot, seen, many = int(view.now_s // site.step_s), view.capacity, site.horizon_slots
        assert seen is not None
        sun_w = forecast_of(
            site.forecast_model, site.renewable_w, slot + np.arange(many), step_s=site.step_s, window=many, repeats=True
        )  # fmt: skip
        held = None if site.storage is None else replace(BATTERY, initial_charge=stored_j[slot] / BATTERY.usable_j)
        told = replace(site, sources_w={"sun": sun_w}, forecast_model=ForecastModel(), storage=held)
        expected = powered_levels(told, needed_w, site.step_s * many)[1]
        assert seen.processors[:many].tolist() == expected[: len(seen.processors)].tolist()
        assert seen.gpus[:many].tolist() == (expected * 2 // 4)[: len(seen.gpus)].tolist()
        assert seen.processors[0] == level[slot]
        again = seen.processors[many : 2 * many]
        assert again.tolist() == seen.processors[: len(again)].tolist()


@settings(max_examples=25, deadline=None)
@given(site=sites(), jobs=workloads(), name=st.sampled_from(NAMES), suspends=st.sampled_from(["never", "power"]))
def test_no_error_is_a_perfect_forecast(site: Site, jobs: Workload, name: str, suspends: Any) -> None:
    jobs = replace(jobs, gpus=np.zeros(len(jobs), np.int64))
    site = replace(site, sources_w={"sun": np.append(site.sources_w["sun"], 900.0)}, forecast_horizon_s=1e9)
    perfect, exact = (
        run(replace(site, forecast_model=model), jobs, name, Rules(pools=replace(POOLS, suspends=suspends)))
        for model in (ForecastModel(), ForecastModel(kind="error"))
    )
    np.testing.assert_array_equal(perfect.end_s, exact.end_s)
    assert perfect.stays is not None
    assert exact.stays is not None
    assert perfect.stays.forced == exact.stays.forced
