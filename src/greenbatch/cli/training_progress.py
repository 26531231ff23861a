"""Progress of a training: a bar in a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from greenbatch.cli.progress import LOG_S, TimeLeft

if TYPE_CHECKING:
    from rich.progress import Progress

Record = dict[str, Any]


class Lines:
    """Prints the figures of epochs: the first, the last, and at most one line per minute in between."""

    def __init__(self, epochs: int | None) -> None:
        self.total = "" if epochs is None else f"/{epochs}"
        self.time_left, self.printed = TimeLeft(), float("-inf")

    def line(self, record: Record) -> str:
        """The figures of an epoch, the time since the first one, and the time left."""
        time_left = self.time_left.text(record["progress"])
        return "  ".join((f"epoch {record['epoch']}{self.total}", *_figures(record), time_left))

    def watch(self, record: Record) -> None:
        """An epoch is done."""
        line, now = self.line(record), time.perf_counter()
        if record["progress"] >= 1 or now - self.printed >= LOG_S:
            self.printed = now
            print(line, flush=True)

    def tell(self, what: str, done: int, total: int) -> None:
        """Progress of other work; not printed to logs."""


class _Bar(Lines):
    """Shows a bar, and a line per validation."""

    def __init__(self, epochs: int | None, bar: Progress) -> None:
        super().__init__(epochs)
        self.bar, self.task = bar, bar.add_task("before the first epoch", total=1.0)

    def watch(self, record: Record) -> None:
        """An epoch is done."""
        text = self.line(record)
        self.bar.update(self.task, completed=record["progress"], description=text)
        if "validation" in record:
            self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def tell(self, what: str, done: int, total: int) -> None:
        """Progress of other work."""
        self.bar.update(self.task, description=f"{what}: {done} of {total}")


@contextmanager
def training_progress(epochs: int | None) -> Iterator[Lines]:
    """A bar in a terminal, lines otherwise."""
    if not sys.stdout.isatty():
        yield Lines(epochs)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    with Progress(*columns, transient=True) as bar:
        yield _Bar(epochs, bar)


_SHOWN = (
    ("decisions_per_s", "{:,.0f} decisions/s"), ("return", "return {:.4g}"), ("kl", "KL {:.2g}"),
    ("entropy", "entropy {:.3g}"), ("validation", "validation {:.5g}"), ("validation_average", "averaged {:.5g}"),
)  # fmt: skip
"""Displayed figures of an epoch."""
_WEIGHT = "multiplier_"
"""Before the name of a constrained term; both are displayed."""


def _figures(record: Record) -> list[str]:
    found = [form.format(record[name]) for name, form in _SHOWN if name in record]
    costs = [name.removeprefix(_WEIGHT) for name in record if name.startswith(_WEIGHT)]
    found += [f"{name} {record[name]:.4g} x {record[_WEIGHT + name]:.3g}" for name in costs]
    return [*found, "best so far"] if record.get("better") else found
