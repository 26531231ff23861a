"""Names written at the points of a picture: none lies on another, on a point or outside the axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.experiments.reports.drawing import INK, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]
"""Left, bottom, right and top. [pt]"""
Point = tuple[float, float]

SIZE_PT = 8.0
"""Size of the names."""
GAP_PT = 6.0
"""Distance of a name from its point."""
NEAR_PT = 11.0
"""Distance above which a line leads from the point to its name."""
STEP_PT = 6.0
"""Step of the search for a free place."""
_DIRECTIONS = (0.0, math.pi, math.pi / 2, -math.pi / 2, math.pi / 4, -math.pi / 4, 3 * math.pi / 4, -3 * math.pi / 4)
_LINE = 6
"""What a name on the line of an interval costs, in points of distance."""


@dataclass
class _Sheet:
    """What is already drawn."""

    frame: Box
    points: NDArray[np.float64]
    """Of all schedulers, shape (n, 2). [pt]"""
    lines: NDArray[np.float64]
    """Along the lines that names should avoid, shape (m, 2). [pt]"""
    boxes: list[Box] = field(default_factory=list)

    def cost(self, box: Box, at: Point) -> float:
        """What a name in a box costs: its distance, and what it covers; infinite if it must not be there."""
        left, bottom, right, top = box
        if left < self.frame[0] or bottom < self.frame[1] or right > self.frame[2] or top > self.frame[3]:
            return math.inf
        if any(left < o[2] and o[0] < right and bottom < o[3] and o[1] < top for o in self.boxes):
            return math.inf
        if _inside(self.points, box, 4.0):
            return math.inf
        return _apart(box, at) + _LINE * _inside(self.lines, box, 0.5) / 2


def _inside(points: NDArray[np.float64], box: Box, margin: float) -> int:
    x, y = points[:, 0], points[:, 1]
    left, bottom, right, top = box
    return int(((x > left - margin) & (x < right + margin) & (y > bottom - margin) & (y < top + margin)).sum())


def _apart(box: Box, at: Point) -> float:
    """Distance of a point from a box. [pt]"""
    across = max(box[0] - at[0], 0.0, at[0] - box[2])
    return math.hypot(across, max(box[1] - at[1], 0.0, at[1] - box[3]))


def _near(at: Point, width: float, height: float) -> Iterator[Box]:
    """Boxes around a point."""
    for reach in (GAP_PT, GAP_PT + 5, GAP_PT + 12):
        for angle in _DIRECTIONS:
            x, y = at[0] + reach * math.cos(angle), at[1] + reach * math.sin(angle)
            across, up = round(math.cos(angle), 6), round(math.sin(angle), 6)
            left = x if across > 0 else x - width if across < 0 else x - width / 2
            bottom = y if up > 0 else y - height if up < 0 else y - height / 2
            yield left, bottom, left + width, bottom + height


def _everywhere(sheet: _Sheet, width: float, height: float) -> Iterator[Box]:
    """Boxes in a grid over the sheet."""
    for bottom in np.arange(sheet.frame[1], sheet.frame[3] - height, STEP_PT).tolist():
        for left in np.arange(sheet.frame[0], sheet.frame[2] - width, STEP_PT).tolist():
            yield left, bottom, left + width, bottom + height


def _best(sheet: _Sheet, at: Point, width: float, height: float) -> Box | None:
    """The box for a name that costs least; those far from the point count only if no near one is free."""
    for boxes in (_near(at, width, height), _everywhere(sheet, width, height)):
        costs = {box: sheet.cost(box, at) for box in boxes}
        best = min(costs, key=costs.__getitem__, default=None)
        if best is not None and math.isfinite(costs[best]):
            return best
    return None


def write_names(
    axes: Axes, points: Mapping[str, Point], lines: Sequence[tuple[Point, Point]] = (), *, width: int = 26,
    marks: Mapping[str, str] | None = None,
) -> bool:  # fmt: skip
    """Write names at points, wrapped at ``width`` characters; the limits of the axes must be final.

    Args:
        axes: a plot with linear or logarithmic axes.
        points: name -> its point in data coordinates.
        lines: ends of lines that names should avoid, in data coordinates.
        width: characters of a line.
        marks: name -> a word to write behind it.

    Returns:
        Whether every name found a place. If not, nothing is written: make the picture higher.
    """
    figure = axes.figure.get_figure(root=True)
    assert figure is not None  # noqa: S101 - axes of a figure have one
    figure.draw_without_rendering()
    scale = 72.0 / figure.dpi

    def in_points(data: Sequence[Point]) -> NDArray[np.float64]:
        return axes.transData.transform(np.asarray(data, dtype=np.float64).reshape(-1, 2)) * scale

    frame = axes.get_window_extent()
    sheet = _Sheet(
        (frame.x0 * scale + 1, frame.y0 * scale + 1, figure.bbox.x1 * scale - 1, frame.y1 * scale),
        in_points(list(points.values())),
        np.concatenate([np.zeros((0, 2)), *(_along(in_points(line)) for line in lines)]),
    )
    words = {name: f"\n({mark})" for name, mark in (marks or {}).items()}
    texts = {name: wrapped(name, width) + words.get(name, "") for name in points}
    placed: dict[str, tuple[Box, Point]] = {}
    crowded = np.hypot(*(sheet.points[:, None] - sheet.points[None]).transpose(2, 0, 1)).sum(axis=1)
    for k in np.argsort(crowded, kind="stable"):
        name, at = list(points)[k], (float(sheet.points[k, 0]), float(sheet.points[k, 1]))
        best = _best(sheet, at, *_size(axes, texts[name]))
        if best is None:
            return False
        placed[name] = best, at
        sheet.boxes.append(best)
        if _apart(best, at) > NEAR_PT:
            sheet.lines = np.concatenate([sheet.lines, _along(np.array([at, _nearest(best, at)]))])
    for name, (box, at) in placed.items():
        _write(axes, texts[name], points[name], box, at)
    return True


def _along(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points along a line, shape (24, 2); ends of shape (2, 2)."""
    return np.asarray(ends[0] + np.linspace(0.0, 1.0, 24)[:, None] * (ends[1] - ends[0]))


def _size(axes: Axes, text: str) -> tuple[float, float]:
    """Width and height of a text. [pt]"""
    written = axes.text(0, 0, text, fontsize=SIZE_PT, transform=None)
    figure = axes.figure.get_figure(root=True)
    extent, scale = written.get_window_extent(), 72.0 / figure.dpi if figure else 1.0
    written.remove()
    return extent.width * scale + 2, extent.height * scale + 1


def _nearest(box: Box, at: Point) -> Point:
    return min(max(at[0], box[0]), box[2]), min(max(at[1], box[1]), box[3])


def _write(axes: Axes, text: str, point: Point, box: Box, at: Point) -> None:
    middle = (box[0] + box[2]) / 2
    align = "left" if box[0] >= at[0] - 1 else "right" if box[2] <= at[0] + 1 else "center"
    x = {"left": box[0] + 1, "right": box[2] - 1, "center": middle}[align]
    offset = (x - at[0], (box[1] + box[3]) / 2 - at[1])
    far = _apart(box, at) > NEAR_PT
    arrow: dict[str, Any] | None = None
    if far:
        end = _nearest(box, at)
        relative = ((end[0] - box[0]) / (box[2] - box[0]), (end[1] - box[1]) / (box[3] - box[1]))
        arrow = {"arrowstyle": "-", "linewidth": 0.5, "color": INK, "shrinkA": 0, "shrinkB": 3, "relpos": relative}
    written = axes.annotate(
        text, point, offset, textcoords="offset points", ha=align, va="center", multialignment=align,
        fontsize=SIZE_PT, arrowprops=arrow, annotation_clip=False, zorder=5,
    )  # fmt: skip
    written.set_in_layout(False)
