"""What the engine asks of a predictor of run times: a NamedTuple with the field ``jobs``, and these functions.

A new predictor is one file: its class, its implementations, and a row of `known.PREDICTOR_OF`. Those of this package
are one class, `known.Predictors`.
"""

from __future__ import annotations

from typing import Protocol

from greenbatch.engine.compile import compiled_small
from greenbatch.engine.records import Prediction, Table
from greenbatch.engine.variants import variant

SHORT_S = 10.0
"""Shortest run time in a bounded slowdown. [s]"""


class Predictor(Protocol):
    """A predictor, as a part of the state."""

    @property
    def jobs(self) -> Table[Prediction]:
        """What is predicted of each job."""
        ...


@compiled_small
def predicts(predictor: Predictor) -> bool:
    """Whether anything but the request is predicted."""
    return predictor.jobs.shape[0] > 0


@variant(default=True)
def note_running(predictor: Predictor, number: int, start_s: float) -> None:
    """Tell a predictor that a job has been running since a time, before it is asked about others; infinite: no more."""
    return


@variant(default=True, inlined=False)
def fill(predictor: Predictor, number: int, requested_s: float, now_s: float, elapsed_s: float) -> None:
    """Predict the run time of a job that has been running for a time, 0 if it waits, into its row of ``jobs``."""
    return


@variant(default=True, inlined=False)
def learn(predictor: Predictor, number: int, requested_s: float, run_s: float) -> None:
    """Learn from a job that has ended."""
    return


@compiled_small
def predicted_of(predictor: Predictor, number: int, requested_s: float) -> tuple[float, float, float, float, float]:
    """What is predicted of the run time of a job, in the order of the fields of `Prediction`."""
    if not predicts(predictor):
        return requested_s, requested_s, requested_s, requested_s, 1.0 / max(requested_s, SHORT_S)
    of = predictor.jobs[number]
    return of.expected_time_s, of.shortest_time_s, of.longest_time_s, of.mean_time_s, of.slowdown_price


@compiled_small
def expected_time_s(predictor: Predictor, number: int, requested_s: float) -> float:
    """Median of the run time of a job: as last predicted. [s]"""
    return float(predictor.jobs[number].expected_time_s) if predicts(predictor) else requested_s


@compiled_small
def mean_time_s(predictor: Predictor, number: int, requested_s: float) -> float:
    """Mean of its run time. [s]"""
    return float(predictor.jobs[number].mean_time_s) if predicts(predictor) else requested_s


@compiled_small
def slowdown_price(predictor: Predictor, number: int, requested_s: float) -> float:
    """E[1 / max(run time, 10 s)]: the slowdown that a second of waiting costs. [1/s]"""
    return float(predictor.jobs[number].slowdown_price) if predicts(predictor) else 1.0 / max(requested_s, SHORT_S)
