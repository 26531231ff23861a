"""A note: what was repaired, dropped, assumed or is worth knowing, with its level and how much it touches.

Readers, machines, sites and comparisons make notes. Here they are ordered, merged and put into lines for a terminal; a
report, JSON and Python show the same ones in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Level = Literal["fact", "repair", "change", "warning"]
"""How much a note matters, the least first.

``fact``: worth knowing, no figure depends on it. ``repair``: damaged or missing values were set right or dropped.
``change``: what is simulated is not what the inputs say. ``warning``: figures may mislead.
"""

Share = tuple[float, str]
"""A part of a whole and what of: ``(0.75, "processor-hours")``; also ``jobs``, ``energy``, ``hours`` or ``processors``.
From 0 to 1."""

LEVELS: tuple[Level, ...] = get_args(Level)
JOBS = "jobs"
"""What a note is about that counts jobs of the input that are not simulated."""
LITTLE = 0.01
"""A note that touches more than this share is always shown."""
FEW = 4
"""Lines of a terminal that notes may fill if nothing requires more."""


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
    """The column, series or setting that the note is about, if any: replacing that column removes the note. `JOBS` if
    it counts jobs that are left out; then shares are of all jobs of the input."""
    level: Level = "repair"
    """How much it matters."""
    shares: tuple[Share, ...] = ()
    """What it touches, where known."""
    of: tuple[str, ...] = ()
    """The schedulers, or values of a sweep, that it is about, if not all; they are shown before the text."""

    @property
    def share(self) -> float:
        """The largest of the shares, 0 if none is known."""
        return max((part for part, _ in self.shares), default=0.0)

    @property
    def matters(self) -> bool:
        """Whether it is always shown: it is a change or a warning, or touches more than `LITTLE`."""
        return self.level in {"change", "warning"} or self.share > LITTLE

    def __str__(self) -> str:
        whose = f"{', '.join(self.of)}: " if self.of else ""
        count = "" if not self.count else f": {self.count:,}"
        where = "" if self.first_line is None else f", first at line {self.first_line}"
        touched = " and ".join(f"{percent(part)} of the {of}" for part, of in self.shares)
        return f"{whose}{self.what}{count}{where}" + (f" ({touched})" if touched else "")


def ordered(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Notes by consequence: by level, the highest first, then by share; those alike but for `Note.of` are one.

    Args:
        notes: in the order in which they came up, which decides between equals.
    """
    found: dict[tuple[Note, bool], dict[str, None]] = {}
    for note in notes:
        found.setdefault((replace(note, of=()), bool(note.of)), {}).update(dict.fromkeys(note.of))
    merged = [replace(note, of=tuple(of)) for (note, _), of in found.items()]
    return tuple(sorted(merged, key=lambda note: (-LEVELS.index(note.level), -note.share)))


def lines(notes: Iterable[Note], where: str) -> list[str]:
    """Lines for a terminal: every note that matters, others while there are at most `FEW`, then how many are left out.

    Args:
        notes: all of them, in any order.
        where: the file that has all of them.
    """
    every = ordered(notes)
    shown = max(sum(note.matters for note in every), FEW if len(every) <= FEW else FEW - 1)
    told = [f"{'warning' if note.level == 'warning' else 'note'}: {note}" for note in _first(every)[:shown]]
    left = len(every) - len(told)
    return [*told, *([f"{left} more note{'s' * (left > 1)}: see {where}"] if left else [])]


def _first(notes: Sequence[Note]) -> list[Note]:
    """Those that matter first, each part in its order."""
    return sorted(notes, key=lambda note: not note.matters)


def warnings_fact(notes: Iterable[Note], where: str = "notes") -> dict[str, str]:
    """For the representation of an object: how many of its notes matter, if any do, and the attribute that has them."""
    count = sum(note.matters for note in notes)
    return {"warnings": f"{count}, see {where}"} if count else {}


def records(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Notes for JSON, ordered: the fields of `Note` that are not empty, and ``text``, the whole line."""
    return [
        {"text": str(note)} | {key: value for key, value in asdict(note).items() if value not in ("", 0, None, ())}
        for note in ordered(notes)
    ]


def shares_of(
    touched: NDArray[np.bool_] | NDArray[np.intp],
    work: NDArray[np.float64] | None = None,
    jobs: NDArray[np.float64] | None = None,
) -> tuple[Share, ...]:
    """The shares of the processor-hours, if those of all that is touched are known, and of the jobs.

    Args:
        touched: which rows, shape (n,), or their numbers.
        work: processors x run time of every row, not negative, NaN if unknown, shape (n,).
        jobs: how many jobs each row stands for, shape (n,); 1 by default.
    """
    import numpy as np

    wholes = [] if work is None else [(work, "processor-hours")]
    wholes.append((np.ones(len(touched)) if jobs is None else jobs, "jobs"))
    amounts = ((whole[touched].sum(), np.nansum(whole), of) for whole, of in wholes)
    return tuple((float(part / whole), of) for part, whole, of in amounts if whole > 0 and np.isfinite(part))


def left_out_work(notes: Iterable[Note]) -> float:
    """Share of the processor-hours of the input that notes say is not simulated, as far as it is known."""
    gone = (part for note in notes if note.about == JOBS for part, of in note.shares if of == "processor-hours")
    return min(sum(gone), 1.0)


def percent(part: float) -> str:
    """A share as text: ``75%``, ``0.4%``, ``<0.1%``."""
    if 0 < part < 0.001:
        return "<0.1%"
    return f"{part:.0%}" if part >= 0.0995 or part == 0 else f"{100 * part:.1f}%"
