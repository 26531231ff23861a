"""CSV and Parquet tables of jobs with named columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import whole_number
from greenbatch.errors import InputError
from greenbatch.files import decode, parquet_schema, read_bytes
from greenbatch.workload.ledger import Ledger, none_left
from greenbatch.workload.parquet import MAGIC, MISSING, unbroken
from greenbatch.workload.plausible_power import without_implausible
from greenbatch.workload.requested import requested_times
from greenbatch.workload.table import COLUMNS, MAY_BE_MISSING, RANGES, Workload, is_float, trace_name

Floats = NDArray[np.float64]

REQUIRED = ("submit_s", "run_time_s", "processors")
NAMED = frozenset({"user", "group", "executable", "queue", "partition"})
"""Columns that may hold names instead of numbers."""

_BLOCK_ROWS = 50_000
_LARGEST = 2.0**53
HIGHEST = {"qos": 1.0}
"""Highest value of columns that have one."""
_REQUESTS = {"nodes": (1.0, np.inf), "gpus": (0.0, np.inf), "exclusive": (0.0, 1.0)}
"""Lowest and highest whole number of what a job asks of nodes; -1 and blank mean unknown."""


def read_table(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    strict: bool = False,
    processors: int | None = None,
    unix_start_s: float | None = None,
    time_zone: str | None = None,
    most_node_w: float | None = None,
) -> Workload:
    """Read jobs from CSV (plain or gzip; comma, semicolon or tab) or Parquet, detected from the content.

    The first CSV line names the columns. ``submit_s``, ``run_time_s`` and ``processors`` are required; every other
    column of a `Workload` is optional, blank cells are missing values, and other columns are ignored with a note.
    A column of `NAMED` in which any cell is text holds names: they are numbered by first appearance and kept in
    ``names``. Unlike logs, tables are not repaired: an impossible value is an error, except that a ``power_w`` which no
    machine draws is left out: `plausible_power.implausible`.

    Args:
        path: the file.
        columns: column name in the file -> column of a `Workload`, for columns with other names.
        strict: refuse jobs larger than the machine instead of dropping them, and implausible power.
        processors: machine size; larger jobs are dropped.
        unix_start_s: Unix time of trace time 0. [s]
        time_zone: IANA time zone of the site.
        most_node_w: highest plausible power of a node. [W]

    Raises:
        InputError: the file cannot be read, a column is missing or named twice, or a cell is not a number in range;
            the message names the line (for Parquet the row) and the column.
    """
    path = Path(path)
    processors = None if processors is None else whole_number(processors, "processors", lowest=1)
    content, sha256 = read_bytes(path)
    ours = _mapping(columns, path)
    if content.startswith(MAGIC):
        table, names, lines, ignored = _read_parquet(content, ours, path)
    else:
        table, names, lines, ignored = _read_csv(content, ours, path)
    theirs_of = {v: k for k, v in ours.items()}
    _check(table, lines, theirs_of, path)
    ledger = Ledger(path, strict)
    ledger.measure(lines, table["run_time_s"] * table["processors"])
    for name in ignored:
        ledger.say(f"column {name!r} ignored", len(lines))
    if "power_w" in table:
        unknown = np.full(len(lines), -1.0)
        table["power_w"] = without_implausible(
            table["power_w"], table["run_time_s"], table["processors"], table.get("nodes", unknown),
            table.get("gpus", unknown), lines, ledger, column=theirs_of["power_w"], most_node_w=most_node_w,
        )  # fmt: skip
    fits = ledger.fitting(table["processors"], processors, lines, column="processors")
    table = {"trace_row": np.arange(len(lines), dtype=np.float64), **table}
    table, lines = {name: values[fits] for name, values in table.items()}, lines[fits]
    if not len(lines):
        raise none_left(path, ledger.notes)
    stated_s = table.get("requested_time_s", np.full(len(lines), np.nan))
    table["requested_time_s"] = requested_times(stated_s, table["run_time_s"], lines, ledger)
    return Workload.from_columns(
        trace_name(path), table, machine_processors=processors, unix_start_s=unix_start_s, time_zone=time_zone,
        names=names, notes=tuple(ledger.notes), sources={path.name: sha256},
    )  # fmt: skip


class _Content(NamedTuple):
    """What a file holds."""

    table: dict[str, Floats]
    """Column of a workload -> its values, NaN where missing, shape (n,)."""
    names: dict[str, dict[int, str]]
    """Column -> number -> name, for columns of names."""
    lines: NDArray[np.int64]
    """Line of each row, shape (n,)."""
    ignored: list[str]
    """Columns that no workload has."""


def _mapping(columns: Mapping[str, str] | None, path: Path) -> dict[str, str]:
    """Column name in the file -> column of a workload; a column that is not mapped has the same name in both."""
    given = dict(columns or {})
    for theirs, name in given.items():
        if name not in COLUMNS:
            fix = "use one of " + ", ".join(COLUMNS)
            raise InputError(f"{theirs!r} is mapped to the unknown column {name!r}", file=path, field=theirs, fix=fix)
    if len(set(given.values())) < len(given):
        raise InputError("two columns are mapped to the same name", file=path, field="columns", fix="map each once")
    return {**{name: name for name in COLUMNS if name not in given.values()}, **given}


def _positions(names: Sequence[str], ours: Mapping[str, str], path: Path) -> tuple[dict[str, int], list[str]]:
    """Column of a workload -> position in the file, and the columns of the file that are ignored."""
    positions: dict[str, int] = {}
    for k, name in enumerate(names):
        if name in ours:
            if ours[name] in positions:
                raise InputError("column is named twice", file=path, line=1, field=name, fix="name each column once")
            positions[ours[name]] = k
    needed = [theirs for theirs, name in ours.items() if name in REQUIRED or theirs != name]
    for theirs in needed:
        if ours[theirs] not in positions:
            problem = f"column is missing; the file has {', '.join(names)[:120]!a}"
            fix = "name the columns on the first line, or map the file's names to " + ", ".join(REQUIRED)
            raise InputError(problem, file=path, line=1, field=theirs, fix=fix)
    return positions, [name for name in names if name not in ours]


def _read_csv(content: bytes, ours: Mapping[str, str], path: Path) -> _Content:
    text = decode(content, path)
    first = text.lstrip().split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    try:
        header = next((row for row in reader if any(map(str.strip, row))), None)
        if header is None:
            raise InputError("has no lines", file=path, fix="name the columns on the first line")
        theirs = [name.strip() for name in header]
        positions, ignored = _positions(theirs, ours, path)
        blocks: dict[str, list[Floats]] = {name: [] for name in positions if name not in NAMED}
        texts: dict[str, list[str]] = {name: [] for name in positions if name in NAMED}
        lines: list[int] = []
        for numbers, rows in _blocks(reader, len(theirs), path):
            lines += numbers
            for name, k in positions.items():
                cells = [row[k] for row in rows]
                if name in NAMED:
                    texts[name] += cells
                else:
                    blocks[name].append(_cells(cells, numbers, theirs[k], path))
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", file=path, line=reader.line_num, fix="check the quotes") from None
    if not lines:
        raise InputError("has no rows", file=path, line=reader.line_num, fix="give one line per job")
    table = {name: np.concatenate(parts) for name, parts in blocks.items()}
    names: dict[str, dict[int, str]] = {}
    for name, cells in texts.items():
        try:
            table[name] = _cells(cells, lines, theirs[positions[name]], path)
        except InputError:
            table[name], names[name] = _numbered(cells)
    return _Content(table, names, np.array(lines), ignored)


def _numbered(texts: Sequence[str]) -> tuple[Floats, dict[int, str]]:
    """Names as numbers 1, 2, … in order of first appearance, NaN for missing ones; and number -> name."""
    number: dict[str, int] = {}
    stripped = [text.strip() for text in texts]
    values = [np.nan if text.upper() in MISSING else number.setdefault(text, len(number) + 1) for text in stripped]
    return np.array(values, dtype=np.float64), {code: name for name, code in number.items()}


def _blocks(reader: Any, width: int, path: Path) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Line numbers and cells of the non-blank rows, in blocks."""
    filled = ((reader.line_num, row) for row in reader if row)
    while block := list(islice(filled, _BLOCK_ROWS)):
        for line, row in block:
            if len(row) != width:
                fix = f"the first line names {width} columns"
                raise InputError(f"{len(row)} cells", file=path, line=line, field="row", fix=fix)
        yield [line for line, _ in block], [row for _, row in block]


def _cells(cells: list[str], lines: list[int], name: str, path: Path) -> Floats:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array([_cell(cell.strip(), line, name, path) for cell, line in zip(cells, lines, strict=True)])


def _cell(cell: str, line: int, name: str, path: Path) -> float:
    if cell.upper() in MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        problem = f"{cell[:20]!a} is not a number"
        fix = "write a number, or leave the cell blank if it is unknown"
        raise InputError(problem, file=path, line=line, field=name, fix=fix) from None


def _read_parquet(content: bytes, ours: Mapping[str, str], path: Path) -> _Content:
    import polars

    with unbroken(path):
        schema = parquet_schema(io.BytesIO(content), path)
        positions, ignored = _positions(list(schema), ours, path)
        wanted = {list(schema)[k]: name for name, k in positions.items()}
        frame = polars.read_parquet(io.BytesIO(content), columns=list(wanted))
    table: dict[str, Floats] = {}
    names: dict[str, dict[int, str]] = {}
    for theirs, name in wanted.items():
        if name in NAMED and frame[theirs].dtype in (polars.String, polars.Categorical, polars.Enum):
            table[name], names[name] = _numbered(frame[theirs].cast(polars.String).fill_null("").to_list())
            continue
        if not (frame[theirs].dtype.is_numeric() or frame[theirs].dtype == polars.Null):
            fix = "convert it to numbers in the unit that its name ends in"
            raise InputError(f"holds {frame[theirs].dtype}, not numbers", file=path, field=theirs, fix=fix)
        table[name] = frame[theirs].cast(polars.Float64).fill_null(float("nan")).to_numpy().copy()
    if not len(frame):
        raise InputError("has no rows", file=path, fix="give one row per job")
    return _Content(table, names, np.arange(1, len(frame) + 1), ignored)


def _check(table: dict[str, Floats], lines: NDArray[np.int64], theirs: Mapping[str, str], path: Path) -> None:
    """Refuse impossible values; replace missing whole numbers by -1."""
    for name, values in table.items():
        missing = np.isnan(values)
        bad = np.isinf(values) | (np.abs(values) >= _LARGEST)
        fix = "it must be a finite number below 2^53"
        if name in RANGES:
            lowest, strict = RANGES[name]
            # A missing requested time falls back to the run time; other bounded columns must have values.
            bad |= ~missing & (values <= lowest if strict else values < lowest)
            bad |= missing & (name in REQUIRED)
            bad |= ~missing & (values > HIGHEST.get(name, np.inf))
            fix = f"it must be finite and {'>' if strict else '>='} {lowest:g}"
            fix += f", at most {HIGHEST[name]:g}" if name in HIGHEST else ""
            fix += ", or blank" * (name in MAY_BE_MISSING)
        if not is_float(name):
            bad |= ~missing & (values != np.floor(values))
            fix = fix if name in RANGES else "it must be a whole number"
            if name in _REQUESTS:
                low, high = _REQUESTS[name]
                bad |= ~missing & (values != -1) & ((values < low) | (values > high))
                fix += f" >= {low:g}, or blank" if np.isinf(high) else f" from {low:g} to {high:g}, or blank"
            table[name] = np.where(missing, -1.0, values)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            shown = "missing" if missing[row] else f"{values[row]:g}"
            raise InputError(f"is {shown}", file=path, line=int(lines[row]), field=theirs[name], fix=fix)
    if "job_id" in table:
        ids = table["job_id"]
        order = np.argsort(ids, kind="stable")
        again = order[1:][np.diff(ids[order]) == 0]
        if again.size:
            row = int(again.min())
            fix = "give each job its own number, or leave the column out"
            line, problem = int(lines[row]), f"{ids[row]:g} occurs twice"
            raise InputError(problem, file=path, line=line, field=theirs["job_id"], fix=fix)
