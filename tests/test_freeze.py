"""A sample of what is frozen is as stored, and a difference is named."""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.plain

FREEZE = Path(__file__).with_name("freeze.py")
SAMPLE = ("=PUE", "=storage, greedy", "=nodes under sun", "=simulate a dump", "=no such key")


def test_a_sample_of_all_outputs_is_as_stored() -> None:
    """After a change of results: ``make freeze STORE=--store``, and a line in the changelog."""
    command = [sys.executable, str(FREEZE), *SAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script in a folder of its own, where it stores; what it sets for its process is gone after a test."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("freeze.py", "freeze.toml"):
        (tests / name).write_bytes(FREEZE.with_name(name).read_bytes())
    (tests / "cli").symlink_to(FREEZE.with_name("cli"))
    (tmp_path / "examples").symlink_to(FREEZE.parents[1] / "examples")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(sys, "path", [*sys.path])
    place = importlib.util.spec_from_file_location("freeze_copy", tests / "freeze.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def test_the_first_difference_is_named(copy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Scenario, scheduler and column; without any, there is none."""
    assert copy.main(["--store", "=PUE"]) == 0
    stored = Path(str(copy.__file__)).with_name("freeze.csv")
    capsys.readouterr()
    assert copy.main(["=PUE"]) == 0
    assert capsys.readouterr().out.startswith("0 differences:")
    with stored.open(newline="") as file:
        rows = list(csv.reader(file))
    place = next(k for k, cell in enumerate(rows[1]) if cell.startswith("end_s="))
    rows[1][place] = "end_s=00000000"
    with stored.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert copy.main(["=PUE"]) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "the first difference: PUE | f2+green | end_s"
    assert "1 in PUE: f2+green: end_s" in said
