"""Decisions recorded per second, and what a million of them takes on disk.

``python benchmarks/recording.py`` records RARE's rules with the preset ``rare-offline``, without its image, and the log
of HPC2N as recorded with the preset ``rlscheduler`` if ``GREENBATCH_DATA`` has it. Times are of the wall clock and
include simulation and writing, but neither compilation nor reading the trace. ``--json`` prints one object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from greenbatch import datasets, load_scenario
from greenbatch.errors import InputError
from greenbatch.presets.preset import preset

CASES: dict[str, tuple[str, str, str]] = {
    "rare-offline": ("rare/10-training", "rare-offline", "qos+none,sjf+none,fcfs+none,hvf+none"),
    "HPC2N": ("logs/hpc2n", "rlscheduler", "as-recorded"),
    "HPC2N, rules": ("logs/hpc2n", "rlscheduler", "fcfs+easy,f2+easy"),
}
"""Name -> scenario, preset, schedulers."""


def measured(scenario: str, name: str, schedulers: str, decisions: int, threads: int) -> dict[str, Any]:
    """Seconds and megabytes of a recording, and of reading it."""
    question, made = load_scenario(scenario), preset(name)
    seen = made.observation.model_copy(update={"image": type(made.observation.image)()})
    made = made.model_copy(update={"observation": seen})
    for count in (1, decisions):  # the first compiles the engine
        with tempfile.TemporaryDirectory() as place:
            begun = time.perf_counter()
            planned = datasets.recording(question, made, schedulers, decisions=count, threads=threads)
            record = datasets.write(planned, Path(place))
            seconds = time.perf_counter() - begun
            megabytes = sum(file.stat().st_size for file in Path(place).iterdir()) / 1e6
    return {
        "decisions": record.decisions, "seconds": round(seconds, 1), "megabytes": round(megabytes, 1),
        "decisions_per_s": round(record.decisions / seconds), "late": sum(each.late for each in record.schedulers),
        "unseen": sum(each.unseen for each in record.schedulers),
    }  # fmt: skip


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for name, case in CASES.items():
        try:
            found[name] = measured(*case, given.decisions, given.threads)
        except InputError as error:
            found[name] = {"left_out": str(error)}
    if given.json:
        print(json.dumps(found))
        return
    for name, figures in found.items():
        print(name, ", ".join(f"{key} {value:,}" if key != "left_out" else value for key, value in figures.items()))


if __name__ == "__main__":
    main()
