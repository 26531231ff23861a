"""Counters of a training or a search: the part of its state that is not arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from greenbatch.errors import InputError
from greenbatch.models.versioned import checked
from greenbatch.presets.term_names import Terms
from greenbatch.scenarios.section import Natural, NotNegative, Section

Since = Annotated[int, Field(ge=-1, le=1_000_000_000)]
Bytes = Annotated[int, Field(ge=0, lt=2**63)]


class Counters(Section):
    """Progress and results so far, stored in ``checkpoint/state.json``."""

    model_config = ConfigDict(frozen=False)

    epoch: Natural = 0
    """Completed epochs."""
    decisions: Bytes = 0
    """Decisions used for updates."""
    elapsed_s: NotNegative = 0.0
    """Time spent, without interruptions. [s]"""
    log_bytes: Bytes = 0
    """Length of the log at this state."""
    averaged: Natural = 0
    """Number of averaged weights."""
    validated_epoch: Since = -1
    """Epoch of the last validation; -1 before the first."""
    best_epoch: Since = -1
    """Epoch of the best actor so far; -1 if there is none."""
    best_figure: float = 0.0
    best_excess: NotNegative = 0.0
    """How far the best actor is beyond the constraints on the validation windows, relative to the bounds."""
    best_terms: Terms = Field(default_factory=dict)
    """Mean of every reward term of the best actor over the validation windows."""
    best_averaged: bool = False
    """Whether the best actor is an average of weights."""
    stale: Natural = 0
    """Validations since the best one."""
    done: bool = False

    @property
    def text(self) -> str:
        """Epochs, decisions and time in words."""
        epochs = "1 epoch" if self.epoch == 1 else f"{self.epoch:,} epochs"
        return f"{epochs}, {self.decisions:,} decisions, {self.elapsed_s / 60:.1f} min"

    @classmethod
    def read(cls, state: Mapping[str, Any], file: Path, fix: str) -> Counters:
        """The counters of a checkpoint.

        Raises:
            InputError: one is missing, unknown, of the wrong type or out of range.
        """
        counters = checked(cls, state, file=file, fix=fix)
        for name in cls.model_fields:
            if name not in {
                *state,
                "best_excess",
            }:  # without constraints it was 0; of others, a default would be a value that the training did not have
                raise InputError("is missing", file=file, field=name, fix=fix)
        return counters

    def as_dict(self) -> dict[str, Any]:
        """The counters, ready for JSON."""
        return self.model_dump()
