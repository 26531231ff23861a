"""How much is left: the renewable utilization of schedulers beside what no schedule of the same makespan can beat.

The bounds of the papers' windows and of the held-out ones are data (``bounds.json``), because they take minutes; the
file states the commands that made it. A schedule is compared with the bound of the smallest stored makespan that is at
least its own, so the bound holds for it; a longer schedule than all stored ones has none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

BOUNDS = Path(__file__).with_name("bounds.json")
UTILIZATION = "renewable_utilization"
COVERS = (
    "Bound: no schedule of at most the same makespan has a larger renewable utilization (mean over the same windows); "
    "left: what is missing from it."
)
"""Note under a table with bounds."""

Windows = Mapping[tuple[str, int, int], "Stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The stored bounds of a window."""

    reference: str
    """Scheduler that makespans are relative to."""
    reference_makespan_s: float
    """Its makespan. [s]"""
    utilization: Mapping[float, float]
    """Makespan relative to the reference -> bound on renewable utilization, ascending."""

    def at(self, makespan_ratio: float) -> float:
        """Bound on the utilization of schedules of a makespan; NaN if none is stored."""
        met = (bound for ratio, bound in self.utilization.items() if makespan_ratio <= ratio * (1.0 + 1e-9))
        return next(met, math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Means over windows, and over seeds of agents."""

    bound: float
    """Bound on renewable utilization at the makespan of each schedule. [-]"""
    left: float
    """Bound less renewable utilization, >= 0. [-]"""


@cache
def stored_bounds(file: Path = BOUNDS) -> Windows:
    """The stored bounds: (scenario, first job, jobs) -> bounds."""
    found: dict[tuple[str, int, int], Stored] = {}
    for row in sorted(json.loads(file.read_text(encoding="utf-8"))["rows"], key=lambda row: row["makespan_ratio"]):
        key = row["scenario"], row["start"], row["jobs"]
        before = found[key].utilization if key in found else {}
        found[key] = Stored(
            reference=row["reference"], reference_makespan_s=row["reference_makespan_s"],
            utilization={**before, row["makespan_ratio"]: row[UTILIZATION]},
        )  # fmt: skip
    return found


def headroom(
    scenario: str,
    starts: Sequence[int],
    jobs: int,
    makespans_s: Sequence[Sequence[float | None]],
    utilizations: Sequence[Sequence[float | None]],
) -> Headroom | None:
    """How much is left to schedulers on some windows; None if a bound or a value is missing.

    Args:
        scenario: name of the scenario.
        starts: first jobs of the windows.
        jobs: jobs of the windows.
        makespans_s: makespan by seed and window. [s]
        utilizations: renewable utilization by seed and window.
    """
    bounds, reached = [], []
    for lengths, values in zip(makespans_s, utilizations, strict=True):
        for start, length_s, value in zip(starts, lengths, values, strict=True):
            window = stored_bounds().get((scenario, start, jobs))
            if window is None or length_s is None or value is None:
                return None
            bounds.append(window.at(length_s / window.reference_makespan_s))
            reached.append(value)
    if not bounds or any(map(math.isnan, [*bounds, *reached])):
        return None
    mean = math.fsum(bounds) / len(bounds)
    return Headroom(bound=mean, left=mean - math.fsum(reached) / len(reached))


def row_headroom(row: Mapping[str, Any], scenario: str, baseline: str) -> Headroom | None:
    """How much is left to the scheduler of a row of results; None if that is not known.

    Args:
        row: a row of `study_results`, with the values of all seeds and windows.
        scenario: the scenario of its trace.
        baseline: the scheduler that its makespan is relative to.
    """
    ratios, values = (row["figures"].get(metric, {}).get("values") for metric in ("makespan_ratio", UTILIZATION))
    if ratios is None or values is None:
        return None
    windows = [stored_bounds().get((scenario, start, row["jobs"])) for start in row["starts"]]
    if any(window is None or window.reference != baseline for window in windows):
        return None
    lengths_s = [
        [None if ratio is None or window is None else ratio * window.reference_makespan_s
         for ratio, window in zip(each, windows, strict=True)]
        for each in ratios
    ]  # fmt: skip
    return headroom(scenario, row["starts"], row["jobs"], lengths_s, values)
