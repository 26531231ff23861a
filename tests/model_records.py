"""Records of models for tests, as a training writes them."""

from __future__ import annotations

from typing import Any

from greenbatch.learning.counters import Counters
from greenbatch.learning.model import training_record
from greenbatch.learning.plan import make_plan
from greenbatch.scenarios import Scenario

WITHOUT_VALIDATION = {"training.jobs": 10, "training.validation.windows": 0, "training.keep": "last"}


def record_for(scenario: Scenario, backfill: str = "none", **given: Any) -> dict[str, Any]:
    """What `save_model` is told by a training of one epoch."""
    plan = make_plan("rlscheduler", scenario, overrides=WITHOUT_VALIDATION, threads=1, backfill=backfill, **given)
    made = training_record(plan, Counters(epoch=1, done=True), kept="last", averaged=False)
    return {**made, "validation": {}}
