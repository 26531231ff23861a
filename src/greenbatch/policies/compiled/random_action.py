"""Random actions on a machine whose capacity follows the power: what an agent does that has learned nothing.

At every tick in which jobs wait, actions are drawn until one of them ends the tick. A ready job that cannot start, as
it does not fit on the nodes or a limit of power forbids it, is as one that does not fit.

Source: RARE (dissertation), §5.4.2, which does not say what its random policy draws from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.capacity.admission import choosable_jobs, choosable_position
from greenbatch.engine.capacity.levels import look_ahead_s
from greenbatch.engine.capacity.suspension import may_suspend
from greenbatch.engine.codes import NO_DELAY, SUSPEND_JOB
from greenbatch.engine.decide import decide
from greenbatch.engine.limits import can_start
from greenbatch.engine.machine.placement import drawn
from greenbatch.engine.observe.features import job_in
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.records import Ints
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import Action, apply, start_now, wait_until
from greenbatch.machine_code.compile import compiled, whole
from greenbatch.workload import Workload

ALL, ALLOWED, FITTING = range(3)
"""What is drawn from: all slots of the ready pool, suspending and waiting; those of them that can be carried out now;
or ready jobs that can start, and waiting only if there are none."""


class RandomAction(NamedTuple):
    """Parameters, and the number of draws so far."""

    of: int
    seed: int
    slots: int
    """Of the ready pool; 0 for as many as there are ready jobs."""
    draws: Ints
    """Shape (1,)."""


@compiled
def _can_start(s: State, slot: int) -> bool:
    """Whether the job in a slot of the ready pool can start now."""
    job = job_in(s, slot)
    return can_start(s, job, whole(s.jobs[job].processors))


@compiled
def _candidates(decider: RandomAction, s: State) -> int:
    """Number of actions that are drawn from, waiting included unless a job must start."""
    ready = whole(choosable_jobs(s.capacity, s.clock))
    if decider.of == ALL:
        return max(ready, decider.slots) + 2
    count = 0
    for k in range(ready):
        count += _can_start(s, k)
    if decider.of == FITTING:
        return max(count, 1)
    return count + may_suspend(s.capacity, s) + 1


@compiled
def _slot(decider: RandomAction, s: State, chosen: int) -> int:
    """The ready pool's slot of a drawn action; the number of ready jobs or more for an action without a job."""
    ready = whole(choosable_jobs(s.capacity, s.clock))
    if decider.of == ALL:
        return chosen
    for k in range(ready):
        if _can_start(s, k):
            if chosen == 0:
                return k
            chosen -= 1
    return ready + chosen


@decide.register(RandomAction)
def act_at_random(decider: RandomAction, s: State) -> None:
    """Draw an action; waiting, and what cannot be carried out, end the tick."""
    count = _candidates(decider, s)
    chosen = int(drawn(decider.seed, whole(decider.draws[0]), 0) * count)
    decider.draws[0] += 1
    slot, ready = _slot(decider, s, chosen), whole(choosable_jobs(s.capacity, s.clock))
    suspends = decider.of != FITTING and chosen == count - 2 and slot >= ready
    if suspends and may_suspend(s.capacity, s):
        apply(s, Action(SUSPEND_JOB, 0, NO_DELAY, 0.0))
    elif slot < ready and _can_start(s, slot):
        apply(s, start_now(whole(choosable_position(s.capacity, s.queue.job, s.clock, slot))))
    else:
        apply(s, wait_until(next_edge_s(s.clock.now_s, 0.0, look_ahead_s(s.capacity)[0])))


def random_policy(of: int, seed: int) -> CompiledPolicy:
    """The policy with its parameters."""

    def begin(_: Workload, __: Cluster, rules: Rules) -> RandomAction:
        return RandomAction(of, seed, 0 if rules.pools is None else rules.pools.ready, np.zeros(1, np.int64))

    return CompiledPolicy(name="random-action", begin=begin)
