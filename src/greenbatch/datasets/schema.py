"""Schema of ``dataset.json``, the description of a dataset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from greenbatch.models.records import Digest, Digests
from greenbatch.models.versioned import Table, Versioned
from greenbatch.scenarios import Scenario
from greenbatch.scenarios.section import Count, Natural, NotNegative, Section, Seed, Text

DATASET_FORMAT = 1
"""Version of the layout of ``dataset.json`` and of the decisions."""
KIND = "greenbatch-dataset"
RECORD = "dataset.json"
_PLACES = frozenset({"file", "dataset", "description"})
"""Keys of a scenario that say where something is, or what it is about."""
FIX = "record it again, or copy it again"
"""Remedy for a dataset that is damaged."""


class SchedulerRecord(Section):
    """What was recorded of a scheduler."""

    name: Text
    share: Annotated[float, Field(gt=0, le=1)]
    """Share of the decisions that was asked for."""
    episodes: Natural
    decisions: Natural
    choices: Natural
    """Decisions at which more than one action is allowed."""
    mean_return: float | None
    """Mean sum of rewards of an episode; null without episodes."""
    late: Natural
    """Jobs that start later than in the schedule."""
    unseen: Natural
    """Those of them that were not among the rows when they were due."""
    left: Natural
    """Jobs of the schedule that have not started by the end of their episode."""
    held: Natural
    """Times that nothing started although the preset does not allow to wait; these are no decisions."""


class Part(Section):
    """A file of decisions."""

    file: Annotated[str, Field(pattern=r"^[\w.-]+\.parquet$", max_length=100)]
    decisions: Count
    sha256: Digest


class DatasetRecord(Versioned):
    """``dataset.json``: where decisions come from, and the files that hold them."""

    format: Literal[1]
    kind: Literal["greenbatch-dataset"]
    greenbatch: Text
    """Version that wrote it."""
    scenario: Text
    """Name of the scenario."""
    scenario_sha256: Digest
    """See `digest_of`."""
    resolved: Table
    """The scenario with every default filled in."""
    inputs: Digests
    """File name -> SHA-256 of every input file of the scenario."""
    preset: Table
    """With every normalizer as a number; see `presets.preset.check`."""
    jobs: Count
    """Jobs per episode."""
    episode_s: NotNegative
    """Length of an episode; 0: until all jobs have ended, or until the scenario's end. [s]"""
    seed: Seed
    schedulers: Annotated[tuple[SchedulerRecord, ...], Field(strict=False, min_length=1)]
    starts: Annotated[tuple[Natural, ...], Field(strict=False)]
    """First job of each episode."""
    decisions: Count
    parts: Annotated[tuple[Part, ...], Field(strict=False, min_length=1)]


def content_of(resolved: Mapping[str, Any], inputs: Mapping[str, str]) -> dict[str, Any]:
    """What a scenario states and its files contain, wherever the files are.

    Args:
        resolved: the scenario with every default filled in.
        inputs: file name -> SHA-256 of every input file.
    """
    return {"scenario": _without_places(resolved), "inputs": sorted(inputs.values())}


def digest_of(scenario: Scenario) -> str:
    """SHA-256 of `content_of` a scenario."""
    whole = content_of(scenario.resolved, scenario.inputs)
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _without_places(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_places(each) for key, each in value.items() if key not in _PLACES}
    return [_without_places(each) for each in value] if isinstance(value, list | tuple) else value
