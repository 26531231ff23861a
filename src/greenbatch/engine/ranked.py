"""Candidates sorted by a key."""

from __future__ import annotations

from greenbatch.engine.records import Ranked, Table
from greenbatch.machine_code.compile import compiled


@compiled
def sort_ranked(ranked: Table[Ranked], count: int) -> None:
    """Sort the first candidates by key, stably: a merge sort; the table's second half is scratch."""
    half = ranked.shape[0] // 2
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle, right = min(left + width, count), min(left + 2 * width, count)
            a, b = left, middle
            for k in range(left, right):
                if a < middle and (b >= right or ranked[a].key <= ranked[b].key):
                    ranked[half + k] = ranked[a]
                    a += 1
                else:
                    ranked[half + k] = ranked[b]
                    b += 1
        for k in range(count):
            ranked[k] = ranked[half + k]
        width *= 2
