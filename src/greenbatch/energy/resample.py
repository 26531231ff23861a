"""Resample to equal steps while preserving energy."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Label = Literal["start", "middle", "end"]
"""Which point of its interval a stamp marks."""

SAME_S = 1e-6
"""Times closer than this are equal. [s]"""
OWN_STEPS = 3
"""Equal distances in a row that are the steps of a part of a file, no gaps."""


def usual_step_s(times_s: Floats) -> tuple[float, bool]:
    """The usual distance between neighboring samples, and whether at least half of all distances equal it.

    It is the most common distance, or the median if no distance is that common. [s]
    """
    distances = np.diff(times_s)
    different, counts = np.unique(np.round(distances, 6), return_counts=True)
    best = int(np.argmax(counts))
    if 2 * counts[best] >= distances.size:
        return float(different[best]), True
    return float(np.median(distances)), False


def own_steps(distances_s: Floats) -> NDArray[np.bool_]:
    """Which distances are those of a part of the file with steps of its own: `OWN_STEPS` or more that are equal."""
    starts = np.flatnonzero(np.append(True, np.abs(np.diff(distances_s)) > SAME_S))
    lengths = np.diff(np.append(starts, distances_s.size))
    return np.repeat(lengths >= OWN_STEPS, lengths)


def fill_between(times_s: Floats, values: Floats, wanted_s: Floats, *, how: Literal["interpolate", "hold"]) -> Floats:
    """Values at other times, interpolated linearly or held from the previous sample.

    Before the first and after the last sample, the value of that sample is used.
    """
    if how == "interpolate":
        return np.interp(wanted_s, times_s, values)
    return values[np.maximum(np.searchsorted(times_s, wanted_s, side="right") - 1, 0)]


def sample_edges(times_s: Floats, *, label: Label, usual_s: float) -> Floats:
    """Edges [s] of the intervals over which samples hold, shape (n + 1,).

    With ``label="start"`` a sample holds until the next one, with ``"end"`` from the previous one on; ``"middle"`` is
    ``"start"`` shifted back by half a usual step. The last (``"end"``: first) sample holds for one usual step.
    """
    if label == "end":
        return np.concatenate(([times_s[0] - usual_s], times_s))
    return np.concatenate((times_s, [times_s[-1] + usual_s])) - (usual_s / 2 if label == "middle" else 0.0)


def equal_steps(edges_s: Floats, *, step_s: float) -> bool:
    """Whether all edges are ``step_s`` apart."""
    return bool(np.all(np.abs(np.diff(edges_s) - step_s) <= SAME_S))


def mean_steps(edges_s: Floats, values: Floats, *, step_s: float) -> Floats:
    """Time-weighted means over equal steps from the first edge on; the integral over whole steps is preserved.

    A remainder shorter than a step is dropped. Values that already are ``step_s`` apart stay bit for bit the same.

    Args:
        edges_s: ascending, shape (n + 1,). [s]
        values: value between neighboring edges, shape (n,).
        step_s: length of the steps. [s]

    Returns:
        Shape (whole steps,), never outside the range of ``values``.
    """
    if equal_steps(edges_s, step_s=step_s):
        return values
    edges_s = edges_s - edges_s[0]
    total = np.concatenate(([0.0], np.cumsum(values * np.diff(edges_s))))
    grid_s = np.arange(int(np.floor(edges_s[-1] / step_s + 1e-9)) + 1) * step_s
    means = np.diff(np.interp(grid_s, edges_s, total)) / step_s
    # Rounding may take a difference of running sums out of range, and -1e-12 W would be refused as negative.
    steps: Floats = np.clip(means, values.min(), values.max())
    return steps
