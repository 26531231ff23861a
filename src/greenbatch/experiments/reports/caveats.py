"""Warnings for a page: one line each, those that differ only in their schedulers or numbers together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHORT = 120
"""Characters that fit a line of the page."""


@dataclass(frozen=True, slots=True)
class Caveat:
    """A warning, or several that say the same."""

    head: str
    """Its line; readers open it for the rest."""
    lines: tuple[str, ...]
    """All of them in full."""

    @property
    def folded(self) -> bool:
        """Whether there is more to read than fits the line."""
        return len(self.lines) > 1 or len(self.head) > SHORT


def caveats(lines: Iterable[str], schedulers: Sequence[str]) -> list[Caveat]:
    """Warnings in their order, alike ones as one.

    Lines of the form ``names: text`` with the same text are one line with all names. Other lines are alike if they
    differ only in names of schedulers and in numbers: the first stands for all.

    Args:
        lines: warnings.
        schedulers: names of schedulers that warnings may hold.
    """
    groups: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        named, text = _named(line, schedulers)
        groups.setdefault(text if named else _pattern(line, schedulers), []).append(line)
    return [Caveat(_head(group, schedulers), tuple(group)) for group in groups.values()]


def _named(line: str, schedulers: Sequence[str]) -> tuple[list[str], str]:
    """The schedulers that a line begins with, and the rest; no names if it has another form."""
    for end in (match.start() for match in re.finditer(": ", line)):
        names = line[:end].split(", ")
        if all(name in schedulers for name in names):
            return names, line[end + 2 :]
    return [], line


def _pattern(line: str, schedulers: Sequence[str]) -> str:
    for name in sorted(schedulers, key=len, reverse=True):
        line = line.replace(name, "*")
    return re.sub(r"\d[\d,.]*", "#", line)


def _head(group: Sequence[str], schedulers: Sequence[str]) -> str:
    if len(group) == 1:
        return group[0]
    named = [_named(line, schedulers) for line in group]
    if named[0][0]:
        return f"{', '.join(dict.fromkeys(name for names, _ in named for name in names))}: {named[0][1]}"
    return group[0]
