"""Rounding of power as the published simulators do it."""

from __future__ import annotations

from math import log10

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError

Floats = NDArray[np.float64]


def rounded(power_w: Floats, step_w: float | None, *, field: str) -> Floats:
    """Power [W] rounded to a multiple of ``step_w`` as Python rounds; unchanged for ``None``.

    Python's ``round`` rounds the exact binary value; ``numpy.round`` multiplies first and differs in the last digit
    for some values, so published schedules would not be reproduced to the second.

    Raises:
        InputError: the step is not 1, 0.1, 0.01, ... 1e-9.
    """
    if step_w is None:
        return power_w
    digits = -round(log10(step_w)) if step_w > 0 else -1
    if not 0 <= digits <= 9 or abs(step_w - 10.0**-digits) > 1e-12:
        raise InputError(f"is {step_w}", field=field, fix="give 1, 0.1, 0.01, ...")
    return np.array([round(value, digits) for value in power_w.tolist()])
