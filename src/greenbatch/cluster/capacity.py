"""What of a machine is powered when: processors and GPUs that are switched off and on in the course of a run.

Source: RARE (dissertation, chapters 3 to 5), §3.2 and Eq. 4.1-4.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import read_only
from greenbatch.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


_ROUNDING = 1e-6
"""Part of a unit that products of decimal fractions lack: 29 % of 100 is 29."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """How a capacity follows the power of a site whose forecast has errors: row k of it is slot k of the site."""

    needed_w: Floats
    """Power of the cluster with so many powered processors, and their part of the GPUs, ascending from 0, shape
    (processors + 1,). [W]"""
    gpus: Ints
    """Those GPUs, shape (processors + 1,)."""
    stored_j: Floats
    """What the battery of the site holds at the begin of each row, if all that is powered is used, shape (k,). [J]"""
    slots: int
    """Slots of a forecast; later ones repeat them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capacity:
    """Powered processors and GPUs over time: row k holds from ``time_s[k]`` to the next row.

    The first row also holds before its time, the last one until ``until_s``. It is known in advance, unless `told` says
    from what forecast of a site it is expected.

    Raises:
        InputError: no rows, columns of different lengths, times that do not ascend, or a negative number.
    """

    time_s: Floats
    """Begin of each level, ascending, shape (k,). [s]"""
    processors: Ints
    """Powered processors, shape (k,)."""
    gpus: Ints
    """Powered GPUs, shape (k,)."""
    until_s: float = math.inf
    """Until when it is known; infinite if the last level holds forever. [s]"""
    told: Told | None = None
    """What later rows are expected from; None if they are known as they come."""

    def __post_init__(self) -> None:
        for name, kind in (("time_s", np.float64), ("processors", np.int64), ("gpus", np.int64)):
            given: Any = np.asarray(getattr(self, name))
            if kind is np.int64 and given.size and not np.all(given == np.floor(given)):
                raise InputError("holds fractions", field=f"capacity.{name}", fix="give whole numbers")
            object.__setattr__(self, name, read_only(given.astype(kind)))
        rows = self.time_s.shape[0]
        if not rows or self.processors.shape != (rows,) or self.gpus.shape != (rows,):
            fix = "give the same number of rows in each column, at least one"
            raise InputError(f"has {rows} times for {self.processors.shape[0]} levels", field="capacity", fix=fix)
        is_after = np.append(True, np.diff(self.time_s) > 0) & np.isfinite(self.time_s)
        if not is_after.all():
            row = int(np.flatnonzero(~is_after)[0])
            problem = f"row {row + 1} begins at {self.time_s[row]:g} s, not after the row before it"
            raise InputError(problem, field="capacity.time_s", fix="sort the rows by time, each time once")
        for name in ("processors", "gpus"):
            if (below := np.flatnonzero(getattr(self, name) < 0)).size:
                problem = f"row {below[0] + 1} has {getattr(self, name)[below[0]]}"
                raise InputError(problem, field=f"capacity.{name}", fix="give numbers >= 0")

    @classmethod
    def constant(cls, processors: int, gpus: int) -> Self:
        """Capacity that never changes."""
        return cls(time_s=np.zeros(1), processors=np.array([processors]), gpus=np.array([gpus]))

    def available_s(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Powered processors x time, and GPUs x time, over an interval. [s]"""
        edges_s = np.concatenate([[-np.inf], self.time_s[1:], [np.inf]])
        length_s = np.diff(np.clip(edges_s, start_s, max(start_s, end_s)))
        return float(self.processors @ length_s), float(self.gpus @ length_s)

    @classmethod
    def of_ticks(cls, level: Any, tick_s: float, *, processors: int, gpus: int) -> Self:
        """Capacity of equal ticks, as fractions of all processors and of all GPUs, rounded down to whole ones.

        What is powered never draws more than there is (RARE, Eq. 4.2): 75 % of 10 is 7.

        Args:
            level: fraction in each tick, 0 to 1, shape (k,).
            tick_s: length of a tick. [s]
            processors: processors of the machine.
            gpus: GPUs of the machine.
        """
        fraction = np.asarray(level, np.float64)
        changed = np.flatnonzero(np.diff(fraction, prepend=np.nan) != 0)
        of: Any = fraction[changed]
        units = [np.floor(of * total + _ROUNDING).astype(np.int64) for total in (processors, gpus)]
        return cls(time_s=np.asarray(changed * tick_s, np.float64), processors=units[0], gpus=units[1])
