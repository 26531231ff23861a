"""A comparison as one JSON object, for other programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from greenbatch.experiments.reports.breakdown import means_frame
from greenbatch.experiments.reports.columns import named
from greenbatch.experiments.reports.notes import notes_of
from greenbatch.experiments.running.statistics import Interval, differences, intervals
from greenbatch.metrics import METRICS
from greenbatch.notes import records

if TYPE_CHECKING:
    from greenbatch.experiments.running.compare import Comparison


def summary(comparison: Comparison) -> dict[str, Any]:
    """Means, intervals, differences and warnings of a comparison, ready for JSON.

    Args:
        comparison: what was compared.

    Returns:
        ``scenario``, ``baseline``, ``jobs`` (of a window), ``starts``; ``metrics`` (name -> label, unit, better);
        ``schedulers`` (name -> metric -> mean, low, high, windows); ``differences`` to the baseline (name -> metric ->
        mean, low, high, windows, relative, better, worse); ``by`` (partition, account or user -> name -> scheduler ->
        metric -> mean); ``notes``, by consequence: on the figures, windows and models, and what was repaired, dropped
        or assumed when the inputs were read (text, level, what, count, first_line, about, shares, of); ``warnings``,
        the texts of those of level warning. Undefined values are null.
    """
    frame, baseline, notes = comparison.frame, comparison.baseline, notes_of(comparison)
    names = [name for name in comparison.schedulers if name != baseline]
    means = {metric: intervals(frame, metric) for metric in METRICS}
    gains = {metric: differences(frame, metric, baseline) for metric in METRICS}
    return {
        "scenario": comparison.scenario.name,
        "baseline": baseline,
        "jobs": comparison.jobs,
        "starts": list(comparison.starts),
        "metrics": {
            m.name: {"label": m.label, "unit": named(m.unit, comparison.currency), "better": m.better}
            for m in METRICS.values()
        },
        "schedulers": {
            name: {metric: _numbers(means[metric][name]) for metric in METRICS} for name in comparison.schedulers
        },
        "differences": {
            name: {
                metric: {
                    **_numbers(got.difference), "relative": _number(got.relative), "better": got.better,
                    "worse": got.worse,
                }
                for metric, got in ((metric, gains[metric][name]) for metric in METRICS)
            }
            for name in names
        },
        "by": _parts(comparison),
        "warnings": [str(note) for note in notes if note.level == "warning"],
        "notes": records(notes),
    }  # fmt: skip


def _parts(comparison: Comparison) -> dict[str, dict[str, dict[str, dict[str, float | None]]]]:
    """By what -> part -> scheduler -> metric -> mean over the windows."""
    found: dict[str, dict[str, dict[str, dict[str, float | None]]]] = {}
    if len(comparison.breakdown):
        for row in means_frame(comparison.breakdown).iter_rows(named=True):
            by, part, scheduler = (row.pop(key) for key in ("by", "part", "scheduler"))
            found.setdefault(by, {}).setdefault(part, {})[scheduler] = row
    return found


def _numbers(interval: Interval) -> dict[str, float | int | None]:
    return {
        "mean": _number(interval.mean), "low": _number(interval.low), "high": _number(interval.high),
        "windows": interval.count,
    }  # fmt: skip


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
