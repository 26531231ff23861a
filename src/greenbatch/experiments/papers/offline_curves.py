"""How many online decisions agents take to reach the value of online training: validation values by decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LAST = 3
"""Validations whose mean is a training's final value, and that must reach a value together."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The validations of a training, in order."""

    seed: int
    decisions: tuple[int, ...]
    """Decisions of its own so far, 0 while it only learns from data."""
    steps: tuple[int, ...]
    """Gradient steps so far."""
    values: tuple[float, ...]
    """Mean reward of the validation windows, which are the same for all trainings on a scenario."""

    @property
    def final(self) -> float:
        """Mean of the last validations."""
        return float(np.mean(self.values[-LAST:]))


def curve_of(seed: int, folder: Path) -> Curve:
    """The validations in the log of a training."""
    from greenbatch.experiments.reports.curves import log_of

    return curve_from(seed, log_of(folder))


def curve_from(seed: int, log: Sequence[Mapping[str, Any]]) -> Curve:
    """The validations among the records of a log."""
    so_far, points = 0, []
    for record in log:
        so_far += int(record.get("decisions", 0))
        if isinstance(record.get("validation"), (int, float)):
            points.append((so_far, int(record.get("steps", 0)), float(record["validation"])))
    decisions, steps, values = zip(*points, strict=True) if points else ((), (), ())
    return Curve(seed, decisions, steps, values)


def reached(curve: Curve, level: float) -> int | None:
    """Index of the last of the first `LAST` validations in a row whose mean is at least a level, or None.

    A single validation would do it by chance, as more of them are made.
    """
    values = np.array(curve.values)
    count = min(LAST, len(values))
    if not count:
        return None
    means = np.convolve(values, np.ones(count) / count, "valid")
    at = np.flatnonzero(means >= level)
    return int(at[0]) + count - 1 if at.size else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How soon the trainings of an agent have the final value of online training."""

    level: float
    """Mean over the seeds of online training of their final values."""
    decisions: tuple[int | None, ...]
    """Online decisions of each seed until then; None if it never has it."""
    steps: tuple[int | None, ...]
    """Gradient steps of each seed until then, those on data too."""
    before: float | None
    """Mean value of the last validation before the first decision of its own, over the seeds; None without one."""
    final: float
    """Mean of the final values over the seeds."""
    online_decisions: float
    """Mean number of decisions of online training."""
    online_steps: float
    """Mean number of gradient steps of online training."""

    @property
    def count(self) -> int:
        """Seeds that reach it."""
        return sum(each is not None for each in self.decisions)

    @property
    def ratio(self) -> float | None:
        """Mean decisions of the seeds that reach it over those of online training; None if a seed does not."""
        known = [each for each in self.decisions if each is not None]
        return float(np.mean(known)) / self.online_decisions if len(known) == len(self.decisions) else None


def reach(curves: Sequence[Curve], online: Sequence[Curve]) -> Reach | None:
    """Compare the trainings of an agent with online ones on the same scenario; None without validations of both."""
    curves, online = ([curve for curve in each if curve.values] for each in (curves, online))
    if not curves or not online:
        return None
    level = float(np.mean([curve.final for curve in online]))
    places = [reached(curve, level) for curve in curves]
    before = [
        value
        for curve in curves
        for value in [v for v, made in zip(curve.values, curve.decisions, strict=True) if made == 0][-1:]
    ]
    return Reach(
        level=level, before=float(np.mean(before)) if before else None,
        decisions=tuple(None if k is None else c.decisions[k] for c, k in zip(curves, places, strict=True)),
        steps=tuple(None if k is None else c.steps[k] for c, k in zip(curves, places, strict=True)),
        final=float(np.mean([curve.final for curve in curves])),
        online_decisions=float(np.mean([curve.decisions[-1] for curve in online])),
        online_steps=float(np.mean([curve.steps[-1] for curve in online])),
    )  # fmt: skip
