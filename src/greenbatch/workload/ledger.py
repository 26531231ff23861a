"""Counts of what a reader repairs, drops or notices; with ``strict`` the first repair is an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.notes import JOBS, Level, Note, Share

Floats = NDArray[np.float64]
_EMPTY = np.empty(0)


@dataclass(slots=True)
class Ledger:
    """The notes of one file being read."""

    file: Path
    strict: bool
    notes: list[Note] = field(default_factory=list)
    lines: NDArray[Any] = field(default_factory=_EMPTY.copy)
    """Lines of all jobs of the file, ascending; set by `measure`."""
    jobs: Floats = field(default_factory=_EMPTY.copy)
    """Jobs that each of these lines stands for."""
    work_s: Floats = field(default_factory=_EMPTY.copy)
    """Processor-seconds of each, NaN if unknown. [s]"""

    def measure(self, lines: NDArray[Any], work_s: Floats, jobs: Floats | None = None) -> None:
        """Say what the file holds in all, so that later notes state their shares of it.

        Args:
            lines: line of each job, shape (n,); lines of later notes must be among them.
            work_s: processor-seconds of each, >= 0; NaN if unknown. [s]
            jobs: how many jobs each line stands for; 1 by default.
        """
        order = np.argsort(lines, kind="stable")
        self.lines, self.work_s = lines[order], work_s[order]
        self.jobs = np.ones(len(order)) if jobs is None else jobs[order]

    def repair(
        self, what: str, lines: NDArray[Any], *, column: str, fix: str, level: Level = "repair", about: str = "",
        shares: tuple[Share, ...] = (),
    ) -> None:  # fmt: skip
        """Count a repair at the given file lines; with ``strict``, raise instead.

        Raises:
            InputError: ``strict`` and there is at least one line.
        """
        if not len(lines):
            return
        if self.strict:
            raise InputError(what, file=self.file, line=int(lines.min()), field=column, fix=fix)
        self.fact(what, lines, about=about, level=level, shares=shares)

    def drop(self, what: str, lines: NDArray[Any], *, column: str, fix: str) -> None:
        """Count jobs that are left out: a change, or a repair if they held no processors for any time.

        Before `measure`, rows are left out that are no jobs of their own: a repair.

        Raises:
            InputError: ``strict`` and there is at least one line.
        """
        measured = bool(self.lines.size)
        level: Level = "change" if measured and self.work_s[self._rows(lines)].any() else "repair"
        self.repair(what, lines, column=column, fix=fix, level=level, about=JOBS if measured else "")

    def fact(
        self, what: str, lines: NDArray[Any], *, about: str = "", level: Level = "fact", shares: tuple[Share, ...] = ()
    ) -> None:  # fmt: skip
        """Count an observation.

        Args:
            what: the observation.
            lines: its file lines.
            about: the column it refers to.
            level: ``fact`` if no value is changed; all others get the shares of what `measure` was told.
            shares: further shares.
        """
        if not len(lines):
            return
        count = len(lines)
        measured: tuple[Share, ...] = ()
        if self.lines.size and level != "fact":
            count, measured = int(self.jobs[self._rows(lines)].sum()), self._shares(lines)
        self.notes.append(Note(what, count, int(lines.min()), about, level, (*measured, *shares)))

    def say(self, what: str, count: int) -> None:
        """Note something that changes no value and has no line."""
        self.notes.append(Note(what, count, level="fact"))

    def summary(self) -> str:
        """All notes in one line."""
        return "; ".join(map(str, self.notes)) or "nothing was dropped"

    def _rows(self, lines: NDArray[Any]) -> NDArray[np.intp]:
        return np.searchsorted(self.lines, lines)

    def _shares(self, lines: NDArray[Any]) -> tuple[Share, ...]:
        """Shares of all jobs and, where known, of all processor-hours."""
        rows = self._rows(lines)
        part_s, whole_s = self.work_s[rows].sum(), np.nansum(self.work_s)
        hours = ((float(part_s / whole_s), "processor-hours"),) if whole_s > 0 and np.isfinite(part_s) else ()
        return (*hours, (float(self.jobs[rows].sum() / self.jobs.sum()), "jobs"))
