"""What a machine ignores of the jobs' requests, and what stands for those that are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenbatch.cluster import Cluster

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

    from greenbatch.notes import Note, shares_of

    work = workload.processors * workload.run_time_s
    touched = _followers(workload, rules) | _unknown(workload)
    touched |= {} if cluster.on_nodes else _of_pool(workload, cluster)
    return tuple(
        Note(what, int(np.count_nonzero(which)), level=level, shares=shares_of(which, work))
        for what, (which, level) in touched.items()
        if which.any()
    )


_FOLLOWERS: dict[str, tuple[str, Level]] = {
    "ignore": (
        'preceding job and think time ignored, jobs submitted as recorded (to obey: rules.dependencies = "obey")',
        "warning",
    ),
    "obey": ("jobs submitted their think time after the simulated end of their preceding job", "change"),
}


def _followers(workload: Workload, rules: Rules) -> dict[str, tuple[NDArray[np.bool_], Level]]:
    """What becomes of the jobs that follow others -> which they are, and how much that matters."""
    from greenbatch.engine.dependencies import preceding_rows

    what, level = _FOLLOWERS[rules.dependencies]
    return {what: (preceding_rows(workload) >= 0, level)}


def _unknown(workload: Workload) -> dict[str, tuple[NDArray[np.bool_], Level]]:
    """What -> which jobs, and how much that matters."""
    import numpy as np

    columns = (("value", workload.value, 0), ("QoS", workload.qos, "1 (never late in figures)"))
    return {
        f"{name} of a job unknown, taken as {taken}": (np.isnan(column) & np.isfinite(column).any(), "repair")
        for name, column, taken in columns
    }


def _of_pool(workload: Workload, cluster: Cluster) -> dict[str, tuple[NDArray[np.bool_], Level]]:
    """What a pool ignores -> which jobs, and how much that matters."""
    import numpy as np

    has_gpus = cluster.powered is not None
    may_take = cluster.powered is not None and cluster.gpus > 0
    partitions = np.unique(workload.partition[workload.partition > 0])
    return {
        f"jobs of {len(partitions)} partitions run on one pool of processors": (
            np.full(len(workload), len(partitions) > 1), "change",
        ),
        "GPUs of a job ignored: the machine has processors only": ((workload.gpus > 0) & (not has_gpus), "change"),
        "exclusive use of nodes ignored: the machine is a pool of processors": (workload.exclusive == 1, "change"),
        "GPUs of a job unknown, taken as none": ((workload.gpus < 0) & may_take, "repair"),
    }  # fmt: skip
