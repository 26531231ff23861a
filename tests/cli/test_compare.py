"""compare, demo and reproduce through the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import chdir, nullcontext
from pathlib import Path

import polars
import pytest
from small import PICTURELESS, SLOW, SMALL, failing, without_command, without_pictures

from greenbatch import data_catalog
from greenbatch.cli import compare as face
from greenbatch.cli import main
from greenbatch.experiments.reports import page, report
from greenbatch.experiments.running.cells import Question
from greenbatch.experiments.running.compare import choose_windows
from greenbatch.scenarios import load_scenario

OWN = 'seed = 4\nbaseline = "f2+green"\n'
FILES = ["provenance.json", "report.html", "results.parquet", "table.md", "table.tex"]


@pytest.fixture
def small(small: Path) -> Path:
    """With windows and a baseline of its own."""
    with (small / "small.toml").open("a") as file:
        file.write(OWN)
    return small


def compare(*arguments: str, out: str = "out") -> int:
    return main(["compare", "--scenario", "small.toml", "--out", out, *arguments])


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a comparison of small.toml, which is beside it."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "small.toml").write_text(SMALL + OWN)
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        without_pictures(patch)
        assert compare() == 0
    return folder / "out"


@pytest.fixture
def finished(small: Path, compared: Path) -> Path:
    """A copy of it, in the current folder."""
    return Path(shutil.copytree(compared, small / "out"))


def settings(folder: Path) -> dict[str, object]:
    return json.loads((folder / "provenance.json").read_text())["settings"]


def test_a_scenarios_own_windows_and_schedulers(small, capsys):
    assert compare() == 0
    assert sorted(f.name for f in (small / "out").iterdir()) == FILES
    made = settings(small / "out")
    assert made["schedulers"] == ["fcfs+easy", "f2+green"]
    assert made["baseline"] == "f2+green"
    assert len(made["starts"]) == 3
    assert made["jobs"] == 20
    frame = polars.read_parquet(small / "out" / "results.parquet")
    assert frame.columns == ["window", "scheduler", "metric", "value"]
    assert frame["window"].unique(maintain_order=True).to_list() == [str(start) for start in made["starts"]]
    out = capsys.readouterr().out
    assert "fcfs+easy" in out
    assert "written to out" in out
    assert "f2+green" in (small / "out" / "table.md").read_text()
    assert r"\begin{tabular}" in (small / "out" / "table.tex").read_text()
    assert "<html" in (small / "out" / "report.html").read_text()


def test_given_starts_schedulers_and_baseline(small):
    assert compare("--starts", "30,0", "--jobs", "10", "--schedulers", "sjf,fcfs+none", "--baseline", "fcfs+none") == 0
    made = settings(small / "out")
    assert (made["starts"], made["jobs"]) == ([30, 0], 10)
    assert (made["schedulers"], made["baseline"]) == (["sjf", "fcfs+none"], "fcfs+none")


def test_the_first_scheduler_is_the_baseline_where_the_scenarios_is_not_compared(small):
    assert compare("--schedulers", "sjf+easy,fcfs+easy") == 0
    assert settings(small / "out")["baseline"] == "sjf+easy"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (3, 4)),
        ({"windows": 2}, (2, 4)),
        ({"seed": 9}, (3, 9)),
        ({"windows": 5, "seed": 9}, (5, 9)),
    ],
)
def test_windows_are_random_from_a_seed_unless_starts_are_given(small, given, expected):
    scenario = load_scenario("small.toml")
    asked = {"starts": None, "windows": None, "seed": None, "jobs": 20, **given}
    windows, seed = expected
    assert choose_windows(scenario, **asked)[0] == scenario.random_starts(windows, 20, seed)
    assert choose_windows(scenario, **{**asked, "starts": [7, 3]})[0] == (7, 3)
    fixed = load_scenario("small.toml", overrides={"evaluation.starts": [1, 2]})
    assert choose_windows(fixed, **asked)[0] == ((1, 2) if not given else scenario.random_starts(windows, 20, seed))


def test_a_comparison_equals_single_simulations(small):
    assert compare("--starts", "5", "--schedulers", "f2+green") == 0
    arguments = ["--scenario", "small.toml", "--scheduler", "f2+green", "--start", "5", "--jobs", "20", "--out", "one"]
    assert main(["simulate", *arguments]) == 0
    metrics = json.loads((small / "one" / "metrics.json").read_text())
    frame = polars.read_parquet(small / "out" / "results.parquet")
    values = dict(zip(frame["metric"], frame["value"], strict=True))
    assert {name: values[name] for name in metrics} == metrics
    assert values["makespan_ratio"] == 1


def interrupt(monkeypatch: pytest.MonkeyPatch, call: int) -> list[object]:
    """Let Ctrl-C come with a call to simulate a window; the calls."""
    return failing(monkeypatch, call, KeyboardInterrupt())


@pytest.mark.drawn
def test_an_interrupted_comparison_is_resumed(small, monkeypatch):
    assert compare(out="whole") == 0
    calls = interrupt(monkeypatch, 3)
    with monkeypatch.context() as patch:
        without_pictures(patch)
        assert compare(out="parts") == 130
    assert len(settings(small / "parts")["starts"]) == 2
    assert without_command(small / "parts" / "report.html") != without_command(small / "whole" / "report.html")
    calls.clear()
    assert compare("--resume", out="parts") == 0
    assert len(calls) == 2, "the first window, for the pictures, and the missing one"
    assert sorted(f.name for f in (small / "parts").iterdir()) == FILES
    for file in FILES:
        assert without_command(small / "parts" / file) == without_command(small / "whole" / file), file


def test_a_finished_comparison_is_resumed(finished, compared, monkeypatch):
    calls = interrupt(monkeypatch, 0)
    assert compare("--resume") == 0
    assert len(calls) == 1, "the first window, for the pictures; nothing is missing"
    for file in FILES:
        assert without_command(finished / file) == without_command(compared / file), file


@pytest.mark.parametrize(("module", "where"), [(report, "picture_sections"), (page, "write_bytes")])
def test_ctrl_c_while_the_report_is_drawn_keeps_every_window(small, compared, monkeypatch, capsys, module, where):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, where, interrupted)
        assert compare(out="parts") == 130
    again = "greenbatch compare --scenario small.toml --out parts --resume"
    told = capsys.readouterr()
    assert told.err == (
        f"greenbatch: interrupted; 3 of 3 windows are finished, the report is not drawn; resume with: {again}\n"
    )
    assert "interrupted" not in told.out
    assert sorted(f.name for f in (small / "parts").iterdir()) == [name for name in FILES if name != "report.html"]
    calls = interrupt(monkeypatch, 0)
    assert compare("--resume", out="parts") == 0
    assert len(calls) == 1, "the first window, for the pictures"
    for file in FILES:
        assert without_command(small / "parts" / file) == without_command(compared / file), file


def test_ctrl_c_keeps_the_finished_windows_and_reports_their_number(small, monkeypatch, capsys):
    interrupt(monkeypatch, 3)
    assert compare() == 130
    assert len(settings(small / "out")["starts"]) == 2
    assert sorted(f.name for f in (small / "out").iterdir()) == FILES
    out, err = capsys.readouterr()
    again = "greenbatch compare --scenario small.toml --out out --resume"
    assert err == f"greenbatch: interrupted; 2 of 3 windows are finished; resume with: {again}\n"
    told = "2 of 3 windows; interrupted"
    assert f"warning: {told}\n" in out
    assert out.count(told) == 1
    assert (small / "out" / "table.md").read_text().count(told) == 1
    for file in ("table.md", "table.tex", "report.html"):
        assert told in (small / "out" / file).read_text(), file
    assert compare("--resume") == 0
    assert "interrupted" not in capsys.readouterr().out + (small / "out" / "report.html").read_text()


def test_the_progress_line_says_that_the_report_is_drawn(small, monkeypatch):
    seen: list[tuple[str, int, int]] = []
    monkeypatch.setattr(face, "progress_line", lambda: nullcontext(lambda *at: seen.append(at)))
    assert compare() == 0
    assert seen[-1] == ("drawing the report", 3, 3)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (["--schedulers", "sjf,f2+green"], 'settings.schedulers: ["fcfs+easy", "f2+green"] there, ["sjf", "f2+green"]'),
        (["--baseline", "fcfs+easy"], "settings.baseline: f2+green there, fcfs+easy here"),
        (["--jobs", "10"], "settings."),
        (["--windows", "2", "--seed", "1"], "settings.starts: "),
        (["--processors", "64"], "scenario.cluster.processors: 32 there, 64 here"),
    ],
)
def test_another_comparison_is_not_resumed(finished, capsys, changed, told):
    before = {file: (finished / file).read_bytes() for file in FILES}
    assert compare("--resume", *changed) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"greenbatch: out: --resume: contains a different comparison; {told}")
    assert err.endswith("(repeat the original flags, or give --force instead of --resume)\n")
    assert {file: (finished / file).read_bytes() for file in FILES} == before


def test_other_source_or_versions_are_not_resumed(finished, monkeypatch, capsys):
    monkeypatch.setattr("greenbatch.provenance.source_sha256", lambda: "another")
    assert compare("--resume") == 2
    assert re.search(r"source_sha256: [\w.]+ there, another here", capsys.readouterr().err)


def test_resume_requires_a_comparison(small, capsys):
    (small / "empty").mkdir()
    for out in ("empty", "absent"):
        assert compare("--resume", out=out) == 2
        assert capsys.readouterr().err == f"greenbatch: {out}: --resume: contains no comparison (leave --resume out)\n"
    assert not (small / "absent").exists()
    assert main(["simulate", "--scenario", "small.toml", "--scheduler", "fcfs", "--out", "one"]) == 0
    assert compare("--resume", out="one") == 2
    assert "one: --resume: contains a damaged comparison (compare again with --force)" in capsys.readouterr().err
    assert compare("--resume", "--force") == 2
    assert main(["compare", "--resume", "--json"]) == 2


def test_ctrl_c_in_several_processes_keeps_what_is_finished(small):
    (small / "slow.py").write_text(SLOW.replace("SECONDS", "0.004"))
    words = ["--scenario", "small.toml", "--schedulers", "slow.py:slow,fcfs", "--jobs", "20", "--baseline", "fcfs",
             "--starts", ",".join(str(start) for start in range(40)), "--workers", "2", "--out", "out"]  # fmt: skip
    code = (
        f"import os, signal, sys\n{PICTURELESS}from greenbatch.experiments.running import cells as room\n"
        "real = room.spread\n"
        "def spread(*given):\n"
        "    for count, found in enumerate(real(*given)):\n"
        "        if count == 3:\n            os.killpg(0, signal.SIGINT)\n"
        "        yield found\n"
        "room.spread = spread\n"
        "from greenbatch.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "compare", *words], capture_output=True, text=True, check=False,
        start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 130
    assert re.fullmatch(
        r"greenbatch: interrupted; \d+ of 40 windows are finished(, the report is not drawn)?; "
        r"resume with: greenbatch compare .* --resume\n",
        done.stderr,
    )
    kept = settings(small / "out")["starts"]
    assert 0 in kept
    assert 4 <= len(kept) < 40
    frame = polars.read_parquet(small / "out" / "results.parquet")
    assert frame["window"].unique(maintain_order=True).to_list() == [str(start) for start in kept]


def test_json_is_one_object_with_the_figures_of_the_table(small, capsys):
    assert main(["compare", "--scenario", "small.toml", "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert [f.name for f in small.iterdir()] == ["small.toml"], "nothing is written without --out"
    assert compare("--json") == 0
    assert json.loads(capsys.readouterr().out) == got
    frame = polars.read_parquet(small / "out" / "results.parquet")
    assert (got["scenario"], got["baseline"], got["jobs"]) == ("small", "f2+green", 20)
    assert [str(start) for start in got["starts"]] == frame["window"].unique(maintain_order=True).to_list()
    assert list(got["schedulers"]) == ["fcfs+easy", "f2+green"]
    assert list(got["differences"]) == ["fcfs+easy"]
    values = frame.filter(scheduler="fcfs+easy", metric="avg_wait_s")["value"]
    wait = got["schedulers"]["fcfs+easy"]["avg_wait_s"]
    assert wait["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert wait["low"] <= wait["mean"] <= wait["high"]
    assert wait["windows"] == 3
    difference = got["differences"]["fcfs+easy"]["avg_wait_s"]
    assert difference["mean"] == pytest.approx(wait["mean"] - got["schedulers"]["f2+green"]["avg_wait_s"]["mean"])
    assert got["metrics"]["avg_wait_s"] == {"label": "wait (mean)", "unit": "s", "better": "lower"}
    assert isinstance(got["warnings"], list)


def test_out_or_json_is_required(small, capsys):
    assert main(["compare", "--scenario", "small.toml"]) == 2
    assert capsys.readouterr().err == ("greenbatch: --out: is missing (give --out FOLDER; only --json works without)\n")


def test_ctrl_c_before_the_first_window_leaves_nothing(small, monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Question, "simulated", interrupted)
    assert compare() == 130
    assert not (small / "out").exists()
    assert capsys.readouterr().err == "greenbatch: interrupted\n"


def test_the_demo_is_a_comparison_on_the_default_scenario(small, monkeypatch):
    asked = {}
    monkeypatch.setattr(face, "run_comparison", lambda *a, **k: asked.update(arguments=a, **k))
    assert main(["demo", "--out", "x", "--workers", "2", "--force"]) == 0
    assert asked == {"arguments": (Path("x"), "default"), "workers": 2, "resume": False, "force": True}


@pytest.mark.compiled  # whole windows take minutes as plain Python
def test_reproduce_prints_cells_as_a_table_or_json_and_writes_a_report(greenbatch_data, tmp_path, monkeypatch, capsys):
    root = greenbatch_data("swf/lublin_256_new2.swf.gz").parents[1].resolve()
    monkeypatch.setenv("GREENBATCH_DATA", str(root))
    arguments = ["reproduce", "rlscheduler", "--traces", "Lublin-2"]
    assert main([*arguments, "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)
    keys = ["table", "trace", "backfill", "scheduler", "metric", "published", "ours", "digits", "verdict", "reason"]
    assert list(cells[0]) == keys
    fcfs = next(c for c in cells if (c["scheduler"], c["backfill"], c["table"]) == ("FCFS", "none", "Table V"))
    assert (fcfs["published"], fcfs["verdict"]) == (7842.5, "equal")
    assert fcfs["ours"] == pytest.approx(7842.4709, abs=5e-5)
    assert main([*arguments, "--starts", "0", "--out", str(tmp_path / "out")]) == 0
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert " ".join(capsys.readouterr().out.split()).endswith(told["text"])
    assert told["text"].startswith("0 of 20 computed figures equal the published ones")
    assert "not computed here" in told["text"]
    files = ["cells.json", "provenance.json", "report.html", "summary.json"]
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == files
    other = json.loads((tmp_path / "out" / "cells.json").read_text())
    assert next(c for c in other if c["scheduler"] == "FCFS")["verdict"] != "equal", "another start, another figure"
    record = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert record["inputs"]["lublin_256_new2.swf.gz"] == data_catalog.sha256(root / "swf" / "lublin_256_new2.swf.gz")


def test_the_whole_trace_is_one_window(small, capsys):
    assert compare("--whole") == 0
    made = settings(small / "out")
    assert made["starts"] == [0]
    jobs = len(load_scenario("small.toml").workload)
    assert made["jobs"] == jobs
    assert f"all {jobs} jobs; makespan relative to f2+green" in capsys.readouterr().out
    assert compare("--whole", "--windows", "2", out="other") == 2
    assert "--whole: is the whole trace as one window" in capsys.readouterr().err


def test_windows_longer_than_the_trace_name_the_flags(small, capsys):
    jobs = len(load_scenario("small.toml").workload)
    assert compare("--jobs", str(jobs + 1)) == 2
    error = capsys.readouterr().err
    assert f"--whole (in Python: starts=[0], jobs={jobs}) is the whole trace" in error


def test_title_states_the_part_of_the_trace(small, capsys):
    jobs = len(load_scenario("small.toml").workload)
    assert compare("--starts", "0", "--jobs", "10") == 0
    assert f"10 of {jobs} jobs" in capsys.readouterr().out


def test_recorded_waits_are_printed_below_the_table(tmp_path, capsys):
    dump = str(Path(__file__).parents[2] / "examples" / "sacct.txt")
    asked = ["--scenario", "plain", "--trace", dump, "--processors", "48"]
    assert main(["simulate", *asked, "--scheduler", "fcfs+easy", "--out", str(tmp_path / "one")]) == 0
    told = "Waits recorded for 60 jobs: 1.14 h on average"
    assert told in capsys.readouterr().out
    assert main(["compare", *asked, "--schedulers", "fcfs+easy,sjf+easy", "--whole", "--json"]) == 0
    (note,) = (note["text"] for note in json.loads(capsys.readouterr().out)["notes"] if note["text"].startswith(told))
    assert "simulated with fcfs+easy for the same jobs" in note
