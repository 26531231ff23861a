"""A question of 60 jobs that needs no file, a slow policy, a cell that fails, and reports without pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from greenbatch.experiments.reports import drawing, first_screen, report, sweep_screen, sweeps
from greenbatch.experiments.running.cells import Question

SMALL = """\
name = "small"
[workload.generator]
model = "lublin"
jobs = 60
seed = 1
processors = 32
[workload.power]
kind = "per-processor"
[cluster]
processors = 32
[site]
kind = "synthetic"
days = 3
area_m2 = 20
rated_w = 700
[evaluation]
windows = 3
jobs = 20
schedulers = ["fcfs+easy", "f2+green"]
"""

SLOW = """\
import time
import greenbatch as gb

@gb.policy("slow")
class Slow:
    def decide(self, view):
        time.sleep(SECONDS)
        return gb.Start(0)
"""
"""A policy that takes its time: SECONDS per decision."""


def failing(monkeypatch: pytest.MonkeyPatch, call: int, error: BaseException) -> list[object]:
    """Let an error come with a call to simulate a cell; the calls."""
    real, calls = Question.simulated, []

    def simulated(*given: object) -> object:
        calls.append(given)
        if len(calls) == call:
            raise error
        return real(*given)

    monkeypatch.setattr(Question, "simulated", simulated)
    return calls


def without_pictures(patch: pytest.MonkeyPatch) -> None:
    """Reports have no pictures, which take longer than a small comparison; those of a sweep are empty."""
    nothing: Any = None
    empty = drawing.Picture("empty", "", "", "", figure=nothing)
    patch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
    patch.setattr(report, "picture_sections", lambda *_, **__: [])
    patch.setattr(first_screen, "tradeoff_plot", lambda *_, **__: None)
    patch.setattr(sweep_screen, "path_plot", lambda *_, **__: None)
    patch.setattr(sweeps, "sweep_plot", lambda *_, **__: empty)


PICTURELESS = """
from greenbatch.experiments.reports import first_screen, report
report.picture_sections, first_screen.tradeoff_plot = (lambda *_, **__: []), (lambda *_, **__: None)
"""
"""The same of a comparison in a process of its own."""


def without_command(file: Path) -> bytes:
    """A file without the command line, which a report and the provenance quote, and the checksum of such a report."""
    content = re.sub(rb'("|&#34;)command\1: \[[^]]*\]|greenbatch compare [^<\n]*', b"", file.read_bytes())
    return re.sub(rb'"report.html": "\w+"', b"", content)
