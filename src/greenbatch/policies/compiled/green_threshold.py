"""Start a job once little enough of its energy comes from the grid; the longer it has waited, the more may.

A job is held while its energy over its requested time, as `Weights` weigh it (brown energy by default), exceeds a share
of what it would weigh if all of it came from the grid at the usual price. The share rises from `share` at submission,
and at the latest when the slowdown budget or the limit of the wait is used up, the job is not held any more. EASY
backfilling runs over the jobs that are not held; held jobs reserve nothing. On nodes, power and run time of a job are
those foreseen (`policies.compiled.foreseen`), and the first blocked job of each set of partitions has a reservation.

Source: this project.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.backfill import latest_end_s, may_start, outlives_head
from greenbatch.engine.decide import decide
from greenbatch.engine.forecast import is_below_threshold, project_surplus
from greenbatch.engine.limits import can_be_next, can_start
from greenbatch.engine.machine.competition import block
from greenbatch.engine.power.protocol import Weights, is_brown, usual_weight
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.queue import position_of, rank_queue
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.engine.timeline import reserve
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.policies.compiled.foreseen import Usual, foresee, keep_held, usual
from greenbatch.workload import Workload

LEAST_S = 10.0
"""Slowdowns are those of jobs that request at least this time. [s]"""


class GreenThreshold(NamedTuple):
    """Parameters of the policy."""

    share: float
    """Share of brown energy up to which a job starts at its submission."""
    slowdown: float
    """Slowdown that holding may cause beyond 1: the budget."""
    limit_s: float
    """Wait after which no job is held. [s]"""
    shape: float
    """Exponent of the used part of the budget."""
    weights: Weights
    """What a joule weighs."""


@compiled_small
def allowed_share(decider: GreenThreshold, wait_s: float, requested_s: float) -> float:
    """Share of brown energy up to which a job starts, infinite once its budget is used up."""
    budget_s = min(decider.slowdown * max(requested_s, LEAST_S), decider.limit_s)
    if wait_s >= budget_s:
        return np.inf
    return float(decider.share + (1.0 - decider.share) * (wait_s / budget_s) ** decider.shape)


@compiled_small
def is_held(s: State, decider: GreenThreshold, number: int, averages: Usual) -> bool:
    """Whether a job waits for power; ``scratch.surplus`` must cover its requested time."""
    job, weights = s.jobs[number], decider.weights
    share = allowed_share(decider, s.clock.now_s - job.submit_s, job.requested_s)
    if share == np.inf:
        return False
    here = foresee(s, number, averages, False, True)
    power_w, run_s = here.power_w, min(here.run_s, job.requested_s)  # the forecast covers no more
    all_j = usual_weight(weights) * power_w * run_s
    if all_j == 0.0:
        return False
    most_j = np.nextafter(share * all_j, np.inf) + 2e-6  # what equals the share may start, whatever the rounding
    segments, count = s.scratch.surplus, s.clock.segments
    return not is_below_threshold(segments, count, power_w, run_s, most_j, is_brown(weights))


@compiled
def _next_start(s: State, decider: GreenThreshold) -> int:
    """Queue position of the job that starts next, -1 if none does now."""
    c, ranked, longest_s, averages = s.clock, s.scratch.ranked, 0.0, usual(s.machine)
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue.requested_s[i])
    project_surplus(s, c.now_s, c.now_s + longest_s, decider.weights)
    count, head, latest_s = rank_queue(s.queue, c, ranked), -1, 0.0
    while True:  # once for each part of the machine whose jobs do not compete with those of another
        for k in range(count):
            number = whole(ranked[k].job)
            if not can_be_next(s, number) or is_held(s, decider, number, averages):
                continue
            if can_start(s, number, whole(s.jobs[number].processors)):
                position = whole(position_of(s.queue, c, number))
                if head < 0 or may_start(s, position, latest_s, head):
                    keep_held(s.machine, head >= 0 and outlives_head(s, position, head))
                    return position
            elif head < 0:
                head = number
                reserve(s, head)
                latest_s = latest_end_s(s)
        if head < 0 or block(s.machine, head):
            return -1
        head = -1


@decide.register(GreenThreshold)
def start_or_hold(decider: GreenThreshold, s: State) -> None:
    """Start one job, or wait."""
    position = _next_start(s, decider)
    apply(s, start_now(position) if position >= 0 else wait_until(np.inf))
    keep_held(s.machine, False)


def green_threshold_policy(decider: GreenThreshold) -> CompiledPolicy:
    """The policy with its parameters."""

    def begin(_: Workload, __: Cluster, ___: Rules) -> GreenThreshold:
        return decider

    return CompiledPolicy(name="green-threshold", begin=begin, wakes_at_supply_changes=True)
