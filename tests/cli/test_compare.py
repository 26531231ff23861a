"""compare, demo and reproduce through the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars
import pytest

from greenbatch import datasets
from greenbatch.cli import main
from greenbatch.experiments import compare as room
from greenbatch.experiments.compare import choose_windows
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


def test_the_same_comparison_writes_the_same_bytes(small):
    for out in ("one", "other"):
        assert compare("--windows", "2", out=out) == 0
    for file in FILES[2:]:
        assert (small / "one" / file).read_bytes() == (small / "other" / file).read_bytes(), file


def test_any_number_of_processes_writes_the_same_bytes(small):
    for workers in ("1", "2", "3"):
        assert compare("--windows", "4", "--workers", workers, out=f"with-{workers}") == 0
    for file in FILES[1:]:
        one, *others = (
            re.sub(rb"with-\d|--workers(&#34;|\W)+\d", b"", (small / f"with-{n}" / file).read_bytes()) for n in "123"
        )
        assert one == others[0] == others[1], file


def test_a_comparison_equals_single_simulations(small):
    assert compare("--starts", "5", "--schedulers", "f2+green") == 0
    arguments = ["--scenario", "small.toml", "--scheduler", "f2+green", "--start", "5", "--jobs", "20", "--out", "one"]
    assert main(["simulate", *arguments]) == 0
    metrics = json.loads((small / "one" / "metrics.json").read_text())
    frame = polars.read_parquet(small / "out" / "results.parquet")
    values = dict(zip(frame["metric"], frame["value"], strict=True))
    assert {name: values[name] for name in metrics} == metrics
    assert values["makespan_ratio"] == 1


def test_ctrl_c_keeps_the_finished_windows(small, monkeypatch, capsys):
    real, calls = room._window, []

    def interrupted(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(room, "_window", interrupted)
    assert compare() == 130
    assert len(settings(small / "out")["starts"]) == 2
    assert sorted(f.name for f in (small / "out").iterdir()) == FILES
    err = capsys.readouterr().err
    assert err == "greenbatch: interrupted; the 2 finished of 3 windows are kept in out\n"


def test_ctrl_c_before_the_first_window_leaves_nothing(small, monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "_window", interrupted)
    assert compare() == 130
    assert not (small / "out").exists()
    assert capsys.readouterr().err == "greenbatch: interrupted\n"


def test_the_demo_is_a_comparison_on_the_default_scenario(small, monkeypatch):
    from greenbatch.cli import compare as face

    asked = {}
    monkeypatch.setattr(face, "run_comparison", lambda *a, **k: asked.update(arguments=a, **k))
    assert main(["demo", "--out", "x", "--workers", "2", "--force"]) == 0
    assert asked == {"arguments": (Path("x"), "default"), "workers": 2, "force": True}


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
    assert record["inputs"]["lublin_256_new2.swf.gz"] == datasets.sha256(root / "swf" / "lublin_256_new2.swf.gz")
