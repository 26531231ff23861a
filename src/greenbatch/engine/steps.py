"""The compiled steps of a session that Python drives. Importing this module compiles them (or loads the cache)."""

from __future__ import annotations

from typing import Any

from numba import types

from greenbatch.engine.compile import PLAIN, compiled
from greenbatch.engine.decide import advance, place
from greenbatch.engine.loop import STATE_TYPE


@compiled(signature=None if PLAIN else types.boolean(STATE_TYPE))
def advance_to_decision(s: Any) -> bool:
    """See `decide.advance`."""
    return bool(advance(s))


@compiled(signature=None if PLAIN else types.void(STATE_TYPE, types.int64, types.int64, types.float64))
def place_decision(s: Any, position: int, delay: int, amount: float) -> None:
    """See `decide.place`."""
    place(s, position, delay, amount)
