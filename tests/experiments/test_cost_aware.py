"""The study of cost-aware scheduling: its rows on small jobs, and the paper's figures, which are of other data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenbatch.cli import main
from greenbatch.experiments.papers import cost_aware, cost_aware_report, cost_aware_results
from greenbatch.experiments.papers import reproduce as printed
from greenbatch.experiments.papers.cost_aware import LESSONS, RULES, STUDY, Lessons
from greenbatch.experiments.papers.cost_aware_report import radar, rows_of
from greenbatch.experiments.papers.cost_aware_tables import (
    AIMS,
    BASE,
    OURS,
    change,
    figure_table,
    findings,
    our_tables,
    paper_tables,
    reached,
    rival_tables,
)
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.studies import select
from greenbatch.experiments.papers.study_results import Result
from tiny_study import SCENARIO, SITE

PRICES = """\
[site.grid]
time_zone = "UTC"
source_g_per_kwh = { solar = 41 }
[site.grid.price]
kind = "calendar"
unit = "USD/MWh"
periods = [
  {name = "day", value = 90, hours = ["08:00-20:00"]},
  {name = "night", value = 30, hours = ["20:00-08:00"]},
]
[site.grid.carbon]
kind = "constant"
value = 400
unit = "g/kWh"
"""
SEARCH = 60
"""Plans per search: the smallest budget."""


DATED = "[workload]\nunix_start_s = 1672531200\n[workload.generator]"
FEW = {"FCFS", "F2", "LPTPN", "cheapest-start:psi=2"}
"""Rules of most tests; those that search, or are compiled for long, have one test."""


@contextmanager
def small_study(folder: Path, columns: set[str]) -> Iterator[Path]:
    """The study on one small trace and some of its rules; agents are trained on another trace."""
    for seed, name in enumerate(("training", "test")):
        text = SCENARIO.format(name=name, seed=seed, processors=16, site=SITE + PRICES)
        text = (
            text.replace("[90, 100]", "[20, 60, 100]")
            .replace("[workload.generator]", DATED)
            .replace("jobs = 50", "jobs = 30")
        )
        (folder / f"{name}.toml").write_text(text)
    rules = tuple(
        replace(rule, policy=rule.policy.replace("=240", f"={SEARCH}")) for rule in RULES if rule.column in columns
    )
    study = replace(STUDY, traces={"Tiny": str(folder / "test.toml")}, usual_traces=("Tiny",))
    lessons = Lessons({"Tiny": str(folder / "training.toml")})
    with pytest.MonkeyPatch.context() as patch:
        for module in (cost_aware, cost_aware_results, cost_aware_report):
            for name, value in (("RULES", rules), ("STUDY", study), ("LESSONS", lessons)):
                patch.setattr(module, name, value, raising=False)
        yield folder


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    with small_study(tmp_path, FEW) as folder:
        yield folder


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The rules on the small trace, simulated once."""
    with small_study(tmp_path_factory.mktemp("study"), FEW):
        return simulated()


def simulated() -> Result:
    """The rules on the small trace."""
    (made,) = cost_aware_results.cost_aware_results(select(cost_aware.STUDY, windows="published"), workers=1)
    return made


def test_the_published_figures_are_the_printed_ones() -> None:
    """All 96, with the sums of their columns, which no single changed digit survives."""
    figures = published("cost-aware")
    assert len(figures) == 2 * 8 * 6
    tables = {(each["table"], each["trace"]) for each in figures}
    assert tables == {("Table 1", "F-DATA"), ("Table 2", "PM100")}
    sums: dict[tuple[str, str], float] = {}
    for each in figures:
        sums[each["table"], each["metric"]] = sums.get((each["table"], each["metric"]), 0.0) + float(each["value"])
    assert {metric: round(value, 3) for (table, metric), value in sums.items() if table == "Table 1"} == {
        "total_cost_eur": 7_851_655.62, "green_ratio_percent": 158.94, "cost_eur_per_kwh": 1.652,
        "avg_bounded_slowdown": 253.73, "avg_wait_h": 506.14, "makespan_h": 3973.08,
    }  # fmt: skip
    assert {metric: round(value, 3) for (table, metric), value in sums.items() if table == "Table 2"} == {
        "total_cost_eur": 9_257_558.69, "green_ratio_percent": 289.06, "cost_eur_per_kwh": 2.921,
        "avg_bounded_slowdown": 1431.39, "avg_wait_h": 3727.26, "makespan_h": 21306.38,
    }  # fmt: skip


def test_the_papers_figures_stand_in_tables_of_their_own_and_nowhere_else(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = simulated()
    first, second = paper_tables()
    assert all("Other data" in table.title and "not comparable" in table.notes[0] for table in (first, second))
    assert dict(first.rows)["Multi-Action RL"][0].text == "947928.48"
    assert [len(table.rows) for table in (first, second)] == [8, 8]
    own = our_tables(before.rows)
    assert not any("Other data" in table.title for table in own)
    assert all(not row["published"] for row in before.rows)

    changed = tiny / "cost-aware.csv"
    changed.write_text((printed.PUBLISHED / "cost-aware.csv").read_text().replace("947928.48", "1.00"))
    monkeypatch.setattr(printed, "PUBLISHED", tiny)
    assert dict(paper_tables()[0].rows)["Multi-Action RL"][0].text == "1.00"
    assert our_tables(before.rows) == own
    assert json.dumps(simulated().rows) == json.dumps(before.rows)


def test_differences_are_of_the_same_windows_and_so_are_their_intervals(result: Result) -> None:
    rows = result.rows
    for metric in ("horizon_cost", "horizon_brown_kwh", "avg_bounded_slowdown"):
        own, base = (
            np.array(next(row for row in rows if row["scheduler"] == name)["figures"][metric]["values"])
            for name in ("cheapest-start:psi=2+none", BASE)
        )
        at = change(rows, "cheapest-start:psi=2+none", metric)
        assert own.shape == base.shape == (1, 3)  # one rule, three windows
        assert at is not None
        assert at.mean == pytest.approx(np.mean(own - base))
        assert np.min(own - base) <= at.low <= at.mean <= at.high <= np.max(own - base)


def test_ratios_stand_beside_what_a_stretched_schedule_does_not_improve(result: Result) -> None:
    for narrow in (False, True):
        table = figure_table("Tiny", result.rows, narrow=narrow)
        headers = [header for header, *_ in table.columns]
        assert {"Green ratio", "Cost over the horizon", "Brown energy over the horizon", "Avg bounded slowdown",
                "Makespan over FCFS+easy"} <= set(headers)  # fmt: skip
        assert any("merely stretched" in note for note in table.notes)
    assert radar(result) is not None


def test_every_row_of_the_study_runs(tmp_path: Path) -> None:
    with small_study(tmp_path, {rule.column for rule in RULES} - FEW | {"FCFS"}):
        which = select(cost_aware.STUDY, windows="published")
        (made,) = cost_aware_results.cost_aware_results(which, starts=[20], workers=1)
    assert [row["scheduler"] for row in made.rows] == [
        "FCFS+none", "FCFS+easy", "GA+none", "GA+easy", "ACO+none", "ACO+easy", "GA with cost+easy",
        "ACO with cost+easy", "foresee+none", "cheapest-start for cost+none", "foresee for cost+none",
    ]  # fmt: skip
    assert all(row["figures"]["makespan_s"]["mean"] > 0 for row in made.rows)


def test_cost_over_the_horizon_is_what_imports_cost_hour_by_hour(result: Result) -> None:
    """Prices are 90 by day and 30 by night: the mean cost of a brown kWh lies between."""
    for row in result.rows:
        cost, brown = (np.array(row["figures"][metric]["values"]) for metric in ("horizon_cost", "horizon_brown_kwh"))
        assert ((0.03 * brown <= cost + 1e-9) & (cost <= 0.09 * brown + 1e-9)).all()


def test_what_is_unfinished_is_marked_and_no_finding(result: Result) -> None:
    rows = [dict(row) for row in result.rows]
    base = next(row for row in rows if row["scheduler"] == BASE)
    cheap = {**base["figures"], "horizon_cost": {**base["figures"]["horizon_cost"], "mean": 0.0},
             "horizon_unfinished_share": {"mean": 0.1, "low": None, "high": None, "values": [[0.1] * 3]}}  # fmt: skip
    rows.append({**base, "scheduler": "lazy+none", "figures": cheap})
    table = dict(figure_table("Tiny", rows).rows)
    assert table["lazy+none"][0].text.startswith("≥ ")
    assert not any(cell.text.startswith("≥") for cell in table[BASE])
    assert findings(rows)
    assert not any("lazy" in line for line in findings(rows))


def test_the_command_shows_and_writes_both(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tiny / "out"
    assert main(["reproduce", "cost-aware", "--starts", "20,60", "--workers", "1", "--out", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for part in ("Tiny: cost, green ratio and service", "2 windows of 30 jobs", "Other data: Table 1", "difference to"):
        assert part in shown
    assert shown.index("Tiny: cost") < shown.index("Other data")
    assert {"rows.json", "results.parquet", "table.md", "report.html", "provenance.json"} <= {
        file.name for file in out.iterdir()
    }
    assert "947928.48" not in (out / "rows.json").read_text()
    assert "radar-tiny" in (out / "report.html").read_text()
    assert main(["reproduce", "cost-aware", "--starts", "20,60", "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((out / "rows.json").read_text())


@pytest.mark.parametrize(
    ("words", "problem"),
    [(["--sigma", "1"], "--sigma: does not apply to cost-aware"),
     (["--traces", "KTH"], "--traces: 'KTH' is not known"),
     (["--starts", "155"], "155"),
     (["--seeds", "1"], "--seeds: for training only"),
     (["--train"], "--train: requires --out"),
     (["--train", "--out", "x", "--eta", "0.1"], "--eta: does not apply to cost-aware"),
     (["--train", "--out", "x", "--goals", "cost"], "--goals: does not apply to cost-aware"),
     (["--train", "--out", "x", "--windows", "held-out"], "--windows: does not apply to cost-aware"),
     (["--train", "--out", "x", "--presets", "gas-marl"], "--presets: 'gas-marl' is not known"),
     (["--train", "--out", "x", "--backfills", "green"], "--backfills: 'green' is not known"),
     (["--train", "--out", "x", "--starts", "1"], "--train: cannot be combined with --starts")],
)  # fmt: skip
def test_bad_flags_are_refused(
    tiny: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny)
    assert main(["reproduce", "cost-aware", *words]) == 2
    said = capsys.readouterr()
    assert problem in said.err
    assert not said.out
    assert not (tiny / "x").exists()


def test_the_shipped_study_trains_on_the_year_before() -> None:
    """Their jobs and prices are compared in tests/scenarios/test_cost_aware_scenarios.py."""
    assert set(STUDY.traces.values()) == {"cost-aware/hpc2n", "cost-aware/sdsc-blue"}
    assert LESSONS.traces == {trace: f"{name}-training" for trace, name in STUDY.traces.items()}


def test_rows_hold_every_figure_of_the_papers_tables(result: Result) -> None:
    for row in rows_of([result]):
        assert set(cost_aware.METRICS.values()) <= set(row["figures"])
        assert row["figures"]["makespan_s"]["mean"] > 0


FEW_STEPS = {
    "training.windows": 2, "training.jobs": 10, "training.passes": 1, "training.minibatch": 16,
    "training.validation.windows": 0,
}  # fmt: skip


@pytest.mark.usefixtures("undrawn")
def test_agents_are_trained_on_one_scenario_and_tested_on_the_other(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tiny / "runs"
    words = ["reproduce", "cost-aware", "--presets", "cost-aware,one-action", "--seeds", "0,1"]
    budget = ["--epochs", "1", "--threads", "1", "--set", *(f"{key}={value}" for key, value in FEW_STEPS.items())]
    assert main([*words, "--train", "--out", str(out), *budget]) == 0
    assert "One-Action+none" in " ".join(capsys.readouterr().out.split())
    rows = {row["scheduler"]: row for row in json.loads((out / "results" / "rows.json").read_text())}
    for name in ("Multi-Action RL+none", "Multi-Action RL+easy, trained with none", "One-Action+none"):
        values = np.array(rows[name]["figures"]["horizon_cost"]["values"])
        assert values.shape == (2, 3)  # seeds, windows
        assert rows[name]["agent"]["seeds"] == [0, 1]
    record = json.loads((out / "tiny/cost-aware_none/published/seed-0/model/model.json").read_text())
    assert record["training"]["scenario"] == "training"
    text = (out / "results" / "table.md").read_text()
    assert "Untrained masked agent+none" in text
    budgets = text.split("Tiny, published windows: training")[1].split("Other data")[0]
    assert "Untrained" not in budgets
    one = ["reproduce", "cost-aware", "--presets", "one-action", "--seeds", "0,1", "--trained", str(out), "--json"]
    assert main(one) == 0
    again = {row["scheduler"]: row for row in json.loads(capsys.readouterr().out)}
    assert again["One-Action+none"]["figures"] == rows["One-Action+none"]["figures"]


def test_a_folder_without_trainings_is_refused(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At once: nothing is simulated before."""
    place = tiny / "nothing"
    place.mkdir()
    words = ["reproduce", "cost-aware", "--presets", "no-cost-signal", "--seeds", "0", "--trained", str(place)]
    assert main(words) == 2
    told = capsys.readouterr()
    assert "nothing: --trained: has no finished training of what is selected (give the --out of a" in told.err
    assert not told.out


def _row(scheduler: str, column: str, scale: float, seeds: int, **changed: float) -> dict[str, Any]:
    """A row of six windows whose figures are `scale` times 1 to 6, of some seeds that agree."""
    values = [[scale * window for window in range(1, 7)]] * seeds
    figures = {metric: {"mean": 3.5 * scale, "values": values} for metric in ("horizon_cost", "horizon_brown_kwh",
               "makespan_s", "avg_bounded_slowdown", "renewable_utilization", "horizon_unfinished_share")}  # fmt: skip
    figures["horizon_unfinished_share"] = {"mean": 0.0, "values": [[0.0] * 6]}
    figures["renewable_utilization"] = {"mean": scale, "values": [[scale] * 6] * seeds}
    for metric, factor in changed.items():
        figures[metric] = {"mean": 3.5 * factor, "values": [[factor * window for window in range(1, 7)]] * seeds}
    return {"trace": "T", "scheduler": scheduler, "column": column, "figures": figures}


def test_our_agent_is_compared_with_every_other_scheduler_by_the_goals() -> None:
    """Closed forms: figures that are a factor of the other's in every window."""
    rows = [
        _row("F2+none", "F2", 0.5, 1, avg_bounded_slowdown=1.0, makespan_s=1.0),
        _row("plus+none", OURS, 0.495, 3, avg_bounded_slowdown=1.2, makespan_s=1.05, horizon_cost=0.45),
        _row("One-Action+none", "One-Action", 0.4, 3),
    ]
    (table,) = rival_tables(rows)
    assert [name for name, _ in table.rows] == ["F2+none", "One-Action+none"]
    cells = dict(table.rows)["F2+none"]
    assert [cell.text for cell in cells] == ["\u221210.0", "\u22121.0", "\u22120.5", "1.050", "1.200"]
    assert [cell.mark for cell in cells] == ["good", "good", "good", "good", "bad"]
    assert all(
        reached(aim, rows[1], rows[0])[1] == word
        for aim, word in zip(AIMS, ("met", "met", "met", "met", "missed"), strict=True)
    )
    other = dict(table.rows)["One-Action+none"]
    assert [cell.mark for cell in other] == ["bad", "bad", "good", "bad", "bad"]


def test_a_scheduler_that_leaves_work_at_the_horizon_is_not_compared_with() -> None:
    late = _row("LPTPN+none", "LPTPN", 1.0, 1)
    late["figures"]["horizon_unfinished_share"]["mean"] = 0.1
    assert rival_tables([late, _row("plus+none", OURS, 0.4, 1)]) == []
