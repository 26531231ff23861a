"""A sample of what is frozen is as stored, and a difference is named."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

FREEZE = Path(__file__).with_name("freeze.py")
SAMPLE = ("=PUE", "=storage, greedy", "=nodes under sun", "=simulate a dump", "=no such key")


def run(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, check=False)


def test_a_sample_of_all_outputs_is_as_stored() -> None:
    """After a change of results: ``make freeze STORE=--store``, and a line in the changelog."""
    done = run(FREEZE, *SAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The script in a folder of its own, where it stores."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("freeze.py", "freeze.toml"):
        (tests / name).write_bytes(FREEZE.with_name(name).read_bytes())
    (tests / "cli").symlink_to(FREEZE.with_name("cli"))
    (tmp_path / "examples").symlink_to(FREEZE.parents[1] / "examples")
    return tests / "freeze.py"


def test_the_first_difference_is_named(copy: Path) -> None:
    """Scenario, scheduler and column; without any, there is none."""
    assert run(copy, "--store", "=PUE").returncode == 0
    stored = copy.with_name("freeze.csv")
    again = run(copy, "=PUE")
    assert (again.returncode, again.stdout.partition(":")[0]) == (0, "0 differences")
    with stored.open(newline="") as file:
        rows = list(csv.reader(file))
    place = next(k for k, cell in enumerate(rows[1]) if cell.startswith("end_s="))
    rows[1][place] = "end_s=00000000"
    with stored.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    done = run(copy, "=PUE")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "the first difference: PUE | f2+green | end_s"
    assert "1 in PUE: f2+green: end_s" in done.stdout
