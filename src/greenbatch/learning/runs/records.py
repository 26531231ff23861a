"""Records of a training: the schemas of its files, and what it writes into the record of its model.

``run.json`` is a `RunRecord`, ``checkpoint/state.json`` a `CheckpointRecord`; ``model.json`` is a
`models.records.ModelRecord`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from greenbatch.learning.runs.windows import seen_jobs
from greenbatch.models.records import Digest, Digests, Provenance, Threads, planner_limits
from greenbatch.models.versioned import Table, Versioned
from greenbatch.presets.term_names import in_preset
from greenbatch.presets.training import HELD_OUT, Mode, TrainingSettings
from greenbatch.provenance import provenance
from greenbatch.scenarios.section import Positive, Section, Text
from greenbatch.scenarios.sources import sources

if TYPE_CHECKING:
    from greenbatch.learning.runs.counters import Counters
    from greenbatch.learning.runs.plan import Plan

RUN_FORMAT, CHECKPOINT_FORMAT = 2, 1
"""Versions of the layouts of ``run.json`` and ``checkpoint/state.json``."""
TOOL = "greenbatch train"

FileName = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$", max_length=200)]


class PlanRecord(Section):
    """Everything that decides the weights, see `learning.runs.plan.Plan`."""

    preset: Annotated[Table, AfterValidator(in_preset)]
    training: TrainingSettings
    scenario: Table
    inputs: Digests
    beside: list[Table] = Field(default_factory=list)
    windows: Mode
    backfill: Text
    device: Text
    threads: Threads
    limit: Literal["epochs", "minutes"]
    minutes: Positive | None


def _run_from_1(old: Table) -> Table:
    """Layout 2 adds the version."""
    return {**old, "format": 2}


class RunRecord(Versioned):
    """``run.json``: the training in a folder."""

    upgrades: ClassVar = (_run_from_1,)
    first_has_version: ClassVar = False

    format: Literal[2]
    tool: Literal["greenbatch train"]
    plan: PlanRecord
    provenance: Provenance


class CheckpointRecord(Versioned):
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


def training_record(plan: Plan, counters: Counters, *, kept: str, averaged: bool) -> dict[str, Any]:
    """The entries ``training``, ``provenance`` and ``limits`` of ``model.json``.

    Args:
        plan: the training plan.
        counters: progress of the training.
        kept: which weights became the model, ``best`` on the validation windows or ``last``.
        averaged: whether they are an average.
    """
    settings, best = plan.settings, kept == "best"
    kept_epoch = counters.best_epoch if best else counters.epoch
    held_out = [HELD_OUT.start, HELD_OUT.stop - 1] if plan.windows == "held-out" else []
    return {
        "limits": _limits(plan),
        "training": {
            "scenario": plan.scenario.name,
            "windows": plan.windows,
            "held_out_jobs": held_out,
            "seen_jobs": [] if plan.preset.is_policy else seen_jobs(plan.scenario, settings, plan.windows),
            "backfill": plan.backfill,
            "seed": settings.seed,
            "threads": plan.threads,
            "device": plan.device,
            "epochs": counters.epoch,
            "kept": kept,
            "kept_epoch": kept_epoch,
            "untrained": _is_untrained(settings, kept_epoch),
            "averaged": averaged,
            "limit": plan.limit,
            "finished": counters.done,
            "decisions": counters.decisions,
            "minutes": round(counters.elapsed_s / 60, 3),
            "settings": settings.model_dump(mode="json"),
        },
        "provenance": provenance(
            **sources(plan.scenario),
            settings={"preset": plan.preset.name}, seed=settings.seed, command=plan.command,
        ),
    }  # fmt: skip


def _is_untrained(settings: TrainingSettings, epoch: int) -> bool:
    own = settings.off_policy
    return epoch == 0 or (own is not None and own.leaves_untrained(epoch))


def _limits(plan: Plan) -> list[str]:
    search = plan.settings.search
    return list(planner_limits(usual=max(search.makespan_bound))) if plan.preset.is_planner and search else []
