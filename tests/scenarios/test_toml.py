"""Lines of keys, and writing what was read."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.errors import InputError
from greenbatch.scenarios.toml import key_lines, line_of, overridden, read_toml, write_toml

TEXT = """\
name = "x" # = not a key
# [comment] key = 1
description = '''
[not.a.table]
key = 1
'''
a.b.c = 1
[site]
kind = "series"
numbers = [
  1, 2, # ]
  "] = [",
]
[[site.sources]]
name = "one"
"quoted key" = 1
[[site.sources]]
name = "two"
[site.sources.inner]
x = { y = 1 }
[last]
"""

LINES = {
    ("name",): 1,
    ("description",): 3,
    ("a",): 7,
    ("a", "b"): 7,
    ("a", "b", "c"): 7,
    ("site",): 8,
    ("site", "kind"): 9,
    ("site", "numbers"): 10,
    ("site", "sources", 0): 14,
    ("site", "sources", 0, "name"): 15,
    ("site", "sources", 0, "quoted key"): 16,
    ("site", "sources", 1): 17,
    ("site", "sources", 1, "name"): 18,
    ("site", "sources", 1, "inner"): 19,
    ("site", "sources", 1, "inner", "x"): 20,
    ("last",): 21,
}


def test_every_key_and_table_has_its_line():
    tomllib.loads(TEXT)
    assert key_lines(TEXT) == LINES


def test_a_place_without_a_line_takes_that_of_the_table_around_it():
    assert line_of(("site", "sources", 1, "inner", "x", "y"), LINES) == 20
    assert line_of(("site", "missing"), LINES) == 8
    assert line_of(("nowhere",), LINES) is None


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b'name = "a"\nname = "b"\n', 2, "overwrite"),
        (b'a = 1\nb = "open\n', 2, "is not TOML"),
        (b"a = 1\n\xff\xfe", 2, "UTF-8"),
        (b"a = 1\nb = \x00", 2, "is not TOML"),
        (b"a = " + b"[" * 5000, None, "nested too deeply"),
        (b"a = " + b"9" * 5000, None, "is not TOML"),
        (b"a" * 1_000_001, None, "more than 1,000,000"),
    ],
)
def test_invalid_toml_is_refused_with_its_line(tmp_path: Path, content: bytes, line: int | None, message: str):
    file = tmp_path / "s.toml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read_toml(file)
    assert error.value.line == line
    assert str(file) in str(error.value)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        read_toml(tmp_path / "none.toml")


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
VALUES = st.recursive(
    st.one_of(SCALARS, st.lists(SCALARS, max_size=3)),
    lambda inner: st.one_of(
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=3),
        st.lists(st.dictionaries(st.text("ab", min_size=1), inner, max_size=2), min_size=1, max_size=2),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc-_ .\"'\n", max_size=4), VALUES, max_size=4))
def test_what_is_written_reads_the_same(content: dict[str, Any]):
    text = write_toml(content, lambda place: f"at {len(place)}")
    assert tomllib.loads(text) == content


def test_values_at_dotted_keys_replace_what_was_there() -> None:
    tables = {"name": "x", "reward": {"terms": {"wait": -1.0}}, "rows": [{"a": 1}]}
    before = repr(tables)
    made = overridden(tables, {"reward.terms": {"slowdown": -1.0}, "training.search.windows": 2, "name": None})
    assert made == {
        "reward": {"terms": {"slowdown": -1.0}}, "rows": [{"a": 1}], "training": {"search": {"windows": 2}},
    }  # fmt: skip
    assert repr(tables) == before
    assert overridden(tables, {"nowhere.x": None}) == {**tables, "nowhere": {}}
    for key in ("name.x", "name.x.y", "rows.a"):
        with pytest.raises(InputError, match=f"^file.toml: {key}: is not a key of a table"):
            overridden(tables, {key: 1}, file="file.toml")
