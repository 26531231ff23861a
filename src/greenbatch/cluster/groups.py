"""Node groups from tables of keys, as a scenario or the catalog gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from greenbatch.cluster.catalog import node_type
from greenbatch.cluster.cluster import Cluster, ContentionModel
from greenbatch.cluster.node_group import MemoryContention, NodeGroup
from greenbatch.errors import InputError, did_you_mean
from greenbatch.node_lists import node_list
from greenbatch.notes import Note

_FIELDS = frozenset(field.name for field in fields(NodeGroup))
_PEAK = frozenset({"clock_ghz", "gflops_per_processor"})


def node_group(table: Mapping[str, Any]) -> NodeGroup:
    """A node group from its keys.

    Keys are the fields of `NodeGroup`, and

    - ``type``: a node type of the catalog, whose values the other keys replace;
    - ``clock_ghz`` and ``flop_per_cycle``, together: they give ``gflops_per_processor``. the speed then
      follows from the peak;
    - ``node_names``: also a Slurm node list, which gives the count too;
    - ``contention``: a table of the constants of `MemoryContention`.

    Raises:
        InputError: a key is missing or unknown, contradicts another, or has a value out of range.
    """
    given = dict(table)
    kind = given.pop("type", None)
    if kind is not None:
        given = {**node_type(kind).group_keys(), **given}
    given = _interpreted(given, MemoryContention())
    for key in ("name", "count", "processors"):
        if key not in given:
            others = {"count": ", or node_names", "processors": ", or a type of the catalog"}
            raise InputError("is missing", field=f"cluster.{key}", fix=f"add it{others.get(key, '')}")
    if "static_power_w" not in given:
        fix = "give the power of a node without its busy processors [W], 0 if it does not matter"
        raise InputError("is missing", field="cluster.static_power_w", fix=fix)
    return NodeGroup(**given)


def changed_group(group: NodeGroup, table: Mapping[str, Any]) -> NodeGroup:
    """A group with the values at the given keys replaced; a ``type`` replaces only its power.

    Raises:
        InputError: as for `node_group`.
    """
    given = dict(table)
    kind = given.pop("type", None)
    if kind is not None:
        given = {**node_type(kind).power_keys(given.get("processors", group.processors)), **given}
    return replace(group, **_interpreted(given, group.contention))


def _interpreted(given: dict[str, Any], constants: MemoryContention) -> dict[str, Any]:
    """Fields of a `NodeGroup` from the keys of a table without ``type``."""
    clock, flop = given.pop("clock_ghz", None), given.pop("flop_per_cycle", None)
    if (clock is None) != (flop is None):
        absent = "clock_ghz" if clock is None else "flop_per_cycle"
        raise InputError("is missing", field=f"cluster.{absent}", fix="give clock_ghz and flop_per_cycle together")
    if clock is not None and flop is not None:
        for other in ("gflops_per_processor", "speed"):
            if other in given:
                fix = "give clock_ghz and flop_per_cycle, or the speed"
                raise InputError("is given beside a clock", field=f"cluster.{other}", fix=fix)
        given["gflops_per_processor"] = clock * flop
    if isinstance(names := given.get("node_names"), str):
        given["node_names"] = node_list(names, "cluster.node_names")
        given.setdefault("count", len(given["node_names"]))
    if isinstance(contention := given.get("contention"), Mapping):
        given["contention"] = replace(constants, **contention)
    if unknown := sorted(set(given) - _FIELDS):
        raise InputError("unknown key", field=f"cluster.{unknown[0]}", fix="use a field of NodeGroup")
    return given


def described_cluster(
    tables: Sequence[Mapping[str, Any]], *, contention: ContentionModel = "none", reference_gflops: float | None = None
) -> Cluster:
    """A cluster from the tables of its groups, see `node_group`.

    A group without a speed whose peak is known gets speed = peak / reference.

    Args:
        tables: one table per group.
        contention: see `Cluster`.
        reference_gflops: peak of a processor of speed 1, > 0; by default that of the slowest of these groups. [Gflop/s]

    Raises:
        InputError: as for `node_group` and `Cluster`.
    """
    cluster = Cluster.of_nodes(tuple(node_group(table) for table in tables), contention)
    return with_speeds(cluster, [str(table["name"]) for table in tables if "speed" not in table], reference_gflops)


def changed_cluster(
    cluster: Cluster,
    tables: Sequence[Mapping[str, Any]] = (),
    *,
    contention: ContentionModel | None = None,
    reference_gflops: float | None = None,
) -> Cluster:
    """A cluster that a file describes, with some values replaced.

    Args:
        cluster: the cluster.
        tables: tables with the name of a group and the keys to replace, see `changed_group`. The name of a line of
            a ``slurm.conf`` stands for all groups into which its partitions split it.
        contention: replaces that of the cluster; None keeps it.
        reference_gflops: peak of a processor of speed 1, > 0: the speed of all groups with a known peak then follows
            from it; by default that of the cluster, for groups that get another clock. [Gflop/s]

    Raises:
        InputError: a table names no group of the cluster, and as for `changed_group`.
    """
    groups = {group.name: group for group in cluster.groups}
    follows = dict.fromkeys(groups, reference_gflops is not None)
    for table in tables:
        wanted = str(table.get("name"))
        named = [name for name in groups if name == wanted or name.startswith(f"{wanted} (")]
        if not named:
            fix = did_you_mean(wanted, groups, otherwise="use one of " + ", ".join([*groups][:10]))
            raise InputError(f"the file describes no group {wanted!r:.60}", field="cluster.name", fix=fix)
        for name in named:
            groups[name] = changed_group(groups[name], {**table, "name": name})
            follows[name] = "speed" not in table and (follows[name] or bool(_PEAK & set(table)))
    changed = replace(cluster, groups=tuple(groups.values()), contention=contention or cluster.contention)
    if len(kept := _without(cluster, "static_power_w")) < len(cluster.notes):
        changed = replace(changed, notes=(*kept, *unknown_power(changed)))
    return with_speeds(changed, [name for name in groups if follows[name]], reference_gflops or reference_of(cluster))


def reference_of(cluster: Cluster) -> float | None:
    """Peak of a processor of speed 1, if groups state their peak and agree on it; else None. [Gflop/s]"""
    found = [g.gflops_per_processor / g.speed for g in cluster.groups if g.gflops_per_processor]
    return found[-1] if found and max(found) <= min(found) * (1 + 1e-9) else None


def _without(cluster: Cluster, about: str) -> tuple[Note, ...]:
    """The notes that are not about a field of `NodeGroup`."""
    return tuple(note for note in cluster.notes if note.about != about)


def unknown_power(cluster: Cluster) -> tuple[Note, ...]:
    """A note on the groups without any power, with their share of the processors, if there are some."""
    dark = [g for g in cluster.groups if not any((g.static_power_w, g.power_per_processor_w, g.power_per_gpu_w))]
    if not dark:
        return ()
    some = ", ".join(g.name for g in dark[:3]) + ", …" * (len(dark) > 3)
    fix = "give type or static_power_w in [[cluster.groups]] of the scenario or site file"
    what = f"power of nodes is unknown, 0 W taken: {len(dark)} of {len(cluster.groups)} groups ({some}); {fix}"
    share = sum(g.count * g.processors for g in dark) / cluster.processors
    return (Note(what, about="static_power_w", level="warning", shares=((share, "processors"),)),)


def with_speeds(cluster: Cluster, names: Collection[str], reference_gflops: float | None = None) -> Cluster:
    """A cluster in which speed = peak of a processor / reference for the named groups with a known peak.

    Args:
        cluster: the cluster.
        names: names of groups.
        reference_gflops: peak of a processor of speed 1, > 0; by default that of the slowest of these groups. [Gflop/s]
    """
    derived = {g.name: g.gflops_per_processor for g in cluster.groups if g.name in names and g.gflops_per_processor}
    if not derived:
        return cluster
    slowest = min(derived, key=derived.__getitem__)
    reference = derived[slowest] if reference_gflops is None else reference_gflops
    groups = tuple(replace(g, speed=derived[g.name] / reference) if g.name in derived else g for g in cluster.groups)
    why = f", the slowest nodes' ({slowest})" if reference_gflops is None else ""
    note = Note(f"speed 1 is a processor of {reference:g} Gflop/s{why}", about="speed", level="fact")
    return replace(cluster, groups=groups, notes=(*_without(cluster, "speed"), note))
