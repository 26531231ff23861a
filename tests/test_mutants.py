"""The list of mutants fits the source and the tests, and the command that runs them tells the found from the others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import mutants


def test_each_mutant_changes_one_place_of_the_source_and_names_tests_that_exist(tmp_path: Path) -> None:
    rows = mutants.mutants()
    assert len({(row.file, row.was, row.becomes) for row in rows}) == len(rows)
    for row in rows:
        place = tmp_path / row.file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(mutants.SOURCE / row.file, place)
        row.apply(tmp_path)
        compile(place.read_text(), row.file, "exec")
        for test in row.tests:
            file, _, name = test.partition("::")
            assert not name or f"def {name.partition('[')[0]}(" in (mutants.ROOT / file).read_text(), test


def test_a_text_that_is_not_there_once_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    for was in ("x = 1", "y"):
        with pytest.raises(ValueError, match="once"):
            mutants.Mutant("a.py", was, "x = 2", ()).apply(tmp_path)
