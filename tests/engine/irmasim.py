"""Runs of the published simulator IRMaSim: their inputs, and the schedulers that repeat them."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from greenbatch.cluster import Cluster
from greenbatch.cluster.irmasim import read_platform
from greenbatch.engine.rules import Rules
from greenbatch.workload import Workload
from greenbatch.workload.irmasim import read_irmasim

RULES = Rules(event_rule="per_kind", overrun="extend")
"""IRMaSim handles all submissions of an instant, then all ends; requested times are hints."""

JOBS = {"first": "fcfs", "shortest": "sjf", "longest": "longest", "smallest": "smallest", "low_mem": "low-mem",
        "low_mem_ops": "low-mem-ops"}  # fmt: skip
NODES = {"first": "first-by-name", "high_gflops": "high-gflops", "high_cores": "high-cores", "low_cores": "low-cores",
         "high_mem": "high-mem-published", "high_mem_bw": "high-mem-bw", "low_power": "low-power"}  # fmt: skip
BESIDE = {"first": "first-by-name", "high_cores": "high-total-cores", "high_mem": "high-mem-published",
          "high_mem_bw": "high-mem-bw", "low_power": "low-power", "energy_lowest": "low-energy",
          "energy_highest": "high-energy", "edp_lowest": "low-edp", "edp_highest": "high-edp"}  # fmt: skip
"""Its backfilling counts all processors of a node for ``high_cores``, not the idle ones."""


class Golden(NamedTuple):
    """One run of the published simulator."""

    platform: str
    workload: str
    tag: str
    """Name of its schedule."""
    scheduler: str
    """Ours that repeats it."""
    energy_j: float
    edp_js: float


def golden(folder: Path) -> list[Golden]:
    """The runs that are deterministic and did not crash."""
    found = []
    for row in csv.DictReader((folder / "golden.csv").read_text(encoding="utf-8").splitlines()):
        jobs, nodes, metric = row["job_selection"], row["node_selection"], row["metric"]
        if row["energy_J"].startswith("ERROR") or jobs == "random":
            continue
        tag, spec = {
            "Heuristic": (f"H_{jobs}_{nodes}", f"{JOBS.get(jobs)}+none+{NODES.get(nodes)}"),
            "EnergyHeuristic": (f"E_{metric}_{jobs}_{nodes}", f"eq1:metric={metric}:jobs={jobs}:nodes={nodes}"),
            "Backfill": (f"B_{nodes}", f"fcfs+easy-irmasim+{BESIDE.get(nodes)}"),
            "Minimal": ("M", "minimal"),
        }[row["manager"]]
        found.append(Golden(row["platform"], row["workload"], tag, spec, float(row["energy_J"]), float(row["edp_Js"])))
    return found


@cache
def cluster(folder: Path, name: str) -> Cluster:
    """A platform with the published contention and energy."""
    read = read_platform(folder / "inputs" / f"{name}.json")
    return replace(read, contention="irmasim-v1", power_on="first-use")


@cache
def jobs(folder: Path, name: str) -> Workload:
    """A workload."""
    return read_irmasim(folder / "inputs" / f"{name}.json")


def schedule(folder: Path, run: Golden) -> list[dict[str, Any]]:
    """The published schedule, in the order of the workload."""
    with gzip.open(folder / "schedules" / f"{run.workload}_{run.tag}.csv.gz", "rt") as file:
        return sorted(csv.DictReader(file), key=lambda row: int(row["job"].removeprefix("job")))
