"""What agents see of prices and carbon: from the site's columns, and the same in a batch and from a view."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.energy import Site
from greenbatch.energy.grid import Grid
from greenbatch.energy.storage import Storage
from greenbatch.engine.observe.batch import observe_view
from greenbatch.engine.program import Program
from greenbatch.engine.views.interface import Start
from greenbatch.engine.views.session import Session
from greenbatch.envs.batch import BatchEnv
from greenbatch.errors import InputError
from greenbatch.learning.runs.plan import make_plan
from greenbatch.presets.preset import check, preset, resolve
from greenbatch.presets.scales import scales_of
from greenbatch.scenarios import Scenario, load_scenario

SEEN = ("power", "grid_price", "source_price", "export_price", "carbon")
ROWS = 30
"""More than are forecast."""


def scenario(**site: Any) -> Scenario:
    """A day and a half of forecasts in hours, under prices that are negative at times."""
    made = load_scenario("default", overrides={"workload.generator.jobs": 120, "site.days": 60})
    random, slots = np.random.default_rng(3), made.site.slots if made.site else 0
    grid = Grid(
        currency="EUR", import_price=random.normal(0.05, 0.1, slots), export_price=random.normal(0.02, 0.05, slots),
        source_price={"solar": random.uniform(0.0, 0.2, slots)}, carbon_g_per_kwh=random.uniform(0.0, 700.0, slots),
    )  # fmt: skip
    assert made.site is not None
    return replace(made, site=replace(made.site, grid=grid, **site))


def looking() -> Any:
    """A preset that sees all that a slot has."""
    raw = preset("gas-marl").model_dump()
    raw["observation"]["supply"] = {"rows": ROWS, "columns": [{"feature": name} for name in SEEN]}
    return check(raw)


def shown(site: Site, now_s: float) -> Any:
    """The columns of the slots ahead, worked out from the site's series; slots beyond the forecast repeat it."""
    grid, first = site.grid, site.slot(now_s)
    assert grid is not None
    assert grid.carbon_g_per_kwh is not None
    known = site.horizon_slots if site.repeat else min(site.horizon_slots, site.slots - first)
    rows = (first + np.arange(ROWS) % known) % site.slots
    sources = {name: watts[rows] for name, watts in site.sources_w.items()}
    paid = sources["solar"] * grid.source_price["solar"][rows]
    own = np.divide(paid, sum(sources.values()), out=np.zeros(ROWS), where=sum(sources.values()) > 0)
    columns = [
        site.renewable_w[rows], grid.import_price[rows], own, np.maximum(grid.export_price[rows], 0.0),
        grid.carbon_g_per_kwh[rows],
    ]  # fmt: skip
    return np.stack(columns, axis=1)


BATTERY = Storage(capacity_kwh=5.0, charge_w=2000.0, discharge_w=2000.0)


@pytest.mark.plain
@settings(max_examples=4, deadline=None)
@given(
    start=st.integers(0, 80), seed=st.integers(0, 99), horizon_h=st.sampled_from([1, 24, 36]), repeat=st.booleans(),
    storage=st.sampled_from([None, BATTERY]),
)  # fmt: skip
def test_agents_see_the_prices_of_the_slots_ahead(
    start: int, seed: int, horizon_h: int, repeat: bool, storage: Storage | None
) -> None:
    question = scenario(repeat=repeat, forecast_horizon_s=3600.0 * horizon_h, storage=storage)
    assert question.site is not None
    agent, made = np.random.default_rng(seed), looking()
    env = BatchEnv(question, made, environments=1, jobs=40, backfill="none")
    program = Program(name="x", settings={"sticky": 1.0})
    session = Session(question.window(start, 40), question.cluster, question.site, question.rules, program)
    seen = env.reset([start])
    while len(seen.environment):
        np.testing.assert_allclose(seen.supply[0], shown(question.site, env.now_s[0]), rtol=1e-6)
        view = session.view()
        assert view is not None
        other = observe_view(view, env.layout)
        np.testing.assert_array_equal(other.supply, seen.supply)
        np.testing.assert_array_equal(other.queue, seen.queue)
        row = int(agent.integers(len(seen.queue)))
        session.apply(Start(row))
        seen, _, _ = env.step(np.array([[row, 0]]))
    assert session.view() is None


def test_without_a_grid_nothing_has_a_price() -> None:
    question = replace(scenario(), site=load_scenario("default").site)
    env = BatchEnv(question, looking(), environments=1, jobs=10)
    seen = env.reset([0])
    assert (seen.supply[0, :, 0] > 0).any()
    assert not seen.supply[0, :, 1:].any()


def test_largest_values_of_slots_and_jobs_are_scales() -> None:
    question = scenario()
    site, jobs, scales = question.site, question.workload, scales_of(question)
    assert site is not None
    assert site.grid is not None
    expected = {
        "highest_grid_price": np.abs(site.grid.import_price).max(), "highest_supply": site.renewable_w.max(),
        "highest_export_price": site.grid.export_price.max(), "highest_carbon": np.max(site.grid.carbon_g_per_kwh),
        "highest_source_price": np.max(scaled(site)), "largest_job_power": jobs.power_w.max(),
        "largest_power_per_processor": (jobs.power_w / jobs.processors).max(),
    }  # fmt: skip
    assert {name: scales[name] for name in expected} == pytest.approx(expected)
    unpriced = scales_of(load_scenario("default", overrides={"workload.generator.jobs": 20}))
    assert unpriced["highest_grid_price"] == unpriced["highest_carbon"] == 1.0


def scaled(site: Site) -> Any:
    """Mean price of own energy in each slot."""
    assert site.grid is not None
    generated = site.sources_w["solar"] * site.grid.source_price["solar"]
    return np.divide(generated, site.renewable_w, out=np.zeros(site.slots), where=site.renewable_w > 0)


@pytest.mark.parametrize("name", ["cost-aware", "one-action", "no-cost-signal"])
def test_what_prices_reach_the_agents(name: str) -> None:
    made = resolve(preset(name), scenario())
    columns = [column.feature for column in made.observation.supply.columns]
    assert ("grid_price" in columns) == ("source_price" in columns) == (name != "no-cost-signal")
    assert (made.reward.terms["energy_cost_per_kwh"] != 0) == (name != "no-cost-signal")
    assert made.chooses_delays == (name != "one-action")


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("energy_cost", "needs prices, default has none (describe [site.grid.price])"),
        ("energy_cost_per_kwh", "needs prices, default has none"),
        ("carbon_kg", "needs carbon intensities, default has none (describe [site.grid.carbon])"),
    ],
)
def test_a_reward_without_prices_is_refused(term: str, message: str) -> None:
    question = load_scenario("default", overrides={"workload.generator.jobs": 300})
    with pytest.raises(InputError) as caught:
        make_plan("gas-marl", question, overrides={"reward.terms": {term: -1.0}})
    assert message in str(caught.value)
