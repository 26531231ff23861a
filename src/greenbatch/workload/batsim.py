"""Workloads of the simulator Batsim, as JSON (https://batsim.readthedocs.io/en/latest/input-workload.html).

``jobs`` is an array of objects with ``id``, ``subtime`` [s], ``res`` (number of hosts), ``profile`` and, where there is
a limit, ``walltime`` [s]; ``profiles`` names what jobs do. Of these only ``delay`` states a run time: how long all
others take depends on a platform, which is not simulated.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from greenbatch.arguments import whole_number
from greenbatch.json_input import Json, distinct, read_json
from greenbatch.workload.ledger import Ledger, none_left
from greenbatch.workload.requested import requested_times
from greenbatch.workload.table import LATEST_S, SHORTEST_S, Workload, trace_name

_MOST = 10_000_000
"""Largest number of hosts of a job."""


def read_batsim(path: str | Path, *, strict: bool = False, processors: int | None = None) -> Workload:
    """Read a workload of Batsim; a host is a processor.

    The run time is the ``delay`` of a job's profile; jobs of other profiles, and of a delay of 0, are dropped. The
    requested time is the ``walltime``; a job without one has no limit, see `requested.requested_times`. Job numbers are
    positions in the file, from 0; ``names["job_id"]`` holds the ids, and ``names["executable"]`` the profiles.

    Args:
        path: the file, plain or gzip.
        strict: refuse what would otherwise be dropped.
        processors: machine size, larger jobs are dropped; by default ``nb_res`` of the file.

    Raises:
        InputError: the file is not JSON, a field is missing, of the wrong type or out of range, or no job is left;
            names its path.
    """
    path = Path(path)
    processors = None if processors is None else whole_number(processors, "processors", lowest=1)
    content, sha256 = read_json(path)
    jobs, profiles = content.field("jobs").rows(), content.field("profiles").table()
    ids = [_id(job.field("id")) for job in jobs]
    distinct(ids)
    numbers = {name: k for k, name in enumerate(profiles)}
    chosen = [job.field("profile").choice(profiles, "profile") for job in jobs]
    machine = content.field("nb_res", None)
    if processors is None and machine.value is not None:
        processors = machine.whole(1, _MOST)
    run_s = np.array([_delay_s(profile) for profile in chosen])
    size = np.array([job.field("res").whole(1, _MOST) for job in jobs])
    ledger = Ledger(path, strict, [job.path for job in jobs])
    ledger.measure(np.arange(len(jobs)), run_s * size)
    what, fix = "job of a profile that states no run time dropped", 'give it a profile of "type": "delay"'
    ledger.drop(what, np.flatnonzero(np.isnan(run_s)), column="profile", fix=fix)
    ledger.drop("job that ran for 0 s dropped", np.flatnonzero(run_s < SHORTEST_S), column="profile", fix="remove it")
    kept = np.flatnonzero(run_s >= SHORTEST_S)
    kept = kept[ledger.fitting(size[kept], processors, kept, column="res")]
    if not kept.size:
        raise none_left(path, ledger.notes)
    limit_s = np.array([_limit_s(job) for job in jobs])[kept]
    return Workload.from_columns(
        trace_name(path),
        {
            "job_id": kept, "trace_row": kept, "run_time_s": run_s[kept], "processors": size[kept],
            "submit_s": np.array([job.field("subtime").number(0, LATEST_S) for job in jobs])[kept],
            "requested_time_s": requested_times(limit_s, run_s[kept], kept, ledger, unknown="unlimited"),
            "executable": np.array([numbers[job.field("profile").text()] for job in jobs])[kept],
        },
        machine_processors=processors, notes=tuple(ledger.notes), sources={path.name: sha256},
        names={
            "job_id": {k: each.text() for k, each in enumerate(ids)},
            "executable": {k: name for name, k in numbers.items()},
        },
    )  # fmt: skip


def _id(given: Json) -> Json:
    """A job's id as text; Batsim also takes numbers."""
    number = isinstance(given.value, int) and not isinstance(given.value, bool)
    return Json(str(given.value), given.path, given.file) if number else given


def _delay_s(profile: Json) -> float:
    """Run time of a profile, NaN if it states none. [s]"""
    if profile.field("type").text() != "delay":
        return float("nan")
    return profile.field("delay").number(0, LATEST_S)


def _limit_s(job: Json) -> float:
    """Time limit of a job, infinite if it has none, which Batsim also writes as -1. [s]"""
    given = job.field("walltime", -1)
    return float("inf") if given.value is None or given.value == -1 else given.number(SHORTEST_S, LATEST_S)
