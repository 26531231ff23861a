"""Pictures of a comparison or an outcome by their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.experiments.reports.columns import main_columns
from greenbatch.experiments.reports.drawing import Picture
from greenbatch.experiments.reports.plots import box_plot, gantt_plots, power_plots, queue_plot
from greenbatch.experiments.reports.tradeoff import tradeoff_plot

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

    from greenbatch.experiments.running.compare import Comparison

Pictures = dict[str, Picture]
"""Subject of a picture -> the picture; the key is "" for kinds with one picture."""


def _spread(frame: polars.DataFrame, _: str) -> Pictures:
    drawn = {column.metric: box_plot(frame, column) for column in main_columns(frame)}
    return {metric: picture for metric, picture in drawn.items() if picture is not None}


def _tradeoff(frame: polars.DataFrame, baseline: str) -> Pictures:
    picture = tradeoff_plot(frame, baseline)
    return {} if picture is None else {"": picture}


OF_WINDOWS: Mapping[str, Callable[[polars.DataFrame, str], Pictures]] = {"tradeoff": _tradeoff, "spread": _spread}
"""Kinds of pictures of all windows -> function of a tidy frame and the name of the baseline."""

OF_OUTCOMES: Mapping[str, Callable[[Mapping[str, Outcome]], Pictures]] = {
    "power": lambda outcomes: dict(zip(outcomes, power_plots(outcomes), strict=False)),
    "queue": lambda outcomes: {"": queue_plot(outcomes)},
    "schedule": lambda outcomes: dict(zip(outcomes, gantt_plots(outcomes), strict=True)),
}
"""Kinds of pictures of one window -> function of (scheduler -> outcome)."""

NEEDS = {
    "tradeoff": "a site and the power of the jobs",
    "spread": "two windows",
    "power": "a site and the power of jobs",
}
"""Requirements of kinds that cannot always be drawn."""


def plot_comparison(comparison: Comparison, kind: str, of: str | None = None) -> Figure:
    """A picture of a comparison, see `Comparison.plot`."""
    kinds = {name: partial(draw, comparison.frame, comparison.baseline) for name, draw in OF_WINDOWS.items()}
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
