"""A note: what was repaired, dropped, assumed or is worth knowing, with its level and how much it touches.

Readers, machines, sites and comparisons make notes; one place orders, merges and shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["fact", "repair", "change", "warning"]
"""How much a note matters, the least first.

``fact``: worth knowing, no figure depends on it. ``repair``: damaged or missing values were set right or dropped.
``change``: what is simulated is not what the inputs say. ``warning``: figures may mislead.
"""

Share = tuple[float, str]
"""A part of a whole and what of: ``(0.75, "processor-hours")``; also ``jobs``, ``energy`` or ``hours``. From 0 to 1."""


@dataclass(frozen=True, slots=True)
class Note:
    """One kind of repair, drop or remark, with its number of cases."""

    what: str
    """What was repaired, dropped or is to be known."""
    count: int = 0
    """Number of cases; 0 where nothing is counted."""
    first_line: int | None = None
    """1-based line of the first case in the file, if known."""
    about: str = ""
    """The column, series or setting that the note is about, if any: replacing that column removes the note."""
    level: Level = "repair"
    """How much it matters."""
    shares: tuple[Share, ...] = ()
    """What it touches: shares of the jobs, processor-hours, energy or hours, where known."""

    @property
    def share(self) -> float:
        """The largest of the shares, 0 if none is known."""
        return max((part for part, _ in self.shares), default=0.0)

    def __str__(self) -> str:
        count = "" if not self.count else f": {self.count}"
        where = "" if self.first_line is None else f", first at line {self.first_line}"
        touched = " and ".join(f"{percent(part)} of the {of}" for part, of in self.shares)
        return f"{self.what}{count}{where}" + (f" ({touched})" if touched else "")


def percent(part: float) -> str:
    """A share as text: ``75%``, ``0.4%``, ``<0.1%``."""
    if 0 < part < 0.001:
        return "<0.1%"
    return f"{part:.0%}" if part >= 0.0995 or part == 0 else f"{100 * part:.1f}%"
