"""The table of the rolling-horizon planner in ``results.md``: ``python docs/rolling_horizon.py FOLDER`` prints it.

FOLDER is the output of the ``greenbatch compare`` that the page shows, on the published windows of Lublin-256.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars
from texts import table

from greenbatch.experiments.papers.headroom import headroom
from greenbatch.experiments.running.statistics import intervals

SCENARIO, JOBS = "gas-marl/lublin-256", 1024
METRICS = {"renewable_utilization": (100.0, 1), "avg_bounded_slowdown": (1.0, 2), "makespan_ratio": (1.0, 3)}
"""Metric -> factor and decimals of its column."""
NOT_CAUSAL = "knowledge=perfect"


def row(results: polars.DataFrame, name: str) -> tuple[str, ...]:
    """A scheduler: means over the windows with intervals, the bound at its makespans, and what is left to it."""
    own = results.filter(polars.col("scheduler") == name)
    wide = own.pivot("metric", index="window", values="value", maintain_order=True)
    left = headroom(
        SCENARIO, [int(each) for each in wide["window"]], JOBS, [wide["makespan_s"].to_list()],
        [wide["renewable_utilization"].to_list()],
    )  # fmt: skip
    shown = []
    for metric, (scale, digits) in METRICS.items():
        mean, low, high = (scale * getattr(intervals(own, metric)[name], each) for each in ("mean", "low", "high"))
        shown.append(f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]")
    ends = ("-", "-") if left is None else (f"{100.0 * left.bound:.1f}", f"{100.0 * left.left:.1f}")
    return (f"`{name}`" + (", not causal" if NOT_CAUSAL in name else ""), *shown, *ends)


def main() -> None:
    """Print the table."""
    results = polars.read_parquet(Path(sys.argv[1]) / "results.parquet")
    head = ("Scheduler", "Utilization [%]", "Slowdown", "Makespan [x]", "Bound [%]", "Left [points]")
    print(table(head, [row(results, name) for name in results["scheduler"].unique(maintain_order=True)]))


if __name__ == "__main__":
    main()
