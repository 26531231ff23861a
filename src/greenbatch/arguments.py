"""Arguments given in Python: checks that refuse wrong ones in one line, and arrays that nobody can change later."""

from __future__ import annotations

import os
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from greenbatch.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Kind = TypeVar("Kind", bound=np.generic)


def whole_number(value: Any, name: str, *, lowest: int | None = None) -> int:
    """A whole number as Python's int. NumPy integers are whole numbers; truth values, texts and floats are not.

    Args:
        value: the argument as given.
        name: its name, for the message.
        lowest: smallest number allowed; None for any.

    Raises:
        InputError: it is not a whole number, or too small.
    """
    fix = "give a whole number" if lowest is None else f"give a whole number, {lowest} or more"
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None:
        raise InputError(f"is {value!r:.60}", field=name, fix=fix)
    if lowest is not None and number < lowest:
        raise InputError(f"is {number}", field=name, fix=fix)
    return number


def some_text(value: Any, name: str) -> str:
    """A text that is not blank.

    Args:
        value: the argument as given.
        name: its name, for the message.

    Raises:
        InputError: it is not a text, or blank.
    """
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"is {value!r:.60}", field=name, fix="give a text that is not empty")
    return value


def file_path(value: Any, name: str, *, what: str = "the path of a file") -> Path:
    """A path, given as one or as text.

    Args:
        value: the argument as given.
        name: its name, for the message.
        what: what is accepted, for the message.

    Raises:
        InputError: it is neither text nor a path.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise InputError(f"is {value!r:.60}", field=name, fix=f"give {what}")
    return Path(value)


def numbers(values: Any, name: str) -> NDArray[np.float64]:
    """A column of floats that cannot be written to.

    Args:
        values: the argument as given: an array, or a list of numbers.
        name: its name, for the message.

    Raises:
        InputError: it is not a column of numbers.
    """
    import numpy as np

    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        column = np.zeros((0, 0))
    if column.ndim != 1:
        raise InputError("is not a column of numbers", field=name, fix="give one number per row")
    return read_only(column)


def read_only(array: NDArray[Kind]) -> NDArray[Kind]:
    """The array if it cannot be written to, else a copy that cannot."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array
