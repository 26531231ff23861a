"""The table of jobs that every reader and generator returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import read_only
from greenbatch.display import Shown, span_text, to_pandas
from greenbatch.errors import InputError, visible
from greenbatch.notes import Note

if TYPE_CHECKING:
    import pandas
    import polars

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Workload(Shown):
    """Jobs as columns of equal length ``n``, sorted by ``job_id``.

    Times are seconds on the trace's own clock; a missing integer is -1, a missing float is NaN. `from_columns` builds
    one from a subset of the columns and checks their ranges. Columns are read-only, also those of copies and windows;
    `with_columns` replaces them.

    Raises:
        InputError: the columns have different lengths.
    """

    name: str
    """Name of the trace or model, shown in results."""
    job_id: Ints
    """Job number, unique, ascending."""
    submit_s: Floats
    """Submission, >= 0. [s]"""
    run_time_s: Floats
    """Actual run time, > 0. Never shown to a policy. [s]"""
    requested_time_s: Floats
    """Requested (wall) time, > 0; the run time if the trace has none. [s]"""
    processors: Ints
    """Processors, >= 1."""
    power_w: Floats
    """Power of the running job above idle, >= 0; NaN until assigned. [W]"""
    user: Ints
    """User number; text in a source is numbered by first appearance."""
    group: Ints
    """Group or account number."""
    executable: Ints
    """Application number."""
    queue: Ints
    """Queue number."""
    partition: Ints
    """Partition number."""
    status: Ints
    """Status as in SWF: 0 failed, 1 completed, 5 canceled."""
    requested_memory_kb: Floats
    """Requested memory per processor. [kB]"""
    nodes: Ints
    """Requested nodes, on which the processors are divided; -1 for any number."""
    gpus: Ints
    """GPUs of the whole job, >= 0; -1 if unknown."""
    exclusive: Ints
    """1 if no other job may use its nodes; 0 or -1 otherwise."""
    memory_volume_mb: Floats
    """Data that each processor moves from and to memory during the run, for contention, >= 0. [MB]"""
    requested_energy_j: Floats
    """Energy that the user expects each processor to use, >= 0 (InEPS). [J]"""
    value: Floats
    """Value of the finished job, >= 0 (RARE, Eq. 3.2)."""
    qos: Floats
    """Quality of service, > 0 and at most 1: the job is due at submission + run time / QoS (RARE, Eq. 3.1)."""
    preceding_job: Ints
    """Job number of the job that had to end before this one was submitted; see ``rules.dependencies``."""
    think_time_s: Floats
    """Time from the end of the preceding job to this submission; see ``rules.dependencies``. [s]"""
    recorded_wait_s: Floats
    """Wait recorded in the trace, >= 0; NaN if none. For comparison only. [s]"""
    trace_row: Ints
    """0-based index of the job's line among the job lines of its source (dropped lines count)."""

    machine_processors: int | None = None
    """Machine size stated by the source, if any."""
    unix_start_s: float | None = None
    """Unix time of trace time 0, if known. [s]"""
    time_zone: str | None = None
    """IANA time zone of the site, if known."""
    names: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Column -> number -> name in the source, for columns that number names: user, group, queue, partition, executable,
    and ``job_id`` where the ids of the source are no numbers."""
    notes: tuple[Note, ...] = ()
    """What was repaired or dropped while reading."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """File name -> SHA-256 of every input file."""

    def __post_init__(self) -> None:
        lengths = {name: getattr(self, name).shape for name in COLUMNS}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns of different lengths {lengths}", field=self.name)
        for name in COLUMNS:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return int(self.job_id.shape[0])

    def _facts(self) -> dict[str, str]:
        facts = {"workload": self.name, "jobs": f"{len(self):,}"}
        if len(self):
            powered = float(np.mean(np.isfinite(self.power_w)))
            facts |= {
                "processors": f"{self.processors.min():,} to {self.processors.max():,} each",
                "span": span_text(float(self.submit_s.max() - self.submit_s.min())),
                "mean run time": span_text(float(self.run_time_s.mean())),
                "power": f"known for {powered:.0%}" if powered else "unknown",
            }
        if self.notes:
            facts["notes"] = f"{len(self.notes)} on how it was read"
        return facts

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """A copy with only the given rows (indices, mask or slice), in that order."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in COLUMNS}
        return replace(self, **columns)

    def with_columns(self, **columns: Any) -> Self:
        """A copy with some columns replaced, without the notes about the replaced columns."""
        kept = tuple(note for note in self.notes if note.about not in columns)
        return replace(self, **{"notes": kept, **columns})

    def frame(self) -> polars.DataFrame:
        """All columns as a polars data frame."""
        import polars

        return polars.DataFrame({name: getattr(self, name) for name in COLUMNS})

    def to_pandas(self) -> pandas.DataFrame:
        """All columns as a pandas data frame.

        Raises:
            InputError: pandas is not installed.
        """
        return to_pandas(self.frame())

    @classmethod
    def from_columns(cls, name: str, columns: Mapping[str, Any], **meta: Any) -> Self:
        """Build a workload from any subset of columns, sorted by job id.

        ``submit_s``, ``run_time_s`` and ``processors`` are required; ``job_id`` defaults to 1..n,
        ``requested_time_s`` to the run time, and every other column to missing values.

        Raises:
            InputError: a required column is missing, a column is unknown, or a value is out of range.
        """
        unknown = sorted(set(columns) - set(COLUMNS))
        if unknown:
            raise InputError(f"unknown column {unknown[0]!r}", field=name, fix="use " + ", ".join(COLUMNS))
        for required in ("submit_s", "run_time_s", "processors"):
            if required not in columns:
                raise InputError("required column is missing", file=name, field=required)
        n = len(columns["submit_s"])
        for column, values in columns.items():
            if values is not None and len(values) != n:
                raise InputError(f"has {len(values)} values, submit_s has {n}", file=name, field=column)
        table: dict[str, Any] = {c: _column(c, columns.get(c), n) for c in COLUMNS}
        defaults = {
            "job_id": np.arange(1, n + 1),
            "trace_row": np.arange(n),
            "requested_time_s": table["run_time_s"],
        }
        table.update({column: default for column, default in defaults.items() if columns.get(column) is None})
        _check_ranges(name, table)
        order = np.argsort(table["job_id"], kind="stable")
        ids = table["job_id"][order]
        if n and (np.diff(ids) == 0).any():
            raise InputError(f"job id {ids[:-1][np.diff(ids) == 0][0]} occurs twice", file=name, field="job_id")
        ordered: dict[str, Any] = {c: _in_order(table.pop(c), order) for c in COLUMNS}
        named = {key: {k: visible(each) for k, each in names.items()} for key, names in meta.pop("names", {}).items()}
        return cls(name=visible(name), names=named, **ordered, **meta)


COLUMNS: tuple[str, ...] = tuple(f.name for f in fields(Workload) if f.type in ("Ints", "Floats"))
"""Names of the job columns, in order."""

MOST_POWER_W = 1e15
"""Largest power of a job: a cluster's energy can still be added up in floats. [W]"""
LONGEST_RUN_S = 1e9
"""Longest run time, 32 years: a site has a slot for each of its hours. [s]"""
MOST: Mapping[str, tuple[float, str]] = MappingProxyType(
    {
        "power_w": (MOST_POWER_W, f"give at most {MOST_POWER_W:g} W"),
        "qos": (1.0, "give numbers > 0, at most 1"),
        "run_time_s": (LONGEST_RUN_S, f"give at most {LONGEST_RUN_S:g} s, or leave the job out"),
    }
)
"""Largest value of a column, and the remedy."""
SHORTEST_S, LATEST_S = 1e-3, 1e11
"""Shortest run time and latest time for which floats can still distinguish a job's end from its start. [s]"""
LARGEST_WHOLE = 2**53
"""Largest number of columns of whole numbers; above it, floats skip some."""
RANGES: Mapping[str, tuple[float, bool]] = MappingProxyType(
    {
        "submit_s": (0.0, False),
        "run_time_s": (0.0, True),
        "requested_time_s": (0.0, True),
        "processors": (1.0, False),
        "power_w": (0.0, False),
        "requested_memory_kb": (0.0, False),
        "memory_volume_mb": (0.0, False),
        "requested_energy_j": (0.0, False),
        "value": (0.0, False),
        "qos": (0.0, True),
        "think_time_s": (0.0, False),
        "recorded_wait_s": (0.0, False),
    }
)
"""Lowest value of a column, and whether the bound is exclusive."""

MAY_BE_MISSING = frozenset(
    {
        "power_w",
        "requested_memory_kb",
        "memory_volume_mb",
        "requested_energy_j",
        "value",
        "qos",
        "think_time_s",
        "recorded_wait_s",
    }
)
"""Columns with a lowest value that may also hold NaN."""


def is_float(column: str) -> bool:
    """Whether a column holds floats (with NaN for missing) rather than integers (with -1)."""
    return column.endswith(("_s", "_w", "_kb", "_mb", "_j")) or column in ("value", "qos")


def _check_ranges(name: str, table: Mapping[str, Any]) -> None:
    """Refuse values out of range, and times that floats cannot tell apart."""
    for column, (lowest, strict) in RANGES.items():
        values = table[column]
        inside = (values > lowest if strict else values >= lowest) & np.isfinite(values)
        bad = np.flatnonzero(~(inside | np.isnan(values) if column in MAY_BE_MISSING else inside))
        if bad.size:
            raise InputError(
                f"job {table['job_id'][bad[0]]} has {values[bad[0]]:g}",
                file=name,
                field=column,
                fix=f"it must be finite and {'>' if strict else '>='} {lowest:g}",
            )
    for column in ("submit_s", "run_time_s", "requested_time_s"):
        values = table[column]
        lost = np.flatnonzero((values > LATEST_S) | ((values < SHORTEST_S) & (column != "submit_s")))
        if lost.size:
            problem = f"job {table['job_id'][lost[0]]} has {values[lost[0]]:g}"
            shortest_s = 0.0 if column == "submit_s" else SHORTEST_S
            raise InputError(problem, file=name, field=column, fix=f"give {shortest_s:g} to {LATEST_S:g} s")
    for column, (most, fix) in MOST.items():
        if (large := np.flatnonzero(table[column] > most)).size:
            problem = f"job {table['job_id'][large[0]]} has {table[column][large[0]]:g}"
            raise InputError(problem, file=name, field=column, fix=fix)


def _column(name: str, values: Any, n: int) -> NDArray[Any]:
    floats = is_float(name)
    if values is None:
        return np.full(n, np.nan) if floats else np.full(n, -1, dtype=np.int64)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("holds values that are no numbers", field=name, fix="give numbers") from None
    if floats:
        return array
    if not np.all(np.isfinite(array)) or not np.all(array == np.floor(array)):
        raise InputError("requires whole numbers", field=name)
    if np.any(np.abs(array) > LARGEST_WHOLE):
        raise InputError(
            f"holds {array[np.argmax(np.abs(array))]:g}", field=name, fix=f"use numbers up to {LARGEST_WHOLE}"
        )
    return np.asarray(values).astype(np.int64)


def _in_order(values: NDArray[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    """A copy in the given order that cannot be written to, so that no other copy is made of it."""
    copy = values[order]
    copy.flags.writeable = False
    return copy


def trace_name(path: Path) -> str:
    """Name of a workload: the file name without the suffixes of a trace, ``a.swf.gz`` -> ``a``."""
    name = path.name
    for suffix in (".gz", ".swf", ".csv", ".parquet", ".txt", ".json"):
        name = name.removesuffix(suffix)
    return name or path.name
