"""Speed of the engine on nodes: CPU seconds of one core, warm, with a calibration kernel.

``python benchmarks/nodes.py`` prints a table with the targets, ``--json`` one object of named figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine import Figures, best_cpu_s, calibration_s, command, measured, table
from greenbatch import data_catalog
from greenbatch.cluster import Cluster, NodeGroup
from greenbatch.engine.outcome import Outcome
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler
from greenbatch.workload import Workload

TARGETS: dict[str, tuple[str, float]] = {
    "mixed_nodes_jobs_per_s": (">=", 400e3),
    "contention_jobs_per_s": (">=", 30e3),
    "ten_thousand_nodes_1m_jobs_cpu_s": ("<", 120),
    "ten_thousand_nodes_1m_jobs_rss_mb": ("<", 4000),
    "curie_nodes_cli_cpu_s": ("<", 20),
    "first_run_on_nodes_cpu_s": ("<=", 25),
}
"""Figure -> target on one core of a machine of 2025."""


def mixed(count: int) -> Cluster:
    """Four groups of nodes of different size, speed, memory and power; one of them with GPUs."""
    kinds = ((8, 1.0, 32, 0), (16, 1.5, 64, 0), (32, 2.0, 256, 0), (16, 1.2, 128, 4))
    return Cluster.of_nodes(
        tuple(
            NodeGroup(
                name=f"group{k}-", count=count // 4, processors=processors, speed=speed, memory_gb=float(memory_gb),
                gpus=gpus, static_power_w=60.0, idle_fraction=0.4, power_per_processor_w=6.0, power_per_gpu_w=200.0,
            )
            for k, (processors, speed, memory_gb, gpus) in enumerate(kinds)
        )
    )  # fmt: skip


def jobs_for(cluster: Cluster, count: int, load: float, *, resources: bool = True) -> Workload:
    """Random jobs that keep a cluster busy to a given share; a fifth on nodes of their own, a tenth with a GPU."""
    rng = np.random.default_rng(0)
    run_s = np.round(rng.lognormal(7, 1.5, count)).clip(1)
    processors = rng.choice([1, 1, 1, 2, 4, 8, 16], count)
    submit_s = np.cumsum(rng.exponential((run_s * processors).mean() / (1.4 * load * cluster.processors), count))
    kind = rng.integers(0, 10, count)
    asked = {
        "nodes": np.where(kind < 2, np.where(processors >= 8, 2, 1), -1),
        "gpus": np.where(kind == 2, 1, 0),
        "requested_memory_kb": rng.choice([1.0, 2.0, 4.0], count) * 2**20,
    }
    return Workload.from_columns(
        "random", {
            "submit_s": submit_s - submit_s[0], "run_time_s": run_s, "processors": processors,
            "requested_time_s": run_s * rng.choice([1, 2, 5], count), "memory_volume_mb": run_s * 1e3,
            **(asked if resources else {}),
        },
    )  # fmt: skip


def forty_nodes(figures: Figures) -> None:
    """FCFS+easy on 40 mixed nodes: processors, memory, GPUs and whole nodes; then with contention for memory."""
    cluster, easy = mixed(40), scheduler("fcfs+easy")
    for name, machine, resources in (
        ("mixed_nodes", cluster, True),
        ("mixed_nodes_processors_only", cluster, False),
        ("contention", replace(cluster, contention="repaired"), True),
        ("contention_v1", replace(cluster, contention="irmasim-v1"), True),
    ):
        jobs = jobs_for(cluster, 20_000 if name == "contention_v1" else 200_000, 0.75, resources=resources)
        work_s = best_cpu_s(lambda m=machine, j=jobs: simulate(j, m, None, Rules(), easy), 3)
        figures[f"{name}_jobs_per_s"] = len(jobs) / work_s


def ten_thousand_nodes(figures: Figures) -> None:
    """FCFS+easy with a million jobs, processors of any nodes and with all resources."""
    cluster, easy = mixed(10_000), scheduler("fcfs+easy")
    for name, resources in (("", False), ("_resources", True)):
        jobs, last = jobs_for(cluster, 1_000_000, 0.75, resources=resources), list[Outcome]()
        work_s = best_cpu_s(lambda j=jobs, o=last: o.append(simulate(j, cluster, None, Rules(), easy)), 1)
        figures[f"ten_thousand_nodes_1m_jobs{name}_cpu_s"] = work_s
        figures[f"ten_thousand_nodes_1m_jobs{name}_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def whole_commands(figures: Figures) -> None:
    """A first run on nodes, and CEA Curie on its 5,040 nodes."""
    with tempfile.TemporaryDirectory(prefix="greenbatch-bench-") as scratch:
        folder = Path(scratch)
        easy = ("simulate", "--scheduler", "fcfs+easy", "--force", "--out", str(folder / "out"), "--scenario")
        figures["first_run_on_nodes_cpu_s"], _ = command(*easy, "ineps/convergence", cache=folder / "cache")
        figures["curie_nodes_cli_cpu_s"] = None
        data_catalog.find("swf/CEA-Curie-2011-2.1-cln.swf.gz")
        figures["curie_nodes_cli_cpu_s"] = min(
            command(*easy, "curie-nodes", cache=folder / "cache")[0] for _ in range(3)
        )


def measure() -> Figures:
    """All figures."""
    parts = (forty_nodes, whole_commands, ten_thousand_nodes)
    return measured({"calibration_s": calibration_s()}, parts, TARGETS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    figures = measure()
    print(json.dumps(figures, indent=2) if options.json else table(figures, TARGETS))


if __name__ == "__main__":
    main()
