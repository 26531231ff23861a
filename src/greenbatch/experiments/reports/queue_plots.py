"""Pictures of the number of waiting jobs over time, of all jobs and by partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import Outcome
from greenbatch.experiments.reports.drawing import (
    PANEL_IN,
    Picture,
    drawing,
    legend_room,
    marked,
    new_figure,
    slug,
    wrapped,
)
from greenbatch.experiments.reports.looks import Looks, looks_of
from greenbatch.experiments.reports.spans import seconds_since

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

POINTS = 400
"""Steps of a line."""
MOST_QUEUES = 8
"""Partitions that have a panel, those with most jobs first."""


def queue_length(outcome: Outcome, edges_s: Floats, counted: NDArray[np.bool_] | None = None) -> Floats:
    """Mean number of waiting jobs between consecutive instants, exact, shape (len(edges_s) - 1,).

    Args:
        outcome: the run.
        edges_s: the instants, ascending. [s]
        counted: which jobs count, shape (n,); by default all.
    """
    one = np.ones(len(outcome.start_s)) if counted is None else counted.astype(np.float64)
    waited_s: Floats = np.diff(
        seconds_since(outcome.workload.submit_s, edges_s, one) - seconds_since(outcome.waits_until_s, edges_s, one)
    )
    return waited_s / np.diff(edges_s)


def queue_plot(
    outcomes: Mapping[str, Outcome], points: int = POINTS, *, looks: Looks | None = None, legend: bool = True
) -> Picture:
    """Waiting jobs over time, all schedulers in one picture.

    Args:
        outcomes: scheduler -> outcome of one window.
        points: steps of a line.
        looks: scheduler -> color and dash; by default `looks_of` the outcomes.
        legend: draw a legend; a page may have one for several pictures.
    """
    columns, room = legend_room(list(outcomes)) if legend else (1, 0.0)
    edges = _edges(outcomes, points)
    with drawing():
        figure, axes = new_figure((2.3 if legend else 2.9) + room)
        peaks = _lines(axes, outcomes, edges, looks)
        if legend:
            figure.legend(loc="outside lower left", ncols=columns)
        caption = f"Mean queue length in {points} equal steps of {(edges[1] - edges[0]) / 60:.0f} min."
        alt = f"Line chart of the number of waiting jobs over time. Highest: {'; '.join(peaks)}."
        return Picture("queue", "Queue length", caption, alt, figure)


def queue_panels(
    outcomes: Mapping[str, Outcome], points: int = POINTS, *, looks: Looks | None = None
) -> list[Picture]:  # fmt: skip
    """Waiting jobs over time, one panel per partition; empty with fewer than two partitions."""
    jobs = next(iter(outcomes.values())).workload
    numbers, counts = np.unique(jobs.partition[jobs.partition >= 0], return_counts=True)
    if len(numbers) < 2:
        return []
    found: list[Picture] = []
    edges = _edges(outcomes, points)
    for number in numbers[np.argsort(-counts, kind="stable")][:MOST_QUEUES].tolist():
        name = jobs.names.get("partition", {}).get(number, f"partition {number}")
        with drawing():
            figure, axes = new_figure(1.6, PANEL_IN)
            peaks = _lines(axes, outcomes, edges, looks, number)
            alt = (
                f"Line chart of the number of waiting jobs of partition {name} over time. Highest: {'; '.join(peaks)}."
            )
            caption = f"{int((jobs.partition == number).sum()):,} jobs."
            found.append(Picture(f"queue-{len(found)}-{slug(name)}", name, caption, alt, figure))
    return found


def _edges(outcomes: Mapping[str, Outcome], points: int) -> Floats:
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    last = max(float(o.waits_until_s.max()) for o in outcomes.values())
    return np.linspace(first, max(last, first + 1.0), points + 1)


def _lines(
    axes: Axes, outcomes: Mapping[str, Outcome], edges: Floats, looks: Looks | None, partition: int | None = None
) -> list[str]:  # fmt: skip
    """Draw a line per scheduler; name and highest value of each."""
    looks = looks_of(outcomes) if looks is None else looks
    days, peaks = (edges - edges[0]) / 86_400, []
    for name, outcome in outcomes.items():
        counted = None if partition is None else outcome.workload.partition == partition
        length = queue_length(outcome, edges, counted)
        peaks.append(f"{name} {length.max():,.0f}")
        axes.step(
            days, np.append(length, length[-1]), where="post", color=looks[name].color, linestyle=looks[name].dash,
            **marked(list(looks).index(name), len(looks)), label=wrapped(name, 40),
        )  # fmt: skip
    axes.set(xlim=(0, days[-1]), xlabel="days since the first submission", ylabel="waiting jobs")
    axes.set_ylim(bottom=0)
    return peaks
