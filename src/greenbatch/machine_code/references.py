"""The state by reference: compiled functions pass one pointer to each other, not each of its some 140 values.

Numba passes a tuple as its members, and an array as seven. With parts of parts, that is most of the code that a call
compiles to, and most of what it writes at run time. A `Reference` has the fields of the tuple that it refers to.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from numba import types
from numba.core import cgutils, imputils
from numba.core.typing import templates
from numba.extending import intrinsic, lower_getattr_generic, models, register_model

from greenbatch.machine_code.compile import PLAIN
from greenbatch.machine_code.kept import is_ours


class Reference(types.Type):  # type: ignore[misc]
    """Numba's type of a pointer to a named tuple."""

    def __init__(self, of: Any) -> None:
        self.of = of
        self.instance_class = of.instance_class
        super().__init__(name=f"{of.instance_class.__name__}_{sha256(_written(of).encode()).hexdigest()[:16]}")


_SEEN: list[Any] = []
"""Classes of other packages, in the order in which they were seen."""


def _written(of: Any) -> str:
    """A type as text. A class of another package has a number, for it can be defined again with the same fields."""
    text = str(of)
    if not is_ours(of):
        if of.instance_class not in _SEEN:
            _SEEN.append(of.instance_class)
        inner = [_written(each) for each in of.types if hasattr(each, "instance_class")]
        text = f"{text} {_SEEN.index(of.instance_class)} {inner}"
    return text


@register_model(Reference)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.of).get_value_type().as_pointer())


@templates.infer_getattr
class _Fields(templates.AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, kind: Reference, field: str) -> Any:
        """Type of a field: parts of parts are references again."""
        if field not in kind.of.fields:
            return None
        part = kind.of.types[kind.of.fields.index(field)]
        return Reference(part) if isinstance(part, types.BaseNamedTuple) else part


def _get_field(context: Any, builder: Any, kind: Reference, pointer: Any, field: str) -> Any:
    number = kind.of.fields.index(field)
    place, part = cgutils.gep_inbounds(builder, pointer, 0, number), kind.of.types[number]
    if isinstance(part, types.BaseNamedTuple):
        return place
    return imputils.impl_ret_borrowed(context, builder, part, builder.load(place))


lower_getattr_generic(Reference)(_get_field)


def _refer(_: Any, part: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        del context, signature
        return cgutils.alloca_once_value(builder, values[0])

    return Reference(part)(part), generate


by_reference: Any = (lambda part: part) if PLAIN else intrinsic(_refer)
"""A part of the state, to be passed on by reference; it lives as long as the function that calls this."""
