"""Warnings of a page: alike ones are one line, nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from greenbatch.experiments.reports.caveats import SHORT, caveats

NAMES = ["fcfs+easy", "f2+easy", "cheapest-start:psi=2+none"]


def test_the_same_warning_of_several_schedulers_is_one_line() -> None:
    one, two = caveats(["fcfs+easy: strange", "f2+easy, cheapest-start:psi=2+none: strange", "else"], NAMES)
    assert one.head == "fcfs+easy, f2+easy, cheapest-start:psi=2+none: strange"
    assert one.lines == ("fcfs+easy: strange", "f2+easy, cheapest-start:psi=2+none: strange")
    assert one.folded
    assert (two.head, two.folded) == ("else", False)


def test_lines_that_differ_in_names_and_numbers_are_alike() -> None:
    lines = ["fcfs+easy has 1,024 killed jobs, 5.5%", "f2+easy has 3 killed jobs, 0.1%", "fcfs+easy has no jobs"]
    first, other = caveats(lines, NAMES)
    assert first.lines == tuple(lines[:2])
    assert first.head == lines[0]
    assert other.lines == (lines[2],)


def test_a_long_line_is_folded() -> None:
    (caveat,) = caveats(["x" * (SHORT + 1)], NAMES)
    assert caveat.folded


def test_a_colon_alone_names_no_scheduler() -> None:
    assert [caveat.head for caveat in caveats(["note: a", "other: a"], NAMES)] == ["note: a", "other: a"]


@given(st.lists(st.text(alphabet="ab12:, ", max_size=12), max_size=8))
def test_every_line_is_kept_once(lines: list[str]) -> None:
    kept = [line for caveat in caveats(lines, ["a", "b"]) for line in caveat.lines]
    assert sorted(kept) == sorted(set(lines))
