"""Job tables with measured power that sites publish as Parquet: from one file or a folder to a `Workload`.

A data set is a `PowerTrace`: its columns, and a function that turns those of one file into jobs. Dropping what cannot
be simulated, requested times, the clock and job numbers are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import whole_number
from greenbatch.notes import Level, Note
from greenbatch.workload.ledger import Ledger, none_left
from greenbatch.workload.local_time import unix_times, zone
from greenbatch.workload.parquet import Cells, Floats, Kind, parquet_files, read_cells
from greenbatch.workload.plausible_power import energy_of, without_implausible
from greenbatch.workload.requested import known_limits, requested_times
from greenbatch.workload.table import SHORTEST_S, Workload, is_float, trace_name

Jobs = dict[str, Floats]
"""Columns of the jobs of one file, NaN where unknown: those of a `Workload`, ``start_s`` and ``end_s`` [Unix s], and
``limit_s`` instead of ``requested_time_s``."""
Numbering = dict[str, dict[str, int]]
"""Column -> name -> number."""

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
    nodes: str | None = None
    """Column of the number of nodes that samples of power are sums over, if it has such samples."""
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
    path: str | Path, trace: PowerTrace, *, strict: bool, processors: int | None, time_zone: str | None,
    most_node_w: float | None,
) -> Workload:  # fmt: skip
    """Read one file of a data set, or all ``*.parquet`` of a folder one by one.

    Args:
        path: the file, plain or gzip, or the folder.
        trace: the data set.
        strict: refuse what would otherwise be dropped.
        processors: machine size; larger jobs are dropped.
        time_zone: IANA zone of time stamps without an offset; None takes them as UTC and leaves ``unix_start_s`` None.
        most_node_w: highest plausible power of a node, instead of `plausible_power.implausible`'s. [W]

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
        parts.append(_read_file(Ledger(file, strict), trace, tz, processors, numbering, rows, most_node_w))
    notes = parts[0].notes if len(parts) == 1 else _of_all_files(parts)
    local = sum(part.local for part in parts) if tz is None else 0
    if local:
        notes.append(Note("time stamps without a time zone taken as UTC", local, level="fact"))
    columns = {name: np.concatenate([part.jobs.pop(name) for part in parts]) for name in list(parts[0].jobs)}
    submit_s = columns["submit_s"]
    if not submit_s.size:
        raise none_left(path, notes)
    origin_s = float(submit_s.min())
    submit_s -= origin_s
    columns["job_id"] = np.empty(submit_s.size)
    columns["job_id"][np.argsort(submit_s, kind="stable")] = np.arange(1, submit_s.size + 1)
    return Workload.from_columns(
        trace_name(path), columns, machine_processors=processors, unix_start_s=None if local else origin_s,
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
    work_s: float
    """Processor-seconds of these. [s]"""
    energy_j: float
    """Measured energy of these. [J]"""
    local: int
    """Rows with a time that has no offset from UTC."""
    sha256: str


def _read_file(
    ledger: Ledger, trace: PowerTrace, tz: ZoneInfo | None, processors: int | None, numbering: Numbering, before: int,
    most_node_w: float | None,
) -> _Part:  # fmt: skip
    """Read the file of a ledger; ``before`` is the number of rows of the files before it."""
    cells = read_cells(ledger.file, trace.columns, trace.optional, nodes=trace.nodes, most_node_w=most_node_w)
    times, local = _times(cells, trace, tz, ledger)
    jobs = trace.jobs(cells, times, numbering, ledger)
    jobs["row"] = cells.rows.astype(np.float64)
    jobs["trace_row"] = jobs["row"] + (before - 1.0)
    span_s = jobs["end_s"] - jobs["start_s"]
    jobs["run_time_s"] = np.where(np.isnan(jobs["run_time_s"]), span_s, jobs["run_time_s"])
    work_s = np.where(np.isnan(jobs["start_s"]), 0.0, np.maximum(jobs["run_time_s"], 0.0) * jobs["processors"])
    ledger.measure(cells.rows, work_s)
    energy_j = energy_of(jobs["power_w"], jobs["run_time_s"])
    for name in (name for name, kind in trace.columns.items() if kind == "samples"):
        beyond = cells.rows[cells.numbers(f"{name} beyond") > 0]
        what = "implausible power samples of a job ignored"
        fix = "clear these samples, or set workload.most_node_w"
        ledger.repair(what, beyond, column=name, fix=fix, level="warning", about="power_w")
    jobs["power_w"] = without_implausible(
        jobs["power_w"], jobs["run_time_s"], jobs["processors"], jobs["nodes"], jobs.get("gpus", np.zeros(len(span_s))),
        cells.rows, ledger, column=trace.fields["power_w"], most_node_w=most_node_w,
    )  # fmt: skip
    jobs = _finished(_without_unusable(jobs, trace, processors, ledger), ledger)
    return _Part(jobs, ledger.notes, len(cells.rows), float(np.nansum(work_s)), energy_j, local, cells.sha256)


def _times(cells: Cells, trace: PowerTrace, tz: ZoneInfo | None, ledger: Ledger) -> tuple[dict[str, Floats], int]:
    """The times of one file [Unix s], and how many rows have one that is local."""
    times: dict[str, Floats] = {}
    any_local = np.zeros(len(cells.rows), dtype=bool)
    for name in (name for name, kind in trace.columns.items() if kind == "time"):
        stamps_s, local, unreadable = cells.times(name)
        fix = "write times such as 2023-06-01 12:00:00"
        ledger.repair("time that cannot be read, taken as missing", cells.rows[unreadable], column=name, fix=fix)
        times[name] = unix_times(stamps_s, local, tz).first_s
        any_local |= local & np.isfinite(stamps_s)
    return times, int(np.count_nonzero(any_local))


def _without_unusable(jobs: Jobs, trace: PowerTrace, processors: int | None, ledger: Ledger) -> Jobs:
    """The jobs that can be simulated, and that fit in the machine."""
    for what, column, fix, which in _UNUSABLE:
        bad = which(jobs)
        if bad.any():
            ledger.drop(f"{what} dropped", _rows(jobs)[bad], column=trace.fields[column], fix=fix)
            jobs = {name: values[~bad] for name, values in jobs.items()}
    fits = ledger.fitting(jobs["processors"], processors, _rows(jobs), column=trace.fields["processors"])
    return {name: values[fits] for name, values in jobs.items()}


def _finished(jobs: Jobs, ledger: Ledger) -> Jobs:
    """Columns of a `Workload`, with requested times and recorded waits."""
    rows = _rows(jobs)
    apart = np.abs(jobs["run_time_s"] - (jobs.pop("end_s") - jobs["start_s"])) > APART_S
    ledger.fact(f"run time more than {APART_S:g} s from end - start (kept)", rows[apart])
    limit_s, wait_s = jobs.pop("limit_s"), jobs.pop("start_s") - jobs["submit_s"]
    jobs["requested_time_s"] = requested_times(
        known_limits(limit_s), jobs["run_time_s"], rows, ledger, unknown="missing or unlimited"
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


def _of_all_files(parts: Sequence[_Part]) -> list[Note]:
    """Notes of several files added up, without lines."""
    wholes: dict[str, list[float]] = {
        "jobs": [part.rows for part in parts], "processor-hours": [part.work_s for part in parts],
        "energy": [part.energy_j for part in parts],
    }  # fmt: skip
    found: dict[tuple[str, str, Level], tuple[int, dict[str, float]]] = {}
    for k, part in enumerate(parts):
        for note in part.notes:
            count, amounts = found.get((note.what, note.about, note.level), (0, {}))
            amounts |= {of: amounts.get(of, 0.0) + share * wholes[of][k] for share, of in note.shares}
            found[note.what, note.about, note.level] = (count + note.count, amounts)
    return [
        Note(what, count, None, about, level, tuple((amount / sum(wholes[of]), of) for of, amount in amounts.items()))
        for (what, about, level), (count, amounts) in found.items()
    ]
