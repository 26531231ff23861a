"""An operator's dump of four partitions with GPUs, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest

import site_dump
from greenbatch.cli import main

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
    assert rows["as-recorded"] == ["0.00", "0.00", "0.00", "0"]
    frame = polars.read_parquet(site / "out" / "results.parquet")
    values = {
        metric: frame.filter((polars.col("scheduler") == "fcfs+easy") & (polars.col("metric") == metric))["value"][0]
        for metric in ("median_wait_error_s", "p95_wait_error_s")
    }
    assert values["p95_wait_error_s"] > 600
    assert rows["fcfs+easy"][:2] == [f"{value / 3600:.2f}" for value in values.values()]
    for file in ("report.html", "table.md", "table.tex"):
        assert "Compared with the record" in (site / "out" / file).read_text(), file
    assert "do not fit" not in out


def test_without_the_record_there_is_no_such_table(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare() == 0
    assert "Compared with the record" not in capsys.readouterr().out
    assert "Compared with the record" not in (site / "out" / "report.html").read_text()


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
    assert f"as-recorded+none: {late:.0f} {told}" in out


def test_a_trace_without_starts_is_one_line(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (f"{k} {k} -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n" for k in range(1, 9))
    (site / "dump.txt").write_text("; MaxProcs: 8\n" + "".join(lines))
    assert compare(schedulers="as-recorded,fcfs") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "the trace dump records no waits (use a trace with starts" in err
    assert not (site / "out").exists()
