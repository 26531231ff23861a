"""Groups of equal nodes: processors, GPUs, memory, speed and power."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from math import inf

from greenbatch.errors import InputError, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryContention:
    """Constants of the memory-bandwidth contention of one node, in MB/s unless stated; see `engine.machine.rates`.

    The defaults are those of IRMaSim's examples, fitted to a processor with four cores.
    """

    b: float = -1.85e-5
    """Speed lost per MB/s above the saturation bandwidth, < 0. [s/MB]"""
    c: float = 32_000.0
    """Requested bandwidth of all tasks at which the memory saturates."""
    da: float = 1.75
    """With n further tasks, the speed begins to fall at a demand of (da - n) x db."""
    db: float = 2_000.0
    """See ``da``."""
    dc: float = 50_000.0
    """With n further tasks, it falls over a width of dc - n x dd."""
    dd: float = 6_000.0
    """See ``dc``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Identical nodes. A pooled cluster is one group of one large node: processors without identity.

    Raises:
        InputError: a value is out of range.
    """

    name: str
    """Name of the group; its nodes are called ``name0``, ``name1``, … unless ``node_names`` says otherwise."""
    count: int
    """Number of nodes, >= 1."""
    processors: int
    """Processors per node, >= 1."""
    static_power_w: float
    """Power of a node on which a job runs, without that of its busy processors and GPUs, >= 0. [W]"""
    idle_fraction: float = 1.0
    """Power of an idle node as a fraction of its static power, 0 to 1."""
    speed: float = 1.0
    """Work done per second relative to the trace's machine, > 0."""
    gpus: int = 0
    """GPUs per node, >= 0."""
    memory_gb: float = inf
    """Memory per node, > 0; infinite if it never limits jobs. [GB]"""
    power_per_processor_w: float = 0.0
    """Power of each busy processor of jobs whose own power is unknown, >= 0. [W]"""
    power_per_gpu_w: float = 0.0
    """Power of each busy GPU of jobs whose own power is unknown, >= 0. [W]"""
    gflops_per_processor: float = 0.0
    """Peak of one processor, 0 if unknown. [Gflop/s]"""
    partitions: tuple[str, ...] = ()
    """Partitions that the nodes belong to; none: jobs of every partition can use them."""
    boot_s: float = 0.0
    """Time to boot a node, >= 0. [s]"""
    shutdown_s: float = 0.0
    """Time to shut a node down, >= 0. [s]"""
    boot_energy_j: float = 0.0
    """Energy of one boot, >= 0. [J]"""
    shutdown_energy_j: float = 0.0
    """Energy of one shutdown, >= 0. [J]"""
    min_on_s: float = 0.0
    """Shortest time that a node stays on, >= 0. [s]"""
    contention: MemoryContention = MemoryContention()
    """Constants of the contention model, if the cluster has one."""
    node_names: tuple[str, ...] = ()
    """Names of the nodes, one each; derived from the name of the group if not given."""
    source: str = ""
    """Where the numbers are from, such as a SPECpower record."""

    def __post_init__(self) -> None:
        lowest = {"count": 1, "processors": 1, "gpus": 0}
        for name, bound in lowest.items():
            if getattr(self, name) < bound:
                self._refuse(name, f"it must be >= {bound}")
        object.__setattr__(self, "name", visible(self.name))
        object.__setattr__(self, "partitions", tuple(map(visible, self.partitions)))
        object.__setattr__(self, "node_names", tuple(map(visible, self.node_names)))
        for each in fields(self):
            if each.name.endswith(("_w", "_s", "_j")) and not 0 <= getattr(self, each.name) < inf:
                self._refuse(each.name, "it must be >= 0")
        for name in ("boot", "shutdown"):
            if getattr(self, f"{name}_energy_j") > 0 and not getattr(self, f"{name}_s"):
                self._refuse(f"{name}_energy_j", f"give {name}_s as well, so that it has a power")
        if not 0 < self.speed < inf:
            self._refuse("speed", "it must be > 0")
        if not 0 <= self.idle_fraction <= 1:
            self._refuse("idle_fraction", "it must be between 0 and 1")
        if not self.memory_gb > 0:
            self._refuse("memory_gb", "it must be > 0")
        if not 0 <= self.gflops_per_processor < inf:
            self._refuse("gflops_per_processor", "it must be >= 0")
        self._check_names()

    def _check_names(self) -> None:
        if len(set(self.partitions)) < len(self.partitions):
            twice = Counter(self.partitions).most_common(1)[0][0]
            raise InputError(f"{twice!r} is listed twice", field="cluster.partitions", fix="name each partition once")
        if self.node_names and len(self.node_names) != self.count:
            problem = f"has {len(self.node_names)} node names for {self.count} nodes"
            raise InputError(problem, field="cluster.node_names", fix="name each node once")

    def _refuse(self, name: str, fix: str) -> None:
        raise InputError(f"is {getattr(self, name)}", field=f"cluster.{name}", fix=fix)

    @property
    def idle_power_w(self) -> float:
        """Power of one idle node. [W]"""
        return self.idle_fraction * self.static_power_w

    @property
    def nodes(self) -> tuple[str, ...]:
        """The name of each node."""
        return self.node_names or tuple(f"{self.name}{k}" for k in range(self.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class DvfsLevel:
    """A lower frequency and voltage of all processors.

    Raises:
        InputError: a value is out of range.
    """

    speed: float
    """Speed of a processor relative to the highest level, > 0 and at most 1."""
    power: float
    """Power of a busy processor, or of a job whose own power is known, relative to the highest level, 0 to 1."""

    def __post_init__(self) -> None:
        if not 0 < self.speed <= 1:
            raise InputError(f"is {self.speed}", field="cluster.dvfs.speed", fix="give a number > 0, at most 1")
        if not 0 <= self.power <= 1:
            raise InputError(f"is {self.power}", field="cluster.dvfs.power", fix="give a number from 0 to 1")
