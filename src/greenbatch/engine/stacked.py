"""Many states side by side: types, allocation and access, all derived from the fields of `State`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as _numba
import numpy as np

from greenbatch.engine.compile import written_in
from greenbatch.engine.reward_totals import TOTALS, USER
from greenbatch.engine.state import F, N, State, allocate

numba: Any = _numba

SHARED = ("supply_w",)
"""Fields of `State` that all simulations share."""


class Batch(NamedTuple):
    """All arrays of B simulations of n jobs."""

    states: Any
    """`State` whose arrays have an additional first axis, except the `SHARED` ones."""
    totals: Any
    """TOTALS, shape (B,)."""
    user_of: Any
    """Row of ``users`` for each job, -1 if unknown, shape (B, n)."""
    users: Any
    """USER, shape (B, u)."""
    values: Any
    """Current value of each reward term, shape (B, t)."""


def new_batch(one: State, count: int, users: int, terms: int) -> Batch:
    """Allocate several simulations, with all arrays zero.

    Args:
        one: a state of the wanted size.
        count: number of simulations.
        users: number of users to total by.
        terms: number of reward terms.
    """

    def zeros(shape: tuple[int, ...], dtype: Any) -> Any:
        array = np.zeros((count, *shape), dtype)
        return array if array.dtype.names is None else array.view(np.recarray)

    states = {name: each if name in SHARED else zeros(each.shape, each.dtype) for name, each in one._asdict().items()}
    return Batch(
        states=State(**states), totals=zeros((), TOTALS), user_of=zeros(one.arrivals.shape, N),
        users=zeros((users,), USER), values=zeros((terms,), F),
    )  # fmt: skip


def row(batch: Batch, b: int) -> State:
    """The state of one simulation, in plain Python."""
    return State(*(each if name in SHARED else each[b] for name, each in batch.states._asdict().items()))


def _written_out() -> Any:
    """`row` for compiled code, where a loop over fields of different types is not possible."""
    fields = ", ".join(f"batch.states.{name}{'' if name in SHARED else '[b]'}" for name in State._fields)
    names: dict[str, Any] = {"State": State}
    exec(f"def one_of(batch, b):\n    return State({fields})", names)  # noqa: S102  (our own text)
    return names["one_of"]


one_of = written_in(_written_out())
"""The state of one simulation, ``(batch, b)``, in compiled code."""

_EXAMPLE = allocate(1, 1, np.zeros(1))
STATE_TYPE = numba.typeof(_EXAMPLE)
"""Compiled type of `State`."""
BATCH_TYPE = numba.typeof(new_batch(_EXAMPLE, 1, 1, 1))
"""Compiled type of `Batch`."""
