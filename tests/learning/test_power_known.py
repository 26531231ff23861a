"""Rewards and features of energy need power: what is always 0 is refused, or warned about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from greenbatch.errors import InputError
from greenbatch.experiments.running.model_warnings import model_warnings
from greenbatch.learning.runs.plan import make_plan
from greenbatch.models.find import find_model
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler


@pytest.fixture(scope="module")
def nodes() -> Scenario:
    return load_scenario("ineps/adaptability-memory")


def without_power(question: Scenario) -> Scenario:
    assert question.cluster.on_nodes
    nothing: dict[str, Any] = {"static_power_w": 0.0, "power_per_processor_w": 0.0}
    groups = tuple(replace(group, **nothing) for group in question.cluster.groups)
    return replace(question, cluster=replace(question.cluster, groups=groups))


@pytest.mark.parametrize("term", ["brown_kwh", "brown_energy_ratio", "renewable_utilization"])
def test_terms_of_the_supply_need_one(nodes: Scenario, term: str) -> None:
    message = rf"^reward\.terms\.{term}: needs a power supply, {nodes.name} has none \(use a scenario with a site\)"
    with pytest.raises(InputError, match=message):
        make_plan("ineps-plus", nodes, overrides={f"reward.terms.{term}": -1.0})
    make_plan("ineps-plus", nodes, overrides={f"reward.terms.{term}": 0.0})


@pytest.mark.parametrize("term", ["energy_kwh", "edp_js", "edp_steps_js"])
def test_terms_of_energy_need_power(nodes: Scenario, term: str) -> None:
    for question, fix in (
        (without_power(nodes), "use a scenario .* or nodes with static_power_w"),
        (replace(load_scenario("default"), site=None), "use a scenario"),
    ):
        message = rf"^reward\.terms\.{term}: is always 0, because the power of .* is not known \({fix}"
        with pytest.raises(InputError, match=message):
            make_plan("rlscheduler", question, overrides={"reward.terms": {term: -1.0}})


def test_a_reward_without_weights_is_refused(nodes: Scenario) -> None:
    with pytest.raises(InputError, match=r"^reward\.terms: all weights are 0 "):
        make_plan("ineps-plus", nodes, overrides={"reward.terms.energy_kwh": 0})
    stages = [{"start": 0.0, "jobs": 64}, {"start": 0.5, "weights": {"energy_kwh": -1.0}}]
    make_plan("ineps-plus", nodes, overrides={"reward.terms.energy_kwh": 0, "training.curriculum": stages})


def test_pairs_weigh_energies_where_there_are_some(nodes: Scenario) -> None:
    dark = without_power(nodes)
    problem = (
        f"ineps-plus weighs energies of nodes .relative_energy, ....*the nodes and jobs of {dark.name} draw nothing"
    )
    with pytest.raises(InputError, match=problem):
        make_plan("ineps-plus", dark, overrides={"reward.terms": {"makespan_area_ratio": -1.0}})
    with pytest.raises(InputError, match=problem):
        find_model("ineps-plus", "default").check_fits(dark)
    find_model("ineps-plus", "default").check_fits(nodes)
    table = {"x": scheduler("ineps-plus@default")}
    assert [line for line in model_warnings(table, dark, [0], 100) if "x: weighs energies of nodes" in str(line)]
    assert not [line for line in model_warnings(table, nodes, [0], 100) if "weighs energies" in str(line)]
