"""How long work shows that it is alive: one line on stderr that is rewritten, only where a person looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_line() -> Iterator[Callable[[str, int, int], None]]:
    """A function (what, done, total) that shows what is being done; the line is gone at the end."""
    shown = sys.stderr.isatty()

    def show(what: str, done: int, total: int) -> None:
        if shown:
            print(f"\r\x1b[K{done + 1} of {total}: {what}"[:120], end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
