"""Compilation of the engine: functions are parts of entry points, which are compiled once and kept on disk."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import config

from greenbatch.machine_code.kept import Kept, announced
from greenbatch.machine_code.linking import PART, RARE, WholeCompiler, set_environments

Function = TypeVar("Function", bound=Callable[..., Any])

PLAIN = bool(config.DISABLE_JIT)
"""True when ``NUMBA_DISABLE_JIT=1``: the same functions run as plain Python."""

OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""How functions that create no arrays are compiled."""


def machine_code(
    function: Callable[..., Any],
    signature: Any = None,
    *,
    allocates: bool = False,
    checked: bool = False,
    apart: bool = False,
    told: str = "",
) -> Any:
    """Compile a function that Python calls, or load its machine code if it is kept.

    Args:
        function: the function.
        signature: compile for these types at once; otherwise at the first call.
        allocates: the function creates arrays. Other functions do without reference counting, which would cost as much
            as their work; the caller keeps the state alive.
        checked: an index out of bounds raises IndexError instead of reading whatever is there.
        apart: only compiled code calls it, see `machine_code.apart`.
        told: what the user is told is compiled; nothing if that takes two seconds at most.
    """
    options = {**OPTIONS, "_nrt": allocates, **({} if allocates else {"pipeline_class": WholeCompiler})}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} if apart else {}
    code = numba.njit(boundscheck=checked, **options)(function)
    if PLAIN:
        return code
    code._cache = kept = Kept(function, f"{allocates} {checked} {apart}")
    if signature is not None:
        with announced(kept.file(signature), told):
            _compile_for(code, signature)
        code.disable_compile()
    return code


def _compile_for(code: Any, signature: Any) -> None:
    collects = gc.isenabled()
    gc.disable()  # the compiler creates many objects that live until it is done
    try:
        code.compile(signature)
        set_environments(code)
    finally:
        if collects:
            gc.enable()


def _part(function: Callable[..., Any], *, small: bool = False, options: dict[str, Any] = PART) -> Any:
    """Compile a function as a part of entry points; when Python calls it, it is compiled as a whole."""
    if PLAIN:
        return function
    code = numba.njit(**OPTIONS, **options, forceinline=small, boundscheck=False)(function)
    insert, wholes, template = code._insert, cache(lambda: machine_code(function)), code.get_call_template
    widest = numba.types.unliteral

    def template_for_all_values(args: Any, named: Any) -> Any:  # Numba would compile again for each constant
        return template(tuple(map(widest, args)), {name: widest(each) for name, each in named.items()})

    def compile_whole(*args: Any, **named: Any) -> Any:
        found = wholes()
        entry_point = found._compile_for_args(*args, **named)
        for each in found.overloads.values():
            insert([kind._code for kind in each.signature.args], each.entry_point, False)
        return entry_point

    code._insert = lambda *_: None  # a part has no machine code that Python could call
    code._compile_for_args, code.get_call_template = compile_whole, template_for_all_values
    return code


ENTRIES: dict[str, Any] = {}
"""Name -> compiled function, for every entry point used so far."""
LOADERS: list[Callable[[Any], None]] = []
"""Given the types of an entry point, each loads what that calls by address, see `machine_code.apart`."""


def entry(
    name: str, function: Callable[..., Any], signature: Any, *, allocates: bool = False, told: bool = True
) -> Any:  # fmt: skip
    """An entry point of the engine, compiled or loaded from the cache.

    Args:
        name: unique among the engine's entry points.
        function: what it does.
        signature: its types. Arguments of other types are not detected: a check would cost more than a step.
        allocates: see `machine_code`.
        told: tell the user when it is compiled for the first time; False if that takes a second at most.
    """
    for load in LOADERS if not PLAIN else ():
        load(signature.args)
    ENTRIES[name] = code = machine_code(function, signature, allocates=allocates, told=name if told else "")
    return code if PLAIN else code.overloads[signature.args].entry_point


def compiled(function: Function) -> Function:
    """Compile a function of the engine on its first call (decorator)."""
    return cast(Function, _part(function))


def compiled_rare(function: Function) -> Function:
    """Compile a function of the engine that most simulations never call, out of the way of others (decorator)."""
    return cast(Function, _part(function, options=RARE))


def compiled_small(function: Function) -> Function:
    """Compile a small function of the engine and inline its machine code into its callers (decorator)."""
    return cast(Function, _part(function, small=True))


@compiled_small
def _as_int64(number: int) -> int:
    return np.int64(number)  # type: ignore[return-value]


whole: Callable[[int], int] = int if PLAIN else _as_int64
"""A whole number of any type as one of 8 bytes: a function is compiled again for each type of argument."""


def compiled_allocating(function: Function) -> Function:
    """Compile a function of the engine that creates arrays, on its first call (decorator)."""
    return cast(Function, machine_code(function, allocates=True))
