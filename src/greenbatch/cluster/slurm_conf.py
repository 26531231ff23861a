"""A cluster from a ``slurm.conf``: nodes, partitions and the weights of the multifactor priority."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from greenbatch.cluster.cluster import Cluster
from greenbatch.cluster.groups import unknown_power
from greenbatch.cluster.node_group import NodeGroup
from greenbatch.cluster.priority import Partition, Priority, PriorityWeights
from greenbatch.cluster.slurm_text import Entry, read_entries
from greenbatch.errors import InputError, did_you_mean
from greenbatch.node_lists import node_list
from greenbatch.notes import Note

_GB_PER_MB = 1024.0**2 / 1e9
"""RealMemory counts megabytes of 1024^2 bytes."""
_GPUS = re.compile(
    r"gpu(?::[\w.-]*[A-Za-z_][\w.-]*)?(?::no_consume)?(?::(\d{1,6}))?(?:\(.*\))?", re.IGNORECASE | re.ASCII
)
_GRES_COMMA = re.compile(r",(?![^(]*\))")
_WEIGHTS = {
    "age": "priorityweightage", "fair_share": "priorityweightfairshare", "job_size": "priorityweightjobsize",
    "partition": "priorityweightpartition", "qos": "priorityweightqos",
}  # fmt: skip
_TIMES = {
    "max_age_s": ("prioritymaxage", 0.0), "decay_half_life_s": ("prioritydecayhalflife", -1.0),
    "calc_period_s": ("prioritycalcperiod", 0.0),
}  # fmt: skip
_IGNORED = {
    "priorityflags": "",
    "priorityweighttres": "",
    "priorityweightassoc": "0",
    "priorityusageresetperiod": "none",
}
"""Keys that change priorities but are not read -> the value without effect."""
_LARGEST_WEIGHT = 2**32 - 1
_OUT_OF_SERVICE = ("down", "drain", "fail", "error")
"""How states of nodes begin on which no job starts; ``future`` is no node yet, and all other states are usable."""
_PARTITION_STATES = ("up", "down", "drain", "inactive")
"""Only partitions that are ``up`` take new jobs and start them."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """One ``NodeName`` line: its nodes, which are alike."""

    entry: Entry
    names: tuple[str, ...]
    group: NodeGroup


def looks_like_slurm_conf(content: bytes) -> bool:
    """Whether a text has lines that only a ``slurm.conf`` has."""
    return (
        re.search(rb"(?im)^\s*((nodename|partitionname|clustername|slurmctldhost)\s*=|include\s)", content) is not None
    )


def read_slurm_conf(path: Path) -> Cluster:
    """A cluster from a ``slurm.conf``, with ``priority`` set.

    Processors are ``CPUs`` as Slurm counts them, else boards x sockets x cores x threads; GPUs are those of ``Gres``.
    The nodes of a ``NodeName`` line form a group of that name; if they are in different partitions, one group for each
    combination. Left out, each with a note: nodes out of service (``State=DOWN``, ``DRAIN`` or ``FAIL`` of
    ``NodeName`` or ``DownNodes``), those of ``State=FUTURE``, those in no partition, partitions that are not
    ``State=UP``, and partitions without nodes, such as those of node sets that are filled at run time. The power of
    nodes is not in the file: it is 0 W, which a note says, until a scenario states it. Keys: ``man slurm.conf`` (Slurm
    24.05).

    Raises:
        InputError: a file cannot be read, is malformed, or names no nodes, a node twice, or unknown nodes; or nothing
            is in service.
    """
    read = read_entries(path)
    nodes = _nodes(read.entries, path)
    known = {name: line for line in nodes for name in line.names}
    sets = _node_sets(read.entries, nodes, known)
    states = _states(read.entries, nodes, known, sets)
    partitions = _partitions(read.entries, known, sets)
    groups, notes = _groups(nodes, states, partitions)
    if not groups:
        if all(map(_is_out, states.values())):
            raise InputError("no node is in service", file=path, fix="set State=UNKNOWN for the nodes to simulate")
        fix = "give PartitionName=... Nodes=... State=UP"
        raise InputError("no node in service is in a partition that is UP", file=path, fix=fix)
    weights, ignored = _weights(read.entries)
    used = {name for group in groups for name in group.partitions}
    priority = Priority(weights=weights, partitions=tuple(each.partition for each in partitions if each.name in used))
    try:
        cluster = Cluster.of_nodes(
            tuple(groups), priority=priority, notes=(*read.notes, *notes, *ignored), sources=read.sources
        )
    except InputError as error:  # of the cluster as a whole
        raise InputError(error.problem, file=path, field=(error.field or "").partition(".")[2], fix=error.fix) from None
    return replace(cluster, notes=(*cluster.notes, *unknown_power(cluster)))


def _with_defaults(entries: Sequence[Entry], key: str) -> list[Entry]:
    """The lines of a kind, each with the values of the DEFAULT lines above it."""
    defaults: dict[str, str] = {}
    found = []
    for entry in entries:
        if key not in entry.values:
            continue
        if entry.values[key].lower() == "default":
            defaults |= {k: v for k, v in entry.values.items() if k != key}
        else:
            found.append(replace(entry, values={**defaults, **entry.values}))
    return found


def _listed(entry: Entry, key: str) -> tuple[str, ...]:
    """The nodes that a key lists."""
    try:
        return node_list(entry.values[key])
    except InputError as error:
        raise entry.refuse(key, error.problem, error.fix or "") from None


def _nodes(entries: Sequence[Entry], path: Path) -> list[_Nodes]:
    found: list[_Nodes] = []
    seen: dict[str, int] = {}
    for entry in _with_defaults(entries, "nodename"):
        names = _listed(entry, "nodename")
        if twice := next((name for name in names if name in seen), None):
            raise entry.refuse("nodename", f"{twice!r} is on line {seen[twice]} too", "name each node once")
        seen |= dict.fromkeys(names, entry.line)
        memory = entry.whole("realmemory", 0)
        group = NodeGroup(
            name=entry.values["nodename"], count=len(names), processors=_processors(entry), static_power_w=0.0,
            gpus=_gpus(entry), node_names=names, source=f"{entry.file.name}, line {entry.line}",
            memory_gb=memory * _GB_PER_MB or inf,
        )  # fmt: skip
        found.append(_Nodes(entry, names, group))
    if not found:
        raise InputError("names no nodes", file=path, fix="give NodeName=... CPUs=..., or Include the file that does")
    return found


def _processors(entry: Entry) -> int:
    for key in ("cpus", "procs"):
        if key in entry.values:
            return entry.whole(key, 1, lowest=1, highest=1_000_000)
    sockets = "socketsperboard" if "socketsperboard" in entry.values else "sockets"
    boards = entry.whole("boards", 1, lowest=1, highest=1000) if sockets == "socketsperboard" else 1
    each = [entry.whole(k, 1, lowest=1, highest=10_000) for k in (sockets, "corespersocket", "threadspercore")]
    return boards * each[0] * each[1] * each[2]


def _gpus(entry: Entry) -> int:
    """GPUs of ``Gres``, such as ``gpu:a100:4,gpu:2(S:0-1),nvme:1``."""
    total = 0
    for part in _GRES_COMMA.split(entry.values.get("gres", "")):
        if part.strip().lower().partition(":")[0].partition("(")[0] != "gpu":
            continue
        match = _GPUS.fullmatch(part.strip())
        if match is None:
            raise entry.refuse("gres", f"{part.strip()!r:.40} is not a number of GPUs", "write gpu:4 or gpu:a100:4")
        total += int(match[1] or 1)
    return total


def _node_sets(
    entries: Sequence[Entry], nodes: Sequence[_Nodes], known: Mapping[str, _Nodes]
) -> dict[str, tuple[str, ...]]:
    """Node sets by name: nodes listed, and nodes with a feature."""
    sets: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        if "nodeset" not in entry.values:
            continue
        found = [*(_known(entry, "nodes", known, {}) if "nodes" in entry.values else ())]
        if feature := entry.values.get("feature"):
            for line in nodes:
                own = line.entry.values.get("features", line.entry.values.get("feature", ""))
                found += line.names if feature in own.split(",") else ()
        sets[entry.values["nodeset"]] = tuple(dict.fromkeys(found))
    return sets


def _known(entry: Entry, key: str, known: Mapping[str, _Nodes], sets: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The nodes that a key lists, with ALL and node sets resolved."""
    found: list[str] = []
    if entry.values[key].strip().lower() in ("", "(null)"):
        return ()
    for name in _listed(entry, key):
        if name.upper() == "ALL":
            found += known
        elif name in sets:
            found += sets[name]
        elif name in known:
            found.append(name)
        else:
            raise entry.refuse(
                key,
                f"there is no node {name!r:.60}",
                did_you_mean(name, _sample(known), otherwise="name it with NodeName"),
            )
    return tuple(dict.fromkeys(found))


def _sample(known: Mapping[str, _Nodes]) -> list[str]:
    return list(known)[:1000]


def _states(
    entries: Sequence[Entry], nodes: Sequence[_Nodes], known: Mapping[str, _Nodes], sets: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """The state of each node in lower case, as its line says and the lines of ``DownNodes`` after it."""
    states = {name: line.entry.values.get("state", "unknown").lower() for line in nodes for name in line.names}
    for entry in _with_defaults(entries, "downnodes"):
        states |= dict.fromkeys(_known(entry, "downnodes", known, sets), entry.values.get("state", "down").lower())
    return states


def _is_out(state: str) -> bool:
    """Whether no job starts on a node of a state, which may have flags as in ``idle+drain``."""
    return any(part.startswith((*_OUT_OF_SERVICE, "future")) for part in state.split("+"))


@dataclass(frozen=True, slots=True)
class _Partition:
    """One ``PartitionName`` line."""

    partition: Partition
    state: str
    nodes: tuple[str, ...]
    listed: str
    """``Nodes`` as written."""

    @property
    def name(self) -> str:
        return self.partition.name


def _partitions(
    entries: Sequence[Entry], known: Mapping[str, _Nodes], sets: Mapping[str, tuple[str, ...]]
) -> list[_Partition]:
    """All partitions, also those that are not up."""
    partitions: list[_Partition] = []
    for entry in _with_defaults(entries, "partitionname"):
        name, state = entry.values["partitionname"], entry.values.get("state", "up").lower()
        if not name.strip():
            raise entry.refuse("partitionname", "is blank", "give the partition a name")
        if any(each.name == name for each in partitions):
            raise entry.refuse("partitionname", f"{name!r:.60} occurs twice", "give each partition its own name")
        if state not in _PARTITION_STATES:
            raise entry.refuse("state", f"is {entry.values['state']!r:.40}", "give UP, DOWN, DRAIN or INACTIVE")
        partition = Partition(
            name=name, default=entry.yes("default"), max_time_s=entry.seconds("maxtime", inf, above=0.0),
            tier=entry.whole("prioritytier", entry.whole("priority", 1, highest=65_533), highest=65_533),
            job_factor=entry.whole("priorityjobfactor", entry.whole("priority", 1, highest=65_533), highest=65_533),
        )  # fmt: skip
        nodes = _known(entry, "nodes", known, sets) if "nodes" in entry.values else ()
        partitions.append(_Partition(partition, state, nodes, entry.values.get("nodes", "")))
    return partitions


def _groups(
    nodes: Sequence[_Nodes], states: Mapping[str, str], partitions: Sequence[_Partition]
) -> tuple[list[NodeGroup], list[Note]]:
    """One group per line and combination of partitions, of the nodes that jobs can use, and notes on the others."""
    members: dict[str, list[str]] = {}
    for each in partitions:
        for node in each.nodes if each.state == "up" else ():
            members.setdefault(node, []).append(each.name)
    groups: list[NodeGroup] = []
    left: dict[str, list[tuple[str, int]]] = {"service": [], "partition": []}
    used: Counter[str] = Counter()
    for line in nodes:
        by_partitions: dict[tuple[str, ...], list[str]] = {}
        for name in line.names:
            if not _is_out(states[name]):
                by_partitions.setdefault(tuple(members.get(name, ())), []).append(name)
            elif not states[name].startswith("future"):
                left["service"].append((f"{name} {states[name].upper()}", line.group.processors))
        if partitions:
            left["partition"] += [(name, line.group.processors) for name in by_partitions.pop((), [])]
        for names_of, names in by_partitions.items():
            label = line.group.name if len(by_partitions) == 1 else f"{line.group.name} ({'+'.join(names_of)})"
            used[label] += 1
            label = label if used[label] == 1 else f"{label} {used[label]}"
            groups.append(
                replace(line.group, name=label, count=len(names), node_names=tuple(names), partitions=names_of)
            )
    return groups, [*_node_notes(groups, left), *_partition_notes(partitions, groups)]


_LEFT = {"service": "nodes out of service left out", "partition": "nodes in no partition that is UP left out"}


def _node_notes(groups: Sequence[NodeGroup], left: Mapping[str, Sequence[tuple[str, int]]]) -> list[Note]:
    """Notes on the nodes that are left out, with their share of the processors of all existing nodes."""
    whole = sum(g.count * g.processors for g in groups) + sum(n for each in left.values() for _, n in each)
    return [
        Note(
            f"{_LEFT[why]} ({_some([name for name, _ in each])})", len(each), about="nodes", level="change",
            shares=((sum(n for _, n in each) / whole, "processors"),),
        )
        for why, each in left.items()
        if each
    ]  # fmt: skip


def _partition_notes(partitions: Sequence[_Partition], groups: Sequence[NodeGroup]) -> list[Note]:
    """Notes on the partitions that are left out."""
    used = {name for group in groups for name in group.partitions}
    closed = [f"{each.name} {each.state.upper()}" for each in partitions if each.state != "up"]
    bare = [each for each in partitions if each.state == "up" and each.name not in used]
    reasons = [
        f"{each.name}: {'all are out of service' if each.nodes else f'Nodes={each.listed:.30}'}" for each in bare
    ]
    found = {"partitions that are not UP left out": closed, "partitions without nodes in the file left out": reasons}
    return [
        Note(f"{what} ({_some(names)})", len(names), about="partitions", level="change")
        for what, names in found.items()
        if names
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + ", …" * (len(names) > 3)


def _weights(entries: Sequence[Entry]) -> tuple[PriorityWeights, list[Note]]:
    """Weights of the last lines that state them, and notes on what is ignored."""
    lines = {key: entry for entry in entries for key in entry.values}
    found: dict[str, float | int | bool] = {}
    for name, key in _WEIGHTS.items():
        if key in lines:
            found[name] = lines[key].whole(key, 0, highest=_LARGEST_WEIGHT)
    for name, (key, above) in _TIMES.items():
        if key in lines:
            found[name] = lines[key].seconds(key, 0.0, above=above)
    if "priorityfavorsmall" in lines:
        found["favor_small"] = lines["priorityfavorsmall"].yes("priorityfavorsmall")
    notes = [
        Note(f"{lines[key].names[key]}={lines[key].values[key]} ignored", about=key, level="change")
        for key, without in _IGNORED.items()
        if key in lines and lines[key].values[key].lower() not in (without, "")
    ]
    return PriorityWeights(**found), notes  # type: ignore[arg-type]
