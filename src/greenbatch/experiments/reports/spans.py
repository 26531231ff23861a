"""Sums over time, exact, without a loop over jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def seconds_since(instants_s: Floats, times_s: Floats, weights: NDArray[Any]) -> Floats:
    """For each time, the weighted sum of seconds since the instants before it, shape of ``times_s``."""
    order = np.argsort(instants_s)
    passed = np.searchsorted(instants_s[order], times_s, side="right")
    weight, moment = (np.concatenate([[0.0], np.cumsum(w[order])]) for w in (weights, weights * instants_s))
    return np.asarray(times_s * weight[passed] - moment[passed])
