"""The first screen of a reproduction counts and measures what its cells say."""

from __future__ import annotations

from typing import Any

import pytest

from greenbatch.experiments.papers.agreement import agreement


def cell(published: float | None, ours: float | None, verdict: str, scheduler: str = "f2") -> dict[str, Any]:
    return {"table": "3", "trace": "cirne", "backfill": "green", "scheduler": scheduler, "metric": "wait",
            "published": published, "ours": ours, "digits": 1, "verdict": verdict}  # fmt: skip


def test_tiles_count_and_name_the_largest_deviation() -> None:
    cells = [cell(10.0, 10.04, "equal"), cell(20.0, 25.0, "worse", "ga"), cell(5.0, None, "not computed"),
             cell(None, 3.0, "not in the paper")]  # fmt: skip
    first = agreement(cells, {"wait": "mean wait"})
    assert first.sentence.startswith("1 of 2 computed figures equal the published ones")
    equal, computed, middle, most = first.tiles
    assert (equal.value, equal.unit) == ("1", "of 2")
    assert (computed.value, computed.unit) == ("3", "of 4")
    assert middle.value == "12", "of 0 and 25 percent, equal to the printed digit counting as 0"
    assert (most.value, most.comment) == ("25", "cirne, ga+green, mean wait")
    assert first.picture is not None
    axes = first.picture.figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["cirne, ga+green"]
    (points, diagonal) = axes.lines
    assert list(points.get_xdata()) == [10.0, 20.0]
    assert list(points.get_ydata()) == [10.04, 25.0]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())


@pytest.mark.parametrize("cells", [[], [cell(5.0, None, "not computed")], [cell(0.0, 0.0, "equal")]])
def test_without_pairs_there_is_no_picture(cells: list[dict[str, Any]]) -> None:
    first = agreement(cells, {"wait": "mean wait"})
    assert first.picture is None
    assert len(first.tiles) == 2
