"""Schema of ``model.json``, the record of a trained model."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from greenbatch.models.versioned import Table, Versioned
from greenbatch.presets.preset import PRICES_KIND
from greenbatch.presets.scales import Normalizer
from greenbatch.presets.term_names import Terms
from greenbatch.presets.training import HELD_OUT, Mode, TrainingSettings
from greenbatch.scenarios.profile import Profile
from greenbatch.scenarios.section import Natural, NotNegative, Section, Seed, Text

MODEL_FORMAT = 2
"""Version of the layout of ``model.json``."""
ACTOR = "actor.safetensors"
LAST_JOB = 1_000_000_000
"""Last job of a trace of unknown length."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digests = dict[Text, Digest]
Threads = Annotated[int, Field(ge=1, le=1_000_000)]


def planner_limits(exceeding: str = "single windows can", usual: float = 1.5) -> tuple[str, str]:
    """Limits of the look-ahead planner, as written to its records.

    Args:
        exceeding: subject of "exceed it"; the share of windows if it was measured for this model.
        usual: its largest bound, which it takes unless another one is set.
    """
    return (
        f"makespan_bound ({usual:g} unless set) is a target for the makespan relative to F2's; {exceeding} exceed it",
        "the planner is not made for users' estimates of run times or for whole traces in one run",
    )


def _first_and_last(jobs: tuple[int, ...]) -> tuple[int, ...]:
    if len(jobs) != 2 or jobs[0] > jobs[1]:
        raise ValueError(f"is {list(jobs)}; it must be the first and the last job")
    return jobs


Jobs = Annotated[tuple[Natural, ...], Field(strict=False), AfterValidator(_first_and_last)]
"""First and last of consecutive jobs, 0-based."""
JobsOrNone = Annotated[
    tuple[Natural, ...], Field(strict=False), AfterValidator(lambda jobs: jobs and _first_and_last(jobs))
]
"""The same, or empty."""


class Run(Section):
    """The command line and platform of a run."""

    command: Annotated[tuple[str, ...], Field(strict=False)]
    python: str
    platform: str
    machine: str


class Provenance(Section):
    """Provenance of a result, see `greenbatch.provenance`."""

    settings: Table
    seed: Seed | None
    inputs: Digests
    notes: Annotated[tuple[str, ...], Field(strict=False)]
    scenario: Table
    """With every default filled in."""
    versions: dict[str, str]
    source_sha256: Digest
    run: Run


class WeightsRecord(Section):
    """The file of the weights."""

    file: Literal["actor.safetensors"]
    sha256: Digest


class TrainingRecord(Section):
    """How a model was trained."""

    scenario: Text
    windows: Mode
    held_out_jobs: JobsOrNone
    """First and last job reserved for tests; empty for ``published`` windows."""
    seen_jobs: Annotated[tuple[Jobs, ...], Field(strict=False)]
    """Ranges of jobs that training or validation windows cover or could have covered."""
    backfill: Text
    seed: Seed
    threads: Threads
    device: Text
    epochs: Natural
    """Epochs completed."""
    kept: Literal["best", "last"]
    kept_epoch: Natural
    untrained: bool
    """Whether the weights kept are those before the first epoch."""
    averaged: bool
    limit: Literal["epochs", "minutes"]
    finished: bool
    decisions: Annotated[int, Field(ge=0, le=2**63)]
    minutes: NotNegative
    settings: TrainingSettings


class ValidationRecord(Section):
    """The windows on which the best actor was selected, and its figures there."""

    starts: Annotated[tuple[Natural, ...], Field(strict=False)] = ()
    jobs: Natural = 0
    figure: float | None = None
    terms: Terms = Field(default_factory=dict)


def _from_1(old: Table) -> Table:
    """Layout 2 adds the profile of the scenario, the jobs seen, whether the weights are trained, and limits.

    For a record of layout 1 the profile is unknown, and every job that was not held out counts as seen.
    """
    training = old.get("training")
    if isinstance(training, dict):
        apart = training.get("windows") == "held-out"
        seen = [[0, HELD_OUT.start - 1], [HELD_OUT.stop, LAST_JOB]] if apart else [[0, LAST_JOB]]
        training = {**training, "seen_jobs": seen, "untrained": training.get("kept_epoch") == 0}
    preset = old.get("preset")
    network = preset.get("network") if isinstance(preset, dict) else None
    planner = isinstance(network, dict) and network.get("kind") == PRICES_KIND
    limits = list(planner_limits()) if planner else []
    return {**old, "format": 2, "profile": None, "limits": limits, "training": training}


class ModelRecord(Versioned):
    """``model.json``: description of a model."""

    upgrades: ClassVar = (_from_1,)

    format: Literal[2]
    weights: WeightsRecord
    preset: Table
    """As trained, with every normalizer as a number; see `presets.preset.check`."""
    normalizers: dict[Normalizer, NotNegative]
    profile: Profile | None
    """Of the scenario it was trained on; null in records upgraded from layout 1."""
    limits: Annotated[tuple[Text, ...], Field(strict=False)]
    """Uses the model is not intended for, and what it does not guarantee."""
    training: TrainingRecord
    validation: ValidationRecord
    provenance: Provenance
