"""Shift, stretch or repeat a workload in time."""

from __future__ import annotations

from math import isfinite

import numpy as np

from greenbatch.errors import InputError
from greenbatch.workload.table import COLUMNS, Workload


def shift_to_origin(workload: Workload) -> Workload:
    """Shift a workload so that its first job line is submitted at 0.

    The first line is the one with the lowest ``trace_row`` that was kept, whatever its job id; this is the clock of
    GAS-MARL's simulator. ``unix_start_s`` is shifted too, so real times do not change.

    Raises:
        InputError: another job was submitted before that line.
    """
    if not len(workload):
        return workload
    origin_s = float(workload.submit_s[np.argmin(workload.trace_row)])
    submit_s = workload.submit_s - origin_s
    if submit_s.min() < 0:
        job = workload.job_id[np.argmin(submit_s)]
        raise InputError(
            f"job {job} was submitted before the first job line", file=workload.name, field="submit_s",
            fix="sort the trace by submit time",
        )  # fmt: skip
    unix_start_s = None if workload.unix_start_s is None else workload.unix_start_s + origin_s
    return workload.with_columns(submit_s=submit_s, unix_start_s=unix_start_s)


def scale_gaps(workload: Workload, factor: float) -> Workload:
    """Multiply every gap between submissions by ``factor`` > 0.

    The first submission does not move. The offered load (work per second) is divided by the factor.

    Raises:
        InputError: the factor is not a finite number > 0.
    """
    if not (isfinite(factor) and factor > 0):
        raise InputError(f"is {factor}", field="gap factor", fix="give a number > 0; 0.5 doubles the load")
    if not len(workload):
        return workload
    first_s = workload.submit_s.min()
    return workload.with_columns(submit_s=first_s + (workload.submit_s - first_s) * factor)


def tile(workload: Workload, copies: int, period_s: float) -> Workload:
    """Repeat a workload ``copies`` times, each copy submitted ``period_s`` [s] after the previous one.

    Job ids, preceding jobs and trace rows of a copy follow those of the previous copy.

    Raises:
        InputError: ``copies`` < 1, or a period that is not a finite number >= 0.
    """
    if copies < 1:
        raise InputError(f"is {copies}", field="copies", fix="give at least 1")
    if not (isfinite(period_s) and period_s >= 0):
        raise InputError(f"is {period_s}", field="period_s", fix="give seconds >= 0")
    if not len(workload):
        return workload
    copy = np.repeat(np.arange(copies), len(workload))
    columns = {name: np.tile(getattr(workload, name), copies) for name in COLUMNS}
    id_step = workload.job_id[-1] - workload.job_id[0] + 1
    columns["job_id"] += copy * id_step
    columns["preceding_job"] += np.where(columns["preceding_job"] > 0, copy * id_step, 0)
    columns["trace_row"] += copy * (workload.trace_row.max() + 1)
    columns["submit_s"] += copy * period_s
    return workload.with_columns(**columns)
