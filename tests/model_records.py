"""Records of models for tests, as a training writes them."""

from __future__ import annotations

from typing import Any

from greenbatch.learning.runs.counters import Counters
from greenbatch.learning.runs.plan import Plan, make_plan
from greenbatch.learning.runs.records import training_record
from greenbatch.scenarios import Scenario

WITHOUT_VALIDATION = {"training.jobs": 10, "training.validation.windows": 0, "training.keep": "last"}


def record_for(scenario: Scenario, backfill: str = "none", **given: Any) -> dict[str, Any]:
    """The record that a training of one epoch passes to `save_model`."""
    plan = make_plan("rlscheduler", scenario, overrides=WITHOUT_VALIDATION, threads=1, backfill=backfill, **given)
    made = training_record(plan, Counters(epoch=1, done=True), kept="last", averaged=False)
    return {**made, "validation": {}}


COLUMNS = [
    {"feature": "wait", "scale": 3600, "log": True},
    {"feature": "requested_time", "scale": "longest_run_time", "ceiling": 1.0},
    {"feature": "processors", "scale": "processors", "ceiling": 1.0},
]
NETWORK = {
    "training.windows": 2, "training.jobs": 8, "training.passes": 1, "training.minibatch": 16,
    "training.validation.windows": 2, "training.validation.jobs": 10, "training.validation.every": 1,
    "observation.queue.rows": 4, "observation.queue.columns": COLUMNS, "observation.queue.empty": [],
    "training.advantage": "group", "training.rollouts": 2,
}  # fmt: skip
RANKING = {
    "training.windows": 2, "training.jobs": 20, "training.search.population": 4, "training.validation.windows": 2,
    "training.validation.jobs": 10,
}  # fmt: skip
INTERRUPTED = {"network-half": ("rlscheduler", NETWORK), "ranking-half": ("rlscheduler-plus", RANKING)}
"""Trainings in ``learning/layout_1`` that were interrupted -> preset and what was put over it."""


def interrupted_plan(name: str, scenario: Scenario) -> Plan:
    """The plan of one of `INTERRUPTED`."""
    preset, overrides = INTERRUPTED[name]
    return make_plan(preset, scenario, overrides=overrides, epochs=2, threads=1, seed=1)
