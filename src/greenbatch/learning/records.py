"""Schemas of the files written by trainings, one type per file, validated on reading.

``model.json`` is a `ModelRecord`, ``run.json`` a `RunRecord`, ``checkpoint/state.json`` a `CheckpointRecord`. Each
carries the version of its layout, ``format``. `UPGRADES` converts files of earlier layouts to the current one; later
ones are refused. Unknown keys are refused too, so a new key requires a new version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from greenbatch.envs.preset import PRICES_KIND, Normalizer
from greenbatch.errors import InputError
from greenbatch.learning.settings import TrainingSettings
from greenbatch.learning.windows import HELD_OUT, Mode
from greenbatch.scenarios.check import problems
from greenbatch.scenarios.profile import Profile
from greenbatch.scenarios.section import Natural, NotNegative, Positive, Section, Seed, Text

MODEL_FORMAT, RUN_FORMAT, CHECKPOINT_FORMAT = 2, 2, 1
"""Versions of the layouts of ``model.json``, ``run.json`` and ``checkpoint/state.json``."""
TOOL = "greenbatch train"
ACTOR = "actor.safetensors"
LAST_JOB = 1_000_000_000
"""Last job of a trace of unknown length."""

Table = dict[str, Any]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digests = dict[Text, Digest]
FileName = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$", max_length=200)]
Threads = Annotated[int, Field(ge=1, le=1_000_000)]


def planner_limits(exceeding: str = "single windows can") -> tuple[str, str]:
    """Limits of the look-ahead planner, as written to its records.

    Args:
        exceeding: subject of "exceed it"; the share of windows if it was measured for this model.
    """
    return (
        f"makespan_bound (1.5 unless set) is a target for the makespan relative to F2's; {exceeding} exceed it",
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
    terms: dict[Text, float] = Field(default_factory=dict)


class ModelRecord(Section):
    """``model.json``: description of a model."""

    format: Literal[2]
    weights: WeightsRecord
    preset: Table
    """As trained, with every normalizer as a number; see `envs.preset.check`."""
    normalizers: dict[Normalizer, NotNegative]
    profile: Profile | None
    """Of the scenario it was trained on; null in records upgraded from layout 1."""
    limits: Annotated[tuple[Text, ...], Field(strict=False)]
    """Uses the model is not intended for, and what it does not guarantee."""
    training: TrainingRecord
    validation: ValidationRecord
    provenance: Provenance


class PlanRecord(Section):
    """Everything that decides the weights, see `learning.plan.Plan`."""

    preset: Table
    training: TrainingSettings
    scenario: Table
    inputs: Digests
    windows: Mode
    backfill: Text
    device: Text
    threads: Threads
    limit: Literal["epochs", "minutes"]
    minutes: Positive | None


class RunRecord(Section):
    """``run.json``: the training in a folder."""

    format: Literal[2]
    tool: Literal["greenbatch train"]
    plan: PlanRecord
    provenance: Provenance


class CheckpointRecord(Section):
    """``checkpoint/state.json``: the file of tensors, and all other state."""

    format: Literal[1]
    tensors: FileName
    sha256: Digest
    state: Table

    @model_validator(mode="after")
    def _beside(self) -> CheckpointRecord:
        if not self.tensors.endswith(".safetensors"):
            raise ValueError(f"tensors is {self.tensors!r}; it must be a file of tensors")
        return self


def _model_from_1(old: Table) -> Table:
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


def _run_from_1(old: Table) -> Table:
    """Layout 2 adds the version."""
    return {**old, "format": 2}


UPGRADES: Mapping[type[Section], Mapping[int, Callable[[Table], Table]]] = {
    ModelRecord: {1: _model_from_1},
    RunRecord: {1: _run_from_1},
    CheckpointRecord: {},
}
"""Record -> layout -> its conversion to the next layout."""
FIRST_WITHOUT_VERSION = (RunRecord,)
"""Records whose first layout has no version."""

Record = TypeVar("Record", ModelRecord, RunRecord, CheckpointRecord)


def read_table(content: bytes) -> Table | None:
    """Parse a JSON object of finite numbers; None if the content is anything else."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        made = json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) else None


def record_of(kind: type[Record], content: bytes, *, file: Path, what: str, fix: str) -> Record:
    """Parse a record in the current or an earlier layout.

    Args:
        kind: its type.
        content: content of the file.
        file: name of the file, for messages.
        what: description of the record, for messages.
        fix: remedy if it is damaged, for messages.

    Raises:
        InputError: it is damaged or in a later layout; names the field.
    """
    raw = read_table(content)
    if raw is None:
        raise InputError(f"is damaged: it is not {what}", file=file, fix=fix)
    newest: int = max((*(layout + 1 for layout in UPGRADES[kind]), 1))
    layout = raw.get("format", 1 if kind in FIRST_WITHOUT_VERSION else None)
    if layout is None:
        raise InputError(f"is damaged: it is not {what}", file=file, fix=fix)
    if type(layout) is not int or not 1 <= layout <= newest:
        known = " and ".join(str(each) for each in (*UPGRADES[kind], newest))
        problem = f"has layout {str(layout)[:20]}, this version of greenbatch reads {known}"
        raise InputError(problem, file=file, fix="use the version that wrote it, or train again")
    for number in range(layout, newest):
        raw = UPGRADES[kind][number](raw)
    return checked(kind, raw, file=file, fix=fix)


Schema = TypeVar("Schema", bound=Section)


def checked(kind: type[Schema], raw: Mapping[str, Any], *, file: Path, fix: str, line: int | None = None) -> Schema:
    """Validate a table against its type.

    Raises:
        InputError: names the first field that is missing, unknown, of the wrong type or out of range.
    """
    try:
        return kind.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise InputError("is damaged: it is nested too deeply", file=file, fix=fix) from None
        first = problems(error, raw, kind, file=file, lines={})[0]
    known = first.fix is not None and first.problem not in {"is missing", "unknown key"}
    remedy = f"{first.fix}; or {fix}" if known else fix
    raise InputError(first.problem, file=file, line=line, field=first.field, fix=remedy)
