"""Machines as groups of equal nodes: a pool of processors, or nodes that jobs are placed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import ceil, inf
from typing import Literal, Self, get_args

from greenbatch.arguments import whole_number
from greenbatch.cluster.priority import Priority
from greenbatch.errors import InputError, visible
from greenbatch.notes import Note

ContentionModel = Literal["none", "irmasim-v1", "repaired"]
"""How jobs on one node slow each other down, see `NodeCluster.contention`."""


MOST_PROCESSORS = 2**31 - 1
"""Largest number of processors of a cluster."""
MOST_PARTITIONS = 62
"""Largest number of partitions of a cluster: the engine keeps them as bits."""
PowerOn = Literal["always", "first-use", "on-demand"]
"""When nodes are switched on, see `NodeCluster.power_on`."""


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


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as node groups, whose processors form one pool."""

    groups: tuple[NodeGroup, ...]
    """The groups of nodes; jobs use the processors of all groups as one pool."""

    def __post_init__(self) -> None:
        """Refuse clusters that are too large.

        Raises:
            InputError: it has over `MOST_PROCESSORS` processors.
        """
        if self.processors > MOST_PROCESSORS:
            problem = f"is {self.processors:,}"
            raise InputError(problem, field="cluster.processors", fix=f"at most {MOST_PROCESSORS:,}")

    @property
    def processors(self) -> int:
        """All processors of the cluster."""
        return sum(g.count * g.processors for g in self.groups)

    @property
    def idle_power_w(self) -> float:
        """Power of the whole cluster when nothing runs. [W]"""
        return sum(g.count * g.idle_power_w for g in self.groups)

    @property
    def first_power_w(self) -> float:
        """Power of the whole cluster before its first job: idle power, unless nodes are off until they are used. [W]"""
        return self.idle_power_w

    @property
    def capacity(self) -> float:
        """Work done per second by all processors: those of speed 1 count 1 each."""
        return sum(g.count * g.processors * g.speed for g in self.groups)

    @property
    def speed(self) -> float:
        """Work done per second by each processor.

        Raises:
            InputError: the groups have different speeds, which pooled processors cannot express.
        """
        speeds = {g.speed for g in self.groups}
        if len(speeds) != 1:
            fix = "describe nodes (NodeCluster), or give all groups one speed"
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
        processors = whole_number(processors, "cluster.processors", lowest=1)
        processors_per_machine = whole_number(processors_per_machine, "cluster.processors_per_machine", lowest=1)
        idle_w = ceil(processors / processors_per_machine) * idle_power_per_machine_w
        return cls((NodeGroup(name="pool", count=1, processors=processors, static_power_w=idle_w),))


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


@dataclass(frozen=True, slots=True)
class NodeCluster(Cluster):
    """A cluster whose jobs are placed on nodes.

    What a job takes (columns of `Workload`):

    - ``nodes`` = k: k different nodes, ``processors`` divided among them (the first ones get the remainder);
    - ``nodes`` = -1: processors of any nodes; with GPUs, as few nodes as have enough of them;
    - ``gpus``: GPUs of the job, divided among its nodes;
    - ``requested_memory_kb``: memory per processor, on the node of the processor;
    - ``partition``: only nodes of that partition, if the cluster has partitions;
    - ``exclusive`` = 1: idle nodes, which nobody else can use meanwhile.

    A job runs at the speed of its slowest node. Its power is its own if it is known, otherwise that of its processors
    and GPUs; nodes add their static power while jobs run on them.

    Raises:
        InputError: an unknown contention model, too many partitions, or two groups or nodes of one name.
    """

    contention: ContentionModel = "none"
    """``none``; ``irmasim-v1``: as published with InEPS, with its defect (contention vanishes at ten tasks);
    ``repaired``: the same up to four tasks, and speed never rises with tasks or demand."""
    power_on: PowerOn = "always"
    """``always``: an idle node draws its idle power; ``first-use``: a node is off until a job runs on it, and stays on
    (as in the code of InEPS); ``on-demand``: a node is shut down when nothing runs on it, and boots when a job is
    placed on it (cost-aware GAS-MARL, Eq. 1)."""
    dvfs: tuple[DvfsLevel, ...] = ()
    """DVFS levels below the highest, which is level 0; a job runs at one level from start to end."""
    priority: Priority | None = None
    """Weights of the multifactor priority and the partitions, if the cluster was read from a ``slurm.conf``."""
    notes: tuple[Note, ...] = field(default=(), compare=False)
    """What was assumed, or is unknown, in the file that the cluster was read from."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    """File name -> SHA-256 of every input file."""

    def __post_init__(self) -> None:
        Cluster.__post_init__(self)
        if self.contention not in get_args(ContentionModel):
            fix = "use " + " or ".join(get_args(ContentionModel))
            raise InputError(f"is {self.contention!r}", field="cluster.contention", fix=fix)
        if self.power_on not in get_args(PowerOn):
            fix = "use " + " or ".join(get_args(PowerOn))
            raise InputError(f"is {self.power_on!r}", field="cluster.power_on", fix=fix)
        if self.power_on == "on-demand" and self.contention == "irmasim-v1":
            fix = 'use contention = "repaired"'
            raise InputError("is on-demand, which irmasim-v1 does not know", field="cluster.power_on", fix=fix)
        if not self.groups:
            raise InputError("has no nodes", field="cluster.groups", fix="give at least one group")
        for kind, names in (("group", [g.name for g in self.groups]), ("node", self.node_names)):
            if len(set(names)) < len(names):
                twice = Counter(names).most_common(1)[0][0]
                raise InputError(f"{kind} {twice!r} is listed twice", field="cluster.groups", fix="name each once")
        if len(self.partitions) > MOST_PARTITIONS:
            fix = f"at most {MOST_PARTITIONS}: leave out some, or give those with the same nodes one name"
            raise InputError(f"{len(self.partitions)} partitions", field="cluster.groups", fix=fix)

    @property
    def first_power_w(self) -> float:
        """Power of the whole cluster before its first job. [W]"""
        return self.idle_power_w if self.power_on == "always" else 0.0

    @property
    def node_names(self) -> tuple[str, ...]:
        """The name of each node, in the order of the groups."""
        return tuple(name for g in self.groups for name in g.nodes)

    @property
    def knows_power(self) -> bool:
        """Whether the power of every job follows from its processors, if its own is unknown."""
        return all(g.power_per_processor_w > 0 for g in self.groups)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of all partitions, in order of first appearance."""
        return tuple(dict.fromkeys(name for g in self.groups for name in g.partitions))
