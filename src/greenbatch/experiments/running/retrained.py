"""Retrain models from their records and compare them with the originals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from greenbatch.errors import InputError
from greenbatch.experiments.running.compare import choose_windows, compare
from greenbatch.learning.runs.folder import begun, check_new
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.trainers import train_or_search
from greenbatch.models.find import shipped_models
from greenbatch.models.model import MODEL, RECORD, Model, is_model, load_model, model_in
from greenbatch.provenance import differences

if TYPE_CHECKING:
    from greenbatch.scenarios import Scenario

METRICS = ("renewable_utilization", "avg_bounded_slowdown", "makespan_ratio", "horizon_brown_kwh", "p95_wait_s")
"""Metrics that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrained:
    """A model compared with the one retrained from its record."""

    name: str
    same_weights: bool
    largest_difference: float
    """Largest absolute difference of a weight."""
    figures: dict[str, tuple[float, float]]
    """Metric -> (original, retrained), means over the scenario's evaluation windows."""


def choose(names: Sequence[str]) -> dict[str, Path]:
    """Models by name, PRESET/NAME or a folder; all shipped models if no name is given.

    Raises:
        InputError: a model does not exist.
    """
    known = shipped_models()
    if not names:
        return known
    found: dict[str, Path] = {}
    for name in names:
        folder = known.get(name, model_in(name))
        if not is_model(folder):
            raise InputError("is not a model", field=name, fix=f"give a model's folder, or one of {', '.join(known)}")
        found[name] = folder
    return found


def plan_of(model: Model, scenario: Scenario, command: Sequence[str] = ()) -> Plan:
    """The training plan of a model, from its record.

    Raises:
        InputError: its training was limited by time or not finished, so it cannot be repeated.
    """
    from greenbatch.presets.preset import check

    training = model.record.training
    if training.limit == "minutes" or not training.finished:
        problem = "was trained with a time limit" if training.finished else "was not trained to the end"
        raise InputError(problem, file=model.folder / RECORD, fix="give a model trained with --epochs")
    raw: dict[str, Any] = model.preset.model_dump()
    named = {str(scale): float(number) for scale, number in model.normalizers.items()}
    for table in ("queue", "running", "supply", "state"):  # back to normalizers by name, as in the preset's file
        for column in raw["observation"][table]["columns"]:
            scale = column["scale"]
            column["scale"] = next((name for name, number in named.items() if number == scale), scale)
    return Plan(
        preset=check(raw), settings=training.settings, scenario=scenario, windows=training.windows,
        backfill=training.backfill, device="cpu", threads=training.threads, command=command,
    )  # fmt: skip


def _check_same(model: Model, scenario: Scenario) -> None:
    """Refuse a scenario that differs from the one a model was trained on."""
    recorded = model.record.provenance
    resolved = json.loads(json.dumps(scenario.resolved))
    changed = {**differences(recorded.scenario, resolved), **differences(recorded.inputs, dict(scenario.inputs))}
    for key in changed:
        if key.partition(".")[0] not in {"description", "evaluation"}:
            problem = f"is not the scenario {model.folder} was trained on: {key} differs"
            raise InputError(problem, field=scenario.name, fix="give that one with --scenario")


def retrain(
    name: str, folder: Path, out: Path, watch: Any, command: Sequence[str] = (), given: str | None = None
) -> Retrained:
    """Retrain a model into a folder, or resume, and compare both models on the scenario's evaluation windows.

    Args:
        name: name of the model in the result.
        folder: the model.
        out: folder of the training.
        watch: called with the figures of each epoch.
        command: the command line, for provenance.
        given: the scenario it was trained on, if that is not a shipped one.

    Raises:
        InputError: there is no model, the scenario is not the one it was trained on, or its data cannot be found.
    """
    from greenbatch.scenarios import load_scenario

    model = load_model(folder)
    scenario = load_scenario(given or model.record.training.scenario)
    _check_same(model, scenario)
    plan = plan_of(model, scenario, command)
    if not begun(out):
        check_new(out, force=False)
    train_or_search(plan, out, watch=watch)
    retrained = load_model(out / MODEL)
    if set(retrained.weights) != set(model.weights):
        problem = "contains weights that differ from its record"
        raise InputError(problem, file=folder, fix="give a model as greenbatch train left it")
    differences = [float(np.abs(retrained.weights[key] - value).max()) for key, value in model.weights.items()]
    specs = [f"{model.preset.name}@{place}+{plan.backfill}" for place in (folder, out / MODEL)]
    starts, jobs = choose_windows(scenario, starts=None, windows=None, jobs=None, seed=None)
    found = compare(scenario, (scenario.evaluation.baseline, *specs), starts, jobs, scenario.evaluation.baseline)
    frame = found.frame
    figures = {}
    for metric in METRICS:
        means = [
            float(frame.filter((frame["scheduler"] == spec) & (frame["metric"] == metric))["value"].to_numpy().mean())
            for spec in specs
        ]
        figures[metric] = (means[0], means[1])
    return Retrained(
        name=name, same_weights=all(each == 0.0 for each in differences), largest_difference=max(differences),
        figures=figures,
    )  # fmt: skip
