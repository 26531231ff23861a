"""Keys of tables that are the keyword arguments of functions and the fields of classes, with types and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from greenbatch.scenarios.section import Naturals, Numbers, Section, Texts

_ARRAYS = {Sequence[str]: Texts, Sequence[float]: Numbers, Sequence[int]: Naturals}
_NOT_KEYS = frozenset({"factor", "name", "unix_start_s", "until_s", "signals", "climate"})
"""Arguments that the scenario sets itself."""


def keys(function: Callable[..., Any], *, but: frozenset[str] = _NOT_KEYS) -> dict[str, Any]:
    """Keyword arguments of a function as fields of a table.

    Args:
        function: a function, or a class made of keyword arguments.
        but: arguments that are no keys.
    """
    hints = get_type_hints(function)
    fields = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and name not in but:
            kind = hints[name]
            for sequence, array in _ARRAYS.items():
                if kind == sequence:
                    kind = array
                elif kind == sequence | None:
                    kind = array | None
            fields[name] = (kind, ... if parameter.default is parameter.empty else parameter.default)
    return fields


def arguments(function: Callable[..., Any], section: Section) -> dict[str, Any]:
    """Keyword arguments of a function, from a table with its `keys`."""
    return {name: getattr(section, name) for name in keys(function)}
