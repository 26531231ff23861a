"""The compiled entry points: each is compiled or loaded from the cache on first use, for the kinds of parts given."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numba
from numba import types

from greenbatch.engine.decide import Rule, decide
from greenbatch.engine.events import next_wake_s
from greenbatch.engine.machine.node_choice import can_take_on, prefer_node
from greenbatch.engine.observe.stacked import StateType, type_of
from greenbatch.engine.power.protocol import ranked_w
from greenbatch.engine.records import Floats
from greenbatch.engine.state import State
from greenbatch.engine.step import ADVANCE, APPLY, ASK, drive
from greenbatch.engine.views.interface import Attributes, Predicted, Queue
from greenbatch.machine_code.compile import PLAIN, entry, machine_code, whole
from greenbatch.machine_code.kept import is_ours
from greenbatch.machine_code.references import by_reference

_COLUMN = types.Array(types.float64, 1, "C")
_ATTRIBUTES = types.NamedUniTuple(_COLUMN, len(Attributes._fields), Attributes)
_PREDICTED = types.NamedUniTuple(_COLUMN, len(Predicted._fields), Predicted)
QUEUE_TYPE = types.NamedTuple([types.float64] * 3 + [_COLUMN] * 6 + [_ATTRIBUTES, _PREDICTED], Queue)
"""Compiled type of the columns that a rule sees."""
RULE_TYPE = types.FunctionType(_COLUMN(QUEUE_TYPE))
"""Compiled type of a rule: passed as a function, so that the engine is compiled once for all rules."""


def _run(s: State, decider: Any, what: int) -> None:
    """The one loop: until all jobs have ended or the status says why not, until nothing is due, or one decision."""
    s, decider = by_reference(s), by_reference(decider)
    while what == ONCE or drive(s, what, 0, 0, 0, 0.0):
        decide(decider, s)
        if what == ONCE:
            break


def _step(s: State, what: int, first: int, second: int, third: int, amount: float) -> float:
    """One of `_STEPS`, whose numbers `step` describes."""
    s = by_reference(s)
    if what == WAKE:
        return next_wake_s(s)
    if what == RANK:
        return ranked_w(s.power, s.clock, s.machine.totals.load_w, s.rules)
    if what == PREFER:
        job, node, most = whole(s.queue.job[first]), second, third
        if not can_take_on(s.machine, job, node):
            return 0.0
        prefer_node(s.machine, node, most)
        return 1.0
    done = drive(s, what, first, second, third, amount)
    if what == APPLY:
        s.clock.settled = 0
    return 1.0 if done else 0.0


def _without_rule(queue: Queue) -> Floats:
    return queue.wait_s


ONCE, WAKE, RANK, PREFER = range(APPLY + 1, APPLY + 5)
_WITH_DECIDER = {"run": ADVANCE, "settle": ASK, "decide": ONCE}
_STEPS: dict[str, tuple[int, type]] = {
    "advance": (ADVANCE, bool), "is-due": (ASK, bool), "apply": (APPLY, bool), "wake": (WAKE, float),
    "rank": (RANK, float), "prefer": (PREFER, bool),
}  # fmt: skip


def with_decider(name: str, state: State, decider: Any) -> Callable[[State, Any], None]:
    """Compiled code that asks a decider, ``(state, decider)``.

    Args:
        name: ``run`` simulates until all jobs have ended or the log is full; ``decide`` makes one decision; ``settle``
            makes all that are due now.
        state: a state; its parts choose the code.
        decider: the decider, see `engine.decide`.
    """
    code, what = _compiled_with_decider(type_of(state), kind_of(decider)), _WITH_DECIDER[name]
    return lambda s, decider: code(s, decider, what)


def step(name: str, state: State) -> Callable[..., Any]:
    """Compiled code that takes a state and numbers.

    Args:
        name: ``advance``, ``is-due`` and ``apply`` (kind, position, delay, amount), see `engine.step`; ``wake``: when
            the next wake-up is [s]; ``rank``: the command to storage by rank, at the present load [W]; ``prefer``
            (position, node, most): let the job at a queue position take a node first, if it starts now; False if it
            cannot be started there.
        state: a state; its parts choose the code.
    """
    code, (what, shown) = _compiled_step(type_of(state)), _STEPS[name]
    return lambda s, *given: shown(code(s, what, *given, *_NOTHING_MORE[len(given) :]))


_NOTHING_MORE = (0, 0, 0, 0.0)


@cache
def _compiled_with_decider(state: StateType, decider: StateType) -> Callable[..., Any]:
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", decider.numba.instance_class.__name__).lower()
    signature = types.void(state.numba, decider.numba, types.int64)
    return cast(Callable[..., Any], entry(_named(kind, state), _run, signature))


@cache
def _compiled_step(state: StateType) -> Callable[..., Any]:
    signature = types.float64(state.numba, *[types.int64] * 4, types.float64)
    return cast(Callable[..., Any], entry(_named("steps", state), _step, signature))


def _named(name: str, state: StateType) -> str:
    """The name of an entry point, with the kinds of parts that are not this package's."""
    foreign = [each.instance_class.__name__ for each in state.numba.types if not is_ours(each)]
    return "-".join([name, *foreign])


_DECIDERS: dict[type, StateType] = {}


def kind_of(decider: Any) -> StateType:
    """The type of a decider; a class of deciders always has fields of the same types."""
    made = type(decider)
    if made not in _DECIDERS:
        kinds = [RULE_TYPE if callable(each) else numba.typeof(each) for each in decider]
        _DECIDERS[made] = StateType(types.BaseTuple.from_types(kinds, made))
    return _DECIDERS[made]


@cache
def no_rule() -> Rule:
    """What is passed instead of a rule if the scores of jobs are fixed."""
    return cast(Rule, machine_code(_without_rule, _COLUMN(QUEUE_TYPE), allocates=True))


def compile_rule(function: Rule, *, checked: bool) -> Rule:
    """Compile a priority rule.

    Raises:
        Exception: Numba cannot compile it, in which case it can raise anything, even AssertionError; or it does not
            return a column of floats. The rule can still run as plain Python.
    """
    code = machine_code(function, _COLUMN(QUEUE_TYPE), allocates=True, checked=checked)
    if not PLAIN and code.nopython_signatures[0].return_type != _COLUMN:
        raise TypeError(f"{function.__name__} returns {code.nopython_signatures[0].return_type}")
    return cast(Rule, code)
