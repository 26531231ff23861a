"""Pictures of a comparison: power, trade-off, spread over windows, schedule, queue, and published figures."""

# ruff: noqa: RUF001 - typographic dashes and multiplication signs are meant for the reader.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import Outcome
from greenbatch.experiments.reports.columns import Column, main_columns
from greenbatch.experiments.reports.drawing import (
    INK,
    PALE,
    PAPER,
    Picture,
    color_of,
    dash_of,
    drawing,
    legend_room,
    marked,
    new_figure,
    plain_log_ticks,
    slug,
    wrapped,
)
from greenbatch.experiments.running.frames import by_window, schedulers
from greenbatch.metrics.jobs import CLASSES, run_time_class

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]

RENEWABLE, COVERED, BROWN = "#009e73", "#56b4e9", "#d55e00"
CLASS_COLORS = ("#c6dff1", "#7db5df", "#3585c0", "#10518a")
CLASS_LABELS = ("< 5 min", "5 min – 1 h", "1 – 4 h", "> 4 h")
GANTT_BLOCKS, GANTT_JOBS, QUEUE_POINTS = 1500, 5000, 400


def power_span(outcomes: Mapping[str, Outcome], hours: float = 48.0) -> tuple[float, float]:
    """Start and end [s] of the busiest hours, starting whole days after the first submission."""
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    end = min(float(o.end_s.max()) for o in outcomes.values())
    starts = np.arange(first, max(end - hours * 3600.0, first) + 1.0, 86_400.0)
    work = np.zeros(len(starts))
    for o in outcomes.values():
        for times, sign in ((starts + hours * 3600.0, 1), (starts, -1)):
            work += sign * (
                _since(o.start_s, times, o.workload.processors) - _since(o.end_s, times, o.workload.processors)
            )
    start = float(starts[np.argmax(work)])
    return start, start + hours * 3600.0


def power_plots(outcomes: Mapping[str, Outcome], hours: float = 48.0) -> list[Picture]:
    """Power against supply, one picture per scheduler, with common hours and scale; empty without a site.

    Source of the form: GAS-MARL Fig. 7.
    """
    from greenbatch.engine.accounts import books, power_segments

    powered = {name: o for name, o in outcomes.items() if o.site is not None and np.isfinite(o.workload.power_w).all()}
    if not powered:
        return []
    start, end = power_span(powered, hours)
    first = min(float(o.workload.submit_s.min()) for o in powered.values())
    spans = {name: (start, min(end, float(o.end_s.max()))) for name, o in powered.items()}
    segments = {name: power_segments(o, *spans[name]) for name, o in powered.items()}
    top_kw = max(float(max(s.load_w.max(), s.renewable_w.max())) for s in segments.values()) / 1e3
    pictures = []
    for k, (name, segment) in enumerate(segments.items()):
        edges = (np.append(segment.start_s, segment.end_s[-1]) - first) / 3600.0
        load, supply, used = (
            np.append(w, w[-1]) / 1e3 for w in (segment.load_w, segment.renewable_w, segment.renewable_used_w)
        )
        account = books(powered[name], *spans[name])
        brown_kwh = account.grid_j / 3.6e6
        share = account.renewable_used_j / account.load_j if account.load_j else 1.0
        with drawing():
            figure, axes = new_figure(2.3)
            axes.fill_between(
                edges, 0, used, step="post", color=COVERED, alpha=0.55, linewidth=0, label="renewable used"
            )
            axes.fill_between(edges, used, load, step="post", color=BROWN, alpha=0.8, linewidth=0, label="brown")
            axes.step(edges, supply, where="post", color=RENEWABLE, linewidth=1.2, label="renewable supply")
            axes.set(xlim=(edges[0], (end - first) / 3600), ylim=(0, 1.06 * top_kw or 1.0))
            axes.set(xlabel="hours since the first submission", ylabel="power [kW]")
            axes.set_xticks(np.arange(edges[0], (end - first) / 3600 + 1, hours / 8))
            figure.legend(loc="outside upper left", ncols=3)
            title = f"Power against supply: {name}"
            caption = f"{brown_kwh:,.1f} kWh brown, {share:.0%} renewable in these {hours:g} hours."
            alt = (
                f"Area chart of cluster power under {name} over {hours:g} hours against renewable supply. "
                f"{share:.0%} of the energy is renewable, {brown_kwh:,.1f} kWh come from the grid."
            )
            pictures.append(Picture(f"power-{k}-{slug(name)}", title, caption, alt, figure))
    return pictures


def box_plot(frame: polars.DataFrame, column: Column) -> Picture | None:
    """One metric over the windows: box of quartiles, whiskers to the extremes, mean, and each window as a dot.

    None with fewer than two windows or if the metric is not defined. Source of the form: GAS-MARL Figs. 4 and 5.
    """
    names = schedulers(frame)
    values = {name: np.array(list(by_window(frame, name, column.metric).values())) * column.scale for name in names}
    values = {name: v[np.isfinite(v)] for name, v in values.items()}
    if max(len(v) for v in values.values()) < 2:
        return None
    data = np.concatenate(list(values.values()))
    with drawing():
        figure, axes = new_figure(0.75 + 0.36 * len(names))
        for k, v in enumerate(values.values()):
            if not v.size:
                continue
            line = {"color": color_of(k), "linewidth": 1.0}
            axes.boxplot(
                v, positions=[-k], orientation="horizontal", widths=0.55, whis=(0, 100), showmeans=True,
                manage_ticks=False, showcaps=False, patch_artist=True, whiskerprops=line,
                medianprops={"color": INK, "linewidth": 1.2},
                boxprops={"facecolor": color_of(k) + "55", "edgecolor": color_of(k)},
                meanprops={"marker": "D", "markerfacecolor": INK, "markeredgecolor": INK, "markersize": 3},
            )  # fmt: skip
            spread = -k + 0.36 * (((np.arange(v.size) * 0.618034) % 1.0) - 0.5)
            axes.plot(v, spread, ".", markersize=4, color=INK, alpha=0.55, markeredgewidth=0)
        axes.set_yticks([-k for k in range(len(names))], [wrapped(name, 20) for name in names], multialignment="right")
        axes.set_ylim(-len(names) + 0.4, 0.6)
        axes.grid(visible=False, axis="y")
        logarithmic = data.size > 0 and data.min() > 0 and data.max() / data.min() > 12
        if logarithmic:
            axes.set_xscale("log")
            plain_log_ticks(axes)
        unit = f" [{column.unit}]" if column.unit else ""
        axes.set_xlabel(f"{column.header}{unit}{' (log scale)' if logarithmic else ''}", loc="right")
        medians = "; ".join(f"{name} {np.median(v):.4g}" for name, v in values.items() if v.size)
        caption = "Box: quartiles; whiskers: extremes; line: median; diamond: mean; dots: single windows."
        alt = f"Box plots over windows of {column.header.lower()}{unit}. Medians: {medians}."
        return Picture(f"box-{slug(column.metric)}", f"{column.header} over the windows", caption, alt, figure)


def box_plots(frame: polars.DataFrame) -> list[Picture]:
    """Box plots of the four main metrics."""
    drawn = (box_plot(frame, column) for column in main_columns(frame)[:4])
    return [picture for picture in drawn if picture is not None]


def lanes(outcome: Outcome, jobs: int = GANTT_JOBS) -> tuple[NDArray[np.int64], Floats]:
    """Place jobs on processors: each takes the lowest-numbered free ones at its start, of its nodes if it has any.

    Only the first ``jobs`` starts are placed; later ones cannot affect them.

    Returns:
        The job (row) of each block, shape (blocks,), and its start [s], end [s], first processor and number of
        processors, shape (blocks, 4). A job on non-contiguous processors has several blocks.
    """
    order = np.lexsort((np.arange(len(outcome.start_s)), outcome.start_s))[:jobs]
    free, parts = _nodes_and_parts(outcome)
    ends = order[np.argsort(outcome.end_s[order], kind="stable")]
    held: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}
    rows, blocks, released = [], [], 0
    for job in order:
        while released < len(ends) and outcome.end_s[ends[released]] <= outcome.start_s[job]:
            for node, taken in held.pop(int(ends[released])):
                free[node] = _merged(free[node] + taken)
            released += 1
        held[int(job)] = []
        for node, processors in parts[int(job)]:
            taken, free[node] = _lowest(free[node], processors)
            held[int(job)].append((node, taken))
            for first, count in taken:
                rows.append(job)
                blocks.append((outcome.start_s[job], outcome.end_s[job], first, count))
    return np.array(rows, dtype=np.int64), np.array(blocks, dtype=np.float64).reshape(-1, 4)


def _nodes_and_parts(outcome: Outcome) -> tuple[list[list[tuple[int, int]]], list[list[tuple[int, int]]]]:
    """The free processors of each node, as intervals; and (node, processors) of each part of each job."""
    placed = outcome.placements
    if placed is None:
        parts = [[(0, int(processors))] for processors in outcome.workload.processors]
        return [[(0, outcome.cluster.processors)]], parts  # intervals, not processors: a machine may have millions
    sizes = [g.processors for g in outcome.cluster.groups for _ in range(g.count)]
    ends = np.cumsum(sizes)
    several: list[list[tuple[int, int]]] = [[] for _ in range(len(outcome.start_s))]
    for job, node, processors in zip(
        placed.job.tolist(), placed.node.tolist(), placed.processors.tolist(), strict=True
    ):  # fmt: skip
        several[job].append((node, processors))
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


def gantt_plots(outcomes: Mapping[str, Outcome], limit: int = GANTT_BLOCKS) -> list[Picture]:
    """Gantt charts, one per scheduler, on a common time axis, colored by run-time class."""
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    placed = {name: lanes(o) for name, o in outcomes.items()}
    whole = all(len(o.start_s) <= GANTT_JOBS for o in outcomes.values())
    ends = [float((blocks[:, 1] if whole else blocks[:, 0]).max()) for _, blocks in placed.values()]
    end_day = (max(ends) - first) / 86_400
    return [
        _gantt(k, outcomes[name], name, placed[name], first_s=first, end_day=end_day, limit=limit)
        for k, name in enumerate(outcomes)
    ]


def _gantt(
    k: int,
    outcome: Outcome,
    name: str,
    placed: tuple[NDArray[np.int64], Floats],
    *,
    first_s: float,
    end_day: float,
    limit: int,
) -> Picture:
    from matplotlib.patches import Patch, PathPatch
    from matplotlib.path import Path

    rows, blocks = placed
    area = (blocks[:, 1] - blocks[:, 0]) * blocks[:, 3]
    kept = np.sort(np.argsort(-area, kind="stable")[:limit])
    with drawing():
        figure, axes = new_figure(2.2)
        for color, class_name in zip(CLASS_COLORS, CLASSES, strict=True):
            mine = blocks[kept[run_time_class(outcome, class_name)[rows[kept]]]]
            if not len(mine):
                continue
            x0, x1 = (mine[:, 0] - first_s) / 86_400, (mine[:, 1] - first_s) / 86_400
            y0, y1 = mine[:, 2], mine[:, 2] + mine[:, 3]
            corners = np.stack([x0, y0, x1, y0, x1, y1, x0, y1, x0, y0], axis=1).reshape(-1, 2)
            codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(mine))
            axes.add_patch(PathPatch(Path(corners, codes), facecolor=color, edgecolor=PAPER, linewidth=0.25))
        axes.set(xlim=(0, end_day), ylim=(0, outcome.cluster.processors))
        axes.set(xlabel="days since the first submission", ylabel="processor")
        axes.grid(visible=False)
        handles = [Patch(facecolor=c, edgecolor=PALE, label=t) for c, t in zip(CLASS_COLORS, CLASS_LABELS, strict=True)]
        figure.legend(handles=handles, loc="outside upper left", ncols=4, handlelength=1.0)
        drawn = f"all {len(blocks):,} blocks drawn"
        if len(kept) < len(blocks):
            share = area[kept].sum() / area.sum()
            drawn = f"the {len(kept):,} largest of {len(blocks):,} blocks drawn, {share:.1%} of the processor time"
        if len(outcome.start_s) > GANTT_JOBS:
            drawn += f"; first {GANTT_JOBS:,} of {len(outcome.start_s):,} jobs"
        where = "lowest-numbered free processors"
        where += "" if outcome.placements is None else " of their nodes, in the order of the cluster"
        caption = f"Jobs on the {where}, colored by run time; {drawn}."
        alt = (
            f"Gantt chart of {name}: {len(outcome.start_s):,} jobs on {outcome.cluster.processors:,} processors, "
            f"the last ends {(float(outcome.end_s.max()) - first_s) / 86_400:.1f} days after the first submission."
        )
        return Picture(f"gantt-{k}-{slug(name)}", f"Schedule: {name}", caption, alt, figure)


def queue_length(outcome: Outcome, edges_s: Floats) -> Floats:
    """Mean number of waiting jobs between consecutive instants, exact, shape (len(edges_s) - 1,)."""
    one = np.ones(len(outcome.start_s))
    waited_s: Floats = np.diff(_since(outcome.workload.submit_s, edges_s, one) - _since(outcome.start_s, edges_s, one))
    return waited_s / np.diff(edges_s)


def _since(instants_s: Floats, times_s: Floats, weights: NDArray[Any]) -> Floats:
    """For each time, the weighted sum of seconds since the instants before it, shape of ``times_s``."""
    order = np.argsort(instants_s)
    passed = np.searchsorted(instants_s[order], times_s, side="right")
    weight, moment = (np.concatenate([[0.0], np.cumsum(w[order])]) for w in (weights, weights * instants_s))
    return np.asarray(times_s * weight[passed] - moment[passed])


def queue_plot(
    outcomes: Mapping[str, Outcome], points: int = QUEUE_POINTS, *, order: Sequence[str] | None = None
) -> Picture:
    """Waiting jobs over time, all schedulers in one picture; ``order`` lists the schedulers for consistent colors."""
    order = list(outcomes) if order is None else order
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    last = max(float(o.start_s.max()) for o in outcomes.values())
    edges = np.linspace(first, max(last, first + 1.0), points + 1)
    days = (edges - first) / 86_400
    columns, room = legend_room(list(outcomes))
    with drawing():
        figure, axes = new_figure(2.3 + room)
        peaks = []
        for name, outcome in outcomes.items():
            k = order.index(name)
            length = queue_length(outcome, edges)
            peaks.append(f"{name} {length.max():,.0f}")
            axes.step(
                days,
                np.append(length, length[-1]),
                where="post",
                color=color_of(k),
                linestyle=dash_of(k),
                **marked(k, len(order)),
                label=wrapped(name, 40),
            )
        axes.set(xlim=(0, days[-1]), xlabel="days since the first submission", ylabel="waiting jobs")
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside lower left", ncols=columns)
        caption = f"Mean queue length in {points} equal steps of {(edges[1] - edges[0]) / 60:.0f} min."
        alt = f"Line chart of the number of waiting jobs over time. Highest: {'; '.join(peaks)}."
        return Picture("queue", "Queue length", caption, alt, figure)
