"""Metrics: per-job and per-run, each with its formula, unit, range and source in its docstring."""

from greenbatch.metrics.jobs import BOUND_S, CLASSES, PER_JOB, bounded_slowdown, run_s, slowdown, turnaround_s, wait_s
from greenbatch.metrics.measured import Cut, Measured, measure
from greenbatch.metrics.registry import METRICS, Metric, find, metric

# isort: split
# Importing a module registers its metrics; reports use this order.
from greenbatch.metrics import service, machine, power, horizon, money, window, record, valued  # noqa: F401, I001
from greenbatch.metrics.breakdown import Parts, evaluate_parts, parts_of
from greenbatch.metrics.horizon import Horizon, horizon_of
from greenbatch.metrics.window import evaluate, evaluate_window, json_ready

__all__ = [
    "BOUND_S",
    "CLASSES",
    "METRICS",
    "PER_JOB",
    "Cut",
    "Horizon",
    "Measured",
    "Metric",
    "Parts",
    "bounded_slowdown",
    "evaluate",
    "evaluate_parts",
    "evaluate_window",
    "find",
    "horizon_of",
    "json_ready",
    "measure",
    "metric",
    "parts_of",
    "run_s",
    "slowdown",
    "turnaround_s",
    "wait_s",
]
