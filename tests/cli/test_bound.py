"""``greenbatch bound``: the table, JSON, files, and flags that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greenbatch.cli import main

SMALL = ["bound", "--scenario", "default", "--starts", "0,400", "--jobs", "40", "--makespan", "1.0,1.5"]


def test_the_table_states_the_windows_and_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    assert "default: what no schedule can beat, 2 windows of 40 jobs" in out
    assert "at most 1.5 x" in out
    assert "f2+easy-schedgym" in out
    assert "least" in out
    assert main(["bound", "--scenario", "default", "--starts", "0", "--jobs", "40", "--makespan", "1.5"]) == 0
    assert "least" not in capsys.readouterr().out


def test_results_are_written_as_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--json", "--reference", "fcfs+easy", "--out", str(tmp_path / "out")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "out" / "bounds.json").read_text()) == printed
    assert [(row["start"], row["makespan_ratio"]) for row in printed] == [(0, 1.0), (0, 1.5), (400, 1.0), (400, 1.5)]
    assert {row["reference"] for row in printed} == {"fcfs+easy"}
    record = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert record["run"]["command"][:2] == ["greenbatch", "bound"]
    assert "Latest end allowed" in (tmp_path / "out" / "table.md").read_text()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--makespan", "one"], "--makespan: 'one' is not a number"),
        (["--within", "soon"], "--within: 'soon' is not a number (give hours, such as 24)"),
        (["--within", "1", "--makespan", "1.5"], "--makespan: is another bound than that of --within"),
        (["--within", "0"], "--within: is too short"),
        (["--makespan", "0"], "--makespan: is [0.0]"),
        (["--makespan", "0.5"], "--makespan: a makespan of 0.5 times"),
        (["--windows", "held-out"], "without --starts, --jobs and --whole"),
        (["--whole"], "--whole: is the only window (leave out --starts and --jobs)"),
        (["--reference", "nosuch+easy"], "nosuch"),
    ],
)
def test_bad_flags_are_refused_in_one_line(
    flags: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["bound", "--scenario", "default", "--starts", "0", "--jobs", "30", "--out", str(out)]
    assert main([*command, *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not out.exists()


def test_a_trace_of_ones_own_is_bounded_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = (f"{k} {600 * k} -1 1200 4 -1 -1 4 1800 -1 1 1 1 1 1 1 -1 -1" for k in range(1, 9))
    (tmp_path / "own.swf").write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    trace = str(tmp_path / "own.swf")
    command = ["bound", "--scenario", "default", "--trace", trace, "--whole", "--makespan", "1.5", "--json"]
    assert main(command) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["start"], found["jobs"]) == (0, 8)


def test_windows_that_are_unknown_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", "--scenario", "default", "--windows", "all"]) == 2
    assert "give published, held-out, both" in capsys.readouterr().err


def test_jobs_that_end_within_some_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On nodes that boot, with a PUE and prices; f2+easy stands beside."""
    command = [*SMALL[:-2], "--within", "100", "--reference", "fcfs+easy", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "default: what no schedule can beat within 100 h, 2 windows of 40 jobs" in out
    assert "fcfs+easy ends no job more than" in out
    first, _ = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert first["brown_kwh"] <= first["reference_brown_kwh"]
    assert first["cost"] is None
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["settings"]["within_s"] == 360_000.0
