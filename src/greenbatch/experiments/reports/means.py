"""The table of means of a comparison, as shown at a prompt and in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from greenbatch.display import Strong, html_table, to_pandas
from greenbatch.experiments.reports.columns import main_columns
from greenbatch.experiments.reports.notes import notes_of
from greenbatch.experiments.reports.tables import Table, comparison_table, idle_words
from greenbatch.experiments.reports.terminal import TerminalTable
from greenbatch.experiments.running.statistics import intervals
from greenbatch.notes import Note, lines

if TYPE_CHECKING:
    import pandas
    import polars

    from greenbatch.experiments.running.compare import Comparison


@dataclass(frozen=True, slots=True, repr=False)
class Means:
    """Means over the windows with their intervals, as a displayed table and as a frame."""

    shown: Table
    numbers: polars.DataFrame
    notes: tuple[Note, ...] = ()
    """Notes; those that matter stand above the table."""

    def frame(self) -> polars.DataFrame:
        """The numbers in the metrics' units: scheduler, metric, mean, low, high, windows; null if undefined."""
        return self.numbers

    def to_pandas(self) -> pandas.DataFrame:
        """The numbers as a pandas data frame, see `frame`.

        Raises:
            InputError: pandas is not installed.
        """
        return to_pandas(self.numbers)

    def _above(self) -> list[str]:
        """Lines above the table."""
        return lines((note for note in self.notes if note.matters), "notes")

    def __repr__(self) -> str:
        from rich.console import Console

        console = Console(width=100, color_system=None, force_jupyter=False)
        with console.capture() as written:
            for line in self._above():
                console.print(line, markup=False, highlight=False)
            console.print(TerminalTable(self.shown))
        return "\n".join(line.rstrip() for line in written.get().splitlines())

    def _repr_html_(self) -> str:
        header = [self.shown.corner, *(f"{name} [{unit}]" if unit else name for name, unit, _ in self.shown.columns)]
        rows = []
        for name, cells in self.shown.rows:
            texts = ["\n".join(filter(None, (cell.text, cell.interval, cell.remark))) for cell in cells]
            marked = zip(texts, cells, strict=True)
            rows.append((name, *(Strong(text) if cell.mark else text for text, cell in marked)))
        above = "".join(f"<p>{escape(line)}</p>" for line in self._above())
        return above + html_table(self.shown.title, header, rows, self.shown.lines)


def means(comparison: Comparison) -> Means:
    """The table of means of a comparison, with its notes."""
    import polars

    frame, idle = comparison.frame, idle_words(comparison.scenario.cluster)
    table = comparison_table(frame, title=comparison.title, currency=comparison.currency, idle=idle)
    rows = [
        (name, column.metric, each.mean, each.low, each.high, each.count)
        for column in main_columns(frame)
        for name, each in intervals(frame, column.metric).items()
        if each.count
    ]
    numbers = polars.DataFrame(rows, schema=["scheduler", "metric", "mean", "low", "high", "windows"], orient="row")
    return Means(table, numbers.with_columns(polars.col("mean", "low", "high").fill_nan(None)), notes_of(comparison))
