"""Markdown tables, and what docstrings say about arguments and attributes."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

NOTHING = "\N{EN DASH}"
"""Content of an empty cell."""


def table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(headers)
    lines = [_line(names), "|" + ":---|" * len(names), *(_line(_cell(cell) for cell in row) for row in rows)]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def markdown(doc: str | None) -> str:
    """A docstring in one line of Markdown: code in double backticks becomes code in single ones."""
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(inspect.cleandoc(doc or "").split()))


def first_paragraph(doc: str | None) -> str:
    """The first paragraph of a docstring, in one line of Markdown."""
    return markdown(inspect.cleandoc(doc or "").split("\n\n")[0])


def arguments(function: Callable[..., Any]) -> dict[str, str]:
    """Meaning of every argument, from the ``Args:`` of a docstring."""
    block = re.search(r"^Args:\n((?:    .*\n?|\n)+)", inspect.getdoc(function) or "", flags=re.MULTILINE)
    found = re.findall(r"^(\w+): (.*(?:\n    .*)*)", textwrap.dedent(block[1]) if block else "", flags=re.MULTILINE)
    return {name: markdown(text) for name, text in found}


def attributes(kind: type) -> dict[str, str]:
    """Meaning of every attribute of a class, from the string below it."""
    found, before = {}, ""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind)))):
        if not isinstance(node, ast.ClassDef):
            continue
        for statement in node.body:
            if before and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                found[before] = markdown(str(statement.value.value))
            before = ast.unparse(statement.target) if isinstance(statement, ast.AnnAssign) else ""
    return found
