"""The pages of the documentation, cut into what can be checked: commands, Python, links, headings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
"""All pages, without what a build of the documentation leaves behind."""
PAGES = tuple(page for page in PAGES if "_build" not in page.parts)

_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks of a language."""
    return [body for name, body in _FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def commands(page: Path) -> list[list[str]]:
    """Words of every ``greenbatch`` command in a shell block, without the name itself."""
    lines = [line for block in blocks(page, "shell") for line in block.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line[1:] for line in words if line[:1] == ["greenbatch"]]


def mentioned_commands(page: Path) -> list[list[str]]:
    """Words of every ``greenbatch`` command in running text."""
    return [shlex.split(code)[1:] for code in _INLINE.findall(prose(page)) if code.startswith("greenbatch ")]


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """File and anchor of every link to a file of the repository; the page itself for a bare anchor."""
    for match in _LINK.finditer(prose(page)):
        target, _, anchor = (match[1] or match[2]).partition("#")
        if "://" not in target:
            yield (page.parent / target if target else page), anchor


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as the documentation and code hosts make them."""
    heads = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
