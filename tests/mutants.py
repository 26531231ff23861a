"""Faults that tests must find: each row of ``mutants.toml`` is a small change of the source and the tests it fails.

``python tests/mutants.py`` applies each to a copy of the source and runs its tests as plain Python; it prints one line
for each, and ends with 1 if a mutant survives. Words after it choose the mutants whose file or text has one of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "greenbatch"
LIST = Path(__file__).with_suffix(".toml")
LONGEST_S = 300.0
"""A run that takes longer has been found: the suite would not end either. [s]"""
FAILED = 1
"""What pytest returns when a test fails; other numbers say that it could not run."""


class Mutant(NamedTuple):
    """One change of one file."""

    file: str
    """Path under ``src/greenbatch``."""
    was: str
    """Text that occurs once in the file."""
    becomes: str
    tests: Sequence[str]
    """Tests that fail by it, as pytest names them from the root."""

    @property
    def shown(self) -> str:
        """The change in one line."""
        was, becomes = (" ".join(text.split()) or "(nothing)" for text in (self.was, self.becomes))
        return f"{self.file}: {was} -> {becomes}"

    def apply(self, source: Path) -> None:
        """Change the file in a copy of the source.

        Raises:
            ValueError: the text does not occur once.
        """
        path = source / self.file
        text = path.read_text()
        if (count := text.count(self.was)) != 1 or self.was == self.becomes:
            raise ValueError(f"{self.file}: {self.was!r} occurs {count} times; give a text that occurs once")
        path.write_text(text.replace(self.was, self.becomes))


def mutants(words: Sequence[str] = ()) -> list[Mutant]:
    """Those of the list whose file or text has one of some words; all without words."""
    rows = [Mutant(**row) for row in tomllib.loads(LIST.read_text())["mutant"]]
    return [row for row in rows if not words or any(word in f"{row.file} {row.was}" for word in words)]


def outcome(tests: Sequence[str], mutant: Mutant | None = None) -> int:
    """What pytest returns for some tests on a copy of the source, with a mutant in it or without."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "greenbatch"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            mutant.apply(copy)
        env = os.environ | {
            "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1", "CI": "true",
            "XDG_CACHE_HOME": f"{folder}/cache",
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        try:
            ended = subprocess.run(command, check=False, cwd=ROOT, env=env, capture_output=True, timeout=LONGEST_S)
            return ended.returncode
        except subprocess.TimeoutExpired:
            return FAILED


def main(words: Sequence[str]) -> int:
    """Run mutants; 1 if there is none, or no test finds one of them."""
    chosen, told = mutants(words), {0: "SURVIVES", FAILED: "found"}
    passing = {tests: outcome(tests) == 0 for tests in dict.fromkeys(tuple(each.tests) for each in chosen)}
    lost = 0
    for each in chosen:
        code = outcome(each.tests, each) if passing[tuple(each.tests)] else -1
        lost += code != FAILED
        print(f"{told.get(code, 'NOT RUN')}  {each.shown}  {' '.join(each.tests)}", flush=True)
    print(f"{len(chosen) - lost} of {len(chosen)} mutants are found")
    return int(lost > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
