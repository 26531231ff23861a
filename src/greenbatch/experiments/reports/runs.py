"""The single runs of a comparison, finished or not, as a table with one row each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError, did_you_mean
from greenbatch.experiments.reports.columns import main_columns
from greenbatch.experiments.reports.tables import Cell, Table
from greenbatch.experiments.running.finished import RECORD, RESULTS
from greenbatch.experiments.running.pieces import RECORD_OF_PIECES, SUFFIX, beside, pieces_in, read_piece, read_record
from greenbatch.files import sha256_of
from greenbatch.metrics.breakdown import split_part_metric

if TYPE_CHECKING:
    import polars

FEW = 3
"""Metrics that are shown by default: more do not fit beside their names."""
RUN = ("window", "scheduler")
"""Columns that say which run a row is, beside the value of a sweep."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Runs:
    """Runs of a comparison or a sweep."""

    frame: polars.DataFrame
    """One row per run: the value of a sweep, window, scheduler, then a column per metric; null where undefined."""
    usual: tuple[str, ...]
    """The first metrics of the main table."""
    windows: int
    """Finished windows, of all values."""
    asked: int
    """All windows that are asked for."""
    notes: tuple[str, ...] = ()
    """What was repaired, dropped or assumed in the inputs."""


def read_runs(folder: Path) -> Runs:
    """The runs of a result, and those finished so far of one that is running or was interrupted.

    A swept key is the column of its last part, such as ``capacity_kwh``, unless a metric has that name.

    Args:
        folder: folder of the result, or that of its pieces.

    Raises:
        InputError: there are no results, or they are damaged.
    """
    import polars

    pieces_themselves = folder.name.endswith(SUFFIX) and not (folder / RESULTS).exists()
    out = folder.with_name(folder.name.removesuffix(SUFFIX)) if pieces_themselves else folder
    pieces = pieces_in(beside(out))
    files = [*([out / RESULTS] if (out / RESULTS).exists() else []), *pieces]
    if not files:
        fix = "give the --out of greenbatch compare or whatif; the first seconds leave nothing yet"
        raise InputError("has no results", file=folder, fix=fix)
    try:
        record = read_record(beside(out) / RECORD_OF_PIECES if pieces else out / RECORD)
        digests = record.get("files")
        if not pieces and not (isinstance(digests, dict) and sha256_of(out / RESULTS) == digests.get(RESULTS)):
            fix = "compare again; read_parquet of polars reads a file that you changed yourself"
            raise InputError("was changed since greenbatch wrote it", file=out / RESULTS, fix=fix)
        settings = record["settings"]
        rows = polars.concat([read_piece(file) for file in files])
    except InputError:
        if all(file.exists() for file in files):
            raise
        return read_runs(folder)  # the result was delivered in the meantime, and the pieces are gone
    key = [name for name in rows.columns if name not in {*RUN, "metric", "value"}]
    rows = rows.unique([*key, *RUN, "metric"], maintain_order=True, keep="last")
    parts = [name for name in rows["metric"].unique() if split_part_metric(name)]
    rows = rows.filter(~rows["metric"].is_in(parts))
    known = {*rows["metric"]}  # earlier versions have fewer
    usual = tuple(column.metric for column in main_columns(rows.drop(key)) if column.metric in known)[:FEW]
    table = rows.pivot(on="metric", index=[*key, *RUN], values="value")
    short = {name: last for name in key if (last := name.rpartition(".")[2]) not in table.columns}
    table = table.rename(short).with_columns(polars.col("window").cast(polars.Int64))
    values = len(settings["sweep"]["values"]) if "sweep" in settings else 1
    cells = table.select(*(short.get(name, name) for name in key), "window").unique()
    return Runs(
        frame=table, usual=usual, windows=cells.height,
        asked=max(len(settings["starts"]), 1) * values, notes=tuple(record.get("notes", ())),
    )  # fmt: skip


def chosen(runs: Runs, *, where: str | None, columns: Sequence[str] | None, sort: str | None) -> polars.DataFrame:
    """Some runs and columns.

    Args:
        runs: all of them.
        where: a condition on columns in SQL, such as ``horizon_cost < 10 AND scheduler = 'fcfs+easy'``.
        columns: metrics; by default `Runs.usual` and those of the condition.
        sort: column to sort by, ascending; descending after a minus sign.

    Raises:
        InputError: an unknown column, or a condition that is none.
    """
    import polars

    frame, named = runs.frame, list(runs.usual)
    if where is not None:
        try:
            condition = polars.sql_expr(where)
            named += condition.meta.root_names()
            frame = frame.filter(condition)
        except polars.exceptions.ColumnNotFoundError:
            unknown = next(name for name in condition.meta.root_names() if name not in frame.columns)
            raise _unknown(unknown, frame, "--where") from None
        except polars.exceptions.PolarsError as error:
            problem = f"{where[:60]!r} is no condition: {str(error).splitlines()[0][:120]}"
            raise InputError(problem, field="--where", fix='such as "avg_wait_s < 3600"') from None
    by = (sort or "").removeprefix("-")
    for flag, names in (("--columns", columns or ()), ("--sort", [by] if by else [])):
        for name in names:
            if name not in frame.columns:
                raise _unknown(name, frame, flag)
    if by:
        frame = frame.sort(by, descending=(sort or "").startswith("-"), nulls_last=True, maintain_order=True)
        named += [by]
    first = frame.columns[: frame.columns.index("scheduler") + 1]
    return frame.select(list(dict.fromkeys((*first, *(named if columns is None else columns)))))


def _unknown(name: str, frame: polars.DataFrame, flag: str) -> InputError:
    first = ", ".join(frame.columns[: frame.columns.index("scheduler") + 1])
    quotes = "; text is in single quotes" if flag == "--where" else ""
    fix = did_you_mean(name, frame.columns, then=f"columns: {first} and all metrics{quotes}")
    return InputError(f"there is no column {name!r:.60}", field=flag, fix=fix)


def runs_table(runs: Runs, frame: polars.DataFrame, most: int) -> Table:
    """The first rows of chosen runs."""
    columns = [name for name in frame.columns if name != "scheduler"]
    rows = [(row["scheduler"], tuple(Cell(_number(row[name])) for name in columns))
            for row in frame.head(most).iter_rows(named=True)]  # fmt: skip
    finished = f"{runs.windows:,} of {runs.asked:,} windows are finished"
    shown = f"{min(most, frame.height):,} of {frame.height:,} runs" if frame.height > most else f"{frame.height:,} runs"
    more = ("--rows shows more, --json all.",) if frame.height > most else ()
    heads = tuple((name, "", name.replace("_", "_ ")) for name in columns)  # names may break where there is no room
    return Table(f"{shown}; {finished}", heads, tuple(rows), notes=more)


def _number(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or not math.isfinite(value):
        return "–"  # noqa: RUF001  (a typographic dash is meant for the reader)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
