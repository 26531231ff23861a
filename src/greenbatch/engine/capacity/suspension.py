"""Suspending and resuming jobs: for lack of power, or because a policy says so.

A suspended job gives back what it took; the work that it has done is kept, unless the scenario says that it is lost.
It resumes by itself, the oldest suspension first, as soon as it fits at a change of the machine or at a tick.

The contract of a capacity that suspends, and what `Varying` does; ``otherwise`` holds for a machine that is always
powered.

Source: RARE (dissertation), §3.2.2; which job is suspended first is not said there.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine import codes, events, limits, log, running
from greenbatch.engine.capacity.admission import count_action, is_admitted
from greenbatch.engine.capacity.expected import expect
from greenbatch.engine.capacity.units import hold
from greenbatch.engine.capacity.value import SUSPENSIONS
from greenbatch.engine.capacity.varying import RUNNING, SUSPENDED, CapacityCounts, Varying
from greenbatch.engine.machine.interruption import fits_instead, go_on, on_level, set_aside
from greenbatch.engine.machine.placement import drawn
from greenbatch.engine.machine.power_states import begins_s
from greenbatch.engine.machine.preview import running_w
from greenbatch.engine.machine.rates import update_ends
from greenbatch.engine.machine.resources import fits, give, take
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.machine_code.variants import variant


@variant(Varying, otherwise=-1)
def suspended_job(capacity: Varying, row: int) -> int:
    """The suspended job in a row, in order of suspension; -1 after the last one."""
    return whole(capacity.suspended[row]) if row < capacity.counts.suspended else -1


@variant(Varying, inlined=False)
def on_instant(capacity: Varying, s: State) -> None:
    """Bring the capacity up to date after the events of an instant: levels, failures, suspended jobs.

    Sets the capacity of now, suspends jobs while more is used than powered, and lets suspended jobs resume.
    """
    counts, c, totals = capacity.counts, s.clock, s.machine.totals
    if c.now_s >= counts.end_s:
        return
    k = whole(counts.level)
    while k + 1 < capacity.levels.shape[0] and capacity.levels[k + 1].time_s <= c.now_s:
        k += 1
    if k != counts.level:
        level = capacity.levels[k]
        if s.rules.accrue:
            events.accrue(s)
        totals.free += level.processors - counts.powered
        totals.free_gpus += level.gpus - counts.gpus
        counts.powered, counts.gpus, counts.level = whole(level.processors), whole(level.gpus), k
        on_level(s.machine, whole(totals.processors) - counts.powered, level.idle_w, c.now_s)
        log.note(s.log, c, codes.SWITCH, -1, totals.load_w)
    if counts.seen != k:
        expect(s)
    while counts.failure_s <= c.now_s:
        _fail(s)
    while totals.free < 0 or totals.free_gpus < 0:
        counts.forced += 1
        suspend(s, victim(s, np.inf))
    if c.now_s >= counts.retry_s:
        counts.retry_s = np.inf
    if counts.suspended > 0:
        _resume_all(s)


@compiled_small
def next_failure_s(counts: CapacityCounts, from_s: float, processors: int) -> float:
    """The failure after one at a time: exponential gaps, the same for every scheduler. [s]"""
    gap = -np.log(1.0 - drawn(whole(counts.failure_seed), whole(2 * counts.failures), 0))
    return float(from_s + gap / (counts.failure_rate * processors))


@compiled
def _fail(s: State) -> None:
    """A processor fails, any with equal probability; the job on it, if one runs there, loses work and is suspended."""
    counts, c, processors = s.capacity.counts, s.clock, whole(s.machine.totals.processors)
    at = drawn(whole(counts.failure_seed), whole(2 * counts.failures + 1), 0) * processors
    counts.failures += 1
    counts.failure_s = next_failure_s(counts, counts.failure_s, processors)
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
    c, jobs, rule = s.clock, s.capacity.jobs, s.capacity.counts.victim
    best, best_job, least, latest_s = -1, -1, np.inf, -np.inf
    for k in range(c.expected_first, c.expected_first + c.running):
        row = s.expected[k]
        own, job = jobs[row.job], whole(row.job)
        if row.start_s >= before_s:
            continue
        key = (own.value, -own.due_s, row.end_s, -row.end_s, -own.first_start_s)[rule]  # in the order of `Victim`
        start_s = own.first_start_s
        if key < least or (key == least and (start_s > latest_s or (start_s == latest_s and job > best_job))):
            best, best_job, least, latest_s = k, job, key, start_s
    return best


@compiled
def suspend(s: State, row: int) -> None:
    """Suspend the running job in a row of ``expected``.

    When it resumes, it first takes the time to be suspended and to resume, once for each suspension: what is left of
    the time of an earlier one is void, and that time is not work, so it cannot be lost. Nor is the time that its nodes
    boot; one that is suspended meanwhile has done nothing.
    """
    c, capacity = s.clock, s.capacity
    counts = capacity.counts
    if s.rules.accrue:
        events.accrue(s)
    begin_s = s.expected[row].start_s
    span_s = max(c.now_s - begin_s, 0.0)
    done = running.remove_running(s.ending, s.expected, c, row)
    number = whole(done.job)
    job, own = s.jobs[number], capacity.jobs[number]
    cost_s = counts.suspend_s + counts.resume_s
    begun_s = cost_s if own.suspensions > 0 else 0.0  # for so long, this span did no work
    worked_s, lost_s = max(span_s - begun_s, 0.0), 0.0
    if counts.checkpoint_s > 0.0:  # the work since the last checkpoint is lost
        kept_s = np.floor(worked_s / counts.checkpoint_s) * counts.checkpoint_s if counts.checkpoint_s < np.inf else 0.0
        lost_s = worked_s - kept_s
    more_s = lost_s - max(begun_s - span_s, 0.0) + cost_s - max(c.now_s, begin_s)
    lost = lost_s / worked_s if worked_s > 0.0 else 0.0
    own.work_s = job.run_s if own.suspensions == 0 else own.work_s
    own.ran_s += span_s
    job.run_s = set_aside(s.machine, number, done.end_s + more_s, lost, c.now_s)
    job.requested_s = done.requested_end_s + more_s
    give(s.machine, number, whole(job.processors), job.power_w, c.now_s, c.running == 0)
    update_ends(s.machine, s.ending, c)
    own.processors, own.gpus = own.most, own.most_gpus
    own.first_start_s = np.nan if own.first_start_s > c.now_s else own.first_start_s
    own.place = SUSPENDED
    own.suspensions += 1
    capacity.service[SUSPENSIONS] += 1.0
    capacity.suspended[counts.suspended] = number
    counts.suspended += 1
    log.note(s.log, c, codes.SUSPEND, number, s.machine.totals.load_w)


@compiled
def _resume_all(s: State) -> None:
    """Let suspended jobs resume that fit, the oldest suspension first; later ones may pass earlier ones."""
    c, capacity = s.clock, s.capacity
    counts, kept = capacity.counts, 0
    for k in range(counts.suspended):
        number = whole(capacity.suspended[k])
        job = s.jobs[number]
        if not limits.can_run(s, number, whole(job.processors)):
            capacity.suspended[kept] = number
            kept += 1
            continue
        if s.rules.accrue:
            events.accrue(s)
        rate = take(s.machine, number, whole(job.processors), job.power_w, c.now_s, False)
        run_s = go_on(s.machine, number, job.run_s / rate, counts.suspend_s + counts.resume_s)
        run_s = min(run_s, job.requested_s) if s.rules.kill else run_s
        capacity.jobs[number].place = RUNNING
        begin_s, power_w = begins_s(s.machine, number, c.now_s), running_w(s.machine, number, job.power_w)
        running.add_running(s.ending, s.expected, c, job, number, power_w, begin_s, run_s)
        update_ends(s.machine, s.ending, c)
        log.note(s.log, c, codes.RESUME, number, s.machine.totals.load_w)
        hold(capacity, s, number)
    counts.suspended = kept


@variant(Varying, otherwise=False, inlined=False)
def may_suspend(capacity: Varying, s: State) -> bool:
    """Whether a policy may suspend a running job now: policies suspend, a job runs, and the pool has room."""
    counts = capacity.counts
    return bool(counts.suspends == 2 and s.clock.running > 0 and counts.suspended < counts.suspend_limit)


@variant(Varying, otherwise=False, inlined=False)
def suspend_by_choice(capacity: Varying, s: State) -> bool:
    """Suspend a running job because the policy says so; whether there is one that it may suspend.

    It is the first of the running jobs that did not start at this instant, or of all if all did, and is tried again at
    the next tick.
    """
    if not may_suspend(capacity, s):
        return False
    row = victim(s, s.clock.now_s)
    suspend(s, row if row >= 0 else victim(s, np.inf))
    count_action(capacity.counts, s.clock.now_s)
    counts = capacity.counts
    counts.retry_s = min(counts.retry_s, next_edge_s(s.clock.now_s, 0.0, counts.tick_s))
    return True


@variant(Varying, otherwise=False, inlined=False)
def make_room(capacity: Varying, s: State, position: int) -> bool:
    """Suspend a running job of less value for the job at a queue position, if that lets it start; whether it did.

    Both are actions of one tick: at the next, the suspended job would resume before the other starts, and so forever.

    Source: RARE, SUSPEND-SWAP.
    """
    counts, c = capacity.counts, s.clock
    number = whole(s.queue.job[position])
    processors = whole(s.queue.processors[position])
    if counts.suspends != 2 or (is_admitted(capacity, number) and fits(s.machine, number, processors, c.now_s)):
        return False
    c.wake_s = min(c.wake_s, next_edge_s(c.now_s, 0.0, counts.tick_s))  # jobs that start now can be suspended then
    acted = counts.actions if counts.acted_s == c.now_s else 0
    row = victim(s, c.now_s) if may_suspend(capacity, s) and acted + 2 <= counts.actions_limit else -1
    if row < 0:
        return False
    head, other = capacity.jobs[number], capacity.jobs[s.expected[row].job]
    if not (
        other.value < head.value
        and head.processors <= s.machine.totals.free + other.processors
        and head.gpus <= s.machine.totals.free_gpus + other.gpus
        and fits_instead(s.machine, number, processors, whole(s.expected[row].job))
        and limits.allows_instead(s, number, row)
    ):
        return False
    suspend_by_choice(capacity, s)
    return True
