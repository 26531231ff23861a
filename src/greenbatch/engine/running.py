"""The running jobs, in two sorted tables: by actual end, and by requested end."""

from __future__ import annotations

from typing import Any

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.records import Ending, Expected, Table
from greenbatch.engine.state import State

_REWIND = 4096
"""A table that has advanced this far is moved back to its beginning, so that it stays in the CPU cache."""


@compiled_small
def is_far(first: int, count: int) -> bool:
    """Whether a table with some rows from ``first`` on should be moved back to its beginning."""
    return first >= _REWIND and count <= first


@compiled_small
def _rewind(table: Table[Any], first: int, count: int) -> bool:
    """Whether a table was moved back to its beginning."""
    if not is_far(first, count):
        return False
    for i in range(count):
        table[i] = table[first + i]
    return True


@compiled_small
def _room_by_end(table: Table[Any], first: int, last: int, end_s: float) -> int:
    """Make room for a row in a table that is sorted by end, after equal ends; return its index."""
    i = last
    while i > first and table[i - 1].end_s > end_s:
        table[i] = table[i - 1]
        i -= 1
    return i


@compiled_small
def add_running(s: State, job: int) -> None:
    """Add a job that starts now; jobs with equal ends are kept in order of starting."""
    c, new = s.clock, s.jobs[job]
    if _rewind(s.ending, c.ending_first, c.running):
        c.ending_first = 0
    if _rewind(s.expected, c.expected_first, c.running):
        c.expected_first = 0
    end_s, requested_end_s = c.now_s + new.run_s, c.now_s + new.requested_s
    ending: Ending = s.ending[_room_by_end(s.ending, c.ending_first, c.ending_first + c.running, end_s)]
    ending.end_s = end_s
    ending.requested_end_s = requested_end_s
    ending.job = job
    ending.processors = new.processors
    at = _room_by_end(s.expected, c.expected_first, c.expected_first + c.running, requested_end_s)
    expected: Expected = s.expected[at]
    expected.end_s = requested_end_s
    expected.start_s = c.now_s
    expected.power_w = new.power_w
    expected.job = job
    expected.processors = new.processors
    c.running += 1


@compiled_small
def remove_first_ending(s: State) -> Ending:
    """Remove the running job with the earliest actual end; return its row, which stays as it is for now."""
    c = s.clock
    done = s.ending[c.ending_first]
    low, high = c.expected_first, c.expected_first + c.running
    while low < high:
        middle = (low + high) // 2
        if s.expected[middle].end_s < done.requested_end_s:
            low = middle + 1
        else:
            high = middle
    while s.expected[low].job != done.job:
        low += 1
    for i in range(low, c.expected_first, -1):
        s.expected[i] = s.expected[i - 1]
    c.expected_first += 1
    c.ending_first += 1
    c.running -= 1
    return done
