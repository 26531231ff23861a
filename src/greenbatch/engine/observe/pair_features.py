"""Features of pairs of a waiting job and a node, for policies that choose which job starts on which node.

A machine writes the raw values of all nodes for one job with `machine.node_choice.fill_pairs`; `features.fill_queue`
encodes them. Nothing here is known only to a simulator: ends of running jobs are those of their requested times.

Sources: InEPS §3.3.1 and Table 1; the others are this project's.
"""

from __future__ import annotations

from greenbatch.engine.feature import Feature

FIRST_PAIR_FEATURE = 64
"""Code of the first feature in the columns of the queue; those of jobs are lower."""

(AVAILABILITY, STATIC_POWER, DYNAMIC_POWER, PEAK, ENERGY_ESTIMATE, CAN_SCHEDULE, NODE_PROCESSORS, NODE_IS_OFF,
 NODE_BUSY_TIME, FREE_SHARE, QUEUED_WORK, EXPECTED_RUN_TIME, SLOWDOWN_BY_OTHERS, ENERGY_OF_OTHERS, ADDED_ENERGY,
 BEYOND_LAST_END, RELATIVE_ENERGY, RELATIVE_RUN_TIME, RELATIVE_TAIL, RELATIVE_LOAD_TAIL, RELATIVE_PROGRESS,
 RELATIVE_LOAD_PROGRESS, RELATIVE_FINISH) = range(23)  # fmt: skip

PAIR_FEATURES: dict[str, Feature] = {
    "availability": Feature("1", "free processors / processors of the node, 0 to 1 (InEPS Table 1)"),
    "static_power": Feature("W", "static power of the node, or its idle power if nothing runs on it (InEPS Table 1)"),
    "dynamic_power": Feature("W", "power of its busy processors, >= 0 (InEPS Table 1)"),
    "peak": Feature("Gflop/s", "peak of one of its processors, > 0; for InEPS's clock rate (Table 1)"),
    "energy_estimate": Feature("J", "requested time / speed x (static power / (jobs + 1) + the job's) (InEPS Eq. 1)"),
    "can_schedule": Feature("1", "1 if the job fits, with an estimate within its energy budget (InEPS Table 1)"),
    "node_processors": Feature("1", "processors of the node, >= 1"),
    "node_is_off": Feature("1", "1 if the node is off, boots or shuts down, else 0"),
    "node_busy_time": Feature("s", "expected time until nothing runs on the node any more, >= 0"),
    "free_share": Feature("1", "free processors / processors of the cluster, 0 to 1"),
    "queued_work": Feature("s", "requested processor-seconds of the waiting jobs / processors of the cluster, >= 0"),
    "expected_run_time": Feature("s", "requested time / (speed of the node x slowdown_by_others), > 0"),
    "slowdown_by_others": Feature("1", "speed beside the node's jobs under contention / that of the job alone, 0 to 1"),
    "energy_of_others": Feature("J", "what the processors of the node's jobs use more, as the job slows them, >= 0"),
    "added_energy": Feature(
        "J",
        "energy that the cluster is expected to use more: the job's processors, the node's static power for longer "
        "than it is busy anyway, and energy_of_others",
    ),
    "beyond_last_end": Feature("s", "by how much the job would outlast all running jobs, >= 0"),
    "relative_energy": Feature(
        "1", "added_energy / the lowest of any node, busy or free, that could ever host the job, less 1, >= 0"
    ),
    "relative_run_time": Feature("1", "expected_run_time / the lowest of any such node, less 1, >= 0"),
    "relative_tail": Feature("1", "power of the idle cluster x beyond_last_end / the lowest added_energy, >= 0"),
    "relative_load_tail": Feature("1", "the same with the power of the cluster now and the job's, for energy x time"),
    "relative_progress": Feature(
        "1",
        "power of the idle cluster x the time by which it would be done sooner at the rate of what runs, if there is "
        "enough to do / the lowest added_energy, >= 0",
    ),
    "relative_load_progress": Feature(
        "1", "the same with the power of the cluster now and the job's, for energy x time"
    ),
    "relative_finish": Feature(
        "1",
        "expected_run_time less the lowest of any such node with the expected wait for room on it / the lowest "
        "expected_run_time, >= 0: above 0 if the job would end sooner by waiting",
    ),
}
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
