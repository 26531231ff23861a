"""Per-run metrics of jobs with value and quality of service, and of machines whose capacity follows the power.

Source: RARE (dissertation), chapters 3 to 5, if not stated otherwise. Figures of what happens in each tick use the
length of a tick of the rules, 1 s without pools. All are NaN where the machine has no capacity to follow
(`Cluster.powered`) or, for values, where no job has one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.outcome import STATES, Stays
from greenbatch.metrics.jobs import Floats, Mask
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.registry import metric

SLACK = 1e-9
"""A job is on time if it ends at most this after it is due; in ticks."""


def _value(run: Measured) -> Floats | None:
    """Value of each job, 0 if it has none, shape (n,); None if no job has one."""
    value = run.outcome.workload.value
    return np.nan_to_num(value) if np.isfinite(value).any() else None


def _finished(run: Measured) -> Mask:
    return np.isfinite(run.outcome.end_s)


def due_s(run: Measured) -> Floats:
    """When each job is due: ``submit + run time / QoS`` (Eq. 3.1), infinite if it states no QoS, shape (n,). [s]"""
    jobs = run.outcome.workload
    with np.errstate(invalid="ignore"):
        due = jobs.submit_s + jobs.run_time_s / jobs.qos
    return np.where(np.isnan(due), np.inf, due)


def _on_time(run: Measured) -> Mask:
    return _finished(run) & (run.outcome.end_s <= due_s(run) + SLACK * _tick_s(run))


def _tick_s(run: Measured) -> float:
    pools = run.outcome.rules.pools
    return 1.0 if pools is None else pools.tick_s


def _in(stays: Stays, state: str) -> NDArray[np.bool_]:
    return np.asarray(stays.state == STATES.index(state))


@metric("value of the finished jobs", "-", "higher")
def total_job_value(run: Measured) -> float:
    """Value of all jobs that finish by the end of the run. [-], >= 0; NaN if no job has a value.

    ``sum(value of finished jobs)``, late ones included: lateness is a cost, see `accrued_cost`. Source: RARE §5.4.2.
    """
    value = _value(run)
    return np.nan if value is None else float(value[_finished(run)].sum())


@metric("value ratio", "-", "higher")
def value_ratio(run: Measured) -> float:
    """Value of the finished jobs over that of all jobs. [-], in [0, 1]; NaN without value.

    Source: RARE Eq. 6.10 (numerator).
    """
    value = _value(run)
    return np.nan if value is None or not value.sum() > 0 else float(value[_finished(run)].sum() / value.sum())


@metric("value of jobs on time", "-", "higher")
def on_time_value(run: Measured) -> float:
    """Value of the jobs that finish by the time they are due, ``submit + run time / QoS``. [-], >= 0.

    NaN without value. Source: RARE §5.4.2, "completed on time", with Eq. 3.1.
    """
    value = _value(run)
    return np.nan if value is None else float(value[_on_time(run)].sum())


@metric("value less lateness", "-", "higher")
def net_value(run: Measured) -> float:
    """Value of the finished jobs less 1 for each tick in which a job is late. [-], any sign; NaN without value.

    ``total_job_value - late_ticks``. Source: RARE §3.2.1.2 (negative reward past the due time), Table B.1 (its size).
    """
    value, late = total_job_value(run), late_ticks(run)
    return np.nan if np.isnan(value) or np.isnan(late) else value - late


@metric("completion ratio", "-", "higher")
def completion_ratio(run: Measured) -> float:
    """Jobs that finish by the end of the run over all jobs. [-], in [0, 1]. Source: RARE §6.6.2."""
    return np.nan if run.outcome.stays is None else float(np.mean(_finished(run)))


@metric("jobs rejected", "jobs")
def jobs_rejected(run: Measured) -> float:
    """Jobs that ask for too much, or find the wait pool full, and never run. [jobs], >= 0. Source: RARE §4.6.1."""
    stays = run.outcome.stays
    return np.nan if stays is None else float(np.count_nonzero(_in(stays, "rejected")))


@metric("utilization of the powered machine", "-", "higher")
def utilization_available(run: Measured) -> float:
    """Share of the powered processors and GPUs, over time, that jobs used. [-], in [0, 1].

    ``sum(run * (processors + GPUs)) / integral of the powered ones``, from the first submission to the end of the run.
    Source: RARE §6.6.3, of what is powered.
    """
    outcome = run.outcome
    if outcome.cluster.powered is None:
        return np.nan
    there_s = sum(outcome.cluster.capacity_levels.available_s(run.first_submit_s, run.last_end_s))
    units = outcome.workload.processors + np.maximum(outcome.workload.gpus, 0)
    return float(outcome.run_s @ units) / there_s if there_s > 0 else np.nan


@metric("suspensions", "-", "lower")
def suspensions(run: Measured) -> float:
    """How often jobs were suspended: for lack of power, by failures or the policy. [-], >= 0. Source: RARE §3.2.2."""
    stays = run.outcome.stays
    return np.nan if stays is None else float(stays.suspensions.sum())


@metric("suspensions for lack of power", "-", "lower")
def forced_suspensions(run: Measured) -> float:
    """How often jobs were suspended because power failed. [-], >= 0. Not in the papers."""
    stays = run.outcome.stays
    return np.nan if stays is None else float(stays.forced)


@metric("jobs late", "-")
def late_share(run: Measured) -> float:
    """Share of all jobs that ended after they were due, or are past it at the end of the run. [-], in [0, 1].

    Rejected jobs are not late. NaN if no job states a QoS. Source: RARE Eq. 3.1.
    """
    late_s = _late_s(run)
    return np.nan if late_s is None else float(np.mean(late_s > SLACK * _tick_s(run)))


@metric("lateness (mean)", "s")
def avg_lateness_s(run: Measured) -> float:
    """Mean time from when a job is due to its end, or to the end of the run; 0 if it is on time. [s], >= 0.

    The end of the run counts if it comes first. Over all jobs, rejected ones with 0.
    NaN if no job states a QoS. Source: RARE Eq. 3.1.
    """
    late_s = _late_s(run)
    return np.nan if late_s is None else float(np.mean(late_s))


def _late_s(run: Measured) -> Floats | None:
    """Time for which each job is late, shape (n,); None without QoS or capacity. [s]"""
    stays = run.outcome.stays
    if stays is None or not np.isfinite(run.outcome.workload.qos).any():
        return None
    until_s = np.where(_finished(run), run.outcome.end_s, run.last_end_s)
    return np.where(_in(stays, "rejected"), 0.0, np.maximum(until_s - due_s(run), 0.0))


def _queue_ticks(run: Measured) -> tuple[float, float]:
    """Jobs x ticks in the ready pool and in the wait pool. The ready pool is full whenever jobs wait."""
    outcome, pools = run.outcome, run.outcome.rules.pools
    limit = pools.ready if pools is not None and pools.ready else np.inf
    joins_s, leaves_s = outcome.workload.submit_s, outcome.waits_until_s
    time_s = np.concatenate([joins_s, leaves_s])
    order = np.argsort(time_s, kind="stable")
    there = np.cumsum(np.repeat([1.0, -1.0], len(joins_s))[order])[:-1]
    length = np.diff(time_s[order]) / _tick_s(run)
    ready = float(np.minimum(there, limit) @ length)
    return ready, float(there @ length) - ready


@metric("ready jobs x ticks", "-")
def ready_ticks(run: Measured) -> float:
    """Number of ready jobs, summed over the ticks. [-], >= 0. Source: RARE Table B.1, cost of the ready pool."""
    return np.nan if run.outcome.stays is None else _queue_ticks(run)[0]


@metric("waiting jobs x ticks", "-")
def wait_ticks(run: Measured) -> float:
    """Number of jobs in the wait pool, summed over the ticks. [-], >= 0. Source: RARE Table B.1, as for ready jobs."""
    return np.nan if run.outcome.stays is None else _queue_ticks(run)[1]


@metric("late jobs x ticks", "-")
def late_ticks(run: Measured) -> float:
    """Number of jobs that are past their due time, summed over the ticks. [-], >= 0; NaN without QoS.

    A tick counts if the job is not finished at its end and the due time lies before that. Source: RARE Table B.1, cost
    of long running jobs.
    """
    late_s = _late_s(run)
    return np.nan if late_s is None else float(np.ceil(late_s / _tick_s(run) - SLACK).sum())


@metric("accrued cost", "-")
def accrued_cost(run: Measured) -> float:
    """1 for each ready, each waiting and each late job in each tick, and 1 for each suspension. [-], >= 0.

    ``ready_ticks + wait_ticks + late_ticks + suspensions``. Source: RARE Table B.1; per tick or per event is not said.
    """
    if run.outcome.stays is None:
        return np.nan
    return float(sum(_queue_ticks(run)) + np.nan_to_num(late_ticks(run)) + suspensions(run))
