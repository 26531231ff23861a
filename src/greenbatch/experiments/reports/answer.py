"""The answer of a comparison: one sentence that names the trade, and four figures, for the top of a report.

The main objective is the first of `OBJECTIVES` that the results tell apart: money, carbon, energy from the grid, energy
or slowdown. What it costs is waiting.
"""

# ruff: noqa: RUF001 - typographic signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.columns import (
    DETAIL,
    LONGEST_WAIT,
    MAIN,
    PAID,
    VALUED,
    WITHOUT_SUPPLY,
    Column,
    fitted,
    main_columns,
)
from greenbatch.experiments.reports.rivals import alike, best_of, doubt, leaders, means_of, rivals, tells_apart
from greenbatch.experiments.reports.tables import STRETCH_LIMIT
from greenbatch.experiments.running.frames import computed_once
from greenbatch.experiments.running.statistics import FEW_WINDOWS, Difference, Interval, differences, intervals

if TYPE_CHECKING:
    import polars

BROWN, COST, CARBON, WAIT = "horizon_brown_kwh", "horizon_cost", "horizon_carbon_kg", "avg_wait_s"
OBJECTIVES: Mapping[str, tuple[str, str]] = {
    COST: ("costs", "less"),
    CARBON: ("emits", "less CO₂"),
    BROWN: ("draws", "less from the grid"),
    "energy_kwh": ("uses", "less energy"),
    "avg_bounded_slowdown": ("has", "less bounded slowdown"),
    WAIT: ("lets jobs wait", "less"),
}
"""Metric, lower is better -> verb, and what follows the size of a gain."""
OVER_HORIZON = frozenset({COST, CARBON, BROWN})
"""Figures over the horizon, which are too low for those who leave work."""
TILES: Mapping[str, str] = {
    "total_job_value": "Highest value of jobs",
    COST: "Lowest cost",
    CARBON: "Lowest carbon",
    "renewable_utilization": "Largest renewable share",
    BROWN: "Least brown energy",
    "avg_bounded_slowdown": "Lowest bounded slowdown",
    "energy_kwh": "Least energy",
    "edp_js": "Lowest energy-delay product",
    "makespan_ratio": "Shortest makespan",
    LONGEST_WAIT.metric: "Shortest longest wait",
}
"""Metric -> label of its tile; the first three that the results have are shown, and the wait."""
UNFINISHED = 0.05
"""Share of work left at the horizon above which a scheduler cannot win."""
ALIKE = 0.01
"""Relative spread of means below which an energy is no objective: all schedulers need the same."""
_COLUMNS = {column.metric: column for column in (*DETAIL, *VALUED, *WITHOUT_SUPPLY, *MAIN, *PAID, LONGEST_WAIT)}


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A tile at the top of a report: one figure, whose it is, and what it means."""

    label: str
    value: str
    unit: str = ""
    scheduler: str = ""
    """Whose figure it is, shown with its color; empty for none."""
    comment: str = ""
    """A few words, such as the difference to the baseline."""


def column_of(metric: str, frame: polars.DataFrame, currency: str = "") -> Column:
    """How a metric is shown, in a unit that fits the values of a frame: as in the main table where it stands there."""
    shown = (column for column in main_columns(frame, currency) if column.metric == metric)
    return next(shown, None) or fitted(_COLUMNS[metric], frame, currency)


def objective_of(frame: polars.DataFrame) -> str:
    """The main objective: the first of `OBJECTIVES` that schedulers differ in, energy only if they do clearly."""
    for metric in OBJECTIVES:
        means = means_of(frame, metric).values()
        apart = len(means) > 0 and max(means) - min(means) > ALIKE * max(map(abs, means))
        if tells_apart(frame, metric) and (apart or metric != "energy_kwh"):
            return metric
    return WAIT


def trade_sentence(frame: polars.DataFrame, baseline: str, currency: str = "", objective: str = "") -> str:
    """One sentence that names the trade: the best scheduler, by how much it is better, and how much longer jobs wait.

    Gains count as such if their interval over at least `FEW_WINDOWS` windows excludes zero; over fewer, the sentence
    says that no interval can be given.

    Args:
        frame: tidy results (window, scheduler, metric, value).
        baseline: what the schedulers are compared with.
        currency: name of the currency of the site's prices, such as ``EUR``.
        objective: one of `OBJECTIVES`; by default `objective_of` the frame.
    """
    frame = finishing(rivals(frame, baseline), baseline)
    metric = objective or objective_of(frame)
    if (why := unfinished_baseline(frame, baseline)) and metric in OVER_HORIZON:
        return why
    column, (verb, less) = column_of(metric, frame, currency), OBJECTIVES[metric]
    found = differences(frame, metric, baseline)
    means, waits = means_of(frame, metric), means_of(frame, WAIT)
    less_of = {
        name: got for name, got in found.items()
        if got.difference.mean < 0 and not alike(means.get(name, math.nan), means.get(baseline, math.nan))
    }  # fmt: skip
    gains = {name: got for name, got in less_of.items() if _counts(got)}

    def most(names: Iterable[str]) -> str:
        """The one with the least; of several that tie, the one whose jobs wait least."""
        lowest = min(means[name] for name in names)
        return min((name for name in names if alike(means[name], lowest)), key=lambda name: waits.get(name, math.inf))

    def subject(best: str, verb: str) -> str:
        """Whose figure it is, with all whose waits tie too: ties have no winner."""
        wait = waits.get(best, 0.0)
        same = [name for name in less_of if alike(means[name], means[best]) and alike(waits.get(name, 0.0), wait)]
        if len(same) < 2:
            return f"{best} {verb}"
        others = f"{', '.join(same[:2])} and {len(same) - 2} more" if len(same) > 2 else " and ".join(same)
        return f"{others} tie: each {verb}"

    if gains:
        best = most(gains)
        wait = "" if metric == WAIT else f"; {_wait(frame, best, baseline)}"
        size, trust = _size(column, gains[best]), _trust(column, gains[best])
        return f"{subject(best, verb)} {size} {less} than {baseline} ({trust}){wait}."
    lead = f"No scheduler {'clearly ' if _several(found) else ''}{verb} {less} than {baseline}"
    if not less_of:
        return f"{lead}, {_shown(column, means.get(baseline, math.nan))}."
    best = most(less_of)
    wait = "" if metric == WAIT else f"; {_wait(frame, best, baseline)}"
    return (
        f"{lead}: {subject(best, 'is')} lowest, by {_size(column, found[best])}, which is within noise "
        f"({_trust(column, found[best])}){wait}."
    )


def key_figures(frame: polars.DataFrame, baseline: str, currency: str = "") -> list[KeyFigure]:
    """Up to four tiles: the best scheduler for each of the first three of `TILES` that tell the schedulers apart, and
    the shortest wait. A figure that is best for several has no winner.
    """
    tiles, frame = [], finishing(rivals(frame, baseline), baseline)
    hidden = OVER_HORIZON if unfinished_baseline(frame, baseline) else frozenset()
    known = [metric for metric in TILES if metric not in hidden and tells_apart(frame, metric)][:3]
    for metric, label in (*((metric, TILES[metric]) for metric in known), (WAIT, "Shortest mean wait")):
        means, first = means_of(frame, metric), leaders(frame, metric, baseline)
        if not first:
            continue
        column, best = column_of(metric, frame, currency), best_of(frame, metric, baseline)
        comment = ""
        if best != baseline:
            comment = _beside(column, differences(frame, metric, baseline)[best])
            stretch = intervals(frame, "makespan_ratio")[best].mean
            if metric == "renewable_utilization" and stretch > STRETCH_LIMIT:
                comment += f", over {stretch:.2f} times the makespan"
        unit = f"{column.unit} CO₂" if metric == CARBON else column.unit
        if len(first) > 1:
            tie = f"{len(first)} schedulers tie" if len(first) > 2 else " and ".join(first)
            best, comment = "", ", ".join(filter(None, (tie, comment.partition(", better in")[0])))
        tiles.append(KeyFigure(label, column.number(means[first[0]]), unit, best, comment))
    return tiles


@computed_once
def finishing(frame: polars.DataFrame, baseline: str) -> polars.DataFrame:
    """The schedulers that do nearly all work until the horizon, or no less than the baseline.

    Figures over the horizon are low if work is left: a scheduler that leaves more than `UNFINISHED` cannot win, unless
    the baseline leaves as much; see `unfinished_baseline` for what can be compared then.
    """
    return frame.filter(~frame["scheduler"].is_in(_late(frame, baseline)))


def _late(frame: polars.DataFrame, baseline: str) -> list[str]:
    """The schedulers that leave too much work to win."""
    left = _left(frame)
    return [name for name, share in left.items() if share > max(UNFINISHED, left.get(baseline, 0.0))]


def unfinished_baseline(frame: polars.DataFrame, baseline: str) -> str:
    """Why no savings can be stated: the baseline leaves more than `UNFINISHED`; empty if it does not."""
    share = _left(frame).get(baseline, 0.0)
    if share <= UNFINISHED:
        return ""
    return (
        f"No savings are stated: {baseline} leaves {_percent(share)} of its work unfinished when the horizon ends, so "
        "that its figures are too low to compare with; set a longer evaluation.horizon, or supply that lasts as long."
    )


def unfinished_note(frame: polars.DataFrame, baseline: str) -> str:
    """A line on work that is left when the horizon ends, and on those who cannot win for it; empty if all is done."""
    frame = rivals(frame, baseline)
    left, late = _left(frame), _late(frame, baseline)
    if not left:
        return ""
    told = [f"{name} {_percent(share)}" + (", left out above" if name in late else "") for name, share in left.items()]
    return f"Work unfinished when the horizon ends, so that figures over it are too low: {'; '.join(told)}."


def _left(frame: polars.DataFrame) -> dict[str, float]:
    """Scheduler -> share of its work that is unfinished at the horizon, where it is not 0."""
    return {name: share for name, share in means_of(frame, "horizon_unfinished_share").items() if share > 0}


def _several(found: Mapping[str, Difference]) -> bool:
    return max((got.difference.count for got in found.values()), default=0) >= FEW_WINDOWS


def _counts(got: Difference) -> bool:
    """Whether a difference is a finding: its interval excludes zero, if there are enough windows for one."""
    return got.clear or got.difference.count < FEW_WINDOWS


def _size(column: Column, got: Difference) -> str:
    """How large a difference is: in percent of the baseline if that is positive, else in the unit."""
    if math.isfinite(got.relative) and got.relative * got.difference.mean > 0:
        return _percent(abs(got.relative))
    return _shown(column, abs(got.difference.mean))


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.1 else 1}f}%"


def _trust(column: Column, got: Difference) -> str:
    """The interval of a difference in the form of `_size`, or why there is none."""
    interval = got.difference
    if interval.count < 2:
        return "one window, so no interval"
    if interval.count < FEW_WINDOWS:
        return f"better in {got.better} of {interval.count} windows, too few for an interval"
    ends = sorted((-interval.low, -interval.high))
    if math.isfinite(got.relative) and got.relative * interval.mean > 0:
        level = abs(interval.mean / got.relative)
        low, high = (f"{100 * end / level:.{0 if abs(got.relative) >= 0.1 else 1}f}".replace("-", "−") for end in ends)
        return f"95% interval {low} to {high}%"
    return f"95% interval {column.number(ends[0])} to {_shown(column, ends[1])}"


def _wait(frame: polars.DataFrame, name: str, baseline: str) -> str:
    """How much longer jobs wait than under the baseline, as a clause."""
    column = column_of(WAIT, frame)
    got = differences(frame, WAIT, baseline)[name]
    waits = means_of(frame, WAIT)
    if not got.difference.count:
        return "its waits are not known"
    if got.difference.count >= FEW_WINDOWS and not got.clear:
        return (
            f"its jobs wait about as long, {_shown(column, waits[name])} on average ({_ends(column, got.difference)})"
        )
    if column.number(got.difference.mean).strip("−") == column.number(0.0):
        return f"its jobs wait as long, {_shown(column, waits[name])} on average"
    way = "longer" if got.difference.mean > 0 else "less"
    sign = 1 if way == "longer" else -1
    told = f" ({_ends(column, got.difference, sign)})" if got.difference.count >= FEW_WINDOWS else ""
    return (
        f"its jobs wait {_shown(column, abs(got.difference.mean))} {way} on average{told}, "
        f"{_shown(column, waits[name])} instead of {_shown(column, waits[baseline])}"
    )


def _ends(column: Column, interval: Interval, sign: int = 1) -> str:
    """The ends of an interval of differences."""
    low, high = sorted((sign * interval.low, sign * interval.high))
    return f"{column.number(low)} to {_shown(column, high)}"


def _beside(column: Column, got: Difference) -> str:
    """The difference to the baseline in a few words."""
    interval = got.difference
    if not interval.count:
        return ""
    way = "above" if interval.mean > 0 else "below"
    if column.unit == "%":
        size = f"{column.number(abs(interval.mean))} points"
    elif math.isfinite(got.relative) and got.relative * interval.mean > 0:
        size = _percent(abs(got.relative))
    else:
        size = _shown(column, abs(interval.mean))
    wins = f", better in {got.better} of {interval.count}" if interval.count > 1 else ""
    unsure = doubt(got)
    return f"{size} {way} the baseline{wins}" + (f" ({unsure})" if unsure else "")


def _shown(column: Column, value: float) -> str:
    unit = {"": "", "%": "%", "×": "×"}.get(column.unit, f" {column.unit}")
    return column.number(value) + unit
