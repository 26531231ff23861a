"""How an object shows itself: one line of text at a prompt, a small table in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas
    import polars

WIDEST, WIDEST_VALUE = 200, 44
"""Characters of the line, and of one value in it."""


class Strong(str):
    """A text that stands out."""

    __slots__ = ()


class Shown(ABC):
    """An object that shows itself by a few facts instead of by all its arrays."""

    __slots__ = ()

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """What one wants to know of it: label -> value with unit. The first says what it is called."""

    def __repr__(self) -> str:
        (_, name), *facts = self._facts().items()
        parts = [name, *(f"{label} {_short(value, WIDEST_VALUE)}" for label, value in facts)]
        return _short(f"<{type(self).__name__} {' | '.join(parts)}", WIDEST - 1) + ">"

    def _repr_html_(self) -> str:
        """The same facts in full, as a table."""
        (_, name), *facts = self._facts().items()
        return html_table(f"{type(self).__name__} {name}", [], facts)


def html_table(title: str, header: Sequence[str], rows: Sequence[tuple[str, ...]], notes: Sequence[str] = ()) -> str:
    """A table for a notebook; all texts are escaped, a line break in a cell is kept, the first line may be `Strong`.

    Args:
        title: its caption.
        header: of the columns; empty for none.
        rows: texts of the cells; the first one of a row names it.
        notes: lines below.
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
    """A span of time in the unit that suits it."""
    for unit, length_s in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= length_s:
            return f"{seconds / length_s:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:,.4g} s"


def to_pandas(frame: polars.DataFrame) -> pandas.DataFrame:
    """A polars frame as a pandas frame; pyarrow is not needed.

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
