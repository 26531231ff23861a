"""Tables in a terminal of any width: no column is dropped, no number or name is broken.

If a table is too wide, the names move to separate lines; if it is still too wide, intervals break between their ends;
then the columns are split into blocks, which repeat the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.drawing import wrapped
from greenbatch.experiments.reports.tables import Cell, Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

GAP = 2
"""Blanks between columns, and before the figures under a name."""
_STYLES = {"": "", "best": "bold green", "good": "bold green", "bad": "bold red"}
_FAINT = "dim"
_PLAIN = ""

Line = tuple[str, str]
"""Text and its style."""


@dataclass(frozen=True, slots=True)
class TerminalTable:
    """A Rich renderable that adapts a table to the width of the console."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Title, blocks and notes."""
        from rich.text import Text

        width = options.max_width
        yield Text(self.table.title, style="bold")
        yield from blocks(self.table, width)
        yield Text()
        notes = self.table.notes if console.color_system is None else self.table.lines
        for note in notes:
            yield Text(note, style=_FAINT)
        if notes:
            yield Text()


@dataclass(frozen=True, slots=True)
class _Column:
    """Minimum and full width of one column of figures."""

    place: int
    least: int
    whole: int
    text: bool
    """Whether it contains words rather than figures with intervals, so additional width is useful."""

    @staticmethod
    def of(table: Table, place: int) -> _Column:
        _, unit, short = table.columns[place]
        cells = [cells[place] for _, cells in table.rows]
        head = [*short.split(), *([f"[{unit}]"] if unit else [])]
        words = [word for cell in cells for part in _parts(cell) for word in part.split()]
        parts = [part for cell in cells for part in _parts(cell)]
        least = max(map(_length, (*head, *words)), default=1)
        whole = max((least, *map(_length, parts)))
        return _Column(place, least, whole, not any(cell.interval for cell in cells))


def _parts(cell: Cell) -> tuple[str, ...]:
    return tuple(filter(None, (cell.text, cell.interval, cell.remark)))


def blocks(table: Table, width: int) -> Iterator[Text]:
    """The lines of a table at a width in characters, without title and notes."""
    from rich.text import Text

    columns = [_Column.of(table, place) for place in range(len(table.columns))]
    names = max((_length(name) for name in (table.corner, *(name for name, _ in table.rows))), default=0)
    for inline, loose in ((True, True), (False, True), (True, False), (False, False)):
        room = width - (names if inline else 0)
        need = sum(GAP + (column.whole if loose else column.least) for column in columns)
        if need <= room:
            yield from _block(table, columns, width, names if inline else 0)
            return
    for k, part in enumerate(_split(columns, width)):
        if k:
            yield Text()
        yield from _block(table, part, width, 0)


def _split(columns: Sequence[_Column], width: int) -> Iterator[list[_Column]]:
    """Split columns into blocks that fit the width."""
    part: list[_Column] = []
    for column in columns:
        if part and sum(GAP + other.least for other in part) + GAP + column.least > width:
            yield part
            part = []
        part.append(column)
    if part:
        yield part


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """Widths of the columns: full if they fit, else columns of words share the remaining width."""
    if sum(GAP + column.whole for column in columns) <= room:
        return [column.whole for column in columns]
    widths = [column.least for column in columns]
    slack = room - sum(GAP + width for width in widths)
    for k, column in enumerate(columns):
        more = min(max(slack, 0), column.whole - column.least) if column.text else 0
        widths[k] += more
        slack -= more
    return widths


def _block(table: Table, columns: Sequence[_Column], width: int, names: int) -> Iterator[Text]:
    """Header, rule and rows of a block; ``names`` is the width of the names, 0 if they are on separate lines."""
    from rich.text import Text

    widths = _widths(columns, width - names)
    heads = [_head(table.columns[column.place], w) for column, w in zip(columns, widths, strict=True)]
    height = max(map(len, heads), default=0)
    heads = [[("", _PLAIN)] * (height - len(head)) + head for head in heads]
    corner = [("", _PLAIN)] * (height - 1) + [(table.corner, "bold")]
    if not names:
        yield Text(table.corner, style="bold")
    yield from _lines([corner] if names else [], heads, names, widths)
    yield Text("─" * min(width, names + sum(GAP + w for w in widths)), style=_FAINT)
    for name, cells in table.rows:
        if not names:
            yield Text(wrapped(name, width))
        body = [_body(cells[column.place], w) for column, w in zip(columns, widths, strict=True)]
        yield from _lines([[(name, _PLAIN)]] if names else [], body, names, widths)


def _head(column: tuple[str, str, str], width: int) -> list[Line]:
    _, unit, short = column
    return [(text, "bold") for text in (*_folded(short, width), *([f"[{unit}]"] if unit else []))]


def _body(cell: Cell, width: int) -> list[Line]:
    """The lines of a cell: the figure, its interval and remark, broken between words."""
    lines = [(line, _STYLES[cell.mark]) for line in _folded(cell.text, width)]
    return lines + [(line, _FAINT) for part in (cell.interval, cell.remark) for line in _folded(part, width)]


def _folded(text: str, width: int) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _lines(
    names: Sequence[Sequence[Line]], columns: Sequence[Sequence[Line]], left: int, widths: Sequence[int]
) -> Iterator[Text]:
    """Cells of one row side by side: the name to the left, figures to the right."""
    from rich.text import Text

    for k in range(max(map(len, (*names, *columns)), default=0)):
        text = Text()
        for name in names:
            shown, style = name[k] if k < len(name) else ("", _PLAIN)
            text.append(shown + " " * (left - _length(shown)), style=style)
        for column, width in zip(columns, widths, strict=True):
            shown, style = column[k] if k < len(column) else ("", _PLAIN)
            text.append(" " * (GAP + width - _length(shown)))
            text.append(shown, style=style)
        yield text


def _length(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
