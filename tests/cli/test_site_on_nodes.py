"""An operator's dump of four partitions with GPUs on the nodes of a ``slurm.conf``, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars
import pytest

import site_dump
from greenbatch.cli import main
from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.metrics import evaluate_parts, measure, parts_of
from greenbatch.metrics.breakdown import nested
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

WORDS = ("--scenario", "plain", "--cluster", "slurm.conf", "--trace", "dump.txt")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.txt").write_text(site_dump.dump(jobs=150))
    (tmp_path / "slurm.conf").write_text(site_dump.slurm_conf())
    return tmp_path


def test_who_gains_by_partition_under_the_sites_own_priorities(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = "as-recorded,fcfs+easy,slurm-multifactor+easy"
    assert main(["compare", *WORDS, "--schedulers", names, "--whole", "--out", "out"]) == 0
    out = capsys.readouterr().out
    assert "pool" not in out
    report = (site / "out" / "report.html").read_text()
    gains = report.index("Who gains and who waits: mean wait by partition")
    assert report.index('id="results"') < gains < report.index("<summary><h2")  # before all that is folded
    assert "Work by node group" in report
    sheet = polars.read_csv(site / "out" / "breakdown.csv").filter(polars.col("by") == "node group")
    jobs = dict(sheet.filter(polars.col("scheduler") == "fcfs+easy").select("part", "jobs").iter_rows())
    partitions = [line.split("|")[4] for line in (site / "dump.txt").read_text().splitlines()[1:]]
    assert {part.partition("[")[0]: count for part, count in jobs.items()} == {
        name: partitions.count(name) for name in site_dump.PARTITIONS
    }, "every job runs on the nodes of its partition"


@pytest.mark.parametrize(("supply", "is_told"), [('"synthetic"', True), ('"none"', False)])
def test_a_planner_that_is_left_out_on_nodes_is_named(
    supply: str, is_told: bool, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = "seed = 1\ndays = 30\nalign = 'trace-start'\nrepeat = true\n" if is_told else ""
    power = "[workload.power]\nkind = 'per-processor'\nseed = 1\nlow_w = 5\nhigh_w = 50\n"
    lines = f"name = 'ours'\nworkload.file = 'dump.txt'\n{power}[site]\nkind = {supply}\n{keys}"
    (site / "s.toml").write_text(lines)
    (site / "dump.txt").write_text(site_dump.dump(jobs=12))
    words = ["--scenario", "s.toml", "--cluster", "slurm.conf", "--whole", "--workers", "1"]
    site_of = ["--site", "s.toml", "--trace", "dump.txt", "--cluster", "slurm.conf", "--workers", "1"]
    for command in (
        ["compare", *words], ["compare", *words, "--sweep", "rules.ties=arrival_first"], ["whatif", *site_of],
    ):  # fmt: skip
        assert main([*command, "--out", "out", "--force"]) == 0
        said = capsys.readouterr()
        told = "note: foresee is not compared: it was searched on pools" in said.out + said.err
        assert told == is_told, command
    assert main(["compare", *words, "--schedulers", "fcfs+easy,sjf+easy", "--out", "out", "--force"]) == 0
    assert "is not compared" not in capsys.readouterr().out


def test_the_weights_are_those_of_the_slurm_conf(site: Path) -> None:
    for name in ("slurm-multifactor+easy", "fcfs+easy"):
        assert main(["simulate", *WORDS, "--scheduler", name, "--out", name]) == 0
    waits = {
        name: json.loads((site / name / "metrics.json").read_text())["avg_wait_s"]
        for name in ("slurm-multifactor+easy", "fcfs+easy")
    }
    assert waits["slurm-multifactor+easy"] != waits["fcfs+easy"]


def nodes(**groups: int) -> Cluster:
    return Cluster.of_nodes(tuple(
        NodeGroup(name=name, count=count, processors=4, static_power_w=0.0, partitions=(name,))
        for name, count in groups.items()
    ))  # fmt: skip


def jobs_of(**columns: list[float]) -> Workload:
    return Workload.from_columns("jobs", columns, names={"partition": {1: "a", 2: "b"}})


@pytest.mark.parametrize("name", ["fcfs", "fcfs+easy", "sjf+easy", "slurm-multifactor:fairshare=1000", "as-recorded",
                                  "slurm-multifactor:fairshare=1000:age=10+easy"])  # fmt: skip
def test_a_partition_does_not_wait_for_another(name: str) -> None:
    """Job 2 waits for its partition; jobs 3 and 4 of the other start meanwhile, and nobody is left to ask about."""
    jobs = jobs_of(submit_s=[0, 1, 2, 3], run_time_s=[10] * 4, processors=[4] * 4, partition=[1, 1, 2, 2],
                   user=[1, 1, 2, 2], recorded_wait_s=[0, 0, 0, 0])  # fmt: skip
    outcome = simulate(jobs, nodes(a=1, b=1), None, Rules(), scheduler(name))
    assert outcome.start_s.tolist() == [0, 10, 2, 12]


def test_jobs_by_the_group_of_their_first_node() -> None:
    jobs = jobs_of(submit_s=[0, 0, 0], run_time_s=[10] * 3, processors=[4] * 3, partition=[1, 2, 2])
    cluster = nodes(a=1, b=1)
    outcome = simulate(jobs, cluster, None, Rules(), scheduler("fcfs"))
    found = nested(evaluate_parts(measure(outcome), parts_of(jobs, cluster)))["node group"]
    assert [found[name]["jobs"] for name in "ab"] == [1, 2]
    assert [found[name]["avg_wait_s"] for name in "ab"] == [0, 5]
    assert np.isnan(found["a"]["energy_kwh"])
