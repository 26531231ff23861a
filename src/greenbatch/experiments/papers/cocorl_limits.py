"""Limits of the study ``cocorl``: 7/11 of what the agent accrues without a constraint (dissertation, §6.6.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from greenbatch.errors import InputError
from greenbatch.experiments.papers.cocorl import AIM, COST, FREE, SHARE, STUDY
from greenbatch.experiments.papers.studies import Selection, cells_of
from greenbatch.learning.several import state_of


def limits_of(which: Selection, place: Path) -> dict[str, float]:
    """Setting -> limit that trainings aim at, from validation windows of agents without a constraint.

    It is `AIM` of the limit, rounded to three digits, as an operator would; no window of a test plays a part.

    Args:
        which: the selected settings and seeds.
        place: folder of the trainings.

    Raises:
        InputError: a setting has no finished training without a constraint.
    """
    found: dict[str, list[float]] = {name: [] for name in which.traces}
    for cell in cells_of(STUDY, _free(which)):
        if state_of(place / cell.folder) == "finished":
            found[cell.trace].append(accrued(place / cell.folder))
    return {name: limit_of(costs, name, place) for name, costs in found.items()}


def limit_of(costs: Sequence[float], name: str, place: Path) -> float:
    """What is aimed at in a setting, from the accrued costs of its agents without a constraint."""
    if not costs:
        problem = f"has no finished training of {FREE} on {name}, by which its limit is set"
        raise InputError(problem, file=place, fix=f"train it as well: --presets {FREE},...")
    return float(f"{AIM * SHARE * float(np.mean(costs)):.3g}")


def accrued(folder: Path) -> float:
    """Mean accrued cost of a training's model over its validation windows.

    Raises:
        InputError: its record does not say.
    """
    from greenbatch.models.model import MODEL, load_model

    terms = load_model(folder / MODEL).record.validation.terms
    if COST not in terms:
        raise InputError(f"does not state {COST}", file=folder / MODEL, fix="train it with validation windows")
    return float(terms[COST])


def _free(which: Selection) -> Selection:
    return replace(which, presets=(FREE,))
