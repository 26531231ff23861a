"""The compiled entry points: each is compiled or loaded from the cache on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from numba import types as _types
from numpy.typing import NDArray

from greenbatch.engine.compile import PLAIN, entry, machine_code
from greenbatch.engine.conservative import run_conservative
from greenbatch.engine.stacked import STATE_TYPE
from greenbatch.engine.state import NO_DELAY, Queue
from greenbatch.engine.step import advance, choose, place

types: Any = _types

Rule = Callable[[Queue], NDArray[np.float64]]

_COLUMN = types.Array(types.float64, 1, "C")
QUEUE_TYPE = types.NamedTuple([types.float64] * 3 + [_COLUMN] * 6, Queue)
"""Compiled type of the columns that a rule sees."""
RULE_TYPE = types.FunctionType(_COLUMN(QUEUE_TYPE))
"""Compiled type of a rule: passed as a function, so that the engine is compiled once for all rules."""


def _priority(s: Any, rule: Any) -> None:
    while advance(s):
        place(s, choose(s, rule), NO_DELAY, 0.0)


def _conservative(s: Any, rule: Any) -> None:
    run_conservative(s, rule)


def _advance(s: Any) -> bool:
    return bool(advance(s))


def _place(s: Any, position: int, delay: int, amount: float) -> None:
    place(s, position, delay, amount)


def _no_rule(queue: Queue) -> NDArray[np.float64]:
    return queue.wait_s


_RUN = types.void(STATE_TYPE, RULE_TYPE)
_PARTS: dict[str, tuple[Callable[..., Any], Any]] = {
    "priority": (_priority, _RUN),
    "conservative": (_conservative, _RUN),
    "advance": (_advance, types.boolean(STATE_TYPE)),
    "place": (_place, types.void(STATE_TYPE, types.int64, types.int64, types.float64)),
    "no-rule": (_no_rule, _COLUMN(QUEUE_TYPE)),
}


@cache
def part(name: str) -> Callable[..., Any]:
    """A compiled entry point of the engine, compiled on first use.

    ``priority`` and ``conservative`` simulate to the end: ``(state, rule)``; ``advance`` and ``place`` are the steps of
    a session (see `engine.step`); ``no-rule`` is passed instead of a rule if jobs have fixed scores.
    """
    function, signature = _PARTS[name]
    return cast(Callable[..., Any], entry(name, function, signature, rule=name == "no-rule"))


@cache
def compiled_pass(name: str, run: Callable[..., None], inputs: tuple[Any, ...], *, allocates: bool) -> Any:
    """The code of a `Pass`, ``(state, *inputs)``, compiled or loaded from the cache on first use."""
    return entry(name, run, types.void(STATE_TYPE, *inputs), allocates=allocates)


def compile_rule(function: Rule, *, cached: bool) -> Rule:
    """Compile a priority rule.

    Raises:
        Exception: Numba cannot compile it, in which case it can raise anything, even AssertionError; or it does not
            return a column of floats. The rule can still run as plain Python.
    """
    code = machine_code(function, _COLUMN(QUEUE_TYPE), cached=cached, allocates=True, checked=not cached)
    if not PLAIN and code.nopython_signatures[0].return_type != _COLUMN:
        raise TypeError(f"{function.__name__} returns {code.nopython_signatures[0].return_type}")
    return cast(Rule, code)
