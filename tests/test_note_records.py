"""Notes: by consequence, alike ones as one, nothing that matters folded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.notes import FEW, LEVELS, LITTLE, Note, left_out_work, lines, ordered, percent, records, shares_of

SEED = Note("wind: seed 1, 365 days", level="fact")
CUT = Note("prices end on 31 January: 120 d at the end cut off", level="change", shares=((0.33, "hours"),))
DROPPED = Note("larger job dropped", 9, 6, "jobs", "change", ((0.75, "processor-hours"), (0.2, "jobs")))
WARNED = Note("possibly worse than plain rules", level="warning", of=("foresee",))


def test_consequence_comes_first() -> None:
    """Not three notes on seeds, with prices cut to January among "5 more notes"."""
    notes = [SEED, *(Note(f"source {k}: synthetic, seed {k}", level="fact") for k in range(5)), CUT, DROPPED, WARNED]
    assert lines(notes, "report.html") == [
        "warning: foresee: possibly worse than plain rules",
        "note: larger job dropped: 9, first at line 6 (75% of the processor-hours and 20% of the jobs)",
        "note: prices end on 31 January: 120 d at the end cut off (33% of the hours)",
        "6 more notes: see report.html",
    ]
    assert lines([SEED, Note("one")], "x") == ["note: one", "note: wind: seed 1, 365 days"]
    assert lines([], "x") == []


def test_the_same_note_of_several_is_one() -> None:
    other = Note(WARNED.what, level="warning", of=("late", "foresee"))
    assert list(map(str, ordered([WARNED, SEED, other, SEED]))) == [
        "foresee, late: possibly worse than plain rules", str(SEED),
    ]  # fmt: skip
    everyone = Note(WARNED.what, level="warning")
    assert len(ordered([WARNED, everyone])) == 2, "a note on all is not one on some"


def test_records_for_json_hold_what_is_known() -> None:
    (first, second) = records([SEED, DROPPED])
    assert first["shares"] == ((0.75, "processor-hours"), (0.2, "jobs"))
    assert (first["level"], first["count"], first["first_line"], first["about"]) == ("change", 9, 6, "jobs")
    assert second == {"text": str(SEED), "what": str(SEED), "level": "fact"}


notes = st.builds(
    Note, what=st.sampled_from("abcdef"), count=st.integers(0, 3), level=st.sampled_from(LEVELS),
    shares=st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["jobs", "hours"])), max_size=2).map(tuple),
    of=st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True).map(tuple),
)  # fmt: skip


@given(st.lists(notes, max_size=12))
def test_nothing_that_matters_is_folded_and_nothing_is_lost(made: list[Note]) -> None:
    every, told = ordered(made), lines(made, "there")
    ranks = [(LEVELS.index(note.level), note.share) for note in every]
    assert ranks == sorted(ranks, reverse=True)
    assert {(n.what, n.count, n.level, n.shares, of) for n in every for of in n.of or (None,)} == {
        (n.what, n.count, n.level, n.shares, of) for n in made for of in n.of or (None,)
    }
    must = [note for note in every if note.level in {"change", "warning"} or note.share > LITTLE]
    shown = [line for line in told if not line.endswith("see there")]
    assert [line.partition(": ")[2] for line in shown][: len(must)] == list(map(str, must))
    left = sum(int(line.split()[0]) for line in told if line.endswith("see there"))
    assert len(shown) + left == len(every)
    assert len(told) <= max(FEW, len(must) + 1)


def test_large_numbers_have_separators() -> None:
    assert str(Note("rows", 1_234_567, 9_999)) == "rows: 1,234,567, first at line 9999"


def test_shares_are_of_jobs_and_processor_hours() -> None:
    touched, work = np.array([True, False, False, False]), np.array([6.0, 1.0, np.nan, 1.0])
    assert shares_of(touched, work) == ((0.75, "processor-hours"), (0.25, "jobs"))
    assert shares_of(~touched, work) == ((0.75, "jobs"),), "the hours of one are not known"
    assert shares_of(touched) == ((0.25, "jobs"),)
    assert shares_of(np.array([2, 3]), np.array([6.0, 2.0, 8.0, 4.0]), jobs=np.array([1, 1, 3, 5])) == (
        (0.6, "processor-hours"),
        (0.8, "jobs"),
    )
    assert shares_of(np.zeros(0, dtype=bool)) == ()
    assert left_out_work([SEED, DROPPED, CUT]) == 0.75


@pytest.mark.parametrize(
    ("part", "text"), [(0.0, "0%"), (2e-4, "<0.1%"), (0.014, "1.4%"), (0.0996, "10%"), (1.0, "100%")]
)
def test_shares_as_text(part: float, text: str) -> None:
    assert percent(part) == text
