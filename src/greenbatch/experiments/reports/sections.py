"""Sections of a report: pictures and tables under one heading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from greenbatch.experiments.reports.drawing import Picture
from greenbatch.experiments.reports.looks import Looks
from greenbatch.experiments.reports.tables import Table


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend."""

    label: str
    color: str
    line: bool = False
    """Shown as a line instead of a square."""


@dataclass(frozen=True, slots=True)
class Section:
    """Pictures and tables under one heading of a report."""

    title: str
    text: str
    """What the pictures and tables show, and what they omit."""
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    panels: bool = False
    """The pictures are small multiples: side by side, each under its own title."""
    keys: tuple[Key, ...] = ()
    """One legend for all pictures."""
    folded: bool = False
    """Only the heading is shown until a reader opens it; printed in full."""


def scheduler_keys(names: Iterable[str], looks: Looks) -> tuple[Key, ...]:
    """The legend of pictures of several schedulers."""
    return tuple(Key(name, looks[name].color) for name in names)
