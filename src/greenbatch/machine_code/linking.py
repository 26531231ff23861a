"""Compiled functions that are only parts of entry points: optimized and turned into machine code with these, once.

Numba optimizes every function and turns it into machine code by itself, and again as a part of each function that calls
it, directly or not. With ten levels of calls that is most of the time that the engine takes to compile. A `Part` stays
as Numba's front end leaves it until a `Whole`, an entry point, is linked from all its parts (decision 0031).
"""

from __future__ import annotations

from types import CodeType, SimpleNamespace
from typing import Any

from numba.core import codegen, compiler
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of a function, which knows all functions that it calls, directly or not."""

    def add_linking_library(self, library: Any) -> None:
        """Add a function that is called, and then those that it calls: the linker drops what nothing calls yet."""
        called = library._linking_libraries if isinstance(library, Part) else ()
        for each in (library, *called):
            if each not in self._linking_libraries:
                super().add_linking_library(each)

    def _optimize_functions(self, module: Any) -> None:
        """Leave it to the entry point."""
        module.data_layout = self._codegen._data_layout


class Part(_Library):
    """The code of one function, not optimized and without machine code."""

    def finalize(self) -> None:
        """Leave linking, optimization and machine code to the entry point."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        """Null: there is no machine code that Python could call."""
        return 0

    codegen = SimpleNamespace(set_env=lambda *_: None)
    """What would be told the address of the function's environment, which the entry point sets."""


class Rare(Part):
    """The code of one function that is seldom called, so that callers are compiled as if it were far away."""

    def finalize(self) -> None:
        """Forbid to copy it into its callers."""
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.add_function_attribute("noinline")
        super().finalize()


class Whole(_Library):
    """The code of an entry point, linked from its parts."""

    def _optimize_final_module(self) -> None:
        """Optimize once: Numba does it twice, to remove reference counting in between, of which there is none here.

        Loops become instructions on vectors, which the search of the queue is written for; straight code does not.
        """
        passes, builder = self._codegen._module_pass_manager(loop_vectorize=True, slp_vectorize=False)
        passes.run(self._final_module, builder)


def _compiler_of(library_class: type[_Library]) -> Any:
    """A compiler of functions to a class of libraries."""

    class Compiler(compiler.Compiler):  # type: ignore[misc]
        def __init__(
            self, typing: Any, target: Any, library: Any, args: Any, return_type: Any, flags: Any, local: Any
        ) -> None:  # fmt: skip
            super().__init__(typing, target, library, args, return_type, flags, local)
            if library is None:
                self.state.library = library_class(target.codegen(), library_class.__name__)
                self.state.library.enable_object_caching()

        def define_pipelines(self) -> Any:
            """Numba's passes, without those that find nothing in such a function and take a tenth of the time.

            One is for expressions of whole arrays, which would create arrays, the other for inner functions.
            """
            has_inner = any(isinstance(each, CodeType) for each in self.state.func_id.code.co_consts)
            idle = {NopythonRewrites} if has_inner else {NopythonRewrites, InlineClosureLikes}
            pipelines = super().define_pipelines()
            for each in pipelines:
                each.passes = [one for one in each.passes if one[0] not in idle]
                each.finalize()
            return pipelines

    return Compiler


PartCompiler, RareCompiler, WholeCompiler = _compiler_of(Part), _compiler_of(Rare), _compiler_of(Whole)
PART = {"pipeline_class": PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of a function that is only a part: neither Python nor C calls it."""
RARE = {**PART, "pipeline_class": RareCompiler}


def set_environments(compiled: Any) -> None:
    """Set the environments of the parts of an entry point, which Numba sets for every function by itself."""
    for result in compiled.overloads.values():
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
