"""What a machine ignores of the jobs' requests, and what stands for those that are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenbatch.cluster import Cluster, NodeCluster, PoweredCluster

if TYPE_CHECKING:
    from greenbatch.engine.rules import Rules
    from greenbatch.notes import Level, Note
    from greenbatch.workload import Workload


def request_notes(workload: Workload, cluster: Cluster, rules: Rules) -> tuple[Note, ...]:
    """Notes on the jobs whose requests are ignored or unknown, and on those that follow others.

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
    requests = (Note(what, count) for what, count in counts.items() if count)
    return (*_followers(workload, rules), *requests)


_FOLLOWERS: dict[str, tuple[str, Level]] = {
    "ignore": (
        'preceding job and think time ignored, jobs submitted as recorded (to obey: rules.dependencies = "obey")',
        "warning",
    ),
    "obey": ("jobs submitted their think time after the simulated end of their preceding job", "change"),
}


def _followers(workload: Workload, rules: Rules) -> tuple[Note, ...]:
    """A note on the jobs that follow others, if there are some."""
    import numpy as np

    from greenbatch.engine.dependencies import preceding_rows
    from greenbatch.notes import Note

    if not (workload.preceding_job > 0).any() or not (follows := preceding_rows(workload) >= 0).any():
        return ()
    what, level = _FOLLOWERS[rules.dependencies]
    work_s = workload.run_time_s * workload.processors
    shares = (float(follows.mean()), "jobs"), (float(work_s[follows].sum() / work_s.sum()), "processor-hours")
    return (Note(what, int(np.count_nonzero(follows)), about="preceding_job", level=level, shares=shares),)


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
