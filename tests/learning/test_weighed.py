"""The search of a planner of cost and carbon: what a trial counts, preferences, and models that serve them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from greenbatch.energy import Grid, Storage
from greenbatch.engine.accounts import books
from greenbatch.engine.power.protocol import Weights as Joule
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.learning.runs.plan import make_plan
from greenbatch.learning.search import search
from greenbatch.learning.search.planner import initial_point, numbers_of
from greenbatch.learning.search.weighed import WeighedTrial
from greenbatch.metrics import evaluate
from greenbatch.metrics.horizon import FACTOR
from greenbatch.models.model import load_model
from greenbatch.models.planner import baseline_rule, parameters_of, program_of
from greenbatch.policies.compiled.lookahead import weights as prices
from greenbatch.policies.compiled.lookahead.plan import lookahead_policy
from greenbatch.presets.preset import check, preset
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.schedulers import scheduler

PRESET = preset("cost-aware-plus")
PREFERENCES = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 1.0]])


@cache
def priced() -> Scenario:
    """Jobs under prices and carbon that differ from slot to slot, own energy and feed-in among them."""
    made = load_scenario("default", overrides={"workload.generator.jobs": 300, "site.days": 120})
    assert made.site is not None
    random, slots = np.random.default_rng(11), made.site.slots
    grid = Grid(
        currency="EUR", import_price=random.uniform(0.02, 0.5, slots), export_price=random.uniform(0.0, 0.02, slots),
        source_price={"solar": random.uniform(0.0, 0.05, slots)}, carbon_g_per_kwh=random.uniform(50.0, 600.0, slots),
        source_g_per_kwh={"wind": 11.0},
    )  # fmt: skip
    return replace(made, site=replace(made.site, grid=grid))


BATTERY = Storage(capacity_kwh=0.5, charge_w=300.0, discharge_w=300.0, charge_efficiency=0.9)


@pytest.mark.parametrize("storage", [None, BATTERY, replace(BATTERY, dispatch="price-arbitrage")])
def test_a_trial_counts_the_horizon_by_the_preference_of_the_window(storage: Storage | None) -> None:
    question, starts = priced(), np.array([0, 40, 150])
    assert question.site is not None
    question = replace(question, site=replace(question.site, storage=storage))
    numbers = numbers_of(np.random.default_rng(3).normal(0, 0.3, prices.WEIGHTS), 1.5)
    trial = WeighedTrial(question, PRESET, 100, 3, 2)
    trial.prepare(PREFERENCES)
    found = trial(numbers, starts, np.zeros(3, np.int64))
    trial.follows = True  # one by one, as where jobs follow others
    np.testing.assert_allclose(trial(numbers, starts, np.zeros(3, np.int64)), found, rtol=1e-9)
    ratios, usual = [], []
    for k, start in enumerate(starts.tolist()):
        window, joule = question.window(start, 100), PREFERENCES[k % 2] / PREFERENCES[k % 2].sum()
        decider = lookahead_policy(numbers, baseline_rule(window), 0.0, Joule(*joule.tolist()))
        how = SimpleNamespace(program=lambda _, d=decider: replace(program_of(PRESET), decider=d), policy=lambda: None)
        ours = simulate(window, question.cluster, question.site, question.rules, how)  # type: ignore[arg-type]
        base = simulate(window, question.cluster, question.site, question.rules, scheduler("f2+easy-schedgym"))
        begin_s = window.submit_s.min()
        end_s = begin_s + FACTOR * (base.end_s.max() - begin_s)
        assert end_s > ours.end_s.max()
        amounts = [(each.grid_j, each.cost, each.carbon_g) for each in (books(o, begin_s, end_s) for o in (ours, base))]
        share = float(np.divide(*amounts) @ joule)
        metrics, theirs = evaluate(ours), evaluate(base)
        assert found[k, 0] == pytest.approx(share, rel=1e-9)
        assert found[k, 2] == pytest.approx(metrics["makespan_s"] / theirs["makespan_s"], rel=1e-9)
        ratios.append(metrics["avg_bounded_slowdown"])
        usual.append(theirs["avg_bounded_slowdown"])
    np.testing.assert_allclose(found[:, 1], np.array(ratios) / np.mean(usual), rtol=1e-9)
    assert len(np.unique(found[:, 0])) == 3


TINY = {
    "training.epochs": 2, "training.windows": 4, "training.jobs": 60, "training.search.population": 4,
    "training.search.begin": "",
}  # fmt: skip


def test_a_search_makes_a_model_that_takes_preferences(tmp_path: Path) -> None:
    search(make_plan("cost-aware-plus", priced(), overrides=TINY), tmp_path / "run", watch=lambda _: None)
    model = load_model(tmp_path / "run" / "model")
    taken = parameters_of(model)
    assert tuple(taken[each].default for each in ("brown", "cost", "carbon")) == PRESET.joule
    name = f"cost-aware-plus@{tmp_path / 'run'}"
    question = priced()
    window = question.window(0, 150)
    starts_s = [
        simulate(window, question.cluster, question.site, question.rules, scheduler(f"{name}{given}+none")).start_s
        for given in ("", ":brown=0.7:cost=0.3:carbon=0", ":brown=1:cost=0:carbon=0")
    ]
    np.testing.assert_array_equal(starts_s[0], starts_s[1])
    assert (starts_s[0] != starts_s[2]).any()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"training.search.preferences": [[0, 0, 0]]}, "training.search.preferences: weighs nothing"),
        ({"reward.terms": {"energy_cost": -1.0, "avg_bounded_slowdown": -1.0, "makespan_area_ratio": -1.0}},
         "reward.terms: cost-aware-plus is optimized for"),
        ({"training.search.years": 2}, "training.search.years: moves the supply"),
        ({"network.cost": -1.0}, "network.cost: is -1.0"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused(tmp_path: Path, overrides: dict[str, object], message: str) -> None:
    def run() -> None:
        search(make_plan("cost-aware-plus", priced(), overrides={**TINY, **overrides}), tmp_path / "run", watch=print)

    with pytest.raises(InputError) as caught:
        run()
    assert message in str(caught.value)


def test_a_site_without_a_grid_is_refused(tmp_path: Path) -> None:
    question = load_scenario("default", overrides={"workload.generator.jobs": 300})
    with pytest.raises(InputError, match="needs prices"):
        search(make_plan("cost-aware-plus", question, overrides=TINY), tmp_path / "run", watch=lambda _: None)


def test_a_planner_weighs_brown_energy_by_default() -> None:
    assert preset("gas-marl-plus").joule == (1.0, 0.0, 0.0)
    assert check({**PRESET.model_dump(), "network": {"kind": "prices", "cost": 2.0}}).joule == (1.0, 2.0, 0.0)
    assert len(initial_point()) == prices.WEIGHTS
