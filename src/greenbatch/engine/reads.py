"""What a priority rule reads of the queue, by its instructions: columns that it does not read need not be filled in."""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

_LOOKS_INTO_ITSELF = {"eval", "exec", "locals", "vars"}


def may_read(rule: Callable[..., Any], field: str) -> bool:
    """Whether a rule may read a field of the queue, such as ``attributes``.

    It does not if all that it does with the queue is to read other fields by name. A rule that passes the queue on, or
    does anything else with it, may read all of it.
    """
    function = getattr(rule, "py_func", rule)
    while isinstance(function, FunctionType) and _is_guard(function):
        function = function.__wrapped__  # type: ignore[attr-defined]
    return not isinstance(function, FunctionType) or _may_read(function.__code__, field)


@cache
def _may_read(code: CodeType, field: str) -> bool:
    if code.co_argcount + code.co_posonlyargcount < 1 or not _LOOKS_INTO_ITSELF.isdisjoint(code.co_names):
        return True
    queue = code.co_varnames[0]
    if queue in code.co_cellvars:  # a function inside it reads the queue
        return True
    for this, following in pairwise(dis.get_instructions(code)):
        is_named = queue == this.argval or (isinstance(this.argval, tuple) and queue in this.argval)
        if not is_named or this.opname.startswith(("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_CONST", "STORE_ATTR")):
            continue
        is_field = this.opname.startswith("LOAD_FAST") and this.argval == queue and following.opname == "LOAD_ATTR"
        if not is_field or following.argval == field or following.argval.startswith("_"):
            return True
    return False


def _is_guard(function: FunctionType) -> bool:
    """Whether a function is what this package puts around a rule."""
    return hasattr(function, "__wrapped__") and function.__globals__.get("__name__") == "greenbatch.policies.registry"
