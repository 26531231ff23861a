"""``greenbatch export``: the file, its metadata, and every bad input in one line."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenbatch.cli import main
from greenbatch.models.model import save_model
from greenbatch.models.onnx_graph import load
from greenbatch.presets.preset import preset
from greenbatch.presets.shapes import shapes_of
from greenbatch.scenarios import load_scenario
from model_records import record_for


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    rng, found = np.random.default_rng(0), {}
    for number, (before, after) in enumerate(pairwise((8, 32, 16, 8, 1))):
        found[f"rows.{number}.weight"] = rng.standard_normal((after, before)).astype(np.float32)
        found[f"rows.{number}.bias"] = rng.standard_normal(after).astype(np.float32)
    return found


@pytest.fixture(scope="module")
def model(weights: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("run") / "model"
    question = load_scenario("default")
    save_model(folder, weights, preset("rlscheduler"), record_for(question), scenario=question)
    return folder


def test_a_training_folder_can_be_given_instead_of_its_model(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(model), "--out", str(tmp_path / "one.onnx")]) == 0
    assert main(["export", str(model.parent), "--out", str(tmp_path / "other.onnx")]) == 0
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "other.onnx").read_bytes()
    assert main(["export", str(model.parent), "--out", str(model / "x.onnx")]) == 2
    assert "is in the model's folder" in capsys.readouterr().err


def test_a_model_is_also_named_as_in_a_scheduler(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(model), "--out", str(tmp_path / "one.onnx")]) == 0
    for number, folder in enumerate((model, model.parent, f"{model}+green")):
        out = tmp_path / f"{number}.onnx"
        assert main(["export", f"rlscheduler@{folder}", "--out", str(out)]) == 0
        assert out.read_bytes() == (tmp_path / "one.onnx").read_bytes()
    capsys.readouterr()
    for given, told in (
        (f"gas-marl@{model}", f"is a model of rlscheduler, not of gas-marl (write rlscheduler@{model})"),
        (f"rlscheduler@{tmp_path / 'nothing'}", "is not a model (give the folder of a training, or its folder model"),
        (
            "gas-marl-plus@default",
            "is a model of gas-marl-plus: weights of the look-ahead planner rather than a network",
        ),
    ):
        assert main(["export", given, "--out", str(tmp_path / "x.onnx")]) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1
    assert not (tmp_path / "x.onnx").exists()


def test_the_exported_graph_matches_the_weights(
    model: Path, weights: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import onnxruntime

    out = tmp_path / "actor.onnx"
    assert main(["export", str(model), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "queue (q, 8)" in said
    assert f"written to {out}" in said
    assert [file.name for file in tmp_path.iterdir()] == ["actor.onnx"]
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    rows = np.random.default_rng(1).random((20, 8), dtype=np.float32)
    hidden = rows
    for number in range(4):
        hidden = hidden @ weights[f"rows.{number}.weight"].T + weights[f"rows.{number}.bias"]
        hidden = np.maximum(hidden, 0) if number < 3 else hidden
    allowed = np.arange(20) % 3 != 0
    logits, row, delays, delay = session.run(None, {"queue": rows, "selectable": allowed})
    np.testing.assert_allclose(logits, hidden[:, 0], rtol=1e-5, atol=1e-5)
    assert row == np.argmax(np.where(allowed, logits, -np.inf))
    assert (delays.tolist(), delay.tolist()) == ([0.0], [0])
    facts = session.get_modelmeta().custom_metadata_map
    assert facts["preset"] == "rlscheduler"
    assert facts["weights_sha256"] == json.loads((model / "model.json").read_text())["weights"]["sha256"]
    assert [column["feature"] for column in json.loads(facts["columns"])["queue"]][:2] == ["wait", "requested_time"]


def test_an_exported_memory_says_how_it_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from greenbatch.learning.networks import build

    scenario, made = load_scenario("default"), preset("rlscheduler")
    made = made.model_copy(update={"network": {"kind": "recurrent", "hidden": 8}})
    weights = {name: value.numpy() for name, value in build(made.network, shapes_of(made), 0)[0].state_dict().items()}
    save_model(tmp_path / "model", weights, made, record_for(scenario), scenario=scenario)
    assert main(["export", str(tmp_path / "model"), "--out", str(tmp_path / "x.onnx")]) == 0
    said = capsys.readouterr().out
    assert "memory (16)" in said
    assert "next_memory (16)" in said
    facts = load((tmp_path / "x.onnx").read_bytes()).get_modelmeta().custom_metadata_map
    assert facts["memory"].startswith("next_memory of a decision is memory of the next one")


def test_the_same_model_gives_the_same_bytes_and_force_replaces(model: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    second.write_text("something else")
    assert main(["export", str(model), "--out", str(first)]) == 0
    assert main(["export", str(model), "--out", str(second), "--force"]) == 0
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("{tmp}/gone", "--out", "{tmp}/x.onnx"),
            r"gone/model\.json: is not a model: .*\(give the folder of a training",
        ),
        (("{model}", "--out", "{tmp}/there.onnx"), r"there\.onnx: --out: exists \(give another file, or --force"),
        (("{model}", "--out", "{tmp}"), r"--out: is a folder \(give the name of a file"),
        (("{model}", "--out", "{tmp}/no/x.onnx"), r"--out: there is no such folder \(make the folder first"),
        (("{tmp}/hurt", "--out", "{tmp}/x.onnx"), r"hurt/actor\.safetensors: .*"),
        (("{model}",), r"--out"),
        (("--out", "{tmp}/x.onnx"), r"MODEL|model"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    arguments: tuple[str, ...], line: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there.onnx").write_text("mine")
    (tmp_path / "hurt").mkdir()
    (tmp_path / "hurt" / "model.json").write_bytes((model / "model.json").read_bytes())
    content = bytearray((model / "actor.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "hurt" / "actor.safetensors").write_bytes(content)
    assert main(["export", *(text.format(tmp=tmp_path, model=model) for text in arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert re.search(line, said.err)
    assert (tmp_path / "there.onnx").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["hurt", "there.onnx"]
