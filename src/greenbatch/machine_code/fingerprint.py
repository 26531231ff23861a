"""What machine code is made of: a function, all that it calls, and the constants that these name.

Machine code is kept under a fingerprint of them, so that it is never stale, and so that a comment, a docstring or a
function that it does not call changes nothing. Numba's own cache looks at the file of the first function only.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite import binding as llvm

PACKAGE = __package__.partition(".")[0]
Piece = tuple[str, Any]
"""Text to hash, or ``("", function)`` for a function to look at next."""


def fingerprint(function: Any, arguments: Any) -> str:
    """A hash of a function as it is compiled for some types (hex, 16 digits); see `functions`."""
    digest = hashlib.sha256(f"{_compiler()}\0{arguments}".encode())
    for each in functions(function, arguments):
        for text, _ in _pieces(each):
            digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:16]


def functions(function: Any, arguments: Any) -> Iterator[Any]:
    """A function and all that it calls, directly or not, when it is compiled for some types.

    Args:
        function: the function.
        arguments: Numba's types of its arguments: of a `variant` that is called, the implementations for their classes
            count.
    """
    classes, seen, todo = sorted(set(classes_in(arguments)), key=_name), set(), [function]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        table = getattr(each, "table", None)
        if table is not None:  # a variant
            todo += [table[made] for made in classes if made in table]
            todo += [each.otherwise] if each.otherwise else []
        else:
            yield each
            todo += [called for text, called in _pieces(each) if not text]


@cache
def _compiler() -> str:
    """Hash of what compiles, and for what."""
    folder, cpu = Path(__file__).parent, (llvm.get_host_cpu_name(), str(llvm.get_host_cpu_features().flatten()))
    ours = (file.read_text() for file in sorted(folder.glob("*.py")))
    parts = [numba.__version__, np.__version__, sys.version, *cpu, *ours]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def classes_in(kind: Any) -> Iterator[type]:
    """The classes of named tuples in a type, or in several."""
    kind = getattr(kind, "of", kind)  # what a `Reference` refers to
    if made := getattr(kind, "instance_class", None):
        yield made
    if isinstance(kind, numba.types.BaseTuple | tuple | list):
        for each in kind:
            yield from classes_in(each)


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


@cache
def _pieces(function: Any) -> list[Piece]:
    """What one function is made of."""
    code, scope = function.__code__, function.__globals__
    pieces = [(part, None) for part in _of_code(code, function.__doc__)]
    for cell in function.__closure__ or ():
        pieces += _of_value(cell.cell_contents, code)
    for each in function.__defaults__ or ():
        pieces += _of_value(each, code)
    names = _names(code)
    for name in names:
        if name in scope:
            pieces.append((name, None))
            pieces += _of_value(scope[name], code, names)
    return pieces


def _of_code(code: CodeType, doc: str | None) -> Iterator[str]:
    """Instructions and constants, without the docstring."""
    yield f"{code.co_code.hex()} {code.co_names} {code.co_argcount}"
    for k, each in enumerate(code.co_consts):
        if isinstance(each, CodeType):
            yield from _of_code(each, None)
        elif k > 0 or doc is None or each != doc:
            yield repr(each)


def _names(code: CodeType) -> list[str]:
    """All names in a function and in those that it defines."""
    return list(code.co_names) + [
        name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)
    ]


def _of_value(value: Any, named_in: CodeType, names: list[str] | None = None) -> list[Piece]:
    """What a name in a function stands for.

    Args:
        value: the value.
        named_in: the function.
        names: all names in it, for the attributes of modules.
    """
    if isinstance(value, tuple | list):
        return [(type(value).__name__, None), *(piece for each in value for piece in _of_value(each, named_in))]
    if isinstance(value, ModuleType):
        ours = value.__name__.partition(".")[0] == PACKAGE
        inside = [vars(value)[name] for name in names or () if ours and name in vars(value)]
        return [(value.__name__, None), *(piece for each in inside for piece in _of_value(each, named_in))]
    if isinstance(value, type):
        return [(f"{_name(value)} {getattr(value, '_fields', '')}", None)]
    called = getattr(value, "py_func", None) or getattr(value, "function", value)  # compiled, and compiled apart
    if isinstance(called, FunctionType) and called.__module__.partition(".")[0] == PACKAGE:
        return [("", called)]
    return [(_text(value, named_in), None)]


def _text(value: Any, named_in: CodeType) -> str:
    """A constant, or a function of another package, as text."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if value is None or isinstance(value, int | float | str | np.generic | np.ufunc):
        return repr(value)
    if isinstance(value, FunctionType | BuiltinFunctionType):
        return _name(value)
    return f"{type(value)} {_of_file(named_in.co_filename)}"  # which names it


@cache
def _of_file(name: str) -> str:
    """Hash of a file, for what has no better description."""
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()
