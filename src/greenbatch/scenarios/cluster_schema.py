"""Schema of ``[cluster]``, the machine: a pool of processors, node groups, or a file that describes nodes.

The keys of ``[[cluster.groups]]`` are the fields of `cluster.NodeGroup`, generated from it, and a few more.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import Field, SerializerFunctionWrapHandler, create_model, model_serializer, model_validator

from greenbatch.cluster.cluster import ContentionModel, PowerOn
from greenbatch.cluster.node_group import MemoryContention, NodeGroup
from greenbatch.node_lists import MOST_NODES
from greenbatch.scenarios.section import Count, NotNegative, Positive, Section, Seed, Text, Texts, need_one_of

_RANGES: dict[str, Any] = {
    "count": Annotated[int, Field(ge=1, le=MOST_NODES)],
    "processors": Annotated[int, Field(ge=1, le=1_000_000)],
    "gpus": Annotated[int, Field(ge=0, le=1_000_000)],
    "idle_fraction": Annotated[float, Field(ge=0, le=1)],
    "speed": Positive,
    "memory_gb": Positive,
    "partitions": Texts,
    "node_names": Text,
    "source": Text,
}
"""Types of fields of a node group that are not numbers >= 0."""

if TYPE_CHECKING:
    ContentionSection = Section
    GroupSection = Section
else:
    ContentionSection = create_model(
        "ContentionSection",
        __base__=Section,
        __doc__="Constants of the memory contention of a node: see ``cluster.MemoryContention``.",
        **{f.name: (float, f.default) for f in fields(MemoryContention)},
    )

    class _Group(Section):
        name: Text
        """Name of the group; its nodes are ``name0``, ``name1``, … unless ``node_names`` says otherwise."""
        type: Text | None = None
        """A node type of ``greenbatch cluster list``; the other keys replace its values."""
        clock_ghz: Positive | None = None
        """Clock of a processor; with ``flop_per_cycle`` it gives the peak and the speed. [GHz]"""
        flop_per_cycle: Positive | None = None
        """Floating-point operations of a processor per cycle."""
        contention: ContentionSection | None = None

    def _kind(field: str, hint: Any) -> Any:
        return _RANGES.get(field, {int: Count, float: NotNegative}.get(hint)) | None

    _HINTS = get_type_hints(NodeGroup)
    GroupSection = create_model(
        "GroupSection",
        __base__=_Group,
        __doc__="Equal nodes. Beside ``cluster.file``: values that replace those of the file's group of this name.",
        **{
            f.name: (_kind(f.name, _HINTS[f.name]), None)
            for f in fields(NodeGroup)
            if f.name not in _Group.model_fields
        },
    )

Groups = Annotated[tuple[GroupSection, ...], Field(strict=False, min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class ConstantCapacity(Section):
    """A part of the machine is powered all the time."""

    kind: Literal["constant"]
    fraction: Share = 1.0
    """Powered share of the processors and of the GPUs, rounded down to whole ones."""


class IntermittentCapacity(Section):
    """In each tick, a part of the machine is powered, or all of it (RARE, appendix B)."""

    kind: Literal["intermittent"]
    level: Share
    """Powered share, which is also the probability of a tick with this share; else all is powered."""
    seed: Seed = 0
    """Seed of the random numbers."""
    ticks: Count | None = None
    """How many ticks it is drawn for; the last holds forever. By default until after ``rules.pools.end_s``."""


class SeriesCapacity(Section):
    """Powered parts from a list or a file; the last holds forever."""

    kind: Literal["series"]
    fractions: Annotated[tuple[Share, ...], Field(strict=False, min_length=1)] | None = None
    """Powered share in each tick, rounded down to whole processors and GPUs."""
    file: Text | None = None
    """A CSV table of ``time_s`` (or ``tick``), ``processors`` and ``gpus`` (or ``capacity`` for both); a path, relative
    to the scenario file. [numbers of powered ones]"""

    @model_validator(mode="after")
    def _source(self) -> SeriesCapacity:
        need_one_of(self, "fractions", "file")
        return self


class PowerCapacity(Section):
    """As many processors and GPUs are powered as the site's renewable power and battery can run at full load."""

    kind: Literal["power"]
    full_power_per_unit_w: Positive
    """Power of a processor or GPU at full load, its part of idle power included: p_full (RARE, Eq. 4.1). [W]"""


CapacitySection = Annotated[
    ConstantCapacity | IntermittentCapacity | SeriesCapacity | PowerCapacity, Field(discriminator="kind")
]
_POWERED = ("gpus", "capacity")
"""Keys that make a cluster one whose capacity may follow the power."""
_OF_A_POOL = ("processors", "processors_per_machine", "idle_power_per_machine_w", "gpus")
"""Keys that describe a pool."""
_OF_BOTH = ("power_on", "groups", "file")


class LevelSection(Section):
    """A DVFS level below the highest."""

    speed: Annotated[float, Field(gt=0, le=1)]
    """Speed of a processor relative to the highest level."""
    power: Annotated[float, Field(ge=0, le=1)]
    """Power of a busy processor, or of a job whose own power is known, relative to the highest level."""


class _Nodes(Section):
    contention: ContentionModel | None = None
    """How jobs on one node slow each other down: see ``cluster.Cluster``. By default as in the file, else not."""
    power_on: PowerOn | None = None
    """When nodes, or the machines of a pool, are switched on: see ``cluster.Cluster``. By default they always are."""
    dvfs: Annotated[tuple[LevelSection, ...], Field(strict=False, min_length=1, max_length=15)] | None = None
    """DVFS levels below the highest, ``[[cluster.dvfs]]``: level 1, 2, … of ``rules.dvfs_level``."""
    reference_gflops: Positive | None = None
    """Peak of a processor of speed 1; by default that of the slowest nodes that state theirs. [Gflop/s]"""


class ClusterFile(_Nodes):
    """A TOML file that ``cluster.file`` or ``--cluster`` names: the keys of ``[cluster]`` with node groups."""

    groups: Groups


class ClusterSection(_Nodes):
    """The machine: one pool of processors; or nodes, by ``[[cluster.groups]]`` or a file."""

    processors: Literal["trace"] | Count = "trace"
    """Size of a pool: a number, or "trace" for the size stated in the trace."""
    processors_per_machine: Count = 8
    """Processors of a pool that share the idle power of one machine."""
    idle_power_per_machine_w: NotNegative = 50.0
    """Power of an idle machine of a pool; machines are always on, unless ``power_on`` says otherwise. [W]"""
    gpus: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """GPUs of a pool, which jobs use beside its processors; without this and ``capacity`` GPUs of jobs are ignored."""
    capacity: CapacitySection | None = None
    """How much of the cluster is powered when, ``[cluster.capacity]``; by default always everything."""
    file: Text | None = None
    """Description of the nodes: a ``slurm.conf``, a platform of IRMaSim (JSON) or a TOML file with ``[[groups]]``; a
    path, relative to the scenario file."""
    groups: Groups | None = None

    @property
    def pooled(self) -> bool:
        """Whether the cluster is a pool."""
        return self.groups is None and self.file is None

    @property
    def powered(self) -> bool:
        """Whether its capacity may follow the power."""
        return any(getattr(self, name) is not None for name in _POWERED)

    @model_validator(mode="after")
    def _one_kind(self) -> ClusterSection:
        if self.pooled:
            if extra := sorted(self.model_fields_set - {*_OF_A_POOL, *_POWERED, *_OF_BOTH}):
                raise ValueError(
                    f"found {extra[0]} without nodes; give [[cluster.groups]] or cluster.file, or leave it out"
                )
            return self
        if extra := [name for name in _OF_A_POOL if name in self.model_fields_set]:
            nodes = "[[cluster.groups]]" if self.file is None else "cluster.file"
            raise ValueError(
                f"found {extra[0]} beside {nodes}; leave it out: the nodes state their processors and power"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_the_pool(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        unused = () if self.pooled else _OF_A_POOL if self.capacity is not None else (*_OF_A_POOL, "capacity")
        return {key: value for key, value in written.items() if key not in unused}
