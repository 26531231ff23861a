"""Lists of names and meanings, wrapped to the terminal without breaking names or addresses."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, TextIO

from greenbatch.errors import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from greenbatch.experiments.running.pieces import Pieces
    from greenbatch.notes import Note

_PIPE = 100
"""Width without a terminal if COLUMNS is not set."""
_LEAST = 20
"""Minimum width of a meaning."""


def print_entry(name: str, meaning: str, *, column: int) -> None:
    """Print a name with its meaning to the right, or below if the name is too long.

    Args:
        name: the name; may be empty.
        meaning: a few words or sentences.
        column: column where the meaning starts.
    """
    width = shutil.get_terminal_size((_PIPE, 24)).columns - 1 - column
    lines = textwrap.wrap(meaning, max(width, _LEAST), break_long_words=False, break_on_hyphens=False) or [""]
    beside = len(name) < column or not name
    print(f"{name:{column}}{lines.pop(0)}".rstrip() if beside else name)
    for line in lines:
        print(" " * column + line)


def say(text: str, *, file: TextIO | None = None, indent: int = 0) -> None:
    """Print a line: broken between words where a person reads it on a terminal, whole in pipes and logs.

    Args:
        text: one line.
        file: where to; stdout if not given.
        indent: blanks before it; further lines get two more.
    """
    stream = sys.stdout if file is None else file
    lead, text = " " * indent, visible(text)
    lines = [lead + text]
    if stream.isatty():
        width = max(shutil.get_terminal_size().columns, _LEAST)
        lines = textwrap.wrap(
            text, width, initial_indent=lead, subsequent_indent=f"{lead}  ", break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
    print("\n".join(lines), file=stream, flush=True)


def say_notes(notes: Iterable[Note], where: str, *, file: TextIO | None = None) -> None:
    """Print notes by consequence, a line each; those that matter little are counted, see `notes.lines`.

    Args:
        notes: all of them.
        where: the file that has all of them.
        file: where to; stdout if not given.
    """
    from greenbatch.notes import lines

    for line in lines(notes, where):
        say(line, file=file)


def say_what_is_there(pieces: Pieces) -> None:
    """A note on stderr where finished windows of a command that was killed are used."""
    if pieces.finished:
        say(f"note: {len(pieces.finished):,} of {pieces.cells:,} windows are finished already, see {pieces.folder}",
            file=sys.stderr)  # fmt: skip
