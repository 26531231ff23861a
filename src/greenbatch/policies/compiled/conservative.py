"""Conservative backfilling: every job gets a reservation at submission, and no reservation is moved later.

Source: Mu'alem & Feitelson 2001. When a job ends before its requested time, the plan is compressed: in order of the
policy's score, each waiting job gives up its reservation and takes the earliest slot, which is never later than the old
one. If jobs do not exceed their requests (``overrun = "kill"``), no job starts later than first promised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.codes import BY_RULE
from greenbatch.engine.compile import compiled, whole
from greenbatch.engine.decide import Rule, decide, fill_scores
from greenbatch.engine.machine.protocol import fits
from greenbatch.engine.program import Pass
from greenbatch.engine.queue import rank_queue
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.engine.timeline import earliest_s, forget_past, occupy, promise, timeline_of_running
from greenbatch.workload import Workload


class Conservative(NamedTuple):
    """Reservations are the planned starts of the waiting jobs; ``scratch.timeline`` is kept between decisions."""

    rule: Rule
    """Order of compression, if scores change."""


@compiled
def _timeline_of_all(s: State) -> int:
    """Reset the timeline to the running jobs and all reservations; return its number of rows."""
    count = timeline_of_running(s)
    for i in range(s.clock.first, s.clock.last):
        job = s.jobs[s.queue.job[i]]
        if not np.isnan(job.planned_s):
            begin_s = max(job.planned_s, s.clock.now_s)
            count = occupy(s.scratch.timeline, count, begin_s, begin_s + job.requested_s, job.processors)
    return count


@compiled
def _compress(s: State) -> int:
    """Move reservations earlier, never later, in order of score; return the number of rows of the new timeline."""
    timeline, count = s.scratch.timeline, _timeline_of_all(s)
    for k in range(rank_queue(s.queue, s.clock, s.scratch.ranked)):
        job = s.jobs[s.scratch.ranked[k].job]
        if np.isnan(job.planned_s):
            continue
        begin_s = max(job.planned_s, s.clock.now_s)
        count = occupy(timeline, count, begin_s, begin_s + job.requested_s, -job.processors)
        job.planned_s = earliest_s(timeline, count, job.processors, job.requested_s)
        count = occupy(timeline, count, job.planned_s, job.planned_s + job.requested_s, job.processors)
    return count


@compiled
def start_due(s: State) -> float:
    """Start the jobs whose reservations are due, in order of submission; return the next reservation. [s]"""
    c, i, next_s = s.clock, s.clock.first, np.inf
    while i < c.last:
        job = s.jobs[s.queue.job[i]]
        if job.planned_s <= c.now_s and fits(s.machine, whole(s.queue.job[i]), whole(job.processors), c.now_s):
            first = c.first
            apply(s, start_now(i))
            i += c.first - first  # 1 if the jobs before it have moved
        else:
            if job.planned_s > c.now_s:
                next_s = min(next_s, job.planned_s)
            i += 1
    return float(next_s)


@decide.register(Conservative)
def start_reserved(decider: Conservative, s: State) -> None:
    """Reserve for new jobs, compress after ends at other times than requested, and start the jobs that are due."""
    c, timeline = s.clock, s.scratch.timeline
    overdue = c.running > 0 and s.expected[c.expected_first].end_s < c.now_s
    if c.early or overdue:
        if s.rules.ranking == BY_RULE:
            fill_scores(s, decider.rule)
        count = _compress(s)
    elif c.slots == 0:
        count = _timeline_of_all(s)
    else:
        count = forget_past(timeline, c.slots, c.now_s)
    c.early = 0
    i = c.last
    while i > c.first and np.isnan(s.jobs[s.queue.job[i - 1]].planned_s):
        i -= 1
    for k in range(i, c.last):
        number = s.queue.job[k]
        job = s.jobs[number]
        job.planned_s = earliest_s(timeline, count, job.processors, job.requested_s)
        promise(s, number, job.planned_s)
        count = occupy(timeline, count, job.planned_s, job.planned_s + job.requested_s, job.processors)
    c.slots = count
    apply(s, wait_until(start_due(s)))


def _begin(_: Workload, __: Cluster, ___: Rules) -> Conservative:
    from greenbatch.engine.entry_points import no_rule

    return Conservative(no_rule())  # the program's rule takes its place


CONSERVATIVE = Pass(name="conservative", begin=_begin)
