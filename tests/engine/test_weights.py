"""What energy weighs for schedulers: brown joules, money and carbon, from prices as far ahead as they are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import clusters, job_lists, site, supplies, workload
from driven import run_from_views
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Job

from greenbatch.cluster import Cluster
from greenbatch.energy import Grid, Site
from greenbatch.engine.power.costs import costs_of, relative_to_usual
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.engine.views.interface import Start, View
from greenbatch.engine.views.session import Session
from greenbatch.schedulers import scheduler

WAITING = "cheapest-start:horizon=60:tick=7:short=6:hold=900"
HOLDING = "foresee:horizon=60:tick=7:slowdown=900:idle=2:limit=40"
NAMES = (WAITING, HOLDING, "fcfs+green:sigma=200", "gas-marl-plus@default", "green-threshold:tick=7:slowdown=3")
RULES = Rules(commitment="reconsider")


def weighed(name: str, brown: float, cost: float, carbon: float) -> Any:
    """A scheduler with weights."""
    return scheduler(f"{name}:brown={brown}:cost={cost}:carbon={carbon}")


@st.composite
def priced(draw: st.DrawFn, power: Site) -> Site:
    """A site with prices, some negative, and carbon of everything."""

    def column(low: float, high: float) -> Any:
        return np.array([draw(st.integers(int(low), int(high))) for _ in range(power.slots)]) / 100.0

    return replace(power, grid=Grid(
        currency="EUR", import_price=column(-20, 60), export_price=column(-5, 20), source_price={"all": column(0, 10)},
        carbon_g_per_kwh=1e3 * column(5, 80), source_g_per_kwh={"all": 40.0},
        marginal_g_per_kwh=draw(st.none() | st.just(1e3 * column(5, 99))),
    ))  # fmt: skip


WEIGHTS = st.tuples(*[st.sampled_from([0.0, 0.3, 1.0, 4.0])] * 3)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_starts_from_views_are_those_of_a_simulation(name: str, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors)))
    power = data.draw(priced(site(data.draw(supplies()))))
    how = weighed(name, *data.draw(WEIGHTS))
    wanted = simulate(jobs, cluster, power, RULES, how).start_s
    np.testing.assert_array_equal(run_from_views(how, jobs, cluster, power, RULES).start_s, wanted)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_prices_do_not_count_by_default(name: str, data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors)))
    plain = site(data.draw(supplies()))
    wanted = simulate(jobs, cluster, plain, RULES, scheduler(name)).start_s
    found = simulate(jobs, cluster, data.draw(priced(plain)), RULES, scheduler(name)).start_s
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_without_any_spread_money_and_carbon_are_brown_energy(name: str, data: st.DataObject) -> None:
    """Constant prices, without feed-in: a joule from the grid weighs the same by all three."""
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors)))
    plain = site(data.draw(supplies()))
    grid = Grid(currency="EUR", import_price=np.full(plain.slots, 0.25), carbon_g_per_kwh=np.full(plain.slots, 400.0))
    wanted = simulate(jobs, cluster, plain, RULES, scheduler(name)).start_s
    for weights in ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.25, 0.25)):
        found = simulate(jobs, cluster, replace(plain, grid=grid), RULES, weighed(name, *weights)).start_s
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", [WAITING, HOLDING])
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_without_spread_and_sun_nothing_waits_for_energy(name: str, data: st.DataObject) -> None:
    """Starts are those of the policy's order alone: as if energy weighed nothing."""
    cluster = data.draw(clusters())
    jobs = workload(data.draw(job_lists(cluster.processors, "exact")))
    supply = data.draw(supplies())
    dark = site(supply._replace(renewable_w=[0.0] * len(supply.renewable_w)))
    grid = Grid(currency="EUR", import_price=np.full(dark.slots, 0.25), carbon_g_per_kwh=np.full(dark.slots, 400.0))
    wanted = simulate(jobs, cluster, dark, RULES, weighed(name, 0.0, 0.0, 0.0)).start_s
    for weights in ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 2.0, 3.0)):
        found = simulate(jobs, cluster, replace(dark, grid=grid), RULES, weighed(name, *weights)).start_s
        np.testing.assert_array_equal(found, wanted)


def two_prices(**columns: Any) -> Site:
    """An hour of each of two prices, by turns, without sun."""
    given = {"import_price": np.array([0.3, 0.1]), **columns}
    return Site(
        name="two", step_s=3600.0, sources_w={"sun": np.zeros(2)}, repeat=True, forecast_horizon_s=7200.0,
        grid=Grid(currency="EUR", **given),
    )  # fmt: skip


ONE = workload([Job(600.0, 1200.0, 1200.0, 1, 50.0)])
MACHINE = Cluster.pooled(1, processors_per_machine=1, idle_power_per_machine_w=0.0)


@pytest.mark.parametrize("name", ["cheapest-start:hold=0", "foresee:slowdown=0:idle=0:learned=0"])
def test_a_job_waits_for_a_lower_price_or_less_carbon(name: str) -> None:
    power = two_prices(carbon_g_per_kwh=np.array([100.0, 400.0]))
    hour = {
        weights: simulate(ONE, MACHINE, power, RULES, weighed(name, *weights)).start_s[0] // 1800.0
        for weights in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    }
    assert list(hour.values()) == [0.0, 2.0, 0.0]


def test_carbon_is_that_at_the_margin_and_surplus_is_worth_what_it_would_earn() -> None:
    grid = Grid(
        currency="EUR", import_price=np.array([0.3, -0.1]), export_price=np.array([0.05, -0.05]),
        source_price={"sun": np.array([0.02, 0.02])}, carbon_g_per_kwh=np.array([100.0, 300.0]),
        marginal_g_per_kwh=np.array([600.0, 200.0]), source_g_per_kwh={"sun": 40.0},
    )  # fmt: skip
    power = Site(name="p", step_s=3600.0, sources_w={"sun": np.array([10.0, 10.0])}, repeat=True, grid=grid)
    found = relative_to_usual(costs_of(power))
    np.testing.assert_allclose(found, [[1.5, 0.35, 1.5, 0.1], [-0.5, 0.1, 0.5, 0.1]])


def test_a_view_shows_prices_as_far_ahead_as_power() -> None:
    power = replace(two_prices(carbon_g_per_kwh=np.array([100.0, 400.0])), forecast_horizon_s=3600.0)
    session = Session(ONE, MACHINE, power, RULES, scheduler("fcfs").program(ONE))
    view = session.view()
    assert isinstance(view, View)
    costs = view.supply.costs
    assert [column.tolist() for column in costs[:6]] == [[0.3], [0.0], [0.0], [100.0], [100.0], [0.0]]
    assert costs[6:] == pytest.approx((0.2, 250.0))
    session.apply(Start(0))


@pytest.mark.parametrize("search", ["ga", "aco"])
def test_a_search_for_an_order_pays_less_if_cost_counts(search: str) -> None:
    """Of two jobs that wait together, the one with more power runs while energy is cheap."""
    jobs = workload([Job(0.0, 3600.0, 3600.0, 1, power_w) for power_w in (400.0, 40.0)])
    how = scheduler(f"{search}:eta=0:cost=1+easy")
    rules = replace(RULES, event_rule="per_instant")
    assert simulate(jobs, MACHINE, two_prices(), rules, how).start_s.tolist() == [3600.0, 0.0]
