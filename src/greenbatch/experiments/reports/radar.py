"""Radar plots: several metrics of several schedulers at once, each normalized, better outward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from greenbatch.experiments.reports.answer import column_of
from greenbatch.experiments.reports.drawing import WIDTH_IN, Picture, drawing, empty_figure, legend_room, wrapped
from greenbatch.experiments.reports.looks import Looks, looks_of
from greenbatch.experiments.reports.rivals import means_of
from greenbatch.experiments.running.frames import schedulers
from greenbatch.metrics import METRICS

if TYPE_CHECKING:
    import polars

RADAR = ("horizon_cost", "horizon_carbon_kg", "horizon_brown_kwh", "renewable_utilization", "avg_wait_s", "max_wait_s",
         "avg_bounded_slowdown", "makespan_ratio", "energy_kwh")  # fmt: skip
"""Metrics that are shown by default, where they are known and differ; at most `MOST`, energy only without a supply."""
MOST, LEAST = 8, 3
HEIGHT_IN, ACROSS_IN = 3.0, 2.0
"""Height of the picture without its legend, and diameter of the outer circle. [inch]"""
LETTERS = 15
"""Characters of a line at an axis."""
INNER = 0.2
"""Radius of the worst value; the best has 1."""


def radar_metrics(frame: polars.DataFrame) -> list[str]:
    """Those of `RADAR` that a frame has, with means that differ."""
    means = {metric: list(means_of(frame, metric).values()) for metric in RADAR}
    known = [metric for metric, values in means.items() if values and max(values) > min(values)]
    return [metric for metric in known if metric != "energy_kwh" or "horizon_brown_kwh" not in known][:MOST]


def radar_plot(
    frame: polars.DataFrame, *, metrics: Sequence[str] | None = None, names: Sequence[str] | None = None,
    looks: Looks | None = None, currency: str = "", legend: bool = True, name: str = "radar",
) -> Picture | None:  # fmt: skip
    """One polygon per scheduler over the means of some metrics; None with fewer than three metrics that differ.

    Each axis runs from the worst mean of the schedulers shown (inner circle) to the best (outer circle), whichever
    direction is better; its ends are written at it. Areas mean nothing: they depend on the order of the axes.

    Args:
        frame: tidy results (window, scheduler, metric, value).
        metrics: names of metrics with a better direction; by default `radar_metrics`.
        names: the schedulers to show, by default all; those without a value of some metric are left out.
        looks: scheduler -> color and dash, by default `looks_of` all schedulers of the frame.
        currency: name of the currency of the site's prices, such as ``EUR``.
        legend: draw a legend; a page may have one for several pictures.
        name: name of the picture, unique within a page.

    Source of the form: the radar plots of papers on multi-criteria scheduling.
    """
    looks = looks_of(schedulers(frame)) if looks is None else looks
    frame = frame.filter(frame["scheduler"].is_in(schedulers(frame) if names is None else list(names)))
    means = {metric: means_of(frame, metric) for metric in (radar_metrics(frame) if metrics is None else metrics)}
    shown = [each for each in schedulers(frame) if all(each in values for values in means.values())]
    ends = {metric: _ends(metric, [values[each] for each in shown]) for metric, values in means.items() if shown}
    ends = {metric: (worst, best) for metric, (worst, best) in ends.items() if worst != best}
    if len(ends) < LEAST:
        return None
    angles = 2 * np.pi * np.arange(len(ends)) / len(ends)
    columns, room = legend_room(shown) if legend else (1, 0.0)
    with drawing():
        figure = empty_figure(HEIGHT_IN + room, WIDTH_IN)
        figure.set_layout_engine("none")
        axes = figure.add_axes(
            ((WIDTH_IN - ACROSS_IN) / 2 / WIDTH_IN, (room + (HEIGHT_IN - ACROSS_IN) / 2) / (HEIGHT_IN + room),
             ACROSS_IN / WIDTH_IN, ACROSS_IN / (HEIGHT_IN + room)),
            projection="polar", theta_offset=np.pi / 2, theta_direction=-1,
        )  # fmt: skip
        for each in shown:
            radii = [_radius(means[metric][each], *pair) for metric, pair in ends.items()]
            axes.plot(
                np.append(angles, angles[0]), np.append(radii, radii[0]), color=looks[each].color, linewidth=1.1,
                linestyle=looks[each].dash, marker=looks[each].marker, markersize=3, label=wrapped(each, 40),
            )  # fmt: skip
        axes.set(ylim=(0, 1.02), yticks=[INNER, 1.0], yticklabels=[])
        axes.set_xticks(angles, [_axis(metric, frame, currency, *pair) for metric, pair in ends.items()])
        axes.tick_params(pad=1)
        for angle, text in zip(angles, axes.get_xticklabels(), strict=True):
            side = round(math.sin(angle), 6)
            text.set_horizontalalignment("left" if side > 0 else "right" if side < 0 else "center")
        axes.spines["polar"].set_visible(False)
        if legend:
            figure.legend(loc="lower left", ncols=columns)
        over = "Means over the windows. " if frame["window"].n_unique() > 1 else ""
        caption = (
            f"{over}Each axis runs from the worst of these schedulers (inner circle) to the best (outer circle); its "
            "ends are written at it. Areas mean nothing."
        )
        alt = "Radar plot, best values outside. " + "; ".join(
            f"{column_of(metric, frame, currency).header}: best {_best_name(means[metric], best)}"
            for metric, (_, best) in ends.items()
        )
        return Picture(name, "All objectives at once", caption, f"{alt}.", figure)


def _ends(metric: str, values: Sequence[float]) -> tuple[float, float]:
    """The worst and the best of some values."""
    low, high = min(values), max(values)
    return (low, high) if METRICS[metric].better == "higher" else (high, low)


def _radius(value: float, worst: float, best: float) -> float:
    return INNER + (1 - INNER) * (value - worst) / (best - worst)


def _best_name(means: dict[str, float], best: float) -> str:
    return next(name for name, value in means.items() if value == best)


def _axis(metric: str, frame: polars.DataFrame, currency: str, worst: float, best: float) -> str:
    """Name and unit of an axis, with its ends from the inside out, in short lines."""
    column = column_of(metric, frame, currency)
    name = f"{column.short or column.header}{f' [{column.unit}]' if column.unit else ''}"
    ends = f"{column.number(worst)} to {column.number(best)}"
    return "\n".join(line for text in (name, ends) for line in wrap(text, LETTERS, break_long_words=False))
