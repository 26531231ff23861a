"""Columns of Parquet files as NumPy arrays: a few are read, and however large the others are, they stay on disk."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.files import first_bytes, parquet_schema, read_bytes, sha256_of
from greenbatch.workload.plausible_power import plausible_samples

if TYPE_CHECKING:
    import polars

    DataType = polars.DataType | type[polars.DataType]

Floats = NDArray[np.float64]

MAGIC, _GZIP = b"PAR1", b"\x1f\x8b"
MISSING = frozenset({"", "NA", "N/A", "NULL", "NAN", "NONE"})
"""Words that mean "no value", in upper case."""

Kind = Literal["number", "whole", "limit", "time", "name", "samples"]
"""What a column holds: numbers; whole numbers; a limit, which may be the word INFINITE; time stamps; names; lists of
power samples, of which only the mean of the plausible ones, their number and that of the others are kept."""

_NEEDED: Mapping[Kind, tuple[str, str]] = {
    "number": ("numbers", "convert it to numbers"),
    "whole": ("numbers", "convert it to numbers"),
    "limit": ("numbers or texts", "convert it to numbers"),
    "time": ("times", "convert it to time stamps, or to texts such as 2023-06-01 12:00:00"),
    "name": ("names", "convert it to texts"),
    "samples": ("lists of numbers", "convert it to lists of numbers"),
}
"""What a kind of column must hold, and what to do if it does not."""
_UNLIMITED, _INFINITE = frozenset({"INFINITE", "UNLIMITED", "PARTITION_LIMIT"}), str(2**32 - 1)
"""Words for no limit, and the number that Slurm has for it."""
_NEVER = MISSING | {"NAT", "UNKNOWN"}
_OFFSET = r"(\d:\d\d:\d\d(?:\.\d+)?)\s?(Z|[+-]\d\d:?\d\d)$"
"""The end of a time stamp with an offset from UTC."""
_EARLIEST_S = 365 * 86_400.0
"""Stamps of 1970 mean that there is no time. Unix [s]"""
_LARGEST, _NO_VALUE = 2.0**53, 1e100
"""Whole numbers stay below the first; numbers beyond the second are none, and products of the others are finite."""


@contextmanager
def unbroken(path: Path) -> Iterator[None]:
    """Refuse a file that is no readable Parquet in one line.

    Raises:
        InputError: the file is broken.
    """
    import polars

    try:
        yield
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as error:
        problem = f"broken Parquet: {(str(error).splitlines() or ['no reason given'])[0]}"
        raise InputError(problem, file=path, fix="write or copy the file again") from None


def parquet_files(path: Path) -> list[Path]:
    """The file itself, or the Parquet files of a folder in the order of their names.

    Raises:
        InputError: the folder has none.
    """
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix == ".parquet" and file.name[0] != ".")
    if not files:
        raise InputError("is a folder", file=path, fix="give the file itself, or a folder of *.parquet")
    return files


def column_names(path: Path) -> list[str] | None:
    """Names of the columns of a Parquet file, plain or gzip; none if it is broken; None for any other file.

    Raises:
        InputError: the file cannot be read.
    """
    source: Path | io.BytesIO = path
    start = first_bytes(path, 4)
    if start.startswith(_GZIP) or not path.is_file():
        content, _ = read_bytes(path)
        start, source = content[:4], io.BytesIO(content)
    if start != MAGIC:
        return None
    try:
        with unbroken(path):
            return list(parquet_schema(source, path))
    except InputError:
        return []


@dataclass(frozen=True, slots=True)
class Cells:
    """The columns that were asked for, n rows; methods return arrays of shape (n,), NaN for missing values."""

    file: Path
    """The file, for messages."""
    sha256: str
    """SHA-256 of the file."""
    frame: polars.DataFrame
    """The columns, samples replaced by their mean, ``NAME length`` and ``NAME beyond``, which are left out."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of the rows, from 1."""
        return np.arange(1, len(self.frame) + 1)

    def numbers(self, name: str) -> Floats:
        """Numbers below 1e100 in size; NaN if the file has no such column."""
        if name not in self.frame.columns:
            return np.full(len(self.frame), np.nan)
        values: Floats = self.frame[name].fill_null(float("nan")).to_numpy()
        return np.where(np.abs(values) < _NO_VALUE, values, np.nan)

    def wholes(self, name: str) -> Floats:
        """Whole numbers below 2^53.

        Raises:
            InputError: one is not; names its row.
        """
        values = self.numbers(name)
        bad = np.flatnonzero((values != np.floor(values)) & ~np.isnan(values) | (np.abs(values) >= _LARGEST))
        if bad.size:
            row = int(bad[0])
            fix = "it must be a whole number below 2^53"
            raise InputError(f"is {values[row]:g}", file=self.file, line=row + 1, field=name, fix=fix)
        return values

    def codes(self, name: str, number: dict[str, int]) -> Floats:
        """Names as 1, 2, … in order of first appearance, kept in ``number``; NaN for blanks."""
        if name not in self.frame.columns:
            return np.full(len(self.frame), np.nan)
        texts = self.frame[name]
        known = texts.unique(maintain_order=True).drop_nulls()
        codes = [float(number.setdefault(text, len(number) + 1)) for text in known.to_list()]
        return texts.replace_strict(known, codes, default=float("nan")).cast(float).to_numpy()

    def looked_up(self, name: str, table: Mapping[str, int]) -> Floats:
        """The number that a table has for the first word of each name, -1 for all others."""
        words: dict[str, int] = {}
        codes = np.nan_to_num(self.codes(name, words)).astype(np.int64)
        values = [-1.0, *(float(table.get("".join(text.split()[:1]), -1)) for text in words)]
        return np.array(values)[codes]

    def times(self, name: str) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
        """Times as Unix seconds [s], which of them are local times (read as if UTC), and which cannot be read."""
        import polars

        stamps = self.frame[name]
        if stamps.dtype == polars.String:
            return _texts_as_times(stamps)
        local = np.full(len(stamps), getattr(stamps.dtype, "time_zone", None) is None)
        microseconds = stamps.cast(polars.Datetime("us", getattr(stamps.dtype, "time_zone", None))).dt.timestamp("us")
        return _known(microseconds), local, np.zeros(len(stamps), dtype=bool)


def read_cells(
    path: Path, columns: Mapping[str, Kind], optional: Set[str] = frozenset(), *, nodes: str | None = None,
    most_node_w: float | None = None,
) -> Cells:  # fmt: skip
    """Read the given columns of a Parquet file, plain or gzip.

    Args:
        path: the file.
        columns: name -> what the column holds.
        optional: columns that the file need not have.
        nodes: column of the number of nodes that samples are sums over, if any are.
        most_node_w: highest plausible sample per node, instead of `plausible_power.plausible_samples`'s rule. [W]

    Raises:
        InputError: the file cannot be read, is broken or has no rows, or a column is missing or of another type.
    """
    import polars

    source: Path | io.BytesIO = path
    if first_bytes(path, 2) == _GZIP or not path.is_file():
        content, sha256 = read_bytes(path)
        source = io.BytesIO(content)
    else:
        sha256 = sha256_of(path)
    with unbroken(path):
        schema = parquet_schema(source, path)
    for name in columns:
        if name not in schema and name not in optional:
            shown = ", ".join(schema)[:120]
            fix = "download the file again, or write all columns of the data set"
            raise InputError(f"column is missing; the file has {shown!a}", file=path, field=name, fix=fix)
    wanted = [each for name, kind in columns.items() if name in schema
              for each in _expressions(name, kind, schema[name], path, nodes, most_node_w)]  # fmt: skip
    with unbroken(path):
        frame = polars.scan_parquet(source).select(wanted).collect(engine="streaming")
    if not len(frame):
        raise InputError("has no rows", file=path, fix="give one row per job")
    for name, kind in columns.items():
        if kind == "limit" and schema.get(name) == polars.String:
            frame = frame.with_columns(_limits(frame[name], path))
    return Cells(path, sha256, frame)


def _expressions(
    name: str, kind: Kind, dtype: DataType, path: Path, nodes: str | None, most_node_w: float | None
) -> list[polars.Expr]:
    """What is read of a column.

    Raises:
        InputError: it is of another type.
    """
    import polars

    column = polars.col(name)
    if dtype == polars.Null and kind != "samples":
        as_type: dict[Kind, DataType] = {"time": polars.Datetime("us", "UTC"), "name": polars.String}
        return [column.cast(as_type.get(kind, polars.Float64))]
    if kind in ("number", "whole", "limit") and dtype.is_numeric():
        return [column.cast(polars.Float64)]
    if (kind == "limit" and dtype == polars.String) or (kind == "time" and dtype in (polars.String, polars.Datetime)):
        return [column]
    if kind == "name" and (dtype in (polars.String, polars.Categorical, polars.Enum) or dtype.is_integer()):
        text = column.cast(polars.String).str.strip_chars()
        return [polars.when(~text.str.to_uppercase().is_in(list(MISSING))).then(text).alias(name)]
    if kind == "samples" and dtype in (polars.List, polars.Array) and dtype.inner.is_numeric():  # type: ignore[union-attr]
        samples = column.cast(polars.List(polars.Float64))
        kept = plausible_samples(samples, polars.lit(1.0) if nodes is None else polars.col(nodes), most_node_w)
        length, left = (each.list.len().cast(polars.Float64) for each in (samples, kept))
        return [kept.list.mean().alias(name), length.alias(f"{name} length"), (length - left).alias(f"{name} beyond")]
    needed, fix = _NEEDED[kind]
    raise InputError(f"holds {dtype}, not {needed}", file=path, field=name, fix=fix)


def _limits(texts: polars.Series, path: Path) -> polars.Series:
    """Limits as numbers, null if unknown, 2^32 - 1 for none.

    Raises:
        InputError: a text is neither a number nor a word for no limit; names its row.
    """
    import polars

    given = texts.str.strip_chars()
    given = given.set(given.str.to_uppercase().is_in(list(MISSING)).fill_null(False), None)
    given = given.set(given.str.to_uppercase().is_in(list(_UNLIMITED)).fill_null(False), _INFINITE)
    numbers = given.cast(polars.Float64, strict=False)
    bad = (given.is_not_null() & numbers.is_null()).arg_true()
    if len(bad):
        row, fix = int(bad[0]), "give a number, or INFINITE"
        raise InputError(f"{given[row][:20]!a} is not a limit", file=path, line=row + 1, field=texts.name, fix=fix)
    return numbers


def _texts_as_times(texts: polars.Series) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """The same as `Cells.times` of ISO stamps, with or without an offset."""
    import polars

    given = texts.str.strip_chars()
    given = given.set(given.str.to_uppercase().is_in(list(_NEVER)).fill_null(False), None)
    offset = given.str.extract(_OFFSET, 2)
    wall = given.str.replace(_OFFSET, "${1}").str.replace("T", " ", literal=True)
    stamps = wall.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
    ahead_s = {text: _offset_s(text) for text in offset.unique().drop_nulls().to_list()}
    offset_s = offset.replace_strict(ahead_s, default=0.0, return_dtype=polars.Float64).to_numpy() if ahead_s else 0.0
    unreadable = given.is_not_null() & stamps.is_null()
    return _known(stamps.dt.timestamp("us")) - offset_s, offset.is_null().to_numpy(), unreadable.to_numpy()


def _offset_s(text: str) -> float:
    """Seconds ahead of UTC of ``Z``, ``+0900`` or ``+09:00``."""
    if text == "Z":
        return 0.0
    return (-1.0 if text[0] == "-" else 1.0) * (int(text[1:3]) * 3600.0 + int(text[-2:]) * 60.0)


def _known(microseconds: Any) -> Floats:
    """Unix seconds, NaN for null and for 1970."""
    seconds: Floats = microseconds.cast(float).fill_null(float("nan")).to_numpy() / 1e6
    return np.where(seconds >= _EARLIEST_S, seconds, np.nan)
