"""The running jobs, in two sorted tables: by actual end, and by requested end."""

from __future__ import annotations

from typing import Any

from greenbatch.engine.records import Clock, Ending, Expected, Job, Table
from greenbatch.machine_code.compile import compiled, compiled_small

_REWIND = 4096
"""A table that has advanced this far is moved back to its beginning, so that it stays in the CPU cache."""


@compiled_small
def is_far(first: int, count: int) -> bool:
    """Whether a table with some rows from ``first`` on should be moved back to its beginning."""
    return first >= _REWIND and count <= first


@compiled_small
def _rewind(table: Table[Any], first: int, count: int) -> bool:
    """Whether a table was moved back to its beginning, also if jobs that ran several times have used up its rows."""
    if not (is_far(first, count) or first + count == table.shape[0]):
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
def add_running(
    ending: Table[Ending], expected: Table[Expected], clock: Clock, new: Job, number: int, power_w: float,
    begin_s: float, run_s: float,
) -> None:  # fmt: skip
    """Add a job that begins to run at a time and runs for some time; jobs with equal ends stay in order of starting."""
    if _rewind(ending, clock.ending_first, clock.running):
        clock.ending_first = 0
    if _rewind(expected, clock.expected_first, clock.running):
        clock.expected_first = 0
    end_s, requested_end_s = begin_s + run_s, begin_s + new.requested_s
    at = _room_by_end(ending, clock.ending_first, clock.ending_first + clock.running, end_s)
    first = ending[at]
    first.end_s = end_s
    first.requested_end_s = requested_end_s
    first.job = number
    first.processors = new.processors
    at = _room_by_end(expected, clock.expected_first, clock.expected_first + clock.running, requested_end_s)
    second = expected[at]
    second.end_s = requested_end_s
    second.start_s = begin_s
    second.power_w = power_w
    second.job = number
    second.processors = new.processors
    clock.running += 1


@compiled_small
def _leave(expected: Table[Expected], clock: Clock, row: int) -> None:
    """Remove a row of ``expected`` and the first one of ``ending``, of the same job."""
    for i in range(row, clock.expected_first, -1):
        expected[i] = expected[i - 1]
    clock.expected_first += 1
    clock.ending_first += 1
    clock.running -= 1


@compiled
def remove_running(ending: Table[Ending], expected: Table[Expected], clock: Clock, row: int) -> Ending:
    """Remove the running job in a row of ``expected``; return its row of ``ending`` as it was."""
    job, k = expected[row].job, clock.ending_first
    while ending[k].job != job:
        k += 1
    end_s, requested_end_s, processors = ending[k].end_s, ending[k].requested_end_s, ending[k].processors
    for i in range(k, clock.ending_first, -1):
        ending[i] = ending[i - 1]
    done = ending[clock.ending_first]  # its row leaves the table
    done.end_s, done.requested_end_s, done.job, done.processors = end_s, requested_end_s, job, processors
    _leave(expected, clock, row)
    return done


@compiled_small
def remove_first_ending(ending: Table[Ending], expected: Table[Expected], clock: Clock) -> Ending:
    """Remove the running job with the earliest actual end; return its row, which stays as it is for now."""
    done = ending[clock.ending_first]
    low, high = clock.expected_first, clock.expected_first + clock.running
    while low < high:
        middle = (low + high) // 2
        if expected[middle].end_s < done.requested_end_s:
            low = middle + 1
        else:
            high = middle
    while expected[low].job != done.job:
        low += 1
    _leave(expected, clock, low)
    return done
