"""Progress on stderr: one rewritten line in a terminal, one line per minute otherwise."""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

REWRITE_S = 1.0
"""Interval between updates of the line in a terminal. [s]"""
LOG_S = 60.0
"""Interval between lines in a log. [s]"""


def clock(seconds: float) -> str:
    """A duration as hours, minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


class TimeLeft:
    """Estimates the time left; the first step is left out, because it compiles the engine and starts processes."""

    def __init__(self) -> None:
        self.begun, self.first, self.last = 0.0, 0.0, math.inf
        self.counted: tuple[float, float] | None = None

    def text(self, share: float) -> str:
        """Time since the first call and, from the second step on, the time left.

        Args:
            share: fraction of the work that is done, in [0, 1]; if it falls, new work has begun.
        """
        now = time.perf_counter()
        if share < self.last:
            self.begun, self.first, self.counted = now, share, None
        self.last = share
        spent = f"{clock(now - self.begun)} elapsed"
        if self.counted is None:
            self.counted = (now, share) if share > self.first else None
            return spent
        at, before = self.counted
        return (
            f"{spent}, about {clock((now - at) * (1 - share) / (share - before))} left" if before < share < 1 else spent
        )


@contextmanager
def progress_line() -> Iterator[Callable[[str, int, int], None]]:
    """A function (what, done, total) that shows progress; the line in a terminal is cleared at the end."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    time_left, over = TimeLeft(), threading.Event()
    now: list[tuple[str, int, int]] = []

    def write() -> None:
        if now and not over.is_set():
            what, done, total = now[-1]
            line = f"{done}/{total}  {time_left.text(done / total)}  {what}"
            width = shutil.get_terminal_size().columns - 1
            shown = line if len(line) <= width else f"{line[: width - 1]}…"
            print(f"\r\x1b[K{shown}" if terminal else line, end="" if terminal else "\n",
                  file=sys.stderr, flush=True)  # fmt: skip

    def show(what: str, done: int, total: int) -> None:
        time_left.text(done / total)
        now[:] = [(what, done, total)]
        if terminal:
            write()

    def keep_writing() -> None:
        while not over.wait(REWRITE_S if terminal else LOG_S):
            write()

    writer = threading.Thread(target=keep_writing, daemon=True)
    writer.start()
    try:
        yield show
    finally:
        over.set()
        writer.join()
        if terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
