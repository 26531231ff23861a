"""Constraints of a training by PPO: multipliers against closed forms, costs and critics, checkpoints, bad settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from small_env import GAS, SmallEnv
from tiny import resumed_as_whole, tiny_plan

from greenbatch.errors import InputError
from greenbatch.experiments.running.model_warnings import model_warnings
from greenbatch.learning.networks import build
from greenbatch.learning.networks.layers import Critics
from greenbatch.learning.runs.checkpoint import load_checkpoint
from greenbatch.learning.runs.folder import CHECKPOINT, LOG
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.training.loop import train
from greenbatch.learning.training.multipliers import Multipliers, lagrangian
from greenbatch.learning.training.rollout import collect, values_of
from greenbatch.presets.constraints import Constraint, Controller
from greenbatch.schedulers import scheduler_table

COST = {"avg_wait_s": {"at_most": 100.0}}


def controlled(costs: list[float], limit: float = 10.0, **gains: float | str) -> list[float]:
    multipliers = Multipliers({"cost": Constraint(at_most=limit, scale=1.0)}, Controller(**gains))
    return [float(multipliers.update(np.array([cost]))[0]) for cost in costs]


def test_the_integral_adds_up_errors_and_never_falls_below_zero() -> None:
    found = controlled([13, 12, 4, 11], proportional=0, derivative=0, integral=0.5, initial=1)
    assert found == pytest.approx([2.5, 3.5, 0.5, 1.0])
    assert controlled([0, 14], proportional=0, derivative=0, integral=1, initial=1) == pytest.approx([0, 4])


def test_the_proportional_term_is_an_average_that_begins_with_the_first_error() -> None:
    found = controlled([14, 18, 0], integral=0, derivative=0, initial=0, proportional=2, smoothing=0.5)
    errors = [4, 0.5 * 4 + 0.5 * 8, 0.25 * 4 + 0.25 * 8 - 0.5 * 10]
    assert found == pytest.approx([max(2 * error, 0) for error in errors])


def test_the_derivative_is_the_rise_of_average_costs_over_the_delay() -> None:
    costs = [5.0, 7.0, 12.0, 3.0, 9.0]
    found = controlled(costs, integral=0, proportional=0, initial=0, derivative=3, cost_smoothing=0, delay=2)
    rises = [0, 2, 7, 0, 0]  # relative to the first, the first, the first, the second, the third
    assert found == pytest.approx([3 * rise for rise in rises])


def test_the_published_form_counts_gains_twice() -> None:
    found = controlled([13, 11], form="published", proportional=2, integral=0.5, derivative=3, initial=1)
    first = 2 * (2 * 3) + 0.5 * 3 + 3 * (3 * 13)
    second = 2 * (2 * 1) + 0.5 * (3 + 1) + 3 * 0
    assert found == pytest.approx([first, second])


def test_a_lower_bound_is_an_upper_bound_of_the_negative() -> None:
    above = Multipliers({"cost": Constraint(at_most=-4.0, scale=2.0)}, Controller())
    below = Multipliers({"cost": Constraint(at_least=4.0, scale=2.0)}, Controller())
    for mean in (3.0, 5.0, 1.0):
        assert above.update(np.array([-mean]))[0] == below.update(np.array([mean]))[0]
    assert Constraint(at_least=4.0).factor == -0.25
    assert Constraint(at_most=0.0).factor == 1.0
    assert Constraint(at_least=4.0).excess(3.0) == 0.25
    assert Constraint(at_least=4.0).excess(5.0) == 0.0
    assert Constraint(at_most=0.0).excess(0.5) == 0.5


@given(
    some.lists(some.lists(some.floats(0, 100), min_size=2, max_size=2), min_size=1, max_size=40),
    some.sampled_from(["corrected", "published"]),
    some.integers(0, 39),
)
def test_multipliers_are_independent_not_negative_and_resume(
    costs: list[list[float]], form: str, cut: int
) -> None:  # fmt: skip
    constraints = {"a": Constraint(at_most=30.0), "b": Constraint(at_most=60.0, scale=0.1)}
    both = Multipliers(constraints, Controller(form=form, delay=3))
    alone = [Multipliers({name: each}, Controller(form=form, delay=3)) for name, each in constraints.items()]
    for number, pair in enumerate(costs):
        if number == cut:
            resumed = Multipliers(constraints, Controller(form=form, delay=3))
            resumed.restore({name: value.copy() for name, value in both.arrays().items()})
            both = resumed
        found = both.update(np.array(pair))
        expected = [each.update(np.array([cost]))[0] for each, cost in zip(alone, pair, strict=True)]
        assert found.tolist() == expected
        assert (found >= 0).all()
    with pytest.raises(ValueError, match="other constraints"):
        alone[0].restore(both.arrays())


def test_a_large_error_is_held_at_the_largest_multiplier() -> None:
    assert controlled([1e6, 1e6], largest=7)[-1] == 7


def test_the_lagrangian_weighs_costs_and_keeps_its_size() -> None:
    advantages = [np.array([1.0, 2.0]), np.array([3.0, -1.0]), np.array([0.0, 4.0])]
    np.testing.assert_allclose(lagrangian(advantages, np.array([0.5, 1.5])), [(1 - 1.5) / 3, (2 + 0.5 - 6) / 3])
    np.testing.assert_array_equal(lagrangian(advantages[:1], np.zeros(0)), advantages[0])


def test_costs_are_the_changes_of_their_terms_and_every_critic_sees_its_own() -> None:
    actor, critic = build({"kind": "gas-marl"}, GAS, 0)
    other = build({"kind": "gas-marl"}, GAS, 1)[1]
    env = SmallEnv(GAS, 7)
    played = collect(env, range(20), actor, Critics([critic, other]), torch.Generator().manual_seed(0), costs=[0, 0])
    sums = np.add.reduceat(played.costs, played.offsets[:-1])
    np.testing.assert_allclose(sums, played.terms[:, [0, 0]])
    assert np.ptp(sums) > 0
    for column, each in enumerate((critic, other)):
        np.testing.assert_allclose(played.values[:, column], values_of(each, played.decisions), atol=1e-6)


def constrained(place: Path, **more: object) -> Plan:
    crowded = {"training.jobs": 30, "training.validation.jobs": 30}  # fewer jobs never wait, and would cost nothing
    return tiny_plan(place, overrides={"training.constraints": COST, **crowded, **more})


def test_a_constrained_training_says_what_it_keeps(tmp_path: Path) -> None:
    plan = constrained(tmp_path)
    assert plan.preset.reward.terms["avg_wait_s"] == 0.0
    state = train(plan, tmp_path / "run")
    lines = [line for line in read_log(tmp_path / "run" / LOG) if "policy_loss" in line]
    assert len(lines) == 4
    assert all(line["multiplier_avg_wait_s"] > 1 and 0 < line["beyond_avg_wait_s"] <= 1 for line in lines)
    for line in lines:
        assert line["of_bound_avg_wait_s"] == pytest.approx(line["avg_wait_s"] / 100)
    assert "validation_avg_wait_s" in read_log(tmp_path / "run" / LOG)[0]
    tensors, saved = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    assert tensors["multipliers/values"].tolist() == [lines[-1]["multiplier_avg_wait_s"]]
    excess = Constraint(at_most=100.0).excess(state.counters.best_terms["avg_wait_s"])
    assert excess > 0
    assert saved["best_excess"] == excess
    name = f"rlscheduler@{tmp_path / 'run' / 'model'}"
    told = model_warnings(scheduler_table([name]), plan.scenario, [0], 12)
    value = state.counters.best_terms["avg_wait_s"]
    limit = f"{name}: it did not keep a limit of its training: avg_wait_s {value:.4g}, at most 100"
    assert limit in map(str, told)


def test_the_multiplier_changes_what_is_learned(tmp_path: Path) -> None:
    weights = []
    for name, limit in (("loose", 1e9), ("tight", 0.0)):
        more = {"training.constraints": {"avg_wait_s": {"at_most": limit}}, "training.keep": "last"}
        plan = constrained(tmp_path, **more)
        train(plan, tmp_path / name)
        weights.append((tmp_path / name / "model" / "actor.safetensors").read_bytes())
    assert weights[0] != weights[1]


def test_an_interrupted_training_resumes_with_its_multipliers(tmp_path: Path) -> None:
    plan = constrained(tmp_path)
    assert "multipliers/integral" in resumed_as_whole(plan, tmp_path, train)


def test_the_best_actor_keeps_bounds_before_it_earns_more(tmp_path: Path) -> None:
    from greenbatch.learning.training.loop import TrainingSetup
    from greenbatch.learning.training.state import State

    state = State(TrainingSetup(constrained(tmp_path), torch.device("cpu")).learner)
    weights = state.actor_weights()
    assert state.offer(5.0, {}, weights, excess=0.3)
    assert not state.offer(9.0, {}, weights, excess=0.4)
    assert state.offer(1.0, {}, weights, excess=0.0)
    assert not state.offer(7.0, {}, weights, excess=0.1)
    assert state.offer(2.0, {}, weights, excess=0.0)
    assert (state.counters.best_figure, state.counters.best_excess) == (2.0, 0.0)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"avg_wait": {"at_most": 1.0}}, "'avg_wait' is not a reward term"),
        ({"avg_wait_s": 5.0}, r"avg_wait_s: 5.0 does not say of which side it is a bound \(give at_most or at_least"),
        ({"avg_wait_s": {}}, "give either at_most or at_least"),
        ({"avg_wait_s": {"at_most": 1.0, "at_least": 0.0}}, "give either at_most or at_least"),
        ({"avg_wait_s": {"at_most": "low"}}, "at_most"),
        ({"avg_wait_s": {"at_most": 1.0, "scale": 0}}, "scale"),
        ({"avg_wait_s": {"most": 1.0}}, "most"),
        ({"energy_cost": {"at_most": 1.0}}, "training.constraints.energy_cost"),
        ({"accrued_cost": {"at_most": 1.0}}, "training.constraints.accrued_cost: is always 0, because the capacity"),
    ],
)
def test_bad_constraints_are_refused(tmp_path: Path, table: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        tiny_plan(tmp_path, overrides={"training.constraints": table})
