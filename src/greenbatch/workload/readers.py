"""Read a trace in any supported format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from greenbatch.arguments import file_path
from greenbatch.errors import InputError
from greenbatch.files import pipes_kept, read_bytes
from greenbatch.json_input import looks_like_json
from greenbatch.workload.fdata import FDATA, read_fdata
from greenbatch.workload.irmasim import read_irmasim
from greenbatch.workload.parquet import column_names, parquet_files
from greenbatch.workload.pm100 import PM100, read_pm100
from greenbatch.workload.power_traces import PowerTrace
from greenbatch.workload.sacct import read_sacct
from greenbatch.workload.swf import read_swf
from greenbatch.workload.table import Workload
from greenbatch.workload.tabular import REQUIRED, read_table

Format = Literal["swf", "sacct", "table", "pm100", "fdata", "irmasim"]

_COMMON = ("strict", "processors")
_READERS: dict[Format, tuple[Callable[..., Workload], tuple[str, ...]]] = {
    "swf": (read_swf, (*_COMMON, "limit", "repairs", "unix_start_s")),
    "sacct": (read_sacct, (*_COMMON, "time_zone")),
    "table": (read_table, (*_COMMON, "time_zone", "unix_start_s", "columns")),
    "pm100": (read_pm100, (*_COMMON, "time_zone")),
    "fdata": (read_fdata, (*_COMMON, "time_zone")),
    "irmasim": (read_irmasim, (*_COMMON, "reference_gflops")),
}

_POWER_TRACES: dict[Format, PowerTrace] = {"pm100": PM100, "fdata": FDATA}


def read_workload(path: str | Path, **options: Any) -> Workload:
    """Read a trace in any supported format: SWF, a Slurm dump, CSV, Parquet, PM100, F-DATA or IRMaSim's JSON.

    Args:
        path: the trace, plain or gzip; its format is detected from its content. For PM100 and F-DATA also a folder of
            Parquet files.
        **options: ``strict`` and ``processors`` for all; ``limit`` and ``repairs`` for SWF; ``time_zone`` for all but
            SWF and JSON; ``columns`` for tables and ``unix_start_s`` for both; ``reference_gflops`` for JSON. Options
            that are None are ignored.

    Raises:
        InputError: the format is not recognized, an option does not apply to it, or its reader refuses the file.
    """
    path = file_path(path, "path", what="the path of a trace")
    with pipes_kept():
        kind = trace_format(path)
        read, known = _READERS[kind]
        given = {name: value for name, value in options.items() if value is not None}
        for name in given:
            if name not in known:
                fix = f"options of {kind} traces: {', '.join(known)}"
                raise InputError(f"does not apply to a {kind} trace", file=path, field=name, fix=fix)
        return read(path, **given)


def trace_format(path: Path) -> Format:
    """The format of a trace: SWF by file name, else by its first bytes and first non-blank line, else by file name.

    Raises:
        InputError: the file cannot be read, or its format is not recognized.
    """
    plain = path.name.removesuffix(".gz")
    if plain.endswith(".swf"):
        return "swf"
    names = column_names(parquet_files(path)[0])
    if names is not None:
        return _parquet_format(names)
    content, _ = read_bytes(path)
    if looks_like_json(content):
        return "irmasim"
    start = content[:100_000].removeprefix(b"\xef\xbb\xbf").lstrip()
    first = start.split(b"\n", 1)[0].strip()
    if first.startswith(b";") or (len(first.split()) > 1 and first[:1] in b"-0123456789"):
        return "swf"
    if b"|" in first and b"jobid" in first.lower():
        return "sacct"
    if plain.endswith((".csv", ".tsv", ".parquet")) or any(mark in first for mark in (b",", b"\t")):
        return "table"
    raise InputError(
        "is not a known kind of trace", file=path, line=1,
        fix="give SWF, sacct --parsable2 with its header, CSV or Parquet with named columns, PM100, F-DATA, or JSON of "
        "IRMaSim",
    )  # fmt: skip


def _parquet_format(names: Sequence[str]) -> Format:
    """The format of a Parquet file: a table if it has the columns that tables need, else by the marks of a data set."""
    if set(REQUIRED) <= set(names):
        return "table"
    return next((kind for kind, trace in _POWER_TRACES.items() if trace.marks <= set(names)), "table")
