"""Platforms of the simulator IRMaSim, as JSON (https://github.com/irmasim/IRMaSim and its examples).

One file holds ``platform``, and the library of its ``node`` and ``processor`` types. Clock [GHz] x
``dpflops_per_cycle`` is the peak of a core; ``static_power`` [W] counts per processor, ``dynamic_power`` [W] per core,
and ``min_power`` is the fraction of the static power that an idle processor draws. As in IRMaSim, the memory of a node
limits no jobs and links are ignored.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from greenbatch.cluster.cluster import Cluster
from greenbatch.cluster.groups import with_speeds
from greenbatch.cluster.node_group import MemoryContention, NodeGroup
from greenbatch.errors import InputError
from greenbatch.json_input import Json, read_json
from greenbatch.node_lists import MOST_NODES
from greenbatch.notes import Note

_CONSTANTS = ("b", "c", "da", "db", "dc", "dd")


def read_platform(path: Path) -> Cluster:
    """A cluster from a platform of IRMaSim.

    Nodes are called ``node0``, ``node1``, … in the order of listing, with ``cluster1.`` before them where the platform
    has several clusters. Speed is relative to the slowest nodes; a note states their peak.

    Raises:
        InputError: the file is not JSON, or a field is missing, of the wrong type or out of range; the processor types
            shipped with IRMaSim lack powers.
    """
    content, sha256 = read_json(path)
    platform = _only(content.field("platform"))
    node_types, processor_types = content.field("node").table(), content.field("processor").table()
    clusters = platform.field("clusters").rows()
    groups: list[NodeGroup] = []
    used: Counter[str] = Counter()
    for k, cluster in enumerate(clusters):
        label = cluster.field("id", f"cluster{k}").text()
        prefix = f"{label}." if len(clusters) > 1 else ""
        first = 0
        for listed in cluster.field("nodes").rows():
            kind = listed.field("type").text()
            node = listed.field("type").choice(node_types, "node type")
            count = listed.field("number", 1).whole(1, MOST_NODES)
            name = prefix + kind
            used[name] += 1
            names = tuple(f"{prefix}node{n}" for n in range(first, first + count))
            first += count
            try:
                groups.append(_group(name if used[name] == 1 else f"{name}-{used[name]}", names, node, processor_types))
            except InputError as error:
                if error.file is not None:
                    raise
                raise node.refuse(
                    f"{(error.field or '').rpartition('.')[2]} {error.problem}", error.fix or ""
                ) from None
    notes = (Note("the memory of nodes limits no jobs, as in IRMaSim", about="memory_gb", level="fact"),)
    try:
        read = Cluster.of_nodes(tuple(groups), notes=notes, sources={path.name: sha256})
    except InputError as error:
        raise platform.refuse(error.problem, error.fix or "correct it") from None
    return with_speeds(read, [group.name for group in groups])


def _only(platforms: Json) -> Json:
    """The platform of a file that holds one."""
    named = platforms.table()
    if len(named) != 1:
        raise platforms.refuse(f"holds {len(named)} platforms", "keep the one to simulate")
    return next(iter(named.values()))


def _group(name: str, names: tuple[str, ...], node: Json, types: dict[str, Json]) -> NodeGroup:
    """Equal nodes of a type; the powers of several processors add up."""
    cores, static_w, idle_w, dynamic_w = 0, 0.0, 0.0, 0.0
    fractions: set[float] = set()
    peaks: set[float] = set()
    constants: set[MemoryContention] = set()
    for listed in node.field("processors").rows():
        processor = listed.field("type").choice(types, "processor type")
        number = listed.field("number", 1).whole(1, 1024)
        own = processor.field("cores").whole(1, 1_000_000) * number
        static = processor.field("static_power").number(0, 1e9) * number
        cores, static_w = cores + own, static_w + static
        fractions.add(idle := processor.field("min_power").number(0, 1))
        idle_w += static * idle
        dynamic_w += own * processor.field("dynamic_power").number(0, 1e9)
        flop = processor.field("dpflops_per_cycle").number(1e-6, 1e6)
        peaks.add(processor.field("clock_rate").number(1e-6, 1e6) * flop)
        constants.add(_contention(processor))
    for what, found in (("speeds", peaks), ("constants of contention", constants)):
        if len(found) > 1:
            raise node.field("processors").refuse(f"processors of different {what}", "give all of a node the same")
    return NodeGroup(
        name=name, count=len(names), processors=cores, static_power_w=static_w,
        idle_fraction=fractions.pop() if len(fractions) == 1 else idle_w / static_w if static_w else 1.0,
        power_per_processor_w=dynamic_w / cores, gflops_per_processor=peaks.pop(), contention=constants.pop(),
        node_names=names, source=f"{node.file.name}: {node.path}",
    )  # fmt: skip


def _contention(processor: Json) -> MemoryContention:
    defaults = MemoryContention()
    return MemoryContention(**{key: processor.field(key, getattr(defaults, key)).number() for key in _CONSTANTS})
