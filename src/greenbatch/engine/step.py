"""The only ways to move the clock: `advance` to the next decision, and `apply` what was decided.

Compiled policies, rules, agents and Python objects use the same two, which are compiled once for each kind of state,
see `machine_code.apart`. A job that must start next (``sticky``) is a part of the clock, so that the simulation
can be left, saved and resumed at any event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.engine import codes
from greenbatch.engine.backfill import backfill, backfill_arrival
from greenbatch.engine.capacity.admission import may_act
from greenbatch.engine.capacity.levels import is_beyond, most_moves, next_level_s
from greenbatch.engine.capacity.suspension import on_instant, suspend_by_choice, suspended_job
from greenbatch.engine.events import accrue, next_instant, next_slot, next_wake_s, start, switch_until
from greenbatch.engine.limits import can_be_next, can_start, next_opening_s
from greenbatch.engine.log import is_full, note
from greenbatch.engine.machine.competition import block, clear_reservation, competes
from greenbatch.engine.machine.node_choice import prefer_none
from greenbatch.engine.machine.nodes import is_recorded
from greenbatch.engine.machine.power_states import most_switches
from greenbatch.engine.power.protocol import command, commanded_w, is_commanded, ranked_w
from greenbatch.engine.queue import position_of, sort_twins
from greenbatch.engine.records import Clock, Expected, Table
from greenbatch.engine.settings import A_YEAR_S
from greenbatch.engine.state import State
from greenbatch.engine.timeline import reserve
from greenbatch.machine_code.apart import compiled_apart
from greenbatch.machine_code.compile import compiled, compiled_small, whole

ADVANCE, ASK, APPLY = range(3)
"""What `drive` does."""
LONGEST_RELEASE_DELAY_S = 3600.0
"""Longest delay until running jobs release their processors (GAS-MARL §4.2.1, type 2). [s]"""
MOST_CHARGES = 1000
"""Largest number of commands to storage in a row between which nothing happens."""


class Action(NamedTuple):
    """A decision as compiled code makes it; `interface.Start`, `Wait` and `Charge` are the same for Python."""

    kind: int
    """START_JOB, WAIT, COMMAND or SUSPEND_JOB."""
    position: int
    """Queue position of the job."""
    delay: int
    """NO_DELAY, DELAY_RELEASES or DELAY_FOR."""
    amount: float
    """Number of running jobs to wait for; or seconds; of WAIT, when to be woken [s]; of COMMAND, the power [W]."""


@compiled_small
def start_now(position: int) -> Action:
    """Start the job at a queue position."""
    return Action(codes.START_JOB, position, codes.NO_DELAY, 0.0)


@compiled_small
def wait_until(time_s: float) -> Action:
    """Start nothing more until the next event, or until a time. [s]"""
    return Action(codes.WAIT, 0, codes.NO_DELAY, time_s)


@compiled_apart("events")
def drive(s: State, what: int, kind: int, position: int, delay: int, amount: float) -> bool:
    """`advance`, `is_due` and `apply` as one function, so that they share what they call.

    Args:
        s: the state.
        what: ADVANCE, ASK or APPLY.
        kind: with the others, the `Action` to apply.
        position: see `Action`.
        delay: see `Action`.
        amount: see `Action`.
    """
    if what == APPLY:
        _apply(s, Action(kind, position, delay, amount))
        return True
    return _next_decision(s, what == ADVANCE)


@compiled_small
def advance(s: State) -> bool:
    """Carry out events until a decision is due; False once all jobs have ended, or if the status says why not."""
    return drive(s, ADVANCE, 0, 0, 0, 0.0)


@compiled_small
def is_due(s: State) -> bool:
    """Whether a decision is due now; first starts the committed job, or what may start ahead of it."""
    return drive(s, ASK, 0, 0, 0, 0.0)


@compiled_small
def apply(s: State, action: Action) -> None:
    """Carry out a decision at the present time."""
    drive(s, APPLY, whole(action.kind), whole(action.position), whole(action.delay), float(action.amount))


@compiled_small
def _next_decision(s: State, moves: bool) -> bool:
    """Whether a decision is due, now or, if the clock moves, after the next events."""
    c = s.clock
    while c.status == codes.OK or not moves:  # one place for both, as what it calls is copied to each caller
        if moves and _is_log_full(s):
            c.status = codes.LOG_FULL
        elif moves and is_beyond(s.capacity, c.now_s, np.inf):
            return False
        elif _is_due(s):
            return bool(c.status == codes.OK or not moves)
        elif not moves:
            return False
        elif has_finished(s):
            switch_until(s, np.inf)
            return False
        elif not happen(s):
            return False
    return False


@compiled_small
def _is_log_full(s: State) -> bool:
    """Whether the log, or a machine's record of starts, may not have room for the next event."""
    moves = most_switches(s.machine) + most_moves(s.capacity, s.machine.totals)
    return is_full(s.log, s.clock, moves) or not is_recorded(s.machine)


@compiled_small
def has_finished(s: State) -> bool:
    """Whether no job waits, runs, is suspended, or will arrive."""
    c = s.clock
    no_more = c.first == c.last and c.arrived == s.arrivals.shape[0] and c.running == 0
    return bool(no_more and suspended_job(s.capacity, 0) < 0)


@compiled_small
def _is_due(s: State) -> bool:
    """Start the committed job, or what may start ahead of it; whether a decision is due.

    After every event and every start, a command to storage is due, if the policy gives any. Commands by rank are given
    here. At a new slot of the supply, nothing else is due.
    """
    c, commands, due = s.clock, s.rules.commands, False
    if commands == codes.BY_POLICY and c.commanding:
        return True
    if commands == codes.NOBODY or c.event != codes.SLOT:
        due = (c.committed < 0 or _pursue(s)) and c.first < c.last and not c.blocked
    if commands != codes.NOBODY and c.commanding:
        if commands == codes.BY_POLICY:
            return True
        _command(s, ranked_w(s.power, c, s.machine.totals.load_w, s.rules))
    return bool(due)


@compiled_small
def _next_retry_s(s: State) -> float:
    """When running jobs may be suspended, or suspended ones resume, although none waits, arrives or ends. [s]"""
    return next_opening_s(s) if suspended_job(s.capacity, 0) >= 0 else next_level_s(s.capacity, s.clock.now_s)


@compiled_small
def happen(s: State) -> bool:
    """Carry out the next event; False if there is none."""
    c = s.clock
    wake_s = next_wake_s(s) if c.first < c.last else _next_retry_s(s)
    if s.rules.commands and next_slot(s, wake_s):
        return True
    c.event = next_instant(s, wake_s)
    if c.event == codes.NOTHING:
        return False
    on_instant(s.capacity, s)
    if s.rules.accrue and is_commanded(s.power):  # the first is at hand
        _show_storage(s)
    _count_idle(s)
    if c.committed < 0:
        overdue = c.running > 0 and s.expected[c.expected_first].end_s < c.now_s  # the reservation may have changed
        newest, arrival = c.last - 1, c.event == codes.ARRIVAL and c.settled
        arrival = arrival and competes(s.machine, whole(s.queue.job[newest]), whole(c.head))
        if arrival and not overdue and s.queue.score[newest] >= c.head_score:
            number, processors = whole(s.queue.job[newest]), whole(s.queue.processors[newest])
            if s.rules.backfill != codes.NONE and can_start(s, number, processors):
                reserve(s, c.head)
                backfill_arrival(s, whole(c.head))
        else:
            c.blocked, c.settled, c.wake_s = 0, 0, np.inf
            clear_reservation(s.machine, s.queue.job, c)
    return True


@compiled
def _are_all_held_back(s: State) -> bool:
    i = s.clock.first
    while i < s.clock.last and not can_be_next(s, whole(s.queue.job[i])):
        i += 1
    return bool(i == s.clock.last)


@compiled_small
def _count_idle(s: State) -> None:
    """Give up on a policy that starts nothing if the clock stands still, or if nothing runs and no job will arrive."""
    c = s.clock
    if c.event != codes.WAKE_UP:
        c.idle = 0
        return
    changes = c.running > 0 or c.arrived + c.undated < s.arrivals.shape[0]
    if c.idle == 0 or (changes and c.now_s > c.idle_from_s):
        c.idle, c.idle_from_s = 0, c.now_s
    c.idle += 1
    if c.idle > s.rules.patience and not 0.0 < c.now_s - c.idle_from_s <= A_YEAR_S:
        c.status = codes.STUCK


@compiled_small
def _apply(s: State, action: Action) -> None:
    c = s.clock
    if action.kind == codes.COMMAND:
        _command(s, action.amount)
        return
    if s.rules.commands == codes.BY_POLICY:
        c.commanding = 0
        if c.committed >= 0:  # only a command was due
            return
    if action.kind == codes.SUSPEND_JOB and suspend_by_choice(s.capacity, s):
        rest(s)
        return
    if action.kind != codes.START_JOB:  # also if nothing could be suspended
        c.blocked, c.settled, c.wake_s = 1, 0, action.amount if action.kind == codes.WAIT else np.inf
        return
    job, processors = whole(s.queue.job[action.position]), whole(s.queue.processors[action.position])
    until_s = c.now_s if action.delay == codes.NO_DELAY else delay_end_s(c, s.expected, action.delay, action.amount)
    if until_s <= c.now_s and can_start(s, job, processors):
        start(s, action.position, codes.START, False)
        c.blocked = c.first < c.last and not s.rules.sticky and _are_all_held_back(s)
        rest(s)
        return
    prefer_none(s.machine)
    if s.rules.sticky:
        _commit(s, job, until_s, action.delay == codes.DELAY_FOR)
    else:
        _block(s, job, s.queue.score[action.position], until_s)


@compiled
def _command(s: State, power_w: float) -> None:
    """Command storage; a command that is in force already leaves no trace."""
    c = s.clock
    c.commanding = 0
    if not is_commanded(s.power):
        c.status = codes.NOT_COMMANDED
        return
    c.charges += 1
    if c.charges > MOST_CHARGES:
        c.status = codes.CHARGES_FOREVER
    if power_w == commanded_w(s.power):
        return
    if s.rules.accrue:
        accrue(s)
    command(s.power, power_w)
    last = c.logged - 1
    if last >= 0 and s.log[last].kind == codes.CHARGE and s.log[last].time_s == c.now_s:
        s.log[last].value = power_w
    else:
        note(s.log, c, codes.CHARGE, -1, power_w)


@compiled
def _show_storage(s: State) -> None:
    """After an event: what is stored is known, and a command is due unless all jobs have ended."""
    c = s.clock
    c.commanding, c.charges = s.rules.commands > 0 and not has_finished(s), 0
    if s.rules.accrue and not np.isnan(c.accrued_s):
        accrue(s)


@compiled_small
def rest(s: State) -> None:
    """After an action: let no other follow before the next tick if there have been as many as are allowed in one."""
    if not may_act(s.capacity, s.clock.now_s):
        s.clock.blocked, s.clock.settled = 1, 0


@compiled_small
def delay_end_s(clock: Clock, expected: Table[Expected], delay: int, amount: float) -> float:
    """End of a delay that begins now, by requested ends of running jobs. [s]"""
    now_s = clock.now_s
    if delay == codes.DELAY_FOR:
        return float(now_s + amount)
    if delay == codes.DELAY_RELEASES and clock.running > 0 and amount >= 1.0:
        nth = min(int(amount), clock.running) - 1
        return float(max(now_s, min(now_s + LONGEST_RELEASE_DELAY_S, expected[clock.expected_first + nth].end_s)))
    return float(now_s)


@compiled_small
def _commit(s: State, job: int, until_s: float, wake_at_end: bool) -> None:
    """Sticky: from now on, only backfilled jobs can start before this job.

    Without Green-Backfilling, nothing starts before the delay has passed. With it, candidates may run until the later
    of the reservation and the end of the delay. A delay by releases has no wake-up of its own, so it can extend to the
    next event (as in GAS-MARL's simulator).
    """
    c = s.clock
    c.committed, c.until_s, c.wake_at_end = job, until_s, wake_at_end
    c.held, c.reserved = s.rules.backfill != codes.GREEN and until_s > c.now_s, 0
    c.event = codes.NOTHING  # what has happened was before the commitment
    note(s.log, c, codes.COMMIT, job, until_s)


@compiled_small
def _pursue(s: State) -> bool:
    """Start the committed job if it can start, or else what may start ahead of it; whether it has started."""
    c, mode = s.clock, s.rules.backfill
    if c.held:
        if c.event != codes.WAKE_UP or c.now_s < c.until_s:
            return False
        c.held = 0
    job = whole(c.committed)
    if c.now_s >= c.until_s and can_start(s, job, whole(s.jobs[job].processors)):
        if c.reserved and s.rules.twins and mode != codes.NONE:  # the order that stable sorts of the queue give
            sort_twins(s.queue, c, s.jobs, True)
            if mode in (codes.EASY_GREEN_ORDER, codes.GREEN):
                sort_twins(s.queue, c, s.jobs, False)
        c.committed = -1
        start(s, position_of(s.queue, c, job), codes.START, False)
        return True
    if not c.reserved or mode == codes.EASY:
        reserve(s, job)
    if not c.reserved:
        c.shadow_s, c.reserved = max(c.shadow_s, c.until_s), 1
    if c.event == codes.ARRIVAL and mode in (codes.EASY_SCHEDGYM, codes.EASY_GREEN_ORDER):
        backfill_arrival(s, job)  # the reservation is unchanged, so no other job has become eligible
    elif mode != codes.NONE:
        backfill(s, job)
    return False


@compiled_small
def _block(s: State, job: int, score: float, until_s: float) -> None:
    """Reconsider: backfill around this job now, decide again at the next event (or at the end of the delay)."""
    c, is_greedy = s.clock, s.rules.backfill in (codes.FIRST_FIT, codes.EASY_IRMASIM)
    if not is_greedy:
        reserve(s, job)
        c.shadow_s = max(c.shadow_s, until_s)
    if s.rules.backfill != codes.NONE:
        backfill(s, job)
    c.head, c.head_score = job, score
    c.blocked = is_greedy or block(s.machine, job) or _are_all_held_back(s)
    c.wake_s = min(c.wake_s, until_s) if until_s > c.now_s else c.wake_s
    is_fixed = s.rules.ranking != codes.BY_RULE and not s.rules.limited  # a limit lets it start with time
    c.settled = is_fixed and s.rules.backfill != codes.GREEN and not is_greedy and until_s <= c.now_s
