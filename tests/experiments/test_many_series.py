"""Pictures of 16 schedulers: every line and point can be told apart, and the legend can be read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from example_windows import fcfs, some_jobs
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from greenbatch.experiments.reports import curves, queue_plots
from greenbatch.experiments.reports.drawing import Picture, color_of, dash_of, marker_of

SHORT = [f"rule-{k}+easy" for k in range(16)]
LONG = [f"gas-marl-plus@runs/seed-{k}/model:makespan_bound=1.25+none" for k in range(16)]


def queue(names: list[str]) -> Picture:
    jobs = some_jobs(1, 40)
    return queue_plots.queue_plot({name: fcfs(jobs, hold_s=3600.0 * k, name=name) for k, name in enumerate(names)})


def training(names: list[str]) -> Picture:
    logs = {name: [[{"epoch": e, "return": e * k} for e in range(1, 30)]] for k, name in enumerate(names)}
    return curves.curve_plots(logs)[0]


def sweep(names: list[str]) -> Picture | None:
    points = {name: [(0.001, 2.0 + k, 0.5), (0.002, 3.0 + k, 0.6)] for k, name in enumerate(names)}
    return curves.sweep_plot(points, "cirne")


def test_sixteen_series_have_styles_of_their_own() -> None:
    assert len({(color_of(k), str(dash_of(k))) for k in range(16)}) == 16, "where lines have no marker"
    assert len({(color_of(k), marker_of(k)) for k in range(16)}) == 16, "where points have no line"


def style(handle: object) -> tuple[str, str, str]:
    """Color, dash and marker of a legend's handle: a line, or the points of a scatter plot."""
    if hasattr(handle, "get_linestyle") and hasattr(handle, "get_marker"):
        return to_hex(handle.get_color()), str(handle._dash_pattern), str(handle.get_marker())
    (color,), (path,) = handle.get_edgecolor(), handle.get_paths()
    return to_hex(color), "", np.round(path.vertices, 3).tobytes().hex()


@pytest.mark.parametrize(
    ("draw", "names"), [(queue, LONG), (training, LONG), (sweep, LONG), (queue, SHORT)],
    ids=["queue-long", "training-long", "sweep-long", "queue-short"],
)  # fmt: skip
def test_sixteen_schedulers_can_be_told_apart_and_read(draw: Callable[[list[str]], Picture], names: list[str]) -> None:
    picture = draw(names)
    figure = picture.figure
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert len({style(handle) for handle in legend.legend_handles}) == 16
    told = [text.get_text().replace("\n", "") for text in legend.get_texts()]
    assert [name for name, text in zip(names, told, strict=True) if not text.startswith(name)] == []
    boxes = [text.get_window_extent() for text in legend.get_texts()]
    width, height = figure.get_size_inches() * figure.dpi
    assert all(0 <= box.x0 < box.x1 <= width and 0 <= box.y0 < box.y1 <= height for box in boxes), "cut off"
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[k + 1 :]), "one name lies on another"
    assert min(axes.get_window_extent().height / figure.dpi for axes in figure.axes) > 1.0
    assert min(text.get_fontsize() for text in legend.get_texts()) >= 7
    assert picture.svg.count("<svg") == 1
