"""Schedulers that must keep the outages of a record free, beside the same schedulers without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from greenbatch.engine.program import Program
from greenbatch.engine.program import Scheduler as Simulated
from greenbatch.engine.views.interface import Policy
from greenbatch.errors import InputError
from greenbatch.policies.compiled.as_recorded import AS_RECORDED
from greenbatch.workload import Outage, Workload

SUFFIX = " with outages"
"""What follows the name of a scheduler that keeps outages free."""


@dataclass(frozen=True, slots=True)
class DuringOutages:
    """A scheduler that starts no job that would run into an outage."""

    name: str
    scheduler: Simulated
    outages: tuple[Outage, ...]

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs."""
        return replace(self.scheduler.program(workload), name=self.name, outages=self.outages)

    def policy(self) -> Policy | None:
        """A new object of the policy for one simulation; None if the engine runs it."""
        return self.scheduler.policy()


def with_outages(table: Mapping[str, Simulated], outages: tuple[Outage, ...]) -> dict[str, Simulated]:
    """Schedulers, and each of them once more with outages, except ``as-recorded``, which has them already.

    Raises:
        InputError: there are no outages.
    """
    if not outages:
        problem = "the record shows no outages, or they cannot be told: no waits, or over 1% of its work is left out"
        raise InputError(problem, field="--outages", fix="leave it out, or keep all jobs that ran")
    found = dict(table)
    for name, each in table.items():
        if name.partition("+")[0] != AS_RECORDED.name:
            found[name + SUFFIX] = DuringOutages(name + SUFFIX, each, outages)
    return found
