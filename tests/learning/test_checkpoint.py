"""Checkpoints and logs: atomic, and damage is a one-line error."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from greenbatch.errors import InputError
from greenbatch.learning.runs.checkpoint import FIX, STATE, load_checkpoint, save_checkpoint
from greenbatch.learning.runs.counters import Counters
from greenbatch.learning.runs.log import Log, Scalars, read_log
from greenbatch.storage import hidden, replace_file

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b/step": np.float32(3).reshape(()),
    "none": np.zeros((0, 4)),
}


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writing beyond ``size`` bytes of a file fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_is_saved_comes_back(tmp_path: Path):
    save_checkpoint(tmp_path / "c", "epoch-1", TENSORS, {"epoch": 1, "best": None})
    found = load_checkpoint(tmp_path / "c")
    assert found.state == {"epoch": 1, "best": None}
    assert found.tensors.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert found.tensors[name].dtype == value.dtype
        assert found.tensors[name].shape == value.shape
        assert found.tensors[name].tobytes() == value.tobytes()


@settings(max_examples=25, deadline=None)
@given(some.lists(some.floats(width=32), max_size=8), some.integers(-(2**53), 2**53))
def test_every_number_comes_back_bit_by_bit(tmp_path_factory, numbers, counter):
    folder = tmp_path_factory.mktemp("c")
    array = np.array(numbers, np.float32)
    save_checkpoint(folder, "x", {"w": array}, {"n": counter})
    found = load_checkpoint(folder)
    assert found.tensors["w"].tobytes() == array.tobytes()
    assert found.state == {"n": counter}


def test_the_earlier_checkpoint_goes_when_the_new_one_counts(tmp_path: Path):
    for epoch in range(3):
        save_checkpoint(tmp_path, f"epoch-{epoch}", TENSORS, {"epoch": epoch})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["epoch-2.safetensors", STATE]


def test_leftovers_of_a_broken_write_do_not_count(tmp_path: Path):
    save_checkpoint(tmp_path, "epoch-1", TENSORS, {"epoch": 1})
    (tmp_path / "epoch-2.safetensors").write_bytes(b"half")
    (hidden(tmp_path) / "new").mkdir(parents=True)
    (hidden(tmp_path) / "new" / STATE).write_bytes(b"{")
    assert load_checkpoint(tmp_path).state == {"epoch": 1}
    save_checkpoint(tmp_path, "epoch-2", TENSORS, {"epoch": 2})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["epoch-2.safetensors", STATE]


def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path: Path):
    save_checkpoint(tmp_path, "epoch-1", TENSORS, {"epoch": 1})
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for size in (0, 100, 2000):
        with largest_file(size), pytest.raises(OSError, match="too large"):
            save_checkpoint(tmp_path, "epoch-2", {"w": np.zeros(1000)}, {"epoch": 2})
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert load_checkpoint(tmp_path).state == {"epoch": 1}


DAMAGED = [
    ("", "is damaged"),
    ("{", "is damaged"),
    ("[]", "is damaged"),
    ("[" * 99_999, "is damaged"),
    ('{"format": 1}', "state.json: tensors: is missing"),
    ('{"format": 1, "tensors": "../x", "sha256": "", "state": {}}', "state.json: tensors: is '../x'"),
    ('{"format": 1, "tensors": "a\\u0000.safetensors", "sha256": "0", "state": {}}', "state.json: tensors: is"),
    ('{"format": 1, "tensors": ".", "sha256": "0", "state": {}}', "state.json: tensors: is '.'"),
    ('{"format": 1, "tensors": "x.safetensors", "sha256": "0", "state": []}', "state.json: sha256: is '0'"),
    ('{"format": 99}', "has layout 99, this version of greenbatch reads 1"),
    (
        '{"format": 1, "tensors": "gone.safetensors", "sha256": "HASH", "state": {}}',
        "gone.safetensors: is missing",
    ),
    (
        '{"format": 1, "tensors": "epoch-1.safetensors", "sha256": "HASH", "state": {}}',
        "epoch-1.safetensors: is damaged",
    ),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_damaged_records_raise_a_one_line_error(tmp_path: Path, content: str, message: str):
    save_checkpoint(tmp_path, "epoch-1", TENSORS, {"epoch": 1})
    (tmp_path / STATE).write_text(content.replace("HASH", "0" * 64))
    with pytest.raises(InputError, match=message) as caught:
        load_checkpoint(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=30, deadline=None)
@given(some.data())
def test_a_flipped_bit_anywhere_is_noticed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("c")
    save_checkpoint(folder, "x", TENSORS, {"epoch": 1})
    content = bytearray((folder / "x.safetensors").read_bytes())
    content[data.draw(some.integers(0, len(content) - 1))] ^= 1 << data.draw(some.integers(0, 7))
    (folder / "x.safetensors").write_bytes(bytes(content))
    with pytest.raises(InputError, match="is damaged"):
        load_checkpoint(folder)


def test_a_folder_without_checkpoint(tmp_path: Path):
    with pytest.raises(InputError, match=r"there is no checkpoint .*--resume"):
        load_checkpoint(tmp_path)


def test_tensors_that_are_no_safetensors_are_damaged(tmp_path: Path):
    import hashlib

    (tmp_path / "x.safetensors").write_bytes(b"no tensors")
    record = {"format": 1, "tensors": "x.safetensors", "sha256": hashlib.sha256(b"no tensors").hexdigest(), "state": {}}
    (tmp_path / STATE).write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"x.safetensors: is damaged"):
        load_checkpoint(tmp_path)


def test_replace_file_is_all_or_nothing(tmp_path: Path):
    file = tmp_path / "f"
    replace_file(file, b"one")
    with largest_file(2), pytest.raises(OSError, match="too large"):
        replace_file(file, b"three")
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("f", b"one")]


def test_a_log_is_cut_back_to_its_checkpoint(tmp_path: Path):
    file = tmp_path / "log.jsonl"
    log = Log(file)
    log.append({"epoch": 1})
    length = log.length
    log.append({"epoch": 2, "text": "later than the checkpoint"})
    log.close()
    with file.open("ab") as stream:
        stream.write(b'{"epoch": 3, "half')
    assert [record["epoch"] for record in read_log(file)] == [1, 2]
    log = Log(file, length)
    log.append({"epoch": 2})
    log.close()
    assert file.read_text() == '{"format": 2}\n{"epoch": 1}\n{"epoch": 2}\n'


def test_a_layout_1_log_is_read_and_continued(tmp_path: Path):
    file = tmp_path / "log.jsonl"
    file.write_text('{"epoch": 1}\n')
    log = Log(file, 13)
    log.append({"epoch": 2})
    log.close()
    assert [record["epoch"] for record in read_log(file)] == [1, 2]


LINES = [
    ('{"format": 3}', "line 1: has layout 3, this version of greenbatch reads 1 and 2"),
    ('{"format": true}', "line 1: has layout True"),
    ('{"format": 2}\n{"format": 2}', "line 2: epoch: is missing"),
    ('{"epoch": "1"}', "line 1: epoch: is '1'"),
    ('{"epoch": -1}', "line 1: epoch: is -1"),
    ('{"epoch": 1, "delays": 5}', "line 1: delays: is 5"),
    ('{"epoch": 1, "delays": [1.5]}', r"line 1: delays\[0\]: is 1.5"),
    ('{"epoch": 0, "delays": [1]}', "line 1: .*delays were chosen before the first epoch"),
    ('{"epoch": 1, "return": [1]}', "line 1: return"),
    ('{"epoch": 1, "return": NaN}', "line 1: is not a JSON object"),
    ('{"epoch": 1, "return": 1e999}', "line 1: return"),
    ('{"epoch": 1}\n[]', "line 2: is not a JSON object"),
]


@pytest.mark.parametrize(("content", "message"), LINES)
def test_a_damaged_line_of_a_log_raises(tmp_path: Path, content: str, message: str):
    (tmp_path / "log.jsonl").write_text(content + "\n")
    with pytest.raises(InputError, match=rf"log\.jsonl, {message}") as caught:
        read_log(tmp_path / "log.jsonl")
    assert "\n" not in str(caught.value)


COUNTS = [
    ({"epoch": "x"}, "epoch: is 'x'"),
    ({"epoch": -1}, "epoch: is -1"),
    ({"log_bytes": 1.5}, "log_bytes: is 1.5"),
    ({"elapsed_s": None}, "elapsed_s: is None"),
    ({"best_terms": []}, r"best_terms: is \[\]"),
    ({"done": 1}, "done: is 1"),
    ({"more": 1}, "more: unknown key"),
]


@pytest.mark.parametrize(("state", "message"), COUNTS)
def test_damaged_counters_raise(tmp_path: Path, state: dict[str, object], message: str):
    with pytest.raises(InputError, match=rf"state\.json: {message} .*train again into another folder"):
        Counters.read(state, tmp_path / STATE, FIX)


def test_a_training_from_before_constraints_exceeds_none(tmp_path: Path):
    state = Counters(epoch=3).as_dict()
    del state["best_excess"]
    assert Counters.read(state, tmp_path / STATE, FIX).best_excess == 0.0


@pytest.mark.parametrize("name", sorted({*Counters.model_fields} - {"best_excess"}))
def test_a_missing_counter_has_no_default(tmp_path: Path, name: str):
    state = Counters(epoch=3, decisions=96, log_bytes=700).as_dict()
    assert Counters.read(state, tmp_path / STATE, FIX).as_dict() == state
    del state[name]
    with pytest.raises(InputError, match=rf"state\.json: {name}: is missing .*train again into another folder"):
        Counters.read(state, tmp_path / STATE, FIX)


def test_a_log_that_lost_lines_is_refused(tmp_path: Path):
    (tmp_path / "log.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"log.jsonl: has 3 bytes, fewer than the 400 recorded in the checkpoint"):
        Log(tmp_path / "log.jsonl", 400)
    (tmp_path / "log.jsonl").write_text('{"epoch": 1}\nnot json\n{"epoch": 2}\n')
    with pytest.raises(InputError, match=r"log.jsonl, line 2: is not a JSON object"):
        read_log(tmp_path / "log.jsonl")
    with pytest.raises(InputError, match="no such file"):
        read_log(tmp_path / "gone.jsonl")


def test_scalars_are_nothing_unless_asked_for(tmp_path: Path):
    scalars = Scalars()
    scalars.add(1, {"return": 1.0})
    scalars.close()
    assert list(tmp_path.iterdir()) == []


def test_scalars_go_to_tensorboard(tmp_path: Path):
    scalars = Scalars()
    scalars.open(tmp_path / "events")
    scalars.open(tmp_path / "elsewhere")
    scalars.add(3, {"return": 1.5, "delays": [1, 2]})
    scalars.close()
    (events,) = (tmp_path / "events").glob("events.*")
    assert (tmp_path / "events" / "written.txt").read_text() == f"{events.name}\n"
    assert b"return" in events.read_bytes()
    assert b"delays" not in events.read_bytes()


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with largest_file(10), pytest.raises(OSError, match="File too large") as caught:
        replace_file(file, b"x" * 100)
    assert caught.value.filename == str(file)
    assert not list(tmp_path.iterdir())
