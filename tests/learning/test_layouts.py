"""Folders of layout 1, written by the code of commit 4178060, load, resume and can be trained again.

``layout_1/`` holds a network and a planner with their models, and a network and a ranking that were interrupted after
the first of two epochs.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from greenbatch.errors import InputError
from greenbatch.experiments.running.retrained import retrain
from greenbatch.learning.runs.checkpoint import STATE, load_checkpoint, save_checkpoint
from greenbatch.learning.runs.counters import Counters
from greenbatch.learning.runs.folder import CHECKPOINT, LOG, MODEL, RUN, check_same, read_run
from greenbatch.learning.runs.log import read_log
from greenbatch.learning.runs.plan import Plan, make_plan
from greenbatch.learning.runs.records import CHECKPOINT_FORMAT, RUN_FORMAT
from greenbatch.learning.trainers import train_or_search
from greenbatch.models.model import load_model
from greenbatch.models.network import graph_of
from greenbatch.models.records import ACTOR, LAST_JOB, MODEL_FORMAT, planner_limits
from greenbatch.scenarios import load_scenario
from model_records import INTERRUPTED, interrupted_plan

BEFORE = Path(__file__).with_name("layout_1")


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """A copy that may be written to."""
    return shutil.copytree(BEFORE, tmp_path / "before")


def plan_of(before: Path, name: str) -> Plan:
    return interrupted_plan(name, load_scenario(before / "tiny.toml"))


@pytest.mark.parametrize("name", ["network", "planner"])
def test_a_model_loads_and_missing_fields_are_marked_unknown(name: str) -> None:
    raw = json.loads((BEFORE / name / MODEL / "model.json").read_text())
    assert raw["format"] == 1
    assert not {"profile", "limits"} & set(raw)
    assert not {"seen_jobs", "untrained"} & set(raw["training"])
    model = load_model(BEFORE / name / MODEL)
    assert model.record.format == MODEL_FORMAT
    assert model.record.profile is None
    assert model.record.training.seen_jobs == ((0, LAST_JOB),)  # all that were not held out may have been seen
    assert model.record.training.untrained == (raw["training"]["kept_epoch"] == 0)
    assert model.record.limits == (planner_limits() if name == "planner" else ())
    for key in ("epochs", "seed", "backfill", "kept", "decisions"):
        assert getattr(model.record.training, key) == raw["training"][key]
    if name == "network":
        assert graph_of(model)


def test_a_range_may_hold_one_job_and_ends_after_it_begins(before: Path) -> None:
    file = before / "planner" / MODEL / "model.json"
    raw = json.loads(file.read_text())
    raw["training"]["held_out_jobs"] = [5, 5]
    file.write_text(json.dumps(raw))
    assert load_model(file.parent).record.training.held_out_jobs == (5, 5)
    raw["training"]["held_out_jobs"] = [5, 4]
    file.write_text(json.dumps(raw))
    with pytest.raises(InputError, match=r"training\.held_out_jobs: is \[5, 4\] \(it must be the first"):
        load_model(file.parent)


def test_held_out_jobs_of_an_older_model_are_not_seen(before: Path) -> None:
    file = before / "planner" / MODEL / "model.json"
    raw = json.loads(file.read_text())
    raw["training"] |= {"windows": "held-out", "held_out_jobs": [2000, 4400]}
    file.write_text(json.dumps(raw))
    assert load_model(file.parent).record.training.seen_jobs == ((0, 1999), (4401, LAST_JOB))


@pytest.mark.parametrize("name", sorted(INTERRUPTED))
def test_a_training_resumes(before: Path, tmp_path: Path, name: str) -> None:
    folder = before / name
    assert "format" not in json.loads((folder / RUN).read_text())
    assert read_run(folder).format == RUN_FORMAT
    plan, seen = plan_of(before, name), []
    present = shutil.copytree(folder, tmp_path / "present")
    then = load_checkpoint(present / CHECKPOINT)
    save_checkpoint(present / CHECKPOINT, "epoch-000001", then.tensors, then.state)
    assert json.loads((present / CHECKPOINT / STATE).read_text())["format"] == CHECKPOINT_FORMAT
    train_or_search(plan, present, watch=lambda _: None)
    train_or_search(plan, folder, watch=seen.append)
    assert [line["epoch"] for line in seen] == [2, 2]  # the first epoch is not trained again
    assert [line["epoch"] for line in read_log(folder / LOG) if not line.get("done")][-2:] == [1, 2]
    resumed, other = load_file(folder / MODEL / ACTOR), load_file(present / MODEL / ACTOR)
    assert resumed.keys() == other.keys()
    for key, value in other.items():
        np.testing.assert_array_equal(resumed[key], value)
    if name == "network-half":  # a search draws directions that depend on the linear algebra of the machine
        train_or_search(plan, tmp_path / "whole", watch=lambda _: None)
        for key, value in load_file(tmp_path / "whole" / MODEL / ACTOR).items():
            np.testing.assert_allclose(resumed[key], value, atol=1e-5)
    assert load_model(folder / MODEL).record.profile is not None


@pytest.mark.parametrize("key", ["epoch", "decisions", "log_bytes"])
@pytest.mark.parametrize("name", sorted(INTERRUPTED))
def test_a_checkpoint_that_lost_a_counter_is_not_resumed(before: Path, name: str, key: str) -> None:
    file = before / name / CHECKPOINT / STATE
    record = json.loads(file.read_text())
    del record["state"][key]
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"state\.json: {key}: is missing"):
        train_or_search(plan_of(before, name), before / name, watch=lambda _: None)
    assert not (before / name / MODEL).exists()


@pytest.mark.parametrize("name", ["network", "planner"])
def test_a_model_is_trained_again_from_its_record(before: Path, tmp_path: Path, name: str) -> None:
    found = retrain(name, before / name / MODEL, tmp_path / "again", lambda _: None, given=str(before / "tiny.toml"))
    assert found.largest_difference < 1e-5


RUNS: list[tuple[tuple[str, ...], Any, str]] = [
    (("format",), 3, "has layout 3, this version of greenbatch reads 1 and 2"),
    (("plan",), None, "plan: is None"),
    (("plan", "preset"), [], r"plan.preset: is \[\]"),
    (("plan", "training"), None, "plan.training: is None"),
    (("plan", "training", "epochs"), "2", "plan.training.epochs: is '2'"),
    (("plan", "inputs"), [1], r"plan.inputs: is \[1\]"),
    (("plan", "threads"), 1.5, "plan.threads: is 1.5"),
    (("plan", "minutes"), -1.0, "plan.minutes: is -1.0"),
    (("provenance",), None, "provenance: is None"),
    (("provenance", "versions"), {"numpy": 2}, "provenance.versions.numpy: is 2"),
    (("more",), 1, "more: unknown key"),
]


@pytest.mark.parametrize(("place", "value", "message"), RUNS)
def test_every_field_of_a_run_is_checked(before: Path, place: tuple[str, ...], value: Any, message: str) -> None:
    file = before / "network-half" / RUN
    inner = record = json.loads(file.read_text())
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"run\.json: {message}") as caught:
        check_same(before / "network-half", plan_of(before, "network-half"))
    assert "\n" not in str(caught.value)


CURRICULUM = [{"start": 0.5, "jobs": 8, "weights": {"bounded_slowdown": -2.0}}]


def test_former_names_of_reward_terms_are_the_same_training(before: Path) -> None:
    folder = before / "network-half"
    record = json.loads((folder / RUN).read_text())
    assert record["plan"]["preset"]["reward"]["terms"] == {"bounded_slowdown": -1.0}
    record["plan"]["preset"]["training"]["curriculum"] = CURRICULUM
    record["plan"]["training"]["curriculum"] = CURRICULUM
    (folder / RUN).write_text(json.dumps(record))
    preset, overrides = INTERRUPTED["network-half"]
    for weight, message in ((-2.0, None), (-3.0, r"curriculum: is .*was started with")):
        stages = [{"start": 0.5, "jobs": 8, "weights": {"avg_bounded_slowdown": weight}}]
        scenario = load_scenario(before / "tiny.toml")
        more = {**overrides, "training.curriculum": stages}
        plan = make_plan(preset, scenario, overrides=more, epochs=2, threads=1, seed=1)
        if message is None:
            check_same(folder, plan)
        else:
            with pytest.raises(InputError, match=message):
                check_same(folder, plan)


def test_former_names_of_reward_terms_are_read_in_models_and_checkpoints(before: Path) -> None:
    raw = json.loads((before / "network" / MODEL / "model.json").read_text())
    model = load_model(before / "network" / MODEL)
    assert raw["preset"]["reward"]["terms"] == {"bounded_slowdown": -1.0}
    assert model.preset.reward.terms == {"avg_bounded_slowdown": -1.0}
    assert model.record.validation.terms == {"avg_bounded_slowdown": raw["validation"]["terms"]["bounded_slowdown"]}
    file = before / "network-half" / CHECKPOINT
    then = load_checkpoint(file)
    assert then.state["best_terms"] == {"bounded_slowdown": 1.0}
    assert Counters.read(then.state, file, "").best_terms == {"avg_bounded_slowdown": 1.0}


def test_another_wording_of_a_description_is_the_same_training(before: Path) -> None:
    folder, plan = before / "ranking-half", plan_of(before, "ranking-half")
    reworded = plan.preset.model_copy(update={"description": "Said otherwise."})
    scenario = replace(plan.scenario, resolved={**plan.scenario.resolved, "description": "Also said otherwise."})
    check_same(folder, replace(plan, preset=reworded, scenario=scenario))
    with pytest.raises(InputError, match="backfill: is"):
        check_same(folder, replace(plan, backfill="easy"))
