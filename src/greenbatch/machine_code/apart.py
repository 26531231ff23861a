"""A function that is compiled once for each kind of state, and that other compiled code calls by address.

Numba copies the code of a function into each entry point that calls it, directly or not. What moves the clock is most
of the engine, and all deciders, environments and steps from Python need the same. So it is compiled by itself, and has
a name for the linker that is the same in every process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numba
from llvmlite import binding as llvm
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from greenbatch.machine_code.compile import PLAIN, Function, machine_code
from greenbatch.machine_code.references import Reference

_KINDS = {"bool": types.boolean, "int": types.int64, "float": types.float64}
"""Annotation of a parameter or result -> its compiled type."""
_PLACED: dict[str, Any] = {}
"""Name for the linker -> the compiled function, which lives as long as the process."""
_APART: list[tuple[type, Callable[[Reference], str]]] = []
"""For each function: the part of the state that it takes, and what compiles or loads it and returns that name."""


def compiled_apart(told: str = "", **more: Any) -> Callable[[Function], Function]:
    """Compile a function by itself for each kind of state, or of a part of it (decorator).

    Its first parameter is the state, or the part, by reference; the others and the result are of `_KINDS` or of more.

    Args:
        told: what the user is told is compiled; nothing if that takes two seconds at most.
        more: annotation of a parameter -> its compiled type.
    """
    return lambda function: function if PLAIN else _apart(function, told, _KINDS | more)


def _apart(function: Function, told: str, kinds_of: dict[str, Any]) -> Function:
    first, *others = inspect.signature(function).parameters.values()
    kinds = [kinds_of[each.annotation] for each in others]
    result = kinds_of[inspect.signature(function).return_annotation]

    def place(part: Reference) -> str:
        name = f"{function.__module__}.{function.__name__}.{part.name}"
        if name not in _PLACED:
            code = machine_code(function, result(part, *kinds), apart=True, told=told)
            (compiled,) = code.overloads.values()
            llvm.add_symbol(name, compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))
            _PLACED[name] = code  # last: whoever finds it there relies on the symbol
        return name

    def call(_: Any, part: Any, *_given: Any) -> Any:
        if not isinstance(part, Reference):
            raise numba.errors.TypingError(f"{function.__name__} takes its first argument by reference")
        name, signature = place(part), result(part, *kinds)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            code = cgutils.get_or_insert_function(builder.module, kind, name)
            outcome = context.call_conv.call_function(builder, code, signature.return_type, signature.args, values)
            status, returned = outcome
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return returned

        return signature, generate

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_ONLY)
    cast(Any, call).__signature__ = inspect.Signature([context, first, *others])
    call.__name__, call.__doc__ = function.__name__, function.__doc__
    _APART.append((cast(Any, function).__globals__[first.annotation], place))
    made = intrinsic(call)
    made.function = function  # for its `fingerprint`
    return cast(Function, made)


def load(kind: Any) -> None:
    """Compile or load what compiled code calls by address for a type: before that code, which may be kept on disk."""
    if not isinstance(kind, types.BaseNamedTuple):
        return
    for part in kind.types:  # first, for what a state calls may call what a part of it does
        load(part)
    for made, place in _APART:
        if kind.instance_class is made:
            place(Reference(kind))
