"""Lists of names with their meanings, as wide as the terminal; names and addresses are never broken."""

from __future__ import annotations

import shutil
import textwrap

_PIPE = 100
"""Columns where there is no terminal and COLUMNS is not set."""
_LEAST = 20
"""Columns that a meaning gets, however narrow the terminal."""


def print_entry(name: str, meaning: str, *, column: int) -> None:
    """Print a name and its meaning beside it, or below it where the name is too long.

    Args:
        name: what is listed; may be empty.
        meaning: a few words or sentences.
        column: where the meaning begins.
    """
    width = shutil.get_terminal_size((_PIPE, 24)).columns - 1 - column
    lines = textwrap.wrap(meaning, max(width, _LEAST), break_long_words=False, break_on_hyphens=False) or [""]
    beside = len(name) < column or not name
    print(f"{name:{column}}{lines.pop(0)}".rstrip() if beside else name)
    for line in lines:
        print(" " * column + line)
