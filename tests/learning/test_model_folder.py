"""Model folders: whole, checked, small, loadable without torch, and clear about what they do not fit."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from copy import copy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import SCENARIO

import greenbatch as gb
from greenbatch.errors import InputError
from greenbatch.models.model import LARGEST_BYTES, RECORD, is_model, load_model, save_model
from greenbatch.models.records import ACTOR
from greenbatch.policies.compiled.lookahead.weights import NUMBERS, PRICES, WEIGHTS
from greenbatch.presets.preset import check, preset
from greenbatch.scenarios import Scenario
from model_records import record_for


def kernel_weights() -> dict[str, np.ndarray]:
    sizes = (8, 32, 16, 8, 1)
    random = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
        found[f"rows.{layer}.weight"] = random.normal(size=(outputs, inputs)).astype(np.float32)
        found[f"rows.{layer}.bias"] = np.zeros(outputs, np.float32)
    return found


@pytest.fixture
def question(tmp_path: Path) -> Scenario:
    (tmp_path / "tiny.toml").write_text(SCENARIO)
    return gb.load_scenario(tmp_path / "tiny.toml")


@pytest.fixture
def folder(tmp_path: Path, question: Scenario) -> Path:
    save_model(
        tmp_path / "model", kernel_weights(), preset("rlscheduler"), record_for(question, "easy"), scenario=question
    )
    return tmp_path / "model"


def edit(folder: Path, *place: str, to: Any) -> None:
    record = json.loads((folder / RECORD).read_text())
    inner = record
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = to
    (folder / RECORD).write_text(json.dumps(record))


def test_a_model_comes_back_with_numbers_for_normalizers(folder: Path, question: Scenario):
    model = load_model(folder)
    assert model.weights.keys() == kernel_weights().keys()
    assert all(model.weights[name].tobytes() == value.tobytes() for name, value in kernel_weights().items())
    assert model.normalizers["processors"] == 16
    assert model.normalizers["longest_run_time"] == question.workload.run_time_s.max()
    scales = {column.feature: column.scale for column in model.preset.observation.queue.columns}
    assert scales["processors"] == 16
    assert not any(isinstance(scale, str) for scale in scales.values())
    assert model.backfill == "easy"
    assert sorted(file.name for file in folder.iterdir()) == [ACTOR, RECORD]
    assert (folder / ACTOR).stat().st_size <= LARGEST_BYTES
    assert is_model(folder)
    assert not is_model(folder.parent)


def test_loading_needs_no_torch(folder: Path):
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom greenbatch.models.model import load_model\n"
        "model = load_model(sys.argv[1])\nprint(len(model.weights), model.preset.name)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout == "8 rlscheduler\n"


def test_an_earlier_model_is_replaced_whole(folder: Path, question: Scenario):
    other = {name: value + 1 for name, value in kernel_weights().items()}
    save_model(folder, other, preset("rlscheduler"), record_for(question, "easy"), scenario=question)
    assert load_model(folder).weights["rows.0.bias"].tolist() == [1.0] * 32
    assert sorted(file.name for file in folder.parent.iterdir()) == ["model", "tiny.toml"]


def test_a_full_disk_leaves_the_earlier_model(folder: Path, question: Scenario):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (100, 5500):  # in the weights, in the record
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            with pytest.raises(OSError, match="too large"):
                save_model(
                    folder, {name: value + 1 for name, value in kernel_weights().items()}, preset("rlscheduler"),
                    {**record_for(question, "easy"), "more": "x" * 5000}, scenario=question,
                )  # fmt: skip
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert load_model(folder).weights["rows.0.bias"].tolist() == [0.0] * 32
        assert sorted(file.name for file in folder.parent.iterdir()) == ["model", "tiny.toml"]


def test_too_large_an_actor_is_refused(tmp_path: Path, question: Scenario):
    with pytest.raises(InputError, match=r"bytes of weights, more than 20,000,000"):
        save_model(tmp_path / "m", {"rows.0.weight": np.zeros(10**7)}, preset("rlscheduler"), {}, scenario=question)
    assert not (tmp_path / "m").exists()


RECORDS = [
    ("", "model.json: is damaged"),
    ("[]", "model.json: is damaged"),
    ("{}", "model.json: is damaged"),
    ("[" * 99_999, "model.json: is damaged"),
    ('{"format": 1, "minutes": NaN}', "model.json: is damaged"),
    ('{"format": 1}', "model.json: weights: is missing"),
    ('{"format": 3}', r"model.json: has layout 3, this version of greenbatch reads 1 and 2"),
    ('{"format": true}', r"model.json: has layout True, this version of greenbatch reads 1 and 2"),
    ('{"format": "2"}', r"model.json: has layout 2, this version of greenbatch reads 1 and 2"),
    ('{"format": 2, "weights": 3, "preset": {}, "normalizers": {}}', "model.json: weights: is 3"),
]


@pytest.mark.parametrize(("content", "message"), RECORDS)
def test_damaged_records_raise_a_one_line_error(folder: Path, content: str, message: str):
    (folder / RECORD).write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


FIELDS = [
    (("training", "held_out_jobs"), [5], r"training.held_out_jobs: is \[5\]"),
    (("training", "held_out_jobs"), [9, 5], r"training.held_out_jobs: is \[9, 5\]"),
    (("training", "held_out_jobs"), ["a", "b"], r"training.held_out_jobs\[0\]: is 'a'"),
    (("training", "seen_jobs"), [[0]], r"training.seen_jobs\[0\]: is \[0\]"),
    (("training", "windows"), "all", "training.windows: is 'all'"),
    (("training", "backfill"), 3, "training.backfill: is 3"),
    (("training", "backfill"), "", "training.backfill: is ''"),
    (("training", "threads"), "1", "training.threads: is '1'"),
    (("training", "threads"), 0, "training.threads: is 0"),
    (("training", "kept"), None, "training.kept: is None"),
    (("training", "limit"), "hours", "training.limit: is 'hours'"),
    (("training", "finished"), 1, "training.finished: is 1"),
    (("training", "settings"), [], r"training.settings: is \[\]"),
    (("training", "settings", "epochs"), 0, "training.settings.epochs: is 0"),
    (("training", "more"), 1, "training.more: unknown key"),
    (("training",), None, "training: is None"),
    (("provenance",), None, "provenance: is None"),
    (("provenance", "scenario"), "default", "provenance.scenario: is 'default'"),
    (("provenance", "inputs"), {"a": 1}, "provenance.inputs.a: is 1"),
    (("provenance", "inputs"), None, "provenance.inputs: is None"),
    (("validation",), [], r"validation: is \[\]"),
    (("normalizers",), {"processors": "16"}, "normalizers.processors: is '16'"),
    (("normalizers",), {"beauty": 1.0}, "normalizers.*beauty"),
    (("profile", "load"), "high", "profile.load: is 'high'"),
    (("profile", "processors"), -1, "profile.processors: is -1"),
    (("limits",), "none", "limits: is 'none'"),
    (("weights", "file"), "../actor.safetensors", "weights.file: is"),
    (("weights", "sha256"), 5, "weights.sha256: is 5"),
    (("preset",), None, "preset: is None"),
    (("more",), 1, "more: unknown key"),
]


@pytest.mark.parametrize(("place", "value", "message"), FIELDS)
def test_every_field_of_a_record_is_checked(folder: Path, place: tuple[str, ...], value: Any, message: str) -> None:
    edit(folder, *place, to=value)
    with pytest.raises(InputError, match=rf"model\.json: {message}") as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("copy the folder again, or train again)")


@pytest.mark.parametrize(
    "place", [("training",), ("provenance",), ("training", "seen_jobs"), ("training", "settings"), ("limits",)]
)
def test_every_field_of_a_record_is_needed(folder: Path, place: tuple[str, ...]) -> None:
    record = json.loads((folder / RECORD).read_text())
    inner = record
    for key in place[:-1]:
        inner = inner[key]
    del inner[place[-1]]
    (folder / RECORD).write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"model\.json: {'.'.join(place)}: is missing"):
        load_model(folder)


def test_missing_and_damaged_files(folder: Path):
    with pytest.raises(InputError, match=r"model.json: is not a model"):
        load_model(folder.parent.parent)
    with pytest.raises(InputError, match=r"is not a model"):
        load_model(folder / RECORD)
    content = (folder / ACTOR).read_bytes()
    (folder / ACTOR).write_bytes(content[:-1] + b"\1")
    with pytest.raises(InputError, match=r"actor.safetensors: is damaged: its content is not what was written"):
        load_model(folder)
    (folder / ACTOR).unlink()
    with pytest.raises(InputError, match=r"actor.safetensors: is missing"):
        load_model(folder)


def test_weights_of_another_network_are_refused(folder: Path):
    columns = json.loads((folder / RECORD).read_text())["preset"]["observation"]["queue"]["columns"]
    edit(folder, "preset", "observation", "queue", "columns", to=columns[:5])
    with pytest.raises(InputError, match=r"the weights are for 8 columns at rows.0, the preset has 5"):
        load_model(folder)
    edit(folder, "preset", "network", "kind", to="ineps")
    with pytest.raises(InputError, match=r"the weights are for 8 columns at rows.0, the preset has 5"):
        load_model(folder)
    edit(folder, "preset", "observation", "queue", "columns", to=columns)
    edit(folder, "preset", "network", "kind", to="gas-marl")
    with pytest.raises(InputError, match=r"the weights have no layer encode_queue.0"):
        load_model(folder)
    edit(folder, "preset", "network", "kind", to="kernel")
    edit(folder, "preset", "reward", "terms", to={"beauty": 1.0})
    with pytest.raises(InputError, match=r"model.json: reward.terms: 'beauty' is not known"):
        load_model(folder)


TABLES = {"encode_queue.0.weight": (64, 8), "encode_running.0.weight": (64, 4), "encode_supply.0.weight": (64, 2),
          "delay.1.weight": (13, 64)}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("encode_queue.0.weight", (64, 9), "for 9 columns at encode_queue.0, the preset has 8"),
        ("encode_running.0.weight", (64, 8), "for 8 columns at encode_running.0, the preset has 4"),
        ("encode_supply.0.weight", (64, 3), "for 3 columns at encode_supply.0, the preset has 2"),
        ("delay.1.weight", (7, 64), "for 7 delays at delay.1, the preset has 13"),
        ("delay.1.weight", (13,), "have no layer delay.1"),
    ],
)
def test_every_table_and_the_delays_are_checked(tmp_path: Path, question: Scenario, name, shape, message):
    weights = {each: np.zeros(size) for each, size in {**TABLES, name: shape}.items()}
    save_model(tmp_path / "m", weights, preset("gas-marl"), record_for(question), scenario=question)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "m")


def test_weights_that_are_not_finite_are_refused(tmp_path: Path, question: Scenario):
    weights = kernel_weights()
    weights["rows.1.bias"][3] = np.nan
    save_model(tmp_path / "m", weights, preset("rlscheduler"), record_for(question, "easy"), scenario=question)
    with pytest.raises(InputError, match="not all finite float32"):
        load_model(tmp_path / "m")


def test_a_model_says_what_it_does_not_fit(folder: Path, tmp_path: Path, question: Scenario):
    model = load_model(folder)
    model.check_fits(question)
    larger = gb.load_scenario(tmp_path / "tiny.toml", processors=64)
    with pytest.raises(InputError, match=r"was trained for 16 processors, tiny has 64"):
        model.check_fits(larger)
    hungry = replace(model, preset=model.preset.model_copy(update={"needs_site": True}))
    hungry.check_fits(question)
    with pytest.raises(InputError, match=r"rlscheduler needs a power supply"):
        hungry.check_fits(replace(question, site=None))
    raw = model.preset.model_dump(mode="json")
    raw["observation"]["queue"]["columns"][0]["feature"] = "power"
    powered = replace(model, preset=check(raw))
    unknown = replace(question.workload, power_w=np.full(len(question.workload), np.nan))
    with pytest.raises(InputError, match=r"job 1 has no power"):
        powered.check_fits(replace(question, workload=unknown))


def planner(folder: Path, question: Scenario, numbers: dict[str, np.ndarray]) -> Path:
    """A planner's model with such numbers."""
    save_model(folder / "planner", numbers, preset("gas-marl-plus"), record_for(question), scenario=question)
    return folder / "planner"


def ordinary_numbers() -> np.ndarray:
    made = np.zeros(WEIGHTS, np.float32)
    made[:PRICES] = [number.initial for number in NUMBERS.values()]
    return made


def test_a_placement_follows_the_backfilling_of_a_planner(folder: Path, tmp_path: Path, question: Scenario) -> None:
    made = planner(tmp_path, question, {"makespan_bound_1.5": ordinary_numbers()})
    name = f"gas-marl-plus@{made}:makespan_bound=1.5+none+random:seed=7"
    found = gb.scheduler(name)
    program = found.program(question.workload)
    assert (found.name, program.placement, program.placement_seed) == (name, "random", 7)
    assert gb.scheduler(f"gas-marl-plus@{made}+none").program(question.workload).placement == "first"
    with pytest.raises(InputError, match=r"does not support backfilling \(leave out easy\)"):
        gb.scheduler(f"gas-marl-plus@{made}+easy+pack")
    network = gb.scheduler(f"rlscheduler@{folder}+easy+random:seed=7")
    for each in (network, copy(network)):  # as another process gets it
        program = each.program(question.workload)
        assert (program.backfill, program.placement, program.placement_seed) == ("easy", "random", 7)


@pytest.mark.parametrize("place", [*range(PRICES), PRICES, WEIGHTS - 1])
@pytest.mark.parametrize("value", [1e30, -1e30, np.nan, np.inf])
def test_numbers_that_would_lead_the_planner_beyond_its_tables_are_refused(
    question: Scenario, tmp_path: Path, place: int, value: float
) -> None:
    numbers = ordinary_numbers()
    assert load_model(planner(tmp_path, question, {"makespan_bound_1.5": numbers})).weights.keys() == {
        "makespan_bound_1.5"
    }
    numbers[place] = value
    with pytest.raises(InputError, match=r"the weights .* makespan_bound_1\.5"):
        load_model(planner(tmp_path, question, {"makespan_bound_1.5": numbers}))


def test_the_ends_of_the_ranges_survive_single_precision(question: Scenario, tmp_path: Path) -> None:
    for end in ("lowest", "highest"):
        numbers = np.full(WEIGHTS, -3.0 if end == "lowest" else 3.0, np.float32)
        numbers[:PRICES] = [getattr(number, end) for number in NUMBERS.values()]
        made = load_model(planner(tmp_path, question, {"makespan_bound_1.5": numbers}))
        np.testing.assert_array_equal(made.weights["makespan_bound_1.5"], numbers)


@pytest.mark.parametrize(
    "name",
    [
        "makespan_bound_abc",
        "makespan_bound_",
        "makespan_bound_nan",
        "makespan_bound_1.50",
        "makespan_bound_inf",
        "../x",
    ],
)
def test_invalid_makespan_bounds_are_refused(question: Scenario, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"are not {WEIGHTS} finite numbers at"):
        load_model(planner(tmp_path, question, {name: ordinary_numbers()}))


def test_a_bias_of_another_length_is_refused(question: Scenario, tmp_path: Path) -> None:
    weights = kernel_weights() | {"rows.1.bias": np.zeros(5, np.float32)}
    save_model(tmp_path / "model", weights, preset("rlscheduler"), record_for(question, "easy"), scenario=question)
    with pytest.raises(InputError, match=r"have a bias of shape \(5,\) for 16 units at rows\.1\.weight"):
        load_model(tmp_path / "model")


def test_an_unresolved_scale_is_refused(folder: Path) -> None:
    columns = json.loads((folder / RECORD).read_text())["preset"]["observation"]["queue"]["columns"]
    columns[0]["scale"] = "processors"
    edit(folder, "preset", "observation", "queue", "columns", to=columns)
    with pytest.raises(InputError, match=r"model\.json: wait: has the scale 'processors' instead of the number"):
        load_model(folder)
