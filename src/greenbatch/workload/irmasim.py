"""Workloads of the simulator IRMaSim, as JSON (https://github.com/irmasim/IRMaSim and its examples).

``jobs`` is an array of objects with ``id``, ``subtime`` [s] and either ``res`` = n (n processors of one node) or two of
``nodes``, ``ntasks`` and ``ntasks_per_node``; ``profile`` names an object of ``profiles``, or the job holds its fields:

- ``req_ops`` and ``ipc`` (1): every task executes req_ops / ipc operations;
- ``req_time``: the requested time. [s]
- ``mem`` (0): memory of a task; IRMaSim states no unit and limits nothing by it; taken as MB.
- ``mem_vol``: data that a task moves from and to memory (1 in a profile, else 0). [MB]
- ``req_energy`` (0): energy that the user expects a task to use. [J]
"""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np

from greenbatch.arguments import whole_number
from greenbatch.errors import InputError
from greenbatch.json_input import Json, distinct, read_json
from greenbatch.workload.ledger import Ledger, none_left
from greenbatch.workload.table import LATEST_S, SHORTEST_S, Workload, trace_name

REFERENCE_GFLOPS = 3.0
"""Peak of a processor of speed 1 if none is stated: InEPS's requested times are operations / this. [Gflop/s]"""
_MOST = 1_000_000
"""Largest number of processors of a job."""


def read_irmasim(
    path: str | Path,
    *,
    strict: bool = False,
    processors: int | None = None,
    reference_gflops: float = REFERENCE_GFLOPS,
) -> Workload:
    """Read a workload of IRMaSim.

    The run time is that on a processor of speed 1. Job numbers are positions in the file, from 0; ``names["job_id"]``
    holds the ids, and ``names["executable"]`` the profiles.

    Args:
        path: the file, plain or gzip.
        strict: refuse what would otherwise be dropped.
        processors: machine size; larger jobs are dropped.
        reference_gflops: peak of a processor of speed 1, > 0, which the file does not state. [Gflop/s]

    Raises:
        InputError: the file is not JSON, or a field is missing, of the wrong type or out of range; names its path.
    """
    path = Path(path)
    processors = None if processors is None else whole_number(processors, "processors", lowest=1)
    if not 0 < reference_gflops < float("inf"):
        raise InputError(f"is {reference_gflops}", field="reference_gflops", fix="give Gflop/s > 0")
    content, sha256 = read_json(path)
    jobs = content.field("jobs").rows()
    profiles = content.field("profiles", {}).table()
    ids = [job.field("id", f"job{k}") for k, job in enumerate(jobs)]
    distinct(ids)
    numbers = {name: k for k, name in enumerate(profiles)}
    columns: dict[str, list[float]] = {}
    for k, job in enumerate(jobs):
        row = {
            "job_id": k,
            "trace_row": k,
            "submit_s": job.field("subtime").number(0, LATEST_S),
            **_size(job),
            **_work(job, profiles, reference_gflops),
            "executable": numbers[job.field("profile").text()] if "profile" in job.table() else -1,
        }
        for column, value in row.items():
            columns.setdefault(column, []).append(value)
    table = {column: np.array(values) for column, values in columns.items()}
    ledger = Ledger(path, strict, [job.path for job in jobs])
    ledger.measure(table["job_id"], table["run_time_s"] * table["processors"])
    ledger.say(f"operations of a job as run time on {reference_gflops:g} Gflop/s", len(jobs))
    fits = ledger.fitting(table["processors"], processors, table["job_id"], column="res")
    if not fits.any():
        raise none_left(path, ledger.notes)
    return Workload.from_columns(
        trace_name(path), {column: values[fits] for column, values in table.items()},
        machine_processors=processors, sources={path.name: sha256}, notes=tuple(ledger.notes),
        names={
            "job_id": {k: each.text() for k, each in enumerate(ids)},
            "executable": {k: name for name, k in numbers.items()},
        },
    )  # fmt: skip


def _work(job: Json, profiles: dict[str, Json], reference_gflops: float) -> dict[str, float]:
    """What a job executes and requests: the columns of its profile, or of its own fields."""
    named = "profile" in job.table()
    holder = job.field("profile").choice(profiles, "profile") if named else job
    operations = ceil(holder.field("req_ops").number(above=0) / holder.field("ipc", 1).number(1e-6, 1e6))
    run_s = operations / (reference_gflops * 1e9)
    if not SHORTEST_S <= run_s <= LATEST_S:
        fix = f"give operations for {SHORTEST_S:g} to {LATEST_S:g} s"
        raise holder.field("req_ops").refuse(f"is a run time of {run_s:g} s", fix)
    return {
        "run_time_s": run_s,
        "requested_time_s": holder.field("req_time", run_s).number(above=0, highest=LATEST_S),
        "requested_memory_kb": holder.field("mem", 0).number(0) * 1000.0,
        "memory_volume_mb": holder.field("mem_vol", 1.0 if named else 0.0).number(0),
        "requested_energy_j": holder.field("req_energy", 0).number(0),
    }


def _size(job: Json) -> dict[str, int]:
    """Nodes and processors of a job."""
    fields = job.table()
    if "res" in fields:
        if extra := [key for key in ("nodes", "ntasks", "ntasks_per_node") if key in fields]:
            raise fields[extra[0]].refuse("is given beside res", "give res, or nodes and tasks")
        return {"nodes": 1, "processors": fields["res"].whole(1, _MOST)}
    given = {key: fields[key].whole(1, _MOST) for key in ("nodes", "ntasks", "ntasks_per_node") if key in fields}
    if not given:
        raise job.field("res", None).refuse("is missing", "add it, or nodes and ntasks_per_node")
    if "ntasks" in given and len(given) == 1:  # each task on a node of its own
        given["nodes"] = given["ntasks"]
    each, tasks, nodes = given.get("ntasks_per_node"), given.get("ntasks"), given.get("nodes")
    if nodes is None and tasks is not None and each is not None:
        nodes = tasks // each
    nodes = 1 if nodes is None else nodes
    if tasks is None:
        tasks = nodes * (1 if each is None else each)
    if not nodes or tasks % nodes or (each is not None and tasks != nodes * each):
        text = ", ".join(f"{key} {value}" for key, value in given.items())
        raise job.refuse(f"{text} do not agree", "ntasks must be nodes x ntasks_per_node")
    return {"nodes": nodes, "processors": tasks}
