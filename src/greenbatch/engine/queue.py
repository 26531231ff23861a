"""The waiting queue and its order."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.ranked import sort_ranked
from greenbatch.engine.records import Clock, Job, Ranked, Table
from greenbatch.engine.running import is_far
from greenbatch.engine.state import Waiting
from greenbatch.machine_code.compile import compiled, compiled_small


@compiled_small
def move(queue: Waiting, row: int | np.uint64, to: int | np.uint64) -> None:
    """Copy a row of the queue to another."""
    queue.job[to] = queue.job[row]
    queue.processors[to] = queue.processors[row]
    queue.requested_s[to] = queue.requested_s[row]
    queue.score[to] = queue.score[row]


@compiled_small
def enqueue(queue: Waiting, clock: Clock, new: Job, number: int) -> None:
    """Append a job that has just been submitted."""
    if is_far(clock.first, clock.last - clock.first):
        for i in range(clock.last - clock.first):
            move(queue, clock.first + i, i)
        clock.first, clock.last = 0, clock.last - clock.first
    last = clock.last
    queue.job[last] = number
    queue.processors[last] = new.processors
    queue.requested_s[last] = new.requested_s
    queue.score[last] = new.score
    clock.last += 1
    clock.arrived_s = new.submit_s


@compiled_small
def dequeue(queue: Waiting, clock: Clock, position: int) -> int:
    """Remove a waiting job by moving the shorter side of the queue; return the position that follows it."""
    i, first, last = np.uint64(position), np.uint64(clock.first), np.uint64(clock.last - 1)
    # Unsigned: a negative index would count from the end.
    if i - first < last - i:
        while i > first:
            move(queue, i - np.uint64(1), i)
            i -= np.uint64(1)
        clock.first += 1
        return position + 1
    while i < last:
        move(queue, i + np.uint64(1), i)
        i += np.uint64(1)
    clock.last -= 1
    return position


@compiled
def position_of(queue: Waiting, clock: Clock, job: int) -> int:
    """Position of a waiting job in the queue, -1 if it does not wait."""
    for i in range(clock.first, clock.last):
        if queue.job[i] == job:
            return i
    return -1


@compiled
def rank_queue(queue: Waiting, clock: Clock, ranked: Table[Ranked]) -> int:
    """Write all waiting jobs to ``ranked`` in ascending score; return their number."""
    first, last = clock.first, clock.last
    for i in range(first, last):
        ranked[i - first].key = queue.score[i]
        ranked[i - first].job = queue.job[i]
    sort_ranked(ranked, last - first)
    return int(last - first)


@compiled
def sort_twins(queue: Waiting, clock: Clock, jobs: Table[Job], by_score: bool) -> None:
    """Stably sort waiting jobs with equal submit times by score or by GAS-MARL Eq. 15."""
    spare = queue.job.shape[0] - 1  # the queue has one row more than there are jobs
    for i in range(clock.first + 1, clock.last):
        k = i
        while k > clock.first:
            a, b = jobs[queue.job[k - 1]], jobs[queue.job[k]]
            key_a = queue.score[k - 1] if by_score else a.power_w * a.requested_s * a.processors
            key_b = queue.score[k] if by_score else b.power_w * b.requested_s * b.processors
            if a.submit_s != b.submit_s or key_a <= key_b:
                break
            move(queue, k, spare)
            move(queue, k - 1, k)
            move(queue, spare, k - 1)
            k -= 1
