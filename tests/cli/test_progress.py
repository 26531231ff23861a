"""What is shown while something takes its time: in a terminal, in a log, and nothing for short work."""

from __future__ import annotations

import re
import sys
import time

import pytest

from greenbatch.cli import progress, training_progress
from greenbatch.cli.progress import TimeLeft, clock, progress_line


class Terminal:
    """Collects what is written."""

    def __init__(self, *, terminal: bool) -> None:
        self.text, self.terminal = "", terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        """Everything is here already."""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOG_S", 0.2)
    monkeypatch.setattr(progress, "REWRITE_S", 0.05)


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, pause_s: float, calls: int = 4) -> str:
    screen = Terminal(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_line() as show:
        for done in range(calls):
            show(f"part {done}", done, calls)
            time.sleep(pause_s)
    return screen.text


def test_a_terminal_has_one_line_with_done_total_elapsed_and_left(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    text = shown(monkeypatch, terminal=True, pause_s=0.01)
    lines = text.split("\r\x1b[K")
    assert lines[1] == "0/4  0:00:00 elapsed  part 0"
    assert lines[-2] == "3/4  0:00:00 elapsed, about 0:00:00 left  part 3"
    assert lines[-1] == "", "the line is gone at the end"
    assert "\n" not in text


def test_a_line_is_cut_to_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    text = shown(monkeypatch, terminal=True, pause_s=0)
    lines = text.split("\r\x1b[K")
    assert max(map(len, lines)) == 29
    assert lines[-2] == "3/4  0:00:00 elapsed, about …"


def test_elapsed_time_advances_between_steps(monkeypatch, soon):
    text = shown(monkeypatch, terminal=True, pause_s=0.5, calls=1)
    assert text.count("0/1") >= 3


def test_a_log_gets_one_line_per_interval_and_none_for_short_work(monkeypatch, soon):
    assert shown(monkeypatch, terminal=False, pause_s=0) == ""
    begin_s = time.perf_counter()
    lines = shown(monkeypatch, terminal=False, pause_s=0.3).splitlines()
    assert 1 <= len(lines) <= (time.perf_counter() - begin_s) / 0.2
    assert all(re.fullmatch(r"\d/4  0:00:0\d elapsed(, about 0:00:0\d left)?  part \d", line) for line in lines)


def test_time_left_counts_only_what_was_done_since(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    left = TimeLeft()
    assert left.text(0.5) == "0:00:00 elapsed"
    now[0] += 600
    assert left.text(0.55) == "0:10:00 elapsed", "the first step compiles: nothing follows from it"
    now[0] += 60
    assert left.text(0.65) == "0:11:00 elapsed, about 0:03:30 left", "a tenth in a minute, three and a half to come"
    assert left.text(1) == "0:11:00 elapsed"
    assert left.text(0.2) == "0:00:00 elapsed", "new work"
    assert clock(3723.4) == "1:02:03"


def test_a_log_of_a_training_has_the_first_line_the_last_and_one_a_minute(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    lines = training_progress.Lines(200)
    for epoch in range(1, 201):
        now[0] += 2.0
        lines.watch({"epoch": epoch, "progress": epoch / 200, "return": 0.5})
    told = capsys.readouterr().out.splitlines()
    epochs = [int(re.match(r"epoch (\d+)/200  return 0.5  ", line)[1]) for line in told]
    assert epochs == [1, 31, 61, 91, 121, 151, 181, 200]
    assert told[1].endswith("0:01:00 elapsed, about 0:05:38 left")


def test_a_line_about_compiling_stands_alone(monkeypatch):
    from greenbatch.machine_code import kept

    for terminal, before in ((True, "\r\x1b[K"), (False, "")):
        screen = Terminal(terminal=terminal)
        monkeypatch.setattr(sys, "stderr", screen)
        with kept.announced(None, "a part that is never kept"):
            pass
        assert screen.text == (
            f"{before}greenbatch: compiling the engine (a part that is never kept; in every process) ...\n"
        )
