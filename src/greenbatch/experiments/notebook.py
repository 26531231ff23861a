"""Table, pictures and report of a comparison or an outcome in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from greenbatch.display import Strong, html_table, to_pandas
from greenbatch.engine.outcome import Outcome
from greenbatch.errors import InputError
from greenbatch.experiments.cautions import comparison_notes, warning_lines
from greenbatch.experiments.drawing import Picture
from greenbatch.experiments.plots import box_plot, gantt_plots, power_plots, queue_plot, tradeoff_plot
from greenbatch.experiments.statistics import intervals
from greenbatch.experiments.tables import MAIN, Table, comparison_table, to_rich

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

    from greenbatch.experiments.compare import Comparison

Pictures = dict[str, Picture]
"""Subject of a picture -> the picture; the key is "" for kinds with one picture."""


@dataclass(frozen=True, slots=True, repr=False)
class Means:
    """Means over the windows with their intervals, as a displayed table and as a frame."""

    shown: Table
    numbers: polars.DataFrame
    warnings: tuple[str, ...] = ()
    """Lines above the table."""

    def frame(self) -> polars.DataFrame:
        """The numbers in the metrics' units: scheduler, metric, mean, low, high, windows; null if undefined."""
        return self.numbers

    def to_pandas(self) -> pandas.DataFrame:
        """The numbers as a pandas data frame, see `frame`.

        Raises:
            InputError: pandas is not installed.
        """
        return to_pandas(self.numbers)

    def __repr__(self) -> str:
        from rich.console import Console

        console = Console(width=100, color_system=None, force_jupyter=False)
        with console.capture() as written:
            for line in self.warnings:
                console.print(f"warning: {line}", markup=False, highlight=False)
            console.print(to_rich(self.shown))
        return "\n".join(line.rstrip() for line in written.get().splitlines())

    def _repr_html_(self) -> str:
        header = [self.shown.corner, *(f"{name} [{unit}]" if unit else name for name, unit, _ in self.shown.columns)]
        rows = []
        for name, cells in self.shown.rows:
            texts = ["\n".join(filter(None, (cell.text, cell.interval, cell.remark))) for cell in cells]
            marked = zip(texts, cells, strict=True)
            rows.append((name, *(Strong(text) if cell.mark else text for text, cell in marked)))
        above = "".join(f"<p>warning: {escape(line)}</p>" for line in self.warnings)
        return above + html_table(self.shown.title, header, rows, self.shown.lines)


def means(comparison: Comparison) -> Means:
    """The table of means of a comparison, with a note for each gain that comes with a stretched makespan."""
    import polars

    frame = comparison.frame
    notes = [*comparison_notes(comparison), *warning_lines(frame, comparison.baseline)]
    table = comparison_table(frame, title=comparison.title, notes=notes)
    rows = [
        (name, column.metric, each.mean, each.low, each.high, each.count)
        for column in MAIN
        for name, each in intervals(frame, column.metric).items()
        if each.count
    ]
    numbers = polars.DataFrame(rows, schema=["scheduler", "metric", "mean", "low", "high", "windows"], orient="row")
    return Means(table, numbers.with_columns(polars.col("mean", "low", "high").fill_nan(None)), comparison.warnings)


def _spread(frame: polars.DataFrame, _: str) -> Pictures:
    drawn = {column.metric: box_plot(frame, column) for column in MAIN}
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


def plot(comparison: Comparison, kind: str, of: str | None = None) -> Figure:
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


def report(comparison: Comparison, path: str | Path) -> Path:
    """Write the report of a comparison, see `Comparison.report`."""
    from greenbatch.experiments.report import report_comparison
    from greenbatch.provenance import provenance
    from greenbatch.schedulers import input_files

    scenario, starts = comparison.scenario, comparison.starts
    file = Path(path) / "report.html" if Path(path).is_dir() else Path(path)
    files = input_files(comparison.deciders.values())
    record = provenance(
        scenario=scenario.resolved, inputs={**scenario.inputs, **files}, notes=scenario.notes,
        settings={
            "schedulers": list(comparison.schedulers), "rules": dict(comparison.rules), "baseline": comparison.baseline,
            "starts": list(starts), "jobs": comparison.jobs,
        },
    )  # fmt: skip
    report_comparison(file, comparison, command="in Python", provenance=record)
    return file
