"""What jobs ask of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.machine.node_tables import KB_PER_MB, MEMORY_STEP_MB, Demand
from greenbatch.engine.records import ALL_PARTITIONS, Floats, Ints, Table, table_of
from greenbatch.errors import InputError
from greenbatch.machine_code.compile import compiled, compiled_small
from greenbatch.workload import Workload


class Asked(NamedTuple):
    """What some jobs ask for: columns of `Workload` as floats, shape (n,); what is unknown is NaN, or -1 of a count."""

    processors: Floats
    nodes: Floats
    gpus: Floats
    exclusive: Floats
    memory_mb: Floats
    """Memory per processor in whole steps, see `in_steps`; 0 if it is unknown."""
    run_time_s: Floats
    requested_time_s: Floats
    memory_volume_mb: Floats
    requested_energy_j: Floats
    power_w: Floats


@compiled_small
def _count(value: float) -> int:
    """A whole number, 0 if it is unknown."""
    return int(value) if value > 0.0 else 0


@compiled_small
def _known(value: float) -> float:
    """A number, 0 if it is unknown."""
    return 0.0 if np.isnan(value) else value


def in_steps(memory_mb: Any) -> Any:
    """Memory in whole steps. [MB]"""
    return np.floor(memory_mb / MEMORY_STEP_MB) * MEMORY_STEP_MB


def memory_mb(requested_memory_kb: Any) -> Any:
    """Memory per processor that some jobs ask for, in whole steps; 0 if it is unknown. [MB]"""
    known = np.where(np.isnan(requested_memory_kb), 0.0, requested_memory_kb)
    return in_steps(known / KB_PER_MB)


@compiled
def fill_demands(asked: Asked, most_gpus: int, demands: Table[Demand]) -> None:
    """Write what some jobs ask of nodes, whether or not they fit, to the first rows of a table; they use any partition.

    Args:
        asked: what they ask for, n rows.
        most_gpus: GPUs of the node that has most.
        demands: the table, at least n rows.
    """
    for k in range(asked.processors.shape[0]):
        processors, gpus, parts = _count(asked.processors[k]), _count(asked.gpus[k]), _count(asked.nodes[k])
        if parts == 0 and gpus > 0:
            parts = -(-gpus // max(1, most_gpus))
        is_spread = parts > 0
        parts = min(parts, processors) if is_spread else 1
        demand, rest = demands[k], processors % parts
        demand.is_spread, demand.exclusive = is_spread, asked.exclusive[k] == 1.0
        demand.chunks = parts if is_spread else processors
        demand.processors = -(-processors // parts) if is_spread else 1
        demand.larger = rest if is_spread and rest > 0 else demand.chunks
        demand.gpus = -(-gpus // parts)
        demand.memory_mb = asked.memory_mb[k] * demand.processors
        demand.work_s, demand.requested_s = asked.run_time_s[k], asked.requested_time_s[k]
        demand.volume_mb, demand.energy_j = _known(asked.memory_volume_mb[k]), _known(asked.requested_energy_j[k])
        demand.is_modelled, demand.power_w = np.isnan(asked.power_w[k]), _known(asked.power_w[k])
        demand.partitions, demand.component = ALL_PARTITIONS, 0
        demand.first, demand.pace, demand.draw = -1, 1.0, 1.0


def demand_table(cluster: Cluster, workload: Workload) -> Any:
    """What each job asks of nodes, shape (n,), whether or not they fit.

    Raises:
        InputError: a job names a partition that the cluster does not have.
    """
    demands: Any = table_of(Demand, len(workload))
    demands["begin_s"] = np.nan
    columns = {name: getattr(workload, name).astype(np.float64) for name in Asked._fields if name != "memory_mb"}
    asked = Asked(**columns, memory_mb=memory_mb(workload.requested_memory_kb))
    fill_demands(asked, most_gpus(cluster), demands)
    names, file = workload.names.get("partition", {}), next(iter(workload.sources), None)
    demands["partitions"], demands["component"] = partitions_of(cluster, workload.partition, names, file)
    return demands


def most_gpus(cluster: Cluster) -> int:
    """GPUs of the node that has most."""
    return max(group.gpus for group in cluster.groups)


def partitions_of(
    cluster: Cluster, partition: Ints, known: Mapping[int, str], file: str | None = None
) -> tuple[Ints, Ints]:
    """Bit mask of the partitions of each job, and its component of partitions that share no node with others.

    Args:
        cluster: the nodes.
        partition: number of the partition of each job, -1 for any, shape (n,).
        known: number of a partition -> its name in the cluster.
        file: where the jobs come from, for errors.

    Raises:
        InputError: a job names a partition that the cluster does not have.
    """
    names = cluster.partitions
    count = len(partition)
    mask, component = np.full(count, ALL_PARTITIONS), np.zeros(count, np.int64)
    if not names:
        return mask, component
    numbers, jobs = np.unique(partition[partition >= 0], return_counts=True)
    called = [known.get(int(number), str(number)) for number in numbers]
    if missing := {name: n for name, n in zip(called, jobs.tolist(), strict=True) if name not in names}:
        shown = [f"{name!r} ({count:,} job{'s' * (count > 1)})" for name, count in list(missing.items())[:5]]
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        problem = f"partitions of jobs that the cluster does not have: {', '.join(shown)}{more}"
        fix = f"give them nodes (and State=UP in a slurm.conf), or leave their jobs out; it has {', '.join(names)}"
        raise InputError(problem, file=file, field="partition", fix=fix)
    for number, name in zip(numbers, called, strict=True):
        mask[partition == number] = 1 << names.index(name)
    linked = [sum(1 << names.index(each) for each in g.partitions) or ALL_PARTITIONS for g in cluster.groups]
    linked += [ALL_PARTITIONS] if (mask == ALL_PARTITIONS).any() else []
    separate: list[int] = []
    for each in linked:
        touching = [other for other in separate if other & each]
        separate = [other for other in separate if not other & each]
        separate.append(int(np.bitwise_or.reduce([each, *touching])))
    for k, each in enumerate(separate):
        component[(mask & each) != 0] = k
    return mask, component
