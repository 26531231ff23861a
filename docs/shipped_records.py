"""Rewrite the records of the shipped models in the current layout; weights do not change.

What layout 2 adds follows from the scenario that each was trained on: its profile, and the jobs that lay in the windows
of its search. ``python docs/shipped_records.py`` needs the traces of GAS-MARL and HPC2N.
"""

from __future__ import annotations

import json
from pathlib import Path

from greenbatch.learning.runs.windows import seen_jobs
from greenbatch.models.find import shipped_models
from greenbatch.models.model import RECORD, read_record
from greenbatch.models.records import planner_limits
from greenbatch.scenarios import load_scenario
from greenbatch.scenarios.profile import profile

EXCEEDING = {
    "gas-marl-plus/lublin-256": "52 to 55% of random windows",
    "gas-marl-plus/cirne": "30 to 42% of random windows",
    "gas-marl-plus/jann": "62 to 75% of random windows",
}
"""Name of a model -> windows of its own trace that exceed the target makespan, as measured by docs/limits.py."""


def rewritten(folder: Path) -> str:
    """The record of a model, in the present layout."""
    raw, record = json.loads((folder / RECORD).read_text(encoding="utf-8")), read_record(folder)
    training = record.training
    scenario = load_scenario(training.scenario)
    name = f"{folder.parent.name}/{folder.name}"
    search = training.settings.search
    usual = 1.5 if search is None else max(search.makespan_bound)
    limits = planner_limits(EXCEEDING.get(name, "single windows can"), usual)
    tables = {
        "format": record.format, "weights": raw["weights"], "preset": raw["preset"], "normalizers": raw["normalizers"],
        "profile": profile(scenario).model_dump(mode="json"), "limits": limits,
        "training": {
            **raw["training"], "seen_jobs": seen_jobs(scenario, training.settings, training.windows),
            "untrained": training.untrained,
        },
        "validation": raw["validation"], "provenance": raw["provenance"],
    }  # fmt: skip
    return json.dumps(tables, indent=2, allow_nan=False) + "\n"


if __name__ == "__main__":
    for folder in shipped_models().values():
        (folder / RECORD).write_text(rewritten(folder), encoding="utf-8")
        read_record(folder)
        print(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)
