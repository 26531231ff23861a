"""Named columns of a CSV or Parquet file as text, with the line number of each row for error messages."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.files import decode, parquet_schema, read_bytes

Floats = NDArray[np.float64]

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "-"})
"""Cells (in lower case) that mean "no value" in any file."""
DECIMALS = (".", ",")
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?")
"""A number with a decimal comma; points may group thousands."""
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+")
"""A number whose commas can only group thousands."""
_DELIMITERS = (";", "\t", "|", ",")


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of one file, all of the same length; cells are stripped text, missing cells are empty."""

    file: str
    sha256: str
    cells: dict[str, list[str]]
    first_line: int | None
    """Line of the first row in a text file; ``None`` for Parquet."""
    lines: tuple[int, ...] = ()
    """Line of each row, or its number in Parquet from 1, if they are not consecutive."""
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The other columns of texts, which may tell apart rows of equal times."""

    def place(self, row: int) -> tuple[int | None, str]:
        """Line number of a row, and text to append for files without lines."""
        number = self.lines[row] if self.lines else (self.first_line or 1) + row
        return (None, f" in row {number}") if self.first_line is None else (number, "")

    def take(self, rows: Sequence[int]) -> Columns:
        """A selection of the rows."""

        def chosen(columns: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
            return {name: [column[row] for row in rows] for name, column in columns.items()}

        lines = tuple(self.lines[row] if self.lines else (self.first_line or 1) + row for row in rows)
        return replace(self, cells=chosen(self.cells), others=chosen(self.others), lines=lines)

    def refuse(self, row: int, problem: str, *, field: str, fix: str | None = None) -> InputError:
        """The error for one cell."""
        line, words = self.place(row)
        return InputError(problem + words, file=self.file, line=line, field=field, fix=fix)


def read_rows(text: str, *, file: str | Path, delimiter: str = ",") -> tuple[list[list[str]], list[int]]:
    """Rows of a CSV text and the line on which each ends; blank lines are skipped."""
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for row in reader:
            if any(row):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", file=file, line=reader.line_num, fix="check the quotes") from None
    return rows, lines


def read_columns(
    file: str | Path,
    names: Sequence[str],
    *,
    delimiter: str = ",",
    where: Mapping[str, str] | None = None,
    spellings: Mapping[str, Sequence[str]] | None = None,
) -> Columns:
    """Read named columns of a CSV (``.gz`` or plain, one header row) or Parquet file.

    Args:
        file: the file.
        names: the columns; these are the keys of ``Columns.cells``.
        delimiter: field separator of a CSV file.
        where: column -> the text that a row must have in it; other rows are left out.
        spellings: name of a column -> other names that it may have in the file.

    Raises:
        InputError: the file cannot be read, has no rows, lacks a column or has it twice, a row is incomplete, or no row
            has the texts of ``where``.
    """
    where, spellings = where or {}, spellings or {}
    wanted = list(dict.fromkeys([*names, *where]))
    if ".parquet" in (suffixes := Path(file).suffixes) or ".pq" in suffixes:
        return _selected(_parquet(file, wanted), where)
    content, digest = read_bytes(file)
    text = decode(content, file)
    if len(delimiter) != 1:
        raise InputError(f"is {delimiter!r}", field="delimiter", fix="give one character")
    rows, lines = read_rows(text, file=file, delimiter=delimiter)
    if len(rows) < 2:
        raise InputError("has no data rows", file=file, fix="it needs a header row and at least one row below it")
    header = [name.strip() for name in rows[0]]
    places = [_index(file, header, name, lines[0], spellings.get(name, ())) for name in wanted]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            problem = f"has {len(row)} fields, the header has {len(header)}"
            raise InputError(problem, file=file, line=line, fix="complete or remove the line")
    cells = {name: [row[at].strip() for row in rows[1:]] for name, at in zip(wanted, places, strict=True)}
    rest = [at for at, name in enumerate(header) if at not in places and header.count(name) == 1]
    others = {header[at]: [row[at].strip() for row in rows[1:]] for at in rest}
    return _selected(Columns(str(file), digest, cells, lines[1], tuple(lines[1:]), others), where)


def _selected(table: Columns, where: Mapping[str, str]) -> Columns:
    """The rows that have given texts in given columns."""
    for column, text in where.items():
        cells = table.cells[column]
        kept = [row for row, cell in enumerate(cells) if cell == text]
        if not kept:
            different = list(dict.fromkeys(cells))
            fix = "use one of " + ", ".join(f'"{cell}"' for cell in different[:6]) + ", ..." * (len(different) > 6)
            raise InputError(f"no row has {text!r}", file=table.file, field=f"where.{column}", fix=fix)
        table = table.take(kept)
    return table


def numbers(table: Columns, column: str, markers: Sequence[float] = (), *, decimal: str = ".") -> Floats:
    """One column as floats; empty cells, NaN and the given markers become NaN.

    Args:
        table: cells of the file.
        column: the column.
        markers: numbers that mean "no value".
        decimal: the decimal mark, one of ``DECIMALS``; the other may group thousands, ``1.065,50`` or ``1,065.50``.

    Raises:
        InputError: a cell is not a number, or infinite.
    """
    if decimal not in DECIMALS:
        raise InputError(f"is {decimal!r}", field="decimal", fix='use "." or ","')
    cells = table.cells[column]
    values = _plain_numbers(cells) if decimal == "." else None
    if values is None:
        values = _odd_numbers(table, column, decimal)
    if (wrong := np.flatnonzero(np.isinf(values))).size:
        raise table.refuse(int(wrong[0]), "is infinite", field=column, fix="correct or empty the cell")
    values[np.isin(values, np.asarray(markers, dtype=np.float64))] = np.nan
    return values


def _plain_numbers(cells: Sequence[str]) -> Floats | None:
    """Cells as floats; None if one is not simply a number."""
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None


def _odd_numbers(table: Columns, column: str, decimal: str) -> Floats:
    """One column as floats, cell by cell; some are empty, have commas or are not numbers."""
    values = np.empty(len(table.cells[column]))
    for row, cell in enumerate(table.cells[column]):
        if cell.lower() in MISSING:
            values[row] = np.nan
            continue
        with_comma = _COMMA.fullmatch(cell) is not None
        try:
            if decimal == ",":
                values[row] = float(cell.replace(".", "").replace(",", ".") if with_comma else "no number")
            else:
                values[row] = float(cell.replace(",", "") if _GROUPED.fullmatch(cell) else cell)
        except ValueError:
            fix = "correct or empty the cell"
            if decimal == ",":
                fix += ', or leave decimal = "," out'
            elif with_comma:
                fix = f'set decimal = "," if the comma is the decimal mark, or {fix}'
            raise table.refuse(row, f"{cell!r} is not a number", field=column, fix=fix) from None
    return values


def _index(file: str | Path, header: Sequence[str], name: str, line: int | None, also: Sequence[str] = ()) -> int:
    if header.count(name) > 1:
        raise InputError("the column occurs twice", file=file, line=line, field=name, fix="rename one of them")
    if name in header:
        return header.index(name)
    if len(found := [at for at, given in enumerate(header) if given in also]) == 1:
        return found[0]
    shown = "the file has " + ", ".join(header[:12]) + (", ..." if len(header) > 12 else "")
    if len(header) == 1 and (mark := next((mark for mark in _DELIMITERS if mark in header[0]), None)):
        shown += f": set delimiter = {json.dumps(mark)}"
    raise InputError("no such column", file=file, line=line, field=name, fix=shown)


def _parquet(file: str | Path, names: Sequence[str]) -> Columns:
    import polars

    raw, digest = read_bytes(file)
    try:
        schema = parquet_schema(io.BytesIO(raw), Path(file))
        for name in names:
            _index(file, list(schema), name, None)
        of_texts = (polars.String, polars.Categorical, polars.Enum)
        rest = [name for name, kind in schema.items() if kind in of_texts and name not in names]
        frame = polars.read_parquet(io.BytesIO(raw), columns=[*names, *rest])
    except polars.exceptions.PolarsError as error:
        raise InputError(f"is not a Parquet file: {str(error).splitlines()[0]}", file=file) from None
    if not frame.height:
        raise InputError("has no data rows", file=file, fix="write at least one row")
    cells = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype == polars.Datetime:
            zone = getattr(column.dtype, "time_zone", None)
            utc = column.dt.convert_time_zone("UTC") if zone else column
            column = utc.dt.strftime("%Y-%m-%dT%H:%M:%S%.f" + ("+00:00" if zone else ""))
        elif column.dtype.is_nested():
            raise InputError(f"holds {column.dtype}, not numbers or stamps", file=file, field=name, fix="flatten it")
        cells[name] = ["" if cell is None else str(cell).strip() for cell in column.to_list()]
    others = {name: cells.pop(name) for name in rest}
    return Columns(str(file), digest, cells, None, others=others)
