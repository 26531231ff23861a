"""The ``[training]`` table: defaults as published, schedules, and one line for everything that is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest

from greenbatch.errors import InputError
from greenbatch.presets.off_policy import OffPolicy
from greenbatch.presets.preset import preset, shipped_names
from greenbatch.presets.training import TrainingSettings, read_training


def test_defaults_are_gas_marls():
    made = read_training({})
    published = {
        "epochs": 300, "windows": 100, "jobs": 256, "passes": 8, "minibatch": 256, "clip": 0.2, "gamma": 1.0,
        "gae_lambda": 0.97, "actor_lr": 1e-4, "critic_lr": 5e-4, "adam_eps": 1e-6, "grad_clip": 0.5, "entropy": 0.0,
    }  # fmt: skip
    assert {key: getattr(made, key) for key in published} == published


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_preset_has_a_valid_table(name: str):
    assert read_training(preset(name).training).epochs >= 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"passs": 4}, r"^training.passs: unknown key \(did you mean passes\?\)$"),
    ({"swa": {"begin": 0.5}}, r"^training.swa.begin: unknown key \(use one of start, every, anneal, lr\)$"),
    (
        {"curriculum": [{"start": 0.1, "job": 3}]},
        r"^training.curriculum\[0\].job: unknown key \(did you mean jobs\?\)$",
    ),
    ({"passes": "four"}, r"^training.passes: is 'four' \(give a whole number, without quotes\)$"),
    ({"passes": 4.5}, r"^training.passes: is 4.5 \(give a whole number, without quotes\)$"),
    ({"passes": 0}, r"^training.passes: is 0 \(it must be greater than or equal to 1\)$"),
    ({"gamma": 1.5}, r"^training.gamma: is 1.5 \(it must be less than or equal to 1\)$"),
    ({"actor_lr": -1e-4}, "greater than 0"),
    ({"actor_lr": math.nan}, "finite number"),
    ({"advantage": "gea"}, r"^training.advantage: is 'gea' \(it must be 'gae' or 'group'\)$"),
    ({"swa": {"start": 0.75, "lr": 0.1}}, r"^training.swa: lr is 0.1, but anneal is 0 \(give anneal above 0\)$"),
    ({"swa": {"anneal": 0.15}}, r"start is 1, so nothing is averaged \(give start below 1\)$"),
    ({"swa": {"start": 0.75, "anneal": 0.5}}, r"start \+ anneal is 1.25 \(give at most 1\)$"),
    ({"swa": {"start": 0.75, "anneal": 0.15, "lr": 0.0}}, "greater than 0"),
    ({"swa": 3}, r"^training.swa: is 3 \(make it a table\)$"),
    ({"curriculum": [{}]}, r"^training.curriculum\[0\].start: is missing \(add it\)$"),
    ({"curriculum": [{"start": 0.5}, {"start": 0.5}]}, "order them by start"),
    ({"advantage": "group"}, "give rollouts of 2 or more"),
    ({"patience": 3, "validation": {"windows": 0}}, "give validation.windows of 1 or more"),
    ({"gamma_s": 1.0}, "leave it out, or give gamma below 1"),
    ({"gamma_s": 1.0, "gamma": 0.9, "advantage": "group", "rollouts": 2}, "gamma_s has no effect"),
    ({"gamma_s": -1.0, "gamma": 0.9}, "greater than or equal to 0"),
    ({"epochs": 2, "off_policy": {"critic_steps": 200}}, "give fewer, or more epochs"),
    ({"seed": -1}, "greater than or equal to 0"),
]


@pytest.mark.parametrize(("table", "message"), BAD)
def test_invalid_values_raise_a_one_line_error(table: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message) as caught:
        read_training(table)
    assert "\n" not in str(caught.value)


def test_a_message_names_file_and_line():
    lines = {("training",): 3, ("training", "passes"): 7}
    with pytest.raises(InputError, match=r"^p.toml, line 7: training.passes"):
        read_training({"passes": 0}, file="p.toml", lines=lines)
    with pytest.raises(InputError, match=r"^p.toml, line 3: training.clip"):
        read_training({"clip": 0}, file="p.toml", lines=lines)


def test_schedules():
    linear = TrainingSettings(lr_schedule="linear", lr_final=0.1, entropy=0.02, entropy_final=0.0)
    assert [linear.lr_factor(share) for share in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.55, 0.1])
    assert [linear.entropy_weight(share) for share in (0.0, 0.25, 1.0)] == pytest.approx([0.02, 0.015, 0.0])
    cosine = TrainingSettings(lr_schedule="cosine")
    assert [cosine.lr_factor(share) for share in (0.0, 1 / 3, 0.5, 1.0)] == pytest.approx([1.0, 0.75, 0.5, 0.0])
    assert {TrainingSettings().lr_factor(share) for share in (0.0, 0.3, 1.0)} == {1.0}


def test_while_weights_are_averaged_the_actors_rate_changes_linearly_and_stays():
    """InEPS: from 75 % on, over 15 %; here from the cosine's value at 75 % to a tenth, over 100 epochs."""
    made = TrainingSettings(lr_schedule="cosine", swa={"start": 0.75, "anneal": 0.15, "lr": 0.1})
    factors = [made.actor_lr_factor(epoch / 100) for epoch in range(101)]
    assert factors[:75] == [made.lr_factor(epoch / 100) for epoch in range(75)]
    first = 0.5 * (1 + math.cos(0.75 * math.pi))
    assert factors[75:91] == pytest.approx([first + (0.1 - first) * epoch / 15 for epoch in range(16)], abs=1e-12)
    assert factors[90:] == pytest.approx([0.1] * 11, abs=1e-12)
    rising = TrainingSettings(lr_schedule="linear", swa={"start": 0.5, "anneal": 0.5, "lr": 2.0})
    assert [rising.actor_lr_factor(share) for share in (0.5, 0.75, 1.0)] == pytest.approx([0.5, 1.25, 2.0])


def test_averaging_alone_leaves_the_rate_alone():
    for schedule in ("constant", "linear", "cosine"):
        made = TrainingSettings(lr_schedule=schedule, swa={"start": 0.5})
        shares = [epoch / 30 for epoch in range(31)]
        assert [made.actor_lr_factor(share) for share in shares] == [made.lr_factor(share) for share in shares]


def test_curriculum_stages_take_over_at_their_share():
    made = read_training(
        {
            "jobs": 256,
            "curriculum": [
                {"start": 0.0, "jobs": 64, "weights": {"avg_bounded_slowdown": -0.01}},
                {"start": 0.5, "weights": {"avg_bounded_slowdown": -0.002, "makespan_area_ratio": -1.0}},
                {"start": 0.8, "jobs": 512},
            ],
        }
    )
    assert made.stage(0.0) == (64, {"avg_bounded_slowdown": -0.01})
    assert made.stage(0.49) == (64, {"avg_bounded_slowdown": -0.01})
    assert made.stage(0.5) == (64, {"avg_bounded_slowdown": -0.002, "makespan_area_ratio": -1.0})
    assert made.stage(1.0) == (512, {"avg_bounded_slowdown": -0.002, "makespan_area_ratio": -1.0})
    assert TrainingSettings().stage(0.7) == (256, {})


def test_an_actor_that_waits_for_its_critics_is_untrained_until_it_learns() -> None:
    own = OffPolicy(critic_steps=200, steps=100)
    assert [own.leaves_untrained(epochs) for epochs in (1, 2, 3)] == [True, True, False]
    assert not OffPolicy(critic_steps=200, steps=100, warm_up_steps=1).leaves_untrained(1)  # it has cloned
    assert not OffPolicy(critic_steps=200, steps=100, loss="clone").leaves_untrained(1)
