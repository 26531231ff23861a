"""F-DATA: jobs of the supercomputer Fugaku with measured power (one Parquet file a month, such as ``23_06.parquet``).

Data and columns: Antici et al., "F-DATA: A Fugaku Workload Dataset for Job-centric Predictive Modelling in HPC
Systems", https://zenodo.org/records/11467483 (CC BY 4.0). Fugaku has 158,976 nodes of 48 cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from greenbatch.workload.ledger import Ledger
from greenbatch.workload.parquet import Cells, Floats
from greenbatch.workload.plausible_power import WITH_IDLE
from greenbatch.workload.power_traces import Jobs, Numbering, PowerTrace, read_power_trace
from greenbatch.workload.table import Workload

TOLERANCE = 0.1
"""Largest relative difference of energy and power x run time at which they agree."""
LEAST_J = 1.0
"""Jobs that use less energy decide nothing. [J]"""


def read_fdata(
    path: str | Path, *, strict: bool = False, processors: int | None = None, time_zone: str | None = None,
    most_node_w: float | None = None,
) -> Workload:  # fmt: skip
    """Read a month of F-DATA, or all Parquet files of a folder one by one.

    The submit time is ``adt``, the run time ``duration`` (else ``edt`` - ``sdt``), the requested time ``elpl`` in
    seconds, and processors are the allocated, else the requested cores. Job numbers are 1..n by submit time. Of the
    file's columns only those that are used are read; ``embedding`` stays on disk. Memory is not read: the data set
    states no unit.

    Power is constant while a job runs: ``avgpcon`` [W], idle power of the job's nodes included. The data set documents
    it as that of a node, its users report that of the whole job, so each file is tested: on jobs of several nodes, the
    median of ``econ`` x 3600 / (``avgpcon`` x ``duration``) is about 1 if it is that of the job, and about the number
    of nodes if it is that of a node, which is then multiplied. If neither holds, power is unknown. Power that no
    machine draws is left out: `plausible_power.implausible`.

    Args:
        path: the file, plain or gzip, or a folder.
        strict: refuse what would otherwise be dropped or ignored.
        processors: machine size [cores]; larger jobs are dropped.
        time_zone: IANA zone of time stamps without an offset. If None, they are taken as UTC and ``unix_start_s`` of
            the workload is None.
        most_node_w: highest plausible power of a node. [W]

    Returns:
        The jobs; trace time 0 is the first submission.

    Raises:
        InputError: a file cannot be read, lacks a column or has one of another type, no job is left, or a drop is
            necessary under ``strict``.
    """
    return read_power_trace(
        path, FDATA, strict=strict, processors=processors, time_zone=time_zone, most_node_w=most_node_w
    )


def _jobs(cells: Cells, times: Mapping[str, Floats], numbering: Numbering, ledger: Ledger) -> Jobs:
    """The jobs of a file."""
    allocated, nodes, run_s = cells.wholes("cnumat"), cells.wholes("nnuma"), cells.numbers("duration")
    return {
        "submit_s": times["adt"], "start_s": times["sdt"], "end_s": times["edt"], "run_time_s": run_s,
        "limit_s": cells.numbers("elpl"), "nodes": nodes,
        "processors": np.where(allocated > 0, allocated, cells.wholes("cnumr")),
        "power_w": _job_power(cells, run_s, nodes, ledger),
        "user": cells.codes("usr", numbering.setdefault("user", {})),
        "executable": cells.codes("jnam", numbering.setdefault("executable", {})),
        "status": cells.looked_up("exit state", {"completed": 1, "failed": 0}),
    }  # fmt: skip


def _job_power(cells: Cells, run_s: Floats, nodes: Floats, ledger: Ledger) -> Floats:
    """Mean power of each whole job [W], after a test of what ``avgpcon`` is; NaN if unknown."""
    stated_w, energy_j = cells.numbers("avgpcon"), cells.numbers("econ") * 3600.0
    work_j = stated_w * run_s
    measured, tested = stated_w > 0, (energy_j > 0) & (work_j > LEAST_J) & (nodes >= 1)
    agreement = np.full(len(stated_w), np.nan)
    agreement[tested] = energy_j[tested] / work_j[tested]
    several = bool((tested & (nodes > 1)).any())
    judged = tested & (nodes > 1) if several else tested
    where = f"in the median of jobs of {'several nodes' if several else 'one node'}"
    for of, factor in (("the whole job", np.ones(len(nodes))), ("a node", nodes)):
        ratio = agreement / factor
        if abs((median := _median(ratio[judged])) - 1.0) <= TOLERANCE:
            test = f"energy / (power x run time) is {median:.2f} {where}"
            what = f"power from avgpcon as that of {of}, {WITH_IDLE} ({test})"
            ledger.fact(what, cells.rows[measured], about="power_w")
            apart = np.abs(ratio - 1.0) > TOLERANCE
            ledger.fact(f"energy more than {TOLERANCE:.0%} from power x run time", cells.rows[apart], about="power_w")
            return np.where(measured, stated_w * factor, np.nan)
    test = f"econ x 3600 / (avgpcon x duration) is {_median(agreement[judged]):.3g} {where}"
    what = f"power ignored: avgpcon is neither that of a job nor that of a node ({test})"
    fix = "check the units of econ, avgpcon and duration"
    ledger.repair(what, cells.rows[measured], column="avgpcon", fix=fix)
    return np.full(len(stated_w), np.nan)


def _median(values: Floats) -> float:
    return float(np.median(values)) if values.size else np.nan


FDATA = PowerTrace(
    columns={
        "adt": "time", "sdt": "time", "edt": "time", "duration": "number", "elpl": "number", "cnumr": "whole",
        "cnumat": "whole", "nnuma": "whole", "econ": "number", "avgpcon": "number", "usr": "name", "jnam": "name",
        "exit state": "name",
    },
    optional=frozenset({"usr", "jnam", "exit state"}),
    marks=frozenset({"adt", "sdt", "avgpcon"}),
    fields={"submit_s": "adt", "start_s": "sdt", "end_s": "edt", "run_time_s": "duration", "processors": "cnumat",
            "power_w": "avgpcon"},
    jobs=_jobs,
)  # fmt: skip
