"""What a policy object answers, checked before the engine carries it out."""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.codes import COMMAND, DELAY_FOR, DELAY_RELEASES, NO_DELAY, START_JOB, SUSPEND_JOB, WAIT
from greenbatch.engine.records import Clock
from greenbatch.engine.settings import A_YEAR_S
from greenbatch.engine.step import Action
from greenbatch.engine.views.interface import Charge, Start, Suspend, Wait
from greenbatch.errors import InputError


def action_of(decision: Any, clock: Clock, name: str) -> Action:
    """The engine's action for a decision of a policy object.

    Args:
        decision: what the policy returned.
        clock: the clock at the decision.
        name: name of the scheduler, for messages.

    Raises:
        InputError: it is not a decision, the row is not in the queue, nodes or processors are not whole numbers, a
            delay is negative or over a year, a wait ends before now, or a power is not finite.
    """
    if isinstance(decision, Wait):
        if not (_is_number(decision.until_s) and decision.until_s >= clock.now_s):
            problem = f"waits until {decision.until_s!r}, but it is {clock.now_s:g} s"
            raise InputError(problem, field=name, fix="give a later time, or none")
        return Action(WAIT, 0, NO_DELAY, float(decision.until_s))
    if isinstance(decision, Charge):
        if not (_is_number(decision.power_w) and np.isfinite(decision.power_w)):
            problem = f"commands storage to take {decision.power_w!r} W"
            raise InputError(problem, field=name, fix="give a finite number, < 0 to discharge")
        return Action(COMMAND, 0, NO_DELAY, float(decision.power_w))
    if isinstance(decision, Suspend):
        return Action(SUSPEND_JOB, 0, NO_DELAY, 0.0)
    if not isinstance(decision, Start):
        fix = "return Start(row), Wait(), Suspend() or Charge(power_w)"
        raise InputError(f"returned {decision!r}", field=name, fix=fix)
    return _start_of(decision, clock, name)


def _start_of(decision: Start, clock: Clock, name: str) -> Action:
    """The action of a start."""
    if not isinstance(decision.row, int | np.integer):
        raise InputError(f"chose row {decision.row!r}", field=name, fix="give a whole number")
    waiting = clock.last - clock.first
    if not 0 <= decision.row < waiting:
        raise InputError(f"chose row {decision.row} of a queue of {waiting}", field=name)
    for what, numbers in (("nodes", decision.nodes), ("processors", decision.processors)):
        if not (isinstance(numbers, tuple | list) and all(map(_is_whole, numbers))):
            raise InputError(f"chose {what} {numbers!r}", field=name, fix="give a tuple of whole numbers")
    if decision.processors and not decision.nodes:
        raise InputError("chose processors without nodes", field=name, fix="give nodes too, or leave processors out")
    if decision.delay not in (NO_DELAY, DELAY_RELEASES, DELAY_FOR):
        fix = "use Start, Start.after_releases or Start.after_seconds"
        raise InputError(f"chose a delay of kind {decision.delay!r}", field=name, fix=fix)
    amount = decision.amount
    if not _is_number(amount) or (decision.delay != NO_DELAY and not 0 <= amount <= A_YEAR_S):
        fix = f"it must be >= 0 and at most {A_YEAR_S:g}"
        raise InputError(f"chose a delay of {amount!r}", field=name, fix=fix)
    return Action(START_JOB, int(clock.first + decision.row), int(decision.delay), float(amount))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)
