"""What a pool of processors ignores of the jobs' requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenbatch.cluster import Cluster, NodeCluster, PoweredCluster

if TYPE_CHECKING:
    from greenbatch.workload import Note, Workload


def ignored_requests(workload: Workload, cluster: Cluster) -> tuple[Note, ...]:
    """Notes on the jobs whose partition, GPUs or exclusive nodes a pool ignores; none on a cluster of nodes."""
    import numpy as np

    from greenbatch.workload import Note

    if isinstance(cluster, NodeCluster):
        return ()
    has_gpus = isinstance(cluster, PoweredCluster)
    partitions = np.unique(workload.partition[workload.partition > 0])
    counts: dict[str, int] = {
        f"jobs of {len(partitions)} partitions run on one pool of processors": len(workload) * (len(partitions) > 1),
        "GPUs of a job ignored: the machine has processors only": int(np.sum(workload.gpus > 0)) * (not has_gpus),
        "exclusive use of nodes ignored: the machine is a pool of processors": int(np.sum(workload.exclusive == 1)),
    }
    return tuple(Note(what, count) for what, count in counts.items() if count)
