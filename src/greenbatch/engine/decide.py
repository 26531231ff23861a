"""Who decides: a variant per kind of decider, and the decider of every priority rule.

A decider is a NamedTuple of parameters and memory. `decide` may look at everything in the state, and changes it only
with `apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from greenbatch.engine.capacity.suspension import make_room
from greenbatch.engine.codes import BAD_SCORE, BY_ARRIVAL, BY_RULE, NONE
from greenbatch.engine.limits import can_be_next
from greenbatch.engine.prediction.known import predicted_of
from greenbatch.engine.records import Floats
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, rest, start_now
from greenbatch.engine.views.interface import Attributes, Predicted, Queue
from greenbatch.machine_code.compile import compiled, compiled_allocating, compiled_small, whole
from greenbatch.machine_code.variants import variant

Rule = Callable[[Queue], Floats]
"""A priority rule: one score per waiting job, the lowest goes first."""


@variant()
def decide(decider: Any, s: State) -> None:
    """Make a decision: apply actions, so that a job starts or the policy waits; called again until it waits.

    Args:
        decider: parameters and memory of the policy; its type selects the implementation.
        s: the state, with at least one waiting job.
    """
    raise TypeError


class Ranking(NamedTuple):
    """The decider of priority rules: the job with the lowest score is next."""

    rule: Rule
    """Used if scores change, see `RuleSet.ranking`."""


@decide.register(Ranking)
def start_the_first(decider: Ranking, s: State) -> None:
    """Start the job with the lowest score, of those that no blocked job holds back."""
    position = choose(s, decider.rule)
    if s.rules.backfill == NONE and make_room(s.capacity, s, position):
        rest(s)
    else:
        apply(s, start_now(position))


@compiled
def fill_predicted(s: State) -> None:
    """Write what is predicted of the waiting jobs to the columns over the queue, for rules that use it."""
    c, columns = s.clock, s.scratch.columns
    for i in range(c.last - c.first):
        number = whole(s.queue.job[c.first + i])
        known = predicted_of(s.predictor, number, s.jobs[number].requested_s)
        for k in range(5):
            columns[18 + k, i] = known[k]


@compiled_allocating
def fill_scores(s: State, rule: Rule) -> None:
    """Compute the scores of the waiting jobs with a rule, and write them to the queue."""
    c, columns = s.clock, s.scratch.columns
    n = c.last - c.first
    for i in range(n):
        job = s.jobs[s.queue.job[c.first + i]]
        columns[0, i] = job.submit_s
        columns[1, i] = c.now_s - job.submit_s
        columns[2, i] = job.requested_s
        columns[3, i] = job.processors
        columns[4, i] = job.power_w
        columns[5, i] = job.user
        if s.rules.uses_attributes:
            for k in range(s.attributes.shape[1]):
                columns[6 + k, i] = s.attributes[s.queue.job[c.first + i], k]
    totals = s.machine.totals
    scores = rule(
        Queue(
            c.now_s, float(totals.free), float(totals.processors), columns[0, :n], columns[1, :n], columns[2, :n],
            columns[3, :n], columns[4, :n], columns[5, :n],
            Attributes(
                columns[6, :n], columns[7, :n], columns[8, :n], columns[9, :n], columns[10, :n], columns[11, :n],
                columns[12, :n], columns[13, :n], columns[14, :n], columns[15, :n], columns[16, :n], columns[17, :n],
            ),
            Predicted(columns[18, :n], columns[19, :n], columns[20, :n], columns[21, :n], columns[22, :n]),
        )
    )  # fmt: skip
    if scores.shape[0] != n:
        c.status = BAD_SCORE
        return
    for i in range(n):
        if np.isnan(scores[i]):
            c.status = BAD_SCORE
        s.queue.score[c.first + i] = scores[i]


@compiled_small
def choose(s: State, rule: Rule) -> int:
    """Queue position of the job with the lowest score, the first one of a tie, of those that are not held back."""
    c = s.clock
    if s.rules.ranking == BY_RULE:
        if s.rules.uses_predicted:
            fill_predicted(s)
        fill_scores(s, rule)
    best = c.first
    while not can_be_next(s, whole(s.queue.job[best])):
        best += 1
    if s.rules.ranking != BY_ARRIVAL:
        for i in range(best + 1, c.last):
            if s.queue.score[i] < s.queue.score[best] and can_be_next(s, whole(s.queue.job[i])):
                best = i
    return int(best)
