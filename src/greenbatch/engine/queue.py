"""The waiting queue and the running jobs, by actual and by requested end."""

from __future__ import annotations

from typing import Any

from greenbatch.engine.compile import compiled, compiled_small

_REWIND = 4096
"""A table that has advanced this far is moved back to its beginning, so that it stays in the CPU cache."""


@compiled_small
def _rewind(table: Any, first: int, count: int) -> bool:
    """Whether a table was moved back to its beginning."""
    if first < _REWIND or count > first:
        return False
    for i in range(count):
        table[i] = table[first + i]
    return True


@compiled_small
def enqueue(s: Any, job: int) -> None:
    """Append a job that has just been submitted."""
    c = s.clock
    if _rewind(s.queue, c.first, c.last - c.first):
        c.first, c.last = 0, c.last - c.first
    entry = s.queue[c.last]
    entry.job = job
    entry.processors = s.jobs[job].processors
    entry.requested_s = s.jobs[job].requested_s
    entry.score = s.jobs[job].score
    c.last += 1
    c.arrived_s = c.now_s


@compiled_small
def dequeue(s: Any, position: int) -> int:
    """Remove a waiting job by moving the shorter side of the queue; return the position that follows it."""
    c = s.clock
    if position - c.first < c.last - 1 - position:
        for i in range(position, c.first, -1):
            s.queue[i] = s.queue[i - 1]
        c.first += 1
        return position + 1
    for i in range(position, c.last - 1):
        s.queue[i] = s.queue[i + 1]
    c.last -= 1
    return position


@compiled
def position_of(s: Any, job: int) -> int:
    """Position of a waiting job in the queue, -1 if it does not wait."""
    for i in range(s.clock.first, s.clock.last):
        if s.queue[i].job == job:
            return i
    return -1


@compiled_small
def _insert_by_end(table: Any, first: int, last: int, end_s: float, job: int, processors: int, power_w: float) -> None:
    i = last
    while i > first and table[i - 1].end_s > end_s:
        table[i] = table[i - 1]
        i -= 1
    entry = table[i]
    entry.end_s = end_s
    entry.job = job
    entry.processors = processors
    entry.power_w = power_w


@compiled_small
def note_load(s: Any) -> None:
    """Append the current load to the power profile."""
    c = s.clock
    if c.steps > 0 and s.profile[c.steps - 1].time_s == c.now_s:
        c.steps -= 1
    step = s.profile[c.steps]
    step.time_s = c.now_s
    step.load_w = c.load_w
    c.steps += 1


@compiled_small
def start(s: Any, position: int) -> int:
    """Start the waiting job at a queue position now; return the position that follows it.

    The job must fit. Running jobs with equal ends are kept in order of starting.
    """
    c = s.clock
    number = s.queue[position].job
    job = s.jobs[number]
    following = dequeue(s, position)
    job.start_s = c.now_s
    job.end_s = c.now_s + job.run_s
    if _rewind(s.running, c.running_first, c.running):
        c.running_first = 0
    if _rewind(s.expected, c.expected_first, c.running):
        c.expected_first = 0
    _insert_by_end(
        s.running, c.running_first, c.running_first + c.running, job.end_s, number, job.processors, job.power_w
    )
    _insert_by_end(
        s.expected, c.expected_first, c.expected_first + c.running, c.now_s + job.requested_s, number, job.processors,
        job.power_w,
    )  # fmt: skip
    s.started[c.started] = number
    c.started += 1
    c.running += 1
    c.free -= job.processors
    c.load_w += job.power_w
    note_load(s)
    return following


@compiled_small
def complete(s: Any) -> None:
    """End the running job with the earliest end, which the clock must have reached."""
    c = s.clock
    done = s.running[c.running_first]
    expected_s = s.jobs[done.job].start_s + s.jobs[done.job].requested_s
    if expected_s != c.now_s:
        c.early = 1
    low, high = c.expected_first, c.expected_first + c.running
    while low < high:
        middle = (low + high) // 2
        if s.expected[middle].end_s < expected_s:
            low = middle + 1
        else:
            high = middle
    while s.expected[low].job != done.job:
        low += 1
    for i in range(low, c.expected_first, -1):
        s.expected[i] = s.expected[i - 1]
    c.expected_first += 1
    c.running_first += 1
    c.running -= 1
    c.free += done.processors
    c.load_w = s.set.idle_w if c.running == 0 else c.load_w - done.power_w  # no rounding drift over millions of jobs
    note_load(s)


@compiled
def sort_ranked(ranked: Any, count: int) -> None:
    """Sort the first candidates by key, stably: a merge sort; the table's second half is scratch."""
    half = ranked.shape[0] // 2
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle, right = min(left + width, count), min(left + 2 * width, count)
            a, b = left, middle
            for k in range(left, right):
                if a < middle and (b >= right or ranked[a].key <= ranked[b].key):
                    ranked[half + k] = ranked[a]
                    a += 1
                else:
                    ranked[half + k] = ranked[b]
                    b += 1
        for k in range(count):
            ranked[k] = ranked[half + k]
        width *= 2


@compiled
def rank_queue(s: Any) -> int:
    """Write all waiting jobs to ``ranked`` in ascending score; return their number."""
    c = s.clock
    for i in range(c.first, c.last):
        s.ranked[i - c.first].key = s.queue[i].score
        s.ranked[i - c.first].job = s.queue[i].job
    sort_ranked(s.ranked, c.last - c.first)
    return int(c.last - c.first)
