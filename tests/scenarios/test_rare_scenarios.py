"""The shipped scenarios of jobs with value, and machines whose capacity follows the power."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greenbatch.cluster import Cluster
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import choose_windows, compare
from greenbatch.experiments.running.model_warnings import seen_shares
from greenbatch.metrics import evaluate
from greenbatch.models.find import shipped_models
from greenbatch.models.model import load_model
from greenbatch.scenarios import Scenario, load_scenario, shipped_names
from greenbatch.scenarios.regenerate import drawn as drawn_of
from greenbatch.schedulers import scheduler

RARE = [name for name in shipped_names() if name.startswith("rare/")]
SHORT = {"workload.generator.ticks": 200, "rules.pools.end_s": 200.0}


def _cluster(scenario: Scenario) -> Cluster:
    assert scenario.cluster.powered is not None
    return scenario.cluster


@pytest.mark.parametrize("name", [name for name in RARE if name != "rare/anl-like"])
def test_machine_jobs_and_pools_fit_together(name: str) -> None:
    scenario = load_scenario(name)
    cluster, pools, jobs = _cluster(scenario), scenario.rules.pools, scenario.workload
    assert pools is not None
    assert cluster.gpus == cluster.processors
    assert str(cluster.processors) == name.removeprefix("rare/").partition("-")[0]
    largest = 5 if name.endswith("fixed5") else cluster.processors // 2
    assert pools.largest_request == largest == jobs.processors.max() == jobs.gpus.max()
    end_s = pools.end_s or 100_000.0  # only episodes of a training end
    assert (pools.end_s == 0.0) == name.endswith("training")
    assert jobs.submit_s.max() < end_s
    assert 0.85 < jobs.processors @ jobs.run_time_s / (cluster.processors * end_s) < 1.15


def test_draws_differ_in_jobs_and_in_capacity() -> None:
    scenario = load_scenario("rare/10-intermittent80")
    drawn, again = drawn_of(scenario, 1), drawn_of(scenario, 1)
    assert len(drawn.workload) != len(scenario.workload)
    levels = [_cluster(each).capacity_levels for each in (scenario, drawn, again)]
    assert not np.array_equal(levels[0].time_s, levels[1].time_s)
    assert np.array_equal(levels[1].time_s, levels[2].time_s)
    for level in levels:
        assert sum(level.available_s(0.0, 2000.0)) / 2000 == pytest.approx(20 * (0.8 * 0.8 + 0.2), abs=0.5)


def test_comparison_over_draws() -> None:
    scenario = load_scenario("rare/10-intermittent80", overrides={**SHORT, "evaluation.draws": 3})
    starts, jobs = choose_windows(scenario)
    assert (starts, jobs) == ((0, 1, 2), 0)
    assert choose_windows(scenario, windows=2, seed=5) == ((5, 6), 0)
    names = ("qos+none", "fcfs+first-fit")
    made = compare(scenario, names, starts, jobs, names[0], workers=1)
    drawn = drawn_of(scenario, 2)
    alone = evaluate(simulate(drawn.workload, drawn.cluster, None, drawn.rules, scheduler(names[1])))
    row = made.frame.filter(window="2", scheduler=names[1], metric="total_job_value")
    assert row["value"].to_list() == [alone["total_job_value"]]
    assert made.title.startswith("rare/10-intermittent80: 3 draws")


def test_constant_and_listed_capacity() -> None:
    capacity = {"kind": "constant", "fraction": 0.9}
    half = load_scenario("rare/10", overrides={"cluster.capacity": capacity})
    assert _cluster(half).capacity_levels.processors.tolist() == [9]
    listed = {"kind": "series", "fractions": [1.0, 0.5, 0.5, 0.0]}
    levels = _cluster(load_scenario("rare/10", overrides={"cluster.capacity": listed})).capacity_levels
    assert levels.time_s.tolist() == [0.0, 1.0, 3.0]
    assert levels.gpus.tolist() == [10, 5, 0]


@pytest.mark.plain
def test_capacity_that_follows_the_power_needs_no_grid() -> None:
    scenario = load_scenario("rare/anl-like", overrides={"workload.to_pool.jobs": 100})
    outcome = simulate(scenario.workload, scenario.cluster, scenario.site, scenario.rules, scheduler("fcfs+first-fit"))
    metrics = evaluate(outcome)
    assert metrics["brown_kwh"] == pytest.approx(0.0, abs=1e-6)
    assert metrics["it_energy_kwh"] == pytest.approx(metrics["jobs_energy_kwh"] + metrics["idle_energy_kwh"])
    assert metrics["peak_power_w"] <= 400_000.0


def test_draws_of_the_scenario_that_a_model_was_trained_on_are_no_windows_of_it() -> None:
    """Only the first draw has the jobs that training windows are taken from."""
    scenario = load_scenario("rare/10", overrides=SHORT)
    made = compare(scenario, ("qos+none", "rare-plus@10"), (0, 7), 0, "qos+none", workers=1)
    assert not any("in-sample" in str(note) for note in made.warnings)
    record = load_model(shipped_models()["rare-plus/10"]).record
    assert record.profile is not None
    seen = {"seen_jobs": [[0, record.profile.jobs // 2 - 1]]}
    half = record.model_copy(update={"training": record.training.model_copy(update=seen)})
    assert seen_shares(half, (0, 7), 0).tolist() == [0.5, 0.0]


def test_a_trace_instead_of_drawn_jobs_has_windows(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submit_s,run_time_s,processors,gpus\n0,5,2,1\n1,5,2,1\n")
    evaluation = load_scenario("rare/10", trace=tmp_path / "jobs.csv").evaluation
    assert (evaluation.starts, evaluation.jobs) == (None, 1024)
    with pytest.raises(InputError, match=r"evaluation\.draws: requires a generator"):
        load_scenario("rare/10", trace=tmp_path / "jobs.csv", overrides={"evaluation.draws": 3})


@pytest.mark.parametrize(
    ("name", "flags", "said"),
    [
        ("rare/10", ["cluster"], "--cluster: describes nodes, and the pools of rare/10 are for processors and GPUs"),
        (
            "rare/10",
            ["cluster", "capacity"],
            "rare-10: processors: job 1 needs 4 processors on 1 node, 1 GPUs per node, and",
        ),
        ("ineps/green", ["capacity"], "capacity.csv, line 2: gpus: is 4, the machine has 0 (give at most what the"),
        ("ineps/green", ["processors"], "--processors: is for a pool (leave it out: nodes state theirs)"),
    ],
)
def test_flags_that_do_not_suit_the_scenario_are_named(
    tmp_path: Path, name: str, flags: list[str], said: str
) -> None:  # fmt: skip
    nodes, capacity = tmp_path / "nodes.toml", tmp_path / "capacity.csv"
    nodes.write_text('[[groups]]\nname = "a"\ncount = 2\nprocessors = 8\nstatic_power_w = 10\n')
    capacity.write_text("time_s,capacity\n0,4\n")
    given = {"cluster": nodes, "capacity": capacity, "processors": 4}
    with pytest.raises(InputError) as refused:
        load_scenario(name, **{flag: given[flag] for flag in flags})  # type: ignore[arg-type]
    assert str(refused.value).startswith(said)
