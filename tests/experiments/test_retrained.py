"""Retraining a model from its record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from greenbatch.cli import main
from greenbatch.errors import InputError
from greenbatch.experiments.running.retrained import choose, plan_of, retrain
from greenbatch.models.model import load_model
from greenbatch.scenarios import load_scenario

TINY = ["--set", "training.search.population=4", "--set", "training.windows=2", "--set", "training.jobs=30"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A planner found in two generations."""
    out = tmp_path_factory.mktemp("runs") / "a"
    words = ["train", "gas-marl-plus", "--scenario", "default", "--out", str(out), "--epochs", "2", "--threads", "1"]
    assert main([*words, *TINY]) == 0
    return out / "model"


def test_the_same_comes_out(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retrain", str(model), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert f"{model}: the same weights" in told
    figures = [line.split() for line in told.splitlines() if line.startswith("  ")]
    assert {name for name, *_ in figures} >= {"renewable_utilization", "makespan_ratio"}
    assert all(ours == anew and np.isfinite(float(ours)) for _, ours, anew in figures)


def test_a_training_folder_can_be_given_instead_of_its_model(model: Path) -> None:
    assert choose([str(model.parent)]) == {str(model.parent): model}


def test_a_different_model_is_detected(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hashlib import sha256

    other = tmp_path / "other"
    other.mkdir()
    weights = load_file(model / "actor.safetensors")
    weights["makespan_bound_1.5"][0] += np.float32(3.0)
    save_file(weights, other / "actor.safetensors")
    record = json.loads((model / "model.json").read_text())
    record["weights"]["sha256"] = sha256((other / "actor.safetensors").read_bytes()).hexdigest()
    (other / "model.json").write_text(json.dumps(record))
    assert main(["retrain", str(other), "--out", str(tmp_path / "out")]) == 0
    assert f"{other}: weights differ by up to 3" in capsys.readouterr().out


def test_another_scenario_of_the_same_name_is_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    text = 'name = "default"\n[workload.generator]\nmodel = "lublin"\njobs = 500\n[cluster]\nprocessors = 64\n'
    file.write_text(text + '[site]\nkind = "none"\n')
    assert main(["retrain", str(model), "--out", str(tmp_path / "out"), "--scenario", str(file)]) == 2
    assert "is not the scenario" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_model_keeps_its_folder_to_itself(model: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in model.iterdir()}
    assert main(["export", str(model), "--out", str(model / "model.json"), "--force"]) == 2
    assert "is in the model's folder" in capsys.readouterr().err
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "log.jsonl").write_text("mine")
    with pytest.raises(InputError, match=r"--out: exists and is not empty"):
        retrain("keep", model, tmp_path / "keep", lambda _: None)
    assert (tmp_path / "keep" / "log.jsonl").read_text() == "mine"
    assert {file: file.read_bytes() for file in model.iterdir()} == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"limit": "minutes"}, "was trained with a time limit"), ({"finished": False}, "was not trained to the end")],
)
def test_models_that_cannot_be_retrained_are_refused(model: Path, changes: dict[str, object], message: str) -> None:
    made = load_model(model)
    training = made.record.training.model_copy(update=changes)
    made = replace(made, record=made.record.model_copy(update={"training": training}))
    with pytest.raises(InputError, match=message):
        plan_of(made, load_scenario("default"))
