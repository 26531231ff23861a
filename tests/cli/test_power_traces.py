"""Traces with measured power through the command line: jobs, notes and energy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greenbatch.cli import main
from power_trace_files import fdata, pm100, written

MEASURED = """\
name = "measured"
[workload]
file = "FILE"
[cluster]
processors = PROCESSORS
idle_power_per_machine_w = 0
[site]
kind = "synthetic"
"""
CASES = {
    "pm100": (lambda: pm100(60), "job_table.parquet", 980 * 128, "power from the mean of the samples"),
    "fdata": (lambda: fdata(60, embedded=3), "23_06.parquet", 158_976 * 48, "power from avgpcon as that of the whole"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_energy_simulated_is_the_energy_measured(tmp_path: Path, monkeypatch, case: str) -> None:
    make, name, processors, note = CASES[case]
    monkeypatch.chdir(tmp_path)
    frame = make()
    written(frame, Path(name))
    text = MEASURED.replace("FILE", name).replace("PROCESSORS", str(processors))
    Path("measured.toml").write_text(text)
    assert main(["simulate", "--scenario", "measured.toml", "--scheduler", "fcfs+easy", "--out", "out"]) == 0
    assert any(told.startswith(note) for told in json.loads(Path("out/provenance.json").read_text())["notes"])
    if case == "pm100":
        energy_wh = (frame["node_power_consumption"].list.mean() * frame["run_time"]).sum() / 3600
    else:
        energy_wh = frame["econ"].sum()
    metrics = json.loads(Path("out/metrics.json").read_text())
    assert metrics["energy_kwh"] == pytest.approx(energy_wh / 1000, rel=0.01)


def test_a_folder_of_months_is_one_trace(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fugaku").mkdir()
    for k in range(2):
        written(fdata(30, k, embedded=0), Path("fugaku") / f"23_0{k + 6}.parquet")
    words = ["--scenario", "plain", "--trace", "fugaku", "--processors", "999999", "--scheduler", "fcfs+easy"]
    assert main(["simulate", *words, "--out", "out"]) == 0
    assert "  Jobs                           60\n" in capsys.readouterr().out
    record = json.loads(Path("out/provenance.json").read_text())
    assert {"23_06.parquet", "23_07.parquet"} <= set(record["inputs"])
