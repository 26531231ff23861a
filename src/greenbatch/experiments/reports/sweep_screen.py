"""The first screen of a sweep: the best value and scheduler, four tiles, and the path of every scheduler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.answer import (
    WAIT,
    column_of,
    key_figures,
    objective_of,
    trade_sentence,
    unfinished_note,
)
from greenbatch.experiments.reports.drawing import PAPER, Picture, drawing, new_figure
from greenbatch.experiments.reports.first_screen import FirstScreen, first_screen
from greenbatch.experiments.reports.labels import write_names
from greenbatch.experiments.reports.looks import Look, Looks
from greenbatch.experiments.reports.notes import left_out_words
from greenbatch.experiments.reports.payback import payback_words
from greenbatch.experiments.reports.tradeoff import HEIGHT_IN, HIGHER, axis_label, set_scale
from greenbatch.experiments.running.model_warnings import marked
from greenbatch.experiments.running.statistics import intervals

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

    from greenbatch.experiments.running.sweep import Sweep

ALIKE = 1e-6
"""Relative difference below which horizons are the same length."""


def ordered(sweep: Sweep) -> list[str]:
    """The texts of the values, numbers in their order."""
    texts, setting = list(sweep.comparisons), sweep.setting
    return sorted(texts, key=lambda text: float(setting.values[text])) if setting.numeric else texts


def at_value(sweep: Sweep, scheduler: str, text: str) -> str:
    """Name of a scheduler at a value, such as ``fcfs+easy at capacity_kwh = 30``."""
    return f"{scheduler} at {sweep.setting.key.rpartition('.')[2]} = {text}"


def joined(sweep: Sweep) -> polars.DataFrame:
    """A tidy frame of all schedulers at all values, each pair with a name of its own."""
    import polars

    parts = []
    for text in ordered(sweep):
        frame = sweep.comparisons[text].frame
        names = {name: at_value(sweep, name, text) for name in sweep.schedulers}
        parts.append(frame.with_columns(frame["scheduler"].replace(names)))
    return polars.concat(parts)


def sweep_colors(sweep: Sweep, looks: Looks) -> dict[str, str]:
    """The colors of the schedulers, alone and at every value."""
    pairs = {at_value(sweep, name, text): looks[name].color for name in sweep.schedulers for text in sweep.comparisons}
    return {name: look.color for name, look in looks.items()} | pairs


def sweep_screen(sweep: Sweep, looks: Looks, words: Sequence[str] = ()) -> FirstScreen:
    """The first screen of a sweep.

    Every pair of scheduler and value is compared with the baseline at the first value. If the value changes the length
    of the horizon, totals over it cannot be compared: then the comparison at the last value is told.

    Args:
        sweep: the comparisons.
        looks: scheduler -> color and marker.
        words: the answer in words; the first is the sentence, by default that of `sweep_words`.
    """
    first, sentence = sweep.first, (words or sweep_words(sweep))[0]
    picture = path_plot(sweep, looks)
    if not _comparable(sweep):
        last = sweep.comparisons[ordered(sweep)[-1]]
        told = first_screen(last.frame, last.baseline, currency=last.currency, looks=looks, marks=last.marks)
        return replace(told, sentence=sentence, picture=picture or told.picture)
    frame, baseline = _pairs(sweep)
    return FirstScreen(
        sentence, key_figures(frame, baseline, first.currency), picture, unfinished_note(frame, baseline)
    )


def sweep_words(sweep: Sweep, unit_cost: float | None = None) -> list[str]:
    """The answer of a sweep in words: what is saved in a year and when it has paid, if known; then the best pair, and
    what the scheduler alone does at the last value. It begins with jobs that are left out, if these are many.

    Args:
        sweep: the comparisons.
        unit_cost: what one more unit of the key costs, see `payback.payback_words`.
    """
    text = ordered(sweep)[-1]
    last = sweep.comparisons[text]
    told = marked(last.frame, last.baseline, last.marks)
    best = f"With {sweep.setting.key} = {text}: {trade_sentence(*told, last.currency)}"
    if _comparable(sweep):  # the value and the scheduler together, then the scheduler alone
        best = f"{trade_sentence(*_pairs(sweep), sweep.first.currency)} {best}"
    first, *others = [*payback_words(sweep, unit_cost), best]
    missing = left_out_words(sweep.first.scenario.workload)
    return [f"{missing} {first}".strip(), *others]


def _pairs(sweep: Sweep) -> tuple[polars.DataFrame, str]:
    """A frame of all pairs of scheduler and value, and the baseline among them."""
    return joined(sweep), at_value(sweep, sweep.first.baseline, ordered(sweep)[0])


def _comparable(sweep: Sweep) -> bool:
    """Whether totals at several values can be compared."""
    return len(sweep.comparisons) > 1 and _same_horizons(sweep)


def _same_horizons(sweep: Sweep) -> bool:
    lengths = [intervals(each.frame, "horizon_s")[each.baseline].mean for each in sweep.comparisons.values()]
    known = [length for length in lengths if math.isfinite(length)]
    return not known or max(known) - min(known) <= ALIKE * max(known)


def path_plot(sweep: Sweep, looks: Looks) -> Picture | None:
    """Main objective against mean wait: a line per scheduler from the first value (hollow) to the last (filled).

    None if a scheduler has no figures.
    """
    frame, texts = sweep.frame, ordered(sweep)
    y = next(metric for metric in (objective_of(frame), "avg_bounded_slowdown") if metric != WAIT)
    columns = [column_of(metric, frame, sweep.first.currency) for metric in (WAIT, y)]
    tables = [[intervals(sweep.comparisons[text].frame, column.metric) for text in texts] for column in columns]
    paths = {
        name: list(zip(*([table[name].mean * column.scale for table in of_values]
                         for column, of_values in zip(columns, tables, strict=True)), strict=True))
        for name in sweep.schedulers
    }  # fmt: skip
    paths = {name: path for name, path in paths.items() if all(math.isfinite(v) for point in path for v in point)}
    if not paths:
        return None
    with drawing():
        height = HEIGHT_IN
        while True:
            figure, axes = new_figure(height)
            for name, path in paths.items():
                _path(axes, path, looks[name])
            for k, dimension in enumerate("xy"):
                set_scale(axes, dimension, [point[k] for path in paths.values() for point in path])
            axes.margins(0.14)
            axes.set(xlabel=axis_label(columns[0], axes.get_xscale()), ylabel=axis_label(columns[1], axes.get_yscale()))
            lines = [pair for path in paths.values() for pair in pairwise(path)]
            if write_names(axes, {name: path[-1] for name, path in paths.items()}, lines):
                break
            height *= HIGHER
    title = f"{columns[1].header} against mean wait"
    caption = (
        f"Means over the windows. Each line follows a scheduler from {sweep.setting.key} = {texts[0]} (hollow) to "
        f"{texts[-1]} (filled), where its name is."
    )
    words = "; ".join(
        f"{name} " + ", ".join(f"{y:.4g} at {x:.4g} for {text}" for (x, y), text in zip(path, texts, strict=True))
        for name, path in paths.items()
    )
    return Picture("path", title, caption, f"Line chart of {title.lower()} by {sweep.setting.key}: {words}.", figure)


def _path(axes: Axes, path: list[tuple[float, float]], look: Look) -> None:
    across, up = zip(*path, strict=True)
    axes.plot(across, up, color=look.color, linestyle=look.dash, linewidth=1.0, zorder=2)
    for k, point in enumerate(path):
        axes.scatter(
            *point, s=38 if k in {0, len(path) - 1} else 14, marker=look.marker, edgecolors=look.color, linewidths=1.2,
            facecolors=PAPER if k == 0 and len(path) > 1 else look.color, zorder=4,
        )  # fmt: skip
