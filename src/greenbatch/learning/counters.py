"""How far a training or a search has come: what of its state is no array."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class Counters:
    """What is no array."""

    epoch: int = 0
    """Epochs that are done."""
    decisions: int = 0
    """Decisions that were learned from."""
    elapsed_s: float = 0.0
    """Time spent, interruptions left out. [s]"""
    log_bytes: int = 0
    """Length of the log that belongs to this state."""
    averaged: int = 0
    """Weights in the average."""
    validated_epoch: int = -1
    """Epoch of the last validation; -1 before the first."""
    best_epoch: int = -1
    """Epoch of the best actor so far; -1 without one."""
    best_figure: float = 0.0
    best_terms: dict[str, float] = field(default_factory=dict)
    """Mean of every reward term over the validation windows, of the best actor."""
    best_averaged: bool = False
    """The best actor is an average of weights."""
    stale: int = 0
    """Validations since the best one."""
    done: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {name: getattr(self, name) for name in Counters.__slots__}
