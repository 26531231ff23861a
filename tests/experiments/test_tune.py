"""A search of parameters: it finds what is better on its windows, and says on what it was tuned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.cli import main
from greenbatch.errors import InputError
from greenbatch.experiments.running.tune import Range, tune
from greenbatch.learning.runs.windows import evaluation_jobs
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler

HOLD = Range(name="psi", low=0.1, high=100.0)
SMALL = {"windows": 2, "jobs": 60, "generations": 2, "population": 4}
WAIT = {"avg_wait_s": 1.0}


@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e6), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_numbers_lie_in_the_range_and_in_order(low: float, factor: float, one: float, other: float) -> None:
    searched = Range(name="x", low=low, high=low * factor)
    first, second = (searched.value(place) for place in sorted((one, other)))
    assert low * 0.999 <= first <= second <= low * factor * 1.001


def test_less_waiting_is_found_and_the_same_again() -> None:
    scenario = load_scenario("default")
    found = tune(scenario, "cheapest-start", (HOLD,), WAIT, baseline="fcfs+easy", **SMALL)
    assert found.objective < found.untuned
    other = Range(name="tick", low=600.0, high=3600.0)
    again = tune(scenario, found.scheduler, (other,), WAIT, baseline="fcfs+easy", windows=2, jobs=60, generations=0)
    assert found.objective == again.untuned
    assert found == tune(scenario, "cheapest-start", (HOLD,), WAIT, baseline="fcfs+easy", **SMALL)
    scheduler(found.scheduler)
    seen = np.concatenate([np.arange(start, start + found.jobs) for start in found.starts])
    assert not np.intersect1d(seen, evaluation_jobs(scenario)).size


def test_a_parameter_of_a_backfilling() -> None:
    sigma = Range(name="sigma", low=1.0, high=1e6, part=1)
    found = tune(load_scenario("default"), "f2+green", (sigma,), WAIT, baseline="f2+green", **SMALL)
    assert found.scheduler.startswith("f2+green")
    assert found.objective <= found.untuned == 1.0


def test_draws_of_the_generator_are_searched_on_others_than_those_of_comparisons() -> None:
    scenario = load_scenario("rare/10", overrides={"workload.generator.ticks": 200, "rules.pools.end_s": 200.0})
    size, value = Range(name="size", low=0.5, high=4.0), {"total_job_value": -1.0}
    small = {"windows": 2, "generations": 1, "population": 4}
    found = tune(scenario, "packer", (size,), value, baseline="fcfs+none", **small)
    assert found.objective <= found.untuned < -1.0
    assert found.jobs == 0
    assert not set(found.starts) & set(range(1_000))


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"no metric is called 'avg_wait'.*avg_wait_s"):
        tune(load_scenario("default"), "cheapest-start", (HOLD,), {"avg_wait": 1.0}, baseline="fcfs+easy", **SMALL)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--search", "psi"], "--search: 'psi' is not understood (write share=0:1"),
        (["--search", "psi=3:1"], "--search: psi=3:1 is no range (write NAME=LOWEST:HIGHEST)"),
        (["--search", "psi=0:1", "--objective", "avg_wait_s=x"], "--objective: 'x' is not a number"),
        (["--search", "psi=0:1", "--objective", "avg_wait_s=0"], "--objective: the weight of avg_wait_s is 0 (give"),
        (["--search", "psi=0:1", "--objective", "avg_wait_s=nan"], "--objective: the weight of avg_wait_s is nan ("),
        (["--search", "psi=0:1", "--objective", "avg_wait_s=inf"], "--objective: the weight of avg_wait_s is inf ("),
        (["--search", "psi=0:1", "--objective", "avg_wait_s=1,avg_wait_s=2"], "--objective: names avg_wait_s twice"),
        (
            ["--search", "psi=0:1", "--objective", "utilization=1"],
            "--objective: utilization is better if higher, and objectives are made low (give utilization=-1)",
        ),
        (["--search", "psi=0:1", "--count", "99999999"], "--count: is 99,999,999, but there are"),
        (
            ["--search", "psi=0:1", "--objective", "horizon_cost=1"],
            "--objective: horizon_cost is not known for fcfs+easy in this scenario (give the site prices ([site.gr",
        ),
        (["--search", "psi=0:1", "--population", "3"], "--population: is 3 (give 4 or more)"),
        (["--search", "psi=0:1", "--windows", "4"], "--windows: is '4' (give held-out or published)"),
        (["--search", "+psi=0:1"], "has no backfilling"),
        (["--search", "psy=0:1"], "--search: psy=0:1: cheapest-start has no parameter 'psy' (it takes hold, psi"),
        (["--search", "psi=-1:1"], "--search: psi=-1:1: psi is -1 (give 0"),
        (
            ["--search", "psi=0:1", "--objective", "money=1"],
            "--objective: no metric is called 'money' (often used: horizon_cost, horizon_carbon_kg",
        ),
    ],
)  # fmt: skip
def test_the_command_refuses(flags: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["tune", "--scheduler", "cheapest-start", "--jobs", "30", *(() if "--count" in flags else ("--count", "1"))]
    assert main([*given, *(() if "--objective" in flags else ("--objective", "avg_wait_s=1")), *flags]) == 2
    assert line in capsys.readouterr().err


def test_the_command_says_on_what_it_was_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--search", "psi=0.1:100", "--objective", "avg_wait_s=1", "--count", "2", "--jobs", "60",
             "--generations", "1", "--population", "4", "--out", str(tmp_path / "t")]  # fmt: skip
    assert main(["tune", "--scheduler", "cheapest-start", *given]) == 0
    record = json.loads((tmp_path / "t" / "tuned.json").read_text())
    printed = capsys.readouterr()
    first, *told = printed.out.splitlines()
    assert record["scheduler"] == first
    said = " ".join(" ".join(told).split())
    assert "objective, to be low: 1 * wait (mean), each relative to fcfs+easy" in said
    assert f"{record['untuned']:.4f} with cheapest-start" in said
    assert "2 windows of 60 jobs, so in-sample" in said
    assert ("fcfs+easy is better than all candidates" in printed.err) is (record["objective"] >= 1.0)
    assert len(record["starts"]) == 2
    assert record["jobs"] == 60
    assert record["scenario"] == "default"
    assert json.loads((tmp_path / "t" / "provenance.json").read_text())["settings"]["objective"] == {"avg_wait_s": 1.0}
