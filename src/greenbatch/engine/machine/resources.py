"""What the engine asks of what a machine has: what fits, what a job takes and gives back, what a blocked job reserves.

A machine is a NamedTuple with the field ``totals``. A new kind of machine is one file: its class, what it does for the
functions here, and `machine_of` for the cluster that describes it. `fits`, `take` and `give` have to be implemented;
what the others do by default holds for a pool. So it is for the functions that stand where nodes do something else: in
`competition`, `reservation`, `rates`, `power_states`, `preview` and `node_choice`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Protocol

import numpy as np

from greenbatch.engine.records import MachineTotals
from greenbatch.machine_code.variants import variant
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
def next_change_s(machine: Machine, now_s: float) -> float:
    """When waiting jobs may fit although nothing starts or ends; infinite if only jobs change a machine. [s]"""
    return np.inf


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
