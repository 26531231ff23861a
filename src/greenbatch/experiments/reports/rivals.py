"""The schedulers that can win a comparison, the best of them for a metric, and how sure that is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.tables import is_record
from greenbatch.experiments.running.frames import schedulers
from greenbatch.experiments.running.statistics import Difference, intervals
from greenbatch.metrics import METRICS
from greenbatch.schedulers.during_outages import SUFFIX

if TYPE_CHECKING:
    import polars

SMALL = 0.02
"""Relative difference below which a gain is called small."""


def rivals(frame: polars.DataFrame, baseline: str) -> polars.DataFrame:
    """The schedulers that can win: not the record, which nobody can choose, nor those that had outages as well."""
    others = [name for name in schedulers(frame) if is_record(name) or name.endswith(SUFFIX)]
    return frame.filter(~frame["scheduler"].is_in([name for name in others if name != baseline]))


def means_of(frame: polars.DataFrame, metric: str) -> dict[str, float]:
    """Scheduler -> mean of a metric over the windows, where it is defined."""
    return {name: i.mean for name, i in intervals(frame, metric).items() if math.isfinite(i.mean)}


def best_of(frame: polars.DataFrame, metric: str, baseline: str) -> str:
    """The best scheduler; if several have the same mean, the baseline if it is one of them."""
    means = means_of(frame, metric)
    sign = 1 if METRICS[metric].better == "lower" else -1
    return min(means, key=lambda name: (sign * means[name], name != baseline))


def doubt(got: Difference) -> str:
    """Why a difference means little: small, within noise or both; empty if neither."""
    words = ["small"] if abs(got.relative) < SMALL else []
    words += ["within noise"] if got.difference.count > 1 and not got.clear else []
    return " and ".join(words)
