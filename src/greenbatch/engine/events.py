"""Events: which one is next, their order at the same instant, and what each does.

All ties are resolved here. At equal times, an arrival comes before a completion (after it under ``completion_first``),
and both come before a wake-up (a change of supply or of the machine, a tick, the end of a delay). Simultaneous arrivals
are ordered by job id, simultaneous completions by order of starting. The clock never goes backward. A job that follows
another (`engine.dependencies`) gets its time of submission when that one ends, or is rejected.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine import codes
from greenbatch.engine.capacity.admission import admit, on_end, on_start, on_submit
from greenbatch.engine.capacity.levels import end_of_run_s, is_beyond
from greenbatch.engine.capacity.units import hold
from greenbatch.engine.capacity.value import asked_s, count_service, on_dated
from greenbatch.engine.limits import has_limit, next_opening_s
from greenbatch.engine.log import note
from greenbatch.engine.machine.power_states import begins_s, next_switch_s, switch
from greenbatch.engine.machine.preview import running_w
from greenbatch.engine.machine.rates import advance_work, expect_ends, update_ends
from greenbatch.engine.machine.resources import give, take
from greenbatch.engine.power.protocol import LEFT_THE_SERIES, flow
from greenbatch.engine.power.slots import next_edge_s
from greenbatch.engine.prediction.known import fill, learn, note_running, predicts
from greenbatch.engine.queue import dequeue, enqueue
from greenbatch.engine.records import Clock, Ending, Job, Slots, Table
from greenbatch.engine.running import add_running, remove_first_ending
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_rare, compiled_small, whole


@compiled_small
def next_arrival_s(s: State) -> float:
    """When the next job joins the queue: at its submission, or once the scheduler looks at so many. [s]

    Infinite after the last one that is known, and as long as as many jobs wait as the scheduler looks at.
    """
    c = s.clock
    following = c.arrived + c.undated
    if following >= s.arrivals.shape[0] or c.last - c.first >= s.rules.depth:
        return np.inf
    return float(max(s.jobs[s.arrivals[following]].submit_s, c.now_s))


@compiled_small
def next_completion_s(ending: Table[Ending], clock: Clock) -> float:
    """Time of the next completion, infinite if nothing runs. [s]"""
    return ending[clock.ending_first].end_s if clock.running > 0 else np.inf


@compiled_small
def next_supply_change_s(slots: Slots, now_s: float) -> float:
    """Start of the next supply slot, infinite without a site. [s]"""
    return next_edge_s(now_s, slots.origin_s, slots.step_s) if slots.count > 0 else np.inf


@compiled_small
def next_wake_s(s: State) -> float:
    """Time of the next wake-up while jobs wait: only those that a job, the policy or the rules ask for. [s]"""
    c, rules = s.clock, s.rules
    wake_s = next_opening_s(s)
    if c.committed < 0:
        wake_s = min(wake_s, c.wake_s)
        if rules.tick_s > 0.0:
            wake_s = min(wake_s, next_edge_s(c.now_s, 0.0, rules.tick_s))
        return min(wake_s, next_supply_change_s(s.power.slots, c.now_s)) if rules.wake_at_supply else wake_s
    if c.held or (c.wake_at_end and c.now_s < c.until_s):
        wake_s = min(wake_s, c.until_s)
    return min(wake_s, next_supply_change_s(s.power.slots, c.now_s)) if rules.backfill == codes.GREEN else wake_s


@compiled
def accrue(s: State) -> None:
    """Enter the energy used since the last call in the ledger, at the load that the machine had since then."""
    c = s.clock
    if not np.isnan(c.accrued_s) and c.accrued_s < c.now_s:
        pieces = flow(s.power, s.machine.totals.load_w, c.accrued_s, c.now_s, s.ledger, s.scratch.pieces, 0)
        if pieces == LEFT_THE_SERIES:
            c.status = codes.SUPPLY_EXHAUSTED
        s.ledger.peak_w = max(s.ledger.peak_w, s.machine.totals.load_w)
    c.accrued_s = c.now_s


@compiled_small
def start(s: State, position: int, kind: int, outlives: bool) -> int:
    """Start the waiting job at a queue position now; return the position that follows it.

    Args:
        s: the state.
        position: the job, which must fit.
        kind: START if the policy chose it, BACKFILL if it starts ahead of a blocked job.
        outlives: it may end after the reservation of that job begins, see `machine.resources.take`.
    """
    c = s.clock
    number = whole(s.queue.job[position])
    job = s.jobs[number]
    following = dequeue(s.queue, c, position)
    on_start(s.capacity, s.queue.job, c, number)
    if s.rules.accrue:
        accrue(s)
    rate = take(s.machine, number, whole(job.processors), job.power_w, c.now_s, outlives)
    run_s = job.run_s / rate
    run_s = min(run_s, job.requested_s) if s.rules.kill else run_s
    begin_s, power_w = begins_s(s.machine, number, c.now_s), running_w(s.machine, number, job.power_w)
    add_running(s.ending, s.expected, c, job, number, power_w, begin_s, run_s)
    update_ends(s.machine, s.ending, c)
    c.started += 1
    c.commanding, c.charges = s.rules.commands > 0, 0
    note(s.log, c, kind, number, s.machine.totals.load_w)
    hold(s.capacity, s, number)
    return following


@compiled_small
def complete(s: State) -> None:
    """End the running job with the earliest end, which the clock must have reached."""
    c = s.clock
    if s.rules.accrue:
        accrue(s)
    done = remove_first_ending(s.ending, s.expected, c)
    if done.requested_end_s != c.now_s:
        c.early = 1
    number = whole(done.job)
    if predicts(s.predictor):
        requested_s = asked_s(s.capacity, number, s.jobs[number].requested_s)
        learn(s.predictor, number, requested_s, c.now_s - (done.requested_end_s - requested_s))
    give(s.machine, number, whole(done.processors), s.jobs[number].power_w, c.now_s, c.running == 0)
    on_end(s.capacity, number)
    note(s.log, c, codes.END, number, s.machine.totals.load_w)
    update_ends(s.machine, s.ending, c)
    if s.feedback.shape[0] > 0:
        _submit_followers(s, number)


@compiled
def _comes_before(jobs: Table[Job], one: int, other: int) -> bool:
    """Whether a job is submitted before another; at the same instant, by row."""
    return bool(
        jobs[one].submit_s < jobs[other].submit_s or (jobs[one].submit_s == jobs[other].submit_s and one < other)
    )


@compiled
def _submit_followers(s: State, ended: int) -> None:
    """Give the jobs that follow one that ends now their time of submission, and their place among the arrivals."""
    c, jobs, arrivals = s.clock, s.jobs, s.arrivals
    number = whole(s.feedback[ended].first)
    while number >= 0:
        own = s.feedback[number]
        jobs[number].submit_s = max(own.earliest_s, c.now_s + own.think_s)
        on_dated(s.capacity, number, jobs[number].submit_s)
        c.undated -= 1
        i = c.arrived + c.undated
        while i + 1 < arrivals.shape[0] and _comes_before(jobs, arrivals[i + 1], number):
            arrivals[i] = arrivals[i + 1]
            i += 1
        arrivals[i] = number
        number = whole(own.next)


@compiled_small
def _since_s(s: State, row: int) -> float:
    """When the job in a row of ``expected`` would have started, had it done all of its work without a pause. [s]"""
    job, left_s = whole(s.expected[row].job), s.jobs[s.expected[row].job].requested_s
    return float(s.expected[row].start_s - (asked_s(s.capacity, job, left_s) - left_s))


@compiled
def predict(s: State, first: int, running: bool) -> None:
    """Predict run times: of the waiting jobs from a queue position on, and correct those of the running ones."""
    c = s.clock
    for k in range(c.expected_first, c.expected_first + c.running):
        note_running(s.predictor, whole(s.expected[k].job), _since_s(s, k))
    for i in range(first, c.last):
        fill(s.predictor, whole(s.queue.job[i]), s.queue.requested_s[i], c.now_s, 0.0)
    for k in range(c.expected_first, c.expected_first + c.running if running else c.expected_first):
        number, elapsed_s = whole(s.expected[k].job), max(0.0, c.now_s - _since_s(s, k))
        fill(s.predictor, number, asked_s(s.capacity, number, s.jobs[number].requested_s), c.now_s, elapsed_s)
    for k in range(c.expected_first, c.expected_first + c.running):
        note_running(s.predictor, whole(s.expected[k].job), np.inf)


@compiled_small
def switch_until(s: State, until_s: float) -> None:
    """Let nodes be switched on and off that are due before a time and before the next completion, which may move."""
    while next_switch_s(s.machine) < min(until_s, next_completion_s(s.ending, s.clock)):
        s.clock.now_s = max(s.clock.now_s, next_switch_s(s.machine))
        if s.rules.accrue:
            accrue(s)
        number = switch(s.machine, s.clock.now_s)
        note(s.log, s.clock, codes.SWITCH, number, s.machine.totals.load_w)
        update_ends(s.machine, s.ending, s.clock)


@compiled_small
def _pass_time(s: State, from_s: float, is_end: bool) -> None:
    """Bring the running jobs, and what is added up of them, up to date after the clock has moved."""
    advance_work(s.machine, s.ending, s.clock, from_s, is_end)
    count_service(s.capacity, s.ending, s.clock, False)


@compiled
def next_slot(s: State, wake_s: float) -> bool:
    """Advance the clock to the next slot of the supply if nothing happens before, for a command to storage.

    Jobs are not considered there: they start as they would without storage.

    Args:
        s: the state.
        wake_s: the next wake-up, infinite for none. [s]
    """
    c = s.clock
    slot_s, arrival_s = next_supply_change_s(s.power.slots, c.now_s), next_arrival_s(s)
    expect_ends(s.machine, s.ending, c, arrival_s)
    before_s = min(arrival_s, wake_s)
    if before_s <= slot_s or min(before_s, next_completion_s(s.ending, c)) == np.inf:
        return False
    switch_until(s, slot_s)
    if next_completion_s(s.ending, c) <= slot_s:
        return False
    from_s, c.now_s = c.now_s, slot_s
    _pass_time(s, from_s, False)
    if s.rules.accrue and not np.isnan(c.accrued_s):
        accrue(s)
    c.event, c.commanding, c.charges = codes.SLOT, 1, 0
    return True


@compiled_small
def _switches_until_s(s: State, event_s: float) -> float:
    """Before when nodes are switched ahead of an event; under a limit, also at it: a job may wait for that. [s]"""
    return float(np.nextafter(event_s, np.inf) if has_limit(s) else event_s)


@compiled_small
def next_event(s: State, wake_s: float) -> int:
    """Advance the clock to the next event, carry it out and return its kind.

    Args:
        s: the state.
        wake_s: the next wake-up, infinite for none. [s]
    """
    c = s.clock
    arrival_s = next_arrival_s(s)
    expect_ends(s.machine, s.ending, c, arrival_s)
    completion_s = next_completion_s(s.ending, c)
    next_s = min(arrival_s, completion_s, wake_s)
    if is_beyond(s.capacity, next_s, completion_s):
        switch_until(s, end_of_run_s(s.capacity))
        return codes.NOTHING
    if next_s == np.inf:
        return codes.NOTHING
    switch_until(s, _switches_until_s(s, min(arrival_s, wake_s)))
    completion_s = next_completion_s(s.ending, c)
    if s.rules.completion_first and completion_s == arrival_s:
        arrival_s = np.inf
    from_s = c.now_s
    if arrival_s <= completion_s and arrival_s <= wake_s:
        c.now_s = max(c.now_s, arrival_s)
        _pass_time(s, from_s, arrival_s == completion_s)
        number = whole(s.arrivals[c.arrived + c.undated])
        c.arrived += 1
        if admit(s.capacity, number):
            enqueue(s.queue, c, s.jobs[number], number)
            on_submit(s.capacity, s.queue.job, c, number)
        elif s.feedback.shape[0] > 0:
            _submit_followers(s, number)
        if predicts(s.predictor):
            predict(s, c.last - 1, False)
        return codes.ARRIVAL
    if completion_s <= wake_s:
        c.now_s = max(c.now_s, completion_s)
        _pass_time(s, from_s, True)
        complete(s)
        return codes.COMPLETION
    c.now_s = max(c.now_s, wake_s)
    _pass_time(s, from_s, False)
    if predicts(s.predictor):
        predict(s, c.first, True)
    return codes.WAKE_UP


@compiled_rare
def _event_at_once(s: State) -> int:
    """`next_event` without a wake-up, for the rarer rules, which do not inline it."""
    return next_event(s, np.inf)


@compiled_small
def next_instant(s: State, wake_s: float) -> int:
    """The next event or, under the ``per_instant`` rule, all events of the next instant.

    Returns its kind, or COMPLETION if there were several or the machine changes as well: then the whole queue
    must be considered.
    """
    c, change_s = s.clock, next_opening_s(s)
    kind = next_event(s, wake_s)
    if kind == codes.ARRIVAL and c.now_s >= change_s:
        kind = codes.COMPLETION
    return _rest_of_instant(s, kind) if s.rules.per_instant and kind != codes.NOTHING else kind


@compiled
def _rest_of_instant(s: State, kind: int) -> int:
    """Carry out the other events of this instant, or only those of one kind; return the kind for all of them."""
    c = s.clock
    if s.rules.per_instant == codes.PER_KIND:
        while kind == codes.ARRIVAL and next_arrival_s(s) <= c.now_s:
            _event_at_once(s)
        while kind == codes.COMPLETION and next_completion_s(s.ending, c) <= c.now_s:
            complete(s)
        return kind
    while min(next_arrival_s(s), next_completion_s(s.ending, c)) <= c.now_s:
        if _event_at_once(s) == codes.NOTHING:  # at the end of the run
            break
        kind = codes.COMPLETION
    return kind
