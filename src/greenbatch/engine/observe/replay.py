"""Follow recorded starts: the same decisions and observations as of an agent, whose actions the record tells.

A schedule says when each job started, and in which order. At every decision, the action is the row of the first job
that is due and can start; if there is none, it is the row for waiting, where a preset has one, until the next event or
the next recorded start. Where a preset has none, time passes without a decision until a job starts.

A job that cannot start when it is due, or that is not among the rows that are seen, starts as soon as both are given.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from greenbatch.engine.limits import can_start
from greenbatch.engine.observe import batch as many
from greenbatch.engine.observe.batch import LAYOUT_TYPE, SEEN_TYPE, Layout, Seen, kind_of, tuple_of
from greenbatch.engine.observe.features import job_in
from greenbatch.engine.observe.stacked import Batch, one_of
from greenbatch.engine.records import Bools, Floats, Ints
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, wait_until
from greenbatch.machine_code.compile import compiled, compiled_small, entry, whole
from greenbatch.machine_code.references import by_reference


class Record(NamedTuple):
    """The recorded starts of B simulations of n jobs, and how far each has been followed."""

    start_s: Floats
    """Start of each job, infinite if it never starts, shape (B, n). [s]"""
    order: Ints
    """Jobs by start, and at one instant in the order in which they started, shape (B, n)."""
    begun: Bools
    """Jobs that have started, shape (B, n)."""
    unseen: Bools
    """Jobs that were not among the rows when they were due, shape (B, n)."""
    past: Ints
    """Jobs at the beginning of ``order`` that have all started, shape (B,)."""
    held: Ints
    """Waits that the preset does not allow, and which are therefore no decisions, shape (B,)."""


class Taken(NamedTuple):
    """Buffers for k decisions of one simulation, beside their observations."""

    row: Ints
    """Action: a row of the queue's table, shape (k,)."""
    time_s: Floats
    """Shape (k,). [s]"""
    values: Floats
    """Value of each reward term before the action, shape (k, t)."""


RECORD_TYPE = tuple_of(Record, (np.float64, 2), (np.int64, 2), *[(np.bool_, 2)] * 2, *[(np.int64, 1)] * 2)
"""Compiled type of `Record`."""
TAKEN_TYPE = tuple_of(Taken, (np.int64, 1), (np.float64, 1), (np.float64, 2))
"""Compiled type of `Taken`."""


@compiled
def _row_of(s: State, layout: Layout, job: int) -> int:
    """The row of a waiting job, -1 if it is not seen."""
    for row in range(many.visible_jobs(s, layout)):
        if job_in(s, row) == job:
            return row
    return -1


@compiled
def _due_row(s: State, layout: Layout, record: Record, b: int) -> int:
    """The row of the first job that is due and can start, -1 if there is none."""
    n, order, start_s, begun = record.order.shape[1], record.order[b], record.start_s[b], record.begun[b]
    while record.past[b] < n and begun[order[record.past[b]]]:
        record.past[b] += 1
    for k in range(record.past[b], n):
        job = whole(order[k])
        if start_s[job] > s.clock.now_s:
            break
        if not begun[job]:
            row = _row_of(s, layout, job)
            if row >= 0 and can_start(s, job, whole(s.jobs[job].processors)):
                return row
            record.unseen[b, job] |= row < 0
    return -1


@compiled
def _next_start_s(s: State, record: Record, b: int) -> float:
    """When the next recorded start comes, infinite after the last. [s]"""
    n, order, start_s = record.order.shape[1], record.order[b], record.start_s[b]
    for k in range(record.past[b], n):
        if start_s[order[k]] > s.clock.now_s:
            return float(start_s[order[k]])
    return np.inf


@compiled_small
def _next_recorded(s: State, layout: Layout, seen: Seen, a: int, batch: Batch, b: int, record: Record) -> int:
    """The action of the next decision, -1 at the end; what can be chosen is written to row ``a`` of ``seen``."""
    while many.next_choice(s, layout, seen, a, batch, b):
        row, last = _due_row(s, layout, record, b), many.rows_of(s, layout) - 1
        if row >= 0:
            return row
        if layout.wait and seen.selectable[seen.queue_offsets[a] + last]:
            return last
        record.held[b] += layout.wait
        apply(s, wait_until(_next_start_s(s, record, b)))
    return -1


@compiled_small
def _carry_out(s: State, layout: Layout, row: int, record: Record, b: int) -> None:
    if row < many.visible_jobs(s, layout):
        record.begun[b, job_in(s, row)] = True
        apply(s, many.chosen_action(s, layout, row, 0))
    else:
        apply(s, wait_until(_next_start_s(s, record, b)))
    s.clock.settled = 0


def replay(batch: Batch, layout: Layout, b: int, record: Record, seen: Seen, taken: Taken, counts: Ints) -> None:
    """Follow the record of one simulation until the buffers are full, or to the end.

    Args:
        batch: the simulations.
        layout: layout of observations and actions; the first delay is none.
        b: the simulation.
        record: what is followed.
        seen: output; buffers for k decisions, filled from the start.
        taken: output; the actions.
        counts: output; number of decisions, of their queue rows, of their running jobs, and 1 if the simulation has
            not ended.
    """
    written, going = 0, True
    s = by_reference(one_of(batch, b))
    batch, layout, record, seen = by_reference(batch), by_reference(layout), by_reference(record), by_reference(seen)
    seen.queue_offsets[0] = seen.running_offsets[0] = 0
    while going and written < taken.row.shape[0]:
        row = _next_recorded(s, layout, seen, written, batch, b, record)
        going = row >= 0
        if going:
            many.observe_one(s, layout, seen, written)
            taken.row[written], taken.time_s[written] = row, s.clock.now_s
            for k in range(batch.values.shape[1]):
                taken.values[written, k] = batch.values[b, k]
            _carry_out(s, layout, row, record, b)
            written += 1
    counts[0], counts[1], counts[2] = written, seen.queue_offsets[written], seen.running_offsets[written]
    counts[3] = going


@cache
def compiled_replay(batch: Any) -> Any:
    """`replay` for a batch of a type of Numba's, compiled or loaded from the cache on first use."""
    of_one = types.int64, RECORD_TYPE, SEEN_TYPE, TAKEN_TYPE, kind_of(np.int64, 1)
    return entry("batch-replay", replay, types.void(batch, LAYOUT_TYPE, *of_one))
