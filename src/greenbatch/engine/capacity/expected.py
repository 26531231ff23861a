"""What is expected to be powered: as it comes, or as the forecast of a site tells that has errors.

What was promised and does not come is not there: jobs are suspended for it, see `capacity.suspension`.
"""

from __future__ import annotations

from greenbatch.engine.capacity.varying import Varying
from greenbatch.engine.power.sustained import sustain
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
