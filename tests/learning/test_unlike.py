"""Thresholds beyond which a scenario is unlike the one that a model was trained on."""

from __future__ import annotations

from typing import Any

import pytest

from greenbatch.models.differences import TRAITS, Question, differences
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
    ({"processors": 2048}, 1024, ["2,048 processors here, 256 there"]),
    ({"processors": 512}, 1024, ["512 processors here, 256 there"]),
    ({"processors": 64}, 1024, ["64 processors here, 256 there"]),
    ({"load": 0.35}, 1024, ["load 0.35 here, 0.71 there"]),
    ({"short_jobs": 0.2}, 1024, ["20% of jobs under 5 minutes here, 50% there"]),
    ({"median_request": 4.1}, 1024, ["users request 4.1 times the run time here, exactly the run time there"]),
    ({"mean_supply": 0.6}, 1024, ["mean renewable power 0.60 times the machine's peak here, 1.00 there"]),
    ({"peak_supply": 9.0}, 1024, ["peak renewable power 9.00 times the machine's peak here, 5.00 there"]),
    (NO_SUPPLY, 1024, ["no renewable power here, some there"]),
    ({}, 4097, ["windows of 4,097 jobs here, 1,024 there"]),
]


@pytest.mark.parametrize(("changes", "window_jobs", "told"), CASES)
def test_each_threshold(changes: dict[str, Any], window_jobs: int, told: list[str]) -> None:
    assert differences(TRAINED, Question(Profile(**{**HOME, **changes}), window_jobs)) == told


def test_differences_follow_the_order_of_the_table() -> None:
    here = Question(Profile(**{**HOME, "processors": 2048, "load": 0.35, "median_request": 4.1}), 1024)
    assert "; ".join(differences(TRAINED, here)) == (
        "2,048 processors here, 256 there; load 0.35 here, 0.71 there; "
        "users request 4.1 times the run time here, exactly the run time there"
    )
    assert all(trait.reason for trait in TRAITS.values())


def test_a_model_of_users_estimates_is_warned_about_exact_ones() -> None:
    users = Question(Profile(**{**HOME, "median_request": 2.5}), 1024)
    assert differences(users, TRAINED) == ["users request exactly the run time here, 2.5 times the run time there"]
    assert differences(users, users) == []
    none = Question(Profile(**{**HOME, **NO_SUPPLY}), 1024)
    assert differences(none, TRAINED) == ["renewable power here, none there"]
