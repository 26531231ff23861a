"""Read the finished windows of an interrupted comparison, if everything that affects them is unchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError

if TYPE_CHECKING:
    from greenbatch.experiments.compare import Metrics

_RECORD, _RESULTS = "provenance.json", "results.parquet"
_DECIDE = ("settings", "seed", "scenario", "inputs", "versions", "source_sha256")
"""Entries of the provenance that must be equal, except that ``settings.starts`` may be a part."""


def finished_windows(folder: Path, wanted: Mapping[str, Any]) -> dict[int, Metrics]:
    """First job -> metrics of the finished windows in a folder.

    Args:
        folder: folder of the interrupted comparison.
        wanted: provenance of the complete comparison, with all windows in ``settings.starts``.

    Raises:
        InputError: the folder contains no comparison, a damaged one, or a different one; names the difference.
    """
    import polars

    file = folder / _RECORD
    try:
        record = json.loads(file.read_bytes())
        then = {key: record[key] for key in _DECIDE}
        starts = [int(start) for start in then["settings"].pop("starts")]
        frame = polars.read_parquet(folder / _RESULTS)
        found: dict[int, Metrics] = {start: {} for start in starts}
        for window, scheduler, metric, value in frame.iter_rows():
            found[int(window)].setdefault(scheduler, {})[metric] = math.nan if value is None else value
    except FileNotFoundError:
        raise _refusal("contains no comparison", folder, "leave --resume out") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, polars.exceptions.PolarsError):
        raise _refusal("contains a damaged comparison", folder, "compare again with --force") from None
    now = json.loads(json.dumps({key: wanted[key] for key in _DECIDE}))
    other = sorted({*starts} - {*now["settings"].pop("starts")})
    difference = f"settings.starts: {other[0]} there, not here" if other else _first_difference(then, now)
    if difference:
        fix = "repeat the original flags, or give --force instead of --resume"
        raise _refusal(f"contains a different comparison; {difference}", folder, fix)
    return found


def _refusal(problem: str, folder: Path, fix: str) -> InputError:
    return InputError(problem, file=folder, field="--resume", fix=fix)


def _first_difference(then: Any, now: Any, place: str = "") -> str:
    """The first difference between two trees, with both values; empty if they are equal."""
    if isinstance(then, dict) and isinstance(now, dict):
        parts = (
            _first_difference(then.get(key), now.get(key), f"{place}.{key}" if place else key)
            for key in dict.fromkeys([*now, *then])
        )
        return next(filter(None, parts), "")
    return "" if then == now else f"{place}: {_short(then)} there, {_short(now)} here"


def _short(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
