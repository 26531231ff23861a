"""Comparing: the same windows for all, and the numbers of single runs."""

from __future__ import annotations

import polars as pl
import pytest

import greenbatch as gb
from greenbatch.errors import InputError
from greenbatch.experiments.reports.answer import key_figures
from greenbatch.experiments.reports.findings import headlines
from greenbatch.experiments.running.compare import compare

NAMES = ("fcfs+easy", "sjf+easy", "f2+green")


@pytest.fixture(scope="module")
def scenario() -> gb.Scenario:
    return gb.load_scenario("default")


def test_every_cell_is_the_metric_of_that_window_alone(scenario: gb.Scenario) -> None:
    got = compare(scenario, NAMES, (100, 2000), 128, "sjf+easy")
    assert got.frame["window"].unique().sort().to_list() == ["100", "2000"]
    for start in got.starts:
        for name in NAMES:
            alone = gb.evaluate(gb.simulate(scenario, name, start=start, jobs=128))
            rows = got.frame.filter((pl.col("window") == str(start)) & (pl.col("scheduler") == name))
            together = dict(rows.select("metric", "value").iter_rows())
            assert together["makespan_ratio"] == 1 or name != "sjf+easy"
            for metric in ("avg_bounded_slowdown", "renewable_utilization", "makespan_s", "energy_kwh"):
                assert together[metric] == alone[metric]


def test_example_is_the_first_window(scenario: gb.Scenario) -> None:
    got = compare(scenario, NAMES, (300, 0), 64, "fcfs+easy")
    assert list(got.example) == list(NAMES)
    assert all(o.workload.job_id[0] == scenario.window(300, 64).job_id[0] for o in got.example.values())


def test_progress_counts_every_simulation(scenario: gb.Scenario) -> None:
    told: list[tuple[str, int, int]] = []
    compare(scenario, NAMES[:2], (0, 5), 16, "fcfs+easy", lambda *at: told.append(at))
    assert [t[1:] for t in told] == [(0, 4), (0, 4), (2, 4), (3, 4)], "the first window, which compiles, is one step"
    assert "sjf+easy" in told[1][0]
    told.clear()
    compare(scenario, NAMES[:2], (0,), 16, "fcfs+easy", lambda *at: told.append(at))
    assert [t[1:] for t in told] == [(0, 2), (1, 2)]


def test_choices_of_a_scenario_are_defaults(scenario: gb.Scenario) -> None:
    got = gb.compare(scenario, jobs=32, windows=2)
    assert got.schedulers == scenario.evaluation.schedulers
    assert got.baseline == scenario.evaluation.baseline
    assert got.starts == scenario.random_starts(2, 32, scenario.evaluation.seed)
    assert gb.compare(scenario, ["sjf+easy"], jobs=32, windows=2).baseline == "sjf+easy"
    assert gb.compare(scenario, ["sjf+easy"], jobs=32, starts=[7]).starts == (7,)


def test_wrong_names_and_windows(scenario: gb.Scenario) -> None:
    with pytest.raises(InputError, match="not among the schedulers"):
        compare(scenario, NAMES, (0,), 16, "f1+easy")
    with pytest.raises(InputError, match="did you mean"):
        compare(scenario, ("fcsf+easy",), (0,), 16, "fcsf+easy")
    with pytest.raises(InputError, match="largest start"):
        compare(scenario, NAMES, (9_999,), 16, "fcfs+easy")
    with pytest.raises(InputError, match="at least one window"):
        compare(scenario, NAMES, (), 16, "fcfs+easy")


def test_zero_empty_and_repeated_arguments_are_refused(scenario: gb.Scenario) -> None:
    for wrong in ({"jobs": 0}, {"windows": 0}, {"starts": []}):
        with pytest.raises(InputError):
            gb.compare(scenario, ["fcfs+easy"], **{"jobs": 16, **wrong})
    with pytest.raises(InputError, match="names window 5 twice"):
        gb.compare(scenario, ["fcfs+easy"], starts=[5, 6, 5], jobs=16)


def test_an_interruption_keeps_finished_windows_if_asked_to(scenario: gb.Scenario) -> None:
    def stop(what: str, done: int, runs: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    asked = (scenario, NAMES[:2], (0, 5, 9), 16, "fcfs+easy")
    whole = compare(*asked)
    kept = compare(*asked, stop, keep_finished=True)
    assert kept.starts == (0,)
    assert kept.frame.equals(whole.frame.filter(pl.col("window") == "0"))
    with pytest.raises(KeyboardInterrupt):
        compare(*asked, stop)
    with pytest.raises(KeyboardInterrupt):
        compare(scenario, NAMES, (0, 5), 16, "fcfs+easy", lambda *at: stop("", 3, 6), keep_finished=True)


def test_neither_the_record_nor_a_run_with_outages_can_win() -> None:
    values = {"fcfs+easy": 5.0, "sjf+easy": 3.0, "as-recorded": 1.0, "sjf+easy with outages": 2.0}
    metrics = "avg_bounded_slowdown", "avg_wait_s"
    rows = [("0", name, metric, value) for name, value in values.items() for metric in metrics]
    frame = pl.DataFrame(rows, schema=["window", "scheduler", "metric", "value"], orient="row")
    assert [line.split()[0] for line in headlines(frame, "fcfs+easy")] == ["sjf+easy"]
    assert {tile.scheduler for tile in key_figures(frame, "fcfs+easy")} == {"sjf+easy"}
    assert headlines(frame, "as-recorded")[0].startswith(
        "No scheduler has a lower mean bounded slowdown than as-recorded"
    )
