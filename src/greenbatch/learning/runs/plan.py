"""The plan of a training: a preset with overrides, a scenario, and when to stop."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.presets.training import MODES, Mode, TrainingSettings, read_training
from greenbatch.scenarios.toml import overridden

if TYPE_CHECKING:
    from greenbatch.presets.preset import Preset
    from greenbatch.scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that determines the weights of a training."""

    preset: Preset
    """Not yet resolved: some normalizers depend on the scenario."""
    settings: TrainingSettings
    """The preset's ``[training]`` table with the overrides of the command line."""
    scenario: Scenario
    windows: Mode = "published"
    backfill: str
    device: str = "cpu"
    threads: int
    minutes: float | None = None
    """Train for this time instead of ``settings.epochs`` epochs; the weights are then not reproducible."""
    command: Sequence[str] = ()
    beside: Sequence[Scenario] = ()
    """Further scenarios of a search, those of ``training.search.beside``."""

    @property
    def limit(self) -> str:
        """What limits the training."""
        return "epochs" if self.minutes is None else "minutes"

    def record(self) -> dict[str, Any]:
        """The plan as recorded in ``run.json``, ready for JSON."""
        return {
            "preset": self.preset.model_dump(mode="json"),
            "training": self.settings.model_dump(mode="json"),
            "scenario": dict(self.scenario.resolved),
            "inputs": dict(sorted({**self.scenario.inputs, **self._dataset()}.items())),
            "beside": [dict(other.resolved) for other in self.beside],
            "windows": self.windows,
            "backfill": self.backfill,
            "device": self.device,
            "threads": self.threads,
            "limit": self.limit,
            "minutes": self.minutes,
        }

    def _dataset(self) -> dict[str, str]:
        """Description of the dataset that an off-policy training learns from -> its checksum, which is of all parts."""
        from greenbatch.datasets.schema import RECORD
        from greenbatch.files import sha256_of

        own = self.settings.off_policy
        file = None if own is None or not own.dataset else Path(own.dataset) / RECORD
        return {} if file is None else {str(file): sha256_of(file)}


def make_plan(
    preset_name: str | Path,
    scenario: Scenario,
    *,
    overrides: Mapping[str, Any] | None = None,
    windows: str = "published",
    backfill: str | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    device: str = "cpu",
    command: Sequence[str] = (),
) -> Plan:
    """The plan of a training.

    Args:
        preset_name: a shipped preset or a TOML file.
        scenario: the scenario to train on.
        overrides: dotted key of the preset -> value that overrides the file's, e.g. ``{"training.passes": 4}``.
        windows: ``published`` or ``held-out``, see `learning.runs.windows`.
        backfill: backfilling, and after it a placement, as in ``easy+worst-fit``; by default the preset's.
        epochs: epochs; by default the preset's.
        minutes: train for this time instead.
        seed: by default the preset's.
        threads: by default the preset's; 0 = as many as this process may use.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        command: the command line, for provenance.

    Raises:
        InputError: an unknown preset, key or value, or a reward or features that are always 0 on the scenario.
    """
    from greenbatch.presets.constraints import with_costs
    from greenbatch.presets.power import check_features, check_reward
    from greenbatch.presets.preset import preset, refuse_preset
    from greenbatch.scenarios import load_scenario

    made = _overridden(preset(preset_name), overrides or {})
    given = {"epochs": epochs, "seed": seed, "threads": threads}
    table = {**made.training, **{key: value for key, value in given.items() if value is not None}}
    settings = read_training(table)
    made = made.model_copy(update={"reward": with_costs(made.reward, settings.constraints)})
    refuse_preset(made, scenario)
    check_reward(made, scenario, costs=settings.constraints)
    check_features(made, scenario)
    if windows not in MODES:
        more = "; the number of windows is --set training.windows=N" if windows.isdecimal() else ""
        raise InputError(f"is {windows!r}", field="--windows", fix=f"give {' or '.join(MODES)}{more}")
    if minutes is not None and not 0 < minutes < 1e6:
        raise InputError(f"is {minutes:g}", field="--minutes", fix="give a number of minutes above 0")
    beside = () if settings.search is None else tuple(map(load_scenario, settings.search.beside))
    mode: Mode = "published" if windows == "published" else "held-out"
    return Plan(
        preset=made, settings=settings, scenario=scenario, windows=mode,
        backfill=made.backfill if backfill is None else backfill, device=device, threads=threads_of(settings.threads),
        minutes=minutes, command=command, beside=beside,
    )  # fmt: skip


def threads_of(threads: int) -> int:
    """Number of threads; 0 means as many as this process may use."""
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parse_overrides(texts: Sequence[str] | None) -> dict[str, Any]:
    """``key=value`` texts as dotted keys and values; a value that is not TOML is taken as text.

    Args:
        texts: the texts, None if the flag was not given.

    Raises:
        InputError: there are none after the flag, or one has no key or no value.
    """
    if texts is not None and not texts:
        raise InputError("has no values", field="--set", fix="write --set key=value, e.g. training.passes=4")
    overrides: dict[str, Any] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key or not value.strip() or not all(key.split(".")):
            raise InputError(f"is {text[:60]!r}", field="--set", fix="write key=value, e.g. training.passes=4")
        try:
            overrides[key] = tomllib.loads(f"value = {value}")["value"]
        except (tomllib.TOMLDecodeError, KeyError):
            overrides[key] = value.strip()
    return overrides


def _overridden(made: Preset, overrides: Mapping[str, Any]) -> Preset:
    """A preset with overrides at dotted keys."""
    from greenbatch.presets.preset import check
    from greenbatch.presets.term_names import in_key

    if not overrides:
        return made
    return check(overridden(made.model_dump(mode="json"), {in_key(key): value for key, value in overrides.items()}))
