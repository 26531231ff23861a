"""Per-run metrics of how a schedule differs from the recorded one."""

from __future__ import annotations

import numpy as np

from greenbatch.metrics.jobs import Floats
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.registry import metric

PUNCTUAL_S = 1.0
"""Differences up to this are rounding: accounting counts whole seconds. [s]"""


def from_record_s(run: Measured) -> Floats:
    """Wait minus recorded wait of the counted jobs that have one, shape (m,). [s]"""
    recorded_s = run.outcome.workload.recorded_wait_s
    known = run.jobs & np.isfinite(recorded_s)
    return run.per_job("wait_s")[known] - recorded_s[known]


@metric("difference from the recorded wait (median)", "s")
def median_wait_error_s(run: Measured) -> float:
    """Median of |wait - recorded wait| over the counted jobs with a recorded wait. [s], >= 0.

    NaN if no wait is recorded. Not in the papers.
    """
    return _percentile(np.abs(from_record_s(run)), 50)


@metric("difference from the recorded wait (95th percentile)", "s")
def p95_wait_error_s(run: Measured) -> float:
    """95th percentile of |wait - recorded wait| over the counted jobs with a recorded wait. [s], >= 0.

    NaN if no wait is recorded. Not in the papers.
    """
    return _percentile(np.abs(from_record_s(run)), 95)


@metric("mean wait minus recorded mean wait", "s", "neither")
def avg_wait_error_s(run: Measured) -> float:
    """Mean of wait - recorded wait over the counted jobs with a recorded wait. [s], any sign; negative is shorter.

    NaN if no wait is recorded. Not in the papers.
    """
    errors_s = from_record_s(run)
    return float(errors_s.mean()) if errors_s.size else np.nan


@metric("jobs that start after their recorded start", "jobs")
def late_starts(run: Measured) -> float:
    """Counted jobs that start over 1 s after their recorded start. [jobs], >= 0.

    NaN if no wait is recorded. Not in the papers.
    """
    errors_s = from_record_s(run)
    return float(np.count_nonzero(errors_s > PUNCTUAL_S)) if errors_s.size else np.nan


def _percentile(values: Floats, rank: float) -> float:
    return float(np.percentile(values, rank)) if values.size else np.nan
