"""The state of one simulation as a few flat arrays, so that compiled code can own and batch it.

Rows of records, accessed by name (``state.jobs[j].submit_s``), work the same in compiled and in plain Python. A batch
of simulations is a batch of such states; nothing here is global.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.workload import Workload

F, N = np.float64, np.int64

# Backfilling ahead of a blocked head (Settings.backfill).
NONE, EASY, EASY_SCHEDGYM, EASY_GREEN_ORDER, CONSERVATIVE, GREEN = 0, 1, 2, 3, 4, 5
# How the next job is chosen (Settings.ranking).
BY_ARRIVAL, BY_SCORE, BY_RULE = 0, 1, 2
# How a run ended (Clock.status).
OK, SUPPLY_EXHAUSTED, BAD_SCORE, INTERRUPTED = 0, 1, 2, 3
# Delay actions of GAS-MARL §4.1: none, until a number of running jobs release their processors, for a fixed time.
NO_DELAY, DELAY_RELEASES, DELAY_FOR = 1, 2, 3

JOB = np.dtype(
    [("submit_s", F), ("run_s", F), ("requested_s", F), ("processors", N), ("power_w", F), ("score", F),
     ("user", N), ("start_s", F), ("end_s", F), ("promised_s", F), ("reserved_s", F)]
)  # fmt: skip
"""One job: its request, its score and its schedule. ``run_s`` is its work at the speed of the cluster, limited to the
requested time if overruns are killed."""

QUEUED = np.dtype([("job", N), ("processors", N), ("requested_s", F), ("score", F)])
"""One waiting job; the queue is ordered by submission."""

RUNNING = np.dtype([("end_s", F), ("job", N), ("processors", N), ("power_w", F)])
"""One running job, stored twice: by actual end (``running``) and by requested end (``expected``)."""

STEP = np.dtype([("time_s", F), ("load_w", F)])
"""The load from one instant to the next."""

SEGMENT = np.dtype([("start_s", F), ("length_s", F), ("surplus_w", F)])
"""Forecast surplus of renewable power over the load, constant over the segment."""

SLOT = np.dtype([("time_s", F), ("free", N)])
"""Free processors from one instant to the next, in a plan."""

RANKED = np.dtype([("key", F), ("job", N)])
"""A candidate in a pass and its sort key."""

SETTINGS = np.dtype(
    [("processors", N), ("idle_w", F), ("sticky", N), ("per_instant", N), ("completion_first", N), ("tick_s", F),
     ("wake_at_supply", N), ("backfill", N), ("ranking", N), ("twins", N), ("threshold_j", F),
     ("supply_step_s", F), ("supply_origin_s", F), ("supply_slots", N), ("supply_repeat", N), ("forecast_slots", N)]
)  # fmt: skip
"""Constants of a run."""

CLOCK = np.dtype(
    [("now_s", F), ("free", N), ("load_w", F), ("arrived", N), ("first", N), ("last", N), ("running", N),
     ("running_first", N), ("expected_first", N), ("steps", N), ("segments", N), ("slots", N), ("head", N),
     ("head_score", F), ("shadow_s", F), ("spare", N), ("blocked", N), ("settled", N), ("wake_s", F),
     ("decisions", N), ("status", N), ("early", N), ("started", N), ("arrived_s", F)]
)  # fmt: skip
"""Variables of a run. ``first:last`` is the queue; ``running_first`` and ``expected_first`` are the first rows of the
running jobs; ``arrived_s`` is the time of the last submission."""

ATTRIBUTES = ("requested_memory_kb", "group", "executable")
"""Columns of `State.attributes`."""


class State(NamedTuple):
    """All arrays of one simulation of n jobs."""

    jobs: Any
    """JOB, shape (n,)."""
    arrivals: Any
    """Rows of ``jobs`` in order of submission (ties by row), shape (n,)."""
    queue: Any
    """QUEUED, shape (n + 1,): one row is scratch."""
    running: Any
    """RUNNING by actual end, shape (n,)."""
    expected: Any
    """RUNNING by requested end, shape (n,)."""
    profile: Any
    """STEP, shape (2n + 2,)."""
    segments: Any
    """SEGMENT, scratch."""
    plan: Any
    """SLOT, scratch of planners."""
    ranked: Any
    """RANKED, scratch of passes, shape (2n,)."""
    columns: Any
    """Scratch of rules and features: numeric columns over the queue, e.g. those of `Queue`, shape (6, n)."""
    started: Any
    """Rows of ``jobs`` in order of starting, shape (n,); ``clock.started`` of them are valid."""
    attributes: Any
    """`ATTRIBUTES` of each job, for observations of learned policies; NaN if unknown, shape (n, 3)."""
    supply_w: Any
    """Renewable power per slot, shape (slots,). [W]"""
    set: Any
    """SETTINGS."""
    clock: Any
    """CLOCK."""


class Queue(NamedTuple):
    """The waiting jobs, as passed to a priority rule: columns of equal length, in order of submission."""

    now_s: float
    """The clock. [s]"""
    free_processors: float
    """Processors that are free now."""
    total_processors: float
    """Processors of the cluster."""
    submit_s: NDArray[np.float64]
    """Submission on the scenario's clock. [s]"""
    wait_s: NDArray[np.float64]
    """Time since submission. [s]"""
    requested_time_s: NDArray[np.float64]
    """Requested time. [s]"""
    processors: NDArray[np.float64]
    """Requested processors."""
    power_w: NDArray[np.float64]
    """Power while running, 0 if unknown. [W]"""
    user: NDArray[np.float64]
    """User number, -1 if unknown."""


def _records(rows: int, dtype: np.dtype[Any]) -> Any:
    return np.zeros(rows, dtype).view(np.recarray)


def _known(column: NDArray[Any]) -> NDArray[np.float64]:
    """The column of an attribute with NaN for missing values, which are -1 in columns of integers."""
    return np.where(column < 0, np.nan, column.astype(np.float64))


def allocate(jobs: int, segments: int, supply_w: NDArray[np.float64]) -> State:
    """A state with all arrays zero: the one place that says how large each is.

    Args:
        jobs: number of jobs.
        segments: rows for the forecast surplus.
        supply_w: renewable power per slot, shape (slots,). [W]
    """
    return State(
        jobs=_records(jobs, JOB),
        arrivals=np.zeros(jobs, N),
        queue=_records(jobs + 1, QUEUED),
        running=_records(jobs, RUNNING),
        expected=_records(jobs, RUNNING),
        profile=_records(2 * jobs + 2, STEP),
        segments=_records(segments, SEGMENT),
        plan=_records(3 * jobs + 4, SLOT),
        ranked=_records(2 * jobs, RANKED),
        columns=np.zeros((6, jobs)),
        started=np.zeros(jobs, N),
        attributes=np.zeros((jobs, len(ATTRIBUTES))),
        supply_w=supply_w,
        set=_records(1, SETTINGS)[0],
        clock=_records(1, CLOCK)[0],
    )


def new_state(
    workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, settings: dict[str, float],
    ahead_s: float = 0.0,
) -> State:  # fmt: skip
    """Create the state of one simulation: an empty machine at the first submission.

    Args:
        workload: the jobs, n >= 1 rows.
        cluster: the machines (their processors are pooled).
        site: the power supply, or None.
        rules: how the batch system reacts.
        settings: fields of SETTINGS that the scheduler sets.
        ahead_s: how long after now the latest start considered may be. [s]
    """
    n, requested_s = len(workload), workload.requested_time_s
    breaks = n + (0 if site is None else int((float(requested_s.max()) + ahead_s) / site.step_s)) + 4
    supply_w = np.zeros(1) if site is None else np.ascontiguousarray(site.renewable_w)
    state = allocate(n, breaks, supply_w)
    jobs, fixed, clock = state.jobs, state.set, state.clock
    jobs.submit_s, jobs.requested_s, jobs.processors = workload.submit_s, requested_s, workload.processors
    run_s = workload.run_time_s / cluster.speed
    jobs.run_s = np.minimum(run_s, requested_s) if rules.overrun == "kill" else run_s
    jobs.power_w = np.nan_to_num(workload.power_w)
    jobs.user = workload.user
    for column in ("start_s", "end_s", "promised_s", "reserved_s"):
        jobs[column] = np.nan
    state.attributes[:] = np.column_stack([_known(getattr(workload, name)) for name in ATTRIBUTES])
    fixed.processors, fixed.idle_w = cluster.processors, cluster.idle_power_w
    fixed.sticky, fixed.per_instant = rules.commitment == "sticky", rules.event_rule == "per_instant"
    fixed.completion_first, fixed.tick_s = rules.ties == "completion_first", rules.tick_s
    if site is not None:
        fixed.supply_step_s, fixed.supply_origin_s = site.step_s, site.origin_s
        fixed.supply_slots, fixed.supply_repeat = site.slots, site.repeat
        fixed.forecast_slots = site.horizon_slots
    for name, value in settings.items():
        fixed[name] = value
    fixed.twins = np.unique(workload.submit_s).size < n
    state.arrivals[:] = np.argsort(workload.submit_s, kind="stable")
    clock.now_s, clock.free = workload.submit_s[state.arrivals[0]], cluster.processors
    clock.load_w, clock.head, clock.wake_s = cluster.idle_power_w, -1, np.inf
    return state
