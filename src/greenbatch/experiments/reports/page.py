"""A page as one self-contained HTML file, without scripts or network: first screen, tables, sections, provenance."""

# ruff: noqa: RUF001 - typographic dashes are meant for the reader.

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from greenbatch.experiments.reports.columns import MAIN, Column
from greenbatch.experiments.reports.first_screen import FirstScreen
from greenbatch.experiments.reports.sections import Section
from greenbatch.experiments.reports.tables import Table
from greenbatch.files import write_bytes
from greenbatch.metrics import METRICS
from greenbatch.notes import Note, ordered

TEMPLATES = Path(__file__).parent / "templates"


def write_page(
    path: str | Path,
    *,
    title: str,
    command: str,
    first: FirstScreen | None = None,
    baseline: str = "",
    tables: Sequence[Table] = (),
    sections: Sequence[Section] = (),
    summary: Sequence[str] = (),
    notes: Sequence[Note | str] = (),
    explained: Sequence[tuple[str, str]] = (),
    provenance: Mapping[str, Any] | None = None,
    colors: Mapping[str, str] | None = None,
) -> None:
    """Write tables and pictures as one self-contained HTML file; same inputs, same bytes.

    Args:
        path: the file; replaced atomically, untouched on failure.
        title: title of the page.
        command: the command line that made it.
        first: the first screen: a sentence, tiles and a picture.
        baseline: the scheduler that is called so beside its name.
        tables: tables in order.
        sections: sections with pictures and further tables.
        summary: what was found, in sentences, above the tables.
        notes: notes, and text, which is a fact; those that matter (`Note.matters`) stand above the tables, the others
            are folded.
        explained: (word, meaning), see `definitions`.
        provenance: versions, seeds, hashes, resolved scenario; nested mappings are shown as JSON.
        colors: scheduler -> its color, shown beside its name.

    Raises:
        InputError: the file cannot be written.
    """
    every = ordered(Note(each, level="fact") if isinstance(each, str) else each for each in notes)
    context = {
        "title": title, "command": command, "first": first, "baseline": baseline, "tables": list(tables),
        "sections": list(sections), "summary": list(summary), "caveats": [str(note) for note in every if note.matters],
        "notes": [str(note) for note in every if not note.matters],
        "definitions": list(explained), "provenance": provenance_blocks(provenance or {}),
        "colors": dict(colors or {}),
    }  # fmt: skip
    write_bytes(Path(path), render(context).encode())


def render(context: Mapping[str, Any]) -> str:
    """Render the template; everything except our own SVG is escaped."""
    return str(_template().render(context))


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html.j2")


def definitions(columns: Sequence[Column] = MAIN) -> list[tuple[str, str]]:
    """Label and formula, from the docstring, of the metrics of some columns and of the horizon, as HTML."""
    from markupsafe import Markup, escape

    found: list[tuple[str, str]] = []
    for m in (METRICS[name] for name in (*(c.metric for c in columns), "horizon_s", "horizon_unfinished_share")):
        text = str(escape(" ".join(m.doc.replace(", shape (n,)", "").split())))
        text = re.sub(r"\*(\w+)\*", r"<em>\1</em>", re.sub(r"``?([^`]+)``?", r"<code>\1</code>", text))
        found.append((m.label, Markup(text)))  # noqa: S704 - escaped above, only our own tags are added
    return found


def provenance_blocks(provenance: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]], str]]:
    """(heading, rows of key and value, text) per entry: flat mappings as rows, nested values as JSON."""
    single: list[tuple[str, str]] = []
    blocks: list[tuple[str, list[tuple[str, str]], str]] = []
    for key, value in provenance.items():
        if not isinstance(value, (Mapping, list, tuple)):
            single.append((str(key), "–" if value is None else str(value)))
        elif isinstance(value, Mapping) and not any(isinstance(v, (Mapping, list, tuple)) for v in value.values()):
            blocks.append((str(key), [(str(k), "–" if v is None else str(v)) for k, v in value.items()], ""))
        else:
            blocks.append((str(key), [], json.dumps(value, indent=2, default=str, ensure_ascii=False)))
    return [("", single, ""), *blocks] if single else blocks
