"""Notes on the inputs: which of them change what a result means, and the first few for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

CHANGING = re.compile(
    r"GPUs of a job ignored|exclusive use of nodes ignored|partitions run on one pool|negative values set to zero"
    r"|run time set to|job (larger than|with|without) [^:]*dropped|fits on no nodes of the cluster dropped"
    r"|power ignored|recorded power replaced|missing power filled in"
    r"|error of power estimated|idle power of the job's nodes included"
)
"""Notes that say that the jobs, the machine or the power simulated are not those of the file."""


def changing(notes: Iterable[str]) -> list[str]:
    """The notes that change what a result means, each once."""
    return [note for note in dict.fromkeys(notes) if CHANGING.search(note)]


def first_notes(notes: Sequence[str], where: str, most: int = 4) -> list[str]:
    """At most ``most`` lines; notes that change a result come first, and the last line counts the rest.

    Args:
        notes: all of them.
        where: the file that has all of them.
        most: number of lines.
    """
    first = changing(notes)
    lines = [*first, *(note for note in dict.fromkeys(notes) if note not in first)]
    return lines if len(lines) <= most else [*lines[: most - 1], f"{len(lines) - most + 1} more notes: see {where}"]
