"""Read the finished windows of an interrupted comparison, if everything that affects them is unchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.experiments.running.cells import Cell, Figures
from greenbatch.files import parquet_schema, stored_bytes
from greenbatch.models.versioned import read_table
from greenbatch.provenance import differences

if TYPE_CHECKING:
    import polars

    from greenbatch.experiments.running.cells import Metrics

RECORD, RESULTS = "provenance.json", "results.parquet"
DECIDE = ("settings", "seed", "scenario", "inputs", "versions", "source_sha256")
"""Entries of the provenance that must be equal, except that ``settings.starts`` may be a part."""
COLUMNS = [("window", "String"), ("scheduler", "String"), ("metric", "String"), ("value", "Float64")]
"""Columns of the results, and their types."""


def finished_cells(folder: Path, wanted: Mapping[str, Any]) -> dict[Cell, Figures]:
    """The figures of the finished cells of an interrupted comparison or sweep in a folder.

    Args:
        folder: the folder.
        wanted: provenance of all of it.

    Raises:
        InputError: as for `finished_windows`.
    """
    swept = "sweep" in wanted["settings"]
    found = finished_values(folder, wanted) if swept else {"": finished_windows(folder, wanted)}
    return {Cell(text, start): Figures.of(each) for text, windows in found.items() for start, each in windows.items()}


def finished_windows(folder: Path, wanted: Mapping[str, Any]) -> dict[int, Metrics]:
    """First job -> metrics of the finished windows in a folder.

    Args:
        folder: folder of the interrupted comparison.
        wanted: provenance of the complete comparison, with all windows in ``settings.starts``.

    Raises:
        InputError: the folder contains no comparison, a damaged one, or a different one; names the difference.
    """
    starts, frame, settings = _checked(folder, wanted)
    if not starts:  # interrupted in its only window
        return {}
    found = _metrics(frame, starts, settings["schedulers"])
    if found is None:
        raise _damaged(folder)
    return found


def finished_values(folder: Path, wanted: Mapping[str, Any]) -> dict[str, dict[int, Metrics]]:
    """Text of a value -> first job -> metrics of the finished windows of a sweep in a folder.

    Args:
        folder: folder of the interrupted sweep.
        wanted: provenance of the complete sweep, see `reports.sweeps.sweep_record`.

    Raises:
        InputError: as for `finished_windows`.
    """
    import polars

    _, frame, settings = _checked(folder, wanted)
    key, values = settings["sweep"]["key"], settings["sweep"]["values"]
    kind = polars.Float64 if frame.columns[:1] == [key] and frame.dtypes[0] == polars.Float64 else polars.String
    found: dict[str, dict[int, Metrics]] = {}
    for text, value in values.items():
        if frame.columns[:1] != [key]:
            raise _damaged(folder)
        part = frame.filter(frame[key] == polars.lit(value if kind == polars.Float64 else text, kind)).drop(key)
        starts = [int(window) for window in part["window"].unique(maintain_order=True) if str(window).isdecimal()]
        windows = _metrics(part, starts, settings["schedulers"])
        if windows is None:
            raise _damaged(folder)
        found[text] = windows
    return found


def _checked(folder: Path, wanted: Mapping[str, Any]) -> tuple[list[int], polars.DataFrame, dict[str, Any]]:
    """Finished windows, results and settings of the comparison in a folder, if it is the wanted one.

    Raises:
        InputError: the folder contains no comparison, a damaged one, or a different one; names the difference.
    """
    import polars

    try:
        record: Any = read_table(stored_bytes(folder / RECORD))
        then = {key: record[key] for key in DECIDE}
        starts = then["settings"].pop("starts")
        if not (isinstance(starts, list) and all(type(start) is int for start in starts)):
            raise ValueError("a start is not a whole number")
        parquet_schema(folder / RESULTS, folder / RESULTS)
        frame = polars.read_parquet(folder / RESULTS)
    except FileNotFoundError:
        raise _refusal("contains no comparison", folder, "leave --resume out") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, polars.exceptions.PolarsError):
        raise _damaged(folder) from None
    if difference := other_than(then, starts, wanted):
        fix = "repeat the original flags, or give --force instead of --resume"
        raise _refusal(f"contains a different comparison; {difference}", folder, fix)
    return starts, frame, then["settings"]


def other_than(then: Mapping[str, Any], starts: Sequence[int], wanted: Mapping[str, Any]) -> str:
    """The first difference between what was compared and what is wanted, with both values; empty if there is none.

    Args:
        then: the entries `DECIDE` of the record of what was compared, without ``settings.starts``.
        starts: those starts, which may be a part of the wanted ones.
        wanted: provenance of what is wanted.
    """
    now = json.loads(json.dumps({key: wanted[key] for key in DECIDE}))
    other = sorted({*starts} - {*now["settings"].pop("starts")})
    return f"settings.starts: {other[0]} there, not here" if other else _first_difference(then, now)


def _metrics(frame: polars.DataFrame, starts: Sequence[int], schedulers: Sequence[str]) -> dict[int, Metrics] | None:
    """The metrics of the windows, or None unless each scheduler has exactly one value of each metric in each window."""
    from greenbatch.metrics import METRICS

    if [(name, str(kind)) for name, kind in frame.schema.items()] != COLUMNS or frame["metric"].null_count():
        return None
    names = {*METRICS, *frame["metric"]}  # rules may register metrics of their own
    there = {(window, scheduler, metric) for window, scheduler, metric, _ in frame.iter_rows()}
    if there != {(str(start), scheduler, name) for start in starts for scheduler in schedulers for name in names}:
        return None
    if len(frame) > len(there):
        return None
    found: dict[int, Metrics] = {start: {scheduler: {} for scheduler in schedulers} for start in starts}
    for window, scheduler, metric, value in frame.iter_rows():
        found[int(window)][scheduler][metric] = math.nan if value is None else value
    return found


def _damaged(folder: Path) -> InputError:
    return _refusal("contains a damaged comparison", folder, "compare again with --force")


def _refusal(problem: str, folder: Path, fix: str) -> InputError:
    return InputError(problem, file=folder, field="--resume", fix=fix)


def _first_difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first difference between two records, with both values; empty if they are equal."""
    for place, (old, new) in differences(then, now).items():
        return f"{place}: {_short(old)} there, {_short(new)} here"
    return ""


def _short(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
