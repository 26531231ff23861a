"""Warnings about trained models: unlike sites, in-sample windows, limits, untrained weights."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import greenbatch as gb
from greenbatch.cli import main
from greenbatch.experiments.reports.summary import summary
from greenbatch.experiments.running.compare import choose_windows
from greenbatch.experiments.running.frames import tidy
from greenbatch.experiments.running.model_warnings import (
    ELSEWHERE,
    NOT_CAUSAL,
    ModelWarning,
    marked,
    model_warnings,
    seen_shares,
)
from greenbatch.learning.runs.windows import HELD_OUT_JOBS, HELD_OUT_STARTS
from greenbatch.models.find import shipped_models
from greenbatch.models.model import RECORD, load_model
from greenbatch.models.records import planner_limits
from greenbatch.models.searched import searched_on
from greenbatch.scenarios import Scenario, load_scenario
from greenbatch.scenarios.profile import profile
from greenbatch.schedulers import scheduler_table

Find = Callable[[str], Path]
NAME = "gas-marl-plus@default+none"
DATA = {"lublin-256": "swf/lublin_256.swf.gz", "cirne": "swf/Cirne.swf.gz", "jann": "swf/Jann.swf.gz"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of a shipped model, to be edited."""
    return shutil.copytree(shipped_models()["gas-marl-plus/default"], tmp_path / "model")


def edit(folder: Path, table: str | None, **changes: object) -> str:
    """Change a model's record; the scheduler that it is now."""
    record = json.loads((folder / RECORD).read_text())
    (record if table is None else record[table]).update(changes)
    (folder / RECORD).write_text(json.dumps(record))
    return f"gas-marl-plus@{folder}+none"


def warned(names: list[str], scenario: Scenario, starts: Sequence[int], jobs: int) -> list[str]:
    """Warnings about schedulers by name."""
    notes = model_warnings(scheduler_table(names), scenario, starts, jobs)
    assert all(note.level == "warning" for note in notes)
    return [str(note) for note in notes if note.what not in ELSEWHERE.values()]


def familiar(names: list[str], scenario: Scenario, starts: Sequence[int], jobs: int) -> list[str]:
    """Those of them that say that windows are in-sample."""
    return [line for line in warned(names, scenario, starts, jobs) if "in-sample" in line]


def test_on_its_own_scenario_nothing_is_unlike() -> None:
    lines = warned([NAME, "f2+easy"], load_scenario("default"), HELD_OUT_STARTS, HELD_OUT_JOBS)
    assert [line.partition(": ")[0] for line in lines] == [NAME]
    assert lines[0].partition(": ")[2] == "; ".join(planner_limits())
    assert "%" not in lines[0]  # never measured for this model
    assert warned(["f2+easy"], load_scenario("default"), [0], 100) == []


def test_a_model_on_an_unlike_site_is_named_in_a_warning() -> None:
    larger = load_scenario("default", processors=2048)
    first, *_ = warned([NAME], larger, [2000], 1024)
    assert first == (
        f"{NAME}: this scenario is unlike the one it was trained on: 2,048 processors here, 256 there; load 0.10 here, "
        "0.80 there; possibly worse than plain rules"
    )


def test_searched_parameters_on_an_unlike_site_are_warned_about() -> None:
    """The embedded jobs request exactly what they run; users of the logs that `foresee` was searched on do not."""
    lines = warned(["foresee:price=0.5", "f2+easy"], load_scenario("default"), [2000], 1024)
    assert lines == [
        "foresee:price=0.5: this scenario is unlike those its parameters were searched on: load 0.80 here, 0.60 "
        "there; users request exactly the run time here, 2.1 times the run time there (logs/hpc2n); possibly worse "
        "than plain rules"
    ]


def test_parameters_of_one_policy_share_a_warning() -> None:
    names = ["foresee", "foresee:price=0.5", "f2+easy"]
    (line,) = warned(names, load_scenario("default"), [2000], 1024)
    assert line.startswith("foresee, foresee:price=0.5: this scenario is unlike those its parameters were searched on")
    assert line.endswith("; possibly worse than plain rules")


def test_the_logs_of_a_search_are_familiar_and_their_profiles_current(greenbatch_data: Find) -> None:
    greenbatch_data("swf/HPC2N-2002-2.2-cln.swf.gz")
    scenario = load_scenario("logs/hpc2n")
    assert profile(scenario) == searched_on("foresee")["logs/hpc2n"].profile
    assert warned(["foresee"], scenario, [0], 1024) == []


def test_models_with_the_same_limits_share_a_line() -> None:
    names = [NAME, "gas-marl-plus@default:makespan_bound=1.25+none"]
    limits = [line for line in warned(names, load_scenario("default"), [2000], 1024) if "target" in line]
    assert [line.partition(": makespan_bound (")[0] for line in limits] == [", ".join(names)]


def test_a_record_without_profile_is_compared_with_nothing(model: Path) -> None:
    name = edit(model, None, profile=None, limits=[])
    assert warned([name], load_scenario("default", processors=2048), [2000], 1024) == []


def test_an_untrained_model_is_warned_about(model: Path) -> None:
    name = edit(model, "training", untrained=True, kept_epoch=0)
    lines = warned([name], load_scenario("default"), [2000], 1024)
    assert lines[0] == f"{name}: untrained, its weights are those that training began with"


def test_windows_are_in_sample_by_the_share_of_their_jobs(model: Path) -> None:
    question = load_scenario("default")
    name = edit(model, "training", seen_jobs=[[0, 1999], [4401, 9999]])
    assert familiar([name, "f2+easy"], question, [2000, 3377], 1024) == []
    (line,) = familiar([name], question, [1999, 2000, 3889], 1024)
    assert line == (
        f"{name}: in-sample, 1 to 50% of the jobs in 2 of 3 windows could have been drawn in training; it may be worse "
        "on other jobs (jobs 2000 to 4400 were held out)"
    )
    (line,) = familiar([name], question, [1999, 2000, 2100], 1024)
    assert "in-sample, 1% of the jobs in 1 of 3 windows" in line
    (line,) = familiar([name], question, [0, 8000], 1024)
    assert "in-sample, 100% of the jobs in 2 of 2 windows could have been drawn" in line
    record = load_model(model).record
    np.testing.assert_allclose(seen_shares(record, [1999, 2000, 3889, 0], 1024), [1 / 1024, 0, 512 / 1024, 1])


def test_other_jobs_are_not_in_sample(model: Path) -> None:
    question = load_scenario("default")
    name = edit(model, "training", seen_jobs=[[0, 9999]])
    assert familiar([name], question, [0], 100)
    assert familiar([name], load_scenario("default", overrides={"workload.generator.seed": 7}), [0], 100) == []
    powered = {**question.resolved["workload"], "power": {"kind": "none"}}  # the same jobs with another power
    assert familiar([name], replace(question, resolved={**question.resolved, "workload": powered}), [0], 100)


def test_the_same_jobs_are_in_sample_however_they_are_read(tmp_path: Path, greenbatch_data: Find) -> None:
    name, stored = "gas-marl-plus@lublin-256+none", greenbatch_data("swf/lublin_256.swf.gz")
    (tmp_path / "jobs.txt").write_bytes(gzip.decompress(stored.read_bytes()))
    for scenario, trace in (("default", stored), ("plain", stored), ("gas-marl/lublin-256", tmp_path / "jobs.txt")):
        question = load_scenario(scenario, trace=trace, processors=256)
        (line,) = familiar([name], question, [5000], 64)
        assert "in-sample, 100% of the jobs in the window" in line, scenario
    assert familiar([name], load_scenario("gas-marl/cirne"), [5000], 64) == []


def test_an_in_sample_baseline_is_marked_too() -> None:
    frame = tidy([("0", {"a": {"avg_wait_s": 1.0}, "b": {"avg_wait_s": 2.0}})])
    shown, baseline = marked(frame, "a", {"a": "in-sample"})
    assert baseline == "a (in-sample)"
    assert shown["scheduler"].to_list() == ["a (in-sample)", "b"]
    assert marked(frame, "b", {"a": "in-sample"})[1] == "b"


def test_a_scheduler_that_knows_the_future_is_marked_and_wins_nothing() -> None:
    lines = warned(["rolling:knowledge=perfect", "f2+easy"], load_scenario("default"), [2000], 100)
    assert lines[0].startswith("rolling:knowledge=perfect: not causal, it knows the future")
    assert not any(NOT_CAUSAL in line for line in warned(["rolling"], load_scenario("default"), [2000], 100))
    frame = tidy([("0", {"a": {"wait": 1.0}, "b": {"wait": 2.0}})])
    assert marked(frame, "b", {"a": NOT_CAUSAL})[0]["scheduler"].to_list() == ["b"]
    assert marked(frame, "a", {"a": NOT_CAUSAL})[0]["scheduler"].to_list() == ["a (not causal)", "b"]
    made = gb.compare("default", ["f2+easy", "rolling:knowledge=perfect"], starts=[2000], jobs=8)
    assert made.marks == {"rolling:knowledge=perfect": NOT_CAUSAL}
    assert made.deciders["f2+easy"].is_causal


def test_a_policy_has_the_warnings_of_the_model_inside() -> None:
    """The planner that `rolling` tries is a trained model, in-sample on the windows of its training."""
    inside = "gas-marl-plus@lublin-256"
    for scenario, starts in ((load_scenario("default", processors=2048), [2000]), (load_scenario("default"), [0])):
        told = warned([inside], scenario, starts, 64)
        assert told
        assert warned(["rolling"], scenario, starts, 64) == [line.replace(inside, "rolling", 1) for line in told]


@pytest.mark.parametrize("trace", sorted(DATA))
def test_the_published_windows_are_in_sample_for_the_shipped_models(trace: str, greenbatch_data: Find) -> None:
    greenbatch_data(DATA[trace])
    question = load_scenario(f"gas-marl/{trace}")
    starts, jobs = choose_windows(question)
    record = load_model(shipped_models()[f"gas-marl-plus/{trace}"]).record
    shares = seen_shares(record, starts, jobs)
    assert shares.min() >= 0.9
    assert round(float(shares.min()), 2) == 0.91
    assert not seen_shares(record, HELD_OUT_STARTS, HELD_OUT_JOBS).any()
    (line,) = familiar([f"gas-marl-plus@{trace}+none"], question, starts, jobs)
    assert "in-sample, 91 to 100% of the jobs in 10 of 10 windows could have been drawn" in line


@pytest.mark.usefixtures("undrawn")
def test_warnings_precede_the_table_and_are_at_the_top_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "--schedulers", f"fcfs+easy,{NAME}", "--starts", "0", "--jobs", "60", "--processors", "512"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    warning, table = told.index(f"warning: {NAME}: this scenario is unlike"), told.index("Scheduler")
    assert f"{NAME} (in-sample) draws the least brown energy" in told[table:]
    assert warning < told.index("in-sample, 100% of the jobs in the window") < table
    report = (tmp_path / "out" / "report.html").read_text()
    assert report.index("512 processors here, 256 there") < report.index("<table")


@pytest.mark.usefixtures("undrawn")
def test_simulate_prints_warnings_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--scheduler", NAME, "--jobs", "30", "--processors", "512", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(
        f"warning: {NAME}: this scenario is unlike the one it was trained on: 512 processors here"
    )


@pytest.fixture(scope="module")
def comparison() -> gb.Comparison:
    """A shipped model under a name of the user's own, on a larger machine and on a window of its training."""
    larger = load_scenario("default", processors=512)
    return gb.compare(larger, {"fcfs": "fcfs+easy", "mine": NAME}, starts=[0, 2000], jobs=60)


def test_a_comparison_in_python_shows_them_above_its_table(comparison: gb.Comparison) -> None:
    limits, seen = "; ".join(planner_limits()), "could have been drawn in training"
    assert [note.of for note in comparison.warnings] == [("mine",)] * 3
    table = comparison.table()
    text, page = " ".join(repr(table).split()), unescape(table._repr_html_())
    for told in ("mine: this scenario is unlike", f"mine: {limits}", seen):
        assert 0 <= text.index(told) < text.index("Scheduler")
        assert 0 <= page.index(told) < page.index("<table")
    assert comparison._repr_html_() == table._repr_html_()
    assert repr(comparison).startswith("<Comparison default | warnings 3, see notes | ")
    assert set(map(str, comparison.warnings)) <= set(summary(comparison)["warnings"])
    assert [each["text"] for each in summary(comparison)["notes"]] == list(map(str, comparison.notes))


def test_rules_have_none() -> None:
    rules = gb.compare("default", ["fcfs+easy"], starts=[0], jobs=20)
    assert rules.warnings == ()
    assert "warning" not in repr(rules) + repr(rules.table()) + rules._repr_html_()


def test_the_summary_and_the_key_figures_mark_models_that_are_in_sample(
    comparison: gb.Comparison, tmp_path: Path
) -> None:
    assert comparison.marks == {"mine": "in-sample"}
    page = comparison.report(tmp_path / "report.html").read_text()
    first = page.partition('class="first"')[2].partition("</section>")[0]
    sentence, tiles = first.partition("</p>")[0], first.partition("<figure>")[0].partition('class="tiles"')[2]
    lead, _, table = page.partition('id="results"')[2].partition("<table>")
    assert "mine (in-sample) uses the largest renewable share" in lead
    for told in (sentence, tiles, lead.partition("</p>")[0]):
        assert "mine (in-sample)" in told
        assert told.count("mine") == told.count("mine (in-sample)")
    assert "(in-sample)" in first.partition("<figure>")[2], "at its point"
    assert "mine (in-sample)" not in table


def test_simulate_in_python_warns_where_it_is_called() -> None:
    with pytest.warns(ModelWarning) as found:
        gb.simulate("default", NAME, start=2000, jobs=30)
    assert [(str(each.message), each.filename) for each in found] == [
        (f"{NAME}: {'; '.join(planner_limits())}", __file__)
    ]
    assert gb.ModelWarning is ModelWarning


@pytest.mark.parametrize("trace", sorted(DATA))
def test_figures_of_a_limit_are_those_of_the_results_page(trace: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in page.splitlines() if line.startswith("|")
    ]
    above = [row[3] for row in rows if row[0].lower() == trace and row[1] in {"1.5", "1.25"} and len(row) == 5]
    (target, _) = load_model(shipped_models()[f"gas-marl-plus/{trace}"]).record.limits
    assert len(above) == 2
    assert f"; {' to '.join(sorted(above))}% of random windows exceed it" in target


@pytest.mark.parametrize(
    ("table", "changes", "message"),
    [
        ("training", {"held_out_jobs": [5]}, "training.held_out_jobs: is [5]"),
        (None, {"provenance": None}, "provenance: is None"),
        (None, {"training": None}, "training: is None"),
        ("training", {"minutes": "9"}, "training.minutes: is '9'"),
    ],
)
def test_a_damaged_record_is_one_line_in_compare(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str | None, changes: dict, message: str
) -> None:
    name = edit(model, table, **changes)
    words = ["compare", "--schedulers", name, "--starts", "0", "--jobs", "20", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert f"model.json: {message}" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("undrawn")
def test_the_report_of_a_model_under_a_name_of_the_users_own_is_complete(tmp_path: Path) -> None:
    schedulers = {"baseline": "fcfs+easy", "mine": "gas-marl-plus@default"}
    comparison = gb.compare("default", schedulers, baseline="baseline", starts=[0], jobs=60)
    page = comparison.report(tmp_path / "report.html").read_text()
    assert "Weights of mine" in page
    assert "gas-marl-plus@default/actor.safetensors" in page, "its weights are in the provenance"
