"""Tables of powered processors and GPUs over time, such as ``capacity.csv``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster.capacity import Capacity
from greenbatch.errors import InputError

Floats = NDArray[np.float64]
TIMES = ("time_s", "tick")
EACH = ("processors", "gpus")
BOTH = "capacity"
"""Column of powered units of each kind, instead of those of `EACH`."""
MOST, LATEST = 2**31 - 1, 1e11
"""Most units, and the latest time."""


@dataclass(frozen=True, slots=True)
class CapacityTable:
    """The rows of a table, before the machine is known."""

    file: str
    sha256: str
    lines: tuple[int, ...]
    """Line of each row, for messages."""
    time_s: Floats
    processors: Floats
    gpus: Floats | None
    """None if the table has only processors."""

    def levels(self, processors: int, gpus: int) -> Capacity:
        """The capacity of a machine, each change of it once.

        Raises:
            InputError: more is powered than the machine has; names the line.
        """
        mine = np.zeros_like(self.processors) if self.gpus is None or not gpus else self.gpus
        if self.gpus is None and gpus:
            problem, fix = "column is missing, and the machine has GPUs", "add it, or a column capacity for both kinds"
            raise InputError(problem, file=self.file, line=1, field="gpus", fix=fix)
        for name, given, most in (("processors", self.processors, processors), ("gpus", self.gpus, gpus)):
            if given is not None and (above := np.flatnonzero(given > most)).size:
                fix = f"give at most what the machine has, or a larger machine: cluster.{name}"
                problem = f"is {given[above[0]]:g}, the machine has {most}"
                raise InputError(problem, file=self.file, line=self.lines[above[0]], field=name, fix=fix)
        changed = np.flatnonzero(np.append(True, (np.diff(self.processors) != 0) | (np.diff(mine) != 0)))
        return Capacity(
            time_s=self.time_s[changed], processors=self.processors[changed].astype(np.int64),
            gpus=mine[changed].astype(np.int64),
        )  # fmt: skip


def read_capacity(path: str | Path, tick_s: float = 1.0) -> CapacityTable:
    """Read a table of powered units: CSV with the columns ``time_s`` (or ``tick``), ``processors`` and ``gpus``.

    Row k holds from its time to the next row. A column ``capacity`` stands for processors and GPUs alike; without
    ``gpus`` only processors are powered. Other columns are ignored.

    Args:
        path: the file, plain or gzip.
        tick_s: length of a tick, for a column ``tick``. [s]

    Raises:
        InputError: the file cannot be read, a column is missing, or a row is not in order or not a whole number >= 0;
            names the line and the column.
    """
    from greenbatch.energy.columns import read_rows
    from greenbatch.files import decode, read_bytes

    content, sha256 = read_bytes(path)
    rows, lines = read_rows(decode(content, path), file=path)
    if len(rows) < 2:
        fix = "name the columns on the first line, then give one row per level"
        raise InputError("has no rows", file=path, fix=fix)
    header = [name.strip() for name in rows[0]]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            fix = f"the first line names {len(header)} columns"
            raise InputError(f"{len(row)} cells", file=path, line=line, field="row", fix=fix)
    clock = _clock(header, path, lines[0])
    table = _Table(path, header, rows[1:], lines[1:])
    time_s = table.column(clock) * (tick_s if clock == "tick" else 1.0)
    if (falls := np.flatnonzero(np.diff(time_s) <= 0)).size:
        line, fix = lines[falls[0] + 2], "sort the rows by time, each time once"
        raise InputError("is not after that of the row before", file=path, line=line, field=clock, fix=fix)
    processors = table.column(BOTH if BOTH in header else "processors")
    gpus = processors if BOTH in header else table.column("gpus") if "gpus" in header else None
    return CapacityTable(Path(path).name, sha256, tuple(lines[1:]), time_s, processors, gpus)


def _clock(header: list[str], path: str | Path, line: int) -> str:
    """The column of times, of a header that has what is needed."""

    def refuse(problem: str, field: str, fix: str) -> InputError:
        return InputError(problem, file=path, line=line, field=field, fix=fix)

    shown = f"column is missing; the file has {', '.join(header)[:80]!a}"
    if twice := [name for name in header if name and header.count(name) > 1]:
        raise refuse("column is named twice", twice[0], "name each column once")
    clock = [name for name in TIMES if name in header]
    if len(clock) != 1:
        fix = "give one column of times: time_s or tick"
        raise refuse("found both time_s and tick" if clock else shown, "time_s", fix)
    if BOTH in header and any(name in header for name in EACH):
        raise refuse("stands beside processors or gpus", BOTH, "give capacity alone, or processors and gpus")
    if BOTH not in header and "processors" not in header:
        raise refuse(shown, "processors", "add it, or one called capacity")
    return clock[0]


@dataclass(frozen=True, slots=True)
class _Table:
    path: str | Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> Floats:
        """A column of numbers >= 0, shape (rows,)."""
        at = self.header.index(name)
        found = np.array([self._number(row[at].strip()) for row in self.rows])
        is_good = np.isfinite(found) & (found >= 0) & (found <= (LATEST if name in TIMES else MOST))
        if name != "time_s":
            is_good &= found == np.floor(found)
        if (bad := np.flatnonzero(~is_good)).size:
            cell, line = self.rows[bad[0]][at].strip(), self.lines[bad[0]]
            fix = "give seconds >= 0" if name == "time_s" else "give whole numbers >= 0"
            fix += "; time 0 is that of the jobs' clock" if name in TIMES else ""
            problem = f"is {cell[:20]!a}" if cell else "is missing"
            raise InputError(problem, file=self.path, line=line, field=name, fix=fix)
        return found

    @staticmethod
    def _number(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return np.nan
