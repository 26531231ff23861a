"""Machines as groups of equal nodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Self

from greenbatch.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Identical nodes. A pooled cluster is one group of one large node: processors without identity.

    Raises:
        InputError: a value is out of range.
    """

    name: str
    """Name of the group."""
    count: int
    """Number of nodes, >= 1."""
    processors: int
    """Processors per node, >= 1."""
    idle_power_w: float
    """Power of one idle node, >= 0; nodes are always on. [W]"""
    speed: float = 1.0
    """Work done per second relative to the trace's machine, > 0."""

    def __post_init__(self) -> None:
        for field, lowest in (("count", 1), ("processors", 1)):
            if getattr(self, field) < lowest:
                raise InputError(f"is {getattr(self, field)}", field=f"cluster.{field}", fix=f"it must be >= {lowest}")
        if not 0 < self.speed < float("inf"):
            raise InputError(f"is {self.speed}", field="cluster.speed", fix="it must be > 0")
        if not 0 <= self.idle_power_w < float("inf"):
            raise InputError(f"is {self.idle_power_w}", field="cluster.idle_power_w", fix="it must be >= 0")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as node groups."""

    groups: tuple[NodeGroup, ...]
    """The groups of nodes; jobs use the processors of all groups as one pool."""

    @property
    def processors(self) -> int:
        """All processors of the cluster."""
        return sum(g.count * g.processors for g in self.groups)

    @property
    def idle_power_w(self) -> float:
        """Power of the whole cluster when nothing runs. [W]"""
        return sum(g.count * g.idle_power_w for g in self.groups)

    @property
    def speed(self) -> float:
        """Work done per second by each processor.

        Raises:
            InputError: the groups have different speeds, which pooled processors cannot express.
        """
        speeds = {g.speed for g in self.groups}
        if len(speeds) != 1:
            fix = "jobs are not placed on nodes yet: give all groups one speed"
            raise InputError(f"groups of different speeds {sorted(speeds)}", field="cluster.speed", fix=fix)
        return speeds.pop()

    @classmethod
    def pooled(
        cls, processors: int, *, processors_per_machine: int = 8, idle_power_per_machine_w: float = 50.0
    ) -> Self:
        """Processors without node identity; idle power counts per machine, the last of which may be partly filled.

        Source of the defaults: GAS-MARL §5.2.

        Args:
            processors: processors of the cluster, >= 1.
            processors_per_machine: processors that share the idle power of one machine, >= 1.
            idle_power_per_machine_w: power of one idle machine, >= 0; machines are always on. [W]

        Raises:
            InputError: a value is out of range.
        """
        if processors < 1 or processors_per_machine < 1:
            raise InputError(f"a cluster of {processors} processors", field="cluster.processors", fix="give at least 1")
        idle_w = ceil(processors / processors_per_machine) * idle_power_per_machine_w
        return cls((NodeGroup(name="pool", count=1, processors=processors, idle_power_w=idle_w),))
