"""What a priority rule sees of the waiting jobs, and the scores that it gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.failures import refuse_scores
from greenbatch.engine.prediction.known import predicts
from greenbatch.engine.program import Program
from greenbatch.engine.records import SHORT_S
from greenbatch.engine.state import State, attributes_of
from greenbatch.engine.views.interface import NOT_PREDICTED, Attributes, Predicted, Queue
from greenbatch.machine_code.fingerprint import names_in
from greenbatch.workload import Workload


def uses(rule: Callable[..., Any], field: str) -> bool:
    """Whether a rule, or a function that it may call, names a field of the queue, such as ``attributes``.

    If in doubt, as with an object that can be called, it may.
    """
    todo: list[Any] = [rule]
    seen: set[Any] = set()
    for each in todo:  # which grows
        function = inspect.unwrap(getattr(each, "py_func", each))
        if not isinstance(function, FunctionType):
            return True
        if function in seen:
            continue
        seen.add(function)
        names = set(names_in(function.__code__))
        if field in names:
            return True
        todo += filter(_may_use, _named(function, names))
    return False


def _named(function: FunctionType, names: set[str]) -> Iterator[Any]:
    """What the names in a function stand for, those in modules and in functions around it included."""
    for cell in function.__closure__ or ():
        yield cell.cell_contents
    for value in (function.__globals__[name] for name in names & function.__globals__.keys()):
        yield value
        if isinstance(value, ModuleType) and not _is_library(value.__name__):
            yield from (vars(value)[name] for name in names & vars(value).keys())


def _may_use(value: Any) -> bool:
    """Whether something that a rule names could be a function of the queue."""
    library = isinstance(value, np.ufunc | BuiltinFunctionType) or _is_library(getattr(value, "__module__", "") or "")
    return callable(value) and not library


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in {"builtins", "math", "numba", "numpy"}


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
    attributes = attributes_of(workload).T if uses(rule, "attributes") else np.zeros((len(Attributes._fields), 0))
    return Queue(
        0.0, float(cluster.processors), float(cluster.processors), workload.submit_s.copy(), -workload.submit_s,
        workload.requested_time_s.copy(), workload.processors.astype(np.float64),
        np.where(np.isnan(workload.power_w), 0.0, workload.power_w), workload.user.astype(np.float64),
        Attributes(*attributes.copy()),
        predicted_by_requests(workload.requested_time_s) if uses(rule, "predicted") else NOT_PREDICTED,
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
