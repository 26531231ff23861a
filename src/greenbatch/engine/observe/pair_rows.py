"""The rows of pairs of a waiting job and a node: their observation, and which of them can be chosen."""

from __future__ import annotations

from greenbatch.engine.compile import compiled, whole
from greenbatch.engine.limits import can_start
from greenbatch.engine.machine.node_choice import can_take_on, fill_nodes, fill_pairs, node_count, pair_feature
from greenbatch.engine.observe.features import encode, queued_work_s, raw_of_queue
from greenbatch.engine.observe.pair_features import FIRST_PAIR_FEATURE
from greenbatch.engine.records import Bools, Column, Singles, Table
from greenbatch.engine.state import State


@compiled
def fill_pair_rows(s: State, columns: Table[Column], jobs: int, out: Singles, at: int) -> None:
    """Encode the pairs of the first waiting jobs and all nodes: the rows of a job are adjacent.

    Args:
        s: the state.
        columns: COLUMN, shape (k,).
        jobs: number of jobs, at most the length of the queue.
        out: float32, shape (>= at + jobs * nodes, k).
        at: first row to write.
    """
    nodes, first, raw = whole(node_count(s.machine)), s.clock.first, s.scratch.columns[0]
    for k in range(columns.shape[0]):
        if columns[k].feature < FIRST_PAIR_FEATURE:
            raw_of_queue(s, columns[k].feature, jobs)
            for i in range(jobs):
                value = encode(columns[k], raw[i])
                for n in range(nodes):
                    out[at + i * nodes + n, k] = value
    last_end_s, queued_s = fill_nodes(s.machine, s.clock.now_s), queued_work_s(s)
    for i in range(jobs):
        fill_pairs(s.machine, whole(s.queue.job[first + i]), s.clock.now_s, last_end_s, queued_s)
        for k in range(columns.shape[0]):
            feature = columns[k].feature - FIRST_PAIR_FEATURE
            if feature >= 0:
                for n in range(nodes):
                    out[at + i * nodes + n, k] = encode(columns[k], pair_feature(s.machine, feature, n))


@compiled
def fill_pair_choices(s: State, jobs: int, selectable: Bools, at: int) -> int:
    """Write which pairs can be chosen to ``selectable`` from row ``at`` on; return how many."""
    nodes, found = whole(node_count(s.machine)), 0
    for i in range(jobs):
        job, processors = whole(s.queue.job[s.clock.first + i]), whole(s.queue.processors[s.clock.first + i])
        fits_now = can_start(s, job, processors)
        for n in range(nodes):
            chosen = fits_now and can_take_on(s.machine, job, n)
            selectable[at + i * nodes + n] = chosen
            found += chosen
    return found
