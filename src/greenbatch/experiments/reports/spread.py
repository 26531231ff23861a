"""How figures vary over the windows: box plots with the names above the boxes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.experiments.reports.columns import Column
from greenbatch.experiments.reports.drawing import (
    INK,
    PANEL_IN,
    Picture,
    drawing,
    new_figure,
    plain_log_ticks,
    slug,
    wrapped,
)
from greenbatch.experiments.reports.looks import Looks, looks_of
from greenbatch.experiments.running.frames import by_window, schedulers

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

READING = "Box: quartiles; whiskers: extremes; line: median; diamond: mean; dots: single windows."
ROW_IN, LINE_IN = 0.16, 0.14
"""Height of a box, and of a line of its name. [inch]"""
_NAME = 38
"""Characters of a line of a name."""


def box_plot(frame: polars.DataFrame, column: Column, *, looks: Looks | None = None) -> Picture | None:
    """One metric over the windows: box of quartiles, whiskers to the extremes, mean, and each window as a dot.

    None with fewer than two windows or if the metric is not defined.

    Args:
        frame: tidy results.
        column: the metric and its unit.
        looks: scheduler -> color; by default `looks_of` all schedulers of the frame.

    Source of the form: GAS-MARL Figs. 4 and 5.
    """
    names = schedulers(frame)
    looks = looks_of(names) if looks is None else looks
    values = {name: np.array(list(by_window(frame, name, column.metric).values())) * column.scale for name in names}
    values = {name: v[np.isfinite(v)] for name, v in values.items()}
    if max(len(v) for v in values.values()) < 2:
        return None
    data = np.concatenate(list(values.values()))
    labels = {name: wrapped(name, _NAME) for name in names}
    heights = np.array([ROW_IN + LINE_IN * (1 + label.count("\n")) for label in labels.values()])
    with drawing():
        figure, axes = new_figure(0.5 + float(heights.sum()), PANEL_IN)
        tops = np.append(0.0, -np.cumsum(heights))
        for k, (name, v) in enumerate(values.items()):
            axes.text(
                0.0,
                tops[k],
                labels[name],
                transform=axes.get_yaxis_transform(),
                va="top",
                fontsize=7.5,
                linespacing=1.0,
            )
            if v.size:
                _box(axes, v, tops[k + 1] + ROW_IN / 2, looks[name].color)
        axes.set_yticks([])
        axes.set_ylim(tops[-1] - 0.02, 0.02)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        logarithmic = data.size > 0 and data.min() > 0 and data.max() / data.min() > 12
        if logarithmic:
            axes.set_xscale("log")
            plain_log_ticks(axes)
        unit = f" [{column.unit}]" if column.unit else ""
        axes.set_xlabel(f"{column.header}{unit}{' (log scale)' if logarithmic else ''}", loc="right")
        medians = "; ".join(f"{name} {np.median(v):.4g}" for name, v in values.items() if v.size)
        alt = f"Box plots over windows of {column.header.lower()}{unit}. Medians: {medians}."
        return Picture(f"box-{slug(column.metric)}", column.header, READING, alt, figure)


def _box(axes: Axes, values: Floats, at: float, color: str) -> None:
    line = {"color": color, "linewidth": 1.0}
    axes.boxplot(
        values, positions=[at], orientation="horizontal", widths=0.7 * ROW_IN, whis=(0, 100), showmeans=True,
        manage_ticks=False, showcaps=False, patch_artist=True, whiskerprops=line,
        medianprops={"color": INK, "linewidth": 1.2}, boxprops={"facecolor": color + "55", "edgecolor": color},
        meanprops={"marker": "D", "markerfacecolor": INK, "markeredgecolor": INK, "markersize": 2.5},
    )  # fmt: skip
    spread = at + 0.6 * ROW_IN * (((np.arange(values.size) * 0.618034) % 1.0) - 0.5)
    axes.plot(values, spread, ".", markersize=3.5, color=INK, alpha=0.55, markeredgewidth=0)


def box_plots(frame: polars.DataFrame, columns: Iterable[Column], *, looks: Looks | None = None) -> list[Picture]:
    """Box plots of some metrics, those that are defined."""
    drawn = (box_plot(frame, column, looks=looks) for column in columns)
    return [picture for picture in drawn if picture is not None]
