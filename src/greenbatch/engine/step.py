"""The decision loop: advance to the next decision, choose a job, place it.

``advance`` and ``place`` are the only functions with which a scheduler moves the clock; compiled rules and Python
policies use the same two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.backfill import backfill, backfill_arrival, reserve
from greenbatch.engine.compile import compiled, compiled_allocating
from greenbatch.engine.events import (
    ARRIVAL,
    NOTHING,
    drain,
    next_arrival_s,
    next_completion_s,
    next_event,
    next_supply_change_s,
    next_tick_s,
    step,
)
from greenbatch.engine.queue import position_of, start
from greenbatch.engine.state import (
    BAD_SCORE,
    BY_ARRIVAL,
    BY_RULE,
    DELAY_FOR,
    DELAY_RELEASES,
    EASY,
    EASY_GREEN_ORDER,
    EASY_SCHEDGYM,
    GREEN,
    NO_DELAY,
    NONE,
    OK,
    Queue,
)

LONGEST_RELEASE_DELAY_S = 3600.0
"""Longest delay until running jobs release their processors (GAS-MARL §4.1.2, type 2). [s]"""


@compiled
def advance(s: Any) -> bool:
    """Carry out events until a decision is due; False once all jobs have ended."""
    c = s.clock
    while c.status == OK:
        if c.first < c.last and not c.blocked:
            return True
        if c.first == c.last and c.arrived == s.arrivals.shape[0]:
            drain(s)
            return False
        wake_s = np.inf
        if c.first < c.last:
            wake_s = min(c.wake_s, next_tick_s(s))
            if s.set.backfill == GREEN or s.set.wake_at_supply:
                wake_s = min(wake_s, next_supply_change_s(s))
        kind = step(s, wake_s)
        if kind == NOTHING:
            return False
        overdue = c.running > 0 and s.expected[c.expected_first].end_s < c.now_s  # the reservation may have changed
        if kind == ARRIVAL and c.settled and not overdue and s.queue[c.last - 1].score >= c.head_score:
            if s.set.backfill != NONE and s.queue[c.last - 1].processors <= c.free:
                reserve(s, c.head)
                backfill_arrival(s)
            continue
        c.blocked, c.settled, c.wake_s = 0, 0, np.inf
    return False


@compiled_allocating
def fill_scores(s: Any, rule: Any) -> None:
    """Compute the scores of the waiting jobs with a rule, and write them to the queue."""
    c = s.clock
    n = c.last - c.first
    for i in range(n):
        job = s.jobs[s.queue[c.first + i].job]
        s.columns[0, i] = job.submit_s
        s.columns[1, i] = c.now_s - job.submit_s
        s.columns[2, i] = job.requested_s
        s.columns[3, i] = job.processors
        s.columns[4, i] = job.power_w
        s.columns[5, i] = job.user
    scores = rule(
        Queue(
            c.now_s, float(c.free), float(s.set.processors), s.columns[0, :n], s.columns[1, :n], s.columns[2, :n],
            s.columns[3, :n], s.columns[4, :n], s.columns[5, :n],
        )
    )  # fmt: skip
    if scores.shape[0] != n:
        c.status = BAD_SCORE
        return
    for i in range(n):
        if np.isnan(scores[i]):
            c.status = BAD_SCORE
        s.queue[c.first + i].score = scores[i]


@compiled
def choose(s: Any, rule: Any) -> int:
    """Queue position of the job with the lowest score; the first one of a tie."""
    c = s.clock
    if s.set.ranking == BY_ARRIVAL:
        return int(c.first)
    if s.set.ranking == BY_RULE:
        fill_scores(s, rule)
    best = c.first
    for i in range(c.first + 1, c.last):
        if s.queue[i].score < s.queue[best].score:
            best = i
    return int(best)


@compiled
def place(s: Any, position: int, delay: int, amount: float) -> None:
    """Carry out "start this job (after a delay)".

    Args:
        s: the state.
        position: queue position of the job.
        delay: NO_DELAY, DELAY_RELEASES or DELAY_FOR.
        amount: number of running jobs to wait for, or seconds.
    """
    c = s.clock
    job = s.queue[position].job
    until_s = c.now_s if delay == NO_DELAY else delay_end_s(s, delay, amount)
    if until_s <= c.now_s and s.jobs[job].processors <= c.free:
        c.decisions += 1
        start(s, position)
    elif s.set.sticky:
        c.decisions += 1
        _commit(s, job, until_s, delay == DELAY_FOR)
    else:
        _block(s, job, s.queue[position].score, until_s)


@compiled
def delay_end_s(s: Any, delay: int, amount: float) -> float:
    """End of a delay that begins now, by requested ends of running jobs. [s]"""
    c = s.clock
    if delay == DELAY_FOR:
        return float(c.now_s + amount)
    if delay == DELAY_RELEASES and c.running > 0 and amount >= 1.0:
        nth = min(int(amount), c.running) - 1
        return float(max(c.now_s, min(c.now_s + LONGEST_RELEASE_DELAY_S, s.expected[c.expected_first + nth].end_s)))
    return float(c.now_s)


@compiled
def _commit(s: Any, job: int, until_s: float, wake_at_end: bool) -> None:
    """Sticky: only backfilled jobs can start before this job.

    Without Green-Backfilling, a delay only carries out events. With it, candidates may run until the later of the
    reservation and the end of the delay. A delay by releases has no wake-up of its own, so it can extend to the next
    event (as in GAS-MARL's simulator).
    """
    c, mode = s.clock, s.set.backfill
    if until_s > c.now_s and mode != GREEN:
        while min(next_arrival_s(s), next_completion_s(s)) <= until_s:
            next_event(s, np.inf)
        c.now_s = until_s
    need = s.jobs[job].processors
    if need > c.free or c.now_s < until_s:
        reserve(s, job)
        c.shadow_s = max(c.shadow_s, until_s)
        kind = NOTHING
        while need > c.free or c.now_s < until_s:
            if mode == EASY:
                reserve(s, job)
            if kind == ARRIVAL and mode in (EASY_SCHEDGYM, EASY_GREEN_ORDER):
                backfill_arrival(s)  # the reservation is unchanged, so no other job has become eligible
            elif mode != NONE:
                backfill(s, job)
            wake_s = np.inf
            if mode == GREEN:
                wake_s = next_supply_change_s(s)
                if wake_at_end and c.now_s < until_s:
                    wake_s = min(wake_s, until_s)
            kind = step(s, wake_s)
        if s.set.twins and mode != NONE:  # the order that stable sorts by score, Eq. 15 and submission give
            _sort_twins(s, True)
            if mode in (EASY_GREEN_ORDER, GREEN):
                _sort_twins(s, False)
    start(s, position_of(s, job))


@compiled
def _sort_twins(s: Any, by_score: bool) -> None:
    """Stably sort waiting jobs with equal submit times by score or by GAS-MARL Eq. 15."""
    c = s.clock
    spare = s.queue.shape[0] - 1  # the queue has one row more than there are jobs
    for i in range(c.first + 1, c.last):
        k = i
        while k > c.first:
            a, b = s.jobs[s.queue[k - 1].job], s.jobs[s.queue[k].job]
            key_a = s.queue[k - 1].score if by_score else a.power_w * a.requested_s * a.processors
            key_b = s.queue[k].score if by_score else b.power_w * b.requested_s * b.processors
            if a.submit_s != b.submit_s or key_a <= key_b:
                break
            s.queue[spare] = s.queue[k]
            s.queue[k] = s.queue[k - 1]
            s.queue[k - 1] = s.queue[spare]
            k -= 1


@compiled
def _block(s: Any, job: int, score: float, until_s: float) -> None:
    """Reconsider: backfill around this job now, decide again at the next event (or at the end of the delay)."""
    c = s.clock
    reserve(s, job)
    c.shadow_s = max(c.shadow_s, until_s)
    if s.set.backfill != NONE:
        backfill(s, job)
    c.head, c.head_score, c.blocked = job, score, 1
    c.wake_s = until_s if until_s > c.now_s else np.inf
    c.settled = s.set.ranking != BY_RULE and s.set.backfill != GREEN and until_s <= c.now_s
