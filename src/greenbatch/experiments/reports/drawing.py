"""The style of all pictures, and deterministic SVG with themable colors.

Each picture is 4 inches wide with 8 pt text: its text is 10 px high at 390 px, and about 15 px in a two-column page at
1280 px. Ink and grid are CSS variables with a fallback, so a page can change them for a dark background. Colors follow
Okabe and Ito, for color-blind readers; lines and markers differ in shape as well.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN = 4.0
"""Width of a picture. [inch]"""
PANEL_IN = 2.7
"""Width of a panel of small multiples: four stand side by side in a page of 1280 px. [inch]"""
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c8c8c", "#b3a100", "#5e3c99", "#8c510a",
          "#7fbf3f", "#c2185b")  # fmt: skip
"""Series colors: eight after Okabe and Ito (2008), with yellow darkened for contrast on white, and four more."""
MARKERS = "osD^vPX"
"""Seven, so that 84 schedulers differ in color or marker."""
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.6)), (0, (1, 1.3)), (0, (5, 1.3, 1, 1.3)))
"""Solid, dashed, dotted and dash-dotted; they are others when colors repeat."""
INK, PALE, PAPER = "#1b2430", "#c9ced6", "#fdfdfc"
"""Text and axes; grid lines; background. Replaced by CSS variables in the SVG."""


@dataclass(frozen=True)
class Picture:
    """A figure with its texts."""

    name: str
    """Unique within a page; prefixes every id in the SVG."""
    title: str
    caption: str
    """What it shows and what it omits."""
    alt: str
    """Alternative text for readers who cannot see it."""
    figure: Figure = field(repr=False, compare=False)

    @cached_property
    def svg(self) -> str:
        """A complete ``<svg>`` element without prolog, network addresses or scripts; its title is ``alt``."""
        with drawing():
            body = _svg(self.figure, self.name)
        end = body.index(">") + 1
        return f'{body[:end]}<title id="{self.name}-alt">{escape(self.alt)}</title>{body[end:]}'


def _style() -> dict[str, Any]:
    return {
        "svg.fonttype": "none", "text.parse_math": False, "font.family": "DejaVu Sans", "font.size": 8,
        "axes.labelsize": 8, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "legend.fontsize": 7.5,
        "legend.frameon": False, "legend.handlelength": 2.4, "legend.columnspacing": 1.2, "legend.labelspacing": 0.35,
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7, "axes.edgecolor": INK,
        "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "xtick.major.width": 0.7,
        "ytick.major.width": 0.7, "xtick.major.size": 3, "ytick.major.size": 3, "axes.grid": True, "grid.color": PALE,
        "grid.linewidth": 0.5, "axes.axisbelow": True, "axes.facecolor": "none", "figure.facecolor": "none",
        "savefig.facecolor": "none", "figure.constrained_layout.use": True, "lines.linewidth": 1.3,
        "hatch.linewidth": 0.5, "path.simplify": False,
    }  # fmt: skip


@contextmanager
def drawing() -> Iterator[None]:
    """Context with Matplotlib's defaults plus our style, independent of the user's settings."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_style())  # type: ignore[arg-type]  # keys are typed as literals
        yield


def new_figure(height_in: float, width_in: float = WIDTH_IN) -> tuple[Figure, Axes]:
    """An empty figure with one plot, without pyplot."""
    figure = empty_figure(height_in, width_in)
    return figure, figure.subplots()


def empty_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure, which notebooks display without pyplot."""
    return _shown_figure()(figsize=(width_in, height_in))


@cache
def _shown_figure() -> type[Figure]:
    """A class of figures in our style that can be changed and saved like any other; made on first use."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_svg_(self) -> str:
            stream = io.StringIO()
            with drawing():
                self.savefig(stream, format="svg", facecolor="white")
            text = stream.getvalue()
            return text[text.index("<svg") :]

    return ShownFigure


def _svg(figure: Figure, name: str) -> str:
    """The figure as an inline SVG: same bytes for the same figure, unique ids, themable ink."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = name
    text = _drawn(figure)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\s(?:xmlns(?::xlink)?|version)="[^"]*"', "", text, count=3)
    text = text.replace("xlink:href", "href")
    text = re.sub(r"""(\bid="|href="#|url\(#)""", rf"\g<1>{name}-", text)
    # Round coordinates only, not the text.
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), text)
    text = re.sub(r"'DejaVu Sans'(?:, [^;\"]*)?", "var(--figure-font, 'DejaVu Sans', sans-serif)", text)
    for color, variable in ((INK, "ink"), (PALE, "grid"), (PAPER, "paper")):
        text = text.replace(color, f"var(--figure-{variable}, {color})")
    width, height = (float(x) for x in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0])
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}pt" height="{height:g}pt"'
    return re.sub(r"<svg[^>]*>", f'<svg role="img" aria-labelledby="{name}-alt" {size}>', text, count=1).strip()


def _drawn(figure: Figure) -> str:
    """What `savefig` writes, in one pass: it draws everything twice, first to find the layout, as drawing does."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stream, canvas, dpi = io.StringIO(), figure.canvas, figure.dpi
    nothing: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    try:
        paper: Any = FigureCanvasSVG(figure)
        paper.print_svg(stream, metadata=nothing)
    finally:
        figure.set_canvas(canvas)
        figure.dpi = dpi
    return stream.getvalue()


def standalone(picture: Picture) -> str:
    """The picture as a standalone SVG file."""
    return picture.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def color_of(index: int) -> str:
    """The color of the scheduler with an index, throughout a report."""
    return COLORS[index % len(COLORS)]


def marker_of(index: int) -> str:
    """The marker of the scheduler with an index."""
    return MARKERS[index % len(MARKERS)]


def dash_of(index: int) -> Any:
    """The line style of the scheduler with an index; it changes when colors repeat."""
    return DASHES[(index + index // len(COLORS)) % len(DASHES)]


def marked(index: int, series: int) -> dict[str, Any]:
    """Keywords that add sparse markers to a line if there are more series than colors."""
    if series <= len(COLORS):
        return {}
    return {"marker": marker_of(index), "markersize": 3.2, "markevery": ((index % 8) * 0.012 + 0.01, 0.11)}


def legend_room(names: Sequence[str], *, several: bool = True, width: int = 40) -> tuple[int, float]:
    """Columns and height [inch] of a legend below a picture, for names wrapped at ``width`` characters."""
    columns = 1 if not several or max(map(len, names), default=0) > 22 else 2
    lines = sum(1 + wrapped(name, width).count("\n") for name in names)
    return columns, 0.165 * math.ceil(lines / columns)


def slug(name: str) -> str:
    """A name in the form of an id."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"


def wrapped(name: str, width: int) -> str:
    """A scheduler name wrapped at ``width`` characters, broken at its punctuation."""
    lines = [""]
    for part in re.split(r"(?<=[:,/])|(?=\+)", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def plain_log_ticks(axes: Axes, *, dimension: str = "x") -> None:
    """Plain numbers at 1, 2, 5 times powers of ten, or only at powers of ten if the range is long."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if dimension == "x" else axes.yaxis
    low, high = sorted(axis.get_data_interval())
    decades = math.log10(high / low) if low > 0 else 3.0
    axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0) if decades < 2.2 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
    axis.set_minor_formatter(NullFormatter())
