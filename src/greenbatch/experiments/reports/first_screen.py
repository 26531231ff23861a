"""What a report shows first: one sentence, four tiles and the trade-off picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from greenbatch.experiments.reports.answer import KeyFigure, key_figures, trade_sentence, unfinished_note
from greenbatch.experiments.reports.drawing import Picture
from greenbatch.experiments.reports.findings import value_lines
from greenbatch.experiments.reports.looks import Looks
from greenbatch.experiments.reports.tradeoff import tradeoff_plot
from greenbatch.experiments.running.model_warnings import marked

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """The top of a page."""

    sentence: str
    tiles: Sequence[KeyFigure] = ()
    """Four fit beside the picture."""
    picture: Picture | None = None
    note: str = ""
    """A reservation, in small letters under the sentence."""


def first_screen(
    frame: polars.DataFrame, baseline: str, *, currency: str = "", looks: Looks | None = None,
    marks: Mapping[str, str] | None = None, sentence: str = "", missing: str = "",
) -> FirstScreen:  # fmt: skip
    """The top of the report of a comparison.

    Args:
        frame: tidy results (window, scheduler, metric, value).
        baseline: what the schedulers are compared with.
        currency: name of the currency of the site's prices, such as ``EUR``.
        looks: scheduler -> color and marker.
        marks: schedulers whose names are marked, see `Comparison.marks`; those that are not causal cannot win.
        sentence: instead of the sentence that names the trade.
        missing: sentence on jobs that are left out, which comes first.
    """
    told = marked(frame, baseline, marks or {})
    sentence = sentence or next(iter(value_lines(*told)), "") or trade_sentence(*told, currency)
    return FirstScreen(
        f"{missing} {sentence}".strip(), key_figures(*told, currency),
        tradeoff_plot(frame, baseline, currency=currency, looks=looks, marks=marks or {}), unfinished_note(*told),
    )  # fmt: skip
