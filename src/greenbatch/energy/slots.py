"""The only arithmetic of supply slots, and of any other grid of equal intervals.

Intervals are half-open, ``[edge_s(k), edge_s(k + 1))``. With a step that is not a whole number, the quotient can be
rounded to the interval before or after the one that covers a time; `interval_at` corrects that. The engine compiles
these functions, see `engine.power.slots`.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", float, NDArray[np.float64])


def edge_s(interval: Number, origin_s: float, step_s: float) -> Number:
    """Start of an interval. [s]"""
    return origin_s + interval * step_s


def interval_at(time_s: float, origin_s: float, step_s: float) -> float:
    """Number of the interval that covers a time, a whole number; interval 0 starts at the origin."""
    interval = np.floor((time_s - origin_s) / step_s)
    if origin_s + (interval + 1.0) * step_s <= time_s:
        return float(interval + 1.0)
    if origin_s + interval * step_s > time_s:
        return float(interval - 1.0)
    return float(interval)
