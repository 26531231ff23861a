"""Rules for jobs with value and quality of service.

Source: RARE (dissertation), §5.4.2, whose other rules are ``sjf`` and ``fcfs``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.interface import Queue
from greenbatch.policies.registry import rule

Scores = NDArray[np.float64]


@rule("qos", fixed=True)
def qos(queue: Queue) -> Scores:
    """Highest quality of service first; ties by submission."""
    return -np.nan_to_num(queue.attributes.qos)


@rule("hvf", fixed=True)
def hvf(queue: Queue) -> Scores:
    """Highest value first; ties by submission."""
    return -np.nan_to_num(queue.attributes.value)
