"""How much less the value that follows a decision counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def discounts(time_s: Floats, offsets: Integers, gamma: float, gamma_s: float = 0.0) -> Floats:
    """Discount from each decision to the next.

    Several jobs may start at one instant. If every decision is discounted alike, each of them delays all that follows
    by one decision, which costs an agent about its mean reward per decision, and waiting looks better than it is.
    Discounts over time (semi-Markov; Bradtke and Duff 1994) do not depend on how many decisions an instant has.

    Args:
        time_s: times of N decisions, trajectory after trajectory, shape (N,). [s]
        offsets: where each trajectory begins, int64 (W + 1,).
        gamma: discount, 0 to 1.
        gamma_s: time over which it applies once; 0: from each decision to the next. [s]

    Returns:
        Shape (N,); those of last decisions have no meaning.
    """
    if not gamma_s:
        return np.full(len(time_s), gamma)
    passed_s = np.zeros(len(time_s))
    passed_s[:-1] = np.diff(time_s)
    passed_s[offsets[1:][np.diff(offsets) > 0] - 1] = 0.0
    made: Floats = gamma ** (passed_s / gamma_s)
    return made


def since_start(time_s: Floats, offsets: Integers, gamma: float, gamma_s: float = 0.0) -> Floats:
    """Discount from the first decision of each trajectory: (N,). Arguments as for `discounts`."""
    first = np.repeat(offsets[:-1], np.diff(offsets))
    passed = (time_s - time_s[first]) / gamma_s if gamma_s else np.arange(len(time_s)) - first
    return np.asarray(gamma**passed, np.float64)
