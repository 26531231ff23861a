"""The scenarios of InEPS on the command line: energy without a power supply, small numbers, nodes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from greenbatch.cli import main
from greenbatch.scenarios import load_scenario, shipped_names

INEPS = [name for name in shipped_names() if name.startswith("ineps/") and name != "ineps/green"]


@pytest.mark.compiled  # full windows
@pytest.mark.parametrize("name", INEPS)
def test_every_scenario_compares_the_rules_of_the_papers_figures(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    evaluation = load_scenario(name).evaluation
    pairs = {tuple(scheduler.split("+")[::2]) for scheduler in evaluation.schedulers}
    figures = {("fcfs", "high-gflops"), ("fcfs", "high-cores"), ("fcfs", "high-mem-bw")}
    assert figures <= pairs
    assert {job for job, _ in pairs - figures} == (set() if "adaptability" in name else {"smallest", "random"})
    blocking = {scheduler.split("+")[1] for scheduler in evaluation.schedulers}
    assert blocking == ({"none"} if "as-published" in name else {"first-fit"})
    assert evaluation.baseline == evaluation.schedulers[0 if "adaptability" in name else -1]

    assert main(["compare", "--scenario", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["baseline"] == evaluation.baseline
    for metrics in found["schedulers"].values():
        energy_kwh, makespan_s = metrics["energy_kwh"]["mean"], metrics["makespan_s"]["mean"]
        assert metrics["edp_js"]["mean"] == pytest.approx(energy_kwh * 3.6e6 * makespan_s)
        assert metrics["renewable_utilization"]["mean"] is None


@pytest.mark.compiled  # full windows
def test_the_table_has_energy_and_no_renewable_power(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["compare", "--scenario", "ineps/as-published", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    head = text.partition("────")[0]
    for word in ("Energy", "[kWh]", "EDP", "[MJ s]"):
        assert word in head
    assert "Who gains" not in text, "nobody waits"
    assert re.search(r"tie for the lowest energy, 0\.05814 kWh, 45% below random\+none\+random", text)
    assert re.search(r"has the lowest energy-delay product, 23\.02 MJ s", text)
    page = (tmp_path / "out" / "report.html").read_text()
    for out in (text, page):
        assert "enewable" not in out.replace("renewable_utilization", "")
    assert page.count("Energy-delay product") >= 2
    assert "Lowest energy" in page


def test_simulate_prints_energy_and_seconds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["simulate", "--scenario", "ineps/adaptability-compute", "--scheduler", "min-min"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert re.search(r"Makespan +1\d\d\.\d\d s\n", text)
    assert re.search(r"Mean wait +\d\.\d\d s\n", text)
    assert re.search(r"Energy, whole schedule +5\d\.\d\d Wh\n", text)
    assert re.search(r"Energy-delay product +2\d\.\d\d MJ s\n", text)


def test_the_list_of_schedulers_has_placements_and_words_for_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedulers"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"\n  low-power +Lowest power with all processors busy first", text)
    assert ":metric=energy " in text
    assert ":nodes=lowest " in text
