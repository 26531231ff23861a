"""What a machine ignores of the jobs' requests, and what stands for those that are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenbatch.cluster import Cluster, NodeCluster, PoweredCluster

if TYPE_CHECKING:
    from greenbatch.notes import Note
    from greenbatch.workload import Workload


def request_notes(workload: Workload, cluster: Cluster) -> tuple[Note, ...]:
    """Notes on the jobs whose requests are ignored or unknown.

    A pool ignores partitions, exclusive nodes and, unless it has GPUs, GPUs. On a pool with GPUs, jobs of unknown GPUs
    take none. Among jobs with value, an unknown value counts as 0. Among jobs with QoS, schedulers take an unknown one
    as 1, and metrics never count the job as late.
    """
    import numpy as np

    from greenbatch.notes import Note

    counts: dict[str, int] = {
        f"{name} of a job unknown, taken as {taken}": int(np.sum(np.isnan(column))) * bool(np.isfinite(column).any())
        for name, column, taken in (("value", workload.value, 0), ("QoS", workload.qos, "1 (never late in figures)"))
    }
    if not isinstance(cluster, NodeCluster):
        counts |= _of_pool(workload, cluster)
    return tuple(Note(what, count) for what, count in counts.items() if count)


def _of_pool(workload: Workload, cluster: Cluster) -> dict[str, int]:
    """What -> number of jobs."""
    import numpy as np

    has_gpus = isinstance(cluster, PoweredCluster)
    may_take = isinstance(cluster, PoweredCluster) and cluster.gpus > 0
    partitions = np.unique(workload.partition[workload.partition > 0])
    return {
        f"jobs of {len(partitions)} partitions run on one pool of processors": len(workload) * (len(partitions) > 1),
        "GPUs of a job ignored: the machine has processors only": int(np.sum(workload.gpus > 0)) * (not has_gpus),
        "exclusive use of nodes ignored: the machine is a pool of processors": int(np.sum(workload.exclusive == 1)),
        "GPUs of a job unknown, taken as none": int(np.sum(workload.gpus < 0)) * may_take,
    }
