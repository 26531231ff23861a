"""The compiled entry points: each is compiled or loaded from the cache on first use, for the kinds of parts given."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numba as _numba

from greenbatch.engine.compile import PLAIN, entry, machine_code, whole
from greenbatch.engine.decide import Rule, decide
from greenbatch.engine.events import next_wake_s
from greenbatch.engine.machine.node_choice import can_take_on, want
from greenbatch.engine.machine_code.kept import is_ours
from greenbatch.engine.machine_code.references import by_reference
from greenbatch.engine.observe.stacked import StateType, type_of
from greenbatch.engine.power.protocol import ranked_w
from greenbatch.engine.records import Floats
from greenbatch.engine.state import State
from greenbatch.engine.step import Action, advance, apply, is_due
from greenbatch.engine.views.interface import Attributes, Predicted, Queue

numba: Any = _numba
types: Any = _numba.types

_COLUMN = types.Array(types.float64, 1, "C")
_ATTRIBUTES = types.NamedUniTuple(_COLUMN, len(Attributes._fields), Attributes)
_PREDICTED = types.NamedUniTuple(_COLUMN, len(Predicted._fields), Predicted)
QUEUE_TYPE = types.NamedTuple([types.float64] * 3 + [_COLUMN] * 6 + [_ATTRIBUTES, _PREDICTED], Queue)
"""Compiled type of the columns that a rule sees."""
RULE_TYPE = types.FunctionType(_COLUMN(QUEUE_TYPE))
"""Compiled type of a rule: passed as a function, so that the engine is compiled once for all rules."""


def _run(s: State, decider: Any) -> None:
    """The one loop: until all jobs have ended, or the status says why not."""
    s, decider = by_reference(s), by_reference(decider)
    while advance(s):
        decide(decider, s)


def _decide(s: State, decider: Any) -> None:
    s = by_reference(s)
    decide(by_reference(decider), s)


def _settle(s: State, decider: Any) -> float:
    """Make all decisions that are due at this instant; return when the next wake-up is. [s]"""
    s, decider = by_reference(s), by_reference(decider)
    while is_due(s):
        decide(decider, s)
    return float(next_wake_s(s))


def _advance(s: State) -> bool:
    s = by_reference(s)
    return bool(advance(s))


def _is_due(s: State) -> bool:
    s = by_reference(s)
    return bool(is_due(s))


def _wake_s(s: State) -> float:
    s = by_reference(s)
    return float(next_wake_s(s))


def _apply(s: State, kind: int, position: int, delay: int, amount: float) -> None:
    s = by_reference(s)
    apply(s, Action(kind, position, delay, amount))
    s.clock.settled = 0


def _rank_w(s: State) -> float:
    """The command to storage by rank, at the present load. [W]"""
    s = by_reference(s)
    rules, load_w = s.rules, s.machine.totals.load_w
    return float(ranked_w(s.power, s.clock, load_w, rules.charge_below, rules.charge_above, rules.charge_carbon))


def _want(s: State, position: int, node: int, most: int) -> bool:
    """Let the job at a queue position take a node first, if it starts now; False if it cannot be started there."""
    s = by_reference(s)
    job = whole(s.queue.job[position])
    if not can_take_on(s.machine, job, node):
        return False
    want(s.machine, node, most)
    return True


def _without_rule(queue: Queue) -> Floats:
    return queue.wait_s


_WITH_DECIDER: dict[str, tuple[Callable[..., Any], Any]] = {
    "run": (_run, types.void), "decide": (_decide, types.void), "settle": (_settle, types.float64),
}  # fmt: skip
_STEPS: dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {
    "advance": (_advance, types.boolean, ()),
    "is-due": (_is_due, types.boolean, ()),
    "wake": (_wake_s, types.float64, ()),
    "rank": (_rank_w, types.float64, ()),
    "want": (_want, types.boolean, (types.int64, types.int64, types.int64)),
    "apply": (_apply, types.void, (types.int64, types.int64, types.int64, types.float64)),
}


def with_decider(name: str, state: State, decider: Any) -> Callable[..., Any]:
    """Compiled code that asks a decider, ``(state, decider)``.

    Args:
        name: ``run`` simulates until all jobs have ended or the log is full; ``decide`` makes one decision; ``settle``
            makes all that are due now and returns the next wake-up.
        state: a state; its parts choose the code.
        decider: the decider, see `engine.decide`.
    """
    return _compiled_with_decider(name, type_of(state), _kind_of(decider))


def step(name: str, state: State) -> Callable[..., Any]:
    """Compiled code that takes a state: ``advance``, ``is-due``, ``wake``, ``rank``, ``want`` or
    ``apply``, see `engine.step`.
    """
    return _compiled_step(name, type_of(state))


@cache
def _compiled_with_decider(name: str, state: StateType, decider: StateType) -> Callable[..., Any]:
    function, result = _WITH_DECIDER[name]
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", decider.numba.instance_class.__name__).lower()
    shown = _named(kind if name == "run" else f"{name}-{kind}", state)
    return cast(Callable[..., Any], entry(shown, function, result(state.numba, decider.numba)))


@cache
def _compiled_step(name: str, state: StateType) -> Callable[..., Any]:
    function, result, others = _STEPS[name]
    return cast(Callable[..., Any], entry(_named(name, state), function, result(state.numba, *others)))


def _named(name: str, state: StateType) -> str:
    """The name of an entry point, with the kinds of parts that are not this package's."""
    foreign = [each.instance_class.__name__ for each in state.numba.types if not is_ours(each)]
    return "-".join([name, *foreign])


_DECIDERS: dict[type, StateType] = {}


def _kind_of(decider: Any) -> StateType:
    """The type of a decider; a class of deciders always has fields of the same types."""
    made = type(decider)
    if made not in _DECIDERS:
        kinds = [RULE_TYPE if callable(each) else numba.typeof(each) for each in decider]
        _DECIDERS[made] = StateType(types.BaseTuple.from_types(kinds, made))
    return _DECIDERS[made]


def type_of_decider(decider: Any) -> Any:
    """Numba's type of a decider."""
    return _kind_of(decider).numba


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
