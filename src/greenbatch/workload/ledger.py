"""Counts of what a reader repairs, drops or notices; with ``strict`` the first repair is an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.notes import JOBS, Level, Note, Share, shares_of


@dataclass(slots=True)
class Ledger:
    """The notes of one file being read."""

    file: Path
    strict: bool
    notes: list[Note] = field(default_factory=list)

    def repair(
        self, what: str, lines: NDArray[Any], *, column: str, fix: str, about: str = "", level: Level = "repair",
        shares: tuple[Share, ...] = (),
    ) -> None:  # fmt: skip
        """Count a repair or drop at the given file lines; with ``strict``, raise instead.

        Raises:
            InputError: ``strict`` and there is at least one line.
        """
        if not len(lines):
            return
        if self.strict:
            raise InputError(what, file=self.file, line=int(lines.min()), field=column, fix=fix)
        self.notes.append(Note(what, len(lines), int(lines.min()), about, level, shares))

    def drop(
        self, what: str, lines: NDArray[Any], bad: NDArray[np.bool_], *, column: str, fix: str,
        work: NDArray[np.float64] | None = None, level: Level = "repair",
    ) -> None:  # fmt: skip
        """Count jobs that are not simulated, with their share of the jobs and processor-hours; see `repair`.

        Args:
            what: which jobs, such as ``job without submit time``.
            lines: line of every job, shape (n,).
            bad: which of the jobs are dropped, shape (n,).
            column: name of the field that is at fault.
            fix: what the user can do.
            work: processors x run time of every job, where that is known, shape (n,).
            level: ``change`` where the jobs did run.
        """
        self.repair(
            f"{what} dropped", lines[bad], column=column, fix=fix, about=JOBS, level=level, shares=shares_of(bad, work)
        )

    def fact(self, what: str, lines: NDArray[Any], *, about: str = "") -> None:
        """Count an observation that changes no value; ``about`` names the column it refers to."""
        if len(lines):
            self.notes.append(Note(what, len(lines), int(lines.min()), about))

    def summary(self) -> str:
        """All notes in one line."""
        return "; ".join(map(str, self.notes)) or "nothing was dropped"
