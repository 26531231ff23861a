"""The waiting queue: its order, and candidates sorted by a key."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled, compiled_small
from greenbatch.engine.records import Ranked, Table
from greenbatch.engine.running import is_far
from greenbatch.engine.state import State


@compiled_small
def move(s: State, row: int, to: int) -> None:
    """Copy a row of the queue to another."""
    q = s.queue
    q.job[to] = q.job[row]
    q.processors[to] = q.processors[row]
    q.requested_s[to] = q.requested_s[row]
    q.score[to] = q.score[row]


@compiled_small
def enqueue(s: State, job: int) -> None:
    """Append a job that has just been submitted."""
    c, q, new = s.clock, s.queue, s.jobs[job]
    if is_far(c.first, c.last - c.first):
        for i in range(c.last - c.first):
            move(s, c.first + i, i)
        c.first, c.last = 0, c.last - c.first
    q.job[c.last] = job
    q.processors[c.last] = new.processors
    q.requested_s[c.last] = new.requested_s
    q.score[c.last] = new.score
    c.last += 1
    c.arrived_s = c.now_s


@compiled_small
def _close_gap(column: Any, position: int, first: int, last: int, from_front: bool) -> None:
    """Remove an entry of a column by moving those before it, or those after it."""
    i = np.uint64(position)  # unsigned: a negative index would count from the end
    if from_front:
        stop = np.uint64(first)
        while i > stop:
            column[i] = column[i - np.uint64(1)]
            i -= np.uint64(1)
    else:
        stop = np.uint64(last - 1)
        while i < stop:
            column[i] = column[i + np.uint64(1)]
            i += np.uint64(1)


@compiled_small
def dequeue(s: State, position: int) -> int:
    """Remove a waiting job by moving the shorter side of the queue; return the position that follows it."""
    c, q = s.clock, s.queue
    from_front = position - c.first < c.last - 1 - position
    _close_gap(q.job, position, c.first, c.last, from_front)
    _close_gap(q.processors, position, c.first, c.last, from_front)
    _close_gap(q.requested_s, position, c.first, c.last, from_front)
    _close_gap(q.score, position, c.first, c.last, from_front)
    if from_front:
        c.first += 1
        return position + 1
    c.last -= 1
    return position


@compiled
def position_of(s: State, job: int) -> int:
    """Position of a waiting job in the queue, -1 if it does not wait."""
    for i in range(s.clock.first, s.clock.last):
        if s.queue.job[i] == job:
            return i
    return -1


@compiled
def sort_ranked(ranked: Table[Ranked], count: int) -> None:
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
def rank_queue(s: State) -> int:
    """Write all waiting jobs to ``scratch.ranked`` in ascending score; return their number."""
    c, ranked = s.clock, s.scratch.ranked
    for i in range(c.first, c.last):
        ranked[i - c.first].key = s.queue.score[i]
        ranked[i - c.first].job = s.queue.job[i]
    sort_ranked(ranked, c.last - c.first)
    return int(c.last - c.first)


@compiled
def sort_twins(s: State, by_score: bool) -> None:
    """Stably sort waiting jobs with equal submit times by score or by GAS-MARL Eq. 15."""
    c = s.clock
    spare = s.queue.job.shape[0] - 1  # the queue has one row more than there are jobs
    for i in range(c.first + 1, c.last):
        k = i
        while k > c.first:
            a, b = s.jobs[s.queue.job[k - 1]], s.jobs[s.queue.job[k]]
            key_a = s.queue.score[k - 1] if by_score else a.power_w * a.requested_s * a.processors
            key_b = s.queue.score[k] if by_score else b.power_w * b.requested_s * b.processors
            if a.submit_s != b.submit_s or key_a <= key_b:
                break
            move(s, k, spare)
            move(s, k - 1, k)
            move(s, spare, k - 1)
            k -= 1
