"""The records that the engine keeps, each written once as a class: its fields, their types and their units.

A table of records is a NumPy array of records, so ``state.jobs[j].submit_s`` works the same in compiled and in plain
Python; ``state.jobs["submit_s"]`` is the column. `dtype_of` derives the layout from the class, and type checkers see
the class itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from struct import Struct
from typing import Annotated, Any, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Int32 = Annotated[int, np.int32]
"""A whole number of four bytes, for records that are moved often."""

Row = TypeVar("Row")
Part = TypeVar("Part")


class Table(Protocol[Row]):
    """A one-dimensional array of records."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, in a tuple."""

    def __len__(self) -> int:
        """Number of rows."""

    # A record or a column, not a copy; or some rows.
    @overload
    def __getitem__(self, row: int, /) -> Row: ...
    @overload
    def __getitem__(self, column: str, /) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, rows: slice | Ints | Int32s, /) -> Table[Row]: ...

    def __setitem__(self, row: int | str, record: Any, /) -> None:
        """Copy a record, or a column."""


def _mark(part: type[Part], kind: str, fields: tuple[str, ...]) -> type[Part]:
    setattr(part, kind, fields)
    return part


def shared(*fields: str) -> Callable[[type[Part]], type[Part]]:
    """Mark fields of a part that all simulations of a batch share, because nothing writes to them (decorator)."""
    return lambda part: _mark(part, "SHARED", fields)


def per_job(*fields: str) -> Callable[[type[Part]], type[Part]]:
    """Mark fields of a part whose row k is job k of the state (decorator)."""
    return lambda part: _mark(part, "PER_JOB", fields)


def per_group(*fields: str) -> Callable[[type[Part]], type[Part]]:
    """Mark fields of a part with a row for each number in its field ``group``, at first all alike (decorator)."""
    return lambda part: _mark(part, "PER_GROUP", fields)


@cache
def dtype_of(record: type) -> np.dtype[Any]:
    """The layout of a record: its annotated fields in order, floats and whole numbers of 8 bytes unless they say so."""
    fields = []
    for name, kind in get_type_hints(record, include_extras=True).items():
        small = get_args(kind)[1] if get_origin(kind) is Annotated else None
        fields.append((name, small or {float: np.float64, int: np.int64}[kind]))
    return np.dtype(fields, align=True)


_SMALL = 1 << 16
"""Larger tables are zeroed by the system as they are touched; smaller ones are made faster as `bytearray`."""


def table_of(record: type, *shape: int) -> Any:
    """A table of records with all fields zero."""
    dtype = _named(dtype_of(record))
    size = prod(shape) * dtype.itemsize  # bytes, because of records `numpy.zeros` writes field by field
    return np.ndarray(shape, dtype, bytearray(size) if size < _SMALL else np.zeros(size, np.uint8))


def fill(table: Any, columns: dict[str, Any]) -> None:
    """Fill columns of a table with values, each of shape (n,) or one number, in blocks that fit into a cache."""
    for first in range(0, table.shape[0], _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        block = table[rows]
        for name, values in columns.items():
            block[name] = values[rows] if isinstance(values, np.ndarray) else values


_BLOCK_ROWS = 4096


def record_of(record: type[Row], **fields: float) -> Row:
    """A record with some fields filled in, the others zero."""
    table = table_of(record, 1)
    for name, value in fields.items():
        table[name] = value
    return cast(Row, table[0])


def with_attributes(records: NDArray[Any]) -> Any:
    """The same array of records, whose fields are also attributes in plain Python."""
    return records.view(_named(records.dtype), np.ndarray)


@cache
def _named(layout: np.dtype[Any]) -> np.dtype[Any]:
    """A layout whose fields are also attributes in plain Python: records have a property for each.

    `numpy.record` looks for every attribute in Python, those included that Numba asks for when a record is passed.
    """
    own: dict[str, Any] = {each: getattr(np.void, each) for each in ("__getattribute__", "__setattr__", "__getitem__")}
    for name, (kind, offset, *_) in (layout.fields or {}).items():
        own[name] = property(_getter(kind, offset), _setter(name))
    return np.dtype((type("record", (np.record,), {"__slots__": (), **own}), layout))


def _getter(kind: np.dtype[Any], offset: int) -> Callable[[Any], Any]:
    """Read one field of a record; by its name it would take NumPy four times as long."""
    unpack, as_numpy = Struct(kind.char).unpack_from, kind.type

    def get_float(record: Any) -> Any:
        return as_numpy(unpack(record, offset)[0])  # 1 / 0 is infinite

    def get_whole(record: Any) -> Any:
        return unpack(record, offset)[0]

    return get_float if kind.kind == "f" else get_whole


def _setter(name: str) -> Callable[[Any, Any], None]:
    def put(record: Any, value: Any) -> None:
        record[name] = value

    return put


class Job:
    """One job: its request, its score, and what was promised and planned for it."""

    submit_s: float
    run_s: float
    """Its work at the speed of the cluster, at most the requested time if overruns are killed."""
    requested_s: float
    power_w: float
    """Power while running, 0 if unknown."""
    score: float
    """Score of a rule whose scores never change; the lowest goes first."""
    promised_s: float
    """First reservation, NaN if it never got one."""
    planned_s: float
    """Start planned by a policy that plans ahead, NaN if there is none."""
    processors: Int32
    user: Int32
    """Number of the user, -1 if unknown."""


class Feedback:
    """What one job waits for before it is submitted, and which jobs wait for it; see `engine.dependencies`."""

    think_s: float
    """Time from the end of its preceding job to its submission, at least."""
    earliest_s: float
    """It is not submitted before."""
    first: Int32
    """The first job that follows it, -1 for none."""
    next: Int32
    """The next job that follows the same job as this one, -1 for none."""


SHORT_S = 10.0
"""Shortest run time in a bounded slowdown. [s]"""


class Prediction:
    """What is predicted of the run time of a job."""

    expected_time_s: float
    """Median."""
    shortest_time_s: float
    """It runs for less with a probability of 10 %."""
    longest_time_s: float
    """It runs for longer with a probability of 10 %."""
    mean_time_s: float
    slowdown_price: float
    """Mean of 1 / max(run time, 10 s). [1/s]"""


class Ending:
    """One running job in the order of actual ends."""

    end_s: float
    requested_end_s: float
    job: Int32
    processors: Int32


class Expected:
    """One running job in the order of requested ends, which are all that a policy knows."""

    end_s: float
    """Start + requested time."""
    start_s: float
    power_w: float
    job: Int32
    processors: Int32


class Event:
    """One entry of the log."""

    time_s: float
    value: float
    """Of a start or an end: the load of the cluster from now on [W]; of a command: what storage is to take from now on
    [W]; of a promise or a commitment: a time [s]."""
    job: Int32
    """-1 for a command."""
    kind: Int32


class Surplus:
    """Forecast surplus of renewable power over the load, constant over the segment."""

    start_s: float
    length_s: float
    surplus_w: float
    grid: float
    """Weight of a joule from the grid, see `power.protocol.weigh`."""
    own: float
    """Weight of a joule of the surplus."""


class Capacity:
    """Free processors and GPUs from one instant to the next, in a timeline."""

    time_s: float
    free: Int32
    free_gpus: Int32


class Ranked:
    """A candidate and its sort key."""

    key: float
    job: int


class MachineTotals:
    """What every machine keeps, whatever its parts are."""

    processors: int
    free: int
    """Processors that are powered and not in use."""
    off: int
    """Those that are not powered."""
    load_w: float
    """Power now, base power included."""
    base_power_w: float
    """Power when nothing runs."""
    most_idle_w: float
    """The same where most is powered, if that changes; else 0. [W]"""
    gpus: int
    """GPUs of a pool; those of nodes are kept there."""
    free_gpus: int
    spare_gpus: int
    """GPUs that are left beside the blocked job, as `Clock.spare` processors are."""
    machine_w: float
    """What each machine of a pool draws that is on; 0 if it always is, which `base_power_w` counts. [W]"""
    machine_processors: int
    """Its processors."""


class Slots:
    """Supply slots: ``[origin_s + k * step_s, origin_s + (k + 1) * step_s)``; there are none without a site."""

    step_s: float
    origin_s: float
    count: int
    repeats: int
    """1 if the series repeats, 0 if the simulation must end within it."""
    forecast: int
    """Number of slots that policies know, from the current one on."""


class Ledger:
    """Energy since the first start: renewable + grid + discharged = load + charged + curtailed.

    Without storage, renewable_used + grid = load and renewable_used + curtailed = renewable.
    """

    load_j: float
    renewable_j: float
    renewable_used_j: float
    """By the load, at once or out of storage."""
    curtailed_j: float
    """Surplus: generated, but neither used nor stored; and what storage gives beyond the load."""
    grid_j: float
    """Imported, for the load or for storage."""
    charged_j: float
    """Into storage, before losses."""
    charged_renewable_j: float
    """The part of it that is renewable."""
    discharged_j: float
    """Out of storage, after losses."""
    discharged_renewable_j: float
    """The part of it that is renewable, see `power.storage`, and serves the load."""
    cost: float
    """In the currency of the site, 0 without prices."""
    carbon_g: float
    """CO2 equivalent, 0 without intensities."""
    peak_w: float
    """Highest load of the simulation; 0 in the ledger of an interval."""


ALL_PARTITIONS = -1
"""Bit mask of a node, job or outage of all partitions."""


class Downtime:
    """A time in which no job may run, see `engine.outages`."""

    begin_s: float
    end_s: float
    partitions: int
    """Bit mask of the partitions whose jobs may not run."""
    only_starts: int
    """1 if jobs that run already may run on."""


class RuleSet:
    """Options of the batch system, constant during a run; see `engine.rules` and `engine.settings`."""

    sticky: int
    per_instant: int
    """1: decisions are due after all events of an instant; 2: after all events of one kind at an instant."""
    completion_first: int
    kill: int
    """1 if jobs are killed at their requested time."""
    tick_s: float
    depth: int
    """Largest number of jobs in the queue; others join it later, in order of submission."""
    patience: int
    """Largest number of wake-ups or decisions in a row that change nothing."""
    power_cap_w: float
    """0 without a cap."""
    limited: int
    """1 if jobs are held for the grid connection, see `engine.import_limit`."""
    guarded: int
    """1 if an outage, the power cap or the grid connection may forbid a start, see `engine.limits`."""
    wake_at_supply: int
    """1 if a decision is also due at every change of supply."""
    accrue: int
    """1 if energy is added up during the run."""
    commands: int
    """Who commands storage."""
    charge_below: float
    """Storage charges in slots whose rank in the forecast is at most this, see `power.ranked`."""
    charge_above: float
    """It discharges from this rank on."""
    charge_carbon: float
    """Weight of carbon in the rank, between price and carbon."""
    backfill: int
    uses_attributes: int
    """1 if the rule uses attributes of jobs, see `interface.Attributes`."""
    uses_predicted: int
    """1 if the rule uses predictions, see `interface.Predicted`."""
    ranking: int
    twins: int
    """1 if any two jobs are submitted at the same instant."""
    threshold_j: float
    weight_brown: float
    """Weights of the threshold, see `power.protocol.Weights`."""
    weight_cost: float
    weight_carbon: float


class Clock:
    """Variables of a run. ``first:last`` is the queue."""

    now_s: float
    event: int
    """Kind of the last event, see `engine.events`."""
    status: int
    """OK, or why the loop was left: an error, an interruption or a full log; see `engine.codes`."""
    arrived: int
    undated: int
    """Jobs whose submission is not known yet, because it follows the end of another job."""
    arrived_s: float
    """Time of the last submission."""
    first: int
    last: int
    running: int
    ending_first: int
    """First row of the running jobs by actual end."""
    expected_first: int
    """First row of the running jobs by requested end."""
    started: int
    logged: int
    """Rows of the log."""
    segments: int
    """Segments of the forecast surplus."""
    slots: int
    """Rows of the timeline."""
    early: int
    """1 if a job has ended at another time than requested since the last reset."""
    accrued_s: float
    """Until when energy has been added up, NaN before the first start."""
    shadow_s: float
    """When the head of the queue is expected to start."""
    spare: int
    """Processors that are free beside the head then."""
    spare_w: float
    """Power that is left beside the head then, under a power cap."""
    head: int
    head_score: float
    blocked: int
    """1 if the policy has decided and waits for the next event."""
    settled: int
    """1 if only a newly submitted job could start now."""
    wake_s: float
    """When the policy asked to be woken."""
    idle: int
    """Wake-ups in a row while nothing runs and no job will arrive, or at one instant."""
    idle_from_s: float
    """Time of the first of them."""
    committed: int
    """Job that must start next (``sticky``), -1 for none."""
    until_s: float
    """End of its delay."""
    held: int
    """1 until its delay has passed, if nothing else may start before."""
    reserved: int
    """1 once it has a reservation."""
    wake_at_end: int
    """1 if the end of its delay is an event."""
    commanding: int
    """1 if a command to storage is due."""
    charges: int
    """Commands in a row between which nothing happened."""


class Column:
    """One column of an observation: its feature and its normalizer."""

    feature: int
    scale: float
    floor: float
    ceiling: float
    log: int


class Delay:
    """A delay that can be chosen: its kind, see `engine.step`, and its number of jobs or seconds."""

    kind: int
    amount: float


class RewardTotals:
    """Running totals of one simulation, from which reward terms are computed."""

    begin_s: float
    jobs_j: float
    """Energy of all its jobs."""
    window_work_s: float
    """Work of all its jobs / processors of the cluster."""
    read: int
    """Rows of the log that have been counted."""
    bounded_slowdown: float
    wait_s: float
    turnaround_s: float
    slowdown: float
    work_s: float
    largest_end_s: float
    edp_steps_js: float
    seen_j: float
    """Energy at the last decision."""
    seen_s: float
    """Time of the last decision."""
    users: int
    finished_value: float
    timely_value: float
    late_jobs: float
    """Jobs that ended late."""
    late_ticks: float
    """Ticks between when they were due and their ends."""
    late_value: float
    """The same times their value per tick of their requested times."""


class UserTotals:
    """Totals of one user of a window."""

    jobs: int
    bounded_slowdown: float
