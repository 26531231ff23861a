"""A study of seconds: a paper's agents on small model jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from greenbatch.experiments.papers.studies import STUDIES, Budget, Study

SCENARIO = """\
name = "{name}"
[workload.generator]
model = "lublin"
jobs = 160
seed = {seed}
gap_factor = 0.3
processors = {processors}
[workload.power]
kind = "per-processor"
[cluster]
processors = {processors}
{site}
[rules]
commitment = "sticky"
[evaluation]
starts = [90, 100]
jobs = 50
schedulers = ["fcfs+easy"]
"""
SITE = """\
[site]
kind = "synthetic"
days = 20
area_m2 = 20
rated_w = 700
repeat = true
"""
NO_SITE = """\
[site]
kind = "none"
"""
BUDGET = Budget(
    epochs=2,
    threads=1,
    overrides={
        "training.windows": 2, "training.jobs": 10, "training.passes": 1, "training.minibatch": 16,
        "training.validation.windows": 2, "training.validation.jobs": 10, "training.validation.every": 1,
    },
)  # fmt: skip
"""Two epochs of two windows of ten jobs."""


def tiny_study(name: str, folder: Path) -> Study:
    """A study of small traces: one with power for ``gas-marl``, two of different machines for ``rlscheduler``."""
    sizes = {"Tiny": 16} if name == "gas-marl" else {"Tiny": 16, "Small": 8}
    site = SITE if name == "gas-marl" else NO_SITE
    traces = {}
    for seed, (trace, processors) in enumerate(sizes.items(), 3):
        file = folder / f"{trace.lower()}.toml"
        file.write_text(SCENARIO.format(name=trace.lower(), seed=seed, processors=processors, site=site))
        traces[trace] = str(file)
    etas = {"Tiny": 0.004} if name == "gas-marl" else {}
    return replace(STUDIES[name], traces=traces, usual_traces=tuple(traces), etas=etas)
