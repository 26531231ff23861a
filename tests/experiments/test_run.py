"""`compare` and `simulate` in Python: what their arguments may be, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.errors import InputError
from pages import ROOT

SITE = ROOT / "examples" / "site.toml"


@pytest.fixture(scope="module")
def scenario() -> gb.Scenario:
    return gb.load_scenario("default")


def test_a_scenario_may_be_a_path() -> None:
    whole = gb.simulate(SITE, "fcfs+easy", jobs=16)
    assert whole.start_s.tolist() == gb.simulate(str(SITE), "fcfs+easy", jobs=16).start_s.tolist()
    assert gb.compare(SITE, ["fcfs+easy"], starts=[0], jobs=16).scenario.name == gb.load_scenario(SITE).name
    assert gb.simulate(Path("default"), "fcfs+easy", jobs=16).workload.name == "lublin-256"


@pytest.mark.parametrize("given", [None, 3, b"default", ["default"]])
def test_other_objects_are_refused_as_scenarios(given: Any) -> None:
    for run in (
        lambda: gb.compare(given, ["fcfs"]), lambda: gb.simulate(given, "fcfs"), lambda: gb.load_scenario(given),
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"^scenario: is .* \(give the name of a scenario, or its file\)$"):
            run()


@pytest.mark.parametrize(
    "wrong",
    [
        {"windows": "2"}, {"windows": 2.0}, {"windows": True}, {"windows": np.float64(2)}, {"windows": np.True_},
        {"seed": -1}, {"seed": 1.5}, {"starts": 3}, {"starts": [1.5]}, {"starts": "0,5"}, {"starts": [-1]},
        {"starts": []}, {"jobs": 5.5}, {"jobs": "5"}, {"jobs": 0}, {"jobs": -3},
        {"workers": "2"}, {"workers": 0}, {"workers": -1}, {"workers": True}, {"workers": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_of_compare_are_named(scenario: gb.Scenario, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=rf"^{name}: ") as caught:
        gb.compare(scenario, ["fcfs"], **{"jobs": 16, **wrong})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"start": "3"}, {"start": 0.0}, {"start": None}, {"jobs": 5.5}, {"jobs": True}])
def test_wrong_arguments_of_simulate_are_named(scenario: gb.Scenario, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=rf"^{name}: is .* \(give a whole number\)$"):
        gb.simulate(scenario, "fcfs", **{"jobs": 16, **wrong})


def test_numpy_integers_are_whole_numbers(scenario: gb.Scenario) -> None:
    two, jobs = np.int64(2), np.int32(16)
    got = gb.compare(scenario, ["fcfs"], windows=two, jobs=jobs, seed=np.uint8(3), workers=np.int64(1))
    assert got.starts == scenario.random_starts(2, 16, 3)
    given = gb.compare(scenario, ["fcfs"], starts=np.array([5, 0]), jobs=16)
    assert given.starts == (5, 0)
    assert {type(start) for start in (*got.starts, *given.starts, got.jobs, given.jobs)} == {int}
    assert gb.simulate(scenario, "fcfs", start=two, jobs=jobs).workload.job_id[0] == scenario.window(2).job_id[0]


def test_starts_may_be_a_generator(scenario: gb.Scenario) -> None:
    assert gb.compare(scenario, ["fcfs"], starts=(start for start in (3, 0)), jobs=16).starts == (3, 0)
