"""Min-min and max-min: the pair of a job and its best node is chosen anew after every start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.decide import decide
from greenbatch.engine.limits import can_start
from greenbatch.engine.machine.preview import expected_run_s
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.machine_code.compile import compiled, whole
from greenbatch.workload import Workload


class BestFirst(NamedTuple):
    """Starts jobs in the order of their best completion times."""

    sign: float
    """1: the earliest first (min-min); -1: the latest first (max-min)."""


@decide.register(BestFirst)
def start_the_next_best(decider: BestFirst, s: State) -> None:
    """Start the job whose best completion time is next; wait if none can start."""
    position = _next_best(s, decider.sign)
    if position < 0:
        apply(s, wait_until(np.inf))
    else:
        apply(s, start_now(position))


@compiled
def _next_best(s: State, sign: float) -> int:
    """Queue position of the next job, the first one of a tie; -1 if none can start."""
    best, least = -1, np.inf
    for i in range(s.clock.first, s.clock.last):
        job = whole(s.queue.job[i])
        if can_start(s, job, whole(s.queue.processors[i])):
            key = sign * expected_run_s(s.machine, job, s.queue.requested_s[i])  # all would start now
            if key < least:
                best, least = i, key
    return best


def min_min_policy(sign: float) -> CompiledPolicy:
    """Min-min (1) or max-min (-1)."""

    def begin(_: Workload, __: Cluster, ___: Rules) -> BestFirst:
        return BestFirst(sign)

    return CompiledPolicy(name="min-min" if sign > 0 else "max-min", begin=begin)
