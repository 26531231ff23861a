"""An operator's dump of four partitions with GPUs, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest

import site_dump
from greenbatch.cli import main
from greenbatch.experiments.running.finished import finished_windows
from greenbatch.experiments.running.frames import breakdown, tidy, with_breakdown
from greenbatch.metrics.breakdown import part_metric

DUMP = ("--scenario", "plain", "--trace", "dump.txt")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.txt").write_text(site_dump.dump(jobs=150))
    return tmp_path


def compare(*words: str, processors: int = site_dump.PROCESSORS, schedulers: str = "fcfs+easy,sjf+easy") -> int:
    return main(
        [
            "compare",
            *DUMP,
            "--processors",
            str(processors),
            "--schedulers",
            schedulers,
            "--whole",
            "--out",
            "out",
            *words,
        ]
    )


def test_the_record_beside_the_rules(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(schedulers="as-recorded,fcfs+easy") == 0
    out = capsys.readouterr().out
    table = out[out.index("Compared with the record") :]
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines() if line.startswith(("as-", "fcfs"))}
    assert rows["as-recorded"] == ["0.00", "0.00"]
    frame = polars.read_parquet(site / "out" / "results.parquet")
    values = {
        metric: frame.filter((polars.col("scheduler") == "fcfs+easy") & (polars.col("metric") == metric))["value"][0]
        for metric in ("median_wait_error_s", "p95_wait_error_s")
    }
    assert values["p95_wait_error_s"] > 600
    assert round(values["median_wait_error_s"]) == 0, "as for the record, so that it is no column"
    assert rows["fcfs+easy"][0] == f"{values['p95_wait_error_s'] / 3600:.2f}"
    for file in ("report.html", "table.md", "table.tex"):
        assert "Compared with the record" in (site / "out" / file).read_text(), file
    assert "do not fit" not in out


def test_without_the_record_and_without_outages_neither_is_told(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare() == 0
    out, report = capsys.readouterr().out, (site / "out" / "report.html").read_text()
    assert "Compared with the record" not in out
    assert "Compared with the record" not in report
    assert "the record shows" not in out
    assert "Outages that the record shows" not in report


def test_a_record_that_does_not_fit_is_never_silent(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(processors=130, schedulers="fcfs+easy,as-recorded") == 0
    told = "of 150 jobs do not fit at their recorded start and start "
    assert told in " ".join(capsys.readouterr().out.split())
    assert told in (site / "out" / "report.html").read_text()
    words = ["--processors", "130", "--scheduler", "as-recorded", "--out", "two"]
    assert main(["simulate", *DUMP, *words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    late = json.loads((site / "two" / "metrics.json").read_text())["late_starts"]
    assert late > 0
    assert f"as-recorded: {late:.0f} {told}" in out


def test_a_trace_without_starts_is_one_line(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (f"{k} {k} -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n" for k in range(1, 9))
    (site / "dump.txt").write_text("; MaxProcs: 8\n" + "".join(lines))
    assert compare(schedulers="as-recorded,fcfs") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "the trace dump records no waits (use a trace with starts" in err
    assert not (site / "out").exists()


@pytest.mark.drawn
def test_who_gains_by_partition_is_on_the_first_screen(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(processors=150, schedulers="fcfs+easy,sjf+easy") == 0
    out = capsys.readouterr().out
    assert "jobs of 4 partitions run on one pool of processors: 150" in out
    assert "Who gains and who waits: mean wait by partition" in out
    report = (site / "out" / "report.html").read_text()
    gains = report.index("Who gains and who waits: mean wait by partition")
    assert report.index('id="results"') < gains < report.index("<summary><h2")  # before all that is folded
    assert report.count("jobs of 4 partitions run on one pool of processors: 150") == 2, "note, provenance"
    for title in ("Work by partition", "Bounded slowdown by account", "Wait, 95th percentile by user"):
        assert title in report
    sheet = polars.read_csv(site / "out" / "breakdown.csv")
    assert sheet.columns[:5] == ["by", "part", "scheduler", "jobs", "avg_wait_s"]
    debug = sheet.filter((polars.col("by") == "partition") & (polars.col("part") == "debug"))
    waits = dict(debug.select("scheduler", "avg_wait_s").iter_rows())
    assert waits["sjf+easy"] < waits["fcfs+easy"], "jobs of the debug partition are short"
    row = report[report.index(">debug<") :]
    assert row.index(f">{waits['sjf+easy'] / 3600:.2f}<") < row.index("</tr>")
    assert "sjf+easy: shorter for " in report


def test_the_breakdown_of_one_run_and_of_json(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--processors", "150", "--scheduler", "fcfs+easy", "--out", "one"]
    assert main(["simulate", *DUMP, *words]) == 0
    found = json.loads((site / "one" / "metrics.json").read_text())["by"]
    assert set(found["partition"]) == set(site_dump.PARTITIONS)
    capsys.readouterr()
    given = ["--processors", "150", "--schedulers", "fcfs+easy,fcfs", "--whole", "--json"]
    assert main(["compare", *DUMP, *given]) == 0
    every = json.loads(capsys.readouterr().out)["by"]
    assert every["partition"]["gpu"]["fcfs+easy"] == found["partition"]["gpu"]
    assert set(every["account"]) == {"group0", "group1", "group2", "group3"}


def test_a_comparison_with_parts_can_be_resumed(site: Path) -> None:
    given = ["compare", *DUMP, "--processors", "150", "--schedulers", "fcfs+easy,sjf+easy", "--starts", "0,50,90",
             "--jobs", "50", "--out", "out"]  # fmt: skip
    assert main(given) == 0
    whole = polars.read_parquet(site / "out" / "results.parquet")
    record = json.loads((site / "out" / "provenance.json").read_text())
    found = finished_windows(site / "out", record)
    assert list(found) == [0, 50, 90]
    figure = part_metric("avg_wait_s", "partition", "gpu")
    rows = whole.filter((polars.col("metric") == figure) & (polars.col("scheduler") == "sjf+easy"))
    assert [metrics["sjf+easy"][figure] for metrics in found.values()] == rows["value"].to_list()
    assert (
        with_breakdown(tidy(found.items()), breakdown(found.items()))
        .sort(whole.columns[:3])
        .equals(whole.sort(whole.columns[:3]))
    )


def test_outages_that_the_record_shows_are_listed(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "dump.txt").write_text(site_dump.dump(jobs=500, outage=(40.0, 52.0)))
    assert compare() == 0
    assert "note: the record shows that nothing ran once, for " in capsys.readouterr().out
    report = (site / "out" / "report.html").read_text()
    assert "Outages that the record shows" in report
    row = report[report.index(">day 1.") :]
    assert row.index(">day 2.1") < row.index(">whole machine<") < row.index("</tr>"), "the dump states no time zone"


def test_savings_with_and_without_the_outages_of_the_record(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--outages") == 2
    assert "--outages: the record shows no outages" in capsys.readouterr().err
    (site / "dump.txt").write_text(site_dump.dump(jobs=250, outage=(20.0, 32.0)))
    assert compare("--outages") == 0
    found = polars.read_parquet(site / "out" / "results.parquet")
    waits = dict(found.filter(polars.col("metric") == "avg_wait_s").select("scheduler", "value").iter_rows())
    names = [name for name in waits if not name.endswith("with outages")]
    assert len(waits) == 2 * len(names)
    assert all(waits[f"{name} with outages"] > waits[name] for name in names)
    title = f"Differences to {names[0]}, all with the outages"
    assert title in (site / "out" / "report.html").read_text()
    assert title in (site / "out" / "table.md").read_text()
    assert title.split(",", maxsplit=1)[0] in " ".join(capsys.readouterr().out.split())
    assert compare("--outages", "--resume") == 0
    assert compare("--resume") == 2, "a comparison without outages is a different one"
