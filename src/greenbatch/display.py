"""Representations of objects: one line of text at a prompt, a small table in a notebook."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars

WIDEST, WIDEST_VALUE = 200, 44
"""Maximum characters of the line, and of one value in it."""


def draws_text(count: int) -> str:
    """A number of draws of a generator: ``1 draw``, ``10 draws``."""
    return f"{count:,} draw{'s' * (count != 1)}"


def windows_text(count: int, jobs: int, *, at_most: bool = False) -> str:
    """A number of windows, ``one window of 5 jobs`` or ``10 windows of at most 1,024 jobs``; of 0 jobs: of draws."""
    if not jobs:
        return draws_text(count)
    return f"{'one window' if count == 1 else f'{count:,} windows'} of {'at most ' * at_most}{jobs:,} jobs"


def windows_fact(count: int, jobs: int) -> str:
    """The same beside the label ``windows``: ``10 of 1,024 jobs``."""
    return f"{count} of {jobs:,} jobs" if jobs else f"{draws_text(count)} of the generator"


def docstring(function: Any) -> str:
    """The docstring of a function, which reports show; from its source where Python drops docstrings (``-OO``)."""
    import ast
    import inspect
    import textwrap

    found = inspect.getdoc(function)
    if not found and sys.flags.optimize > 1:
        with suppress(OSError, TypeError, SyntaxError):
            (made,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
            found = ast.get_docstring(made) if isinstance(made, ast.FunctionDef | ast.ClassDef) else None
    return found or ""


class Strong(str):
    """Emphasized text."""

    __slots__ = ()


class Shown(ABC):
    """Base class of objects represented by a few facts instead of all their arrays."""

    __slots__ = ()

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """Label -> value with unit. The first entry is the name."""

    def __repr__(self) -> str:
        (_, name), *facts = self._facts().items()
        parts = [name, *(f"{label} {_short(value, WIDEST_VALUE)}" for label, value in facts)]
        return _short(f"<{type(self).__name__} {' | '.join(parts)}", WIDEST - 1) + ">"

    def _repr_html_(self) -> str:
        """The same facts in full, as a table."""
        (_, name), *facts = self._facts().items()
        return html_table(f"{type(self).__name__} {name}", [], facts)


def html_table(title: str, header: Sequence[str], rows: Sequence[tuple[str, ...]], notes: Sequence[str] = ()) -> str:
    """An HTML table for a notebook. Texts are escaped, line breaks are kept, the first line of a `Strong` is bold.

    Args:
        title: caption of the table.
        header: headers of the columns; empty for none.
        rows: texts of the cells; the first one of a row is its name.
        notes: lines below the table.
    """
    left = ' style="text-align: left"'

    def cell(tag: str, text: str) -> str:
        first, *more = (escape(line) for line in text.split("\n"))
        first = f"<strong>{first}</strong>" if isinstance(text, Strong) else first
        return f"<{tag}{left}>{'<br>'.join([first, *more])}</{tag}>"

    head = f"<thead><tr>{''.join(cell('th', text) for text in header)}</tr></thead>" if header else ""
    body = "".join(f"<tr>{cell('th', name)}{''.join(cell('td', text) for text in row)}</tr>" for name, *row in rows)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><caption{left}>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>{below}"


def span_text(seconds: float) -> str:
    """A duration in a suitable unit."""
    for unit, length_s in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= length_s:
            return f"{seconds / length_s:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:,.4g} s"


def to_pandas(frame: polars.DataFrame) -> pandas.DataFrame:
    """Convert a polars frame to a pandas frame, without pyarrow.

    Raises:
        InputError: pandas is not installed.
    """
    from greenbatch.errors import InputError

    try:
        import pandas
    except ImportError:
        raise InputError(
            "pandas is not installed", field="to_pandas", fix='pip install "greenbatch[notebook]"'
        ) from None
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def _short(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"
