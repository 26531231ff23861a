"""LPTPN, which considers every waiting job and makes no reservations: as described, and as implemented by its authors.

On nodes, power and run time of a job are those foreseen (`policies.compiled.foreseen`).

Source: GAS-MARL §5.3 (3), after Kassab et al.: jobs in descending power x requested time; a job starts if it fits and
its estimated brown energy is below the threshold; if none can start and nothing runs, the first one starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.decide import decide
from greenbatch.engine.forecast import is_below_threshold, project_surplus
from greenbatch.engine.limits import can_be_next, can_start
from greenbatch.engine.machine.resources import fits
from greenbatch.engine.power.protocol import BROWN
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.queue import position_of, rank_queue
from greenbatch.engine.records import Floats
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.policies.compiled.foreseen import foresee, usual
from greenbatch.workload import Workload


@compiled_small
def _is_green(s: State, power_w: float, run_s: float, threshold_j: float) -> bool:
    """Whether the estimated extra brown energy of a job that starts now is below a threshold."""
    project_surplus(s, s.clock.now_s, s.clock.now_s + run_s, BROWN)
    return bool(is_below_threshold(s.scratch.surplus, s.clock.segments, power_w, run_s, threshold_j, True))


class Lptpn(NamedTuple):
    """LPTPN as described in the paper: one pass over all jobs at every event and change of supply."""

    threshold_j: float


@decide.register(Lptpn)
def start_green_jobs(decider: Lptpn, s: State) -> None:
    """Start all jobs that are green; the first one if none is and nothing runs."""
    started, first, averages = 0, -1, usual(s.machine)
    for k in range(rank_queue(s.queue, s.clock, s.scratch.ranked)):
        number = whole(s.scratch.ranked[k].job)
        if not can_be_next(s, number):
            continue
        first = number if first < 0 else first
        if can_start(s, number, whole(s.jobs[number].processors)):
            here = foresee(s, number, averages, False, True)
            run_s = min(here.run_s, s.jobs[number].requested_s)  # the forecast covers no more
            if _is_green(s, here.power_w, run_s, decider.threshold_j):
                apply(s, start_now(position_of(s.queue, s.clock, number)))
                started += 1
    if started == 0 and s.clock.running == 0 and first >= 0:
        apply(s, start_now(position_of(s.queue, s.clock, first)))
    apply(s, wait_until(np.inf))


class LptpnPublished(NamedTuple):
    """LPTPN as implemented in the authors' simulator.

    It differs from the paper in two ways. A pass skips the job after each one it starts, because the list changes
    during the iteration. And when a pass starts nothing, the simulator waits in steps of one second for *one* job, the
    last one considered (after an empty pass, one that already runs), instead of considering all jobs at the next event.
    """

    threshold_j: float
    memory: Floats
    """The mode, and what is kept of the last job considered, shape (5,)."""


_MODE, _PROCESSORS, _REQUESTED_S, _POWER_W, _JOB = range(5)
_PASS, _WAITING, _AFTER_EMPTY_PASS = range(3)
"""Modes: consider all jobs; wait for the last one considered; do so unless nothing runs."""


@compiled
def _last_is_green(decider: LptpnPublished, s: State) -> bool:
    last = decider.memory
    if not fits(s.machine, int(last[_JOB]), int(last[_PROCESSORS]), s.clock.now_s):
        return False
    return bool(_is_green(s, last[_POWER_W], last[_REQUESTED_S], decider.threshold_j))


@compiled
def _start_anyway(decider: LptpnPublished, s: State) -> None:
    """Start the first job in order; if it was the only one, the next pass is empty."""
    apply(s, start_now(position_of(s.queue, s.clock, s.scratch.ranked[0].job)))
    decider.memory[_MODE] = _AFTER_EMPTY_PASS if s.clock.first == s.clock.last else _PASS


@decide.register(LptpnPublished)
def start_as_published(decider: LptpnPublished, s: State) -> None:
    """Start green jobs, all but each one after a start; or wait until the last one considered is green."""
    c, last = s.clock, decider.memory
    if last[_MODE] == _AFTER_EMPTY_PASS and c.running == 0:
        rank_queue(s.queue, s.clock, s.scratch.ranked)
        _start_anyway(decider, s)
        return
    if last[_MODE] != _PASS and c.running > 0 and not _last_is_green(decider, s):
        last[_MODE] = _WAITING
        fitting = fits(s.machine, int(last[_JOB]), int(last[_PROCESSORS]), c.now_s)
        apply(s, wait_until(c.now_s + 1.0 if fitting else np.inf))
        return
    last[_MODE] = _PASS
    count, started, k = rank_queue(s.queue, s.clock, s.scratch.ranked), 0, 0
    while k < count:
        number = s.scratch.ranked[k].job
        job = s.jobs[number]
        last[_PROCESSORS], last[_REQUESTED_S], last[_POWER_W] = job.processors, job.requested_s, job.power_w
        last[_JOB] = number
        if _last_is_green(decider, s):
            apply(s, start_now(position_of(s.queue, s.clock, number)))
            started += 1
            k += 1  # the iteration skips the next one
        k += 1
    if started == 0 and c.running == 0:
        _start_anyway(decider, s)
    elif started == 0:
        last[_MODE] = _WAITING


def lptpn_policy(threshold_j: float) -> CompiledPolicy:
    """LPTPN as described, with its threshold. [J]"""

    def begin(_: Workload, __: Cluster, ___: Rules) -> Lptpn:
        return Lptpn(threshold_j)

    return CompiledPolicy(name="lptpn", begin=begin, wakes_at_supply_changes=True)


def lptpn_published_policy(threshold_j: float) -> CompiledPolicy:
    """LPTPN as implemented by its authors, with its threshold. [J]"""

    def begin(_: Workload, __: Cluster, ___: Rules) -> LptpnPublished:
        return LptpnPublished(threshold_j, np.zeros(5))

    return CompiledPolicy(name="lptpn-published", begin=begin)
