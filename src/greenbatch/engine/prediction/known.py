"""The predictors of this package as one part of the state, so that all is compiled once, whichever of them predicts.

What a predictor does not use is empty: a branch instead of a type.
"""

from __future__ import annotations

from typing import NamedTuple

from greenbatch.engine.prediction.mixture import (
    Mixture,
    fill_from_mixture,
    forget_like,
    learn_run_time,
    new_mixture,
    no_mixture,
    note_like,
)
from greenbatch.engine.prediction.protocol import fill, forget_running, learn, note_running, predictor_of, predicts
from greenbatch.engine.prediction.recent import (
    JOBS,
    Recent,
    fill_from_recent,
    new_recent,
    no_recent,
    remember,
)
from greenbatch.engine.records import Prediction, Table, per_job, table_of
from greenbatch.workload import Workload


@per_job("jobs")
class Predictors(NamedTuple):
    """Nothing that predicts, one that does, or only what a view shows, whose sender keeps it up to date."""

    jobs: Table[Prediction]
    """Shape (n,); (0,) if requested times stand for run times."""
    recent: Recent
    mixture: Mixture


def no_predictor() -> Predictors:
    """Requested times stand for run times."""
    return Predictors(table_of(Prediction, 0), no_recent(), no_mixture())


@predictor_of.register("requested")
def requested(_: Workload) -> Predictors:
    """The same for any window."""
    return no_predictor()


@predictor_of.register("last-two")
def last_two(workload: Workload) -> Predictors:
    """The mean of the user's last two jobs."""
    return Predictors(table_of(Prediction, len(workload)), new_recent([workload.user], 2), no_mixture())


@predictor_of.register("like-jobs")
def like_jobs(workload: Workload) -> Predictors:
    """The median of the user's last jobs of the same request."""
    recent = new_recent([workload.user, workload.requested_time_s], JOBS)
    return Predictors(table_of(Prediction, len(workload)), recent, no_mixture())


@predictor_of.register("learned")
def learned(workload: Workload) -> Predictors:
    """Distributions of run times that are learned while jobs end."""
    mixture = new_mixture(workload.user, workload.requested_time_s, workload.processors)
    return Predictors(table_of(Prediction, len(workload)), no_recent(), mixture)


@predicts.register(Predictors)
def is_known(predictor: Predictors) -> bool:
    """There is a row for each job."""
    return predictor.jobs.shape[0] > 0


@note_running.register(Predictors)
def note_like_jobs(predictor: Predictors, number: int, start_s: float) -> None:
    """The learned distributions ask for how long like jobs have been running."""
    if predictor.mixture.group.shape[0] > 0:
        note_like(predictor.mixture, number, start_s)


@forget_running.register(Predictors)
def forget_like_jobs(predictor: Predictors, number: int) -> None:
    """See `note_like_jobs`."""
    if predictor.mixture.group.shape[0] > 0:
        forget_like(predictor.mixture, number)


@fill.register(Predictors)
def fill_row(predictor: Predictors, number: int, requested_s: float, now_s: float, elapsed_s: float) -> None:
    """The predictions of the last run times do not change while a job runs."""
    if predictor.mixture.group.shape[0] > 0:
        fill_from_mixture(predictor.mixture, predictor.jobs[number], number, requested_s, now_s, elapsed_s)
    elif predictor.recent.group.shape[0] > 0 and elapsed_s <= 0.0:
        fill_from_recent(predictor.recent, predictor.jobs[number], number, requested_s)


@learn.register(Predictors)
def learn_from_end(predictor: Predictors, number: int, requested_s: float, run_s: float) -> None:
    """By the one that predicts."""
    if predictor.mixture.group.shape[0] > 0:
        learn_run_time(predictor.mixture, number, requested_s, run_s)
    elif predictor.recent.group.shape[0] > 0:
        remember(predictor.recent, number, run_s)
