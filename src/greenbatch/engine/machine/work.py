"""What the engine asks of a machine on which run times vary, or nodes boot: when jobs begin and end."""

from __future__ import annotations

import numpy as np

from greenbatch.engine.machine.resources import Machine
from greenbatch.engine.records import Clock, Ending, Table
from greenbatch.engine.variants import variant


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


@variant(default=True, inlined=False)
def switch(machine: Machine, now_s: float) -> int:
    """Carry out one switch that is due; return the number of the node."""
    return -1


@variant(default=True)
def most_switches(machine: Machine) -> int:
    """Largest number of switches between two events of jobs."""
    return 0


@variant(default=True)
def update_ends(machine: Machine, ending: Table[Ending], clock: Clock) -> None:
    """Move the ends of running jobs whose rates have changed by the last start or end."""


@variant(default=True)
def expected_run_s(machine: Machine, job: int, requested_s: float) -> float:
    """Expected run time of a job that fits now, from its requested time and the speed of what it would take. [s]"""
    return requested_s


@variant(default=True)
def expect_ends(machine: Machine, ending: Table[Ending], clock: Clock, arrival_s: float) -> None:
    """Compute the ends of running jobs before the next event, if they are not known; the next submission is given."""


@variant(default=True)
def advance_work(machine: Machine, ending: Table[Ending], clock: Clock, from_s: float, is_end: bool) -> None:
    """Bring the running jobs up to date after the clock has moved.

    Args:
        machine: the machine.
        ending: running jobs by actual end.
        clock: the clock.
        from_s: where the clock was before. [s]
        is_end: a job ends now.
    """
