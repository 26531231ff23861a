"""Predictors of run times as one part of the state, and what the engine asks of it.

One part, so that all is compiled once, whichever of them predicts: what a predictor does not use is empty, a branch
instead of a type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from greenbatch.engine.prediction import mixture as learned
from greenbatch.engine.prediction import recent as last
from greenbatch.engine.records import SHORT_S, Prediction, Table, per_job, table_of
from greenbatch.machine_code.compile import compiled, compiled_small
from greenbatch.workload import Workload


@per_job("jobs")
class Predictors(NamedTuple):
    """Nothing that predicts, one that does, or only what a view shows, whose sender keeps it up to date."""

    jobs: Table[Prediction]
    """Shape (n,); (0,) if requested times stand for run times."""
    recent: last.Recent
    mixture: learned.Mixture


@cache
def no_predictor() -> Predictors:
    """Requested times stand for run times."""
    return _predictors(0)


def _predictors(jobs: int, recent: last.Recent | None = None, mixture: learned.Mixture | None = None) -> Predictors:
    return Predictors(table_of(Prediction, jobs), recent or last.no_recent(), mixture or learned.no_mixture())


PREDICTOR_OF: dict[str, Callable[[Workload], Predictors]] = {
    "requested": lambda _: no_predictor(),
    "last-two": lambda jobs: _predictors(len(jobs), last.new_recent([jobs.user], 2)),
    "like-jobs": lambda jobs: _predictors(len(jobs), last.new_recent([jobs.user, jobs.requested_time_s], last.JOBS)),
    "learned": lambda jobs: _predictors(len(jobs), mixture=learned.new_mixture(jobs)),
}
"""`Rules.predictor` -> what creates it for a window of jobs."""


@compiled_small
def predicts(predictor: Predictors) -> bool:
    """Whether anything but the request is predicted."""
    return predictor.jobs.shape[0] > 0


@compiled_small
def note_running(predictor: Predictors, number: int, start_s: float) -> None:
    """Tell that a job has been running since a time, before others are asked about; infinite: no more.

    The learned distributions ask for how long like jobs have been running.
    """
    if predictor.mixture.group.shape[0] > 0:
        since_s, row = predictor.mixture.since_s, predictor.mixture.group[number, 4]
        since_s[row] = min(since_s[row], start_s) if start_s < np.inf else np.inf


@compiled
def fill(predictor: Predictors, number: int, requested_s: float, now_s: float, elapsed_s: float) -> None:
    """Predict the run time of a job that has been running for a time, 0 if it waits, into its row of ``jobs``.

    The predictions of the last run times do not change while a job runs.
    """
    if predictor.mixture.group.shape[0] > 0:
        learned.fill_from_mixture(predictor.mixture, predictor.jobs[number], number, requested_s, now_s, elapsed_s)
    elif predictor.recent.group.shape[0] > 0 and elapsed_s <= 0.0:
        last.fill_from_recent(predictor.recent, predictor.jobs[number], number, requested_s)


@compiled
def learn(predictor: Predictors, number: int, requested_s: float, run_s: float) -> None:
    """Learn from a job that has ended."""
    if predictor.mixture.group.shape[0] > 0:
        learned.learn_run_time(predictor.mixture, number, requested_s, run_s)
    elif predictor.recent.group.shape[0] > 0:
        last.remember(predictor.recent, number, run_s)


@compiled_small
def predicted_of(predictor: Predictors, number: int, requested_s: float) -> tuple[float, float, float, float, float]:
    """What is predicted of the run time of a job, in the order of the fields of `Prediction`."""
    if not predicts(predictor):
        return requested_s, requested_s, requested_s, requested_s, 1.0 / max(requested_s, SHORT_S)
    of = predictor.jobs[number]
    return of.expected_time_s, of.shortest_time_s, of.longest_time_s, of.mean_time_s, of.slowdown_price


@compiled_small
def expected_time_s(predictor: Predictors, number: int, requested_s: float) -> float:
    """Median of the run time of a job: as last predicted. [s]"""
    return float(predictor.jobs[number].expected_time_s) if predicts(predictor) else requested_s


@compiled_small
def mean_time_s(predictor: Predictors, number: int, requested_s: float) -> float:
    """Mean of its run time. [s]"""
    return float(predictor.jobs[number].mean_time_s) if predicts(predictor) else requested_s


@compiled_small
def slowdown_price(predictor: Predictors, number: int, requested_s: float) -> float:
    """E[1 / max(run time, 10 s)]: the slowdown that a second of waiting costs. [1/s]"""
    return float(predictor.jobs[number].slowdown_price) if predicts(predictor) else 1.0 / max(requested_s, SHORT_S)
