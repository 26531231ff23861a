"""A cluster of parts: groups of nodes, how jobs are placed on them, and what of them is powered when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import whole_number
from greenbatch.cluster.capacity import Capacity
from greenbatch.cluster.node_group import DvfsLevel, NodeGroup
from greenbatch.cluster.priority import Priority
from greenbatch.errors import InputError
from greenbatch.notes import Note

Floats = NDArray[np.float64]
ContentionModel = Literal["none", "irmasim-v1", "repaired"]
"""How jobs on one node slow each other down, see `Cluster.contention`."""
PowerOn = Literal["always", "first-use", "on-demand"]
"""When nodes are switched on, see `Cluster.power_on`."""
_OF_POOLS = ("always", "on-demand")

MOST_PROCESSORS = 2**31 - 1
"""Largest number of processors of a cluster."""
_OF_NODES = {"contention": "none", "dvfs": ()}
"""Fields of clusters of nodes -> what a pool has."""
MOST_PARTITIONS = 62
"""Largest number of partitions of a cluster: the engine keeps them as bits."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as groups of nodes; made by `pooled`, `of_units` or `of_nodes`.

    On a pool a job takes ``processors`` of all groups, wherever they are, and ``gpus`` if there are any. On nodes
    (``on_nodes``) it takes, as columns of `Workload`:

    - ``nodes`` = k: k different nodes, ``processors`` divided among them (the first ones get the remainder);
    - ``nodes`` = -1: processors of any nodes; with GPUs, as few nodes as have enough of them;
    - ``gpus``: GPUs of the job, divided among its nodes;
    - ``requested_memory_kb``: memory per processor, on the node of the processor;
    - ``partition``: only nodes of that partition, if the cluster has partitions;
    - ``exclusive`` = 1: idle nodes, which nobody else can use meanwhile.

    A job runs at the speed of its slowest node. Its power is its own if it is known, otherwise that of its processors
    and GPUs; nodes add their static power while jobs run on them. What is switched off draws nothing.

    Raises:
        InputError: it is too large, a choice is unknown, two groups or nodes have one name, or more is powered than
            there is.
    """

    groups: tuple[NodeGroup, ...]
    """The groups of nodes."""
    on_nodes: bool = field(default=False, kw_only=True)
    """Whether jobs are placed on nodes; otherwise the processors of all groups are one pool."""
    contention: ContentionModel = field(default="none", kw_only=True)
    """``none``; ``irmasim-v1``: as published with InEPS, with its defect (contention vanishes at ten tasks);
    ``repaired``: the same up to four tasks, and speed never rises with tasks or demand."""
    power_on: PowerOn = field(default="always", kw_only=True)
    """``always``: an idle node draws its idle power; ``first-use``: a node is off until a job runs on it, and stays on
    (as in the code of InEPS); ``on-demand``: a node is shut down when nothing runs on it, and boots when a job is
    placed on it (cost-aware GAS-MARL, Eq. 1). On a pool, ``on-demand`` counts the idle power of as many machines as the
    busy processors need, without boots, and ``first-use`` is refused."""
    machine_processors: int = field(default=0, kw_only=True)
    """Processors of each machine of a pool that is on demand; else 0."""
    dvfs: tuple[DvfsLevel, ...] = field(default=(), kw_only=True)
    """DVFS levels below the highest, which is level 0; a job runs at one level from start to end."""
    powered: Capacity | None = field(default=None, kw_only=True)
    """What is powered when; None: always everything, so that jobs are neither admitted to pools nor suspended."""
    priority: Priority | None = field(default=None, kw_only=True)
    """Weights of the multifactor priority and the partitions, if the cluster was read from a ``slurm.conf``."""
    notes: tuple[Note, ...] = field(default=(), compare=False, kw_only=True)
    """What was assumed, or is unknown, in the file that the cluster was read from."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, kw_only=True)
    """File name -> SHA-256 of every input file, of nodes or capacity."""

    def __post_init__(self) -> None:
        if self.processors > MOST_PROCESSORS:
            problem = f"is {self.processors:,}"
            raise InputError(problem, field="cluster.processors", fix=f"at most {MOST_PROCESSORS:,}")
        if self.power_on not in (choices := get_args(PowerOn) if self.on_nodes else _OF_POOLS):
            fix = "use " + " or ".join(choices)
            raise InputError(f"is {self.power_on!r}", field="cluster.power_on", fix=fix)
        if (self.machine_processors > 0) != (self.power_on == "on-demand" and not self.on_nodes):
            problem = 'goes with power_on = "on-demand" on a pool'
            raise InputError(problem, field="cluster.processors_per_machine", fix="use Cluster.pooled")
        if self.on_nodes:
            self._check_nodes()
        elif given := [name for name, none in _OF_NODES.items() if getattr(self, name) != none]:
            problem, fix = "is for nodes, and the cluster is a pool", "leave it out, or use Cluster.of_nodes"
            raise InputError(problem, field=f"cluster.{given[0]}", fix=fix)
        if self.powered is not None:
            for name in ("processors", "gpus"):
                given, most = getattr(self.powered, name), getattr(self, name)
                if (above := np.flatnonzero(given > most)).size:
                    problem = f"row {above[0] + 1} has {given[above[0]]}, the machine has {most}"
                    raise InputError(problem, field=f"capacity.{name}", fix="give at most what the machine has")

    def _check_nodes(self) -> None:
        if self.contention not in (choices := get_args(ContentionModel)):
            fix = "use " + " or ".join(choices)
            raise InputError(f"is {self.contention!r}", field="cluster.contention", fix=fix)
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

    # ------------------------------------------------------------ what there is

    @property
    def processors(self) -> int:
        """All processors of the cluster."""
        return sum(g.count * g.processors for g in self.groups)

    @property
    def gpus(self) -> int:
        """All GPUs of the cluster."""
        return sum(g.count * g.gpus for g in self.groups)

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
            fix = "describe nodes (Cluster.of_nodes), or give all groups one speed"
            raise InputError(f"groups of different speeds {sorted(speeds)}", field="cluster.speed", fix=fix)
        return speeds.pop()

    @property
    def node_names(self) -> tuple[str, ...]:
        """The name of each node, in the order of the groups; none on a pool."""
        return tuple(name for g in self.groups for name in g.nodes) if self.on_nodes else ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of all partitions, in order of first appearance."""
        return tuple(dict.fromkeys(name for g in self.groups for name in g.partitions))

    # ------------------------------------------------------------ power

    @property
    def knows_power(self) -> bool:
        """Whether the power of every job follows from its processors, if its own is unknown."""
        return self.on_nodes and all(g.power_per_processor_w > 0 for g in self.groups)

    @property
    def idle_power_w(self) -> float:
        """Power of the whole cluster when nothing runs. [W]"""
        return sum(g.count * g.idle_power_w for g in self.groups)

    @property
    def first_power_w(self) -> float:
        """Power of what is switched on before the first job. [W]"""
        if self.powered is not None:
            return float(self.idle_levels_w[0])
        return self.idle_power_w if self.power_on == "always" else 0.0

    @property
    def rest_power_w(self) -> float:
        """Power of the whole cluster after the last job. [W]"""
        return 0.0 if self.power_on == "on-demand" else self.idle_power_w

    @property
    def machine_power_w(self) -> float:
        """Power of each machine of a pool while it is on, if that is on demand; else 0. [W]"""
        machines = ceil(self.processors / self.machine_processors) if self.machine_processors else 0
        return self.idle_power_w / machines if machines else 0.0

    @property
    def machine_power_per_processor_w(self) -> float:
        """The least that machines on demand draw for each busy processor of a pool: with all of theirs busy. [W]"""
        return self.machine_power_w / max(self.machine_processors, 1)

    @property
    def follows_power(self) -> bool:
        """Whether something is switched off at times."""
        levels = self.powered
        return levels is not None and (levels.processors.min(), levels.gpus.min()) != (self.processors, self.gpus)

    @property
    def capacity_levels(self) -> Capacity:
        """What is powered when."""
        return self.powered or Capacity.constant(self.processors, self.gpus)

    @property
    def idle_levels_w(self) -> Floats:
        """Power of the idle machine at each of `capacity_levels`, shape (k,). [W]"""
        return self.idle_at_w(self.capacity_levels.processors, self.capacity_levels.gpus)

    def idle_at_w(self, processors: NDArray[np.int64], gpus: NDArray[np.int64]) -> Floats:
        """Power of the idle machine of which so many processors and GPUs are powered, each of shape (k,). [W]"""
        on_w = self.idle_power_w if self.power_on == "always" else 0.0
        if self.on_nodes:  # what is not powered are processors of empty nodes
            return np.asarray(on_w * processors / self.processors)
        return np.asarray(on_w * (processors + gpus) / (self.processors + self.gpus))

    def idle_energy_j(self, start_s: float, end_s: float) -> float:
        """Energy over an interval of what is powered, when nothing runs. [J]"""
        units_s = sum(self.capacity_levels.available_s(start_s, end_s))
        return self.idle_power_w * units_s / (self.processors + self.gpus)

    # ------------------------------------------------------------ how to make one

    @classmethod
    def pooled(
        cls, processors: int, *, processors_per_machine: int = 8, idle_power_per_machine_w: float = 50.0,
        power_on: PowerOn = "always",
    ) -> Self:  # fmt: skip
        """Processors without node identity; idle power counts per machine, the last of which may be partly filled.

        Source of the defaults: GAS-MARL §5.2.

        Args:
            processors: processors of the cluster, >= 1.
            processors_per_machine: processors that share the idle power of one machine, >= 1.
            idle_power_per_machine_w: power of one idle machine, >= 0. [W]
            power_on: ``always``, or ``on-demand``: only the machines that the busy processors need draw power.

        Raises:
            InputError: a value is out of range.
        """
        processors = whole_number(processors, "cluster.processors", lowest=1)
        processors_per_machine = whole_number(processors_per_machine, "cluster.processors_per_machine", lowest=1)
        idle_w = ceil(processors / processors_per_machine) * idle_power_per_machine_w
        group = NodeGroup(name="pool", count=1, processors=processors, static_power_w=idle_w)
        return cls(
            (group,), power_on=power_on, machine_processors=0 if power_on == "always" else processors_per_machine
        )

    @classmethod
    def of_units(
        cls, processors: int, gpus: int = 0, *, powered: Capacity | None = None, idle_power_w: float = 0.0,
        power_on: PowerOn = "always", processors_per_machine: int = 0,
    ) -> Self:  # fmt: skip
        """Pooled processors and GPUs, of which only some are powered at a time; jobs may be suspended.

        Args:
            processors: all processors, >= 1.
            gpus: all GPUs, >= 0.
            powered: what is powered when; by default everything.
            idle_power_w: power of the idle machine if everything is powered, >= 0. [W]
            power_on: see `pooled`; GPUs need no machines.
            processors_per_machine: processors that share the idle power of one machine, if it is on demand.

        Raises:
            InputError: a value is out of range.
        """
        processors = whole_number(processors, "cluster.processors", lowest=1)
        gpus = whole_number(gpus, "cluster.gpus", lowest=0)
        group = NodeGroup(name="pool", count=1, processors=processors, static_power_w=idle_power_w, gpus=gpus)
        machines: dict[str, Any] = {"power_on": power_on, "machine_processors": processors_per_machine}
        return cls((group,), powered=powered or Capacity.constant(processors, gpus), **machines)

    @classmethod
    def of_nodes(cls, groups: Sequence[NodeGroup], contention: ContentionModel = "none", **parts: Any) -> Self:
        """Nodes that jobs are placed on.

        Args:
            groups: the groups of nodes.
            contention: how jobs on one node slow each other down.
            parts: other fields of a cluster.

        Raises:
            InputError: see the class.
        """
        return cls(tuple(groups), on_nodes=True, contention=contention, **parts)
