"""What it costs to distribute a campaign: 100 sizes of a battery x 20 schedulers x a month of HPC2N, 2,000 runs.

``python benchmarks/campaign.py`` plays it in one process, in two processes and on a Ray cluster of two processors that
is started for it, each as a sweep that keeps its finished windows on disk. The overhead is the processor time that was
available to the sweep, less what the runs themselves took (simulation and metrics, measured where they run), relative
to that. It includes starting the processes or the cluster, sending the scenarios and loading the compiled engine, but
neither reading the scenarios, which is shown, nor drawing the report: both do not depend on the workers. ``--values``
plays fewer sizes: the memory of the command itself should hardly depend on it. Requires ``GREENBATCH_DATA``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from greenbatch import load_scenario
from greenbatch.experiments.reports.sweeps import sweep_record
from greenbatch.experiments.running.cells import Cell, Figures, Question
from greenbatch.experiments.running.pieces import Pieces
from greenbatch.experiments.running.sweep import setting
from greenbatch.schedulers import scheduler_table
from greenbatch.workers import RayCluster, Workers, spread

if TYPE_CHECKING:
    from greenbatch.scenarios import Scenario

RULES = (
    "fcfs+easy", "f2+easy", "sjf+easy", "fcfs+none", "f1+easy", "f3+easy", "f4+easy", "wfp3+easy", "unicep+easy",
    "smallest+easy", "largest+easy", "longest+easy", "f2+green", "fcfs+green", "sjf+green", "f1+green",
    "fcfs+first-fit", "sjf+none", "f2+none", "foresee",
)  # fmt: skip
START, JOBS = 60_000, 5_000
"""The month: 27.7 days."""
STORAGE = {"charge_w": 10_000.0, "discharge_w": 10_000.0}


_LOADED: list[Figures] = []


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Timed(Question):
    """A question whose cells also say how much processor time they took."""

    def figures(self, cell: Cell) -> Figures:
        """The figures, then the time [s]; a process plays ten jobs first, which loads the engine."""
        if not _LOADED:
            few = Question(scenarios=self.scenarios, deciders=self.deciders, jobs=10, baseline=self.baseline)
            _LOADED.append(few.figures(cell))
        begun = time.process_time()
        found = Question.figures(self, cell)
        spent = time.process_time() - begun
        return Figures((*found.names, ("", ("cpu_s",))), np.append(found.values, spent))


def played(values: int, workers: Workers) -> dict[str, float]:
    """Seconds and megabytes of a sweep."""
    begun = time.perf_counter()
    chosen = setting("site.storage.capacity_kwh", [5.0 * (k + 1) for k in range(values)])
    scenarios: dict[str, Scenario] = {}
    for text, value in chosen.values.items():
        overrides = {"site.storage": {"capacity_kwh": value, **STORAGE}}
        scenarios[text] = load_scenario("logs/hpc2n", overrides=overrides, like=next(iter(scenarios.values()), None))
    read_s = time.perf_counter() - begun
    question = Timed(scenarios=scenarios, deciders=scheduler_table(RULES), jobs=JOBS, baseline=RULES[0])
    record = sweep_record(chosen, scenarios, RULES, RULES[0], [START], JOBS, seed=0)
    cells = [Cell(text, START) for text in scenarios]
    question.figures(cells[0])  # compiles the engine
    runs, cpu_s = 0, 0.0
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as place, Pieces(Path(place) / "out", record) as pieces:
        with closing(spread(cells, question.figures, question.figures, workers)) as results:
            for cell, figures in results:
                pieces.keep(cell, Figures(figures.names[:-1], figures.values[:-1]))
                cpu_s += figures.values[-1]
                runs += len(figures.names) - 1
        wall_s = time.perf_counter() - begun
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"runs": runs, "read_s": read_s, "wall_s": wall_s, "cpu_s": cpu_s, "memory_mb": memory_mb}


WAYS: dict[str, tuple[Callable[[], Workers], int]] = {
    "one process": (lambda: 1, 1),
    "two processes": (lambda: 2, 2),
    "Ray on two processors": (lambda: RayCluster("local"), 2),
}
"""Name -> workers, and how many processors they have."""


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--way", choices=WAYS, help="one way of playing it, in this process, as JSON")
    given = parser.parse_args()
    if given.way:
        workers, processors = WAYS[given.way]
        found = played(given.values, workers())
        overhead = processors * found["wall_s"] / found["cpu_s"] - 1
        print(json.dumps({**found, "overhead": overhead}))
        return
    table = {}
    for way in WAYS:
        words = [sys.executable, __file__, "--way", way, "--values", str(given.values)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        table[way] = json.loads(done.stdout)
    if given.json:
        print(json.dumps(table))
        return
    for way, each in table.items():
        print(
            f"{way}: {each['runs']:,} runs, {each['cpu_s']:.1f} s of processor time, {each['wall_s']:.1f} s, "
            f"overhead {each['overhead']:.1%}; reading {each['read_s']:.1f} s, memory {each['memory_mb']:,.0f} MB"
        )


if __name__ == "__main__":
    main()
