"""compare --sweep: the same comparison for several values of a key of the scenario."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import polars
import pytest

import greenbatch as gb
from greenbatch.cli import main
from greenbatch.cli.compare_sweep import naming_the_flag
from greenbatch.experiments.reports.notes import with_values
from greenbatch.experiments.reports.sweep_lines import axis_of
from greenbatch.experiments.running.cells import Question
from greenbatch.experiments.running.sweep import read_setting
from greenbatch.notes import Note

FILES = ["provenance.json", "report.html", "results.parquet", "table.md", "table.tex"]
GIVEN = ["--schedulers", "fcfs+easy,f2+green", "--starts", "0,5", "--jobs", "15"]


def compare(*arguments: str, out: str = "out") -> int:
    return main(["compare", "--scenario", "small.toml", "--out", out, *GIVEN, *arguments])


def rows(folder: Path, value: object) -> polars.DataFrame:
    frame = polars.read_parquet(folder / "results.parquet")
    return frame.filter(frame[frame.columns[0]] == value).drop(frame.columns[0])


def test_every_value_is_the_comparison_of_that_scenario(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--sweep", "forecast.sigma=0,0.8") == 0
    assert sorted(file.name for file in (small / "out").iterdir()) == FILES
    said = capsys.readouterr().out
    assert "Renewable utilization [%] by site.forecast.sigma" in said
    frame = polars.read_parquet(small / "out" / "results.parquet")
    assert frame.columns == ["site.forecast.sigma", "window", "scheduler", "metric", "value"]
    assert frame["site.forecast.sigma"].unique(maintain_order=True).to_list() == [0.0, 0.8]
    assert compare(out="plain") == 0
    plain = polars.read_parquet(small / "plain" / "results.parquet")
    assert rows(small / "out", 0.0).equals(plain)
    with (small / "small.toml").open("a") as file:
        file.write("[site.forecast]\nsigma = 0.8\n")
    assert compare(out="erring") == 0
    assert rows(small / "out", 0.8).equals(polars.read_parquet(small / "erring" / "results.parquet"))
    record = json.loads((small / "out" / "provenance.json").read_text())
    assert record["settings"]["sweep"] == {"key": "site.forecast.sigma", "values": {"0": 0, "0.8": 0.8}}
    assert record["scenario"]["0.8"]["site"]["forecast"]["sigma"] == 0.8


def test_any_key_can_be_swept_also_one_of_words(small: Path) -> None:
    assert compare("--sweep", "forecast.kind=perfect,persistence") == 0
    frame = polars.read_parquet(small / "out" / "results.parquet")
    assert frame["site.forecast.kind"].unique(maintain_order=True).to_list() == ["perfect", "persistence"]
    assert compare("--sweep", "site.rated_w=1000,20000", out="area") == 0
    used = [
        polars.DataFrame(rows(small / "area", area)).filter(metric="renewable_utilization")["value"].mean()
        for area in (1000.0, 20000.0)
    ]
    assert used[0] != used[1]
    assert compare("--sweep", "cluster.processors=256,512", out="size") == 0


def test_what_is_found_what_stays_and_how_far_to_trust_it(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Per scheduler the change of its figures, what stays, one window, one seed; also in the page."""
    with (small / "small.toml").open("a") as file:
        file.write("[site.forecast]\nbias = 0.1\n")
    flags = ["--sweep", "forecast.sigma=0.8,0", "--starts", "0"]
    assert main(["compare", "--scenario", "small.toml", "--out", "out", *GIVEN[:2], "--jobs", "15", *flags]) == 0
    told, page = capsys.readouterr(), unescape((small / "out" / "report.html").read_text())
    said = " ".join((told.out + told.err).split())
    for line in (
        "fcfs+easy: unchanged from site.forecast.sigma = 0 to 0.8.",
        "For all values, site.forecast has kind = error, bias = 0.1, correlation_h = 12.0, seed = 0.",
        "These changes are those of one window of jobs and one seed of the forecast's error: others may differ.",
    ):
        assert line in said
        assert line in page
    assert "error of the forecast a day ahead, sigma" in axis_of("site.forecast.sigma")
    assert axis_of("site.base_load_w") == "site.base_load_w [W]"


def test_a_key_without_effect_is_said(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (small / "small.toml").open("a") as file:
        file.write('[site.forecast]\nkind = "persistence"\n')
    assert compare("--sweep", "forecast.sigma=0,0.8") == 0
    told = capsys.readouterr()
    line = "site.forecast.sigma has no effect with site.forecast.kind = persistence: all values give the same figures"
    assert line in " ".join((told.out + told.err).split())
    assert compare("--sweep", "forecast.kind=persistence,error", out="kinds") == 0
    assert "has no effect" not in capsys.readouterr().err


def test_data_notes_and_the_record_are_shown_once(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a plain comparison of the first value says of the file and of recorded waits."""
    flags = ["compare", "--scenario", "small.toml", *GIVEN, "--trace", "late.swf"]
    trace = "; MaxProcs: 256\n" + "".join(
        f"{k} {60 * k} {7200 if k else 0} 600 4 -1 -1 4 900 -1 1 1 1 1 1 1 -1 -1\n" for k in range(1, 31)
    ) + "31 3000 0 -1 4 -1 -1 4 900 -1 5 1 1 1 1 1 -1 -1\n"  # fmt: skip
    (small / "late.swf").write_text(trace)
    assert main([*flags, "--out", "plain"]) == 0
    wanted = "\n".join(capsys.readouterr()).splitlines()
    assert any("recorded mean wait" in line for line in wanted)
    assert any("dropped" in line for line in wanted)
    assert main([*flags, "--out", "out", "--sweep", "forecast.sigma=0,0.8"]) == 0
    said = "\n".join(capsys.readouterr()).splitlines()
    for line in wanted:
        if "recorded mean wait" in line or "dropped" in line:
            assert said.count(line) == 1
    page = unescape((small / "out" / "report.html").read_text())
    assert page.count("recorded mean wait 2.00 h") == 1
    assert "dropped" in page


def test_warnings_name_the_values_that_they_are_about() -> None:
    both, one, three = map(Note, ("both", "one", "three"))
    told = with_values("a.b", {"1": [both, one], "2": [both], "3": [both, three, one]})
    assert [note.what for note in told] == ["both", "a.b = 1, 3: one", "a.b = 3: three"]


def test_json(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--scenario", "small.toml", *GIVEN, "--sweep", "forecast.bias=0,1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["key"] == "site.forecast.bias"
    assert list(found["values"]) == ["0", "1"]
    assert found["values"]["1"]["starts"] == [0, 5]


def test_a_sweep_interrupted_in_its_first_value_says_that_nothing_is_kept(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopping(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Question, "simulated", stopping)
    assert compare("--sweep", "forecast.sigma=0,0.4") == 130
    last = "greenbatch: interrupted; no value is finished, nothing is kept; repeat the command"
    assert capsys.readouterr().err.splitlines()[-1] == last
    assert not (small / "out").exists()


def test_an_interrupted_sweep_resumes(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second of three values: what is finished is written, and the same files result in the end."""
    flags = ["--sweep", "forecast.sigma=0,0.4,0.8", "--workers", "1"]
    assert compare(*flags, out="whole") == 0
    real, calls = Question.simulated, []

    def stopping(*given: object) -> object:
        calls.append(given)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(Question, "simulated", stopping)
    assert compare(*flags) == 130
    partial = polars.read_parquet(small / "out" / "results.parquet")
    assert partial["site.forecast.sigma"].unique(maintain_order=True).to_list() == [0.0, 0.4]
    assert "3 of 6 windows of all values" in (small / "out" / "table.md").read_text()
    calls.clear()
    monkeypatch.setattr(Question, "simulated", lambda *given: calls.append(given) or real(*given))
    assert compare(*flags, "--resume") == 0
    assert len(calls) == 4  # the first window, for the example, and what was missing
    for file in ("results.parquet", "table.md", "table.tex"):
        assert (small / "out" / file).read_bytes() == (small / "whole" / file).read_bytes(), file


@pytest.mark.drawn
def test_in_python_and_in_the_report(small: Path) -> None:
    given = {"starts": [0, 5], "jobs": 15, "workers": 1}
    made = gb.compare("small.toml", ["fcfs+easy", "f2+green"], **given, sweep={"forecast.sigma": [0, 0.8]})
    assert compare("--sweep", "forecast.sigma=0,0.8") == 0
    assert made.frame.equals(polars.read_parquet(small / "out" / "results.parquet"))
    page = (small / "out" / "report.html").read_text()
    assert page.count("<figure>") == 1 + 8, "the paths, and a panel for each figure of the main table"
    assert "against site.forecast.sigma" in page
    numbers = made.table().frame()
    assert numbers.columns == ["scheduler", "metric", "value", "mean", "low", "high", "windows"]
    assert numbers.height == 4
    assert "Renewable utilization [%] by site.forecast.sigma" in repr(made.table())
    assert [line.get_label() for line in made.plot("avg_wait_s").axes[0].get_lines()[:1]] == ["fcfs+easy"]
    assert "site.forecast.sigma" in repr(made)
    for wrong in (
        {},
        {"a": [1], "b": [2]},
        {"forecast.sigma": []},
        {"forecast.sigma": 0.2},
        {"forecast.sigma": [-1]},
        {"forecast.sigma": [1, 1]},
    ):
        with pytest.raises(gb.InputError) as refused:
            gb.compare("small.toml", sweep=wrong)
        assert "--sweep" not in str(refused.value)
    with pytest.raises(gb.InputError, match="already loaded"):
        gb.compare(gb.load_scenario("small.toml"), sweep={"forecast.sigma": [0]})
    with pytest.raises(gb.InputError, match="there is no figure of 'wait'"):
        made.plot("wait")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forecast.sigma", "--sweep: is 'forecast.sigma' (give KEY=VALUE,VALUE"),
        ("=1,2", "--sweep: is '=1,2'"),
        ("forecast.sigma=1,,2", "--sweep: is 'forecast.sigma=1,,2'"),
        ("forecast.sigma=1,1", "--sweep: names the value 1 twice"),
        ("forecast.sigma=0,-1", "--sweep: site.forecast.sigma=-1: is -1"),
        ("forecast.sigma=0,nan", "--sweep: site.forecast.sigma=nan: is nan"),
        ("forecast.sigma=0,much", "--sweep: site.forecast.sigma=much: is 'much'"),
        ("forecast.correlation_h=0", "--sweep: site.forecast.correlation_h=0: is 0"),
        ("forecast.kind=perfect,guessed", "--sweep: site.forecast.kind=guessed: is 'guessed'"),
        ("site.areas=1,2", "--sweep: site.areas=1: unknown key"),
        ("site.wave.power_w=1,2", "--sweep: site.wave.power_w=1: site.wave: unknown key"),
        ("forecast.sigma=0,0.0", "--sweep: names one value twice, 0 and 0.0"),
        ("evaluation.jobs=5,6", "--sweep: evaluation.jobs cannot be swept, it is the same for all values"),
    ],
)
def test_a_bad_sweep_is_one_line(small: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    assert compare("--sweep", text) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert said.count("\n") == 0
    assert not (small / "out").exists()


def test_an_error_raised_while_building_names_the_flag() -> None:
    """Some name a field without its table."""
    chosen = read_setting("workload.time_zone=UTC,Mars")
    with (
        pytest.raises(gb.InputError, match=r"--sweep: workload\.time_zone=Mars: is no zone"),
        naming_the_flag(chosen, "Mars"),
    ):
        raise gb.InputError("is no zone", field="time_zone")


def test_a_sweep_is_not_resumed_with_other_values(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--sweep", "forecast.sigma=0,0.4") == 0
    capsys.readouterr()
    assert compare("--sweep", "forecast.sigma=0,0.5", "--resume") == 2
    assert "contains a different comparison; settings.sweep" in capsys.readouterr().err
    assert compare("--resume") == 2
