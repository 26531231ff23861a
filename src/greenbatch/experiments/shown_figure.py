"""A Matplotlib figure that notebooks display without pyplot. Importing this module loads Matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure in the style of the report. It can be changed and saved like any other."""

    def _repr_svg_(self) -> str:
        from greenbatch.experiments.drawing import drawing

        stream = io.StringIO()
        with drawing():
            self.savefig(stream, format="svg", facecolor="white")
        text = stream.getvalue()
        return text[text.index("<svg") :]
