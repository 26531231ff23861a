"""Counts of what a reader repairs, drops or notices; with ``strict`` the first repair is an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.notes import Note


@dataclass(slots=True)
class Ledger:
    """The notes of one file being read."""

    file: Path
    strict: bool
    notes: list[Note] = field(default_factory=list)

    def repair(self, what: str, lines: NDArray[Any], *, column: str, fix: str) -> None:
        """Count a repair or drop at the given file lines; with ``strict``, raise instead.

        Raises:
            InputError: ``strict`` and there is at least one line.
        """
        if not len(lines):
            return
        if self.strict:
            raise InputError(what, file=self.file, line=int(lines.min()), field=column, fix=fix)
        self.fact(what, lines)

    def fact(self, what: str, lines: NDArray[Any], *, about: str = "") -> None:
        """Count an observation that changes no value; ``about`` names the column it refers to."""
        if len(lines):
            self.notes.append(Note(what, len(lines), int(lines.min()), about))

    def summary(self) -> str:
        """All notes in one line."""
        return "; ".join(map(str, self.notes)) or "nothing was dropped"
