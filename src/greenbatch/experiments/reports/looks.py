"""How a scheduler is drawn: one color, marker and dash in every picture, table and tile of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from greenbatch.experiments.reports.drawing import color_of, dash_of, marker_of


@dataclass(frozen=True, slots=True)
class Look:
    """How one scheduler is drawn."""

    color: str
    """As ``#rrggbb``."""
    marker: str
    """Of its points, in Matplotlib's letters."""
    dash: Any = "-"
    """Of its lines, as Matplotlib's ``linestyle``."""


Looks = Mapping[str, Look]
"""Scheduler -> how it is drawn."""


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The looks of some schedulers, by their order; the same order gives the same looks."""
    return {name: Look(color_of(k), marker_of(k), dash_of(k)) for k, name in enumerate(dict.fromkeys(names))}
