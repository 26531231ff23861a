"""A trained actor as a folder: ``actor.safetensors`` and ``model.json``. Nothing here needs torch.

``model.json`` describes the weights: the preset with every normalizer as a number, the scenario with its profile and
the checksums of its inputs, windows, seed, versions, command, and the figures on the validation windows.
`records.ModelRecord` lists every key.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.display import Shown
from greenbatch.errors import InputError
from greenbatch.files import stored_bytes
from greenbatch.models.records import ACTOR, MODEL_FORMAT, ModelRecord
from greenbatch.models.tensors import read_tensors
from greenbatch.models.versioned import record_of
from greenbatch.presets.preset import refuse_preset
from greenbatch.presets.shapes import seen_by, shapes_of
from greenbatch.storage import replacement, restore

if TYPE_CHECKING:
    from greenbatch.presets.preset import Preset
    from greenbatch.scenarios import Scenario

Weights = dict[str, NDArray[np.float32]]

MODEL = "model"
"""Folder of the model in the folder of its training."""
RECORD = "model.json"
LARGEST_BYTES = 20_000_000
"""Upper limit on the size of the weights. [byte]"""
FIX = "copy the folder again, or train again"
"""The remedy for a damaged model."""

BOUND = "makespan_bound_"
"""Prefix of the names of a look-ahead planner's weights; the target makespan relative to F2 follows."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Model(Shown):
    """A trained actor with its preset and record."""

    folder: Path
    weights: Weights
    """Name of a parameter, as in the network's ``state_dict`` -> its value."""
    preset: Preset
    """The preset it was trained with; every normalizer is a number."""
    normalizers: Mapping[str, float]
    """Normalizer that depends on the scenario -> its value in training."""
    record: ModelRecord
    """All of ``model.json``."""

    @property
    def backfill(self) -> str:
        """The backfilling it was trained with."""
        return self.record.training.backfill

    def _facts(self) -> dict[str, str]:
        training = self.record.training
        return {
            "preset": self.preset.name,
            "backfilling": self.backfill,
            "weights": f"{sum(value.size for value in self.weights.values()):,}",
            "scenario": training.scenario,
            "epochs": str(training.epochs),
            "seed": str(training.seed),
            "folder": str(self.folder),
        }

    def check_fits(self, scenario: Scenario) -> None:
        """Check that the model fits a scenario.

        Raises:
            InputError: its agent does not go with the scenario, see ``capabilities.toml``, weighs the power of nodes
                that draw nothing, or the machine is larger than in training.
        """
        from greenbatch.presets.power import check_features

        name = self.preset.name
        refuse_preset(self.preset, scenario)
        check_features(self.preset, scenario, self.folder)
        largest, there = self.normalizers.get("processors"), scenario.cluster.processors
        if largest is not None and there > largest:
            problem = f"was trained for {largest:g} processors, {scenario.name} has {there}"
            raise InputError(problem, file=self.folder, fix=f"greenbatch train {name} --scenario {scenario.name}")


def save_model(folder: Path, weights: Mapping[str, NDArray[Any]], preset: Preset, record: Mapping[str, Any],
               *, scenario: Scenario) -> None:  # fmt: skip
    """Write a model, replacing an earlier one atomically. Other files in the folder are kept.

    Args:
        folder: the target folder.
        weights: parameters of the actor.
        preset: the preset with normalizers by name.
        record: further entries of ``model.json``: ``training``, ``validation``, ``provenance``.
        scenario: the scenario it was trained on, which resolves the normalizers.

    Raises:
        InputError: the weights are larger than `LARGEST_BYTES`, or another process is writing the model.
        OSError: it cannot be written; an earlier model is untouched.
    """
    from safetensors.numpy import save

    from greenbatch.presets.preset import resolve
    from greenbatch.scenarios.profile import profile

    content = save({name: np.asarray(value, np.float32, order="C") for name, value in weights.items()})
    if len(content) > LARGEST_BYTES:
        problem = f"the actor has {len(content):,} bytes of weights, more than {LARGEST_BYTES:,}"
        raise InputError(problem, field="network", fix="change [network] so that it has fewer")
    resolved = resolve(preset, scenario)
    whole = {
        "format": MODEL_FORMAT,
        "weights": {"file": ACTOR, "sha256": hashlib.sha256(content).hexdigest()},
        "preset": resolved.model_dump(mode="json"),
        "normalizers": _normalizers(preset, resolved),
        "profile": profile(scenario).model_dump(mode="json"),
        **record,
    }
    with replacement(folder, lambda _: (ACTOR, RECORD)) as made:
        (made.folder / ACTOR).write_bytes(content)
        (made.folder / RECORD).write_text(json.dumps(whole, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        made.deliver()


def load_model(folder: str | Path) -> Model:
    """Load a model from its folder, or from the folder of its training.

    Raises:
        InputError: a file is missing, damaged or in an unknown layout, or the weights do not fit the preset.
    """
    from greenbatch.presets.preset import check

    place = model_in(folder)
    record = read_record(place)
    file = place / RECORD
    preset = check(record.preset, file=file)
    seen = preset.observation
    for column in (*seen.queue.columns, *seen.running.columns, *seen.supply.columns, *seen.state.columns):
        if isinstance(column.scale, str):
            problem = f"has the scale {column.scale!r} instead of the number it was trained with"
            raise InputError(problem, file=file, field=column.feature, fix=FIX)
    weights = read_tensors(place / ACTOR, record.weights.sha256, fix=FIX)
    _check_shapes(weights, preset, place)
    normalizers = {str(name): number for name, number in record.normalizers.items()}
    return Model(folder=place, weights=weights, preset=preset, normalizers=normalizers, record=record)


def read_record(folder: Path) -> ModelRecord:
    """Read ``model.json`` of a model, in the current or an earlier layout.

    Raises:
        InputError: it is missing, damaged, or in a later layout.
    """
    file = folder / RECORD
    try:
        content = stored_bytes(file)
    except (FileNotFoundError, NotADirectoryError):
        fix = "give the folder of a training, or its folder model"
        raise InputError("is not a model: there is no such file", file=file, fix=fix) from None
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, file=file, fix=FIX) from None
    return record_of(ModelRecord, content, file=file, what="the record of a model", fix=FIX)


def is_model(folder: str | Path) -> bool:
    """Whether a folder contains a model."""
    place = Path(folder)
    for written in (place.parent, place):  # the training, or the model in it
        restore(written)
    return os.path.isfile(place / RECORD)


def model_in(folder: str | Path) -> Path:
    """The folder of a model: ``model/`` in the folder of a training, else the folder itself."""
    place = Path(folder)
    return place / MODEL if not is_model(place) and is_model(place / MODEL) else place


def _normalizers(preset: Preset, resolved: Preset) -> dict[str, float]:
    """Normalizer that depends on the scenario -> its number."""
    found: dict[str, float] = {}
    for kind in ("queue", "running", "supply", "state"):
        named, numbers = (getattr(seen, kind).columns for seen in (preset.observation, resolved.observation))
        for column, number in zip(named, numbers, strict=True):
            if isinstance(column.scale, str):
                found[column.scale] = float(number.scale)
    return found


def _check_shapes(weights: Weights, preset: Preset, folder: Path) -> None:
    """Refuse weights whose first layers or delay head do not match the preset's columns and delays."""
    if preset.is_policy or preset.is_planner:
        _check_found(weights, preset, folder)
        return
    seen = preset.observation
    shown, delays = len(seen.queue.columns), len(preset.action.delays)
    kind = str(preset.network.get("kind"))
    if kind in {"rare", "recurrent"}:
        slots = seen_by(shapes_of(preset), preset.network.get("sees", "both"))
        of_rare = {"encoder.jobs.0.weight": (1, slots.jobs)} if slots.jobs else {}
        _check_layers(weights, of_rare if kind == "rare" else {"body.hidden.0.weight": (1, slots.width)}, folder)
        return
    pooled = kind in {"attention", "context"}  # these read the state beside every row
    first = "rows.0.weight" if kind in {"kernel", "ineps", "linear"} else "encode_queue.0.weight"
    wanted = {first: (1, shown + (len(seen.state.columns) if pooled else 0))}
    if "encode_running.0.weight" in weights:
        wanted["encode_running.0.weight"] = (1, len(seen.running.columns))
    if "encode_supply.0.weight" in weights:
        wanted["encode_supply.0.weight"] = (1, len(seen.supply.columns))
    if "delay.1.weight" in weights:
        wanted["delay.1.weight"] = (0, delays)
    _check_layers(weights, wanted, folder)


def _check_layers(weights: Weights, wanted: Mapping[str, tuple[int, int]], folder: Path) -> None:
    """Refuse weights without layers of given lengths along an axis, or that are not finite."""
    for name, (axis, length) in wanted.items():
        if name not in weights or weights[name].ndim != 2:
            raise _misfit(folder, f"have no layer {name.removesuffix('.weight')}")
        if (found := weights[name].shape[axis]) != length:
            what = "delays" if axis == 0 else "columns"
            raise _misfit(folder, f"are for {found} {what} at {name.removesuffix('.weight')}, the preset has {length}")
    for name, value in weights.items():
        bias = weights.get(f"{name.removesuffix('.weight')}.bias")
        if name.endswith(".weight") and value.ndim == 2 and bias is not None and bias.shape != value.shape[:1]:
            raise _misfit(folder, f"have a bias of shape {bias.shape} for {len(value)} units at {name}")
    if any(value.dtype != np.float32 or not np.isfinite(value).all() for value in weights.values()):
        raise _misfit(folder, "are not all finite float32 numbers")


def _check_found(weights: Weights, preset: Preset, folder: Path) -> None:
    """Refuse numbers of a planner or of a policy of the wrong number, or outside their ranges."""
    from greenbatch.models.policy_numbers import check_parameters

    if preset.is_planner:
        _check_numbers(weights, folder, chooses_nodes=preset.chooses_nodes)
    elif problem := check_parameters(weights, preset):
        raise _misfit(folder, problem)


def _check_numbers(weights: Weights, folder: Path, *, chooses_nodes: bool) -> None:
    """Refuse weights of a look-ahead planner of the wrong number, or outside the range of the search.

    The planner is compiled code without bounds checks: a horizon of 1e30 hours would write out of bounds.
    """
    from greenbatch.policies.compiled.lookahead.weights import numbers_of_model

    known = numbers_of_model(chooses_nodes=chooses_nodes)
    lowest, highest = np.array([(each.lowest, each.highest) for each in known.values()], np.float64).T
    rounding = 1e-6 * np.maximum(np.abs(lowest), np.abs(highest))
    for name, value in weights.items():
        if not _is_bound(name) or value.shape != (len(known),) or not np.isfinite(value).all():
            raise _misfit(folder, f"are not {len(known)} finite numbers at {name}")
        outside = np.flatnonzero((value < lowest - rounding) | (value > highest + rounding))
        if len(outside):
            k = int(outside[0])
            label = list(known)[k]
            problem = f"at {name} have {label} {value[k]:g}, which lies outside {lowest[k]:g} to {highest[k]:g}"
            raise _misfit(folder, problem)
    if not weights:
        raise _misfit(folder, "contain no model of a planner")


def _is_bound(name: str) -> bool:
    """Whether a name is that of the weights for a makespan bound, spelled as a search writes it."""
    try:
        makespan_bound = float(name.removeprefix(BOUND))
    except ValueError:
        return False
    return 0.0 < makespan_bound < np.inf and name == f"{BOUND}{makespan_bound:g}"


def _misfit(folder: Path, problem: str) -> InputError:
    fix = f"weights and preset belong to different models; {FIX}"
    return InputError(f"the weights {problem}", file=folder / ACTOR, fix=fix)
