"""Tidy frames: one row per window, scheduler and metric, with the value.

The columns are ``window`` (any name), ``scheduler``, ``metric`` and ``value``, and for trained agents ``seed``. A
missing or NaN value means undefined.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from greenbatch.metrics.breakdown import part_metric, split_part_metric

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]


def tidy(results: Iterable[tuple[str, Mapping[str, Mapping[str, float]]]]) -> polars.DataFrame:
    """A tidy frame from (window, scheduler -> metric -> value) pairs, as returned by `metrics.evaluate_window`.

    Undefined values are null in the frame. Figures of parts (`metrics.breakdown`) are left out, see `breakdown`.
    """
    import polars

    rows = [
        (window, scheduler, metric, value)
        for window, scheduler, metric, value in _rows(results)
        if split_part_metric(metric) is None
    ]
    schema = {"window": polars.String, "scheduler": polars.String, "metric": polars.String, "value": polars.Float64}
    return polars.DataFrame(rows, schema=schema, orient="row")


def breakdown(results: Iterable[tuple[str, Mapping[str, Mapping[str, float]]]]) -> polars.DataFrame:
    """Figures of partitions, accounts and users among the same pairs: window, scheduler, by, part, metric, value."""
    import polars

    rows = []
    for window, scheduler, name, value in _rows(results):
        if part := split_part_metric(name):
            metric, by, of = part
            rows.append((window, scheduler, by, of, metric, value))
    columns = ("window", "scheduler", "by", "part", "metric")
    return polars.DataFrame(rows, dict.fromkeys(columns, polars.String) | {"value": polars.Float64}, orient="row")


def with_breakdown(frame: polars.DataFrame, parts: polars.DataFrame) -> polars.DataFrame:
    """A tidy frame followed by the rows of a breakdown, whose metrics are named by `part_metric`."""
    import polars

    names = [part_metric(*row) for row in parts.select("metric", "by", "part").iter_rows()]
    rows = parts.with_columns(polars.Series("metric", names, dtype=polars.String)).select(frame.columns)
    return polars.concat([frame, rows])


def _rows(
    results: Iterable[tuple[str, Mapping[str, Mapping[str, float]]]],
) -> Iterator[tuple[str, str, str, float | None]]:
    for window, table in results:
        for scheduler, values in table.items():
            for metric, value in values.items():
                yield str(window), scheduler, metric, float(value) if math.isfinite(value) else None


def schedulers(frame: polars.DataFrame) -> list[str]:
    """Schedulers of a tidy frame, in order of appearance."""
    return [str(name) for name in frame["scheduler"].unique(maintain_order=True)]


def by_seed(frame: polars.DataFrame, scheduler: str, metric: str) -> dict[int | None, dict[str, float]]:
    """Seed -> window -> value of one metric of one scheduler in a tidy frame (window, scheduler, metric, value).

    The column ``seed`` contains the seed of agents; if it is missing or null, the seed is None.
    """
    found: dict[int | None, dict[str, float]] = _index(frame).get((scheduler, metric), {})
    return found


Given = ParamSpec("Given")
Result = TypeVar("Result")
_known: dict[int, tuple[weakref.ref[polars.DataFrame], dict[Any, Any]]] = {}
"""Id of a frame -> the frame and what was computed from it."""


def computed_once(
    function: Callable[Concatenate[polars.DataFrame, Given], Result],
) -> Callable[Concatenate[polars.DataFrame, Given], Result]:
    """A function of a frame and hashable arguments whose results are kept as long as the frame is.

    A report asks thousands of times for figures of the same frame, and filtering one takes a millisecond. Frames and
    results must not be changed.
    """

    @wraps(function)
    def kept(frame: polars.DataFrame, /, *arguments: Given.args, **named: Given.kwargs) -> Result:
        known = _known.get(id(frame))
        if known is None or known[0]() is not frame:
            place = id(frame)
            known = _known[place] = weakref.ref(frame, lambda _: _known.pop(place, None)), {}
        key = function, arguments, tuple(named.items())
        if key not in known[1]:
            known[1][key] = function(frame, *arguments, **named)
        result: Result = known[1][key]
        return result

    return kept


@computed_once
def _index(frame: polars.DataFrame) -> dict[tuple[str, str], dict[int | None, dict[str, float]]]:
    """(Scheduler, metric) -> seed -> window -> value."""
    import polars

    seeds = frame["seed"].to_list() if "seed" in frame.columns else [None] * frame.height
    windows, values = frame["window"].cast(polars.String), frame["value"].cast(polars.Float64).fill_null(np.nan)
    columns = (frame["scheduler"].to_list(), frame["metric"].to_list(), seeds, windows.to_list(), values.to_list())
    found: dict[tuple[str, str], dict[int | None, dict[str, float]]] = {}
    for scheduler, metric, seed, window, value in zip(*columns, strict=True):
        found.setdefault((scheduler, metric), {}).setdefault(seed, {})[window] = value
    return found


def by_window(frame: polars.DataFrame, scheduler: str, metric: str) -> dict[str, float]:
    """Window -> value of one metric of one scheduler in a tidy frame; for agents the mean over their seeds."""
    (values,), windows = matrices(frame, [scheduler], metric)
    return dict(zip(windows, values.mean(axis=0).tolist(), strict=True)) if values.size else {}


def values_of(frame: polars.DataFrame, metric: str) -> list[float]:
    """All values of one metric in a tidy frame, NaN where undefined."""
    return _values(frame).get(metric, [])


@computed_once
def _values(frame: polars.DataFrame) -> dict[str, list[float]]:
    """Metric -> its values."""
    found: dict[str, list[float]] = {}
    for metric, value in zip(frame["metric"].to_list(), frame["value"].fill_null(math.nan).to_list(), strict=True):
        found.setdefault(metric, []).append(value)
    return found


def matrices(frame: polars.DataFrame, names: Sequence[str], metric: str) -> tuple[list[Floats], list[str]]:
    """Values of a metric for several schedulers, each of shape (seeds, windows), and the common windows."""
    tables = [by_seed(frame, name, metric) for name in names]
    windows = list(dict.fromkeys(window for table in tables for values in table.values() for window in values))
    matrices = [
        np.array([[values.get(window, np.nan) for window in windows] for values in (table or {None: {}}).values()])
        for table in tables
    ]
    return matrices, windows
