"""The outcome of a simulation: the job schedule and the power profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.display import Shown, to_pandas
from greenbatch.energy import Site
from greenbatch.engine.rules import Rules
from greenbatch.workload import Workload

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Outcome(Shown):
    """Schedule and power of one run. Arrays over jobs follow ``workload``'s rows, shape (n,)."""

    scheduler: str
    """Name of the scheduler, ``policy+backfill``."""
    workload: Workload
    """The jobs that were simulated (one window)."""
    cluster: Cluster
    """The machine that the jobs ran on."""
    site: Site | None
    """The power supply; None if there is none, and then no energy metric is defined."""
    rules: Rules
    """The options of the batch system."""
    start_s: Floats
    """Start of each job. [s]"""
    end_s: Floats
    """End of each job. [s]"""
    promised_start_s: Floats
    """First reservation of each job, NaN if it never got one. [s]"""
    profile_time_s: Floats
    """Instants at which the load changes, ascending, shape (m,); the last is the end of the last job. [s]"""
    profile_load_w: Floats
    """Cluster power, idle power included, from each instant to the next, shape (m,). [W]"""
    decisions: int
    """Jobs that started because the policy chose them; the others were backfilled. Conservative backfilling gives
    every job a reservation of its own, so it counts all jobs."""
    killed: int
    """Jobs killed at their requested time."""

    def _facts(self) -> dict[str, str]:
        from greenbatch.metrics import METRICS, measure

        run = measure(self)
        makespan_s, wait_s, slowdown = (
            METRICS[name].function(run) for name in ("makespan_s", "avg_wait_s", "avg_bounded_slowdown")
        )
        return {
            "scheduler": self.scheduler,
            "jobs": f"{len(self.workload):,} of {self.workload.name}",
            "makespan": f"{makespan_s / 86_400:,.2f} d",
            "mean wait": f"{wait_s / 3600:,.2f} h",
            "mean bounded slowdown": f"{slowdown:,.4g}",
        } | ({"killed": f"{self.killed:,}"} if self.killed else {})

    def plot(self, kind: str) -> Figure:
        """Draw a plot of the report as a Matplotlib figure, which notebooks display.

        Args:
            kind: ``power`` (load and supply), ``queue``, or ``schedule`` (jobs by processor).

        Raises:
            InputError: no such plot exists, or data it requires is missing.
        """
        from greenbatch.experiments.notebook import plot_outcome

        return plot_outcome(self, kind)

    def frame(self) -> polars.DataFrame:
        """The schedule as a polars data frame, one row per job.

        Columns: ``job_id``, ``submit_s``, ``start_s``, ``end_s`` and ``wait_s`` [s], ``processors``, and ``power_w``,
        the power of the running job above idle, NaN if unknown [W].
        """
        import polars

        jobs = self.workload
        return polars.DataFrame(
            {
                "job_id": jobs.job_id, "submit_s": jobs.submit_s, "start_s": self.start_s, "end_s": self.end_s,
                "wait_s": self.start_s - jobs.submit_s, "processors": jobs.processors, "power_w": jobs.power_w,
            }
        )  # fmt: skip

    def to_pandas(self) -> pandas.DataFrame:
        """The schedule as a pandas data frame.

        Raises:
            InputError: pandas is not installed.
        """
        return to_pandas(self.frame())
