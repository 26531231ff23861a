"""The command line as users meet it: help, verbs, results, interruption."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import get_type_hints

import cyclopts
import numpy as np
import polars
import pytest

from greenbatch import data_catalog
from greenbatch.cli import app, main
from greenbatch.cli.app import VERBS
from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.policies.backfillings import BACKFILLINGS
from greenbatch.scenarios import shipped_names
from greenbatch.schedulers import entries, scheduler

RUN = "import sys; from greenbatch.cli import main; sys.exit(main(sys.argv[1:]))"
HEAVY = ("torch", "numba", "numpy", "polars", "matplotlib", "pvlib", "pandas", "pydantic", "scipy")


def simulate(*arguments: str) -> int:
    return main(["simulate", "--scenario", "small.toml", "--scheduler", "f2+green", *arguments])


@pytest.mark.parametrize("arguments", [["--help"], [], ["--version"], ["simulate", "--help"], ["data", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    code = (
        "import sys; from greenbatch.cli import main; main(sys.argv[1:]);"
        f"print(sorted(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert done.stdout


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "greenbatch"]
    told = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == version("greenbatch")
    wrong = subprocess.run([*command, "simulate", "--nosuch"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2


def test_schedulers_are_listed_by_names_that_work(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")  # headings take one line
    assert main(["schedulers"]) == 0
    sections = capsys.readouterr().out.split("\n\n")
    policies, backfillings, placements, models = (
        [line.split()[0] for line in text.splitlines()[1:] if line[2] != " "] for text in sections[:4]
    )
    assert {name.partition(":")[0] for name in policies} == {*entries()}
    assert {*backfillings} == {*BACKFILLINGS}
    assert {*placements} == {*PLACEMENTS}
    for name in placements:
        assert getattr(scheduler(f"fcfs+none+{name}"), "placement", "") == name
    assert "gas-marl-plus@default" in models
    for name in (*policies, *(f"f2+{each}" for each in backfillings), *models):
        assert scheduler(name)
    assert ":tick=1800  interval between the start times compared; 1 to 604800 s" in sections[0]
    assert ":sigma=50000" in sections[1]


def test_a_policy_without_docstring_is_listed(monkeypatch, capsys):
    silent = replace(entries()["fcfs"], name="silent", summary="")
    monkeypatch.setattr("greenbatch.schedulers.entries", lambda: {"silent": silent})
    assert main(["schedulers"]) == 0
    assert "  silent\n" in capsys.readouterr().out


def test_help_names_every_verb(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert [verb for verb in VERBS if verb not in text] == []


def commands():
    """Words and function of every command, those below a verb included."""
    for verb in VERBS:
        found = getattr(import_module(f"greenbatch.cli.{verb}"), verb)
        if isinstance(found, cyclopts.App):
            yield from ((f"{verb} {name}", found[name].default_command) for name in found if not name.startswith("-"))
        else:
            yield verb, found


@pytest.mark.parametrize(("words", "function"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_help_describes_every_parameter(words, function, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*words.split(), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())
    for name, kind in get_type_hints(function, include_extras=True).items():
        if name != "return":
            (meaning,) = re.findall(rf"^{name}\n    (.+(?:\n    .+)*)", inspect.getdoc(function), re.MULTILINE)
            flag = next((each.name[0] for each in getattr(kind, "__metadata__", ()) if each.name), f"--{name}")
            described = rf"(?:{flag}|{name.upper()}) (?:[A-Z.]+ )?{re.escape(' '.join(meaning.split()))}"
            assert re.search(described, shown), name


def test_simulate_writes_its_files(small, capsys):
    assert simulate("--out", "out", "--start", "5", "--jobs", "30") == 0
    assert sorted(f.name for f in (small / "out").iterdir()) == [
        "metrics.json", "nodes.csv", "power.parquet", "provenance.json", "schedule.csv",
    ]  # fmt: skip
    metrics = json.loads((small / "out" / "metrics.json").read_text())
    for key in (
        "avg_bounded_slowdown", "avg_wait_s", "avg_turnaround_s", "avg_slowdown", "utilization",
        "utilization_to_last_start", "makespan_s", "renewable_utilization", "energy_kwh", "brown_kwh",
    ):  # fmt: skip
        assert isinstance(metrics[key], float)
    schedule = polars.read_csv(small / "out" / "schedule.csv")
    assert schedule.columns == ["job_id", "submit_s", "start_s", "end_s", "processors", "node", "energy_j", "edp_js"]
    assert schedule["job_id"].to_list() == list(range(6, 36))
    assert (schedule["start_s"] >= schedule["submit_s"]).all()
    assert (schedule["end_s"] - schedule["start_s"] > 0).all()
    wait = float((schedule["start_s"] - schedule["submit_s"]).mean())
    assert metrics["avg_wait_s"] == pytest.approx(wait)
    (pool,) = polars.read_csv(small / "out" / "nodes.csv").to_dicts()
    assert (pool["node"], pool["group"], pool["jobs"], pool["static_kwh"]) == ("pool", "pool", 30, 0.0)
    assert pool["idle_kwh"] + pool["dynamic_kwh"] == pytest.approx(metrics["energy_kwh"], rel=1e-9)
    assert schedule["energy_j"].sum() / 3.6e6 == pytest.approx(pool["dynamic_kwh"], rel=1e-9)
    run_s = schedule["end_s"] - schedule["start_s"]
    assert float((schedule["energy_j"] * run_s).mean()) == pytest.approx(metrics["avg_edp_js"], rel=1e-12)
    assert float(schedule["edp_js"].median()) == pytest.approx(metrics["median_edp_js"], rel=1e-12)
    power = polars.read_parquet(small / "out" / "power.parquet")
    supply = ["renewable_w", "renewable_used_w", "import_w", "surplus_w", "stored_j"]
    assert power.columns == ["start_s", "end_s", "load_w", *supply]
    seconds = (power["end_s"] - power["start_s"]).to_numpy()
    assert float(np.dot(power["load_w"], seconds)) / 3.6e6 == pytest.approx(metrics["energy_kwh"], rel=1e-12)
    used = float(np.dot(power["renewable_used_w"], seconds)) / 3.6e6
    assert float(np.dot(power["import_w"], seconds)) / 3.6e6 == pytest.approx(metrics["brown_kwh"], rel=1e-12)
    assert metrics["energy_kwh"] - used == pytest.approx(metrics["brown_kwh"], rel=1e-9)
    assert used / metrics["energy_kwh"] == pytest.approx(metrics["renewable_utilization"], rel=1e-9)
    out = capsys.readouterr().out
    assert "written to out" in out
    told = {label.strip(): value for label, value in re.findall(r"^  (\S.*?)  +(\S.*)$", out, re.MULTILINE)}
    assert told["Jobs"] == "30"
    assert told["Makespan"] == f"{metrics['makespan_s'] / 86_400:.2f} d"
    assert told["Mean wait"] == f"{wait / 3600:.2f} h"
    assert "_s" not in "".join(told), "seconds are for files"


def test_a_trace_alone_has_no_energy(small, capsys):
    (small / "jobs.swf").write_text("; MaxProcs: 8\n1 0 -1 100.5 4 -1 -1 4 50 -1 1 1 1 1 1 1 -1 -1\n")
    arguments = ["simulate", "--scenario", "plain", "--trace", "jobs.swf", "--scheduler", "fcfs+easy", "--out", "out"]
    assert main(arguments) == 0
    metrics = json.loads((small / "out" / "metrics.json").read_text())
    assert metrics["energy_kwh"] is metrics["renewable_utilization"] is None
    assert metrics["killed"] == 1
    assert metrics["makespan_s"] == 50
    power = polars.read_parquet(small / "out" / "power.parquet")
    assert power["load_w"].null_count() == power["renewable_w"].null_count() == power.height > 0
    assert "run time over the requested time" in capsys.readouterr().out


def test_the_same_command_writes_the_same_bytes_in_any_process(small):
    assert simulate("--out", "here") == 0
    environment = {**os.environ, "POLARS_MAX_THREADS": "3", "NUMBA_NUM_THREADS": "3"}
    arguments = ["simulate", "--scenario", "small.toml", "--scheduler", "f2+green", "--out", "there"]
    subprocess.run([sys.executable, "-c", RUN, *arguments], env=environment, check=True, capture_output=True)
    for file in ("metrics.json", "schedule.csv", "power.parquet"):
        assert (small / "here" / file).read_bytes() == (small / "there" / file).read_bytes(), file
    ours, theirs = (json.loads((small / d / "provenance.json").read_text()) for d in ("here", "there"))
    assert ours.pop("run")["python"] == theirs.pop("run")["python"]
    assert ours == theirs


def test_provenance_allows_reproduction(small):
    (small / "jobs.swf").write_text("; MaxProcs: 8\n1 0 -1 100 4 -1 -1 4 50 -1 1 1 1 1 1 1 -1 -1\n")
    assert simulate("--trace", "jobs.swf", "--processors", "64", "--out", "out") == 0
    record = json.loads((small / "out" / "provenance.json").read_text())
    assert record["inputs"] == {"jobs.swf": data_catalog.sha256(small / "jobs.swf")}
    assert record["settings"]["scheduler"] == "f2+green"
    assert record["scenario"]["cluster"]["processors"] == 64
    assert record["scenario"]["workload"]["file"] == "jobs.swf"
    assert record["scenario"]["site"]["area_m2"] == 20
    assert set(record["versions"]) >= {"greenbatch", "numba", "numpy"}
    assert len(record["source_sha256"]) == 64
    assert "--trace" in record["run"]["command"]
    assert {f: data_catalog.sha256(small / "out" / f) for f in record["files"]} == record["files"]


def test_force_replaces_an_earlier_result_only(small, capsys):
    assert simulate("--out", "out") == 0
    assert simulate("--out", "out") == 2
    assert "--force" in capsys.readouterr().err
    assert simulate("--out", "out", "--force", "--jobs", "10") == 0
    assert json.loads((small / "out" / "metrics.json").read_text())["jobs"] == 10


@pytest.mark.parametrize("name", ["default", "gas-marl/jann"])
def test_scenario_show_prints_toml_that_says_where_values_come_from(name, capsys):
    assert main(["scenario", "show", name]) == 0
    out = capsys.readouterr().out
    assert tomllib.loads(out)["name"] == name
    assert 'event_rule = "per_event"  # line ' in out
    assert "tick_s = 0.0  # default" in out


def test_scenario_list_and_schema(capsys):
    assert main(["scenario", "list"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("default ")
    assert len([line for line in out.splitlines() if not line.startswith(" ")]) == len(shipped_names())
    assert main(["scenario", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["workload"]


def test_data_list_and_path(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GREENBATCH_DATA", str(tmp_path))
    (tmp_path / "swf").mkdir()
    (tmp_path / "swf" / "Jann.swf.gz").write_bytes(b"")
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "swf/Jann.swf.gz  [here]" in out
    assert "acknowledge the provider" in out
    assert main(["data", "path", "swf/Jann.swf.gz"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'swf' / 'Jann.swf.gz'}\n"
    assert main(["data", "path"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == str(tmp_path)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "greenbatch: interrupted\n"),
        (MemoryError(), 2, "greenbatch: out of memory"),
        (
            OSError(28, "No space left on device", "out/x"),
            2,
            "greenbatch: out: --out: cannot be written: No space left on device",
        ),
        (PermissionError(13, "Permission denied"), 2, "greenbatch: Permission denied"),
    ],
)
def test_system_errors_are_one_line(small, capsys, error, code, message):
    def fail(*_: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("greenbatch.engine.simulate.simulate", fail)
        assert simulate("--out", "out") == code
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert not (small / "out").exists()
    assert [f.name for f in small.iterdir()] == ["small.toml"]


def test_a_termination_signal_leaves_nothing_behind(small):
    stop = (
        "import os, signal, sys, greenbatch.engine.simulate as engine\n"
        "engine.simulate = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "from greenbatch.cli import main\n"
        "sys.exit(main(['simulate', '--scenario', 'small.toml', '--scheduler', 'fcfs', '--out', 'out']))"
    )
    done = subprocess.run([sys.executable, "-c", stop], capture_output=True, text=True, check=False)
    assert done.returncode == 143
    assert done.stderr == ""
    assert [f.name for f in small.iterdir()] == ["small.toml"]


def test_ctrl_c_in_a_compiler_is_an_interruption(small):
    """Numba turns it into an error of its own."""
    stop = (
        "import os, signal, sys, greenbatch.engine.simulate as engine\n"
        "def compiling(*_):\n"
        "    try:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n        raise RuntimeError('no compiled object yet') from None\n"
        "engine.simulate = compiling\n"
        "from greenbatch.cli import main\n"
        "sys.exit(main(['simulate', '--scenario', 'small.toml', '--scheduler', 'fcfs', '--out', 'out']))"
    )
    done = subprocess.run([sys.executable, "-c", stop], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "greenbatch: interrupted\n"
    assert [f.name for f in small.iterdir()] == ["small.toml"]


def test_other_ways_to_run_python(small):
    """Without docstrings, with warnings as errors, and with no standard output to write to."""
    arguments = ["simulate", "--scenario", "small.toml", "--scheduler", "fcfs", "--out", "out"]
    code = f"import os, sys; os.close(1); sys.stdout = None; {RUN}"
    command = [sys.executable, "-OO", "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    assert (small / "out" / "metrics.json").is_file()


def test_bugs_raise_a_traceback(monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(app, "build", fail)
    with pytest.raises(ZeroDivisionError):
        main(["--help"])
