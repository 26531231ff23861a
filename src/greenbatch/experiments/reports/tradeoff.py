"""The trade-off picture: what a scheduler gains against how long jobs wait, with the names at the points."""

# ruff: noqa: RUF001 - typographic dashes and multiplication signs are meant for the reader.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from greenbatch.experiments.reports.answer import OBJECTIVES, WAIT, column_of, objective_of
from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.drawing import PALE, PAPER, Picture, drawing, new_figure, plain_log_ticks
from greenbatch.experiments.reports.labels import Point, write_names
from greenbatch.experiments.reports.looks import Looks, looks_of
from greenbatch.experiments.reports.rivals import means_of
from greenbatch.experiments.reports.tables import STRETCH_LIMIT
from greenbatch.experiments.running.frames import schedulers
from greenbatch.experiments.running.statistics import Interval, intervals
from greenbatch.metrics import METRICS

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

HEIGHT_IN, HIGHER = 2.9, 1.25
"""Height of the picture, and the factor by which it grows until all names have room. [inch]"""
LOGARITHMIC = 12.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""


def tradeoff_plot(
    frame: polars.DataFrame, baseline: str, *, x: str = WAIT, y: str = "", currency: str = "",
    names: Sequence[str] | None = None, looks: Looks | None = None, marks: Mapping[str, str] | None = None,
    name: str = "tradeoff",
) -> Picture | None:  # fmt: skip
    """Means of two metrics against each other, one point per scheduler with its name; None if none has both.

    A line joins the schedulers that no other beats in both. A point is hollow if its makespan is stretched.

    Args:
        frame: tidy results (window, scheduler, metric, value).
        baseline: the scheduler that makespans are relative to.
        x: metric across; by default the mean wait.
        y: metric upwards; by default the main objective (`answer.objective_of`); the slowdown, or what is known, if
            that is ``x``.
        currency: name of the currency of the site's prices, such as ``EUR``.
        names: the schedulers to show, by default all.
        looks: scheduler -> color and marker, by default `looks_of` all schedulers of the frame.
        marks: scheduler -> a word written behind its name, see `Comparison.marks`.
        name: name of the picture, unique within a page.
    """
    choices = (objective_of(frame), "avg_bounded_slowdown", *OBJECTIVES)
    y = y or next((metric for metric in choices if metric != x and means_of(frame, metric)), WAIT)
    looks = looks_of(schedulers(frame)) if looks is None else looks
    across, up, ratio = (intervals(frame, metric) for metric in (x, y, "makespan_ratio"))
    shown = [each for each in (schedulers(frame) if names is None else names)
             if math.isfinite(across[each].mean) and math.isfinite(up[each].mean)]  # fmt: skip
    if not shown:
        return None
    columns = column_of(x, frame, currency), column_of(y, frame, currency)
    points = {each: (columns[0].scale * across[each].mean, columns[1].scale * up[each].mean) for each in shown}
    spans = {each: _spans(points[each], across[each], up[each], columns) for each in shown}
    stretched = {each for each in shown if ratio[each].mean > STRETCH_LIMIT}
    with drawing():
        height = HEIGHT_IN
        while True:
            figure, axes = new_figure(height)
            for each in shown:
                for line in spans[each]:
                    axes.plot(*zip(*line, strict=True), color=looks[each].color, linewidth=0.9, alpha=0.5)
                _point(axes, points[each], looks[each], hollow=each in stretched)
            front = _front(points, (METRICS[x].better, METRICS[y].better))
            axes.plot(*zip(*front, strict=True), color=PALE, linewidth=1.2, zorder=1)
            for k, dimension in enumerate("xy"):
                set_scale(axes, dimension, [point[k] for point in points.values()])
            axes.margins(0.14)
            axes.set(xlabel=axis_label(columns[0], axes.get_xscale()), ylabel=axis_label(columns[1], axes.get_yscale()))
            lines = [line for each in spans.values() for line in each] + list(pairwise(front))
            if write_names(axes, points, lines, marks=marks or {}):
                break
            height *= HIGHER
    return Picture(
        name, f"{columns[1].header} against {columns[0].header[0].lower()}{columns[0].header[1:]}",
        _caption(frame, (x, y), baseline, stretched=bool(stretched), several=max(i.count for i in across.values()) > 1),
        _alt(columns, {each: (across[each].mean, up[each].mean, ratio[each].mean) for each in shown}), figure,
    )  # fmt: skip


def _spans(
    at: Point, across: Interval, up: Interval, columns: tuple[Column, Column]
) -> list[tuple[Point, Point]]:  # fmt: skip
    """The intervals of a point as lines."""
    found: list[tuple[Point, Point]] = []
    if across.low < across.high:
        found.append(((across.low * columns[0].scale, at[1]), (across.high * columns[0].scale, at[1])))
    if up.low < up.high:
        found.append(((at[0], up.low * columns[1].scale), (at[0], up.high * columns[1].scale)))
    return found


def _point(axes: Axes, at: Point, look: Any, *, hollow: bool) -> None:
    axes.scatter(
        *at, s=38, marker=look.marker, edgecolors=look.color, linewidths=1.3,
        facecolors=PAPER if hollow else look.color, zorder=4,
    )  # fmt: skip


def _front(points: Mapping[str, Point], better: tuple[str, str]) -> list[Point]:
    """The points that no other beats in both, from left to right."""
    signs = [-1.0 if each == "higher" else 1.0 for each in better]
    found: list[Point] = []
    lowest = math.inf
    for point in sorted(points.values(), key=lambda p: (signs[0] * p[0], signs[1] * p[1])):
        if signs[1] * point[1] < lowest:
            lowest = signs[1] * point[1]
            found.append(point)
    return found


def set_scale(axes: Axes, dimension: str, values: Sequence[float]) -> None:
    """Make an axis (``x`` or ``y``) logarithmic if its values are positive and far apart."""
    if min(values) > 0 and max(values) / min(values) > LOGARITHMIC:
        (axes.set_xscale if dimension == "x" else axes.set_yscale)("log")
        plain_log_ticks(axes, dimension=dimension)


def axis_label(column: Column, scale: str) -> str:
    """Label of an axis: name, unit, and whether it is logarithmic."""
    unit = f" [{column.unit}]" if column.unit else ""
    return f"{column.header}{unit}{' (log scale)' if scale == 'log' else ''}"


def _caption(
    frame: polars.DataFrame, metrics: tuple[str, str], baseline: str, *, stretched: bool, several: bool
) -> str:  # fmt: skip
    way = " and ".join(
        (words[1] if METRICS[metric].better == "higher" else words[0])
        for metric, words in zip(reversed(metrics), (("down", "up"), ("to the left", "to the right")), strict=True)
    )
    told = [f"{way[0].upper()}{way[1:]} is better; the line joins what nothing beats in both."]
    if stretched:
        told.append(f"Hollow: makespan more than {STRETCH_LIMIT - 1:.0%} above {baseline}.")
    if several:
        sample = "windows, for agents over seeds and windows" if "seed" in frame.columns else "windows"
        told.append(f"Thin lines: 95% intervals over the {sample}.")
    return " ".join(told)


def _alt(columns: tuple[Column, Column], shown: Mapping[str, tuple[float, float, float]]) -> str:
    units = [f" {column.unit}" if column.unit else "" for column in columns]
    words = "; ".join(
        f"{name} {columns[1].number(up)}{units[1]} at {columns[0].number(across)}{units[0]}"
        + (f", makespan ×{ratio:.2f}" if math.isfinite(ratio) else "")
        for name, (across, up, ratio) in shown.items()
    )
    return f"Scatter plot of {columns[1].header.lower()} against {columns[0].header.lower()}: {words}."
