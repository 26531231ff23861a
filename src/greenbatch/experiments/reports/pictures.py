"""Pictures of a comparison or an outcome by their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.experiments.reports.capacity_plots import capacity_plots, image_plots, with_capacity
from greenbatch.experiments.reports.columns import main_columns
from greenbatch.experiments.reports.drawing import Picture
from greenbatch.experiments.reports.gantt import gantt_plots
from greenbatch.experiments.reports.power_plots import power_plots
from greenbatch.experiments.reports.queue_plots import queue_plot
from greenbatch.experiments.reports.radar import radar_plot
from greenbatch.experiments.reports.spread import box_plot
from greenbatch.experiments.reports.tradeoff import tradeoff_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from greenbatch.experiments.running.compare import Comparison

Pictures = dict[str, Picture]
"""Subject of a picture -> the picture; the key is "" for kinds with one picture."""


def _spread(comparison: Comparison) -> Pictures:
    columns = main_columns(comparison.frame, comparison.currency)
    drawn = {column.metric: box_plot(comparison.frame, column) for column in columns}
    return {metric: picture for metric, picture in drawn.items() if picture is not None}


def _tradeoff(comparison: Comparison) -> Pictures:
    picture = tradeoff_plot(comparison.frame, comparison.baseline, currency=comparison.currency, marks=comparison.marks)
    return {} if picture is None else {"": picture}


def _radar(comparison: Comparison) -> Pictures:
    picture = radar_plot(comparison.frame, currency=comparison.currency)
    return {} if picture is None else {"": picture}


OF_WINDOWS: Mapping[str, Callable[[Comparison], Pictures]] = {
    "tradeoff": _tradeoff, "radar": _radar, "spread": _spread,
}  # fmt: skip
"""Kinds of pictures of all windows -> function of a comparison."""

OF_OUTCOMES: Mapping[str, Callable[[Mapping[str, Outcome]], Pictures]] = {
    "power": lambda outcomes: dict(zip(outcomes, power_plots(outcomes), strict=False)),
    "queue": lambda outcomes: {"": queue_plot(outcomes)},
    "schedule": lambda outcomes: dict(zip(outcomes, gantt_plots(outcomes), strict=True)),
    "capacity": lambda outcomes: dict(zip(with_capacity(outcomes), capacity_plots(outcomes), strict=True)),
    "image": lambda outcomes: dict(zip(with_capacity(outcomes), image_plots(outcomes), strict=True)),
}
"""Kinds of pictures of one window -> function of (scheduler -> outcome)."""

NEEDS = {
    "tradeoff": "two figures of a scheduler",
    "radar": "three figures in which schedulers differ",
    "spread": "two windows",
    "capacity": "a machine whose capacity changes",
    "image": "a machine whose capacity changes",
    "power": "a site and the power of jobs",
}
"""Requirements of kinds that cannot always be drawn."""


def plot_comparison(comparison: Comparison, kind: str, of: str | None = None) -> Figure:
    """A picture of a comparison, see `Comparison.plot`."""
    kinds = {name: partial(draw, comparison) for name, draw in OF_WINDOWS.items()}
    return _figure(kinds | {name: partial(draw, comparison.example) for name, draw in OF_OUTCOMES.items()}, kind, of)


def plot_outcome(outcome: Outcome, kind: str) -> Figure:
    """A picture of an outcome, see `Outcome.plot`."""
    return _figure({name: partial(draw, {outcome.scheduler: outcome}) for name, draw in OF_OUTCOMES.items()}, kind)


def _figure(kinds: Mapping[str, Callable[[], Pictures]], kind: str, of: str | None = None) -> Figure:
    if kind not in kinds:
        raise InputError(f"there is no picture {kind!r}", field="plot", fix="use " + ", ".join(kinds))
    pictures = kinds[kind]()
    if not pictures:
        raise InputError(f"{kind!r} requires {NEEDS[kind]}", field="plot", fix="choose another kind of picture")
    if of is not None and of not in pictures:
        choices = ", ".join(filter(None, pictures))
        fix = f"use {choices}" if choices else "leave it out"
        raise InputError(f"there is no {kind!r} of {of!r}", field="plot", fix=fix)
    return pictures[next(iter(pictures)) if of is None else of].figure
