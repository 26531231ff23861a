"""Gantt charts: which processors ran which jobs."""

# ruff: noqa: RUF001 - typographic dashes are meant for the reader.

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import Outcome
from greenbatch.experiments.reports.drawing import PALE, PANEL_IN, PAPER, WIDTH_IN, Picture, drawing, new_figure, slug
from greenbatch.experiments.reports.sections import Key
from greenbatch.metrics.jobs import CLASSES, run_time_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLASS_COLORS = ("#c6dff1", "#7db5df", "#3585c0", "#10518a")
CLASS_LABELS = ("< 5 min", "5 min – 1 h", "1 – 4 h", "> 4 h")
RUN_TIMES = tuple(Key(label, color) for label, color in zip(CLASS_LABELS, CLASS_COLORS, strict=True))
"""The legend of the charts."""
GANTT_BLOCKS, GANTT_JOBS = 1500, 5000


def lanes(
    outcome: Outcome, jobs: int = GANTT_JOBS, *, total: int | None = None, requests: Ints | None = None
) -> tuple[Ints, Floats]:
    """Place jobs on processors: each takes the lowest-numbered free ones at its start, of its nodes if it has any.

    Only the first ``jobs`` starts are placed; later ones cannot affect them.

    Args:
        outcome: the run.
        jobs: how many starts are placed.
        total: units of another kind on a pool, such as GPUs.
        requests: how many of them each job takes, shape (n,).

    Returns:
        The job (row) of each block, shape (blocks,), and its start [s], end [s], first processor and number of
        processors, shape (blocks, 4). A job on non-contiguous processors has several blocks.
    """
    of_job, start_s, end_s = outcome.spans
    order = np.lexsort((of_job, start_s))[:jobs]
    free, parts = _nodes_and_parts(outcome, total, requests)
    ends = order[np.argsort(end_s[order], kind="stable")]
    held: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}
    rows, blocks, released = [], [], 0
    for span in order:
        job = of_job[span]
        while released < len(ends) and end_s[ends[released]] <= start_s[span]:
            for node, taken in held.pop(int(ends[released])):
                free[node] = _merged(free[node] + taken)
            released += 1
        held[int(span)] = []
        for node, processors in parts[int(span)]:
            taken, free[node] = _lowest(free[node], processors)
            held[int(span)].append((node, taken))
            for first, count in taken:
                rows.append(job)
                blocks.append((start_s[span], end_s[span], first, count))
    return np.array(rows, dtype=np.int64), np.array(blocks, dtype=np.float64).reshape(-1, 4)


def _nodes_and_parts(
    outcome: Outcome, total: int | None, requests: Ints | None
) -> tuple[list[list[tuple[int, int]]], list[list[tuple[int, int]]]]:
    """The free processors of each node, as intervals; and (node, processors) of each part of each span."""
    placed = outcome.placements
    if placed is None:
        of_job = outcome.workload.processors if requests is None else requests
        units = outcome.cluster.processors if total is None else total
        return [[(0, units)]], [[(0, int(of_job[job]))] for job in outcome.spans[0]]  # intervals, of a large machine
    sizes = [g.processors for g in outcome.cluster.groups for _ in range(g.count)]
    ends = np.cumsum(sizes)
    several: list[list[tuple[int, int]]] = [[] for _ in outcome.spans[0]]
    for span, node, processors in zip(
        placed.span.tolist(), placed.node.tolist(), placed.processors.tolist(), strict=True
    ):  # fmt: skip
        several[span].append((node, processors))
    return [[(int(end) - size, size)] for end, size in zip(ends, sizes, strict=True)], several


def _lowest(free: list[tuple[int, int]], wanted: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The ``wanted`` lowest-numbered free processors and the remaining ones, as (first, count) intervals."""
    taken = []
    for k, (first, count) in enumerate(free):
        used = min(count, wanted)
        taken.append((first, used))
        wanted -= used
        if wanted == 0:
            rest = [(first + used, count - used)] if used < count else []
            return taken, rest + free[k + 1 :]
    return taken, []


def _merged(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same processors as ascending, non-adjacent intervals."""
    merged: list[tuple[int, int]] = []
    for first, count in sorted(intervals):
        if merged and sum(merged[-1]) == first:
            merged[-1] = (merged[-1][0], merged[-1][1] + count)
        else:
            merged.append((first, count))
    return merged


def gantt_plots(
    outcomes: Mapping[str, Outcome], limit: int = GANTT_BLOCKS, *, panels: bool = False
) -> list[Picture]:  # fmt: skip
    """Gantt charts, one per scheduler, on a common time axis, colored by run-time class.

    Args:
        outcomes: scheduler -> outcome of one window.
        limit: largest number of blocks in a chart; the smallest are left out.
        panels: draw panels of small multiples, without legends: see `RUN_TIMES`.
    """
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    placed = {name: lanes(o) for name, o in outcomes.items()}
    whole = all(len(o.start_s) <= GANTT_JOBS for o in outcomes.values())
    ends = [float((blocks[:, 1] if whole else blocks[:, 0]).max(initial=first)) for _, blocks in placed.values()]
    end_day = (max(ends) - first) / 86_400 or 1.0  # where nothing ran
    return [
        _gantt(k, outcomes[name], name, placed[name], first_s=first, end_day=end_day, limit=limit, panels=panels)
        for k, name in enumerate(outcomes)
    ]


def rectangles(axes: Axes, x0: Floats, x1: Floats, y0: Floats, y1: Floats, color: str, edge: str = PAPER) -> None:
    """Draw rectangles of one color as one shape."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not len(x0):
        return
    corners = np.stack([x0, y0, x1, y0, x1, y1, x0, y1, x0, y0], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(x0))
    # `Axes.add_patch` would look for the bounds of thousands of sides one by one.
    axes.add_artist(PathPatch(Path(corners, codes), facecolor=color, edgecolor=edge, linewidth=0.25))
    axes.update_datalim(corners)


def _gantt(
    k: int,
    outcome: Outcome,
    name: str,
    placed: tuple[NDArray[np.int64], Floats],
    *,
    first_s: float,
    end_day: float,
    limit: int,
    panels: bool,
) -> Picture:
    from matplotlib.patches import Patch

    rows, blocks = placed
    area = (blocks[:, 1] - blocks[:, 0]) * blocks[:, 3]
    kept = np.sort(np.argsort(-area, kind="stable")[:limit])
    with drawing():
        figure, axes = new_figure(1.5 if panels else 2.2, PANEL_IN if panels else WIDTH_IN)
        for color, class_name in zip(CLASS_COLORS, CLASSES, strict=True):
            mine = blocks[kept[run_time_class(outcome, class_name)[rows[kept]]]]
            if not len(mine):
                continue
            x0, x1 = (mine[:, 0] - first_s) / 86_400, (mine[:, 1] - first_s) / 86_400
            rectangles(axes, x0, x1, mine[:, 2], mine[:, 2] + mine[:, 3], color)
        axes.set(xlim=(0, end_day), ylim=(0, outcome.cluster.processors))
        axes.set(xlabel="days since the first submission", ylabel="processor")
        axes.grid(visible=False)
        if not panels:
            handles = [Patch(facecolor=key.color, edgecolor=PALE, label=key.label) for key in RUN_TIMES]
            figure.legend(handles=handles, loc="outside upper left", ncols=4, handlelength=1.0)
        drawn, left = f"all {len(blocks):,} blocks drawn", ""
        if len(kept) < len(blocks):
            share = area[kept].sum() / area.sum()
            drawn = f"the {len(kept):,} largest of {len(blocks):,} blocks drawn, {share:.1%} of the processor time"
            left = f"The smallest blocks are left out, {1 - share:.1%} of the processor time."
        if len(outcome.start_s) > GANTT_JOBS:
            cut = f"first {GANTT_JOBS:,} of {len(outcome.start_s):,} jobs"
            drawn, left = f"{drawn}; {cut}", f"{cut[0].upper()}{cut[1:]}. {left}".strip()
        where = "lowest-numbered free processors"
        where += "" if outcome.placements is None else " of their nodes, in the order of the cluster"
        caption = left if panels else f"Jobs on the {where}, colored by run time; {drawn}."
        alt = (
            f"Gantt chart of {name}: {len(outcome.start_s):,} jobs on {outcome.cluster.processors:,} processors, "
            f"the last ends {(outcome.last_s - first_s) / 86_400:.1f} days after the first submission."
        )
        return Picture(f"gantt-{k}-{slug(name)}", name if panels else f"Schedule: {name}", caption, alt, figure)
