"""Trade-off and radar pictures: every name is at its point, none lies on another, and axes say what they show."""

from __future__ import annotations

import numpy as np
import polars
import pytest
from example_windows import example
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from greenbatch.experiments.reports.looks import looks_of
from greenbatch.experiments.reports.radar import INNER, radar_plot
from greenbatch.experiments.reports.tradeoff import tradeoff_plot
from greenbatch.experiments.running.frames import tidy

LONG = [f"gas-marl-plus@runs/seed-{k}/model:makespan_bound=1.25+none" for k in range(16)]


def frame_of(points: dict[str, tuple[float, float]], **more: float) -> polars.DataFrame:
    rows = {
        name: {"avg_wait_s": 3600 * wait, "horizon_brown_kwh": brown, "makespan_ratio": 1.0,
               **{metric: value * (1 + k) for metric, value in more.items()}}
        for k, (name, (wait, brown)) in enumerate(points.items())
    }  # fmt: skip
    return tidy([("a", rows)])


def names_in(figure: Figure) -> dict[str, Annotation]:
    """Name without line breaks -> its text in the picture, drawn."""
    FigureCanvasAgg(figure).draw()
    return {text.get_text().replace("\n", ""): text for text in figure.axes[0].texts if isinstance(text, Annotation)}


def check_names(figure: Figure, names: list[str]) -> None:
    """Every name is written once, inside the picture, and on no other name or point."""
    written = names_in(figure)
    assert sorted(written) == sorted(names)
    boxes = {name: Text.get_window_extent(text) for name, text in written.items()}  # without the line to the point
    points = np.array([figure.axes[0].transData.transform(text.xy) for text in written.values()])
    for k, (name, box) in enumerate(boxes.items()):
        assert box.x0 >= 0, name
        assert box.x1 <= figure.bbox.x1, name
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1, name
        assert not [other for other in list(boxes)[k + 1 :] if box.overlaps(boxes[other])], name
        inside = (points > [box.x0, box.y0]).all(axis=1) & (points < [box.x1, box.y1]).all(axis=1)
        assert not inside.any(), name


@pytest.mark.parametrize("names", [[f"rule-{k}+easy" for k in range(16)], LONG], ids=["short", "long"])
def test_sixteen_names_stand_apart(names: list[str]) -> None:
    picture = tradeoff_plot(frame_of({name: (2.0 + k, 500.0 - k) for k, name in enumerate(names)}), names[0])
    assert picture is not None
    check_names(picture.figure, names)


@given(st.lists(st.tuples(st.floats(0.1, 30), st.floats(1, 1000)), min_size=1, max_size=10))
@settings(max_examples=5, deadline=None)
def test_names_stand_apart_wherever_the_points_are(points: list[tuple[float, float]]) -> None:
    names = [f"policy-{k}:psi={k}+easy" for k in range(len(points))]
    picture = tradeoff_plot(frame_of(dict(zip(names, points, strict=True))), names[0])
    assert picture is not None
    check_names(picture.figure, names)


def test_all_points_in_one_place_have_their_names() -> None:
    names = [f"rule-{k}+easy" for k in range(12)]
    picture = tradeoff_plot(frame_of(dict.fromkeys(names, (1.0, 100.0))), names[0])
    assert picture is not None
    check_names(picture.figure, names)


def test_axes_follow_what_is_known_and_name_the_currency() -> None:
    points = {"fcfs+easy": (1.0, 100.0), "late+easy": (2.0, 80.0)}
    picture = tradeoff_plot(frame_of(points), "fcfs+easy")
    assert picture is not None
    axes = picture.figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Mean wait [h]", "Brown energy over the horizon [kWh]")
    assert picture.title == "Brown energy over the horizon against mean wait"
    paid = tradeoff_plot(frame_of(points, horizon_cost=5.0), "fcfs+easy", currency="USD")
    assert paid is not None
    assert paid.figure.axes[0].get_ylabel() == "Cost over the horizon [USD]"
    assert "currency" not in paid.svg
    chosen = tradeoff_plot(
        frame_of(points, renewable_utilization=0.5, avg_bounded_slowdown=3.0), "fcfs+easy",
        x="avg_bounded_slowdown", y="renewable_utilization",
    )  # fmt: skip
    assert chosen is not None
    assert chosen.caption.startswith("Up and to the left is better")
    plain = tradeoff_plot(example(windows=1, power=False)[0], "fcfs+none")
    assert plain is not None
    assert plain.figure.axes[0].get_ylabel() == "Bounded slowdown (log scale)"


def test_the_line_joins_what_nothing_beats() -> None:
    points = {"a": (1.0, 100.0), "b": (2.0, 80.0), "beaten": (3.0, 90.0), "c": (4.0, 70.0)}
    picture = tradeoff_plot(frame_of(points), "a")
    assert picture is not None
    (line,) = (line for line in picture.figure.axes[0].lines if len(line.get_xdata()) > 2)
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [points[name] for name in "abc"]


def test_the_trade_off_says_what_its_intervals_are_over() -> None:
    rules = example(windows=3)[0]
    agents = rules.with_columns(polars.lit(1, polars.Int64).alias("seed"))
    for frame, lines in (
        (rules, "Thin lines: 95% intervals over the windows."),
        (agents, "Thin lines: 95% intervals over the windows, for agents over seeds and windows."),
    ):
        picture = tradeoff_plot(frame, "fcfs+none")
        assert picture is not None
        assert picture.caption.endswith(lines)
        assert "makespan ×1.00" in picture.alt  # noqa: RUF001 - the sign


def test_pictures_take_the_looks_they_are_given() -> None:
    frame = frame_of({"a": (1.0, 100.0), "b": (2.0, 80.0)}, max_wait_s=3.0)
    looks = dict(zip("ba", looks_of("xy").values(), strict=True))
    picture = tradeoff_plot(frame, "a", looks=looks)
    assert picture is not None
    drawn = [to_hex(points.get_edgecolor()[0]) for points in picture.figure.axes[0].collections]
    assert drawn == [looks[name].color for name in "ab"]


def test_a_radar_puts_the_best_outside_and_writes_its_ends() -> None:
    rows = {
        "a": {"horizon_cost": 10.0, "renewable_utilization": 0.5, "avg_wait_s": 3600.0},
        "b": {"horizon_cost": 20.0, "renewable_utilization": 0.9, "avg_wait_s": 7200.0},
        "c": {"horizon_cost": 15.0, "renewable_utilization": 0.6, "avg_wait_s": 5400.0},
    }
    picture = radar_plot(tidy([("1", rows)]), currency="EUR")
    assert picture is not None
    (axes,) = picture.figure.axes
    radii = {line.get_label(): line.get_ydata()[:3] for line in axes.lines}
    assert radii["a"] == pytest.approx([1.0, INNER, 1.0])
    assert radii["b"] == pytest.approx([INNER, 1.0, INNER])
    assert radii["c"] == pytest.approx([(1 + INNER) / 2, INNER + (1 - INNER) / 4, (1 + INNER) / 2])
    assert [text.get_text() for text in axes.get_xticklabels()] == [
        "Cost [EUR]\n20.00 to 10.00", "Renewable [%]\n50.0 to 90.0", "Mean wait [h]\n2.00 to 1.00",
    ]  # fmt: skip
    assert "worst" in picture.caption
    assert radar_plot(tidy([("1", {name: dict(list(row.items())[:2]) for name, row in rows.items()})])) is None
    two = radar_plot(tidy([("1", rows)]), names=["a", "b"])
    assert two is not None
    assert len(two.figure.axes[0].lines) == 2
