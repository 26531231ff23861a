"""The idle machine of a cluster: its nodes, what the jobs of a window ask of them, and which jobs fit."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.engine.machine import node_tables as tables
from greenbatch.engine.machine.demands import demand_table, in_steps
from greenbatch.engine.machine.pool import Pool, pool_of
from greenbatch.engine.machine.resources import machine_of
from greenbatch.engine.observe.pair_features import PAIR_ROWS
from greenbatch.engine.records import ALL_PARTITIONS, MachineTotals, Ranked, record_of, table_of
from greenbatch.errors import InputError
from greenbatch.workload import Workload


def jobs_that_fit(cluster: Cluster, workload: Workload) -> tuple[NDArray[np.bool_], str]:
    """Which jobs fit on the idle cluster, shape (n,), and in words what the first one asks for that does not, if any.

    Raises:
        InputError: a job names a partition that the cluster does not have.
    """
    nodes, _ = _node_table(cluster)
    demands = demand_table(cluster, workload)
    fits = fit(cluster, nodes, demands)
    return fits, "" if fits.all() else _asked(workload, demands, int(np.argmin(fits)))


@machine_of.register
def idle_machine(cluster: Cluster, workload: Workload) -> tables.Nodes | Pool:
    """The idle nodes of a cluster, or the pool of their processors."""
    return nodes_of(cluster, workload) if cluster.on_nodes else pool_of(cluster, workload)


def nodes_of(cluster: Cluster, workload: Workload) -> tables.Nodes:
    """The idle nodes of a cluster, and what the jobs ask of them.

    Raises:
        InputError: a job fits on no nodes, or names a partition that the cluster does not have.
    """
    groups = [g for g in cluster.groups for _ in range(g.count)]
    count, total = len(groups), cluster.processors
    nodes, per_speed = _node_table(cluster)
    demands = demand_table(cluster, workload)
    if not (fits := fit(cluster, nodes, demands)).all():
        problem = f"{_asked(workload, demands, int(np.argmin(fits)))}, which fit on no nodes of the cluster"
        raise InputError(problem, field="processors", fix="give larger nodes or drop the job")
    nodes["free"], nodes["free_gpus"], nodes["free_memory_mb"] = nodes["processors"], nodes["gpus"], nodes["memory_mb"]
    largest = int(nodes["processors"].max())
    lists: Any = table_of(tables.Listed, max(count, largest + 1))
    lists["at_least"][: largest + 1] = [np.count_nonzero(nodes["processors"] >= p) for p in range(largest + 1)]
    lists["order"][:count] = np.arange(count)
    shares: Any = table_of(tables.Share, total)
    shares["of_job"] = np.append(np.arange(1, total), -1)
    plain, uniform = alike(nodes, demands)
    on_demand = cluster.power_on == "on-demand"
    nodes["phase"], nodes["switch_s"] = (tables.ON if cluster.power_on == "always" else tables.OFF), np.inf
    if on_demand:
        for ours, theirs in {"boot_s": "boot_s", "stop_s": "shutdown_s", "min_on_s": "min_on_s"}.items():
            nodes[ours] = [getattr(g, theirs) for g in groups]
        nodes["boot_w"] = [g.boot_energy_j / g.boot_s if g.boot_s else 0.0 for g in groups]
        nodes["stop_w"] = [g.shutdown_energy_j / g.shutdown_s if g.shutdown_s else 0.0 for g in groups]
    idle_w = cluster.idle_power_w if cluster.power_on == "always" else 0.0
    return tables.Nodes(
        totals=record_of(
            MachineTotals, processors=total, free=total, load_w=idle_w, base_power_w=idle_w, gpus=cluster.gpus,
            free_gpus=cluster.gpus, off=total - int(cluster.capacity_levels.processors[0]),
        ),
        counts=record_of(
            tables.NodeTotals, is_plain=plain, is_uniform=uniform, contention=tables.CONTENTIONS[cluster.contention],
            always_on=cluster.power_on == "always", on_demand=on_demand, next_switch_s=np.inf,
            off_w=idle_w - float(cluster.idle_levels_w[0]),
            longest_boot_s=(nodes["boot_s"] + nodes["stop_s"]).max(), ops_per_s=1e9 * per_speed, summed_s=np.nan,
            components=int(np.bitwise_or.reduce(1 << demands["component"].astype(np.int64), initial=0)),
        ),
        nodes=nodes, demands=demands, shares=shares, placed=table_of(tables.Placement, max(2 * total, 8192)),
        lists=lists, ranked=table_of(Ranked, 2 * count), pairs=np.zeros((PAIR_ROWS, count)),
        cores=np.full(total if cluster.contention == "irmasim-v1" else 0, -1, np.int32),
    )  # fmt: skip


def _node_table(cluster: Cluster) -> tuple[Any, float]:
    """The nodes of a cluster, shape (nodes,), without what is free on them, and the peak of speed 1 [Gflop/s]."""
    groups = [g for g in cluster.groups for _ in range(g.count)]
    nodes: Any = table_of(tables.Node, len(groups))
    columns = {"memory_mb": "memory_gb", "speed": "speed", "static_w": "static_power_w", "idle_w": "idle_power_w",
               "processor_w": "power_per_processor_w", "gpu_w": "power_per_gpu_w", "gflops": "gflops_per_processor",
               "processors": "processors", "gpus": "gpus"}  # fmt: skip
    for ours, theirs in columns.items():
        nodes[ours] = [getattr(g, theirs) for g in groups]
    for name in ("b", "c", "da", "db", "dc", "dd"):
        nodes[name] = [getattr(g.contention, name) for g in groups]
    known = nodes["gflops"] > 0
    per_speed = float((nodes["gflops"][known] / nodes["speed"][known])[0]) if known.any() else 1.0
    nodes["gflops"] = np.where(known, nodes["gflops"], nodes["speed"] * per_speed)
    nodes["memory_mb"] = in_steps(np.minimum(nodes["memory_mb"] * tables.MB_PER_GB, tables.UNLIMITED_MB))
    nodes["first"], nodes["first_core"] = -1, np.cumsum(nodes["processors"]) - nodes["processors"]
    names = cluster.partitions
    nodes["partitions"] = [sum(1 << names.index(each) for each in g.partitions) or ALL_PARTITIONS for g in groups]
    return nodes, per_speed


def alike(nodes: Any, demands: Any) -> tuple[bool, bool]:
    """Whether all jobs ask for processors of any nodes only, and whether all of them can use all nodes.

    Args:
        nodes: the nodes.
        demands: what the jobs ask for.
    """
    mask = demands["partitions"]
    uniform = bool((mask == mask[0]).all() and (mask[:1] & nodes["partitions"] != 0).all()) if len(mask) else True
    plain = (demands["is_spread"] == 0) & (demands["exclusive"] == 0) & (demands["memory_mb"] == 0)
    return uniform and bool(plain.all()), uniform


def compete_for_power(machine: tables.Nodes) -> None:
    """Let jobs of all partitions compete, because a limit of power holds for all nodes together."""
    demands, counts = cast(Any, machine.demands), cast(Any, machine.counts)
    demands["component"], counts.components = 0, 1


def most_taken(cluster: Cluster, workload: Workload) -> tuple[Any, Any]:
    """Processors and GPUs that each job may take, shape (n,): those of the largest nodes if it has its nodes alone."""
    nodes, _ = _node_table(cluster)
    demands, processors, first = demand_table(cluster, workload), workload.processors.astype(np.int64), 0
    parts, largest, most_gpus = demands["chunks"].astype(np.int64), np.zeros(len(demands), np.int64), 0 * processors
    for group in cluster.groups:
        can = demands["partitions"] & nodes["partitions"][first] != 0
        largest = np.where(can, np.maximum(largest, group.processors), largest)
        most_gpus = np.where(can, np.maximum(most_gpus, group.gpus), most_gpus)
        first += group.count
    alone, spread = demands["exclusive"] != 0, demands["is_spread"] != 0
    hosts = np.where(spread, parts, -(-processors // np.maximum(1, [g.processors for g in cluster.groups]).min()))
    most = np.where(spread, parts * largest, processors - 1 + largest)
    gpus = np.where(alone, hosts * most_gpus, parts * demands["gpus"] * spread)
    return (np.minimum(np.where(alone, most, processors), cluster.processors), np.minimum(gpus, cluster.gpus))


def fit(cluster: Cluster, nodes: Any, demands: Any) -> NDArray[np.bool_]:
    """Which jobs fit on the idle cluster, shape (n,)."""
    room, first = np.zeros(len(demands), np.int64), 0
    for group in cluster.groups:
        node = nodes[first]
        chunks = node["processors"] // demands["processors"]
        with np.errstate(divide="ignore"):
            in_memory = np.where(demands["memory_mb"] > 0, node["memory_mb"] // demands["memory_mb"], np.inf)
        chunks = np.minimum(chunks, in_memory).astype(np.int64)
        chunks[(demands["gpus"] > node["gpus"]) | (demands["partitions"] & node["partitions"] == 0)] = 0
        room += group.count * np.where(demands["is_spread"], np.minimum(chunks, 1), chunks)
        first += group.count
    return np.asarray(room >= demands["chunks"])


def _asked(workload: Workload, demands: Any, job: int) -> str:
    """What one job asks for, in words."""
    asked = demands[job]
    on = f" on {asked['chunks']} node{'s' if asked['chunks'] > 1 else ''}" if asked["is_spread"] else ""
    on += f", {asked['gpus']} GPUs per node" if asked["gpus"] else ""
    each = "node" if asked["is_spread"] else "processor"
    on += f", {asked['memory_mb'] / tables.MB_PER_GB:g} GB per {each}" if asked["memory_mb"] else ""
    number = int(workload.partition[job])
    of = f" of partition {workload.names.get('partition', {}).get(number, str(number))!r}" if number >= 0 else ""
    return f"job {workload.job_id[job]}{of} needs {workload.processors[job]} processors{on}"
