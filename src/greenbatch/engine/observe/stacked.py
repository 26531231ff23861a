"""Many states side by side: allocation, access, types and copies, all derived from the fields of `State`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from greenbatch.engine.records import Floats, Ints, RewardTotals, Table, UserTotals, dtype_of, with_attributes
from greenbatch.engine.state import State
from greenbatch.machine_code import apart
from greenbatch.machine_code.compile import LOADERS, PLAIN


class Batch(NamedTuple):
    """All arrays of B simulations of n jobs."""

    states: State
    """Its arrays and records have an additional first axis, except those that all simulations share."""
    totals: Table[RewardTotals]
    """Shape (B,)."""
    user_of: Ints
    """Row of ``users`` for each job, -1 if unknown, shape (B, n)."""
    users: Any
    """UserTotals, shape (B, u)."""
    values: Floats
    """Current value of each reward term, shape (B, t)."""


def leaves(part: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Names, such as ``power.slots``, and arrays of a state or of a part of it, except those that simulations share."""
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        shared = getattr(part, "SHARED", ())
        for field, each in zip(part._fields, part, strict=True):
            if field not in shared:
                yield from leaves(each, f"{name}.{field}" if name else field)
    else:
        yield name, part


def rebuilt(part: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a state or of a part of it with changed arrays, except those that simulations share."""
    if not (isinstance(part, tuple) and hasattr(part, "_fields")):
        return change(part)
    shared = getattr(part, "SHARED", ())
    return type(part)(
        *(each if name in shared else rebuilt(each, change) for name, each in zip(part._fields, part, strict=True))
    )


def of_jobs(part: Any, rows: Any) -> Any:
    """A part that has seen nothing yet with the rows of some jobs, shape (..., n), in the tables that have one per job.

    Of groups, those in each window only, numbered anew; the rest as it is.
    """

    def of_rows(table: Any) -> Any:
        return table[rows] if len(table) else table[np.zeros((*rows.shape[:-1], 0), np.int64)]

    changed = {name: of_rows(getattr(part, name)) for name in getattr(part, "PER_JOB", ())}
    inner = {name: each for name, each in zip(part._fields, part, strict=True) if hasattr(each, "_fields")}
    made = part._replace(**changed, **{name: of_jobs(each, rows) for name, each in inner.items()})
    tables = getattr(part, "PER_GROUP", ())
    if not tables or not made.group.size:
        return made
    group = made.group.reshape(*rows.shape[:-1], -1)
    order = np.argsort(group, axis=-1, kind="stable")
    ordered = np.take_along_axis(group, order, axis=-1)
    is_new = np.diff(ordered, axis=-1, prepend=ordered[..., :1]) > 0
    numbered = np.empty_like(group)
    np.put_along_axis(numbered, order, np.cumsum(is_new, axis=-1, dtype=group.dtype), axis=-1)
    most = group.shape[-1]
    return made._replace(
        group=numbered.reshape(made.group.shape), **{name: getattr(part, name)[:most] for name in tables}
    )


def fork(part: Any) -> Any:
    """An independent copy of a state, of a decider or of a part of one: both continue without affecting each other."""
    return rebuilt(part, lambda each: each.copy() if isinstance(each, np.ndarray | np.record | list) else each)


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

    return Batch(
        states=rebuilt(one, lambda each: zeros(each.shape, each.dtype)), totals=zeros((), dtype_of(RewardTotals)),
        user_of=zeros(one.arrivals.shape, np.int64), users=zeros((users,), dtype_of(UserTotals)),
        values=zeros((terms,), np.float64),
    )  # fmt: skip


def row(batch: Batch, b: int) -> State:
    """The state of one simulation, in plain Python."""
    return cast(State, rebuilt(batch.states, lambda each: (with_attributes(each) if each.dtype.names else each)[b]))


@dataclass(frozen=True, eq=False)
class StateType:
    """The type of a state: one object per kind of state, so that compiled code is found by it at once."""

    numba: Any
    """Numba's type."""


_TYPES: dict[tuple[Any, ...], StateType] = {}


def type_of(state: State) -> StateType:
    """The type of a state; it depends only on the kinds of its parts."""
    kinds: tuple[Any, ...] = tuple(map(type, state))
    if kinds not in _TYPES:
        _TYPES[kinds] = StateType(numba.typeof(state))
    return _TYPES[kinds]


def _row_type(part: Any) -> Any:
    """Type of a state in one simulation, or of a part of it, from that of the states of a batch."""
    if not isinstance(part, types.BaseNamedTuple):
        return part.dtype if part.ndim == 1 else part.copy(ndim=part.ndim - 1, layout="C")
    shared, kinds = getattr(part.instance_class, "SHARED", ()), zip(part.fields, part.types, strict=True)
    return types.BaseTuple.from_types(
        [each if name in shared else _row_type(each) for name, each in kinds], part.instance_class
    )


def _one_of(typing_context: Any, batch: Any, b: Any) -> Any:
    """`row` for compiled code, written out for the type of the states."""
    states = batch.fields.index("states")
    result = _row_type(batch.types[states])

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def picked(value: Any, part: Any, wanted: Any) -> Any:
            if not isinstance(part, types.BaseNamedTuple):
                signature = typing_context.resolve_function_type(operator.getitem, (part, types.intp), {})
                return context.get_function(operator.getitem, signature)(builder, (value, arguments[1]))
            shared, inner = getattr(part.instance_class, "SHARED", ()), []
            for k, name in enumerate(part.fields):
                each = builder.extract_value(value, k)
                inner.append(each if name in shared else picked(each, part.types[k], wanted.types[k]))
            return context.make_tuple(builder, wanted, inner)

        return picked(builder.extract_value(arguments[0], states), batch.types[states], result)

    return result(batch, types.intp), generate


one_of: Callable[[Batch, int], State] = row if PLAIN else intrinsic(_one_of)
"""`row` for compiled code, which cannot loop over fields of different types."""


def _load_apart(kinds: Any) -> None:
    """Load what entry points for a state, a part of one or a batch call by address; all of them import this file."""
    for kind in kinds:
        if getattr(kind, "instance_class", None) is Batch:
            apart.load(_row_type(kind.types[kind.fields.index("states")]))
        else:
            apart.load(kind)


LOADERS.append(_load_apart)
