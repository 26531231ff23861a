"""Compiled functions that are only parts of entry points: optimized and turned into machine code with these, once.

Numba optimizes every function and turns it into machine code by itself, and again as a part of each function that calls
it, directly or not. With ten levels of calls that is most of the time that the engine takes to compile. A `Part` stays
as Numba's front end leaves it until an entry point is linked (decision 0031).
"""

from __future__ import annotations

from typing import Any

from numba.core import codegen as _codegen
from numba.core import compiler as _compiler

codegen: Any = _codegen
compiler: Any = _compiler


class Part(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of one function, not optimized and without machine code."""

    def _optimize_final_module(self) -> None:
        """Leave it to the entry point."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        """Null: there is no machine code that Python could call."""
        return 0

    @property
    def codegen(self) -> Any:
        """What would be told the address of the function's environment, which the entry point sets."""
        return _NoEnvironment


class _NoEnvironment:
    @staticmethod
    def set_env(*_: Any) -> None:
        """Nothing to set yet."""


class PartCompiler(compiler.Compiler):  # type: ignore[misc]
    """Compiles a function as a `Part`."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, return_type: Any, flags: Any, local: Any
    ) -> None:  # fmt: skip
        super().__init__(typing, target, library, args, return_type, flags, local)
        if library is None:
            self.state.library = Part(target.codegen(), "part")


def set_environments(compiled: Any) -> None:
    """Set the environments of the parts of an entry point, which Numba sets for every function by itself."""
    for result in compiled.overloads.values():
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
