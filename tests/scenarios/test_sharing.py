"""Scenarios that share what is equal: the same figures as those read on their own, and less memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenbatch.experiments.running.cells import Cell, Question
from greenbatch.scenarios import load_scenario
from greenbatch.schedulers import scheduler_table

STORAGE = {"capacity_kwh": 5.0, "charge_w": 2000.0, "discharge_w": 2000.0}
CHANGES: dict[str, dict[str, Any]] = {
    "storage": {"site.storage": STORAGE}, "area": {"site.area_m2": 50.0}, "forecast": {"site.forecast": {"sigma": 0.4}},
    "rules": {"rules.overrun": "kill"}, "processors": {"cluster.processors": 300},
    "idle power": {"cluster.idle_power_per_machine_w": 10.0}, "jobs": {"workload.generator.seed": 7},
    "power of jobs": {"workload.power.seed": 9}, "power range": {"workload.power.high_w": 90},
}  # fmt: skip
JOBS_CHANGE = {"jobs", "power of jobs", "power range", "processors", "idle power"}
"""Changes after which jobs are read again: what decides them, or the machine that they are fitted to."""


def figures(overrides: dict[str, Any], like: Any = None) -> tuple[Any, Any]:
    scenario = load_scenario("default", overrides=overrides, like=like)
    deciders = scheduler_table(["fcfs+easy", "f2+green"])
    question = Question(scenarios={"": scenario}, deciders=deciders, jobs=60, baseline="fcfs+easy")
    return scenario, question.figures(Cell("", 300))


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_shared_changes_no_figure(name: str) -> None:
    first = load_scenario("default")
    shared, ours = figures(CHANGES[name], first)
    alone, theirs = figures(CHANGES[name])
    assert ours.names == theirs.names
    np.testing.assert_array_equal(ours.values, theirs.values)
    assert (shared.workload is first.workload) == (name not in JOBS_CHANGE)
    assert shared.resolved == alone.resolved
    assert shared.inputs == alone.inputs
    assert shared.notes == alone.notes
    if name in {"storage", "rules", "forecast"}:
        for source, values in shared.site.sources_w.items():
            assert values is first.site.sources_w[source]
    if name == "area":
        assert shared.site.sources_w["solar"] is not first.site.sources_w["solar"]
    assert shared.site is not first.site, "what nobody shares may be changed"


def test_nodes_are_read_again_and_agree(tmp_path: Path) -> None:
    first = load_scenario("ineps/adaptability-mixed")
    other = load_scenario("ineps/adaptability-mixed", overrides={"rules.overrun": "kill"}, like=first)
    assert other.workload is first.workload
    assert other.cluster.node_names == first.cluster.node_names
    assert first.rules.overrun != other.rules.overrun
