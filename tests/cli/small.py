"""A question of 60 jobs that needs no file, and a slow policy."""

from __future__ import annotations

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
