"""One function, several implementations, chosen by the type of a part of the state.

``fits(machine, ...)`` is one name for callers; `Pool` and every other kind of machine register what it does for them.
Compiled code is chosen by Numba when a caller is compiled, so that a call costs nothing; plain Python looks it up.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from numba.extending import overload

from greenbatch.machine_code.compile import OPTIONS
from greenbatch.machine_code.linking import PART

P = ParamSpec("P")
T = TypeVar("T")


class Variant(Generic[P, T]):
    """A function whose implementation depends on the type of its first argument, a part of the state.

    Only a name for type checkers: `variant` returns a plain function with the method ``register``.
    """

    def __call__(self, part: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the implementation for the first argument."""
        raise TypeError

    def register(self, part: type) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Register the implementation for a kind of part (decorator)."""
        raise TypeError


def variant(
    part: type | None = None, *, otherwise: Any = None, inlined: bool = True, default: bool = False
) -> Callable[[Callable[Concatenate[Any, P], T]], Variant[P, T]]:
    """Declare a function with one implementation per kind of part (decorator).

    The function itself gives the name, the parameters and the docstring. The first parameter selects.

    Args:
        part: the function itself is the implementation for this kind of part.
        otherwise: what it returns for kinds of parts that register none, if there is such a part: a value, or a
            function of the same parameters.
        inlined: compile the implementation into its callers; False if it is large.
        default: the function itself is the implementation for kinds of parts that register none.
    """

    def declare(protocol: Callable[Concatenate[Any, P], T]) -> Variant[P, T]:
        names = list(inspect.signature(protocol).parameters)
        shown = ", ".join(names)
        table: dict[type, Callable[..., T]] = {} if part is None else {part: protocol}
        others = protocol if default else getattr(otherwise, "py_func", otherwise) if callable(otherwise) else None
        if part is not None and others is None:
            own = {"value": otherwise, "__name__": protocol.__module__}
            exec(f"def constant({shown}):\n    return value", own)  # noqa: S102  (our own text)
            others = own["constant"]

        def other(part: Any) -> Callable[..., T]:
            if others is None:
                kinds = ", ".join(each.__name__ for each in table)
                problem = f"{protocol.__name__} is not defined for {type(part).__name__}, only for {kinds}"
                raise TypeError(problem)
            return others

        scope: dict[str, Any] = {"other": other, "table": table, "otherwise": others}
        exec(  # noqa: S102
            f"def {protocol.__name__}({shown}):\n"
            f"    return (table.get(type({names[0]})) or other({names[0]}))({shown})\n"
            f"def typed({shown}):\n    return table.get(getattr({names[0]}, 'instance_class', None), otherwise)", scope
        )  # fmt: skip
        function = scope[protocol.__name__]
        function.__doc__, function.__module__ = protocol.__doc__, protocol.__module__
        options = {**OPTIONS, "forceinline": inlined, **PART}
        overload(function, jit_options=options, strict=False)(scope["typed"])

        def register(part: type) -> Callable[[Callable[..., T]], Callable[..., T]]:
            def add(implementation: Callable[..., T]) -> Callable[..., T]:
                table[part] = implementation
                return implementation

            return add

        function.register = register
        function.table, function.otherwise = table, others
        return cast("Variant[P, T]", function)

    return declare
