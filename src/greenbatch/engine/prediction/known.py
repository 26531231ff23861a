"""The predictors of this package as one part of the state, so that all is compiled once, whichever of them predicts.

What a predictor does not use is empty: a branch instead of a type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from greenbatch.engine.prediction import mixture as learned
from greenbatch.engine.prediction import recent as last
from greenbatch.engine.prediction.protocol import fill, learn, note_running
from greenbatch.engine.records import Prediction, Table, per_job, table_of
from greenbatch.workload import Workload


@per_job("jobs")
class Predictors(NamedTuple):
    """Nothing that predicts, one that does, or only what a view shows, whose sender keeps it up to date."""

    jobs: Table[Prediction]
    """Shape (n,); (0,) if requested times stand for run times."""
    recent: last.Recent
    mixture: learned.Mixture


def no_predictor() -> Predictors:
    """Requested times stand for run times."""
    return Predictors(table_of(Prediction, 0), last.no_recent(), learned.no_mixture())


def _last_jobs(workload: Workload, remembered: int, *groups_by: str) -> Predictors:
    """The run times of the last jobs of each group, by columns of the workload."""
    recent = last.new_recent([getattr(workload, name) for name in groups_by], remembered)
    return Predictors(table_of(Prediction, len(workload)), recent, learned.no_mixture())


def _learned(workload: Workload) -> Predictors:
    return Predictors(table_of(Prediction, len(workload)), last.no_recent(), learned.new_mixture(workload))


PREDICTOR_OF: dict[str, Callable[[Workload], Any]] = {
    "requested": lambda _: no_predictor(),
    "last-two": lambda workload: _last_jobs(workload, 2, "user"),
    "like-jobs": lambda workload: _last_jobs(workload, last.JOBS, "user", "requested_time_s"),
    "learned": _learned,
}
"""`Rules.predictor` -> what creates it for a window of jobs."""


@note_running.register(Predictors)
def note_like_jobs(predictor: Predictors, number: int, start_s: float) -> None:
    """The learned distributions ask for how long like jobs have been running."""
    if predictor.mixture.group.shape[0] > 0:
        since_s, row = predictor.mixture.since_s, predictor.mixture.group[number, 4]
        since_s[row] = min(since_s[row], start_s) if start_s < np.inf else np.inf


@fill.register(Predictors)
def fill_row(predictor: Predictors, number: int, requested_s: float, now_s: float, elapsed_s: float) -> None:
    """The predictions of the last run times do not change while a job runs."""
    if predictor.mixture.group.shape[0] > 0:
        learned.fill_from_mixture(predictor.mixture, predictor.jobs[number], number, requested_s, now_s, elapsed_s)
    elif predictor.recent.group.shape[0] > 0 and elapsed_s <= 0.0:
        last.fill_from_recent(predictor.recent, predictor.jobs[number], number, requested_s)


@learn.register(Predictors)
def learn_from_end(predictor: Predictors, number: int, requested_s: float, run_s: float) -> None:
    """By the one that predicts."""
    if predictor.mixture.group.shape[0] > 0:
        learned.learn_run_time(predictor.mixture, number, requested_s, run_s)
    elif predictor.recent.group.shape[0] > 0:
        last.remember(predictor.recent, number, run_s)
