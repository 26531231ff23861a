"""Regenerate the README's table and picture: ``python docs/readme_figures.py`` prints the one and writes the other."""

from __future__ import annotations

import re
from pathlib import Path

import greenbatch as gb
from greenbatch.experiments.reports.columns import terminal_columns
from greenbatch.experiments.reports.drawing import standalone
from greenbatch.experiments.reports.tables import comparison_table, to_markdown
from greenbatch.experiments.reports.tradeoff import tradeoff_plot

PICTURE = Path(__file__).parent / "images" / "tradeoff.svg"


def figures() -> tuple[str, str]:
    """The table in Markdown, and the picture as SVG with plain colors on paper."""
    comparison = gb.compare("default")
    table = to_markdown(comparison_table(comparison.frame, columns=terminal_columns(comparison.frame)))
    picture = tradeoff_plot(comparison.frame, comparison.baseline)
    if picture is None:
        raise LookupError("the embedded scenario has no power")
    plain = re.sub(r"var\(--figure-[a-z]+, ([^)]*)\)", r"\1", standalone(picture))
    return table, plain.replace("</title>", '</title>\n <rect width="100%" height="100%" fill="#fdfdfc"/>', 1)


if __name__ == "__main__":
    made, svg = figures()
    PICTURE.write_text(svg, encoding="utf-8")
    print(made)
