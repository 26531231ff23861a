"""How far our figures agree with the published ones: a sentence, four tiles and a picture for the top of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from greenbatch.experiments.papers.reproduce import name_of, summary
from greenbatch.experiments.reports.answer import KeyFigure
from greenbatch.experiments.reports.drawing import (
    PALE,
    Picture,
    color_of,
    drawing,
    marker_of,
    new_figure,
    plain_log_ticks,
)
from greenbatch.experiments.reports.first_screen import FirstScreen
from greenbatch.experiments.reports.labels import write_names

Cells = Sequence[Mapping[str, Any]]
NAMED = 5
"""Cells that are named in the picture: those that deviate most."""
VISIBLE = 0.005
"""Relative deviation from which a cell is named."""


def agreement(cells: Cells, labels: Mapping[str, str]) -> FirstScreen:
    """The first screen of a reproduction.

    Args:
        cells: cells of the paper's tables, see `cells.reproduction_tables`.
        labels: metric -> its name in words.
    """
    told, found = summary(cells), _deviations(cells)
    computed = sum(_number(cell["ours"]) is not None for cell in cells)
    tiles = [
        KeyFigure("Equal to every printed digit", f"{told['equal']:,}", f"of {told['computed']:,}"),
        KeyFigure("Figures computed", f"{computed:,}", f"of {len(cells):,}"),
    ]
    if found:
        most = max(found, key=lambda pair: abs(pair[1]))
        middle = float(np.median([abs(deviation) for _, deviation in found]))
        tiles += [
            KeyFigure("Median deviation", f"{100 * middle:.2g}", "%", "", f"of {len(found):,} published figures"),
            KeyFigure("Largest deviation", f"{100 * abs(most[1]):.2g}", "%", "", _told(most[0], labels)),
        ]
    return FirstScreen(told["text"], tiles, agreement_plot(cells, labels))


def agreement_plot(cells: Cells, labels: Mapping[str, str]) -> Picture | None:
    """Our figures against the published ones, both axes logarithmic; None without a positive pair.

    Args:
        cells: cells of the paper's tables.
        labels: metric -> its name in words.
    """
    pairs = [(cell, deviation) for cell, deviation in _deviations(cells) if cell["ours"] > 0 and cell["published"] > 0]
    if not pairs:
        return None
    metrics = list(dict.fromkeys(str(cell["metric"]) for cell, _ in pairs))
    with drawing():
        figure, axes = new_figure(3.0)
        for k, metric in enumerate(metrics):
            shown = [cell for cell, _ in pairs if str(cell["metric"]) == metric]
            axes.plot(
                [cell["published"] for cell in shown], [cell["ours"] for cell in shown], marker_of(k), markersize=4.5,
                fillstyle="none", color=color_of(k), label=labels[metric],
            )  # fmt: skip
        values = [float(cell[key]) for cell, _ in pairs for key in ("published", "ours")]
        ends = [min(values) / 1.5, max(values) * 1.5]
        axes.plot(ends, ends, color=PALE, linewidth=1.2, zorder=1)
        axes.set(
            xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="published (log scale)", ylabel="ours (log scale)"
        )
        for dimension in "xy":
            plain_log_ticks(axes, dimension=dimension)
        figure.legend(loc="outside upper left", ncols=2)
        far = sorted(pairs, key=lambda pair: -abs(pair[1]))[:NAMED]
        points = {_told(cell, labels, short=True): (float(cell["published"]), float(cell["ours"]))
                  for cell, deviation in far if abs(deviation) > VISIBLE}  # fmt: skip
        every = [(float(cell["published"]), float(cell["ours"])) for cell, _ in pairs]
        write_names(axes, points, [(at, at) for at in every])
    caption = "On the line, both are equal." + (" Named: what deviates most." if points else "")
    alt = f"Scatter plot of {len(pairs):,} figures, ours against those published. {summary(cells)['text']}"
    return Picture("agreement", "Ours against published", caption, alt, figure)


def _deviations(cells: Cells) -> list[tuple[Mapping[str, Any], float]]:
    """The cells with both figures, and ours relative to the published one, minus 1."""
    found = []
    for cell in cells:
        theirs, ours = (_number(cell[key]) for key in ("published", "ours"))
        if theirs and ours is not None:
            rounded = round(ours, digits) if isinstance(digits := cell.get("digits"), int) else ours
            found.append((cell, rounded / theirs - 1))
    return found


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _told(cell: Mapping[str, Any], labels: Mapping[str, str], *, short: bool = False) -> str:
    """Which figure a cell holds."""
    what = [str(cell.get("trace") or ""), name_of(cell), *([] if short else [labels[str(cell["metric"])]])]
    return ", ".join(filter(None, what))
