"""Jobs for which a machine whose capacity follows the power is too small from some time on for ever."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.capacity.varying import FINISHED, REJECTED, Varying
from greenbatch.engine.state import State
from greenbatch.errors import InputError
from greenbatch.workload import Workload


def refuse_shortage(state: State, workload: Workload, cluster: Cluster) -> None:
    """Name the first unfinished job that never fits again, and the row of the capacity from which on it does not.

    Args:
        state: a simulation that came to a halt with unfinished jobs.
        workload: its jobs.
        cluster: its machine.

    Raises:
        InputError: there is such a job.
    """
    if not isinstance(state.capacity, Varying):
        return
    levels, jobs = cluster.capacity_levels, state.capacity.jobs
    for job in np.flatnonzero(~np.isin(jobs["place"], (FINISHED, REJECTED))):
        processors, gpus = int(jobs["processors"][job]), int(jobs["gpus"][job])
        large = np.flatnonzero((levels.processors >= processors) & (levels.gpus >= gpus))
        row = int(large[-1]) + 1 if large.size else 0
        if row == len(levels.time_s):
            continue
        problem = (
            f"is too small for job {workload.job_id[job]} from {levels.time_s[row]:g} s on: it needs {processors} "
            f"processors and {gpus} GPUs, and no row has both (the one of {levels.time_s[row]:g} s has "
            f"{levels.processors[row]} and {levels.gpus[row]})"
        )
        fix = "add a row of higher capacity, drop the job, or end the run: rules.pools.end_s"
        raise InputError(problem, file=next(map(Path, cluster.sources), None), field="cluster.capacity", fix=fix)
