"""The study of jobs with value: its settings, the published ranges, and what is computed beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenbatch.cli import main
from greenbatch.engine.simulate import simulate
from greenbatch.experiments.papers import reproduce as printed
from greenbatch.experiments.papers.rare import (
    BASE,
    BESIDE,
    HEURISTICS,
    READINGS,
    ROWS,
    SETTINGS,
    SHIPPED,
    STUDY,
    UNTRAINED,
    USUAL,
    USUAL_PRESETS,
    VALUE,
    selected,
)
from greenbatch.experiments.papers.rare_report import range_plot, rows_of
from greenbatch.experiments.papers.rare_results import rare_results, rule_entries, scenario_of
from greenbatch.experiments.papers.rare_tables import claim_table, claims, gain, range_text, setting_table
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.studies import KIND, select
from greenbatch.experiments.papers.study_results import Result
from greenbatch.experiments.papers.untrained import untrained_entry
from greenbatch.metrics import evaluate
from greenbatch.models.model import ACTOR, LARGEST_BYTES
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.regenerate import question
from greenbatch.schedulers import scheduler

SHORT = {"workload.generator.ticks": 100, "rules.pools.end_s": 100.0}


@pytest.fixture(autouse=True, scope="module")
def short() -> Iterator[None]:
    """Two settings of 100 ticks and few draws."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("10", "10-power80"):
            setting = SETTINGS[name]
            patch.setitem(SETTINGS, name, replace(setting, overrides={**setting.overrides, **SHORT}, draws=3))
        yield


@pytest.fixture(scope="module")
def played(short: None) -> list[Result]:
    return simulated()


def simulated(*names: str) -> list[Result]:
    """Rules and the shipped model at short settings."""
    which = select(STUDY, traces=names or ("10", "10-power80"), presets=USUAL_PRESETS, windows="published")
    return rare_results(which, workers=1)


# ---------------------------------------------------------------- data


def test_the_ends_of_the_published_ranges_are_in_their_sentences() -> None:
    ranges = published("rare")
    assert len(ranges) == len({each["claim"] for each in ranges}) == 21
    assert {each["claim"] for each in ranges} == set(READINGS)
    for each in ranges:
        numbers = set(re.findall(r"(\d+)%", each["sentence"]))
        assert {each["low"], each["high"]} - {"", "0"} <= numbers
        assert each["over"] == "heuristics" or set(each["over"].split()) <= set(HEURISTICS)
    assert sum(float(each["low"] or 0) for each in ranges) == 130
    assert sum(float(each["high"] or 0) for each in ranges) == 197


def test_every_setting_is_what_its_name_says() -> None:
    used = {name for reading in READINGS.values() for name in reading.settings}
    assert used <= set(SETTINGS)
    assert set(USUAL) <= set(SETTINGS)
    for name in sorted(used - {"1200", "100", "300"}):
        if SETTINGS[name].trace:
            continue
        scenario = scenario_of(name)
        cluster, pools = scenario.cluster, scenario.rules.pools
        assert cluster.powered is not None
        assert pools is not None
        assert cluster.processors == cluster.gpus == int(name.partition("-")[0])
        wanted = {key: int(number) for key, number in re.findall(r"(power|horizon|pool)(\d+)", name)}
        assert pools.horizon_s == wanted.get("horizon", 48)
        assert pools.ready == wanted.get("pool", 10) == pools.actions_per_tick - 2
        assert pools.suspends == ("power" if "suspending" in name else "never")
        lowest = cluster.capacity_levels.processors.min()
        assert lowest == round(cluster.processors * wanted.get("power", 100) / 100)


@pytest.mark.parametrize(("name", "size", "horizon"), [("sdsc-blue-30", 30, 48), ("sdsc-blue-horizon72", 10, 72)])
def test_a_trace_of_any_size_draws_the_power_of_the_same_site(
    name: str, size: int, horizon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = SETTINGS[name]
    monkeypatch.setitem(
        SETTINGS, name, replace(setting, overrides={**setting.overrides, "workload.to_pool.jobs": 200})
    )  # fmt: skip
    scenario = scenario_of(name)
    pools = scenario.rules.pools
    assert pools is not None
    assert scenario.cluster.processors == size
    assert pools.horizon_s == horizon * pools.tick_s
    full_w = scenario.cluster.idle_power_w + 2 * size * 120_000 / size
    assert full_w == pytest.approx(400_000.0)
    assert scenario.cluster.powered is not None
    assert scenario.cluster.capacity_levels.processors.max() == size


def test_a_figure_stands_for_its_settings() -> None:
    assert selected(None) is None
    assert selected(["10", "5.5"]) == (
        "10", "10-horizon36", "10-horizon72", "sdsc-blue-horizon36", "sdsc-blue-horizon72",
    )  # fmt: skip
    assert set(selected(["5.4"]) or ()) >= {"10", "10-power80-suspending", "50-power90", "300-fixed5"}


# ---------------------------------------------------------------- figures


def test_values_are_those_of_the_simulator_draw_by_draw(played: list[Result]) -> None:
    (first, second) = played
    assert first.starts == (100, 101, 102)
    scenario = scenario_of("10-power80")
    for name in ("sjf+none", "packer", SHIPPED):
        row = next(row for row in second.rows if row["scheduler"] == name)
        for draw, value in zip(second.starts, row["figures"][VALUE]["values"][0], strict=True):
            jobs, cluster = question(scenario, draw, 0)
            outcome = simulate(jobs, cluster, None, scenario.rules, scheduler(name))
            assert value == evaluate(outcome)[VALUE] == jobs.value[np.isfinite(outcome.end_s)].sum()


def test_no_figure_of_ours_depends_on_the_published_ones(
    played: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (claim, *_) = claims(rows_of(played))
    assert range_text(claim) == "18 to 25"
    changed = (printed.PUBLISHED / "rare.csv").read_text().replace("heuristics,18,25", "heuristics,1,2")
    (tmp_path / "rare.csv").write_text(changed)
    monkeypatch.setattr(printed, "PUBLISHED", tmp_path)
    (again, *_) = claims(rows_of(played))
    assert range_text(again) == "1 to 2"
    assert (again.over, again.beside) == (claim.over, claim.beside)
    assert json.dumps(rows_of(simulated("10"))) == json.dumps(rows_of(played[:1]))


def test_every_row_is_in_the_table_and_the_untrained_agent_is_said_to_be_one(played: list[Result]) -> None:
    table = setting_table("10", played[0].rows)
    names = [name for name, _ in table.rows]
    assert names[: len(ROWS)] == [row.scheduler for row in ROWS]
    assert names[len(ROWS) :] == ["Untrained masked agent"]
    assert any("before training" in note for note in table.notes)
    assert dict(table.rows)[BASE][1].text == "\u2013"
    assert [entry.label for entry in rule_entries()] == names[: len(ROWS)]


def _rows(name: str, **factors: float) -> list[dict[str, Any]]:
    """Rows of six draws whose values are factors of those of QoS; a keyword's ``_`` stands for the punctuation."""
    draws = np.array([100.0, 110.0, 90.0, 105.0, 95.0, 100.0])
    rows = []
    for row in ROWS:
        values = (factors.get(re.sub(r"\W", "_", row.scheduler), 1.0) * draws).tolist()
        figures = {VALUE: {"mean": float(np.mean(values)), "values": [values]}}
        who = {"trace": name, "scheduler": row.scheduler, "column": row.scheduler, "agent": None}
        rows.append({**who, "starts": list(range(6)), "figures": figures})
    return rows


def test_gains_are_ratios_on_the_same_draw() -> None:
    rows = _rows("50", rare_plus_10=1.04, packer=1.03, sjf_none=0.99)
    at = gain(rows, SHIPPED, BASE)
    assert at is not None
    assert (at.mean, at.low, at.high) == pytest.approx((4.0, 4.0, 4.0))
    (large, random, fifty) = claims(rows)
    assert large.rival in {"qos+none"}
    assert large.over.mean == pytest.approx(4.0)
    assert large.over_weakest == pytest.approx(100 * (1.04 / 0.99 - 1))
    assert large.beside[BESIDE[0]].mean == pytest.approx(3.0)
    assert (large.verdict, fifty.verdict) == ("met", "missed")  # 2 to 6 and 8 to 12
    assert (random.ours, random.verdict) == ("random-action", "met")  # equal, published: at most
    table = claim_table(rows)
    assert [cells[-1].mark for _, cells in table.rows] == ["best", "best", ""]
    picture = range_plot(claims(rows))
    assert picture is not None
    assert "published 2 to 6, ours 4.0" in picture.alt


def test_a_verdict_needs_the_whole_interval() -> None:
    rows = _rows("50", rare_plus_10=1.02)
    figure = next(row for row in rows if row["scheduler"] == SHIPPED)["figures"][VALUE]
    figure["values"] = [[value * factor for value, factor in
                         zip(figure["values"][0], (0.98, 1.02, 0.99, 1.01, 1.0, 1.0), strict=True)]]  # fmt: skip
    (large, *_) = claims(rows)
    assert large.over.low < 2.0 < large.over.high
    assert large.verdict == "within noise"


# ---------------------------------------------------------------- command


def test_the_command_shows_and_writes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["reproduce", "rare", "--traces", "10", "--starts", "100,101", "--workers", "1"]
    assert main([*words, "--out", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for part in ("The paper's claims", "18 to 25", "10: 10 processors and GPUs", "2 draws of jobs", "Can it hold"):
        assert part in shown
    assert {"rows.json", "results.parquet", "table.md", "report.html", "provenance.json"} <= {
        file.name for file in out.iterdir()
    }
    page = (out / "report.html").read_text()
    assert "published-ranges" in page
    assert "unstated" in page
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((out / "rows.json").read_text())


@pytest.mark.parametrize("name", ["50", "100", "100-fixed5", "300", "300-fixed5", "1200"])
def test_the_network_before_training_is_one_that_a_model_may_have(name: str, tmp_path: Path) -> None:
    """No buffer is needed for it: that of 100 processors and GPUs would take more memory than it may."""
    setting = SETTINGS[name]
    scenario = load_scenario(setting.scenario, overrides={**setting.overrides, **SHORT})
    entry = untrained_entry(STUDY, "rare", name, scenario, tmp_path, label=UNTRAINED, kind=KIND, reason="")
    assert entry.cell is not None
    assert "network.size" in entry.cell.overrides or name == "50"
    assert (tmp_path / "model" / ACTOR).stat().st_size <= LARGEST_BYTES


@pytest.mark.usefixtures("undrawn")
def test_a_large_machine_is_played_with_the_network_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = SETTINGS["100"]
    monkeypatch.setitem(SETTINGS, "100", replace(setting, overrides={**setting.overrides, **SHORT}))
    out = tmp_path / "out"
    assert main(["reproduce", "rare", "--traces", "100", "--starts", "100", "--workers", "1", "--out", str(out)]) == 0
    capsys.readouterr()
    rows = json.loads((out / "rows.json").read_text())
    assert UNTRAINED in {row["scheduler"].partition("+")[0] for row in rows}


@pytest.mark.parametrize(
    ("words", "problem"),
    [(["--sigma", "1"], "--sigma: does not apply to rare"),
     (["--traces", "11"], "--traces: '11' is not known"),
     (["--seeds", "1"], "--seeds: for training only"),
     (["--train", "--out", "x", "--eta", "0.1"], "--eta: does not apply to rare"),
     (["--train", "--out", "x", "--backfills", "none"], "--backfills: does not apply to rare"),
     (["--train", "--out", "x", "--presets", "gas-marl"], "--presets: 'gas-marl' is not known"),
     (["--trained", "."], "--trained: has no finished training of what is selected")],
)  # fmt: skip
def test_bad_flags_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "rare", *words]) == 2
    said = capsys.readouterr()
    assert problem in said.err
    assert not said.out
    assert not (tmp_path / "x").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_search_at_a_setting_stands_for_the_papers_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs"
    words = ["reproduce", "rare", "--traces", "10-power80", "--seeds", "0,1"]
    few = ["--epochs", "2", "--threads", "1", "--set", "training.windows=2", "training.search.population=4"]
    assert main([*words, "--train", "--out", str(out), *few]) == 0
    assert "RARE plus+none" in " ".join(capsys.readouterr().out.split())
    rows = json.loads((out / "results" / "rows.json").read_text())
    row = next(row for row in rows if row["scheduler"] == "RARE plus+none")
    assert np.array(row["figures"][VALUE]["values"]).shape == (2, 3)  # seeds, draws
    record = json.loads((out / "10-power80/rare-plus_none/published/seed-0/model/model.json").read_text())
    assert record["provenance"]["scenario"]["cluster"]["capacity"]["level"] == 0.8
    (claim,) = claims(rows)
    assert claim.ours == "RARE plus+none"
    assert "10-power80, published windows: training" in (out / "results" / "table.md").read_text()
    assert main([*words, "--trained", str(out), "--json"]) == 0
    again = {row["scheduler"]: row for row in json.loads(capsys.readouterr().out)}
    assert again["RARE plus+none"]["figures"] == row["figures"]
