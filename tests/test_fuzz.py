"""The fuzzer itself, for some hundred cases: no finding, every kind tried, coverage printed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

import fuzz

pytestmark = [pytest.mark.long, pytest.mark.plain]

FUZZ = Path(__file__).with_name("fuzz.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(FUZZ), *arguments], capture_output=True, text=True, check=False)


def test_two_hundred_cases_find_nothing(tmp_path):
    done = run("--cases", "200", "--seed", "3", "--save", str(tmp_path / "findings"))
    assert done.returncode == 0, done.stdout + done.stderr
    table = {row.split()[0]: row.split()[1:] for row in done.stdout.splitlines() if row.strip()}
    kinds = ("swf", "sacct", "scenario", "platform", "slurm", "jobs", "table", "series", "weather", "model", "log")
    for kind in (*kinds, "pm100", "fdata", "preset", "words"):
        cases, accepted, refused = map(int, table[kind])
        assert cases == accepted + refused
        assert refused > 0, kind
        assert accepted > 0 or kind in {"scenario", "preset", "jobs"}, (
            f"{kind}: TOML or JSON with a fault is seldom valid"
        )
    assert "workload/swf.py" in table
    assert " 0 findings in " in " " + done.stdout.splitlines()[-1]
    assert not (tmp_path / "findings").exists()


@pytest.mark.parametrize(
    ("kind", "number"), [(k, n) for k, how in fuzz.KINDS.items() if k != "words" for n in range(len(how.seeds))]
)
def test_the_files_it_starts_from_are_valid(tmp_path, monkeypatch, kind, number):
    monkeypatch.chdir(tmp_path)
    sources = (random.Random(k) for k in range(10))  # noqa: S311  # reproducible, no secrets
    assert any(fuzz.run_case(kind, fuzz.KINDS[kind].seeds[number], r, Path()) is None for r in sources)


def test_a_case_can_be_repeated(monkeypatch, capsys):
    """In another process as in this one."""

    def here(number):
        monkeypatch.setattr(sys, "argv", ["fuzz", "--seed", "3", "--case", number])
        assert fuzz.main() == 0
        return capsys.readouterr().out

    there = run("--seed", "3", "--case", "17")
    assert there.returncode == 0
    assert there.stdout == here("17") != here("18")


def test_a_finding_is_saved_and_reported(tmp_path):
    code = (
        "import runpy, sys; from greenbatch import workload\n"
        "def broken(*_, **__): raise ZeroDivisionError\n"
        "workload.read_workload = broken\n"
        f"sys.argv = ['fuzz', '--cases', '2', '--seed', '5', '--save', {str(tmp_path / 'f')!r}]\n"
        f"sys.path.insert(0, {str(FUZZ.parent)!r}); runpy.run_path({str(FUZZ)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    saved = sorted(f.suffix for f in (tmp_path / "f").iterdir())
    assert saved.count(".input") == saved.count(".txt") > 0
    assert "ZeroDivisionError" in next((tmp_path / "f").glob("swf*.txt")).read_text()
    assert "FINDING" in done.stdout
