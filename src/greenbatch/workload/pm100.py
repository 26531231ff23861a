"""PM100: jobs of the supercomputer Marconi100 with the measured power of their nodes (``job_table.parquet``).

Data and columns: Antici et al., "PM100: A Job Power Consumption Dataset of a Large-scale Production HPC System", SC-W
2023, https://zenodo.org/records/10127767. Only jobs that were alone on their nodes are in it, so it is not the whole
load of the machine, which had 980 nodes of 128 logical cores and 4 GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from greenbatch.workload.ledger import Ledger
from greenbatch.workload.parquet import Cells, Floats
from greenbatch.workload.plausible_power import WITH_IDLE
from greenbatch.workload.power_traces import Jobs, Numbering, PowerTrace, read_power_trace
from greenbatch.workload.sacct import SLURM_STATUS
from greenbatch.workload.table import Workload

SAMPLING_S = 20.0
"""Time between two samples of power. [s]"""


def read_pm100(
    path: str | Path, *, strict: bool = False, processors: int | None = None, time_zone: str | None = None,
    most_node_w: float | None = None,
) -> Workload:  # fmt: skip
    """Read PM100's table of jobs, or all Parquet files of a folder.

    The submit time is ``submit_time``, or ``eligible_time`` if that is later. The run time is ``run_time`` (else
    ``end_time`` - ``start_time``), the requested time ``time_limit`` in minutes (for INFINITE, see
    `requested.requested_times`), and
    processors are the allocated, else the requested logical cores. Jobs have nodes of their own (``exclusive``). Job
    numbers are 1..n by submit time.

    Power is constant while a job runs: the mean of all plausible samples of ``node_power_consumption``, the sum over
    the job's nodes [W], idle power and GPUs included; `plausible_power` says which are. The course of the power over
    time is not kept, and the lists for CPU and memory, which may be of other lengths, are not read. Without samples the
    power is unknown. Memory is not read: the data set states no unit.

    Args:
        path: the file, plain or gzip, or a folder.
        strict: refuse what would otherwise be dropped.
        processors: machine size [logical cores]; larger jobs are dropped.
        time_zone: IANA zone of time stamps without an offset; the data set's own are in UTC and say so.
        most_node_w: highest plausible power of a node. [W]

    Returns:
        The jobs; trace time 0 is the first submission.

    Raises:
        InputError: a file cannot be read, lacks a column or has one of another type, no job is left, or a drop is
            necessary under ``strict``.
    """
    return read_power_trace(
        path, PM100, strict=strict, processors=processors, time_zone=time_zone, most_node_w=most_node_w
    )


def _jobs(cells: Cells, times: Mapping[str, Floats], numbering: Numbering, ledger: Ledger) -> Jobs:
    """The jobs of a file."""
    run_s, samples = cells.numbers("run_time"), cells.numbers("node_power_consumption length")
    allocated = cells.wholes("num_cores_alloc")
    mean_w = cells.numbers("node_power_consumption")
    power_w = np.where(mean_w > 0, mean_w, np.nan)
    measured = np.isfinite(power_w)
    ledger.fact(f"power from the mean of the samples, {WITH_IDLE}", cells.rows[measured],
                about="power_w")  # fmt: skip
    sparse = measured & (samples * SAMPLING_S < run_s / 2)
    ledger.fact("power samples of less than half of the run time", cells.rows[sparse], about="power_w")
    return {
        "submit_s": np.fmax(times["submit_time"], times["eligible_time"]), "start_s": times["start_time"],
        "end_s": times["end_time"], "run_time_s": run_s, "limit_s": cells.numbers("time_limit") * 60.0,
        "processors": np.where(allocated > 0, allocated, cells.wholes("num_cores_req")),
        "nodes": cells.wholes("num_nodes_alloc"), "gpus": cells.wholes("num_gpus_alloc"),
        "exclusive": np.ones(len(run_s)), "power_w": power_w,
        "user": cells.wholes("user_id"), "group": cells.wholes("group_id"),
        "queue": cells.codes("qos", numbering.setdefault("queue", {})),
        "partition": cells.codes("partition", numbering.setdefault("partition", {})),
        "status": cells.looked_up("job_state", SLURM_STATUS),
    }  # fmt: skip


PM100 = PowerTrace(
    columns={
        "submit_time": "time", "eligible_time": "time", "start_time": "time", "end_time": "time",
        "run_time": "number", "time_limit": "limit", "num_cores_req": "whole", "num_cores_alloc": "whole",
        "num_nodes_alloc": "whole", "num_gpus_alloc": "whole", "user_id": "whole", "group_id": "whole",
        "qos": "name", "partition": "name", "job_state": "name", "node_power_consumption": "samples",
    },
    optional=frozenset({"user_id", "group_id", "qos", "partition", "job_state"}),
    marks=frozenset({"node_power_consumption", "num_cores_alloc"}),
    fields={
        "submit_s": "submit_time", "start_s": "start_time", "end_s": "end_time", "run_time_s": "run_time",
        "processors": "num_cores_alloc", "power_w": "node_power_consumption",
    },
    nodes="num_nodes_alloc",
    jobs=_jobs,
)  # fmt: skip
