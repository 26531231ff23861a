"""Per-run metrics of the machine: makespan, utilization and counts."""

from __future__ import annotations

import numpy as np

from greenbatch.metrics.jobs import run_s
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.registry import metric


def _work_processor_s(run: Measured) -> float:
    return float(np.sum(run_s(run.outcome) * run.outcome.workload.processors))


def _share(work_processor_s: float, run: Measured, length_s: float) -> float:
    return work_processor_s / (length_s * run.outcome.cluster.processors) if length_s > 0 else np.nan


@metric("makespan", "s")
def makespan_s(run: Measured) -> float:
    """Time from the first submission of the window to the end of its last job. [s], > 0; NaN without jobs.

    If the rules end the run before all jobs have ended, to that end. ``max(end) - min(submit)``.
    Source: Feitelson et al. (JSSPP 1997), section 3.
    """
    return run.last_end_s - run.first_submit_s


@metric("utilization", "-", "higher")
def utilization(run: Measured) -> float:
    """Share of the cluster's processor time over the makespan that jobs used. [-], in (0, 1]; NaN without jobs.

    ``sum(run * processors) / (makespan * cluster processors)``.
    Source: RLScheduler (SC 2020), section II-A, "over a given period": here the makespan.
    """
    return _share(_work_processor_s(run), run, makespan_s(run))


@metric("makespan relative to the area bound", "-")
def makespan_area_ratio(run: Measured) -> float:
    """Makespan over the area bound, the time that the work takes on all processors. [-], >= 1; NaN without jobs.

    ``makespan / (sum(run * processors) / cluster processors)``, the reciprocal of the utilization. No schedule is
    shorter than the area bound. Not in the papers.
    """
    area_s = _work_processor_s(run) / run.outcome.cluster.processors
    return makespan_s(run) / area_s if area_s > 0 else np.nan


@metric("utilization to the last start", "-", "higher")
def utilization_to_last_start(run: Measured) -> float:
    """Utilization as published by RLScheduler: all work over the time until the last *start* of a job.

    ``sum(run * processors) / ((max(start) - min(submit)) * cluster processors)``. Work after the last start counts but
    its time does not, so the value can exceed 1. [-], > 0; NaN if all jobs start at the first submission.
    Source: the published code of RLScheduler (SC 2020), Table VI.
    """
    started_s = run.outcome.start_s[np.isfinite(run.outcome.start_s)]
    last_start_s = float(started_s.max()) if started_s.size else np.nan
    return _share(_work_processor_s(run), run, last_start_s - run.first_submit_s)


@metric("jobs", "jobs", "neither")
def jobs(run: Measured) -> float:
    """Jobs in the window. [jobs], >= 0. Not in the papers as a metric."""
    return float(len(run.jobs))


@metric("jobs counted", "jobs", "neither")
def jobs_counted(run: Measured) -> float:
    """Jobs that count in per-job metrics, after cutting warm-up and cool-down. [jobs], >= 0.

    Jobs that have not finished at the end of the run do not count. Not in the papers.
    """
    return float(np.count_nonzero(run.jobs))


@metric("jobs killed", "jobs", "lower")
def killed(run: Measured) -> float:
    """Jobs killed at their requested time. [jobs], >= 0. Not in the papers."""
    return float(run.outcome.killed)


@metric("decisions", "jobs", "neither")
def decisions(run: Measured) -> float:
    """Jobs chosen by the policy, not counting backfilled jobs. [jobs], >= 0. Not in the papers."""
    return float(run.outcome.decisions)
