"""Slurm accounting dumps: ``sacct --parsable2`` with the field names on the first line.

Fields and formats: ``man sacct`` (Slurm 26.05) and ``src/sacct/print.c``. The recommended command is::

    TZ=UTC sacct -a -X -D -P --noconvert -S 2026-01-01 -E 2026-02-01 -o JobIDRaw,JobID,User,Account,Partition,QOS,\
State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS,AllocNodes,NodeList,ReqMem,AllocTRES,\
ConsumedEnergyRaw
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import whole_number
from greenbatch.errors import InputError, did_you_mean
from greenbatch.files import read_bytes
from greenbatch.node_lists import MOST_NODES
from greenbatch.workload import sacct_text
from greenbatch.workload.ledger import Ledger, none_left
from greenbatch.workload.local_time import unix_times, zone
from greenbatch.workload.plausible_power import WITH_IDLE, without_implausible
from greenbatch.workload.requested import known_limits, requested_times
from greenbatch.workload.sacct_text import Dump
from greenbatch.workload.shared_nodes import are_of_nodes, parts_of_nodes
from greenbatch.workload.table import Workload, trace_name

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

Requeued = Literal["last-run", "every-run"]
"""What is kept of a job that was requeued: its last run, or every run as a job of its own."""
SharedNodes = Literal["split", "keep"]
"""What is done with the energies of jobs that shared nodes: they are those of the nodes and split, or kept."""

_UNFINISHED = frozenset(
    ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED")
)
SLURM_STATUS = {
    "COMPLETED": 1, "FAILED": 0, "TIMEOUT": 0, "OUT_OF_MEMORY": 0, "NODE_FAIL": 0, "BOOT_FAIL": 0, "DEADLINE": 0,
    "PREEMPTED": 0, "REQUEUED": 0, "CANCELLED": 5, "REVOKED": 5,
}  # fmt: skip
"""Slurm state (its first word: ``CANCELLED by 1000``) -> SWF status; -1 for states not listed."""

Readers = tuple[tuple[str, Callable[[Dump, str], Floats]], ...]
"""Fields that may hold a value, in order of preference, each with its reader."""

MOST_NAMES = 10_000_000
"""Nodes that all lists of a dump may name together for energies to be split: about 3 GB of memory."""
_MAY_HAVE_SHARED = "measured jobs may have shared nodes ({}): each has the energy of its whole nodes"
_PLAIN_ID = re.compile(r"[0-9]{1,15}")


@dataclass(slots=True)
class _Jobs:
    """Numbers of the job rows, all of shape (n,). Rows stay in the order of the file until components are merged."""

    line: NDArray[np.int64]
    trace_row: NDArray[np.int64]
    tasks: Floats
    """Jobs that the row stands for: the tasks of a pending array, else 1."""
    key: NDArray[Any]
    """JobID as text: distinguishes array tasks and components of heterogeneous jobs."""
    leader: NDArray[Any]
    """JobID without the ``+k`` of a component."""
    run: NDArray[np.int64]
    """Which run of a requeued job it is, from 0."""
    number: Floats
    """Job number, NaN if the id is not a plain integer."""
    status: NDArray[np.int64]
    unfinished: Mask
    submit_s: Floats
    start_s: Floats
    run_s: Floats
    limit_s: Floats
    allocated: Floats
    processors: Floats
    energy_j: Floats
    nodes: Floats
    gpus: Floats
    node_list: NDArray[np.int64]
    """Number of the node list, -1 if blank."""
    memory_kb: Floats
    """Memory of the whole job."""
    user: NDArray[np.int64]
    group: NDArray[np.int64]
    partition: NDArray[np.int64]
    queue: NDArray[np.int64]

    @property
    def never(self) -> Mask:
        """Which rows never ran."""
        return np.asarray(np.isnan(self.start_s) | ((self.allocated == 0) & (self.run_s == 0)))

    def take(self, rows: NDArray[Any]) -> _Jobs:
        return _Jobs(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def read_sacct(
    path: str | Path,
    *,
    strict: bool = False,
    time_zone: str | None = None,
    processors: int | None = None,
    requeued: Requeued | None = None,
    shared_nodes: SharedNodes | None = None,
    most_node_w: float | None = None,
    partition_limits_s: Mapping[str, float] | None = None,
) -> Workload:
    """Read a ``sacct --parsable2`` or ``--parsable`` dump, plain or gzip, with its fields in any order.

    The submit time is Submit, or Eligible if that is later (held and dependent jobs). The run time is ElapsedRaw, else
    Elapsed, else End - Start; the requested time is TimelimitRaw, else Timelimit, see `requested.requested_times` for
    jobs without; processors are the allocated, else the requested ones. Steps are skipped, and the components of a
    heterogeneous job are merged into one job. Accounts become groups and QOS become queues, numbered by first
    appearance; ``names`` keeps their names. Nodes are AllocNodes, NNodes or ReqNodes, else the ``node=`` of AllocTRES,
    else those in NodeList; GPUs are those of AllocTRES or ReqTRES, else of AllocGRES, else ReqGRES x nodes. Memory is
    the ``mem=`` of AllocTRES or ReqTRES, else ReqMem, divided among the processors. A dump does not record which jobs
    used their nodes exclusively.

    Power is ConsumedEnergyRaw / run time if recorded. Slurm measures whole nodes, idle power included, and books them
    on every job there, so the energy of nodes that jobs shared at the same time, as NodeList tells, is split by their
    processors, unless the energies contradict that they are those of nodes (`shared_nodes.are_of_nodes`). Power that no
    machine draws is left out: `plausible_power.implausible`.

    Args:
        path: the dump.
        strict: refuse what would otherwise be dropped or repaired.
        time_zone: IANA zone of times without an offset; ``UTC`` for dumps made with ``TZ=UTC``. If None, they are
            taken as UTC and ``unix_start_s`` of the workload is None.
        processors: machine size [CPUs as Slurm counts them]; larger jobs are dropped.
        requeued: of a job that was requeued (``sacct -D`` lists its runs), keep the last run (default), or every run
            as a job that is submitted when it was queued again; then ``preceding_job`` and ``think_time_s`` tell of
            the run before.
        shared_nodes: ``keep`` if the site's energies are those of jobs, ``split`` if they are those of nodes; by
            default that is judged by the energies.
        most_node_w: highest plausible power of a node. [W]
        partition_limits_s: partition -> ``MaxTime``, for jobs without a time limit of their own. [s]

    Returns:
        The jobs, sorted by job number; trace time 0 is the first submission.

    Raises:
        InputError: the file cannot be read, is malformed, lacks a required field, has no usable job, or needs a
            repair under ``strict``.
    """
    path = Path(path)
    processors = None if processors is None else whole_number(processors, "processors", lowest=1)
    for field, given, kind in (("requeued", requeued, Requeued), ("shared_nodes", shared_nodes, SharedNodes)):
        if given is not None and given not in (choices := get_args(kind)):
            fix = did_you_mean(str(given), choices, otherwise="use " + " or ".join(choices))
            raise InputError(f"is {given!r}", field=field, fix=fix)
    tz = None if time_zone is None else zone(time_zone)
    content, sha256 = read_bytes(path)
    ledger = Ledger(path, strict)
    numbering: dict[str, dict[str, int]] = {name: {} for name in (*_NAMES, "node_list")}
    raw = _raw(content, path, numbering, ledger)
    del content
    lists = numbering.pop("node_list")
    local = np.any([raw[f"{name} local"] for name in _TIMES], axis=0)
    fixed = tz is not None or not local.any()
    rows = _once(_jobs(raw, tz, ledger), ledger)
    ledger.measure(rows.line, _work_s(rows), rows.tasks)
    if not fixed:
        ledger.fact("time stamps without a time zone taken as UTC", raw["line"][local])
    jobs = _without_unusable(rows, requeued, ledger)
    jobs.energy_j = _plausible_energy(jobs, most_node_w, ledger)
    if shared_nodes != "keep":
        texts = {code: text for text, code in lists.items()}
        jobs.energy_j = _split_energy(jobs, rows, texts, ledger, certain=shared_nodes == "split")
    jobs = _merged(jobs, ledger)
    jobs = jobs.take(ledger.fitting(jobs.processors, processors, jobs.line, column="AllocCPUS"))
    if not len(jobs.line):
        raise none_left(path, ledger.notes)
    origin_s = float(jobs.submit_s.min())
    most_s = _most_s(jobs, numbering["partition"], partition_limits_s or {})
    return Workload.from_columns(
        trace_name(path),
        _columns(jobs, origin_s, most_s, ledger),
        machine_processors=processors,
        unix_start_s=origin_s if fixed else None,
        time_zone=time_zone,
        names=_names(numbering),
        notes=tuple(ledger.notes),
        sources={path.name: sha256},
    )


def _raw(
    content: bytes, path: Path, numbering: dict[str, dict[str, int]], ledger: Ledger
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """The dump's fields as numbers, shape (n,) each; times are not converted yet.

    Args:
        content: the file.
        path: its path, for messages.
        numbering: output; name -> number of each column in `_NAMES`.
        ledger: takes the notes.
    """
    parts, steps, headers, cut, header_line = [], [], [], [], 1
    for block in sacct_text.blocks(content, path):
        header_line = block.header_line
        steps.append(block.steps)
        headers.append(block.repeated_headers)
        cut.append(block.cut)
        parts.append(_numbers(block, numbering))
    what, fix = "truncated last line ignored; jobs may be missing", "copy the dump again, or remove the line"
    ledger.repair(what, np.concatenate(cut), column="row", fix=fix, level="warning")
    ledger.fact("repeated header line skipped", np.concatenate(headers))
    ledger.fact("step skipped", np.concatenate(steps))
    raw = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    what = "unknown State, job taken as ended unless its End is Unknown"
    ledger.fact(what, raw["line"][raw["unknown state"]])
    if not len(raw["line"]):
        fix = "run sacct with -X, over a period with jobs"
        raise InputError("has no jobs", file=path, line=header_line, field="JobID", fix=fix)
    return raw


def _names(numbering: dict[str, dict[str, int]]) -> dict[str, dict[int, str]]:
    """Column -> number -> name, for the columns that name anything."""
    named = {column: {code: name for name, code in codes.items() if name} for column, codes in numbering.items()}
    return {column: table for column, table in named.items() if table}


def _numbers(dump: Dump, numbering: dict[str, dict[str, int]]) -> dict[str, NDArray[Any]]:
    for names in (("Submit",), ("Start",), ("ElapsedRaw", "Elapsed", "End")):
        dump.needed(*names)
    dump.needed(*(name for name, _ in _ALLOCATED + _REQUESTED))
    raw: dict[str, NDArray[Any]] = {"line": dump.lines}
    for name in _TIMES:
        if dump.first_of(name):
            raw[name], raw[f"{name} local"] = sacct_text.stamps(dump, name)
        else:
            raw[name], raw[f"{name} local"] = np.full(len(dump), np.nan), np.zeros(len(dump), dtype=bool)
    for ours, theirs in _NAMES.items():
        found = dump.first_of(*theirs)
        raw[ours] = sacct_text.codes(dump.column(found) if found else [""] * len(dump), numbering[ours])
    for ours, readers in _NUMBERS.items():
        raw[ours] = _first(dump, readers)
    raw["key"] = np.array(dump.column(dump.needed("JobID", "JobIDRaw")), dtype=str)
    raw["tasks"] = sacct_text.task_counts(raw["key"].tolist())
    lists = dump.column("NodeList") if dump.first_of("NodeList") else [""] * len(dump)
    raw["node_list"] = sacct_text.codes(lists, numbering["node_list"])
    raw["leader"] = np.array([key.partition("+")[0] for key in raw["key"].tolist()], dtype=str)
    ids = dump.column(dump.needed("JobIDRaw", "JobID"))
    raw["number"] = np.array([float(text) if _PLAIN_ID.fullmatch(text) else np.nan for text in ids], dtype=np.float64)
    raw["status"], raw["unfinished"], raw["unknown state"] = _states(dump, ended=~np.isnan(raw["End"]))
    return raw


def _states(dump: Dump, ended: Mask) -> tuple[NDArray[np.int64], Mask, Mask]:
    """SWF status, which jobs had not ended when the dump was made, and which have an unknown State.

    Where there is no known State, a job has ended if it has an End, or if the dump has no such field.
    """
    by_end = ~ended if dump.first_of("End") is not None else np.zeros(len(ended), dtype=bool)
    if dump.first_of("State") is None:
        return np.full(len(ended), -1, dtype=np.int64), by_end, np.zeros(len(ended), dtype=bool)
    words = [(text.split() or [""])[0].rstrip("+") for text in dump.column("State")]
    status = np.array([SLURM_STATUS.get(word, -1) for word in words], dtype=np.int64)
    unfinished = np.array([word in _UNFINISHED for word in words], dtype=bool)
    unknown = (status == -1) & ~unfinished
    return status, unfinished | (unknown & by_end), unknown


def _first(dump: Dump, readers: Readers) -> Floats:
    """For each row, the first of several fields that has a value, each with its own reader; NaN if none has."""
    values = np.full(len(dump), np.nan)
    for name, read in readers:
        if dump.first_of(name) is not None:
            values = np.where(np.isnan(values), read(dump, name), values)
    return values


def _gpus_per_node(dump: Dump, name: str) -> Floats:
    return sacct_text.gpus(dump, name) * np.fmax(_first(dump, _NODES), 1)


_TIMES = ("Submit", "Eligible", "Start", "End")
_NAMES = {"user": ("User", "UID"), "group": ("Account", "Group", "GID"), "partition": ("Partition",), "queue": ("QOS",)}
_ALLOCATED: Readers = (
    ("AllocCPUS", sacct_text.counts), ("NCPUS", sacct_text.counts), ("AllocTRES", sacct_text.tres_counts("cpu")),
)  # fmt: skip
_REQUESTED: Readers = (("ReqCPUS", sacct_text.counts), ("ReqTRES", sacct_text.tres_counts("cpu")))
_NODES: Readers = (
    *((name, sacct_text.counts) for name in ("AllocNodes", "NNodes", "ReqNodes")),
    ("AllocTRES", sacct_text.tres_counts("node")), ("NodeList", sacct_text.node_counts),
)  # fmt: skip
_GPUS: Readers = (
    *((name, sacct_text.gpus) for name in ("AllocTRES", "ReqTRES", "AllocGRES")), ("ReqGRES", _gpus_per_node),
)  # fmt: skip
_MEMORY: Readers = tuple((name, sacct_text.tres_memory_kb) for name in ("AllocTRES", "ReqTRES"))
_NUMBERS: dict[str, Readers] = {
    "elapsed_s": (("ElapsedRaw", sacct_text.counts), ("Elapsed", sacct_text.durations)),
    "limit_s": (("TimelimitRaw", sacct_text.minutes), ("Timelimit", sacct_text.durations)),
    "allocated": _ALLOCATED,
    "requested": _REQUESTED,
    "nodes": _NODES,
    "gpus": _GPUS,
    "memory_kb": (*_MEMORY, ("ReqMem", sacct_text.memories_kb(""))),
    "memory_per_node_kb": (("ReqMem", sacct_text.memories_kb("n")),),
    "memory_per_processor_kb": (("ReqMem", sacct_text.memories_kb("c")),),
    "energy_j": (("ConsumedEnergyRaw", sacct_text.energies), ("ConsumedEnergy", sacct_text.energies)),
}


def _jobs(raw: dict[str, NDArray[Any]], tz: ZoneInfo | None, ledger: Ledger) -> _Jobs:
    submit_s, start_s, run_s = _resolved(raw, tz, ledger)
    allocated = np.nan_to_num(raw["allocated"])
    processors = np.where(allocated > 0, allocated, np.nan_to_num(raw["requested"]))
    nodes = np.where(raw["nodes"] > 0, raw["nodes"], np.nan)
    divided_kb = np.fmax(raw["memory_per_node_kb"] * np.fmax(nodes, 1), raw["memory_per_processor_kb"] * processors)
    same = ("line", "tasks", "key", "leader", "number", "status", "unfinished", "limit_s", "energy_j", "gpus",
            "node_list", *_NAMES)  # fmt: skip
    return _Jobs(
        trace_row=np.arange(len(submit_s)), run=np.zeros(len(submit_s), dtype=np.int64),
        submit_s=submit_s, start_s=start_s, run_s=run_s, allocated=allocated,
        processors=processors, nodes=nodes,
        memory_kb=np.where(np.isnan(raw["memory_kb"]), divided_kb, raw["memory_kb"]),
        **{name: raw[name] for name in same},
    )  # fmt: skip


def _resolved(raw: dict[str, NDArray[Any]], tz: ZoneInfo | None, ledger: Ledger) -> tuple[Floats, Floats, Floats]:
    """Submission, start [Unix s] and run time [s]; times in the repeated hour are resolved by their order."""
    times = {name: unix_times(raw[name], raw[f"{name} local"], tz) for name in _TIMES}
    elapsed_s = raw["elapsed_s"]
    submit_s = times["Submit"].first_s
    eligible_s = times["Eligible"].not_before(submit_s)
    start_s = times["Start"].not_before(np.fmax(submit_s, eligible_s))
    end_s = times["End"].not_before(start_s)
    from_end_s = end_s - elapsed_s
    settled = times["Start"].repeated & ~times["End"].repeated & (from_end_s == times["Start"].second_s)
    start_s = np.where(settled, from_end_s, start_s)
    repeated = np.any([reading.repeated for reading in times.values()], axis=0)
    ledger.fact("time in the repeated hour at the end of daylight saving, resolved by order", raw["line"][repeated])
    skipped = np.any([reading.skipped for reading in times.values()], axis=0)
    what = "time in the hour that daylight saving skips, shifted by the change"
    ledger.repair(what, raw["line"][skipped], column="Start", fix="give the time zone the dump was made in")
    run_s = np.where(np.isnan(elapsed_s), end_s - start_s, elapsed_s)
    return np.fmax(submit_s, eligible_s), start_s, run_s


def _work_s(jobs: _Jobs) -> Floats:
    """Processor-seconds of each row: 0 if it never ran, NaN if unknown."""
    return np.where(jobs.never, 0.0, np.maximum(jobs.run_s, 0.0) * jobs.processors)


def _once(jobs: _Jobs, ledger: Ledger) -> _Jobs:
    """The rows without repeats, as in dumps of overlapping periods: the last of those with one id and one start."""
    start_s = np.nan_to_num(jobs.start_s, nan=-1.0)
    order = np.lexsort((jobs.trace_row, ~jobs.unfinished, start_s, np.nan_to_num(jobs.submit_s, nan=-1.0), jobs.key))
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for values in (jobs.key, jobs.submit_s, start_s):
        same &= values[order[:-1]] == values[order[1:]]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[order[:-1]] = same
    ledger.repair("repeated row of a job dropped", jobs.line[repeated], column="JobID", fix="remove the row")
    return jobs.take(~repeated)


def _without_unusable(jobs: _Jobs, requeued: Requeued | None, ledger: Ledger) -> _Jobs:
    """Drop jobs that never ran, have not ended, or ran again later, and unusable ones, in this order."""

    def drop(bad: Mask, what: str, field: str, fix: str = "remove the row") -> None:
        nonlocal jobs
        ledger.drop(f"{what} dropped", jobs.line[bad], column=field, fix=fix)
        jobs = jobs.take(~bad)

    drop(jobs.never & jobs.unfinished, "job that was still waiting", "State")
    drop(jobs.never, "job that never started", "Start")
    drop(jobs.unfinished, "job that was still running", "State")
    earlier, after_s, run = _runs(jobs)
    if requeued != "every-run":
        fix = 'run sacct without -D, or keep them: workload.requeued = "every-run"'
        drop(earlier, "earlier run of a requeued job", "JobID", fix)
    else:
        jobs.submit_s, jobs.run = np.fmax(jobs.submit_s, after_s), run
        ledger.fact("earlier run of a requeued job kept as a job of its own", jobs.line[earlier])
    drop(np.isnan(jobs.submit_s), "job without submit time", "Submit", "give a time")
    drop(np.isnan(jobs.run_s), "job without run time", "End", "give a time")
    drop(jobs.processors < 1, "job without processors", "AllocCPUS", "give at least 1")
    drop(jobs.run_s < 0, "job that ends before it starts", "End", "correct the times, or remove the row")
    drop(jobs.run_s == 0, "job that ran for 0 s", "Elapsed")
    return jobs


def _runs(jobs: _Jobs) -> tuple[Mask, Floats, NDArray[np.int64]]:
    """Which rows are followed by a later run of the same job, when the run before each row ended [Unix s], its number.

    Runs are in order of submission (a requeue resets it), start and line.
    """
    order = np.lexsort((jobs.trace_row, jobs.start_s, jobs.submit_s, jobs.key))
    earlier, after_s = np.zeros(len(order), dtype=bool), np.full(len(order), np.nan)
    same = jobs.key[order[:-1]] == jobs.key[order[1:]]
    earlier[order[:-1]] = same
    after_s[order[1:]] = np.where(same, (jobs.start_s + jobs.run_s)[order[:-1]], np.nan)
    place = np.arange(len(order))
    run = np.empty(len(order), dtype=np.int64)
    run[order] = place - np.maximum.accumulate(np.where(np.concatenate(([False], same))[: len(order)], 0, place))
    return earlier, after_s, run


def _plausible_energy(jobs: _Jobs, most_node_w: float | None, ledger: Ledger) -> Floats:
    """Energies of which the power is plausible, NaN for the others. [J]"""
    power_w = without_implausible(
        jobs.energy_j / jobs.run_s, jobs.run_s, jobs.processors, jobs.nodes, jobs.gpus, jobs.line, ledger,
        column="ConsumedEnergyRaw", most_node_w=most_node_w,
    )  # fmt: skip
    return np.where(np.isnan(power_w), np.nan, jobs.energy_j)


def _split_energy(jobs: _Jobs, rows: _Jobs, lists: Mapping[int, str], ledger: Ledger, *, certain: bool) -> Floats:
    """Energies with those of nodes that jobs shared split among these. [J]

    Args:
        jobs: the jobs that are kept.
        rows: all rows, which held processors of the nodes too.
        lists: number -> node list.
        ledger: takes the notes.
        certain: whether energies are known to be those of nodes.
    """
    measured = np.isfinite(jobs.energy_j)
    if not measured.any():
        return jobs.energy_j
    codes, times = np.unique(rows.node_list, return_counts=True)
    sizes = np.array([sacct_text.nodes_named(lists[code]) for code in codes.tolist()])
    if times @ np.where(sizes <= MOST_NODES, sizes, 0.0) > MOST_NAMES:
        what = _MAY_HAVE_SHARED.format(f"NodeLists name more than {MOST_NAMES:,} in all")
        ledger.fact(what, jobs.line[measured], about="power_w", level="warning")
        return jobs.energy_j
    names = {code: sacct_text.node_names(lists[code]) for code in codes.tolist()}
    nodes_of = [names[code] for code in rows.node_list.tolist()]
    place = np.searchsorted(rows.trace_row, jobs.trace_row)
    part = parts_of_nodes(nodes_of, rows.start_s, rows.run_s, rows.processors)[place]
    shared = measured & (part < 1)
    of_jobs = [nodes_of[k] for k in place.tolist()]
    columns = (jobs.start_s, jobs.run_s, jobs.processors, jobs.energy_j)
    if not certain and not are_of_nodes(of_jobs, *columns, part):
        what = "measured jobs shared nodes, and their energies are not those of nodes: kept"
        ledger.fact(what, jobs.line[shared], about="power_w")
        return jobs.energy_j
    what = "energy of shared nodes split by processors"
    ledger.fact(what, jobs.line[shared], about="power_w", level="change")
    each = jobs.processors / np.fmax(jobs.nodes, 1)
    part_of_a_node = measured & (jobs.node_list < 0) & (each < each.max())
    ledger.fact(_MAY_HAVE_SHARED.format("no NodeList"), jobs.line[part_of_a_node], about="power_w", level="warning")
    return jobs.energy_j * part


def _most_s(jobs: _Jobs, numbers: Mapping[str, int], limits_s: Mapping[str, float]) -> Floats:
    """Longest time that the partition of each job allows, NaN if unknown. [s]"""
    by_number = {numbers[name]: limit_s for name, limit_s in limits_s.items() if name in numbers}
    return np.array([by_number.get(number, np.nan) for number in jobs.partition.tolist()], dtype=np.float64)


def _merged(jobs: _Jobs, ledger: Ledger) -> _Jobs:
    """Merge the components of a heterogeneous job: they start together and hold their processors to the last end."""
    component = jobs.key != jobs.leader
    if not component.any():
        return jobs
    order = np.lexsort((jobs.trace_row, jobs.run, jobs.leader))
    jobs = jobs.take(order)
    other = (jobs.leader[1:] != jobs.leader[:-1]) | (jobs.run[1:] != jobs.run[:-1])
    first = np.flatnonzero(np.concatenate(([True], other)))
    whole = jobs.take(first)
    whole.processors = np.add.reduceat(jobs.processors, first)
    whole.energy_j = np.add.reduceat(jobs.energy_j, first)  # unknown if unknown for any component
    whole.nodes = np.add.reduceat(jobs.nodes, first)
    whole.gpus = np.where(
        np.isnan(np.fmax.reduceat(jobs.gpus, first)), np.nan, np.add.reduceat(np.nan_to_num(jobs.gpus), first)
    )
    whole.memory_kb = np.add.reduceat(jobs.memory_kb, first)
    whole.run_s = np.maximum.reduceat(jobs.run_s, first)
    whole.limit_s = np.maximum.reduceat(jobs.limit_s, first)
    whole.submit_s = np.maximum.reduceat(jobs.submit_s, first)
    ledger.fact("component of a heterogeneous job merged into its first", np.delete(jobs.line, first))
    return whole


def _columns(jobs: _Jobs, origin_s: float, most_s: Floats, ledger: Ledger) -> dict[str, Any]:
    requested_s = requested_times(
        known_limits(jobs.limit_s), jobs.run_s, jobs.line, ledger, unknown="missing or unlimited", most_s=most_s
    )
    ids = _job_ids(jobs, ledger)
    preceding, think_s = _run_before(jobs, ids)
    wait_s = jobs.start_s - jobs.submit_s
    ledger.fact("start before submission, recorded wait ignored", jobs.line[wait_s < 0])
    measured = np.isfinite(jobs.energy_j)
    ledger.fact(f"power from measured energy, {WITH_IDLE}", jobs.line[measured], about="power_w")
    crowded = jobs.nodes > jobs.processors
    ledger.fact("more nodes than processors, number of nodes ignored", jobs.line[crowded])
    nodes = np.where(crowded | np.isnan(jobs.nodes), -1, jobs.nodes)
    return {
        "job_id": ids, "preceding_job": preceding, "think_time_s": think_s,
        "submit_s": jobs.submit_s - origin_s, "run_time_s": jobs.run_s,
        "requested_time_s": requested_s, "processors": jobs.processors, "power_w": jobs.energy_j / jobs.run_s,
        "user": jobs.user, "group": jobs.group, "queue": jobs.queue, "partition": jobs.partition, "nodes": nodes,
        "gpus": np.where(np.isnan(jobs.gpus), -1, jobs.gpus), "requested_memory_kb": jobs.memory_kb / jobs.processors,
        "status": jobs.status, "recorded_wait_s": np.where(wait_s < 0, np.nan, wait_s), "trace_row": jobs.trace_row,
    }  # fmt: skip


def _run_before(jobs: _Jobs, ids: Floats) -> tuple[Floats, Floats]:
    """Job number of the run before each run of a requeued job, -1 if none, and the time since its end [s]."""
    order = np.lexsort((jobs.run, jobs.leader))
    again = np.flatnonzero(jobs.leader[order[:-1]] == jobs.leader[order[1:]])
    run, before = order[again + 1], order[again]
    preceding, think_s = np.full(len(ids), -1.0), np.full(len(ids), np.nan)
    preceding[run] = ids[before]
    think_s[run] = np.fmax(jobs.submit_s[run] - (jobs.start_s + jobs.run_s)[before], 0.0)
    return preceding, think_s


def _job_ids(jobs: _Jobs, ledger: Ledger) -> Floats:
    """Slurm's job numbers, or 1..n by submission if array tasks have no number of their own."""
    bad = np.isnan(jobs.number)
    if not bad.any() and len(np.unique(jobs.number)) == len(jobs.number):
        return jobs.number
    ledger.fact("jobs renumbered by submit time because not all have a unique JobIDRaw", jobs.line)
    number = np.empty(len(bad))
    number[np.lexsort((jobs.trace_row, jobs.submit_s))] = np.arange(1, len(bad) + 1)
    return number
