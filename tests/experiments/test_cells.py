"""What a cell of a comparison or a sweep counts, and which cells are simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import greenbatch as gb
from by_files import scenario
from greenbatch.experiments.running.compare import compare
from greenbatch.experiments.running.sweep import setting, sweep

pytestmark = pytest.mark.plain

DAY_S = 86_400
JOBS = """submit_s run_time_s processors group
0 100 1 a
10 100 1 b
{later} 100 1 a"""
NODES = """
[workload]
file = "jobs.csv"
unix_start_s = 0
[cluster]
file = "{0}.toml"
[evaluation]
schedulers = ["fcfs"]
jobs = "all"
starts = [0]
"""


def kinds(comparison: gb.Comparison) -> dict[str, set[str]]:
    """By what jobs are divided, and the parts."""
    frame = comparison.breakdown
    return {by: {*frame.filter(by=by)["part"]} for by in frame["by"].unique()}


def test_a_sweep_counts_the_nodes_of_each_machine_and_the_accounts_of_each_workload(tmp_path: Path) -> None:
    """The machines share their jobs, and the workloads their machine."""
    made = {}
    for name in ("thin", "fat"):
        groups = "".join(
            f'[[groups]]\nname = "{name}{k}"\ncount = 1\nprocessors = 2\nstatic_power_w = 1\n' for k in (1, 2)
        )
        (tmp_path / f"{name}.toml").write_text(groups)
        made[name] = scenario(tmp_path, JOBS.format(later=20).replace(" a", f" {name}"), NODES.format(name))
    thin, fat = made.values()
    cases = {"0": thin, "1": replace(thin, cluster=fat.cluster), "2": replace(fat, cluster=thin.cluster)}
    swept = sweep(setting("site.base_load_w", [0, 1, 2]), cases, ["fcfs"], [0], 3, "fcfs", workers=1)
    for text, machine, account in (("0", "thin", "thin"), ("1", "fat", "thin"), ("2", "thin", "fat")):
        found = kinds(swept.comparisons[text])
        assert {part for part in found["node group"] if part[-1].isdigit()} == {f"{machine}1", f"{machine}2"}
        assert {"b", account} <= found["account"]
        assert ({"thin", "fat"} - {account}).isdisjoint(found["account"])


@pytest.mark.parametrize(("jobs", "by"), [(3, {"account", "month"}), (2, {"account"})])
def test_months_are_those_of_runs_of_the_whole_trace(tmp_path: Path, jobs: int, by: set[str]) -> None:
    made = scenario(
        tmp_path,
        JOBS.format(later=40 * DAY_S),
        '[workload]\nfile = "jobs.csv"\nunix_start_s = 0\n[cluster]\nprocessors = 2\n',
    )
    assert {*kinds(gb.compare(made, ["fcfs"], starts=[0], jobs=jobs, workers=1))} == by


def test_the_first_window_is_simulated_again_and_is_not_counted_as_finished_before(tmp_path: Path) -> None:
    made = scenario(tmp_path, JOBS.format(later=20), "[cluster]\nprocessors = 2\n")
    kept, told = {}, []
    compare(made, ["fcfs"], [0, 1, 2], 1, "fcfs", workers=1, keep=kept.__setitem__)
    again = {}
    compare(
        made, ["fcfs"], [0, 1, 2], 1, "fcfs", lambda what, done, total: told.append((what, done, total)), workers=1,
        finished={cell: each for cell, each in kept.items() if cell.start < 2}, keep=again.__setitem__,
    )  # fmt: skip
    assert [cell.start for cell in again] == [0, 2]
    assert [(done, total) for _, done, total in told] == [(1, 3), (2, 3)]
