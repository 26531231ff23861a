"""The suggestion of a known name, which every refusal of an unknown one makes in the same words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from greenbatch.errors import did_you_mean


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("esay", "did you mean easy?"), ("EASY", "did you mean easy?"), ("lublin-256", "did you mean Lublin-256?"),
        ("xyz", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_closest_name_in_any_case(name: str, told: str) -> None:
    assert did_you_mean(name, ["easy", "green", "Lublin-256"]) == told


def test_then_and_otherwise() -> None:
    assert did_you_mean("gren", ["green"], then="known: green") == "did you mean green? known: green"
    assert did_you_mean("xyz", ["green"], then="known: green") == "known: green"
    assert did_you_mean("gren", ["green"], otherwise="known: green") == "did you mean green?"
    assert did_you_mean("xyz", ["green"], otherwise="known: green") == "known: green"


def test_nobody_else_looks_for_close_names() -> None:
    source = Path(__file__).parents[1] / "src"
    files = [file for file in source.rglob("*.py") if re.search("difflib|get_close_matches", file.read_text())]
    assert [file.name for file in files] == ["errors.py"]
