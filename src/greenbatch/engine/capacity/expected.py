"""What is expected to be powered: as it comes, or as the forecast of a site tells that has errors.

What was promised and does not come is not there: jobs are suspended for it, see `capacity.suspension`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from greenbatch.engine.capacity.varying import Varying
from greenbatch.engine.power.sustained import sustain
from greenbatch.engine.records import Ints
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small, whole


@compiled_small
def units_at(capacity: Varying, level: int) -> tuple[int, int]:
    """Processors and GPUs that are expected to be powered at a level, the present one or a later one."""
    ahead = capacity.ahead
    if ahead.shape[0] == 0:
        known = capacity.levels[level]
        return whole(known.processors), whole(known.gpus)
    processors = whole(ahead[(level - capacity.counts.level) % ahead.shape[0]])
    return processors, int(capacity.steps[1, processors])


def units_from(capacity: Varying, count: int) -> tuple[Ints, Ints]:
    """`units_at` for the present level and the next ones, each of shape (count,)."""
    rows, levels, ahead = int(capacity.counts.level) + np.arange(count), cast(Any, capacity.levels), capacity.ahead
    if ahead.shape[0] == 0:
        return levels["processors"][rows].astype(np.int64), levels["gpus"][rows].astype(np.int64)
    processors = ahead[np.arange(count) % ahead.shape[0]].astype(np.int64)
    return processors, capacity.steps[1, processors].astype(np.int64)


@compiled
def expect(s: State) -> None:
    """Expect the levels of the slots ahead anew, as seen from the present one."""
    capacity, counts = s.capacity, s.capacity.counts
    counts.seen, levels, ahead = counts.level, capacity.levels, capacity.ahead
    if ahead.shape[0] == 0:
        return
    told = sustain(s.power, capacity.steps[0], levels[counts.level].stored_j, whole(counts.level), ahead)
    for k in range(ahead.shape[0]):
        if k == 0 or not told:
            ahead[k] = levels[min(counts.level + k, levels.shape[0] - 1)].processors
