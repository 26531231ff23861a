"""The study ``offline``: what is trained on what, agreement with rules, and all tables after tiny trainings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from greenbatch.cli import main
from greenbatch.engine.simulate import simulate
from greenbatch.errors import InputError
from greenbatch.experiments.papers.cocorl import STRICT
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
    claim_table,
    claims,
)
from greenbatch.experiments.papers.offline_learning import agreement_tables, curve_plot, reaches, steps_table
from greenbatch.experiments.papers.offline_report import all_lines, all_tables, findings, rows_of, write_offline
from greenbatch.experiments.papers.offline_results import UNTRAINED, offline_results, scenario_of
from greenbatch.experiments.papers.offline_tables import setting_tables
from greenbatch.experiments.papers.studies import Budget, Selection, cells_of, plan_of, select, train_missing
from greenbatch.metrics import evaluate
from greenbatch.presets.preset import preset
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.regenerate import drawn
from greenbatch.schedulers import scheduler

SHORT = {"workload.generator.ticks": 100, "rules.pools.end_s": 100.0}
TINY = Budget(epochs=3, threads=1, overrides={
    "training.windows": 1, "training.episode_s": 25.0, "training.jobs": 30,
    "training.validation": {"windows": 1, "jobs": 30, "every": 1},
    "training.off_policy.steps": 2, "training.off_policy.critic_steps": 2,
    "training.off_policy.batch": 32, "training.off_policy.buffer": 20_000,
})  # fmt: skip
OF_DATA = {"training.off_policy.fill_windows": 2}
DRAWS = (100, 101)


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
        launched = "exponential" if learner.published else "soft"
        losses = {"bc": "clone", "offline": "binary", "online": "soft", "offline-online": launched}
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


# ---------------------------------------------------------------- agreement


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes of 100 ticks."""
    setting = SETTINGS["10"]
    monkeypatch.setitem(SETTINGS, "10", replace(setting, overrides=SHORT))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("rule", ["qos+none", "fcfs+first-fit"])
def test_a_rollout_is_the_schedule_of_the_rule(rule: str) -> None:
    scenario = scenario_of("10")
    made = preset("offline")
    valued = made.model_copy(update={"reward": made.reward.model_copy(update={"terms": {"finished_value": 1.0}})})
    played, question = rollout(scenario, valued, rule, 101), drawn(scenario, 101)
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
    """All methods with two datasets after three tiny epochs, the clones with two seeds."""
    place, study = tmp_path_factory.mktemp("offline"), study_of(("combo", "qos"))
    which = select(study, presets=USUAL_PRESETS, windows="published", seeds=(0, 1))
    for preset_ in which.presets:
        own = {} if preset_ == "online" else OF_DATA
        later = {"training.off_policy.online_from": 1} if preset_ == "offline-online" else {}
        budget = replace(TINY, overrides={**TINY.overrides, **own, **later})
        seeds = which.seeds if preset_ == "bc" else (0,)
        cells = cells_of(study, replace(which, presets=(preset_,), seeds=seeds))
        train_missing(study, cells, place, budget, changes=lambda _: {"workload.generator.ticks": 4000})
    return which, place


@pytest.mark.usefixtures("short")
def test_the_tables_and_the_report(
    trained: tuple[Selection, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
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
    request.getfixturevalue("undrawn")
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
    assert told["values"][0] == [1.0, 1.0]
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
    assert problem in refused(words, capsys, tmp_path)


def test_there_is_no_study_of_an_unknown_dataset() -> None:
    with pytest.raises(InputError, match="'oracle' is not known"):
        study_of(["oracle"])
    assert [agent.column for agent in study_of(["QOS"]).agents][:2] == ["BC qos", "Offline qos"]
    assert training_changes(cells_of(study_of(), select(study_of(), traces=["20"], windows="published"))[0]) == dict(
        SETTINGS["20"].overrides
    )
    assert Learner("bc", "qos", True).column == "BC qos as published"
