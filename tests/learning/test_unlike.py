"""Thresholds beyond which a scenario is unlike the one that a model was trained on."""

from __future__ import annotations

from typing import Any

import pytest

from greenbatch.learning.unlike import TRAITS, Question, differences
from greenbatch.scenarios.profile import Profile

HOME: dict[str, Any] = {
    "processors": 256, "jobs": 10_000, "load": 0.71, "median_run_time_s": 140.0, "short_jobs": 0.5, "supply": True,
    "median_request": 1.0, "mean_supply": 1.0, "peak_supply": 5.0,
}  # fmt: skip
TRAINED = Question(Profile(**HOME), 1024)
NO_SUPPLY = {"supply": False, "mean_supply": None, "peak_supply": None}
CASES = [
    ({}, 1024, []),
    ({"jobs": 5, "median_run_time_s": 9000.0}, 4096, []),
    ({"processors": 511, "load": 0.855, "short_jobs": 0.74, "median_request": 1.24, "mean_supply": 1.29}, 1, []),
    ({"processors": 129, "load": 0.57, "short_jobs": 0.26, "mean_supply": 0.71, "peak_supply": 3.6}, 1, []),
    ({"load": None, "mean_supply": None, "peak_supply": None}, 1024, []),
    ({"processors": 2048}, 1024, ["machine 8 times as large"]),
    ({"processors": 512}, 1024, ["machine 2 times as large"]),
    ({"processors": 64}, 1024, ["machine 1/4 as large"]),
    ({"load": 0.35}, 1024, ["load 0.35 against 0.71"]),
    ({"short_jobs": 0.2}, 1024, ["20% of jobs under 5 minutes against 50%"]),
    ({"median_request": 4.1}, 1024, ["users request 4.1 times the run time against exact requests"]),
    ({"mean_supply": 0.6}, 1024, ["mean supply 0.60 of the machine's peak power against 1.00"]),
    ({"peak_supply": 9.0}, 1024, ["peak supply 9.00 of the machine's peak power against 5.00"]),
    (NO_SUPPLY, 1024, ["no renewable supply against one"]),
    ({}, 4097, ["4,097 jobs in a row against 1,024"]),
]


@pytest.mark.parametrize(("changes", "window_jobs", "told"), CASES)
def test_each_threshold(changes: dict[str, Any], window_jobs: int, told: list[str]) -> None:
    assert differences(TRAINED, Question(Profile(**{**HOME, **changes}), window_jobs)) == told


def test_several_are_told_in_the_order_of_the_table() -> None:
    here = Question(Profile(**{**HOME, "processors": 2048, "load": 0.35, "median_request": 4.1}), 1024)
    assert ", ".join(differences(TRAINED, here)) == (
        "machine 8 times as large, load 0.35 against 0.71, users request 4.1 times the run time against exact requests"
    )
    assert all(trait.reason for trait in TRAITS.values())


def test_a_model_of_users_estimates_is_warned_about_exact_ones() -> None:
    users = Question(Profile(**{**HOME, "median_request": 2.5}), 1024)
    assert differences(users, TRAINED) == ["exact requests against users who request 2.5 times the run time"]
    assert differences(users, users) == []
    none = Question(Profile(**{**HOME, **NO_SUPPLY}), 1024)
    assert differences(none, TRAINED) == ["a renewable supply against none"]
