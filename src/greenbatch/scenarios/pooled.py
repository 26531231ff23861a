"""What a machine ignores of the jobs' requests, and what stands for those that are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenbatch.cluster import Cluster, NodeCluster, PoweredCluster

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

    work_s = workload.run_time_s * workload.processors
    which = {
        f"{name} of a job unknown, taken as {taken}": np.isnan(column) & bool(np.isfinite(column).any())
        for name, column, taken in (("value", workload.value, 0), ("QoS", workload.qos, "1 (never late in figures)"))
    }
    if not isinstance(cluster, NodeCluster):
        which |= _of_pool(workload, cluster)
    return tuple(
        Note(
            what, int(np.count_nonzero(jobs)), level="change",
            shares=((float(jobs.mean()), "jobs"), (float(work_s[jobs].sum() / work_s.sum()), "processor-hours")),
        )
        for what, jobs in which.items() if jobs.any()
    )  # fmt: skip


def _of_pool(workload: Workload, cluster: Cluster) -> dict[str, NDArray[np.bool_]]:
    """What -> which jobs."""
    import numpy as np

    has_gpus = isinstance(cluster, PoweredCluster)
    may_take = isinstance(cluster, PoweredCluster) and cluster.gpus > 0
    partitions = np.unique(workload.partition[workload.partition > 0])
    every = np.ones(len(workload), dtype=bool)
    return {
        f"jobs of {len(partitions)} partitions run on one pool of processors": every & (len(partitions) > 1),
        "GPUs of a job ignored: the machine has processors only": (workload.gpus > 0) & (not has_gpus),
        "exclusive use of nodes ignored: the machine is a pool of processors": workload.exclusive == 1,
        "GPUs of a job unknown, taken as none": (workload.gpus < 0) & may_take,
    }
