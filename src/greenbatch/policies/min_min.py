"""Min-min and max-min, the batch-mode heuristics for tasks on unlike machines, as list scheduling on nodes.

Sources: Ibarra & Kim, "Heuristic algorithms for scheduling independent tasks on nonidentical processors", J. ACM 24(2),
1977; Braun et al., "A comparison of eleven static heuristics for mapping a class of independent tasks onto
heterogeneous distributed computing systems", JPDC 61(6), 2001.
"""

from __future__ import annotations

from greenbatch.engine.program import Program
from greenbatch.policies.compiled.min_min import min_min_policy
from greenbatch.policies.registry import planner
from greenbatch.workload import Workload

PLACEMENT = "fastest"
"""The fastest nodes with room are those of the best completion time."""


@planner("min-min")
def min_min(_: Workload) -> Program:
    """The job with the earliest best completion time first, on the nodes of that time (Braun et al. 2001).

    The completion time of every waiting job is estimated on the nodes that can start it now, from its requested time
    and the speed of the nodes, and again after every start. Busy nodes are not considered, so no job waits for a faster
    one, and nothing is reserved. Memory contention is not foreseen. Source: Ibarra & Kim 1977.
    """
    return Program(name="min-min", decider=min_min_policy(1.0), placement=PLACEMENT)


@planner("max-min")
def max_min(_: Workload) -> Program:
    """As ``min-min``, but the job with the latest best completion time first, so that long jobs do not come last."""
    return Program(name="max-min", decider=min_min_policy(-1.0), placement=PLACEMENT)
