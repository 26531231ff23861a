"""Suspending and resuming jobs: for lack of power, or because a policy says so.

A suspended job gives back what it took; the work that it has done is kept, unless the scenario says that it is lost.
It resumes by itself, the oldest suspension first, as soon as it fits at a change of the machine or at a tick.

Source: RARE (dissertation), §3.2.2; which job is suspended first is not said there.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from greenbatch.engine.codes import RESUME, SUSPEND, SWITCH
from greenbatch.engine.compile import compiled, compiled_small, whole
from greenbatch.engine.events import accrue
from greenbatch.engine.limits import can_start
from greenbatch.engine.log import note
from greenbatch.engine.machine.placement import drawn
from greenbatch.engine.machine.powered import SUSPENDED, PoolCounts, Powered
from greenbatch.engine.machine.powered import PoweredState as State
from greenbatch.engine.machine.protocol import fits, give, take
from greenbatch.engine.pools import Victim
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.running import add_running, remove_running
from greenbatch.engine.whole_machine import follow, make_room, may_suspend, suspend_by_choice

LOWEST_VALUE, LATEST_DUE, SHORTEST_REMAINING, LONGEST_REMAINING, LATEST_START = range(len(get_args(Victim)))


@follow.register(Powered)
def follow_power(machine: Powered, s: State) -> None:
    """Set the capacity of now, suspend jobs while more is used than powered, and let suspended jobs resume."""
    counts, c = machine.counts, s.clock
    if c.now_s >= counts.end_s:
        return
    k = whole(counts.level)
    while k + 1 < machine.levels.shape[0] and machine.levels[k + 1].time_s <= c.now_s:
        k += 1
    if k != counts.level:
        _set_level(s, k)
    while counts.failure_s <= c.now_s:
        _fail(s)
    while machine.totals.free < 0 or counts.free_gpus < 0:
        counts.forced += 1
        suspend(s, victim(s, np.inf))
    if c.now_s >= counts.retry_s:
        counts.retry_s = np.inf
    if counts.suspended > 0:
        _resume_all(s)


@compiled
def _set_level(s: State, k: int) -> None:
    machine = s.machine
    totals, counts, level = machine.totals, machine.counts, machine.levels[k]
    if s.rules.accrue:
        accrue(s)
    totals.free += level.processors - counts.powered
    counts.free_gpus += level.gpus - counts.gpus
    counts.powered, counts.gpus, counts.level = whole(level.processors), whole(level.gpus), k
    totals.load_w += level.idle_w - totals.base_power_w
    totals.base_power_w = level.idle_w
    note(s.log, s.clock, SWITCH, k, totals.load_w)


@compiled_small
def next_failure_s(counts: PoolCounts, from_s: float, processors: int) -> float:
    """The failure after one at a time: exponential gaps, the same for every scheduler. [s]"""
    gap = -np.log(1.0 - drawn(whole(counts.failure_seed), whole(2 * counts.failures), 0))
    return float(from_s + gap / (counts.failure_rate * processors))


@compiled
def _fail(s: State) -> None:
    """A processor fails, any with equal probability; the job on it, if one runs there, loses work and is suspended."""
    machine, c = s.machine, s.clock
    counts = machine.counts
    at = drawn(whole(counts.failure_seed), whole(2 * counts.failures + 1), 0) * machine.totals.processors
    counts.failures += 1
    counts.failure_s = next_failure_s(counts, counts.failure_s, whole(machine.totals.processors))
    for k in range(c.expected_first, c.expected_first + c.running):
        at -= s.expected[k].processors
        if at < 0.0:
            suspend(s, k)
            return


@compiled
def victim(s: State, before_s: float) -> int:
    """Row of ``expected`` of the job to suspend first, of those whose present span began before a time; or -1.

    Ties: the latest first start, then the highest job number.
    """
    c, stays, rule = s.clock, s.machine.stays, s.machine.counts.victim
    best, best_job, least, latest_s = -1, -1, np.inf, -np.inf
    for k in range(c.expected_first, c.expected_first + c.running):
        running = s.expected[k]
        stay, job = stays[running.job], whole(running.job)
        if running.start_s >= before_s:
            continue
        if rule == LOWEST_VALUE:
            key = stay.value
        elif rule == LATEST_DUE:
            key = -stay.due_s
        elif rule == LATEST_START:
            key = -stay.first_start_s
        else:
            key = running.end_s if rule == SHORTEST_REMAINING else -running.end_s
        start_s = stay.first_start_s
        if key < least or (key == least and (start_s > latest_s or (start_s == latest_s and job > best_job))):
            best, best_job, least, latest_s = k, job, key, start_s
    return best


@compiled
def suspend(s: State, row: int) -> None:
    """Suspend the running job in a row of ``expected``.

    When it resumes, it first takes the time to be suspended and to resume, once for each suspension: what is left of
    the time of an earlier one is void, and that time is not work, so it cannot be lost.
    """
    c, machine = s.clock, s.machine
    counts = machine.counts
    if s.rules.accrue:
        accrue(s)
    span_s = c.now_s - s.expected[row].start_s
    done = remove_running(s.ending, s.expected, c, row)
    number = whole(done.job)
    job, stay = s.jobs[number], machine.stays[number]
    cost_s = counts.suspend_s + counts.resume_s
    begun_s = cost_s if stay.suspensions > 0 else 0.0  # for so long, this span did no work
    worked_s, lost_s = max(span_s - begun_s, 0.0), 0.0
    if counts.checkpoint_s > 0.0:  # the work since the last checkpoint is lost
        kept_s = np.floor(worked_s / counts.checkpoint_s) * counts.checkpoint_s if counts.checkpoint_s < np.inf else 0.0
        lost_s = worked_s - kept_s
    more_s = lost_s - max(begun_s - span_s, 0.0) + cost_s - c.now_s
    job.run_s, job.requested_s = done.end_s + more_s, done.requested_end_s + more_s
    give(machine, number, whole(job.processors), job.power_w, c.now_s, c.running == 0)
    stay.place = SUSPENDED
    stay.suspensions += 1
    machine.service.suspensions += 1.0
    machine.suspended[counts.suspended] = number
    counts.suspended += 1
    note(s.log, c, SUSPEND, number, machine.totals.load_w)


@compiled
def _resume_all(s: State) -> None:
    """Let suspended jobs resume that fit, the oldest suspension first; later ones may pass earlier ones."""
    c, machine = s.clock, s.machine
    counts, kept = machine.counts, 0
    for k in range(counts.suspended):
        number = whole(machine.suspended[k])
        job = s.jobs[number]
        if not can_start(s, number, whole(job.processors)):
            machine.suspended[kept] = number
            kept += 1
            continue
        if s.rules.accrue:
            accrue(s)
        take(machine, number, whole(job.processors), job.power_w, c.now_s, False)
        add_running(s.ending, s.expected, c, job, number, job.power_w, c.now_s, job.run_s)
        note(s.log, c, RESUME, number, machine.totals.load_w)
    counts.suspended = kept


@may_suspend.register(Powered)
def has_room(machine: Powered, s: State) -> bool:
    """Whether policies suspend, a job runs, and the pool has room."""
    counts = machine.counts
    return bool(counts.suspends == 2 and s.clock.running > 0 and counts.suspended < counts.suspend_limit)


@suspend_by_choice.register(Powered)
def suspend_chosen(machine: Powered, s: State) -> bool:
    """Suspend the first of the running jobs that did not start at this instant, or of all if all did; whether it can.

    It is tried again at the next tick.
    """
    if not may_suspend(machine, s):
        return False
    row = victim(s, s.clock.now_s)
    suspend(s, row if row >= 0 else victim(s, np.inf))
    counts = machine.counts
    counts.retry_s = min(counts.retry_s, next_edge_s(s.clock.now_s, 0.0, counts.tick_s))
    return True


@make_room.register(Powered)
def swap(machine: Powered, s: State, position: int) -> bool:
    """Suspend one job of less value, if the job at a queue position fits then (RARE, SUSPEND-SWAP).

    Both are actions of one tick: at the next, the suspended job would resume before the other starts, and so forever.
    """
    counts, c = machine.counts, s.clock
    number = whole(s.queue.job[position])
    if counts.suspends != 2 or fits(machine, number, whole(s.queue.processors[position]), c.now_s):
        return False
    c.wake_s = min(c.wake_s, next_edge_s(c.now_s, 0.0, counts.tick_s))  # jobs that start now can be suspended then
    acted = counts.actions if counts.acted_s == c.now_s else 0
    row = victim(s, c.now_s) if may_suspend(machine, s) and acted + 2 <= counts.actions_limit else -1
    if row < 0:
        return False
    head, other = machine.stays[number], machine.stays[s.expected[row].job]
    if not (
        other.value < head.value
        and head.processors <= machine.totals.free + other.processors
        and head.gpus <= counts.free_gpus + other.gpus
    ):
        return False
    suspend_by_choice(machine, s)
    return True
