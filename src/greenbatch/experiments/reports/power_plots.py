"""Pictures of the power of a cluster against its supply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.engine.outcome import Outcome
from greenbatch.experiments.reports.drawing import PANEL_IN, WIDTH_IN, Picture, drawing, new_figure, slug
from greenbatch.experiments.reports.sections import Key
from greenbatch.experiments.reports.spans import seconds_since

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from greenbatch.engine.accounts import Segments

RENEWABLE, COVERED, BROWN, STORED, CHARGED = "#009e73", "#56b4e9", "#d55e00", "#cc79a7", "#8c8c8c"
SUPPLY = "renewable supply"
AREAS = {
    "renewable, at once": (COVERED, 0.55), "from storage": (STORED, 0.75), "from the grid": (BROWN, 0.8),
    "into storage, from the grid": (CHARGED, 0.5),
}  # fmt: skip
"""Parts of the power drawn, from the bottom up -> color and opacity."""


def power_keys(pictures_of: Mapping[str, Outcome]) -> tuple[Key, ...]:
    """The legend of the pictures of power; storage only where a site has some."""
    stored = any(o.site is not None and o.site.storage is not None for o in pictures_of.values())
    shown = [name for name in AREAS if stored or "storage" not in name]
    return (*(Key(name, AREAS[name][0]) for name in shown), Key(SUPPLY, RENEWABLE, line=True))


def power_span(outcomes: Mapping[str, Outcome], hours: float = 48.0) -> tuple[float, float]:
    """Start and end [s] of the busiest hours, starting whole days after the first submission."""
    first = min(float(o.workload.submit_s.min()) for o in outcomes.values())
    end = min(o.last_s for o in outcomes.values())
    starts = np.arange(first, max(end - hours * 3600.0, first) + 1.0, 86_400.0)
    work = np.zeros(len(starts))
    for o in outcomes.values():
        for times, sign in ((starts + hours * 3600.0, 1), (starts, -1)):
            job, start_s, end_s = o.spans
            processors = o.workload.processors[job]
            work += sign * (seconds_since(start_s, times, processors) - seconds_since(end_s, times, processors))
    start = float(starts[np.argmax(work)])
    return start, start + hours * 3600.0


def power_plots(outcomes: Mapping[str, Outcome], hours: float = 48.0, *, panels: bool = False) -> list[Picture]:
    """Power against supply, one picture per scheduler, with common hours and scale; empty without a site.

    Args:
        outcomes: scheduler -> outcome of one window.
        hours: length of the busiest time that is shown.
        panels: draw panels of small multiples, without legends: see `power_keys`.

    Source of the form: GAS-MARL Fig. 7.
    """
    from greenbatch.engine.accounts import books, power_segments

    powered = {name: o for name, o in outcomes.items() if o.site is not None and np.isfinite(o.workload.power_w).all()}
    if not powered:
        return []
    start, end = power_span(powered, hours)
    first = min(float(o.workload.submit_s.min()) for o in powered.values())
    spans = {name: (start, min(end, o.last_s)) for name, o in powered.items()}
    segments = {name: power_segments(o, *spans[name]) for name, o in powered.items()}
    top_kw = max(float(max(s.load_w.max(), s.renewable_w.max(), s.import_w.max())) for s in segments.values()) / 1e3
    pictures = []
    for k, (name, segment) in enumerate(segments.items()):
        account = books(powered[name], *spans[name])
        brown_kwh = account.grid_j / 3.6e6
        share = account.renewable_used_j / account.load_j if account.load_j else 1.0
        with drawing():
            figure, axes = new_figure(1.45 if panels else 2.3, PANEL_IN if panels else WIDTH_IN)
            _areas(axes, segment, first)
            axes.set(xlim=((start - first) / 3600, (end - first) / 3600), ylim=(0, 1.06 * top_kw or 1.0))
            axes.set(xlabel="hours since the first submission", ylabel="power [kW]")
            axes.set_xticks(np.arange((start - first) / 3600, (end - first) / 3600 + 1, hours / (4 if panels else 8)))
            if not panels:
                figure.legend(loc="outside upper left", ncols=3)
            title = name if panels else f"Power against supply: {name}"
            caption = f"{brown_kwh:,.1f} kWh from the grid, {share:.0%} renewable."
            alt = (
                f"Area chart of cluster power under {name} over {hours:g} hours against renewable supply. "
                f"{share:.0%} of the energy is renewable, {brown_kwh:,.1f} kWh come from the grid."
            )
            pictures.append(Picture(f"power-{k}-{slug(name)}", title, caption, alt, figure))
    return pictures


def _areas(axes: Axes, segment: Segments, first_s: float) -> None:
    """The parts of the power drawn, one above the other, and the supply as a line."""
    edges = (np.append(segment.start_s, segment.end_s[-1]) - first_s) / 3600.0
    load, supply, imported = (
        np.append(w, w[-1]) / 1e3 for w in (segment.load_w, segment.renewable_w, segment.import_w)
    )
    direct = np.minimum(load, supply)
    brown = np.minimum(imported, load - direct)
    parts = dict(zip(AREAS, (direct, load - direct - brown, brown, imported - brown), strict=True))
    below: Any = 0.0
    for name, part in parts.items():
        if part.max() > 1e-9 * max(float(load.max()), 1e-9):
            color, alpha = AREAS[name]
            axes.fill_between(
                edges, below, below + part, step="post", color=color, alpha=alpha, linewidth=0, label=name
            )
        below = below + part
    axes.step(edges, supply, where="post", color=RENEWABLE, linewidth=1.2, label=SUPPLY)
