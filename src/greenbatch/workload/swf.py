"""The Standard Workload Format (SWF, version 2.2) of the Parallel Workloads Archive.

Format: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html; Chapin et al., "Benchmarks and standards for the
evaluation of parallel job schedulers", JSSPP 1999.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import whole_number
from greenbatch.errors import InputError
from greenbatch.files import read_bytes, write_bytes
from greenbatch.workload.ledger import Ledger, none_left
from greenbatch.workload.requested import requested_times
from greenbatch.workload.swf_alea import with_extras
from greenbatch.workload.swf_text import field_name, parse
from greenbatch.workload.table import Workload, trace_name

Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwfRules:
    """What to do with job lines that cannot be simulated as they are. Defaults are for users.

    Raises:
        InputError: a run time is not > 0.
    """

    negative_run_time_s: float | None = None
    """Run time given to jobs whose run time is negative (unknown); None drops them. [s], > 0"""
    zero_run_time_s: float | None = None
    """Run time given to jobs whose run time is 0; None drops them. [s], > 0"""
    drop_larger: bool = True
    """Drop jobs larger than the machine, if its size is known."""
    repair_ids: bool = True
    """Drop repeated rows and partial records, renumber jobs without a unique id; False refuses them."""

    def __post_init__(self) -> None:
        for name in ("negative_run_time_s", "zero_run_time_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"is {value}", field=name, fix="give seconds > 0, or None to drop such jobs")


SWF_RULES: Mapping[str, SwfRules] = MappingProxyType(
    {
        "default": SwfRules(),
        "papers": SwfRules(negative_run_time_s=10.0, drop_larger=False, repair_ids=False),
    }
)
"""Named rules. ``papers`` reads traces like the published code of RLScheduler and GAS-MARL: a negative run time
becomes 10 s, jobs with a run time of 0 are dropped, jobs larger than the machine are kept."""

_LARGEST_HEADER_NUMBER = 1e11
"""Year 5138 as a Unix time, and more processors than any machine has."""
_HEADER_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.,]*\w)", re.ASCII)
"""A number that is not the beginning of a longer word: neither ``1e`` nor ``1,024``."""

_HEADER_NAME = re.compile(r"(\d{1,9})\s+(\S.{0,99})", re.ASCII)
"""Number and name of a queue or partition."""

DEFAULT_RULES = SWF_RULES["default"]


def read_swf(
    path: str | Path,
    *,
    strict: bool = False,
    limit: int | None = None,
    processors: int | None = None,
    repairs: SwfRules = DEFAULT_RULES,
    unix_start_s: float | None = None,
) -> Workload:
    """Read an SWF trace, plain or gzip.

    A trace of the simulator Alea, with 21 columns, also states nodes, GPUs, exclusive use and the queue's name.

    The names of queues and partitions that the header states are kept in ``names``.

    Processors are max(field 5, field 8); the requested time is field 9, or the run time if that is missing. Jobs
    that run longer than requested are counted, not changed: the engine kills or extends them.

    Args:
        path: the file; gzip is recognized by content.
        strict: refuse what would otherwise be repaired or dropped.
        limit: number of job lines to read; all if None.
        processors: machine size; by default MaxProcs of the header, else MaxNodes.
        repairs: what to do with lines that cannot be simulated as they are.
        unix_start_s: Unix time of trace time 0; by default the header's. [s]

    Returns:
        The jobs, sorted by id, with times on the trace's own clock; ``notes`` lists every repair and drop.

    Raises:
        InputError: the file cannot be read, is malformed, has no usable job, or needs a repair under ``strict``.
    """
    path = Path(path)
    limit = None if limit is None else whole_number(limit, "limit", lowest=1)
    processors = None if processors is None else whole_number(processors, "processors", lowest=1)
    content, sha256 = read_bytes(path)
    header, rows, lines, extras = parse(content, path)
    del content
    ledger = Ledger(path, strict)
    machine = processors if processors is not None else _machine_size(header, ledger)
    columns = _repaired(rows[:limit], lines[:limit], machine, repairs, ledger)
    names = _names(header)
    dated_s = next(iter(_stated(header, "unixstarttime", ledger)), None)
    if extras is not None:
        columns, queues = with_extras(columns, extras, lines, ledger)
        names |= queues
    return Workload.from_columns(
        trace_name(path),
        columns,
        machine_processors=machine,
        unix_start_s=dated_s if unix_start_s is None else unix_start_s,
        time_zone=_time_zone(header, ledger),
        names=names,
        notes=tuple(ledger.notes),
        sources={path.name: sha256},
    )


def write_swf(workload: Workload, path: str | Path) -> None:
    """Write a workload as SWF, gzipped if the name ends in ``.gz``. A failed write leaves no partial file.

    SWF has no field for ``power_w``, ``trace_row`` and the notes, so they are not written. Reading the file back gives
    the same values in every other column.

    Raises:
        InputError: the file cannot be written.
    """
    import polars

    missing = np.full(len(workload), -1, dtype=np.int64)
    columns = (
        workload.job_id, workload.submit_s, workload.recorded_wait_s, workload.run_time_s, workload.processors,
        missing, missing, workload.processors, workload.requested_time_s, workload.requested_memory_kb,
        workload.status, workload.user, workload.group, workload.executable, workload.queue, workload.partition,
        workload.preceding_job, workload.think_time_s,
    )  # fmt: skip
    body = polars.DataFrame({str(k): _as_written(values) for k, values in enumerate(columns)})
    jobs = body.write_csv(include_header=False, separator=" ").encode()
    write_bytes(Path(path), _header_text(workload).encode() + jobs)


def _repaired(
    rows: Rows, lines: NDArray[np.int64], machine: int | None, rules: SwfRules, ledger: Ledger
) -> dict[str, Any]:
    """The workload's columns from the job lines, after applying the rules in order.

    A line that breaks several rules is counted under the first.
    """
    trace_row = np.arange(len(rows))

    def drop(bad: NDArray[np.bool_], what: str, field: str, fix: str) -> None:
        nonlocal rows, lines, trace_row
        if bad.any():
            ledger.drop(what, lines[bad], column=field, fix=fix)
            rows, lines, trace_row = rows[~bad], lines[~bad], trace_row[~bad]

    if rules.repair_ids:
        drop(_partial_records(rows), "partial record of a job (status 2-4) dropped", field_name(11), "remove the line")
        drop(_repeated_rows(rows), "repeated row dropped", "job line", "remove the line")
    wanted = np.maximum(rows[:, 4], rows[:, 7])
    known = (rows[:, 3] >= 0) & (wanted > 0)
    ledger.measure(lines, np.where(known, rows[:, 3] * wanted, np.nan))
    drop(rows[:, 1] < 0, "job without submit time dropped", field_name(2), "give seconds >= 0")
    drop(np.maximum(rows[:, 4], rows[:, 7]) <= 0, "job without processors dropped", field_name(5), "give at least 1")
    for below_zero, default_s, what in (
        (True, rules.negative_run_time_s, "negative run time"),
        (False, rules.zero_run_time_s, "zero run time"),
    ):
        bad = rows[:, 3] < 0 if below_zero else rows[:, 3] == 0
        fix = "give seconds > 0"
        if default_s is None:
            drop(bad, f"job with {what} dropped", field_name(4), fix)
        elif bad.any():
            ledger.repair(f"{what} set to {default_s:g} s", lines[bad], column=field_name(4), fix=fix)
            rows[bad, 3] = default_s
    wanted = np.maximum(rows[:, 4], rows[:, 7])
    uneven = wanted != np.ceil(wanted)
    ledger.repair("fractional processors rounded up", lines[uneven], column=field_name(5), fix="give a whole number")
    wanted = np.ceil(wanted)
    fits = ledger.fitting(wanted, machine if rules.drop_larger else None, lines, column=field_name(5))
    if not fits.all():
        rows, lines, trace_row, wanted = rows[fits], lines[fits], trace_row[fits], wanted[fits]
    if not len(rows):
        raise none_left(ledger.file, ledger.notes)
    job_id, preceding = _ids(rows, lines, rules, ledger)
    requested_s = _requested(rows, lines, ledger)
    _count_order(job_id, rows[:, 1], lines, ledger)
    whole = rows[:, 10:16].astype(np.int64)
    return {
        "job_id": job_id, "submit_s": rows[:, 1], "run_time_s": rows[:, 3], "requested_time_s": requested_s,
        "processors": wanted, "status": whole[:, 0], "user": whole[:, 1], "group": whole[:, 2],
        "executable": whole[:, 3], "queue": whole[:, 4], "partition": whole[:, 5],
        "requested_memory_kb": _nan_below_zero(rows[:, 9]), "preceding_job": preceding,
        "think_time_s": _nan_below_zero(rows[:, 17]), "recorded_wait_s": _nan_below_zero(rows[:, 2]),
        "trace_row": trace_row,
    }  # fmt: skip


def _requested(rows: Rows, lines: NDArray[np.int64], ledger: Ledger) -> Rows:
    run_s, requested_s = rows[:, 3], rows[:, 8]
    missing = requested_s == -1
    bad = (requested_s <= 0) & ~missing
    what = "requested time not positive, run time used"
    ledger.repair(what, lines[bad], column=field_name(9), fix="give seconds > 0, or -1 if it is unknown")
    return requested_times(np.where(missing, np.nan, np.where(bad, run_s, requested_s)), run_s, lines, ledger)


def _partial_records(rows: Rows) -> NDArray[np.bool_]:
    """Checkpointed or swapped jobs have a summary line and one line per part, all with the same id (SWF, field 11)."""
    part = np.isin(rows[:, 10], (2, 3, 4))
    if part.any():
        part &= np.isin(rows[:, 0], rows[~part, 0])
    return part


def _repeated_rows(rows: Rows) -> NDArray[np.bool_]:
    repeated = np.zeros(len(rows), dtype=bool)
    if (np.diff(rows[:, 0]) > 0).all():
        return repeated
    _, group, size = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
    candidates = np.flatnonzero(size[group] > 1)
    if candidates.size:
        _, first = np.unique(rows[candidates], axis=0, return_index=True)
        repeated[np.delete(candidates, first)] = True
    return repeated


def _ids(rows: Rows, lines: NDArray[np.int64], rules: SwfRules, ledger: Ledger) -> tuple[Rows, Rows]:
    """Unique job ids and the matching preceding jobs; ids that are missing or not unique are replaced by 1..n.

    New numbers follow submit time, then line. Preceding jobs then refer to no known job and are dropped.
    """
    job_id, preceding = rows[:, 0], rows[:, 16]
    preceding = np.where(preceding > 0, preceding, -1)
    order = np.argsort(job_id, kind="stable")
    twice = np.zeros(len(rows), dtype=bool)
    twice[order[1:]] = np.diff(job_id[order]) == 0
    bad = twice | (job_id < 0)
    if not bad.any():
        absent = (preceding > 0) & ~np.isin(preceding, job_id)
        ledger.fact("preceding job is not in the trace (kept)", lines[absent])
        return job_id, preceding
    if not rules.repair_ids:
        row = int(np.flatnonzero(bad)[0])
        problem = "occurs twice" if twice[row] else "is not a job id"
        raise InputError(
            f"{job_id[row]:.0f} {problem}", file=ledger.file, line=int(lines[row]), field=field_name(1),
            fix="give each job its own number >= 0, or read with the default rules",
        )  # fmt: skip
    what = "job id missing or not unique, all jobs renumbered by submit time"
    ledger.repair(what, lines[bad], column=field_name(1), fix="give each job its own number >= 0")
    ledger.repair("preceding job dropped", lines[preceding > 0], column=field_name(17), fix="give unique job ids")
    renumbered = np.empty(len(rows))
    renumbered[np.argsort(rows[:, 1], kind="stable")] = np.arange(1, len(rows) + 1)
    return renumbered, np.full(len(rows), -1.0)


def _count_order(job_id: Rows, submit_s: Rows, lines: NDArray[np.int64], ledger: Ledger) -> None:
    for what, field, key in (("submit time", 2, submit_s), ("job id", 1, job_id)):
        behind = np.flatnonzero(np.diff(key) < 0) + 1
        message = f"row below one with a later {what} (jobs are kept in order of job id)"
        ledger.repair(message, lines[behind], column=field_name(field), fix=f"sort the job lines by {what}")


def _machine_size(header: Mapping[str, list[str]], ledger: Ledger) -> int | None:
    for key in ("maxprocs", "maxnodes"):
        sizes = _stated(header, key, ledger, whole=True)
        if len(sizes) > 1:
            ledger.say(f"header states {key} more than once, {sizes[0]:g} used", len(sizes))
        if sizes:
            return int(sizes[0])
    ledger.say("header states no machine size", 1)
    return None


def _stated(header: Mapping[str, list[str]], key: str, ledger: Ledger, *, whole: bool = False) -> list[float]:
    """The different numbers from 1 to 1e11 that the header states for a key, in order.

    Free text may follow a number. Blank, 0 and -1 mean "unknown"; other values are noted and ignored.
    """
    numbers: list[float] = []
    for text in header.get(key, ()):
        match = _HEADER_NUMBER.match(text)
        value = float(match[0]) if match else np.nan
        if 1 <= value <= _LARGEST_HEADER_NUMBER and (value.is_integer() or not whole):
            numbers.append(value)
        elif text and value not in (0, -1):
            wanted = f"a{' whole' * whole} number from 1 to {_LARGEST_HEADER_NUMBER:g}".replace("e+", "e")
            ledger.say(f"header states {key} {text[:30]!a}, which is not {wanted}, ignored", 1)
    return list(dict.fromkeys(numbers))


def _names(header: Mapping[str, list[str]]) -> dict[str, Mapping[int, str]]:
    """Names of queues and partitions that the header states as ``Partition: 3 batch``; the first of a number counts."""
    found: dict[str, Mapping[int, str]] = {}
    for column in ("queue", "partition"):
        matches = (_HEADER_NAME.fullmatch(text) for text in header.get(column, ()))
        pairs = [(int(match[1]), match[2]) for match in matches if match and match[2].isprintable()]
        if pairs:
            found[column] = dict(reversed(pairs))
    return found


def _time_zone(header: Mapping[str, list[str]], ledger: Ledger) -> str | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    for name in header.get("timezonestring", ()):
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            ledger.say(f"header time zone {name!r} is unknown, ignored", 1)
        else:
            return name
    return None


def _header_text(workload: Workload) -> str:
    known = (
        ("Version", "2.2"), ("Computer", workload.name), ("MaxJobs", len(workload)), ("MaxRecords", len(workload)),
        ("UnixStartTime", None if workload.unix_start_s is None else f"{workload.unix_start_s:.16g}"),
        ("TimeZoneString", workload.time_zone), ("MaxProcs", workload.machine_processors),
    )  # fmt: skip
    return "".join(f"; {key}: {' '.join(str(value).split())}\n" for key, value in known if value is not None)


def _as_written(values: NDArray[Any]) -> NDArray[Any]:
    """Missing values as -1, and whole numbers without a decimal point."""
    filled = np.where(np.isnan(values), -1.0, values) if values.dtype.kind == "f" else values
    whole = (filled == np.floor(filled)) & (np.abs(filled) < 2.0**53)
    return filled.astype(np.int64) if whole.all() else filled


def _nan_below_zero(values: Rows) -> Rows:
    return np.where(values < 0, np.nan, values)
