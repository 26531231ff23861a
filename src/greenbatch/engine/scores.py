"""What a priority rule sees of the waiting jobs, and the scores that it gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.failures import refuse_scores
from greenbatch.engine.prediction.known import predicts
from greenbatch.engine.program import Program
from greenbatch.engine.reads import may_read
from greenbatch.engine.records import SHORT_S
from greenbatch.engine.state import State, attributes_of
from greenbatch.engine.views.interface import NOT_PREDICTED, Attributes, Predicted, Queue
from greenbatch.workload import Workload


def queue_now(state: State) -> Queue:
    """Copies of the waiting jobs of a simulation."""
    c, totals = state.clock, state.machine.totals
    rows = state.queue.job[c.first : c.last]
    jobs, predicted = state.jobs[rows], None
    if predicts(state.predictor):
        known = state.predictor.jobs[rows]
        predicted = Predicted(*(np.array(known[name]) for name in Predicted._fields))
    return Queue(
        float(c.now_s), float(totals.free), float(totals.processors), jobs["submit_s"], c.now_s - jobs["submit_s"],
        jobs["requested_s"], jobs["processors"].astype(np.float64), jobs["power_w"], jobs["user"].astype(np.float64),
        Attributes(*np.ascontiguousarray(state.attributes[rows].T)),
        predicted or predicted_by_requests(jobs["requested_s"]),
    )  # fmt: skip


def predicted_by_requests(requested_s: Any) -> Predicted:
    """What requested times predict; copies."""
    median_s, low_s, high_s, mean_s = (requested_s.copy() for _ in range(4))
    return Predicted(median_s, low_s, high_s, mean_s, 1.0 / np.maximum(requested_s, SHORT_S))


def queue_of(workload: Workload, cluster: Cluster, rule: Callable[..., Any]) -> Queue:
    """All jobs of a workload as if waiting at time 0, for a rule with fixed scores; copies, because rules may write.

    What the rule does not use of attributes and predictions is empty.
    """
    attributes = attributes_of(workload).T if may_read(rule, "attributes") else np.zeros((len(Attributes._fields), 0))
    return Queue(
        0.0, float(cluster.processors), float(cluster.processors), workload.submit_s.copy(), -workload.submit_s,
        workload.requested_time_s.copy(), workload.processors.astype(np.float64),
        np.where(np.isnan(workload.power_w), 0.0, workload.power_w), workload.user.astype(np.float64),
        Attributes(*attributes.copy()),
        predicted_by_requests(workload.requested_time_s) if may_read(rule, "predicted") else NOT_PREDICTED,
    )  # fmt: skip


def scores_of(program: Program, queue: Queue, now_s: float) -> Any:
    """Scores of the jobs in a queue by a rule in plain Python, shape (q,).

    Raises:
        InputError: the rule does not return one number per job.
    """
    rule: Any = program.score
    with np.errstate(divide="ignore"):
        given = rule(queue)
    try:
        scores = np.asarray(given, dtype=None if np.iscomplexobj(given) else np.float64)
    except (TypeError, ValueError):
        refuse_scores(program.name, now_s)
    if scores.dtype != np.float64 or scores.shape != queue.submit_s.shape or np.isnan(scores).any():
        refuse_scores(program.name, now_s)
    return scores
