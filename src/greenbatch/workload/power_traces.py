"""Job tables with measured power that sites publish as Parquet: from one file or a folder to a `Workload`.

A data set is a `PowerTrace`: its columns, and a function that turns those of one file into jobs. Dropping what cannot
be simulated, requested times, the clock and job numbers are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import whole_number
from greenbatch.errors import InputError
from greenbatch.notes import Note
from greenbatch.workload.ledger import Ledger
from greenbatch.workload.local_time import unix_times, zone
from greenbatch.workload.parquet import Cells, Floats, Kind, parquet_files, read_cells
from greenbatch.workload.requested import requested_times
from greenbatch.workload.table import SHORTEST_S, Workload, is_float, trace_name

Jobs = dict[str, Floats]
"""Columns of the jobs of one file, NaN where unknown: those of a `Workload`, ``start_s`` and ``end_s`` [Unix s], and
``limit_s`` instead of ``requested_time_s``."""
Numbering = dict[str, dict[str, int]]
"""Column -> name -> number."""

NO_LIMIT_S = 10 * 365 * 86_400.0
"""Longer limits stand for none: Slurm's INFINITE is 2^32 - 1 minutes. [s]"""
APART_S = 60.0
"""Larger differences of run time and end - start are counted. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTrace:
    """A data set of jobs with measured power."""

    columns: Mapping[str, Kind]
    """Columns that are read, and what they hold."""
    optional: frozenset[str]
    """Those of them that a file need not have."""
    marks: frozenset[str]
    """Columns by which a file is recognized."""
    fields: Mapping[str, str]
    """Column of the jobs -> column of the file, for messages."""
    jobs: Callable[[Cells, Mapping[str, Floats], Numbering, Ledger], Jobs]
    """The jobs of one file; the second argument has its times. [Unix s]"""


_UNUSABLE: tuple[tuple[str, str, str, Callable[[Jobs], NDArray[np.bool_]]], ...] = (
    ("job without submit time", "submit_s", "give a time", lambda jobs: np.isnan(jobs["submit_s"])),
    ("job that never started", "start_s", "give a time", lambda jobs: np.isnan(jobs["start_s"])),
    ("job that ends before it starts", "end_s", "correct the times", lambda jobs: jobs["end_s"] < jobs["start_s"]),
    ("job without run time", "run_time_s", "give seconds > 0", lambda jobs: ~(jobs["run_time_s"] >= 0)),
    ("job that ran for 0 s", "run_time_s", "give seconds > 0", lambda jobs: jobs["run_time_s"] < SHORTEST_S),
    ("job without processors", "processors", "give at least 1", lambda jobs: ~(jobs["processors"] >= 1)),
)
"""What is dropped, in this order: words, column, fix, which jobs."""


def read_power_trace(
    path: str | Path, trace: PowerTrace, *, strict: bool, processors: int | None, time_zone: str | None
) -> Workload:
    """Read one file of a data set, or all ``*.parquet`` of a folder one by one.

    Args:
        path: the file, plain or gzip, or the folder.
        trace: the data set.
        strict: refuse what would otherwise be dropped.
        processors: machine size; larger jobs are dropped.
        time_zone: IANA zone of time stamps without an offset; None takes them as UTC and leaves ``unix_start_s`` None.

    Raises:
        InputError: a file cannot be read, lacks a column or has one of another type, no job is left, or a drop is
            necessary under ``strict``.
    """
    path = Path(path)
    processors = None if processors is None else whole_number(processors, "processors", lowest=1)
    tz = None if time_zone is None else zone(time_zone)
    numbering: Numbering = {}
    files = parquet_files(path)
    parts: list[_Part] = []
    for file in files:
        rows = sum(part.rows for part in parts)
        parts.append(_read_file(Ledger(file, strict), trace, tz, processors, numbering, rows))
    notes = parts[0].notes if len(parts) == 1 else _of_all_files([note for part in parts for note in part.notes])
    fixed = tz is not None or not any(part.local for part in parts)
    if not fixed:
        notes.append(Note("time stamps without a time zone taken as UTC", sum(part.rows for part in parts)))
    columns = {name: np.concatenate([part.jobs.pop(name) for part in parts]) for name in list(parts[0].jobs)}
    submit_s = columns["submit_s"]
    if not submit_s.size:
        fix = f"no job can be simulated: {'; '.join(map(str, notes))}"
        raise InputError("no job is left", file=path, fix=fix)
    origin_s = float(submit_s.min())
    submit_s -= origin_s
    columns["job_id"] = np.empty(submit_s.size)
    columns["job_id"][np.argsort(submit_s, kind="stable")] = np.arange(1, submit_s.size + 1)
    return Workload.from_columns(
        trace_name(path), columns, machine_processors=processors, unix_start_s=origin_s if fixed else None,
        time_zone=time_zone, notes=tuple(notes),
        sources={file.name: part.sha256 for file, part in zip(files, parts, strict=True)},
        names={name: {code: text for text, code in codes.items()} for name, codes in numbering.items() if codes},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Part:
    """What one file holds."""

    jobs: Jobs
    """Columns of a `Workload`."""
    notes: list[Note]
    rows: int
    """Rows, those that are dropped included."""
    local: bool
    """Whether any time has no offset from UTC."""
    sha256: str


def _read_file(
    ledger: Ledger, trace: PowerTrace, tz: ZoneInfo | None, processors: int | None, numbering: Numbering, before: int
) -> _Part:
    """Read the file of a ledger; ``before`` is the number of rows of the files before it."""
    cells = read_cells(ledger.file, trace.columns, trace.optional)
    times, local = _times(cells, trace, tz, ledger)
    jobs = trace.jobs(cells, times, numbering, ledger)
    jobs["row"] = cells.rows.astype(np.float64)
    jobs["trace_row"] = jobs["row"] + (before - 1.0)
    span_s = jobs["end_s"] - jobs["start_s"]
    jobs["run_time_s"] = np.where(np.isnan(jobs["run_time_s"]), span_s, jobs["run_time_s"])
    jobs = _finished(_without_unusable(jobs, trace, processors, ledger), ledger)
    return _Part(jobs, ledger.notes, len(cells.rows), local, cells.sha256)


def _times(cells: Cells, trace: PowerTrace, tz: ZoneInfo | None, ledger: Ledger) -> tuple[dict[str, Floats], bool]:
    """The times of one file [Unix s], and whether any of them is local."""
    times: dict[str, Floats] = {}
    any_local = False
    for name in (name for name, kind in trace.columns.items() if kind == "time"):
        stamps_s, local, unreadable = cells.times(name)
        fix = "write times such as 2023-06-01 12:00:00"
        ledger.repair("time that cannot be read, taken as missing", cells.rows[unreadable], column=name, fix=fix)
        times[name] = unix_times(stamps_s, local, tz).first_s
        any_local |= bool(np.any(local & np.isfinite(stamps_s)))
    return times, any_local


def _without_unusable(jobs: Jobs, trace: PowerTrace, processors: int | None, ledger: Ledger) -> Jobs:
    """The jobs that can be simulated, and that fit in the machine."""
    rules = [*_UNUSABLE]
    if processors is not None:
        what = f"job larger than the machine ({processors} processors)"
        rules.append((what, "processors", "remove the job", lambda jobs: jobs["processors"] > processors))
    for what, column, fix, which in rules:
        bad = which(jobs)
        if bad.any():
            ledger.repair(f"{what} dropped", _rows(jobs)[bad], column=trace.fields[column], fix=fix)
            jobs = {name: values[~bad] for name, values in jobs.items()}
    return jobs


def _finished(jobs: Jobs, ledger: Ledger) -> Jobs:
    """Columns of a `Workload`, with requested times and recorded waits."""
    rows = _rows(jobs)
    apart = np.abs(jobs["run_time_s"] - (jobs.pop("end_s") - jobs["start_s"])) > APART_S
    ledger.fact(f"run time more than {APART_S:g} s from end - start (kept)", rows[apart])
    limit_s, wait_s = jobs.pop("limit_s"), jobs.pop("start_s") - jobs["submit_s"]
    stated_s = np.where((limit_s > 0) & (limit_s < NO_LIMIT_S), limit_s, np.nan)
    jobs["requested_time_s"] = requested_times(
        stated_s, jobs["run_time_s"], rows, ledger, unknown="missing or unlimited"
    )
    ledger.fact("start before submission, recorded wait ignored", rows[wait_s < 0])
    jobs["recorded_wait_s"] = np.where(wait_s < 0, np.nan, wait_s)
    crowded = jobs["nodes"] > jobs["processors"]
    ledger.fact("more nodes than processors, number of nodes ignored", rows[crowded])
    jobs["nodes"] = np.where(crowded | (jobs["nodes"] < 1), np.nan, jobs["nodes"])
    ledger.fact("job without measured power", rows[np.isnan(jobs["power_w"])], about="power_w")
    del jobs["row"]
    return {name: values if is_float(name) else np.nan_to_num(values, nan=-1.0) for name, values in jobs.items()}


def _rows(jobs: Jobs) -> NDArray[np.int64]:
    """Row of each job in its file, from 1."""
    return jobs["row"].astype(np.int64)


def _of_all_files(notes: Sequence[Note]) -> list[Note]:
    """Notes of several files added up, without lines."""
    found: dict[tuple[str, str], Note] = {}
    for note in notes:
        key = note.what, note.about
        count = note.count + (found[key].count if key in found else 0)
        found[key] = replace(note, count=count, first_line=None)
    return list(found.values())
