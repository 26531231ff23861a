"""What a scenario contributes to the provenance of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greenbatch.notes import ordered
from greenbatch.scenarios.scenario import Scenario


def sources(scenario: Scenario, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The arguments of `provenance.provenance` that a scenario determines.

    Args:
        scenario: the scenario.
        files: file name -> SHA-256 of further input files, such as those of the schedulers.
    """
    inputs = {**scenario.inputs, **(files or {})}
    return {"scenario": scenario.resolved, "inputs": inputs, "notes": [str(note) for note in scenario.notes]}


def sources_of(scenarios: Mapping[str, Scenario]) -> dict[str, Any]:
    """The arguments of `provenance.provenance` that several scenarios determine together, each trace once.

    Args:
        scenarios: name of a trace -> its scenario.
    """
    return {
        "scenario": {trace: scenario.resolved for trace, scenario in scenarios.items()},
        "inputs": {file: digest for scenario in scenarios.values() for file, digest in scenario.inputs.items()},
        "notes": [str(note) for note in ordered(note for scenario in scenarios.values() for note in scenario.notes)],
    }
