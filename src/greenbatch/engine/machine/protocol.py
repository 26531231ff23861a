"""What the engine asks of a machine: a NamedTuple with the field ``totals``, and these functions.

A new kind of machine is one file: its class, its implementations of the functions, and `machine_of` for the cluster
that describes it.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Protocol

from greenbatch.engine.records import MachineTotals
from greenbatch.engine.variants import variant


class Machine(Protocol):
    """A machine, as a part of the state."""

    @property
    def totals(self) -> MachineTotals:
        """Processors and power of the machine as a whole."""
        ...


@singledispatch
def machine_of(cluster: object) -> Machine:
    """The idle machine that a cluster describes; register a function for a new class of clusters.

    Raises:
        TypeError: no machine is registered for it.
    """
    raise TypeError(f"no machine is registered for {type(cluster).__name__}")


@variant()
def fits(machine: Machine, processors: int, now_s: float) -> bool:
    """Whether a job that asks for some processors can start now."""
    raise TypeError


@variant()
def take(machine: Machine, processors: int, power_w: float) -> None:
    """Occupy what a job takes; it must fit."""
    raise TypeError


@variant()
def give(machine: Machine, processors: int, power_w: float, is_last: bool) -> None:
    """Release what a job took.

    Args:
        machine: the machine.
        processors: processors of the job.
        power_w: its power. [W]
        is_last: nothing runs any more.
    """
    raise TypeError


@variant()
def next_change_s(machine: Machine, now_s: float) -> float:
    """When waiting jobs may fit although nothing starts or ends, infinite if never. [s]"""
    raise TypeError
