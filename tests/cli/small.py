"""A question of 60 jobs that needs no file, a slow policy, and a cell that fails."""

from __future__ import annotations

import pytest

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
