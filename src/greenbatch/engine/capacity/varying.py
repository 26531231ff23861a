"""The capacity of a machine as a part of the state: all of it at all times, or levels that follow the power.

A varying capacity also keeps the pools of jobs that wait, are ready or are suspended, and what each job is worth.
Its contracts are `levels`, `admission`, `suspension` and `value`, each with what holds for a fixed capacity beside it.

Source: RARE (dissertation, chapters 3 to 5); readings of the text where it is silent are options of `engine.pools`.
"""

from __future__ import annotations

from functools import cache, singledispatch
from typing import Any, NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.idle_nodes import most_taken
from greenbatch.engine.records import Floats, Int32, Int32s, MachineTotals, Table, per_job, record_of, shared, table_of
from greenbatch.workload import Workload

WAITING, READY, RUNNING, SUSPENDED, FINISHED, REJECTED = range(6)
"""Where a job is (JobState.place)."""
NO_LIMIT = 2**31 - 1
FIGURES = 8
"""Number of figures that are added up, see `capacity.value`."""


class Level:
    """Powered units from a time on."""

    time_s: float
    idle_w: float
    """Power of the idle machine."""
    stored_j: float
    """What a battery that it counts on holds at the begin."""
    processors: Int32
    gpus: Int32


class JobState:
    """One job: what it asks for and what it is worth, and where it is."""

    value: float
    """Its value once it has finished, 0 if unknown."""
    qos: float
    """Quality of service, 1 if unknown."""
    due_s: float
    """Submission + run time / QoS (Eq. 3.1)."""
    first_start_s: float
    """When it first runs; NaN before it starts."""
    begin_s: float
    """When its present span begins to run, later than its start if nodes boot for it."""
    ran_s: float
    """How long it ran in earlier spans."""
    work_s: float
    """Its run time as submitted, once it has been suspended."""
    requested_s: float
    processors: Int32
    """Those that it takes, while it runs; else those that it may take at most."""
    gpus: Int32
    most: Int32
    """Processors that it may take at most."""
    most_gpus: Int32
    place: Int32
    suspensions: Int32


class CapacityCounts:
    """Options of the pools of jobs, and what is counted."""

    gpus: int
    """Powered GPUs."""
    powered: int
    """Powered processors."""
    level: int
    """Current row of the levels."""
    seen: int
    """That for which later ones are expected, see `capacity.expected`; -1 at first."""
    ready_limit: int
    wait_limit: int
    suspend_limit: int
    largest_request: int
    longest_request_s: float
    by_qos: int
    """1 if the job of the highest QoS becomes ready first."""
    actions_limit: int
    """Most actions a tick."""
    tick_s: float
    horizon_s: float
    """How far ahead the capacity is known."""
    end_s: float
    """End of the run, infinite if it lasts until the last job ends."""
    suspends: int
    """0: jobs start only if they stay powered; 1: jobs are suspended when power fails; 2: policies suspend as well."""
    victim: int
    """Which job is suspended first, see `capacity.suspension`."""
    suspend_s: float
    resume_s: float
    checkpoint_s: float
    """Time between checkpoints; 0: no work is lost; infinite: all is."""
    failure_rate: float
    """Failures of a processor per second."""
    failure_seed: int
    failure_s: float
    """The next failure, infinite if there are none."""
    failures: int
    """Failures so far."""
    ready: int
    """Ready jobs."""
    waiting: int
    """Waiting jobs that are not ready."""
    suspended: int
    rejected: int
    forced: int
    """Suspensions for lack of power."""
    actions: int
    """Actions in this tick."""
    acted_s: float
    """Tick of the last action."""
    counted: int
    """1 if what rewards and costs need is added up, see `capacity.value`."""
    retry_s: float
    """When suspended jobs are tried again, infinite if only another event can let them resume."""


class Fixed(NamedTuple):
    """All of the machine is powered at all times."""

    levels: Table[Level]
    """Empty."""


@shared("levels", "steps")
@per_job("jobs", "ready", "suspended")
class Varying(NamedTuple):
    """Levels of what is powered, and the pools of jobs."""

    levels: Table[Level]
    counts: CapacityCounts
    jobs: Table[JobState]
    """Shape (n,)."""
    ready: Int32s
    """Ready jobs in the order in which they became ready, shape (n,); ``counts.ready`` are valid."""
    suspended: Int32s
    """Suspended jobs, the oldest suspension first, shape (n,); ``counts.suspended`` are valid."""
    service: Floats
    """What is added up in the course of a run if ``counts.counted`` is 1, see `capacity.value`, shape (FIGURES,)."""
    steps: Floats
    """Power that so many processors need, and their GPUs, shape (2, processors + 1); (2, 0) if levels are known."""
    ahead: Int32s
    """Processors that are expected to be powered so many slots ahead, from now, shape (slots of a forecast,)."""


CapacityPart = Any
"""`Fixed`, `Varying`, or another capacity that registers functions of the contracts."""


@cache
def fixed() -> Fixed:
    """The capacity of a machine that is always powered."""
    return Fixed(table_of(Level, 0))


@singledispatch
def capacity_of(cluster: Cluster, workload: Workload, totals: MachineTotals) -> CapacityPart:
    """The capacity of a cluster: varying, without limits to the pools of jobs, if it states what is powered.

    Register a function for a new class of clusters.

    Args:
        cluster: the cluster.
        workload: the jobs that it will run; row k is job k of the state.
        totals: of the idle machine; what is not powered at first is taken from them.
    """
    if cluster.powered is None:
        return fixed()
    known, told, n = cluster.capacity_levels, cluster.capacity_levels.told, len(workload)
    levels: Any = table_of(Level, len(known.time_s))
    levels["time_s"], levels["processors"], levels["gpus"] = known.time_s, known.processors, known.gpus
    levels["idle_w"] = cluster.idle_levels_w
    steps, ahead = np.zeros((2, 0)), np.zeros(0, np.int32)
    if told is not None:
        levels["stored_j"], ahead = told.stored_j, np.zeros(told.slots, np.int32)
        steps = np.array([told.needed_w, told.gpus])
    jobs: Any = table_of(JobState, n)
    jobs["value"], jobs["qos"] = np.nan_to_num(workload.value), np.where(np.isnan(workload.qos), 1.0, workload.qos)
    jobs["due_s"] = workload.submit_s + workload.run_time_s / jobs["qos"]
    jobs["requested_s"] = workload.requested_time_s
    jobs["first_start_s"] = np.nan
    jobs["most"], jobs["most_gpus"] = workload.processors, np.maximum(workload.gpus, 0)
    if cluster.on_nodes:
        jobs["most"], jobs["most_gpus"] = most_taken(cluster, workload)
    jobs["processors"], jobs["gpus"] = jobs["most"], jobs["most_gpus"]
    first = levels[0]
    totals.free, totals.free_gpus = int(first.processors), int(first.gpus)
    totals.off = cluster.processors - int(first.processors)
    totals.load_w = totals.base_power_w = float(first.idle_w)
    totals.most_idle_w = float(levels["idle_w"].max())
    counts = record_of(
        CapacityCounts, gpus=int(first.gpus), powered=int(first.processors), ready_limit=NO_LIMIT, wait_limit=NO_LIMIT,
        suspend_limit=NO_LIMIT, largest_request=NO_LIMIT, longest_request_s=np.inf, actions_limit=NO_LIMIT, tick_s=1.0,
        horizon_s=np.inf, end_s=np.inf, retry_s=np.inf, acted_s=-np.inf, failure_s=np.inf, seen=-1,
    )  # fmt: skip
    pools = np.zeros(n, np.int32), np.zeros(n, np.int32)
    return Varying(levels, counts, jobs, *pools, np.zeros(FIGURES), steps, ahead)
