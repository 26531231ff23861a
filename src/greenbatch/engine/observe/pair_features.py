"""Features of pairs of a waiting job and a node, for policies that choose which job starts on which node.

A machine writes the raw values of all nodes for one job with `machine.node_choice.fill_pairs`; `features.fill_queue`
encodes them. Nothing here is known only to a simulator: ends of running jobs are those of their requested times.

Sources: InEPS §3.3.1 and Table 1; the others are this project's.
"""

from __future__ import annotations

from greenbatch.engine.feature import features_in

FIRST_PAIR_FEATURE = 64
"""Code of the first feature in the columns of the queue; those of jobs are lower."""

(AVAILABILITY, STATIC_POWER, DYNAMIC_POWER, PEAK, ENERGY_ESTIMATE, CAN_SCHEDULE, NODE_PROCESSORS, NODE_IS_OFF,
 NODE_BUSY_TIME, FREE_SHARE, QUEUED_WORK, EXPECTED_RUN_TIME, SLOWDOWN_BY_OTHERS, ENERGY_OF_OTHERS, ADDED_ENERGY,
 BEYOND_LAST_END, RELATIVE_ENERGY, RELATIVE_RUN_TIME, RELATIVE_TAIL, RELATIVE_LOAD_TAIL, RELATIVE_PROGRESS,
 RELATIVE_LOAD_PROGRESS, RELATIVE_FINISH) = range(23)  # fmt: skip
PAIR_FEATURES = features_in("pairs")
"""Features of pairs, in the order of their codes."""
ASKED_BANDWIDTH = len(PAIR_FEATURES)
"""Row of scratch memory beside them: memory bandwidth that a node's jobs ask for by their requested times [MB/s]."""
RUNNING_RATE = ASKED_BANDWIDTH + 1
"""The same: processor-seconds at speed 1 that the jobs of a node do per second."""
NEXT_END = RUNNING_RATE + 1
"""The same: expected time until a job of a node ends, 0 if none runs. [s]"""
NEXT_FREE = NEXT_END + 1
"""The same: processors of the node that are free then."""
PAIR_ROWS = NEXT_FREE + 1
