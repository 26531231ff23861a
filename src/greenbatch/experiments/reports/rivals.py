"""The schedulers that can win a comparison, the best of them for a metric, and how sure that is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.columns import MAIN, VALUED
from greenbatch.experiments.reports.tables import is_record
from greenbatch.experiments.running.frames import computed_once, schedulers
from greenbatch.experiments.running.statistics import Difference, intervals
from greenbatch.metrics import METRICS
from greenbatch.schedulers.during_outages import SUFFIX

if TYPE_CHECKING:
    import polars

ROUNDING = 5e-4
"""Relative difference below which two means are the same: it would be shown as 0.0 %."""
SHARES = frozenset(column.metric for column in (*MAIN, *VALUED) if column.unit == "%")
"""Metrics that are shown in percent, and their differences in points."""
SMALL = 0.02
"""Relative difference below which a gain is called small."""


@computed_once
def rivals(frame: polars.DataFrame, baseline: str) -> polars.DataFrame:
    """The schedulers that can win: not the record, which nobody can choose, nor those that had outages as well."""
    others = [name for name in schedulers(frame) if is_record(name) or name.endswith(SUFFIX)]
    return frame.filter(~frame["scheduler"].is_in([name for name in others if name != baseline]))


def means_of(frame: polars.DataFrame, metric: str) -> dict[str, float]:
    """Scheduler -> mean of a metric over the windows, where it is defined."""
    return {name: i.mean for name, i in intervals(frame, metric).items() if math.isfinite(i.mean)}


def alike(value: float, other: float, metric: str = "") -> bool:
    """Whether two means are the same in a report: less than `ROUNDING` of the larger one apart; shares in points."""
    return abs(value - other) <= ROUNDING * (1.0 if metric in SHARES else max(abs(value), abs(other)))


def tells_apart(frame: polars.DataFrame, metric: str) -> bool:
    """Whether a metric is known and not the same for all schedulers; one scheduler is told by any."""
    means = list(means_of(frame, metric).values())
    return bool(means) and (len(means) < 2 or not alike(min(means), max(means), metric))


def leaders(frame: polars.DataFrame, metric: str, baseline: str) -> list[str]:
    """The schedulers with the best mean: the baseline alone if it is as good, several if they tie, none if all do."""
    means, lower = means_of(frame, metric), METRICS[metric].better == "lower"
    if not tells_apart(frame, metric):
        return []
    top = min(means.values()) if lower else max(means.values())
    best = [name for name, mean in means.items() if alike(mean, top, metric)]
    return [baseline] if baseline in best else best


def best_of(frame: polars.DataFrame, metric: str, baseline: str) -> str:
    """The best scheduler, of several that tie the one whose jobs wait least; the baseline if it is as good."""
    waits, known = means_of(frame, "avg_wait_s"), means_of(frame, metric)
    first = leaders(frame, metric, baseline) or ([baseline] if baseline in known or not known else list(known))
    return min(first, key=lambda name: waits.get(name, math.inf))


def doubt(got: Difference) -> str:
    """Why a difference means little: small, within noise or both; empty if neither."""
    words = ["small"] if abs(got.relative) < SMALL else []
    words += ["within noise"] if got.difference.count > 1 and not got.clear else []
    return " and ".join(words)
