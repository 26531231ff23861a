"""The interface between the engine and a policy.

A policy gets a `View` and returns a `Decision`. A view contains only what a real batch system knows: no actual run
times and no true future, so it can also be built from a live queue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Protocol, get_type_hints

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.codes import ARRIVAL, COMPLETION, DELAY_FOR, DELAY_RELEASES, NO_DELAY, SLOT, WAKE_UP
from greenbatch.engine.records import Bools, Floats, Ints

CAUSES = {ARRIVAL: "arrival", COMPLETION: "completion", WAKE_UP: "wake-up", SLOT: "supply"}
"""Kinds of events after which a policy is asked."""
_TYPES: dict[Any, Any] = {Floats: np.float64, Ints: np.int64, Bools: np.bool_}


@cache
def types_of(part: Any) -> list[Any]:
    """Types of the columns of a part; a view from outside may have others, such as those that pandas prefers."""
    return [np.dtype(_TYPES[column]) for column in get_type_hints(part).values()]


class Attributes(NamedTuple):
    """Further attributes of the waiting jobs, columns of shape (q,); NaN if unknown."""

    requested_memory_kb: Floats
    """Requested memory per processor. [kB]"""
    group: Floats
    executable: Floats
    queue: Floats
    partition: Floats
    nodes: Floats
    """Requested nodes, NaN for any number."""
    gpus: Floats
    exclusive: Floats
    memory_volume_mb: Floats
    """Data that each processor moves from and to memory. [MB]"""
    requested_energy_j: Floats
    """Energy that the user expects each processor to use. [J]"""
    value: Floats
    """Value of the finished job (RARE, Eq. 3.2)."""
    qos: Floats
    """Quality of service: the job is due at submission + run time / QoS (RARE, Eq. 3.1)."""


class Predicted(NamedTuple):
    """What is predicted of the run times of the waiting jobs, columns of shape (q,); see `engine.prediction`.

    Without a predictor, requested times stand for run times, and in a view ``expected_time_s`` is the array of
    requested times itself; see `View.predicts`. A view from outside may leave the columns empty, which means the same.
    """

    expected_time_s: Floats
    """Median of the run time. [s]"""
    shortest_time_s: Floats
    """The job runs for less with a probability of 10 %. [s]"""
    longest_time_s: Floats
    """The job runs for longer with a probability of 10 %. [s]"""
    mean_time_s: Floats
    """Mean of the run time. [s]"""
    slowdown_price: Floats
    """Mean of 1 / max(run time, 10 s): the slowdown that a second of waiting costs. [1/s]"""


_NOTHING = np.zeros(0)
NOT_PREDICTED = Predicted(*[_NOTHING] * len(Predicted._fields))
"""No predictor."""


class Queue(NamedTuple):
    """The waiting jobs, as passed to a priority rule: columns of equal length, in order of submission."""

    now_s: float
    """The clock. [s]"""
    free_processors: float
    """Processors that are free now."""
    total_processors: float
    """Processors of the cluster."""
    submit_s: Floats
    """Submission on the scenario's clock. [s]"""
    wait_s: Floats
    """Time since submission. [s]"""
    requested_time_s: Floats
    """Requested time. [s]"""
    processors: Floats
    """Requested processors."""
    power_w: Floats
    """Power while running, 0 if unknown. [W]"""
    user: Floats
    """User number, -1 if unknown."""
    attributes: Attributes
    predicted: Predicted = NOT_PREDICTED


class Running(NamedTuple):
    """The running jobs, in order of expected end, columns of shape (r,)."""

    job_id: Ints
    start_s: Floats
    expected_end_s: Floats
    """Start + requested time. [s]"""
    processors: Ints
    power_w: Floats
    user: Ints
    """User number, -1 if unknown."""
    expected_time_s: Floats = _NOTHING
    """Median of the run time as last predicted, before the start or since; without a predictor the request. [s]"""


class Nodes(NamedTuple):
    """The nodes in the order of the cluster, columns of shape (k,); a pool is one row."""

    processors: Ints
    free_processors: Ints
    idle_power_w: Floats
    """Power while nothing runs on it, 0 if it is off. [W]"""
    free_gpus: Ints = np.zeros(0, np.int64)
    """Empty on a pool, as the next two."""
    free_memory_mb: Floats = np.zeros(0)
    is_on: Bools = np.zeros(0, np.bool_)
    """Whether it is on; not while it boots or shuts down."""
    phase: Ints = np.zeros(0, np.int64)
    """0 it is on, 1 off, 2 it boots, 3 it shuts down; empty unless nodes boot on demand, as the next two."""
    switch_s: Floats = _NOTHING
    """When its boot or shutdown ends, or its shutdown begins if it is on; infinite if nothing is due. [s]"""
    on_since_s: Floats = _NOTHING
    """Since when it is on. [s]"""


class Placements(NamedTuple):
    """Where the running jobs run: one row per job and node, columns of shape (m,); empty on a pool."""

    running: Ints
    """Row of the job in `View.running`."""
    node: Ints
    """Row of the node in `View.nodes`."""
    processors: Ints
    """Processors that work."""
    taken: Ints
    """Processors that nobody else can use: all of the node if the job uses it alone."""
    gpus: Ints
    memory_mb: Floats
    memory_volume_mb: Floats
    """Data that each processor moves from and to memory, 0 if unknown. [MB]"""


NOWHERE = Placements(*(np.zeros(0, each) for each in types_of(Placements)))
"""Placements on a pool."""


class Costs(NamedTuple):
    """What energy costs and emits in the slots of a forecast, columns of shape (f,); empty without prices.

    Prices are known as far ahead as the power that is forecast. Money is in the currency of the site.
    """

    import_price_per_kwh: Floats
    """Price of energy from the grid, may be negative."""
    export_price_per_kwh: Floats
    """Revenue of surplus that is sold, >= 0."""
    own_price_per_kwh: Floats
    """Price of own renewable energy that is used."""
    carbon_g_per_kwh: Floats
    """Average carbon intensity of the grid."""
    marginal_g_per_kwh: Floats
    """Its carbon intensity at the margin, the average one if that is not known."""
    own_g_per_kwh: Floats
    """Life-cycle carbon of own renewable energy that is used."""
    usual_price_per_kwh: float
    """Mean of the absolute import price of the whole series, 0 without prices."""
    usual_g_per_kwh: float
    """The same of the intensity at the margin."""

    def at(self, rows: Ints) -> Costs:
        """The costs of some slots."""
        if not len(self.import_price_per_kwh):
            return self
        return self._replace(**{name: column[rows] for name, column in self._asdict().items() if np.ndim(column)})


NO_COSTS = Costs(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, 0.0, 0.0)
"""A site without prices."""


class Supply(NamedTuple):
    """Forecast of renewable power, columns of shape (f,), from the current slot on; empty without a site.

    The first row is the whole current slot, including its part before now.
    """

    start_s: Floats
    end_s: Floats
    renewable_w: Floats
    origin_s: float = 0.0
    """Start of slot 0. [s]"""
    step_s: float = 0.0
    """Length of a slot, 0 without a site. [s]"""
    costs: Costs = NO_COSTS
    """What energy costs and emits in these slots."""
    load_limit_w: Floats = _NOTHING
    """Largest load of the cluster with which imports stay within the limit of the grid connection; empty unless jobs
    are held for it."""


class Storage(NamedTuple):
    """Storage that the scheduler commands, see `Charge`."""

    stored_j: float
    """Energy in it above its lowest state of charge, 0 to ``usable_j``. [J]"""
    usable_j: float
    """Energy between its lowest and its highest state of charge. [J]"""
    charge_w: float
    """Largest power that it takes. [W]"""
    discharge_w: float
    """Largest power that it gives. [W]"""
    charge_efficiency: float
    """Share of the energy taken that is stored."""
    discharge_efficiency: float
    """Share of the energy withdrawn that is given."""
    loss_per_s: float
    """Self-discharge: share of ``stored_j`` that is lost per second."""
    command_w: float = 0.0
    """The command in force: power that it is to take, < 0 to give. [W]"""


class Held(NamedTuple):
    """What the running jobs hold of what is powered, and what says which is suspended first, columns of shape (r,)."""

    processors: Ints
    """Processors that nobody else can use: all of its nodes if a job has them alone."""
    gpus: Ints
    value: Floats
    """0 if unknown."""
    first_start_s: Floats
    """Of the first span, if it has been suspended since. [s]"""
    due_order: Ints
    """Rank by due date, 0 for the job that is due first."""


NOTHING_HELD = Held(*(np.zeros(0, each) for each in types_of(Held)))
"""No job runs."""


class Suspended(NamedTuple):
    """The suspended jobs, the oldest suspension first, columns of shape (s,); they resume by themselves."""

    submit_s: Floats
    requested_time_s: Floats
    """What is left of it, the time to be suspended and to resume included. [s]"""
    processors: Floats
    power_w: Floats
    """Power while running, 0 if unknown. [W]"""
    user: Floats
    first_start_s: Floats
    attributes: Attributes = Attributes(*[_NOTHING] * len(Attributes._fields))
    """Further attributes, as those of waiting jobs."""


NOBODY_SUSPENDED = Suspended(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
"""No job is suspended."""


class Capacity(NamedTuple):
    """What is known of a machine whose capacity follows the power, as far ahead as ``rules.pools.horizon_s``."""

    ready: Bools
    """Whether a waiting job is ready, shape (q,); only ready jobs can start."""
    free_gpus: int
    """Free powered GPUs; below 0 until jobs are suspended."""
    time_s: Floats
    """When each capacity begins, the present one first, shape (c,). [s]"""
    processors: Ints
    """Powered processors from then on, shape (c,)."""
    gpus: Ints
    """Powered GPUs from then on, shape (c,)."""
    suspended_job_id: Ints
    """Numbers of the suspended jobs."""
    ready_job_id: Ints = np.zeros(0, np.int64)
    """The ready jobs in the order in which they became ready."""
    running: Held = NOTHING_HELD
    """What the running jobs hold, in the order of `View.running`."""
    actions: int = 0
    """Starts and suspensions at this instant so far."""
    suspended: Suspended = NOBODY_SUSPENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a policy knows at a decision. All times are on the scenario's clock."""

    now_s: float
    job_id: Ints
    """Job numbers of the waiting jobs, in order of submission, shape (q,)."""
    queue: Queue
    """Columns of the waiting jobs, each of shape (q,)."""
    running: Running
    nodes: Nodes
    supply: Supply
    load_w: float
    """Current power of the cluster, idle power included. [W]"""
    last_submission_s: float
    """Time of the last submission, whether or not that job still waits. [s]"""
    submitted: int
    """Number of jobs submitted so far."""
    cause: str
    """Kind of the last event: ``arrival``, ``completion`` or ``wake-up``; ``supply`` at a new slot of the supply, at
    which only a command to storage is due; ``decision`` if none followed the last decision."""
    placements: Placements = NOWHERE
    partitions: Mapping[int, str] = field(default_factory=dict)
    """Number of a partition, as in `attributes` -> its name in the cluster."""
    cluster: Cluster | None = None
    """The machines as configured, with the facts of nodes that never change; policies that choose nodes need it."""
    storage: Storage | None = None
    """Storage that the scheduler commands, None if there is none."""
    capacity: Capacity | None = None
    """Pools of jobs and capacity, None on a machine that is always powered."""

    @property
    def attributes(self) -> Attributes:
        """Further attributes of the waiting jobs."""
        return self.queue.attributes

    @property
    def suspended(self) -> Suspended:
        """The suspended jobs."""
        return NOBODY_SUSPENDED if self.capacity is None else self.capacity.suspended

    @property
    def off(self) -> int:
        """Processors that are not powered."""
        return 0 if self.capacity is None else int(self.nodes.processors.sum() - self.capacity.processors[0])

    @property
    def predicts(self) -> bool:
        """Whether run times are predicted, other than by requested times."""
        shown = self.queue.predicted.expected_time_s
        known = shown.shape[0] or self.running.expected_time_s.shape[0]
        return bool(known) and shown is not self.queue.requested_time_s


@dataclass(frozen=True, slots=True)
class Start:
    """Start a waiting job, now or after a delay.

    A job that does not fit stays at the head of the queue (``sticky``), or other jobs are backfilled around it until
    the next event (``reconsider``).
    """

    row: int
    """Row of the job in the view's queue."""
    delay: int = NO_DELAY
    amount: float = 0.0
    dvfs_level: int | None = None
    """DVFS level of `Cluster.dvfs` from now on, 0 for the highest; None leaves it as it is."""
    nodes: tuple[int, ...] = ()
    """Rows of `View.nodes` that the job takes first, in this order, if it starts now; the placement gives it the rest.

    Each must have room for a part of the job."""
    processors: tuple[int, ...] = ()
    """Processors that it takes at most on each of ``nodes``; by default as many as there is room for."""

    @classmethod
    def after_releases(cls, row: int, jobs: int) -> Start:
        """Delay until ``jobs`` running jobs are expected to have ended, at most an hour (GAS-MARL §4.2.1, type 2)."""
        return cls(row, DELAY_RELEASES, jobs)

    @classmethod
    def after_seconds(cls, row: int, seconds: float) -> Start:
        """Delay for a fixed time (GAS-MARL §4.2.1, type 3)."""
        return cls(row, DELAY_FOR, seconds)


@dataclass(frozen=True, slots=True)
class Wait:
    """Start nothing more until the next event, or until a time if that comes first."""

    until_s: float = math.inf
    """When to be asked again if nothing has happened by then. [s]"""


@dataclass(frozen=True, slots=True)
class Charge:
    """Command storage from now until the next command; then decide again at the same instant if a job may start.

    The site must have ``site.storage.dispatch = "scheduler"``. Storage follows as far as its limits of power and its
    state of charge allow.
    """

    power_w: float
    """Power to take, from surplus first and then from the grid; < 0 to give, at most what the load needs beyond
    renewable power; 0 to rest. [W]"""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Suspend the running job that ``rules.pools.victim`` names, where ``rules.pools.suspends`` is ``swap``.

    Elsewhere, and where no job can be suspended, it ends the decisions of this instant as `Wait` does.
    """


Decision = Start | Wait | Charge | Suspend


class Policy(Protocol):
    """A policy as a Python object.

    If it remembers anything from one view to the next, two more methods let a restarted process resume with it, see
    `engine.views.driver`: ``memory()`` returns what it remembers as JSON data, and ``recall(memory)`` takes it back.

    If it has an attribute ``charges`` that is true, and the site has storage that the scheduler commands, it is also
    asked while no job waits and at every change of supply, see `Charge`.
    """

    def decide(self, view: View) -> Decision:
        """Return the decision for a view; called again until no more jobs can start at this instant."""
        ...
