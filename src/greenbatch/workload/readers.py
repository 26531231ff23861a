"""Read a trace in any supported format."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from greenbatch.arguments import file_path
from greenbatch.errors import InputError
from greenbatch.files import pipes_kept, read_bytes
from greenbatch.json_input import looks_like_json
from greenbatch.workload import sacct_text
from greenbatch.workload.batsim import read_batsim
from greenbatch.workload.fdata import FDATA, read_fdata
from greenbatch.workload.irmasim import read_irmasim
from greenbatch.workload.parquet import column_names, parquet_files
from greenbatch.workload.pm100 import PM100, read_pm100
from greenbatch.workload.power_traces import PowerTrace
from greenbatch.workload.sacct import read_sacct
from greenbatch.workload.swf import read_swf
from greenbatch.workload.table import Workload
from greenbatch.workload.tabular import REQUIRED, read_table

Format = Literal["swf", "sacct", "table", "pm100", "fdata", "irmasim", "batsim"]

_COMMON = ("strict", "processors")
_READERS: dict[Format, tuple[Callable[..., Workload], tuple[str, ...]]] = {
    "swf": (read_swf, (*_COMMON, "limit", "repairs", "unix_start_s")),
    "sacct": (read_sacct, (*_COMMON, "time_zone", "requeued", "shared_nodes", "most_node_w", "partition_limits_s")),
    "table": (read_table, (*_COMMON, "time_zone", "unix_start_s", "columns", "most_node_w")),
    "pm100": (read_pm100, (*_COMMON, "time_zone", "most_node_w")),
    "fdata": (read_fdata, (*_COMMON, "time_zone", "most_node_w")),
    "irmasim": (read_irmasim, (*_COMMON, "reference_gflops")),
    "batsim": (read_batsim, _COMMON),
}

_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (
        rb"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Z];", "is an accounting log of PBS",
        "make a CSV file of its E records: submit_s = ctime, run_time_s = end - start, processors = "
        "Resource_List.ncpus, requested_time_s = Resource_List.walltime in seconds",
    ),
    (
        rb'"JOB_FINISH"', "is an accounting log of LSF",
        "make a CSV file of its JOB_FINISH records, with the columns submit_s, run_time_s and processors",
    ),
    (
        rb"[^:|,;\t]*(:[^:]*){40,}", "is an accounting file of Grid Engine",
        "make a CSV file of its records: submit_s = submission_time, run_time_s = ru_wallclock, processors = slots",
    ),
    (
        rb"\s*JobID(Raw)?\s{2,}", "is a dump of sacct with columns of fixed width",
        f"separate the fields by |: {sacct_text.COMMAND}",
    ),
)  # fmt: skip
"""First lines of files that are not read: what they are, and what to do."""

_POWER_TRACES: dict[Format, PowerTrace] = {"pm100": PM100, "fdata": FDATA}


def read_workload(path: str | Path, **options: Any) -> Workload:
    """Read a trace in any supported format: SWF, a Slurm dump, CSV, Parquet, PM100, F-DATA, JSON of IRMaSim or Batsim.

    Args:
        path: the trace, plain or gzip; its format is detected from its content. For PM100 and F-DATA also a folder of
            Parquet files.
        **options: ``strict`` and ``processors`` for all; ``limit`` and ``repairs`` for SWF; ``time_zone`` for all but
            SWF and JSON; ``columns`` for tables and ``unix_start_s`` for both; ``most_node_w`` for all with measured
            power; ``requeued``, ``shared_nodes`` and ``partition_limits_s`` for Slurm dumps; ``reference_gflops`` for
            JSON of IRMaSim. Options that are None are ignored.

    Raises:
        InputError: the format is not recognized, an option does not apply to it, or its reader refuses the file.
    """
    path = file_path(path, "path", what="the path of a trace")
    given = {name: value for name, value in options.items() if value is not None}
    with pipes_kept():
        kind = trace_format(path, columns="columns" in given)
        read, known = _READERS[kind]
        for name in given:
            if name not in known:
                fix = f"options of {kind} traces: {', '.join(known)}"
                raise InputError(f"does not apply to a {kind} trace", file=path, field=name, fix=fix)
        return read(path, **given)


def trace_format(path: Path, *, columns: bool = False) -> Format:
    """The format of a trace: SWF by file name, else by its first bytes and first non-blank line, else by file name.

    Args:
        path: the trace.
        columns: whether its columns are given other names, which only those of tables can be.

    Raises:
        InputError: the file cannot be read, or its format is not recognized.
    """
    plain = path.name.removesuffix(".gz")
    if plain.endswith(".swf"):
        return "swf"
    if plain.endswith(".toml"):
        fix = "give it as a scenario or a site, and a trace of the jobs"
        raise InputError("is TOML, such as a scenario, and has no jobs", file=path, fix=fix)
    names = column_names(parquet_files(path)[0])
    if names is not None:
        return _parquet_format(names)
    content, _ = read_bytes(path)
    if looks_like_json(content):
        return _json_format(content, path)
    start = content[:100_000].removeprefix(b"\xef\xbb\xbf").lstrip()
    first = start.split(b"\n", 1)[0].strip()
    for pattern, problem, fix in _FOREIGN:
        if re.match(pattern, first):
            raise InputError(f"{problem}, which is not read", file=path, line=1, fix=fix)
    if first.startswith(b";") or (len(first.split()) > 1 and first[:1] in b"-0123456789" and b"|" not in first):
        return "swf"
    if not columns and _of_sacct(first.decode("utf-8", "replace")):
        return "sacct"
    if plain.endswith((".csv", ".tsv", ".parquet")) or any(mark in first for mark in (b",", b"\t")):
        return "table"
    raise InputError(
        "is not a known kind of trace", file=path, line=1,
        fix="give SWF, sacct --parsable2 with its header, CSV or Parquet with named columns, PM100, F-DATA, or JSON of "
        "IRMaSim or Batsim",
    )  # fmt: skip


def _of_sacct(first: str) -> bool:
    """Whether the first line is that of a dump of sacct: its header, whatever separates the fields, or a row of one."""
    names = {name.strip().strip('"').lower() for name in first.split(sacct_text.delimiter(first))}
    if "|" in first:
        return bool(names & {"jobid", "jobidraw"}) or sacct_text.is_headless(first)
    return bool(names & {"jobid", "jobidraw"}) and {"submit", "start"} <= names


def _json_format(content: bytes, path: Path) -> Format:
    """The simulator that a JSON file is for, by the names of its fields.

    Raises:
        InputError: it is of another program.
    """
    named = {name for name in (b"subtime", b"req_ops", b"type", b"job_id") if re.search(rb'"%s"\s*:' % name, content)}
    if b"req_ops" in named or (b"job_id" not in named and b"type" not in named):
        return "irmasim"
    if b"subtime" in named:
        return "batsim"
    if b"job_id" in named:
        fix = f"print it as text: {sacct_text.COMMAND}"
        raise InputError("is JSON of Slurm (sacct --json), which is not read", file=path, fix=fix)
    fix = "give jobs with subtime, of IRMaSim or Batsim; or a CSV file with submit_s, run_time_s and processors"
    raise InputError("is JSON of an unknown kind", file=path, fix=fix)


def _parquet_format(names: Sequence[str]) -> Format:
    """The format of a Parquet file: a table if it has the columns that tables need, else by the marks of a data set."""
    if set(REQUIRED) <= set(names):
        return "table"
    return next((kind for kind, trace in _POWER_TRACES.items() if trace.marks <= set(names)), "table")
