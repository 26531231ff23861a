"""The first screen of a sweep: the best pair of scheduler and value, and the path of every scheduler."""

from __future__ import annotations

import pytest

import greenbatch as gb
from greenbatch.experiments.reports.looks import looks_of
from greenbatch.experiments.reports.sweep_screen import at_value, path_plot, sweep_colors, sweep_screen

NAMES = ["fcfs+easy", "f2+green"]


def swept(key: str, values: list[float]) -> gb.Sweep:
    starts = [0, 100, 200, 300, 400]
    return gb.compare("default", NAMES, starts=starts, jobs=30, sweep={key: values}, workers=1)


@pytest.fixture(scope="module")
def sizes() -> gb.Sweep:
    return swept("site.rated_w", [20_000, 1_000, 7_200])


def test_pairs_are_compared_with_the_baseline_at_the_lowest_value(sizes: gb.Sweep) -> None:
    screen = sweep_screen(sizes, looks_of(NAMES))
    assert " at rated_w = 20000 draws " in screen.sentence
    assert "less from the grid than fcfs+easy at rated_w = 1000 (95% interval " in screen.sentence
    _, _, alone = screen.sentence.partition(" With site.rated_w = 20000: ")
    assert alone.startswith("No scheduler clearly draws less from the grid than fcfs+easy"), "the sources did it"
    assert {tile.scheduler.partition(" at ")[0] for tile in screen.tiles} <= {*NAMES, ""}, "a tie has no winner"
    assert screen.tiles[-1].label == "Shortest mean wait"
    colors = sweep_colors(sizes, looks_of(NAMES))
    assert all(tile.scheduler in colors for tile in screen.tiles if tile.scheduler)
    assert colors[at_value(sizes, "f2+green", "7200")] == colors["f2+green"]


def test_paths_go_through_the_means_in_the_order_of_the_values(sizes: gb.Sweep) -> None:
    picture = path_plot(sizes, looks_of(NAMES))
    assert picture is not None
    lines = picture.figure.axes[0].lines
    assert [line.get_color() for line in lines] == [look.color for look in looks_of(NAMES).values()]
    for line, name in zip(lines, NAMES, strict=True):
        for at, text in enumerate(("1000", "7200", "20000")):
            frame = sizes.comparisons[text].frame.filter(scheduler=name)
            wait_s, brown = (frame.filter(metric=m)["value"].mean() for m in ("avg_wait_s", "horizon_brown_kwh"))
            assert line.get_xdata()[at] == pytest.approx(wait_s / 3600)
            assert line.get_ydata()[at] == pytest.approx(brown)
    assert "from site.rated_w = 1000 (hollow) to 20000 (filled)" in picture.caption


def test_totals_over_horizons_that_differ_are_not_compared() -> None:
    sweep = swept("cluster.processors", [256, 512])
    screen = sweep_screen(sweep, looks_of(NAMES))
    assert screen.sentence.startswith("With cluster.processors = 512: ")
    assert {tile.scheduler for tile in screen.tiles} <= set(NAMES)
