"""The study ``offline``: datasets, claims, agreement with rules, and online decisions until a value is reached."""

# ruff: noqa: RUF001 - typographic dashes and minus signs are those of the tables.

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenbatch.cli import main
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.experiments.papers.cocorl import HEURISTICS, STRICT
from greenbatch.experiments.papers.offline import (
    LEARNERS,
    METHODS,
    MIXES,
    RULES,
    SETTINGS,
    USUAL_PRESETS,
    VALUE,
    Learner,
    study_of,
    training_changes,
)
from greenbatch.experiments.papers.offline_agreement import Pupil, agreements, rollout, with_dataset
from greenbatch.experiments.papers.offline_claims import (
    claim_findings,
    claim_table,
    claims,
    recommendation_tables,
    verdict_of,
)
from greenbatch.experiments.papers.offline_curves import Curve, curve_from, reach, reached
from greenbatch.experiments.papers.offline_learning import agreement_tables, curve_plot, reaches, steps_table
from greenbatch.experiments.papers.offline_report import all_lines, all_tables, findings, rows_of, write_offline
from greenbatch.experiments.papers.offline_results import UNTRAINED, offline_results, scenario_of
from greenbatch.experiments.papers.offline_tables import dataset_table, mixed_value, setting_tables
from greenbatch.experiments.papers.reproduce import published
from greenbatch.experiments.papers.studies import Budget, Selection, cells_of, plan_of, select, train_missing
from greenbatch.experiments.running.statistics import Interval
from greenbatch.metrics import evaluate
from greenbatch.presets.preset import preset
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.regenerate import drawn
from greenbatch.schedulers import scheduler

SHORT = {"workload.generator.ticks": 150, "rules.pools.end_s": 150.0}
TINY = Budget(epochs=3, threads=1, overrides={
    "training.windows": 1, "training.episode_s": 150.0, "training.jobs": 90,
    "training.validation": {"windows": 2, "jobs": 90, "every": 1}, "training.off_policy.steps": 2,
    "training.off_policy.batch": 32, "training.off_policy.buffer": 20_000,
})  # fmt: skip
OF_DATA = {"training.off_policy.fill_windows": 4}
DRAWS = (100, 101, 102)


# ---------------------------------------------------------------- what is trained on what


@pytest.mark.parametrize("size", SETTINGS)
def test_every_size_has_its_machine_its_load_and_other_jobs_in_training(size: str) -> None:
    setting, overrides = SETTINGS[size], dict(SETTINGS[size].overrides)
    test = load_scenario(setting.scenario, overrides=overrides)
    short = {**overrides, "workload.generator.ticks": 3000}
    training = load_scenario(f"{setting.scenario}-training", overrides=short)
    for scenario, ticks in ((test, 2000), (training, 3000)):
        assert scenario.cluster.processors == scenario.cluster.gpus == int(size)
        offered = scenario.workload.processors @ scenario.workload.run_time_s
        assert 1.02 < offered / (int(size) * ticks) < 1.38
        assert scenario.rules.pools.largest_request == int(size) // 2
    assert test.rules.pools.end_s == 2000.0
    assert training.rules.pools.end_s == 0.0
    assert not np.array_equal(test.workload.run_time_s[:50], training.workload.run_time_s[:50])


def test_mixes_are_shares_of_rules_that_are_played() -> None:
    for mix in MIXES.values():
        assert sum(mix.shares.values()) == 100
        assert set(mix.shares) <= set(RULES)
    assert MIXES["combo"].shares == dict.fromkeys(STRICT, 25)
    assert {mix.quality for mix in MIXES.values()} - {""} == {"High", "Medium", "Low"}


def test_cells_are_told_apart_by_mix_and_learn_from_it() -> None:
    study = study_of(tuple(MIXES))
    every = [agent.preset for agent in study.agents]
    cells = cells_of(study, select(study, presets=dict.fromkeys(every), windows="published", seeds=(0, 1)))
    folders = [cell.folder for cell in cells]
    assert len(set(folders)) == len(folders) == 2 * 2 * (3 * len(MIXES) + 1)
    scenario = load_scenario("offline/10-training", overrides={"workload.generator.ticks": 8000})
    for cell in cells[::2]:
        own = plan_of(cell, scenario, Budget()).settings.off_policy
        assert own is not None
        learner = LEARNERS[cell.agent.column]
        shares = MIXES[learner.mix].shares if learner.mix else {}
        assert dict(zip(own.schedulers, own.shares or (), strict=True)) == shares
        assert (own.fill_windows > 0) == METHODS[learner.method].learns_from_data
        losses = {"bc": "clone", "offline": "binary", "online": "soft", "offline-online": "exponential"}
        assert own.loss == losses[learner.method]


def test_an_episode_of_a_training_has_all_jobs_that_are_submitted() -> None:
    submit_s = load_scenario("offline/10-training").workload.submit_s
    longest = int(np.max(np.searchsorted(submit_s, submit_s + 2000.0) - np.arange(len(submit_s))))
    study = study_of(("qos",))
    for agent in study.agents:
        settings = {**preset(agent.preset).training, **{
            key.removeprefix("training."): value for key, value in agent.overrides["10"].items()
        }}  # fmt: skip
        assert settings["jobs"] >= longest


# ---------------------------------------------------------------- claims


def at(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 10)


@pytest.mark.parametrize(
    ("relation", "difference", "verdict"),
    [
        (">", at(0.1, 3), "holds"), (">", at(-0.1, 3), "within the interval"), (">", at(-3, -0.1), "does not hold"),
        ("<", at(-3, -0.1), "holds"), ("<", at(0.1, 3), "does not hold"), ("<", at(-1, 1), "within the interval"),
        ("=", at(-1.9, 1.9), "holds"), ("=", at(1, 3), "within the interval"), ("=", at(2.1, 3), "does not hold"),
        ("=", at(-3, -2.1), "does not hold"), (">=", at(-1.9, 30), "holds"), (">=", at(-3, -2.1), "does not hold"),
        (">=", at(-3, 30), "within the interval"), (">", at(0, 3), "within the interval"),
        (">", at(0, 0), "does not hold"), ("<", at(0, 0), "does not hold"),
        ("=", at(0, 0), "holds"), (">", Interval(5.0, math.nan, math.nan, 1), "within the interval"),
    ],
)  # fmt: skip
def test_a_relation_is_decided_by_the_whole_interval(relation: str, difference: Interval, verdict: str) -> None:
    assert verdict_of(relation, difference) == verdict


def test_every_claim_is_of_rows_and_sizes_of_the_study() -> None:
    lines = published("offline-claims")
    assert len({line["claim"] for line in lines}) == len(lines) == 21
    columns = {(learner.method, learner.mix) for learner in LEARNERS.values()}
    for line in lines:
        assert set(line["sizes"].split()) <= set(SETTINGS)
        for side in (line["left"], line["right"]):
            method, _, mix = side.partition("/")
            assert side in HEURISTICS or (method, mix) in columns
    tables = published("offline")
    assert [line["value"] for line in tables if line["table"] == "Table 7.1"] == [
        "95",
        "99",
        "98",
        "91",
        "91",
        "87",
        "21",
        "21",
        "17",
    ]
    assert {(line["row"], line["column"]) for line in tables if line["table"] == "Table 7.2"} == {
        (quality, method.table) for quality in ("High", "Medium", "Low", "No data") for method in METHODS.values()
    }  # fmt: skip


def row(name: str, values: list[list[float]], preset_: str | None = None, trace: str = "10") -> dict[str, Any]:
    mean = float(np.mean(values))
    figures = {VALUE: {"mean": mean, "low": mean, "high": mean, "values": values}}
    agent = None if preset_ is None else {"preset": preset_, "seeds": [0, 1], "not_trained": []}
    return {"trace": trace, "scheduler": name if agent is None else f"{name}+none", "column": name, "agent": agent,
            "figures": figures, "starts": [0] * len(values[0])}  # fmt: skip


LEVELS = [900.0, 1000.0, 1100.0, 1000.0, 950.0, 1050.0]


def scaled(*factors: float) -> list[list[float]]:
    return [[factor * level + (k % 2) for k, level in enumerate(LEVELS)] for factor in factors]


def made_rows() -> list[dict[str, Any]]:
    rules = [row(rule, scaled(1.0 if rule.startswith("qos") else 0.9)) for rule in STRICT]
    return [
        *rules, row("BC combo", scaled(0.95, 0.951), "bc"), row("BC qos", scaled(0.999, 1.001), "bc"),
        row("Offline combo", scaled(1.1, 1.12), "offline"), row("Offline qos", scaled(0.9, 1.2), "offline"),
        row("Online", scaled(0.8, 0.81), "online"),
    ]  # fmt: skip


def test_claims_are_checked_at_the_sizes_that_they_are_about() -> None:
    verdicts = {claim.printed["claim"]: claim.verdict for claim in claims(made_rows())}
    assert verdicts == {
        "rules-1": "holds", "rules-2": "holds", "rules-3": "does not hold", "rules-4": "does not hold",
        "7.3-combo": "holds", "7.3-qos": "holds", "7.4a-bc-2": "holds", "7.4a-offline": "holds",
        "7.4a-same-1": "within the interval", "7.6-small-1": "does not hold", "7.6-small-2": "does not hold",
    }  # fmt: skip
    assert {claim.setting for claim in claims([{**r, "trace": "50"} for r in made_rows()])} == {"50"}
    at_50 = {claim.printed["claim"]: claim.verdict for claim in claims([{**r, "trace": "50"} for r in made_rows()])}
    assert at_50["7.5-1"] == at_50["7.6-large-1"] == "holds"
    assert "7.4a-offline" not in at_50


def test_recommendations_are_recomputed_beside_the_printed_ones() -> None:
    (table,) = recommendation_tables(made_rows())
    cells = {name: [cell.text for cell in line] for name, line in table.rows}
    assert cells["High"] == ["yes", "yes", "yes", "open", "yes", "not trained", "NA", "–"]
    assert cells["Low"] == ["no", "no", "no", "yes", "yes", "not trained", "NA", "–"]
    assert cells["No data"] == ["no", "–", "no", "–", "no", "–", "yes", "no"]
    assert cells["Medium"][1] == "not trained"
    (told,) = claim_findings(made_rows())
    assert told.startswith("10: of 11 claims 6 hold, 4 do not, and 1 are within the interval.")


def test_the_quality_of_a_dataset_is_that_of_its_rules() -> None:
    rows = made_rows()
    np.testing.assert_allclose(mixed_value(rows, {"qos+none": 50, "sjf+none": 50}), scaled(0.95)[0])
    table = dataset_table(rows, ["combo", "qos"])
    combo, qos = (line for _, line in table.rows)
    assert [cell.text for cell in combo[1:3]] == ["qos+none", "25"]
    assert combo[3].text == "−7.5"
    assert [cell.text for cell in qos[1:]] == ["qos+none", "100", "+0.0", "+0.0"]


# ---------------------------------------------------------------- online decisions


def test_a_value_is_reached_by_validations_in_a_row() -> None:
    once = Curve(0, (0, 10, 20, 30, 40, 50), (0, 1, 2, 3, 4, 5), (1.0, 8.0, 1.0, 5.0, 5.0, 5.0))
    assert reached(once, 5.0) == 3  # 8 alone is not enough
    assert reached(once, 5.1) is None
    assert reached(replace(once, values=(6.0,) * 6), 5.0) == 0
    assert reached(replace(once, values=()), 5.0) is None


def test_curves_add_up_online_decisions() -> None:
    log = [
        {"epoch": 1, "steps": 5, "validation": 1.0}, {"epoch": 2, "steps": 10, "decisions": 100},
        {"epoch": 3, "steps": 15, "decisions": 120, "validation": 2.0}, {"epoch": 4, "steps": 20, "validation": None},
    ]  # fmt: skip
    assert curve_from(7, log) == Curve(7, (0, 220), (5, 15), (1.0, 2.0))


def test_how_soon_the_value_of_online_training_is_reached() -> None:
    online = [Curve(k, (100, 200, 300, 400), (1, 2, 3, 4), (0.0, 4.0 + k, 5.0 + k, 6.0 + k)) for k in (0, 2)]
    begun = Curve(0, (0, 0, 50, 100, 150), (1, 2, 3, 4, 5), (1.0, 5.0, 6.0, 6.0, 6.0))
    slow = replace(begun, seed=1, values=(1.0, 2.0, 3.0, 3.0, 3.0))
    made = reach([begun, replace(begun, seed=1)], online)
    assert made is not None
    assert made.level == pytest.approx(6.0)
    assert made.decisions == (50, 50)
    assert made.steps == (3, 3)
    assert (made.before, made.final, made.ratio) == (5.0, 6.0, 50 / 400)
    some = reach([begun, slow], online)
    assert some is not None
    assert (some.decisions, some.count, some.ratio) == ((50, None), 1, None)
    assert reach([], online) is None
    assert reach([begun], [Curve(0, (), (), ())]) is None


# ---------------------------------------------------------------- agreement


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes of 150 ticks."""
    setting = SETTINGS["10"]
    monkeypatch.setitem(SETTINGS, "10", replace(setting, overrides=SHORT))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("rule", ["qos+none", "fcfs+first-fit"])
def test_a_rollout_is_the_schedule_of_the_rule(rule: str) -> None:
    scenario = scenario_of("10")
    played, question = rollout(scenario, preset("offline"), rule, 101), drawn(scenario, 101)
    alone = evaluate(simulate(question.workload, question.cluster, None, question.rules, scheduler(rule)))
    assert played.rewards.sum() == pytest.approx(alone[VALUE])
    assert played.rewards.sum() > 0


def test_agreement_with_a_dataset_is_weighted_by_shares() -> None:
    told = {
        "a": {"values": [[1.0, 0.8]], "at_random": [0.5, 0.4]},
        "b": {"values": [[0.0, 0.2]], "at_random": [0.1, 0.0]},
    }
    np.testing.assert_allclose(with_dataset(told, {"a": 3, "b": 1}), [[0.75, 0.65]])
    np.testing.assert_allclose(with_dataset(told, {"b": 50}, "at_random"), [0.1, 0.0])


# ---------------------------------------------------------------- all of it


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Selection, Path]:
    """All methods with two datasets after three tiny epochs."""
    place, study = tmp_path_factory.mktemp("offline"), study_of(("combo", "qos"))
    which = select(study, presets=USUAL_PRESETS, windows="published", seeds=(0, 1))
    for preset_ in which.presets:
        own = {} if preset_ == "online" else OF_DATA
        later = {"training.off_policy.online_from": 1} if preset_ == "offline-online" else {}
        budget = replace(TINY, overrides={**TINY.overrides, **own, **later})
        cells = cells_of(study, replace(which, presets=(preset_,)))
        train_missing(study, cells, place, budget, changes=lambda _: {"workload.generator.ticks": 4000})
    return which, place


@pytest.mark.usefixtures("short")
def test_the_tables_and_the_report(trained: tuple[Selection, Path], tmp_path: Path) -> None:
    which, place = trained
    study = study_of(("combo", "qos"))
    made = offline_results(study, which, place, draws=DRAWS, workers=1)
    rows = rows_of(made)
    names = [row["scheduler"] for row in rows]
    assert names[: len(RULES)] == list(RULES)
    assert names[len(RULES) :] == [
        UNTRAINED, "BC combo+none", "BC qos+none", "Offline combo+none", "Offline qos+none",
        "Offline-online combo+none", "Offline-online qos+none", "Online+none",
    ]  # fmt: skip
    clone = rows[names.index("BC combo+none")]
    assert set(clone["agreement"]) == set(STRICT)
    assert np.shape(clone["agreement"]["qos+none"]["values"]) == (2, len(DRAWS))
    assert set(rows[names.index("Online+none")]["agreement"]) == set(STRICT)
    curve = rows[names.index("Offline-online qos+none")]["validations"][0]
    assert curve["steps"] == (0, 2, 4, 6)
    assert curve["decisions"][:2] == (0, 0)
    assert 0 < curve["decisions"][2] < curve["decisions"][3]
    assert set(reaches(rows)) == {"Offline-online combo+none", "Offline-online qos+none", "Online+none"}
    tables = all_tables(made)
    titles = [table.title for table in tables]
    assert titles[:4] == [
        f"10: {SETTINGS['10'].about}", "The chapter's claims",
        "Action agreement with the rules of a dataset (Table 7.1), 10", "Table 7.2, 10: which method for which data",
    ]  # fmt: skip
    (agreed,) = agreement_tables(rows)
    assert [name for name, _ in agreed.rows] == ["BC", "Offline", "Offline-online", "Online", "Uniform"]
    assert [cell.text for cell in agreed.rows[0][1]][::2] == ["98", "95"]
    assert len(steps_table(rows).rows) == 3
    assert len(claim_table(rows).rows) == len(claims(rows)) == 11
    assert "Over BC of its dataset" in [header for header, _, _ in setting_tables(rows)[0].columns]
    picture = curve_plot(rows, "10")
    assert picture is not None
    assert "online decisions" in picture.svg
    assert len(findings(rows)) == 3
    assert set(findings(rows)) < set(all_lines(made))
    write_offline(made, tmp_path, ("greenbatch", "reproduce", "offline"))
    page = (tmp_path / "report.html").read_text()
    assert "Value by online decisions" in page
    assert json.loads((tmp_path / "rows.json").read_text())[0]["scheduler"] == RULES[0]


@pytest.mark.usefixtures("short")
def test_an_agent_agrees_wholly_with_itself_alone(trained: tuple[Selection, Path]) -> None:
    """In episodes that the model of one seed controls, that model would do the same everywhere."""
    which, place = trained
    cells = [cell for cell in cells_of(study_of(("qos",)), which) if cell.agent.preset == "bc"]
    folders = {cell.seed: place / cell.folder for cell in cells}
    itself = f"bc@{folders[0]}+none"
    told = agreements(scenario_of("10"), [Pupil(name="BC", models=folders, rules=(itself,))], DRAWS)["BC"][itself]
    assert told["values"][0] == [1.0, 1.0, 1.0]
    assert max(told["values"][1]) < 1.0
    assert 0 < told["contested"] <= told["decisions"]
    assert all(0 < share <= 0.5 for share in told["at_random"])


def test_the_command_line_plays_rules(short: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "offline", "--starts", "100,101", "--out", str(tmp_path / "r"), "--workers", "1"]) == 0
    text = capsys.readouterr().out
    assert "QoS > HVF" in text
    assert "Quality of the datasets" in text
    assert {file.name for file in (tmp_path / "r").iterdir()} >= {"rows.json", "report.html", "table.md"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["offline", "--train", "--out", "x", "--mixes", "best"],
            "--mixes: 'best' is not known (known: combo",
        ),
        (["offline", "--train", "--out", "x", "--presets", "rare"], "'rare' is not known (known: bc, offline,"),
        (["offline", "--train", "--out", "x", "--traces", "11"], "--traces: '11' is not known"),
        (["offline", "--train", "--out", "x", "--eta", "1"], "--eta: does not apply to offline"),
        (["offline", "--mixes", "qos"], "--mixes: for training only"),
        (["offline", "--sigma", "1"], "--sigma: does not apply to offline"),
        (["offline", "--trained", "."], "has no finished training of what is selected"),
        (["cocorl", "--train", "--out", "x", "--mixes", "qos"], "--mixes: does not apply to cocorl"),
        (["gas-marl", "--train", "--out", "x", "--mixes", "qos"], "--mixes: does not apply to gas-marl"),
        (["ineps", "--train", "--out", "x", "--mixes", "qos"], "--mixes: does not apply to ineps"),
    ],
)
def test_wrong_flags_are_one_line(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    line = capsys.readouterr().err
    assert problem in line
    assert line.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_there_is_no_study_of_an_unknown_dataset() -> None:
    with pytest.raises(InputError, match="'oracle' is not known"):
        study_of(["oracle"])
    assert [agent.column for agent in study_of(["QOS"]).agents][:2] == ["BC qos", "Offline qos"]
    assert training_changes(cells_of(study_of(), select(study_of(), traces=["20"], windows="published"))[0]) == dict(
        SETTINGS["20"].overrides
    )
    assert Learner("bc", "qos", True).column == "BC qos as published"
