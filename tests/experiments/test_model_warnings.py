"""What is told of trained models before their figures: unlike sites, in-sample windows, limits, untrained weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greenbatch.cli import main
from greenbatch.experiments.compare import choose_windows
from greenbatch.experiments.model_warnings import familiar_windows, model_warnings, seen_shares
from greenbatch.learning.learned import shipped_models
from greenbatch.learning.model import RECORD, load_model
from greenbatch.learning.windows import HELD_OUT_JOBS, HELD_OUT_STARTS
from greenbatch.scenarios import load_scenario

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


def test_on_its_own_scenario_nothing_is_unlike() -> None:
    lines = model_warnings([NAME, "f2+easy"], load_scenario("default"), HELD_OUT_STARTS, HELD_OUT_JOBS)
    assert [line.partition(": ")[0] for line in lines] == [NAME]
    assert "makespan_bound is a target, which 30 to 62% of random windows exceed" in lines[0]
    assert "not for users' estimates or long operation yet" in lines[0]
    assert model_warnings(["f2+easy"], load_scenario("default"), [0], 100) == []


def test_a_site_unlike_its_own_is_told_by_name() -> None:
    larger = load_scenario("default", processors=2048)
    first, *_ = model_warnings([NAME], larger, [2000], 1024)
    assert first.startswith(f"{NAME}: machine 8 times as large, load 0.10 against 0.80; figures ")
    assert first.endswith("; figures may be worse than a plain rule's")


def test_models_with_the_same_limits_share_a_line() -> None:
    names = [NAME, "gas-marl-plus@default:makespan_bound=1.25+none"]
    limits = [line for line in model_warnings(names, load_scenario("default"), [2000], 1024) if "target" in line]
    assert [line.partition(": makespan_bound is")[0] for line in limits] == [", ".join(names)]


def test_a_record_without_profile_is_compared_with_nothing(model: Path) -> None:
    name = edit(model, None, profile=None, limits=[])
    assert model_warnings([name], load_scenario("default", processors=2048), [2000], 1024) == []


def test_an_untrained_model_is_said_to_be(model: Path) -> None:
    name = edit(model, "training", untrained=True, kept_epoch=0)
    lines = model_warnings([name], load_scenario("default"), [2000], 1024)
    assert lines[0] == f"{name}: untrained, the weights kept are those before the first epoch"


def test_windows_are_in_sample_by_the_share_of_their_jobs(model: Path) -> None:
    question = load_scenario("default")
    name = edit(model, "training", seen_jobs=[[0, 1999], [4401, 9999]])
    assert familiar_windows([name, "f2+easy"], question, [2000, 3377], 1024) == []
    (line,) = familiar_windows([name], question, [1999, 2000, 3889], 1024)
    assert line == (
        f"{name}: in-sample, trained on 0 to 50% of the jobs of 2 of 3 windows; results on other jobs may be worse "
        "(jobs 2000 to 4400 were held out)"
    )
    (line,) = familiar_windows([name], question, [0, 8000], 1024)
    assert "trained on 100% of the jobs of 2 of 2 windows" in line
    record = load_model(model).record
    np.testing.assert_allclose(seen_shares(record, [1999, 2000, 3889, 0], 1024), [1 / 1024, 0, 512 / 1024, 1])


def test_other_jobs_are_not_in_sample(model: Path) -> None:
    question = load_scenario("default")
    name = edit(model, "training", seen_jobs=[[0, 9999]])
    assert familiar_windows([name], question, [0], 100)
    resolved = {**question.resolved, "workload": {"generator": {"model": "lublin", "seed": 7}}}
    assert familiar_windows([name], replace(question, resolved=resolved), [0], 100) == []
    powered = {**question.resolved["workload"], "power": {"kind": "none"}}  # the same jobs with another power
    assert familiar_windows([name], replace(question, resolved={**question.resolved, "workload": powered}), [0], 100)


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
    (line,) = familiar_windows([f"gas-marl-plus@{trace}+none"], question, starts, jobs)
    assert "in-sample, trained on 91 to 100% of the jobs of 10 of 10 windows" in line


def test_they_stand_above_the_table_and_at_the_top_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "--schedulers", f"fcfs+easy,{NAME}", "--starts", "0", "--jobs", "60", "--processors", "512"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    warning, table = told.index(f"warning: {NAME}: machine 2 times as large"), told.index("Scheduler")
    assert warning < told.index("in-sample, trained on 100% of the jobs of 1 of 1 windows") < table
    report = (tmp_path / "out" / "report.html").read_text()
    assert report.index("machine 2 times as large") < report.index("<table")


def test_simulate_tells_them_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "--scheduler", NAME, "--jobs", "30", "--processors", "512", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(f"warning: {NAME}: machine 2 times as large, ")


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
