"""Pictures of machines whose capacity follows the power: capacity against use, and resource images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import STATES, Outcome
from greenbatch.experiments.reports.drawing import (
    COLORS,
    INK,
    PANEL_IN,
    PAPER,
    WIDTH_IN,
    Picture,
    drawing,
    empty_figure,
    new_figure,
    slug,
)
from greenbatch.experiments.reports.gantt import GANTT_JOBS, lanes, rectangles
from greenbatch.experiments.reports.looks import Looks, looks_of
from greenbatch.experiments.reports.sections import Key
from greenbatch.experiments.reports.spans import seconds_since

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from greenbatch.cluster.capacity import Capacity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS = 120
"""Steps of the lines and areas of capacity."""
TICKS = 60
"""Columns of a resource image: a little more than the 48 ticks that the paper's agent sees."""
FEW_UNITS = 64
"""On larger machines the edges of jobs would hide them."""
POWERED, FREE, DARK = "#c9c9c9", "#ececec", "#000000"
JOB_COLORS = tuple(color for color in COLORS if color != "#8c8c8c")
"""Colors of jobs, in turn; the same job has the same color under every scheduler."""
IMAGE_KEYS = (Key("no power", DARK), Key("free", FREE))
"""The legend of resource images; every job has a color of its own."""
UNITS = ((1.0, "s"), (60.0, "min"), (3600.0, "h"), (86_400.0, "days"))


def with_capacity(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes on machines whose capacity changes."""
    return {
        name: o for name, o in outcomes.items()
        if o.cluster.follows_power
    }  # fmt: skip


def _levels(outcome: Outcome) -> Capacity:
    assert outcome.cluster.powered is not None  # noqa: S101 - see with_capacity
    return outcome.cluster.capacity_levels


# ---------------------------------------------------------------- capacity and use


def capacity_keys(outcomes: Mapping[str, Outcome]) -> tuple[Key, ...]:
    """The legend of the pictures of capacity, beside the colors of the schedulers; suspension where there is some."""
    suspended = any(len(suspended_spans(o)[0]) for o in outcomes.values())
    line = Key("wanted by suspended jobs", f"var(--figure-ink, {INK})", line=True)
    return (Key("powered", POWERED), *([line] if suspended else []))


def capacity_plots(
    outcomes: Mapping[str, Outcome], *, panels: bool = False, looks: Looks | None = None
) -> list[Picture]:  # fmt: skip
    """Powered processors against those in use over the run, one picture per scheduler on common axes.

    Empty where no capacity changes.

    Args:
        outcomes: scheduler -> outcome of one window.
        panels: draw panels of small multiples, without legends: see `capacity_keys`.
        looks: scheduler -> color; by default `looks_of` the outcomes.
    """
    looks, outcomes = looks_of(outcomes) if looks is None else looks, with_capacity(outcomes)
    if not outcomes:
        return []
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    edges = np.linspace(first, max(o.last_s for o in outcomes.values()), STEPS + 1)
    curves = {name: Curves.of(o, edges) for name, o in outcomes.items()}
    top = max(float(max(c.powered.max(), c.used.max(), c.suspended.max())) for c in curves.values())
    scale_s, unit = _unit(edges[-1] - first)
    times, made = (edges - first) / scale_s, []
    for k, (name, curve) in enumerate(curves.items()):
        with drawing():
            figure, axes = new_figure(1.45 if panels else 2.3, PANEL_IN if panels else WIDTH_IN)
            _area(axes, times, curve.powered, POWERED, "powered")
            _area(axes, times, curve.used, looks[name].color, "in use")
            if curve.suspended.any():
                axes.step(times, np.append(curve.suspended, curve.suspended[-1]), where="post", color=INK,
                          linewidth=0.9, label="wanted by suspended jobs")  # fmt: skip
            axes.set(xlim=(0, times[-1]), ylim=(0, 1.06 * top or 1.0), ylabel="processors")
            axes.set_xlabel(f"{unit} since the first submission")
            axes.locator_params(axis="y", integer=True)
            if not panels:
                figure.legend(loc="outside upper left", ncols=3)
            told = _told(outcomes[name], curve)
            alt = f"Area chart of powered processors and of those in use under {name}. {told}"
            title = name if panels else f"Capacity and use: {name}"
            made.append(Picture(f"capacity-{k}-{slug(name)}", title, told, alt, figure))
    return made


@dataclass(frozen=True, slots=True)
class Curves:
    """Means between consecutive instants, exact, each of shape (steps,)."""

    powered: Floats
    """Processors with power."""
    used: Floats
    """Processors in use."""
    suspended: Floats
    """Processors that suspended jobs had and wait for."""

    @classmethod
    def of(cls, outcome: Outcome, edges_s: Floats) -> Curves:
        """The curves of an outcome between some instants. [s]"""
        levels, requests = _levels(outcome), outcome.workload.processors
        rises = np.diff(levels.processors).astype(np.float64)
        powered = levels.processors[0] * edges_s + seconds_since(levels.time_s[1:], edges_s, rises)
        job, start_s, end_s = outcome.spans
        waiting, from_s, until_s = suspended_spans(outcome)
        return cls(
            np.diff(powered) / np.diff(edges_s), _held(edges_s, start_s, end_s, requests[job]),
            _held(edges_s, from_s, until_s, requests[waiting]),
        )  # fmt: skip


def _held(edges_s: Floats, start_s: Floats, end_s: Floats, units: Ints) -> Floats:
    """Mean of the units held in some spans, between consecutive instants."""
    held_s: Floats = np.diff(seconds_since(start_s, edges_s, units) - seconds_since(end_s, edges_s, units))
    return held_s / np.diff(edges_s)


def suspended_spans(outcome: Outcome) -> tuple[Ints, Floats, Floats]:
    """When jobs were suspended: row of the job, begin and end of each time, to the end of the run; shape (m,). [s]"""
    job, start_s, end_s = outcome.spans
    if outcome.stays is None or not len(job):
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    again = np.flatnonzero(job[1:] == job[:-1])
    last = np.flatnonzero(np.append(job[1:] != job[:-1], True))
    left = last[outcome.stays.state[job[last]] == STATES.index("suspended")]
    until_s = np.concatenate([start_s[again + 1], np.full(len(left), outcome.last_s)])
    rows = np.concatenate([again, left])
    return job[rows], end_s[rows], until_s


def _told(outcome: Outcome, curve: Curves) -> str:
    share = curve.used.sum() / curve.powered.sum() if curve.powered.any() else 0.0
    stays = outcome.stays
    count = 0 if stays is None else int(stays.suspensions.sum())
    told = f"{share:.0%} of the powered processors in use."
    if stays is None or not count:
        return told
    return f"{told} {count:,} suspension{'s' * (count > 1)}, {stays.forced:,} for lack of power."


def _area(axes: Axes, times: Floats, mean: Floats, color: str, label: str) -> None:
    axes.fill_between(times, 0.0, np.append(mean, mean[-1]), step="post", color=color, linewidth=0, label=label)


def _unit(span_s: float) -> tuple[float, str]:
    """The unit of a time axis: seconds and name. It has at least 3 of them, or is seconds."""
    return next(((scale, name) for scale, name in reversed(UNITS) if span_s >= 3 * scale), UNITS[0])


# ---------------------------------------------------------------- resource images


def image_plots(
    outcomes: Mapping[str, Outcome], ticks: int = TICKS, *, panels: bool = False
) -> list[Picture]:  # fmt: skip
    """Resource images, one per scheduler, of the same ticks: processors, and GPUs if there are any, over time.

    Every job has a color of its own. The engine counts units and does not number them: a job is drawn on the lowest
    free ones at its start, and what has no power on the highest that are free. Empty where no capacity changes.

    Args:
        outcomes: scheduler -> outcome of one window.
        ticks: how many ticks, see `image_span`.
        panels: draw panels of small multiples, without legends: see `IMAGE_KEYS`.

    Source of the form: RARE (dissertation), figure 3.3.
    """
    outcomes = with_capacity(outcomes)
    if not outcomes:
        return []
    begin_s, end_s = image_span(outcomes, ticks)
    return [
        _image(f"image-{k}-{slug(name)}", name, outcome, begin_s, end_s, panels=panels)
        for k, (name, outcome) in enumerate(outcomes.items())
    ]


def tick_s(outcome: Outcome) -> float:
    """Length of a tick: that of the pools, else the shortest time between two changes of the capacity. [s]"""
    pools, levels = outcome.rules.pools, _levels(outcome)
    if pools is not None:
        return pools.tick_s
    return float(np.diff(levels.time_s).min(initial=3600.0))


def image_span(outcomes: Mapping[str, Outcome], ticks: int = TICKS) -> tuple[float, float]:
    """Begin and end of the ticks with the highest change of capacity times use, of all schedulers. [s]"""
    one = next(iter(outcomes.values()))
    levels, width_s = _levels(one), ticks * tick_s(one)
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    end = min(min(o.last_s, np.sort(o.spans[1])[:GANTT_JOBS].max(initial=first)) for o in outcomes.values())
    begins = np.arange(first, max(end - width_s, first) + 1e-9, width_s / 4)
    changed = np.append(0.0, np.cumsum(np.abs(np.diff(levels.processors))))
    at = [changed[np.searchsorted(levels.time_s, t, side="right") - 1] for t in (begins, begins + width_s)]
    used = np.zeros(len(begins))
    for o in outcomes.values():
        job, start_s, stop_s = o.spans
        for times, sign in ((begins + width_s, 1.0), (begins, -1.0)):
            since = seconds_since(start_s, times, o.workload.processors[job])
            used += sign * (since - seconds_since(stop_s, times, o.workload.processors[job]))
    begin = float(begins[np.argmax((at[1] - at[0]) * used)])
    return begin, min(begin + width_s, max(o.last_s for o in outcomes.values()))


def _image(name: str, scheduler: str, outcome: Outcome, begin_s: float, end_s: float, *, panels: bool) -> Picture:
    cluster, levels, jobs = outcome.cluster, _levels(outcome), outcome.workload
    gpus = cluster.gpus
    kinds = [("processor", cluster.processors, jobs.processors, levels.processors)]
    kinds += [("GPU", gpus, np.maximum(jobs.gpus, 0), levels.gpus)] if gpus else []
    scale_s, unit = _unit(end_s - begin_s)
    first_s = float(jobs.submit_s.min())
    seen: set[int] = set()
    with drawing():
        height = 0.55 + (0.75 if panels else 0.95) * len(kinds)
        figure = empty_figure(height, PANEL_IN if panels else WIDTH_IN)
        plots = np.atleast_1d(figure.subplots(len(kinds), sharex=True))
        for axes, (what, total, requests, powered) in zip(plots, kinds, strict=True):
            rows, blocks = lanes(outcome, total=total, requests=requests)
            shown = (blocks[:, 0] < end_s) & (blocks[:, 1] > begin_s) & (blocks[:, 3] > 0)
            rows, blocks = rows[shown], np.array(blocks[shown])
            blocks[:, :2] = np.clip(blocks[:, :2], begin_s, end_s)
            dark = np.array(list(dark_blocks(blocks, levels.time_s, powered, total, begin_s, end_s))).reshape(-1, 4)
            edge, of_color = PAPER if total <= FEW_UNITS else "none", rows % len(JOB_COLORS)
            drawn = [(dark, DARK, DARK)]
            drawn += [(blocks[of_color == k], color, edge) for k, color in enumerate(JOB_COLORS)]
            for some, color, line in drawn:
                x0, x1 = ((some[:, k] - first_s) / scale_s for k in (0, 1))
                rectangles(axes, x0, x1, some[:, 2], some[:, 2] + some[:, 3], color, line)
            axes.set(xlim=((begin_s - first_s) / scale_s, (end_s - first_s) / scale_s), ylim=(0, total), ylabel=what)
            axes.set_facecolor(FREE)
            axes.grid(visible=False)
            seen |= set(rows.tolist())
        plots[-1].set_xlabel(f"{unit} since the first submission")
        told = f"{len(seen)} jobs."
        alt = (
            f"Resource image of {scheduler}: {' and '.join(f'{total:,} {what}s' for what, total, *_ in kinds)} over "
            f"{(end_s - begin_s) / scale_s:g} {unit}, black without power. {told}"
        )
        return Picture(name, scheduler if panels else f"Resource image: {scheduler}", told, alt, figure)


def dark_blocks(
    blocks: Floats, time_s: Floats, powered: Ints, total: int, begin_s: float, end_s: float
) -> Iterator[tuple[float, float, float, float]]:
    """What has no power, on the highest units that are free. No more is in use than powered: jobs are suspended.

    Args:
        blocks: where jobs lie: start [s], end [s], first unit and number of units, shape (blocks, 4).
        time_s: begin of each level, ascending, shape (levels,). [s]
        powered: powered units at each level, shape (levels,).
        total: units of the machine.
        begin_s: begin of the picture. [s]
        end_s: its end. [s]

    Yields:
        Start [s], end [s], first unit and number of units of a block without power.
    """
    edges = np.unique(np.concatenate([[begin_s, end_s], time_s, blocks[:, 0], blocks[:, 1]]))
    edges = edges[(edges >= begin_s) & (edges <= end_s)]
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        level = max(int(np.searchsorted(time_s, start, side="right")) - 1, 0)
        missing, top = total - int(powered[level]), total
        jobs = blocks[(blocks[:, 0] <= start) & (blocks[:, 1] > start), 2:].astype(int).tolist()
        for first, count in (*sorted(jobs, reverse=True), (0, 0)):  # from the top down, and the bottom
            height = min(missing, top - first - count)
            if height:
                yield start, end, top - height, height
            missing, top = missing - height, first
