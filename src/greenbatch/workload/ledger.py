"""Counts of what a reader repairs, drops or notices; with ``strict`` the first repair is an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.notes import JOBS, Level, Note, Share, ordered, shares_of

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_EMPTY = np.empty(0)


@dataclass(slots=True)
class Ledger:
    """The notes of one file being read."""

    file: Path
    strict: bool
    places: Sequence[str] = ()
    """Place of each job in a file without lines, such as ``jobs[3]``; then lines are numbers of jobs, from 0."""
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
            first = int(lines.min())
            line, place = (None, self.places[first]) if self.places else (first, column)
            raise InputError(what, file=self.file, line=line, field=place, fix=fix)
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

    def fitting(self, processors: NDArray[Any], machine: int | None, lines: NDArray[Any], *, column: str) -> Mask:
        """Which jobs are no larger than a machine, if its size is known; larger ones are dropped.

        Raises:
            InputError: ``strict`` and one is larger.
        """
        larger = processors > (np.inf if machine is None else machine)
        what = f"job larger than the machine ({machine} processors) dropped"
        self.drop(what, lines[larger], column=column, fix="remove the job, or give the size of the machine")
        return ~larger

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
            rows = self._rows(lines)
            count, measured = int(self.jobs[rows].sum()), shares_of(rows, self.work_s, self.jobs)
        first = None if self.places else int(lines.min())
        self.notes.append(Note(what, count, first, about, level, (*measured, *shares)))

    def say(self, what: str, count: int) -> None:
        """Note something that changes no value and has no line."""
        self.notes.append(Note(what, count, level="fact"))

    def _rows(self, lines: NDArray[Any]) -> NDArray[np.intp]:
        return np.searchsorted(self.lines, lines)


def none_left(file: Path, notes: Iterable[Note]) -> InputError:
    """The error for a file of which no job is left, with what was dropped."""
    told = "; ".join(map(str, ordered(notes)))
    return InputError("no job is left", file=file, fix=f"no job can be simulated: {told}")
