"""A question of 60 jobs that needs no file."""

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
