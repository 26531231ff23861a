"""The compiled entry points. Importing this module compiles the engine (or loads it from the cache)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from greenbatch.engine.compile import PLAIN, compiled
from greenbatch.engine.conservative import run_conservative
from greenbatch.engine.decide import advance, choose, place
from greenbatch.engine.planning import run_plan
from greenbatch.engine.scan import run_scan, run_scan_published
from greenbatch.engine.state import (
    CLOCK,
    CONSERVATIVE,
    JOB,
    NO_DELAY,
    PLAN,
    QUEUED,
    RANKED,
    RUNNING,
    SCAN,
    SCAN_PUBLISHED,
    SEGMENT,
    SETTINGS,
    SLOT,
    STEP,
    Queue,
    State,
)

Rule = Callable[[Queue], NDArray[np.float64]]

_COLUMN = types.Array(types.float64, 1, "C")
QUEUE_TYPE = types.NamedTuple([types.float64] * 3 + [_COLUMN] * 6, Queue)
"""Compiled type of the columns that a rule sees."""
RULE_TYPE = types.FunctionType(_COLUMN(QUEUE_TYPE))
"""Compiled type of a rule: handed over as a function, so that the engine is compiled once for all rules."""


def _records(dtype: np.dtype[Any]) -> Any:
    return types.Array(numba.from_dtype(dtype), 1, "C")


STATE_TYPE = types.NamedTuple(
    [_records(JOB), types.Array(types.int64, 1, "C"), _records(QUEUED), _records(RUNNING), _records(RUNNING),
     _records(STEP), _records(SEGMENT), _records(SLOT), _records(RANKED), types.Array(types.float64, 2, "C"), _COLUMN,
     numba.from_dtype(SETTINGS), numba.from_dtype(CLOCK)],
    State,
)  # fmt: skip
"""Compiled type of `State`."""


@compiled(signature=None if PLAIN else types.void(STATE_TYPE, RULE_TYPE))
def run(s: Any, rule: Any) -> None:
    """Simulate to the end with a built-in discipline and a rule."""
    if s.set.discipline == SCAN:
        run_scan(s)
    elif s.set.discipline == SCAN_PUBLISHED:
        run_scan_published(s)
    elif s.set.discipline == PLAN:
        run_plan(s)
    elif s.set.backfill == CONSERVATIVE:
        run_conservative(s, rule)
    else:
        while advance(s):
            place(s, choose(s, rule), NO_DELAY, 0.0)


@compiled(signature=None if PLAIN else _COLUMN(QUEUE_TYPE))
def no_rule(queue: Queue) -> NDArray[np.float64]:
    """Stand in for a rule where jobs have fixed scores."""
    return queue.wait_s


def compile_rule(function: Rule, *, cached: bool) -> Rule:
    """Compile a priority rule for `run`.

    Raises:
        numba.core.errors.NumbaError: Numba cannot compile it; it can still run as plain Python.
    """
    return compiled(function, signature=None if PLAIN else _COLUMN(QUEUE_TYPE), cached=cached)  # type: ignore[no-any-return]
