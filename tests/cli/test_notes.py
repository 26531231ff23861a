"""What a shell shows beside the figures: notes on the data, the machine that is used, missing files, line breaks."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from greenbatch.cli import main
from greenbatch.cli.listing import say

SWF = "; MaxProcs: 8\n" + "".join(
    f"{job} {job} -1 100 {wide} -1 -1 {wide} 200 -1 1 1 1 1 1 1 -1 -1\n" for job, wide in enumerate((4, 2, 99, 1), 1)
)
DROPPED = "job larger than the machine (8 processors) dropped: 1, first at line 4 ("


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.swf").write_text(SWF)
    return tmp_path


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_break_between_words_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    line = "warning: the windows overlap, so that /a/file/whose-name/is-long.swf is read twice"
    pipe, screen = io.StringIO(), Screen()
    say(line, file=pipe)
    say(line, file=screen)
    assert pipe.getvalue() == f"{line}\n"
    assert screen.getvalue().splitlines() == [
        "warning: the windows overlap,", "  so that", "  /a/file/whose-name/is-long.swf", "  is read twice",
    ]  # fmt: skip


def test_compare_prints_the_notes_before_the_table_and_the_report_those_that_change_results(jobs, capsys) -> None:
    words = ["--scenario", "plain", "--trace", "jobs.swf", "--processors", "8", "--schedulers", "fcfs,sjf"]
    assert main(["compare", *words, "--starts", "0", "--jobs", "3", "--out", "out"]) == 0
    out = capsys.readouterr().out
    assert 0 <= out.find(f"note: {DROPPED}") < out.find("Scheduler")
    report = (jobs / "out" / "report.html").read_text()
    assert 0 < report.find(DROPPED) < report.find("<table"), "beside the warnings"


def test_jobs_that_fit_on_no_nodes_are_told_first_and_beside_the_warnings(jobs, capsys) -> None:
    (jobs / "nodes.toml").write_text('[[groups]]\nname = "a"\ncount = 2\nprocessors = 2\nstatic_power_w = 10\n')
    header = "submit_s,run_time_s,processors,nodes,unread,one,two,three\n"
    rows = "0,60,2,1,,,,\n1,60,3,1,,,,\n2,120,2,2,,,,\n"
    (jobs / "jobs.csv").write_text(header + rows)
    words = ["--scenario", "plain", "--trace", "jobs.csv", "--cluster", "nodes.toml", "--schedulers", "fcfs,sjf"]
    assert main(["compare", *words, "--whole", "--out", "out"]) == 0
    out = capsys.readouterr().out
    told = "job that fits on no nodes of the cluster (the first: job 2 needs 3 "
    assert f"note: {told}" in out
    assert "(33% of the processor-hours and 33% of the jobs)" in out
    assert "Only 2 of the 3 jobs of the file are simulated: 33% of the jobs and 33% of the processor-hours are" in out
    assert "more notes" in out
    report = (jobs / "out" / "report.html").read_text()
    assert report.index("Caveats") < report.index(told) < report.index('id="results"')


@pytest.mark.parametrize("verb", [["simulate", "--scheduler", "fcfs"], ["compare", "--schedulers", "fcfs,sjf"]])
def test_a_trace_without_a_scenario_names_the_machine(jobs, capsys, verb: list[str]) -> None:
    (jobs / "jobs.swf").write_text(SWF.replace(" 99 ", " 3 "))
    window = ["--start", "0"] if verb[0] == "simulate" else ["--starts", "0"]
    told = "jobs.swf runs on the machine of scenario default: 256 processors, site synthetic"
    assert main([*verb, "--trace", "jobs.swf", *window, "--jobs", "3", "--out", "out"]) == 0
    assert f"{told}; scenario plain simulates the jobs only" in capsys.readouterr().out
    assert main([*verb, "--scenario", "plain", "--trace", "jobs.swf", *window, "--jobs", "3", "--out", "two"]) == 0
    assert "scenario default" not in capsys.readouterr().out


def test_all_missing_files_are_named_at_once(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("GREENBATCH_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["reproduce", "gas-marl"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    for file in ("swf/Cirne.swf.gz", "swf/Jann.swf.gz", "weather/gasmarl_windspeedS.csv.gz"):
        assert file in err.partition("run: greenbatch data fetch ")[2], file
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert "for gas-marl/cirne\n" in out
    assert "from derived" not in out


def test_windows_by_name_belong_to_train(capsys) -> None:
    assert main(["compare", "--windows", "held-out", "--out", "x"]) == 2
    assert "greenbatch train" in capsys.readouterr().err


def killed_jobs(folder: Path, requested_s: list[int]) -> list[str]:
    """Write jobs of an hour with these requested times as a table; the words that select them."""
    rows = [f"{600 * k},3600,4,{requested}" for k, requested in enumerate(requested_s)]
    (folder / "jobs.csv").write_text("\n".join(["submit_s,run_time_s,processors,requested_time_s", *rows]) + "\n")
    return ["--scenario", "plain", "--trace", "jobs.csv", "--processors", "8"]


def test_many_killed_jobs_are_warned_about(jobs, capsys) -> None:
    told = "warning: 38% of the jobs are killed at their requested time, so waits"
    words = killed_jobs(jobs, [60, 120, 240, *[3600] * 5])
    assert main(["simulate", *words, "--scheduler", "fcfs", "--out", "one"]) == 0
    out = capsys.readouterr().out
    assert told in out
    assert "note: run time over the requested time (whole trace): 3, first at line 2" in out
    compared = ["--schedulers", "fcfs,sjf", "--starts", "0,2", "--jobs", "6"]  # 3 and 1 of 6
    assert main(["compare", *words, *compared, "--out", "two"]) == 0
    assert capsys.readouterr().out.count("warning: 33% of the jobs are killed at their requested time under fcfs") == 1
    assert "33% of the jobs are killed at their requested time under fcfs" in (jobs / "two" / "report.html").read_text()


def test_a_quarter_of_killed_jobs_is_only_noted(jobs, capsys) -> None:
    words = killed_jobs(jobs, [60, 120, *[3600] * 6])
    assert main(["simulate", *words, "--scheduler", "fcfs", "--out", "one"]) == 0
    assert main(["compare", *words, "--schedulers", "fcfs,sjf", "--whole", "--out", "two"]) == 0
    out = capsys.readouterr().out
    assert "are killed" not in out
    assert out.count("note: run time over the requested time (whole trace): 2") == 2
