"""The state of one simulation: a NamedTuple of parts, which are tables of records and NamedTuples themselves.

Compiled code is chosen by the types of the parts, see `machine_code.variants`. A batch of simulations is a batch of
such states (`engine.observe.stacked`); nothing here is global.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.energy import Site
from greenbatch.engine import records
from greenbatch.engine.capacity.varying import CapacityPart, capacity_of, fixed
from greenbatch.engine.codes import NOBODY
from greenbatch.engine.dependencies import feedback_of, follow_others, preceding_rows
from greenbatch.engine.machine import idle_nodes, nodes  # noqa: F401  (registers the machines)
from greenbatch.engine.machine.resources import Machine, machine_of
from greenbatch.engine.power import build, ranked, supply  # noqa: F401  (registers the supply of a site)
from greenbatch.engine.power.balance import COLUMNS
from greenbatch.engine.power.protocol import Power, always_allowed_w, is_commanded, power_of
from greenbatch.engine.prediction.known import PREDICTOR_OF, Predictors, no_predictor
from greenbatch.engine.records import Floats, Int32s, Ints, Table, fill, table_of
from greenbatch.engine.rules import EventRule, Rules
from greenbatch.engine.views.interface import Attributes, Predicted
from greenbatch.workload import Workload

ATTRIBUTES = Attributes._fields
"""Columns of `State.attributes`."""
PATIENCE = 10_000
"""Largest number of wake-ups in a row that change nothing (or a full period of the power series, if that is more)."""
PERIODS = 3
"""Periods of the series that a job can wait alone where the grid connection is limited: for its reservation, for its
slot, and for the rest of the first."""
LOG_ROWS = 65_536
"""Largest number of rows of the log of one simulation, which is read whenever it is full."""


def log_rows(jobs: int) -> int:
    """Rows of a log that is never full: each job leaves at most four entries, and `log.is_full` allows for one more."""
    return 5 * jobs + 8


class Waiting(NamedTuple):
    """The queue, ordered by submission: columns, so that many jobs can be tested at once; shape (n + 1,).

    Rows ``clock.first`` to ``clock.last`` are valid; one row is scratch.
    """

    job: Int32s
    processors: Int32s
    requested_s: Floats
    score: Floats


class Scratch(NamedTuple):
    """Buffers for intermediate results; of these, only conservative backfilling keeps one, its timeline."""

    surplus: Table[records.Surplus]
    """Forecast surplus; ``clock.segments`` rows are valid."""
    timeline: Table[records.Capacity]
    """Free processors ahead, shape (3n + 2k + 4,); ``clock.slots`` rows are valid."""
    ranked: Table[records.Ranked]
    """Candidates in a pass, shape (2n,)."""
    columns: Floats
    """Numeric columns over the queue, such as those of `interface.Queue`, shape (6 + a + 5, n)."""
    pieces: Floats
    """Empty output for `power.protocol.flow` during a run, which counts energy but lists no pieces; shape (0, 8)."""


class State(NamedTuple):
    """One simulation of n jobs."""

    jobs: Table[records.Job]
    """Shape (n,)."""
    arrivals: Ints
    """Rows of ``jobs`` in order of submission (ties by row), shape (n,); the next is ``clock.arrived + clock.undated``.

    Jobs whose submission is not known yet have no place.
    """
    attributes: Floats
    """`ATTRIBUTES` of each job, for rules and learned policies that use them; NaN if unknown, shape (n, a)."""
    queue: Waiting
    ending: Table[records.Ending]
    """Running jobs by actual end, shape (n,)."""
    expected: Table[records.Expected]
    """Running jobs by requested end, shape (n,)."""
    machine: Machine
    capacity: CapacityPart
    power: Power
    predictor: Predictors
    rules: records.RuleSet
    clock: records.Clock
    ledger: records.Ledger
    log: Table[records.Event]
    """What happened; ``clock.logged`` rows are valid."""
    scratch: Scratch
    downtimes: Table[records.Downtime]
    """Times in which no job may run, in order of their begin, shape (k,)."""
    feedback: Table[records.Feedback]
    """Which job follows which, shape (n,), or (0,) if all submissions are known from the beginning."""


def _known(column: Any) -> Floats:
    """The column of an attribute with NaN for missing values, which are -1 in columns of integers."""
    return np.where(column < 0, np.nan, column.astype(np.float64))


def attributes_of(workload: Workload) -> Floats:
    """`ATTRIBUTES` of each job, NaN if unknown, shape (n, a)."""
    return np.column_stack([_known(getattr(workload, name)) for name in ATTRIBUTES])


_NO_DOWNTIMES, _NO_FEEDBACK = table_of(records.Downtime, 0), table_of(records.Feedback, 0)
_NO_PIECES = np.zeros((0, COLUMNS))


def allocate(
    jobs: int, segments: int, machine: Machine, power: Power, log_rows: int,
    downtimes: Table[records.Downtime] | None = None, predictor: Predictors | None = None,
    feedback: Table[records.Feedback] | None = None, capacity: CapacityPart | None = None,
) -> State:  # fmt: skip
    """A state with all arrays zero: the one place that says how large each is.

    Args:
        jobs: number of jobs.
        segments: rows for the forecast surplus.
        machine: the idle machine.
        power: the power supply.
        log_rows: rows of the log.
        downtimes: times in which no job may run; by default none.
        predictor: of run times; by default the requested ones.
        feedback: which job follows which; by default none does.
        capacity: what is powered; by default all of the machine.
    """
    closed = _NO_DOWNTIMES if downtimes is None else downtimes
    levels = len(getattr(capacity, "levels", ()))
    rules, clock, ledger = (table_of(each, 1)[0] for each in (records.RuleSet, records.Clock, records.Ledger))
    scratch = Scratch(
        surplus=table_of(records.Surplus, segments), ranked=table_of(records.Ranked, 2 * jobs),
        timeline=table_of(records.Capacity, 3 * jobs + 2 * closed.shape[0] + levels + 4),
        columns=np.zeros((6 + len(ATTRIBUTES) + len(Predicted._fields), jobs)), pieces=_NO_PIECES,
    )  # fmt: skip
    columns: Any = (np.zeros(jobs + 1, kind) for kind in (np.int32, np.int32, np.float64, np.float64))
    return State(
        jobs=table_of(records.Job, jobs), arrivals=np.zeros(jobs, np.int64),
        attributes=np.zeros((jobs, len(ATTRIBUTES))), queue=Waiting(*columns),
        ending=table_of(records.Ending, jobs), expected=table_of(records.Expected, jobs),
        machine=machine, capacity=fixed() if capacity is None else capacity, power=power,
        predictor=no_predictor() if predictor is None else predictor,
        rules=rules, clock=clock, ledger=ledger, log=table_of(records.Event, log_rows), scratch=scratch,
        downtimes=closed, feedback=_NO_FEEDBACK if feedback is None else feedback,
    )  # fmt: skip


def new_state(
    workload: Workload, cluster: Cluster, site: Site | None, rules: Rules, settings: dict[str, float],
    ahead_s: float = 0.0, *, observed: bool = False, downtimes: Table[records.Downtime] | None = None,
    predictor: str = "requested", score: Floats | None = None,
) -> State:  # fmt: skip
    """Create the state of one simulation: an empty machine at the first submission.

    Args:
        workload: the jobs, n >= 1 rows.
        cluster: the machines.
        site: the power supply, or None.
        rules: how the batch system reacts.
        settings: fields of `RuleSet` that the scheduler sets.
        ahead_s: how long after now the latest start considered may be. [s]
        observed: fill in the attributes, which few policies read.
        downtimes: times in which no job may run.
        predictor: what predicts run times, see `engine.prediction`.
        score: of each job, if it never changes.
    """
    n, requested_s = len(workload), workload.requested_time_s
    slowest = min((each.speed for each in cluster.dvfs), default=1.0)
    longest_s = float(requested_s.max()) / slowest
    machine = machine_of(cluster, workload)
    breaks = n + (0 if site is None else int((longest_s + ahead_s) / site.step_s)) + 4
    feedback = feedback_of(workload) if follow_others(workload, rules) else None
    follows = np.zeros(n, np.bool_) if feedback is None else preceding_rows(workload) >= 0
    known = workload if feedback is None else workload.with_columns(submit_s=np.where(follows, 0.0, workload.submit_s))
    predicts, capacity = PREDICTOR_OF[predictor](workload), capacity_of(cluster, known, machine.totals)
    rows = min(LOG_ROWS, log_rows(n))
    state = allocate(n, breaks, machine, power_of(site), rows, downtimes, predicts, feedback, capacity)
    jobs: Any = state.jobs
    columns = {
        "submit_s": workload.submit_s, "requested_s": requested_s, "processors": workload.processors,
        "run_s": work_s(workload, cluster, rules), "user": workload.user,
        "power_w": np.where(np.isnan(workload.power_w), 0.0, workload.power_w),
        "promised_s": np.nan, "planned_s": np.nan, **({} if score is None else {"score": score}),
    }  # fmt: skip
    fill(jobs, columns)
    if observed:
        state.attributes[:] = attributes_of(workload)
    set_rules(state, rules, settings)
    first = 0
    if len(
        state.feedback
    ):  # the submissions of jobs that follow others are taken back, above also from when they are due
        jobs["submit_s"][follows] = np.inf
        state.clock.undated = first = int(np.count_nonzero(follows))
    state.arrivals[first:] = in_order(workload.submit_s if first == 0 else jobs["submit_s"])[: n - first]
    in_order_s = workload.submit_s[state.arrivals[first:]]
    state.rules.twins = first > 0 or (in_order_s[1:] == in_order_s[:-1]).any()
    state.clock.now_s = in_order_s[0]
    return state


def in_order(submit_s: Floats) -> Ints:
    """Rows of jobs in order of submission, ties by row."""
    if (submit_s[1:] >= submit_s[:-1]).all():
        return np.arange(submit_s.size)
    return np.argsort(submit_s, kind="stable")


def work_s(workload: Workload, cluster: Cluster, rules: Rules) -> Floats:
    """Run time of each job on a pool, at most its request if overruns are killed; on nodes, that at speed 1. [s]"""
    run_s = workload.run_time_s / (1.0 if cluster.on_nodes else cluster.speed)
    return np.minimum(run_s, workload.requested_time_s) if rules.overrun == "kill" and not cluster.on_nodes else run_s


def set_rules(state: State, rules: Rules, settings: dict[str, float]) -> None:
    """Write the options of the batch system and what the scheduler changes of them, and reset the clock's decisions."""
    fixed: Any = state.rules
    clock, limited = state.clock, always_allowed_w(state.power) < np.inf
    options: dict[str, float] = {
        "sticky": rules.commitment == "sticky", "per_instant": get_args(EventRule).index(rules.event_rule),
        "completion_first": rules.ties == "completion_first", "tick_s": rules.tick_s,
        "kill": rules.overrun == "kill", "power_cap_w": rules.power_cap_w, **settings, "limited": limited,
        "depth": rules.backfill_depth or 2**62,
        "patience": max(PATIENCE, int(state.power.slots.count) * (PERIODS if limited else 1)),
    }  # fmt: skip
    options["guarded"] = limited or options["power_cap_w"] > 0.0 or len(state.downtimes) > 0
    # What is stored is known during the run, if it is commanded.
    options |= {"accrue": 1} if is_commanded(state.power) else {"commands": NOBODY}
    for name, value in options.items():
        fixed[name] = value
    clock.head = clock.committed = -1
    clock.wake_s, clock.accrued_s = np.inf, np.nan
