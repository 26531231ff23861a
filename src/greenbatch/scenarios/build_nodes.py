"""Build the nodes that ``[cluster]`` describes: by node groups, or by a file whose groups it may change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.cluster import Cluster, DvfsLevel
from greenbatch.cluster.groups import changed_cluster, described_cluster, node_group
from greenbatch.errors import InputError
from greenbatch.scenarios.origin import Origin

if TYPE_CHECKING:
    from greenbatch.scenarios.cluster_schema import ClusterFile, ClusterSection
    from greenbatch.workload import Workload


def build_nodes(section: ClusterSection, origin: Origin) -> Cluster:
    """A cluster of nodes from a ``[cluster]`` that is no pool.

    Raises:
        InputError: a group or the file cannot be used.
    """
    if section.file is None:
        return _described(section, origin, "cluster")
    read = read_nodes(origin.locate(section.file, None, "cluster"))
    tables = _tables(section)
    for index, table in enumerate(tables):
        with origin.blame("cluster", "groups", index):
            changed_cluster(read, [table])
    with origin.blame("cluster"):
        changed = changed_cluster(
            read, tables, contention=section.contention, reference_gflops=section.reference_gflops
        )
        return replace(changed, power_on=section.power_on or changed.power_on, dvfs=_levels(section) or changed.dvfs)


def jobs_on_nodes(workload: Workload, cluster: Cluster, *, strict: bool) -> Workload:
    """The jobs without those that fit on no nodes even of the idle cluster, which are counted in a note.

    Args:
        workload: the jobs.
        cluster: the nodes.
        strict: refuse such a job instead.

    Raises:
        InputError: a job fits on no nodes under ``strict``, or none fits, or a partition is not of the cluster.
    """
    import numpy as np

    from greenbatch.engine.machine.idle_nodes import jobs_that_fit
    from greenbatch.notes import JOBS, Note, left_out_work, shares_of

    fits, asked = jobs_that_fit(cluster, workload)
    if fits.all():
        return workload
    if strict or not fits.any():
        which = "which fit" if fits.any() else "and like all others it fits"
        fix = "give larger nodes, or drop the job" if fits.any() else "describe the nodes that the jobs ran on"
        raise InputError(
            f"{asked}, {which} on no nodes of the cluster", file=next(iter(workload.sources), workload.name),
            field="processors", fix=fix,
        )  # fmt: skip
    dropped = sum(note.count for note in workload.notes if note.about == JOBS)
    gone = {"jobs": dropped / (dropped + len(workload)), "processor-hours": left_out_work(workload.notes)}
    shares = shares_of(~fits, workload.run_time_s * workload.processors)
    note = Note(
        f"job that fits on no nodes of the cluster (the first: {asked}) dropped", int(np.count_nonzero(~fits)),
        about=JOBS, level="change", shares=tuple((part * (1 - gone[of]), of) for part, of in shares),
    )  # fmt: skip
    kept = workload.take(np.flatnonzero(fits))
    return replace(kept, notes=(*kept.notes, note))


def read_nodes(path: Path) -> Cluster:
    """A cluster from a file: node groups in TOML, or what `cluster.readers` reads.

    Raises:
        InputError: the file cannot be used.
    """
    from greenbatch.cluster.readers import read_cluster

    return _from_toml(path) if path.suffix == ".toml" else read_cluster(path)


def _from_toml(path: Path) -> Cluster:
    from greenbatch.files import read_bytes
    from greenbatch.scenarios.check import check
    from greenbatch.scenarios.cluster_schema import ClusterFile
    from greenbatch.scenarios.toml import read_toml

    raw, lines = read_toml(path)
    if isinstance(raw.get("cluster"), dict):
        fix = "give the content of its [cluster] in a file of its own, or use it as the scenario"
        raise InputError("is a scenario, not a cluster", file=path, line=lines.get(("cluster",)), fix=fix)
    section = check(raw, ClusterFile, file=path, lines=lines)
    cluster = _described(section, Origin(path, lines))
    return replace(cluster, sources={path.name: read_bytes(path)[1]})


def _described(section: ClusterSection | ClusterFile, origin: Origin, *place: str) -> Cluster:
    tables = _tables(section)
    for index, table in enumerate(tables):
        with origin.blame(*place, "groups", index):
            node_group(table)
    with origin.blame(*place):
        described = described_cluster(
            tables, contention=section.contention or "none", reference_gflops=section.reference_gflops
        )
        return replace(described, power_on=section.power_on or described.power_on, dvfs=_levels(section))


def _levels(section: ClusterSection | ClusterFile) -> tuple[DvfsLevel, ...]:
    return tuple(DvfsLevel(speed=each.speed, power=each.power) for each in section.dvfs or ())


def _tables(section: ClusterSection | ClusterFile) -> list[dict[str, Any]]:
    """The keys given for each group."""
    return [group.model_dump(exclude_none=True, exclude_unset=True) for group in section.groups or ()]
