"""What the engine asks of a machine: a NamedTuple with the field ``totals``, and these functions.

A new kind of machine is one file: its class, its implementations of the functions, and `machine_of` for the cluster
that describes it. `fits`, `take`, `give` and `next_change_s` have to be implemented; the others are defined for
machines that count processors only.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Protocol

import numpy as np

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.records import Clock, Ending, Expected, Int32s, MachineTotals, Table
from greenbatch.engine.variants import variant
from greenbatch.workload import Workload


class Machine(Protocol):
    """A machine, as a part of the state."""

    @property
    def totals(self) -> MachineTotals:
        """Processors and power of the machine as a whole."""
        ...


@singledispatch
def machine_of(cluster: object, workload: Workload) -> Machine:
    """The idle machine that a cluster describes; register a function for a new class of clusters.

    Args:
        cluster: the cluster.
        workload: the jobs that it will run; row k is job k of the state.

    Raises:
        TypeError: no machine is registered for it.
        InputError: a job can never run on it.
    """
    raise TypeError(f"no machine is registered for {type(cluster).__name__}")


@variant()
def fits(machine: Machine, job: int, processors: int, now_s: float) -> bool:
    """Whether a job, which asks for some processors, can start now."""
    raise TypeError


@variant()
def take(machine: Machine, job: int, processors: int, power_w: float, now_s: float, outlives: bool) -> float:
    """Occupy what a job takes; it must fit.

    Args:
        machine: the machine.
        job: row of the job.
        processors: its processors.
        power_w: its power, 0 if unknown. [W]
        now_s: the clock. [s]
        outlives: the job may end after the head's reservation begins, so it may only take what the head leaves.

    Returns:
        Its rate: work done per second, relative to the speed at which its run time was measured.
    """
    raise TypeError


@variant()
def give(machine: Machine, job: int, processors: int, power_w: float, now_s: float, is_last: bool) -> None:
    """Release what a job took.

    Args:
        machine: the machine.
        job: row of the job.
        processors: its processors.
        power_w: its power. [W]
        now_s: the clock. [s]
        is_last: nothing runs any more.
    """
    raise TypeError


@variant(default=True)
def rise_w(machine: Machine, job: int, power_w: float, outlives: bool) -> float:
    """What a job that fits would add to the load if it started now. [W]

    Args:
        machine: the machine.
        job: row of the job.
        power_w: its power, 0 if unknown. [W]
        outlives: see `take`.
    """
    return power_w


@variant(default=True)
def running_w(machine: Machine, job: int, power_w: float) -> float:
    """Power of a running job, without what its nodes draw anyway. [W]"""
    return power_w


@variant(default=True)
def run_times_vary(machine: Machine) -> bool:
    """Whether the run time of a job depends on where and beside what it runs, so that it is known when the job ends."""
    return False


@variant(default=True)
def begins_s(machine: Machine, job: int, now_s: float) -> float:
    """When a job that is given its processors at ``now_s`` begins to run, also asked when it ends. [s]"""
    return now_s


@variant(default=True)
def longest_boot_s(machine: Machine) -> float:
    """Longest time from the start of a job until it begins to run. [s]"""
    return 0.0


@variant(default=True)
def next_switch_s(machine: Machine) -> float:
    """When a node is switched on or off by itself, infinite if never; the same jobs fit before and after. [s]"""
    return np.inf


@variant(default=True)
def switch(machine: Machine, now_s: float) -> int:
    """Carry out one switch that is due; return the number of the node."""
    return -1


@variant(default=True)
def most_switches(machine: Machine) -> int:
    """Largest number of switches between two events of jobs."""
    return 0


@variant()
def next_change_s(machine: Machine, now_s: float) -> float:
    """When waiting jobs may fit although nothing starts or ends, infinite if never. [s]"""
    raise TypeError


@compiled_small
def reserve_by_total(
    totals: MachineTotals, expected: Table[Expected], clock: Clock, processors: int, from_s: float
) -> None:  # fmt: skip
    """`reserve_for` if any free processors will do."""
    need, free = processors, totals.free
    i, stop = clock.expected_first, clock.expected_first + clock.running
    shadow_s = from_s
    while i < stop and free < need:
        free += expected[i].processors
        shadow_s = max(from_s, expected[i].end_s)
        i += 1
    while i < stop and expected[i].end_s <= shadow_s:
        free += expected[i].processors
        i += 1
    clock.shadow_s, clock.spare = shadow_s, free - need


@variant(default=True)
def reserve_for(
    machine: Machine, expected: Table[Expected], clock: Clock, job: int, processors: int, from_s: float
) -> None:  # fmt: skip
    """Compute when a blocked job can start by requested ends (``clock.shadow_s``), and what it leaves to others then.

    ``clock.spare`` is the largest number of processors that a job which outlives that time may take. A running job
    past its requested end is expected to end now.

    Args:
        machine: the machine.
        expected: running jobs by requested end.
        clock: output, and what is running.
        job: row of the job.
        processors: its processors.
        from_s: the earliest start, now or later. [s]
    """
    reserve_by_total(machine.totals, expected, clock, processors, from_s)


@variant(default=True)
def fits_beside(machine: Machine, job: int, processors: int, spare: int) -> bool:
    """Whether a job that fits now and outlives the reservation leaves enough to the head.

    Args:
        machine: the machine.
        job: row of the job.
        processors: its processors.
        spare: processors that the head leaves.
    """
    return processors <= spare


@variant(default=True)
def competes(machine: Machine, job: int, head: int) -> bool:
    """Whether two jobs could use the same processors; if not, neither can delay the other."""
    return True


@variant(default=True)
def all_partitions_in(machine: Machine, job: int, partitions: int) -> bool:
    """Whether all partitions that a job can use are among those of a bit mask; a pool has none."""
    return True


@variant(default=True)
def all_compete(machine: Machine) -> bool:
    """Whether any two jobs compete."""
    return True


@variant(default=True)
def hold_back(machine: Machine, job: int) -> bool:
    """Let no job that competes with a blocked one be chosen until the next event; whether that is every job."""
    return True


@variant(default=True)
def is_held_back(machine: Machine, job: int) -> bool:
    """Whether a job must not be chosen, because it competes with a blocked one."""
    return False


@variant(default=True)
def let_go(machine: Machine, waiting: Int32s, clock: Clock) -> None:
    """Undo `hold_back` after an event; the jobs that wait are rows ``clock.first`` to ``clock.last``."""
    return


@variant(default=True)
def update_ends(machine: Machine, ending: Table[Ending], clock: Clock) -> None:
    """Move the ends of running jobs whose rates have changed by the last start or end."""
    return


@variant(default=True)
def expected_run_s(machine: Machine, job: int, requested_s: float) -> float:
    """Expected run time of a job that fits now, from its requested time and the speed of what it would take. [s]"""
    return requested_s


@variant(default=True)
def node_beside(machine: Machine, expected: Table[Expected], clock: Clock, job: int, head: int, end_s: float) -> int:
    """The node on which a job may start ahead of a blocked one in the manner of IRMaSim; -1 for none.

    Args:
        machine: the machine.
        expected: running jobs by requested end.
        clock: the clock.
        job: row of the job.
        head: row of the blocked one.
        end_s: requested end of the job if it starts now. [s]
    """
    return -1


@variant(default=True)
def want(machine: Machine, node: int, most: int) -> None:
    """Let the next job that starts take a node before others, after those wanted before.

    Args:
        machine: the machine.
        node: the node.
        most: processors that it takes there at most, unless it asks for a number of them on each node.
    """
    return


@variant(default=True)
def want_none(machine: Machine) -> None:
    """Let the next job that starts take nodes in the order of the placement again."""
    return


@variant(default=True)
def node_count(machine: Machine) -> int:
    """Number of nodes among which a policy can choose; 0 for a machine that has none."""
    return 0


@variant(default=True)
def can_take_on(machine: Machine, job: int, node: int) -> bool:
    """Whether a job that fits may be started on a node: that has room for a part of it, and the job's energy budget."""
    return False


@variant(default=True)
def fill_nodes(machine: Machine, now_s: float) -> float:
    """Write the `pair_features` that do not depend on the job to ``machine.pairs``, shape (PAIR_ROWS, nodes).

    Returns:
        When the last running job is expected to end; now if nothing runs. [s]
    """
    return now_s


@variant(default=True)
def fill_pairs(machine: Machine, job: int, now_s: float, last_end_s: float, queued_s: float) -> None:
    """Write the other `pair_features` for a job, after `fill_nodes`.

    Args:
        machine: the machine.
        job: row of the job.
        now_s: the clock. [s]
        last_end_s: what `fill_nodes` returned. [s]
        queued_s: requested processor-seconds of the waiting jobs per processor of the cluster. [s]
    """
    return


@variant(default=True)
def pair_feature(machine: Machine, feature: int, node: int) -> float:
    """A value that `fill_nodes` or `fill_pairs` has written."""
    return 0.0


@variant(default=True)
def foresee_ends(machine: Machine, ending: Table[Ending], clock: Clock, arrival_s: float) -> None:
    """Compute the ends of running jobs before the next event, if they are not known; the next submission is given."""
    return


@variant(default=True)
def pass_time(machine: Machine, ending: Table[Ending], clock: Clock, from_s: float, is_end: bool) -> None:
    """Bring the running jobs up to date after the clock has moved.

    Args:
        machine: the machine.
        ending: running jobs by actual end.
        clock: the clock.
        from_s: where the clock was before. [s]
        is_end: a job ends now.
    """
    return


@variant(default=True)
def is_recorded(machine: Machine) -> bool:
    """Whether there is room to record where the next jobs start."""
    return True


@variant(default=True)
def next_level_s(machine: Machine, now_s: float) -> float:
    """When the machine has to be brought up to date even if no job waits, see `follow`; infinite if never. [s]"""
    return np.inf


@variant(default=True)
def is_over(machine: Machine, now_s: float) -> bool:
    """Whether the run ends now, whatever still waits or runs."""
    return False


@variant(default=True)
def is_beyond(machine: Machine, next_s: float, completion_s: float) -> bool:
    """Whether the run ends before the next event; at the end itself, only completions count.

    Args:
        machine: the machine.
        next_s: the next event. [s]
        completion_s: the next completion. [s]
    """
    return False


@variant(default=True)
def suspended_jobs(machine: Machine) -> int:
    """Number of suspended jobs."""
    return 0


@variant(default=True)
def admits(machine: Machine, job: int) -> bool:
    """Whether a submitted job may wait; a rejected one never runs."""
    return True


@variant(default=True)
def joins(machine: Machine, waiting: Int32s, clock: Clock, job: int) -> None:
    """Note that a job has been submitted; the jobs that wait are rows ``clock.first`` to ``clock.last``."""
    return


@variant(default=True)
def leaves(machine: Machine, waiting: Int32s, clock: Clock, job: int) -> None:
    """Note that a job does not wait any more; the jobs that wait are rows ``clock.first`` to ``clock.last``."""
    return


@variant(default=True)
def act(machine: Machine, now_s: float) -> float:
    """Count an action; return when the next one is allowed, 0 if at once. [s]"""
    return 0.0


@variant(default=True)
def stays_powered(
    machine: Machine, expected: Table[Expected], clock: Clock, job: int, requested_s: float
) -> bool:  # fmt: skip
    """Whether a job that fits now still does at every known change of capacity while it is expected to run."""
    return True


@variant(default=True)
def starts_in_order(machine: Machine) -> bool:
    """Whether after each start the next one has to be chosen anew, because another job may now be chosen."""
    return False


@variant(default=True)
def choosable_jobs(machine: Machine, clock: Clock) -> int:
    """Number of waiting jobs that a learned policy can choose from."""
    return clock.last - clock.first


@variant(default=True)
def choosable_position(machine: Machine, waiting: Int32s, clock: Clock, row: int) -> int:
    """Queue position of the job in a row of those that a learned policy can choose from."""
    return clock.first + row


@variant(default=True)
def asked_s(machine: Machine, job: int, requested_s: float) -> float:
    """Requested time of a job as submitted, from the one that is left of it. [s]"""
    return requested_s


@variant(default=True)
def pool_figure(machine: Machine, clock: Clock, figure: int) -> float:
    """A figure of the pools of jobs and of what is powered, see `POOL_FIGURES`."""
    if figure == 2:
        return float(clock.last - clock.first)
    return 1.0 if figure == 1 else 0.0


FREE_GPUS, POWERED_SHARE, READY_JOBS, POOLED_JOBS, SUSPENDED_JOBS = POOL_FIGURES = tuple(range(5))
"""Free GPUs, powered processors / processors, and jobs that are ready, wait until they are ready, and are suspended."""

Ahead = tuple[int, int, int, int]
"""A time ahead: the first row of ``expected`` and the level that hold then, and processors and GPUs in use."""


@variant(default=True)
def ahead_now(machine: Machine, clock: Clock) -> Ahead:
    """The present time, where a look ahead begins."""
    return (clock.expected_first, 0, machine.totals.processors - machine.totals.free, 0)


@variant(default=True)
def ahead_to(machine: Machine, expected: Table[Expected], clock: Clock, ahead: Ahead, time_s: float) -> Ahead:
    """Move a look ahead to a later time: running jobs have ended as requested, nothing has started. [s]"""
    i, level, used, used_gpus = ahead
    while i < clock.expected_first + clock.running and expected[i].end_s <= time_s:
        used -= expected[i].processors
        i += 1
    return (i, level, used, used_gpus)


@variant(default=True)
def powered_ahead(machine: Machine, ahead: Ahead) -> tuple[int, int]:
    """Powered processors and GPUs at a time ahead."""
    return (machine.totals.processors, 0)


@variant(default=True)
def look_ahead_s(machine: Machine) -> tuple[float, float]:
    """Length of a tick, and how far ahead the capacity is known; infinite for machines without. [s]"""
    return (np.inf, np.inf)


@variant(default=True)
def value_of(machine: Machine, job: int, end_s: float) -> tuple[float, float]:
    """Value of a job that ends at a time, and the same if that is not late, else 0."""
    return (0.0, 0.0)


@variant(default=True)
def late_of(machine: Machine, job: int, time_s: float) -> tuple[float, float]:
    """Ticks for which a job that has not ended by a time is late, and its value per tick of its requested time."""
    return (0.0, 0.0)


@variant(default=True)
def suspended_job(machine: Machine, row: int) -> int:
    """The suspended job in a row of `suspended_jobs`."""
    return -1


@variant(default=True)
def service_figure(machine: Machine, figure: int) -> float:
    """A figure that the machine adds up if it counts service, see `machine.service`."""
    return 0.0


@variant(default=True)
def count_to_the_end(machine: Machine, ending: Table[Ending], clock: Clock) -> None:
    """Add up service until the end of the run, if it ends at a given time."""
    return


@variant(default=True)
def remembers_starts(machine: Machine) -> bool:
    """Whether the machine knows when each job started, so that a batch can empty the log."""
    return False
