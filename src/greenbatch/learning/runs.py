"""What a training is made of, the folder that it lives in, and the trainer that it is given to.

``run.json`` holds everything that decides the weights; ``log.jsonl`` the figures of every epoch; ``checkpoint/`` the
state to go on from; ``model/`` the trained actor; ``events/`` TensorBoard's files, if asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.learning.checkpoint import replace_file
from greenbatch.learning.settings import TrainingSettings, read_training
from greenbatch.learning.windows import MODES, Mode

if TYPE_CHECKING:
    from greenbatch.envs.preset import Preset
    from greenbatch.learning.counters import Counters
    from greenbatch.scenarios import Scenario

RUN, LOG, CHECKPOINT, MODEL, EVENTS = "run.json", "log.jsonl", "checkpoint", "model", "events"
_PARTS = (RUN, LOG, CHECKPOINT, MODEL, EVENTS)
_TOOL = "greenbatch train"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that decides the weights of a training."""

    preset: Preset
    """As named; normalisers are resolved by the scenario."""
    settings: TrainingSettings
    """The preset's ``[training]`` table with what the command line put over it."""
    scenario: Scenario
    windows: Mode = "published"
    backfill: str
    device: str = "cpu"
    threads: int
    minutes: float | None = None
    """Train until so much time has passed, instead of ``settings.epochs`` epochs; not the same weights every time."""
    command: Sequence[str] = ()

    def record(self) -> dict[str, Any]:
        """What ``run.json`` says of it, ready for JSON."""
        return {
            "preset": self.preset.model_dump(mode="json"),
            "training": self.settings.model_dump(mode="json"),
            "scenario": dict(self.scenario.resolved),
            "inputs": dict(sorted(self.scenario.inputs.items())),
            "windows": self.windows,
            "backfill": self.backfill,
            "device": self.device,
            "threads": self.threads,
            "limit": "epochs" if self.minutes is None else "minutes",
        }


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
        scenario: what is trained on.
        overrides: dotted key of the preset -> value put over the file's, e.g. ``{"training.passes": 4}``.
        windows: ``published`` or ``held-out``, see `learning.windows`.
        backfill: backfilling; the preset's if not given.
        epochs: epochs, instead of the preset's.
        minutes: train by time instead.
        seed: instead of the preset's.
        threads: instead of the preset's; 0 = as many as this process may use.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        command: the command line, for provenance.

    Raises:
        InputError: an unknown preset, key or value.
    """
    from greenbatch.envs.preset import preset

    made = _overridden(preset(preset_name), overrides or {})
    given = {"epochs": epochs, "seed": seed, "threads": threads}
    table = {**made.training, **{key: value for key, value in given.items() if value is not None}}
    settings = read_training(table)
    if windows not in MODES:
        raise InputError(f"is {windows!r}", field="--windows", fix="give " + " or ".join(MODES))
    if minutes is not None and not 0 < minutes < 1e6:
        raise InputError(f"is {minutes:g}", field="--minutes", fix="give a number of minutes above 0")
    mode: Mode = "published" if windows == "published" else "held-out"
    return Plan(
        preset=made, settings=settings, scenario=scenario, windows=mode,
        backfill=made.backfill if backfill is None else backfill, device=device, threads=threads_of(settings.threads),
        minutes=minutes, command=command,
    )  # fmt: skip


def threads_of(wanted: int) -> int:
    """Number of threads: as wanted, or as many as this process may use if that is 0."""
    if wanted:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parse_overrides(texts: Sequence[str]) -> dict[str, Any]:
    """``key=value`` texts as dotted keys and values; a value is TOML, or a text where it is not.

    Raises:
        InputError: a text has no key or no value.
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key or not value.strip() or not all(key.split(".")):
            raise InputError(f"is {text[:60]!r}", field="--set", fix="write key=value, e.g. training.passes=4")
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except (tomllib.TOMLDecodeError, KeyError):
            found[key] = value.strip()
    return found


def _overridden(made: Preset, overrides: Mapping[str, Any]) -> Preset:
    """A preset with other values at some dotted keys."""
    from greenbatch.envs.preset import check

    if not overrides:
        return made
    raw = made.model_dump(mode="json")
    for key, value in overrides.items():
        *tables, last = key.split(".")
        place: Any = raw
        for table in tables:
            place = place.setdefault(table, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise InputError("is not a key of a table", field=key, fix="write it as in the preset's file")
        place[last] = value
    return check(raw)


def carry_out(
    plan: Plan,
    folder: Path,
    *,
    watch: Callable[[dict[str, Any]], None],
    tell: Callable[[str, int, int], None] | None = None,
    tensorboard: bool = False,
    anew: bool = False,
) -> Counters:
    """Train a network, or search where the preset asks for it, which needs no torch; arguments as for `training.train`.

    Raises:
        InputError: training needs torch and there is none; else as `training.train`.
    """
    if plan.settings.search is not None:
        from greenbatch.learning.search import search

        return search(plan, folder, watch=watch, anew=anew)
    need_torch()
    from greenbatch.learning.training import train

    return train(plan, folder, watch=watch, tell=tell, tensorboard=tensorboard, anew=anew).counters


def need_torch() -> None:
    """Refuse to train networks without torch.

    Raises:
        InputError: it is not installed.
    """
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise InputError("training needs torch, which is not installed", fix='pip install "greenbatch[learn]"')


# ---------------------------------------------------------------- the folder


def begin(folder: Path, plan: Plan) -> None:
    """Make a folder and write down what is going to be trained.

    Raises:
        InputError: the folder cannot be made.
    """
    from greenbatch.provenance import provenance

    record = provenance(
        scenario=plan.scenario.resolved, inputs=plan.scenario.inputs, notes=plan.scenario.notes,
        settings={"backfill": plan.backfill, "windows": plan.windows, "minutes": plan.minutes},
        seed=plan.settings.seed, command=plan.command,
    )  # fmt: skip
    content = {"tool": _TOOL, "plan": plan.record(), "provenance": record}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, file=folder, field="--out", fix="choose a folder you may write to") from None
    replace_file(folder / RUN, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def check_same(folder: Path, plan: Plan) -> None:
    """Refuse to go on with a training that was started otherwise.

    Raises:
        InputError: names the first thing that differs.
    """
    before = read_run(folder)["plan"]
    for key, (old, new) in _differences(before, json.loads(json.dumps(plan.record()))).items():
        problem = f"is {_short(new)}, the training in {folder} was started with {_short(old)}"
        raise InputError(problem, field=key, fix="give the same as then, or another --out")


def read_run(folder: Path) -> dict[str, Any]:
    """``run.json`` of a training.

    Raises:
        InputError: there is none, or it is damaged.
    """
    file = folder / RUN
    try:
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("there is no training to resume", file=file, fix="leave out --resume") from None
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("tool") != _TOOL or not isinstance(content.get("plan"), dict):
        raise InputError("was not written by greenbatch train", file=file, fix="give another folder")
    return content


def other_versions(folder: Path) -> list[str]:
    """What a training was started with in another version than is here now: the weights may not be those of one go."""
    from greenbatch.provenance import source_sha256, versions

    before, now = read_run(folder).get("provenance", {}), versions()
    old = before.get("versions", {})
    found = [
        f"started with {name} {old[name]}, goes on with {now[name]}"
        for name in old
        if old[name] != now.get(name, old[name])
    ]
    changed = before.get("source_sha256") != source_sha256()
    return [*found, "started with another state of greenbatch's source"] if changed and not found else found


def check_new(folder: Path, *, force: bool) -> None:
    """Refuse a folder that a new training may not begin in.

    Raises:
        InputError: it is a file, or is not empty (without ``force``), or holds what no training wrote (with it).
    """

    def refuse(problem: str, fix: str) -> InputError:
        return InputError(problem, file=folder, field="--out", fix=fix)

    if not str(folder) or "\0" in str(folder):
        raise refuse("is not a folder name", "give the name of a folder")
    try:
        if folder.is_symlink() and not folder.exists():
            raise refuse("is a link to nowhere", "give another folder")
        if not folder.exists():
            return
        if not folder.is_dir():
            raise refuse("exists and is not a folder", "give another folder")
        filled = any(folder.iterdir())
    except OSError as error:
        raise refuse(f"cannot be used: {error.strerror}", "choose a folder you may write to") from None
    if filled and not force:
        fix = "give another folder, --resume to go on with the training in it, or --force to replace it"
        raise refuse("exists and is not empty", fix)
    ours = [part for part in _PARTS if (folder / part).exists()]
    if ours and RUN not in ours:
        raise refuse(f"holds {ours[0]}, which greenbatch train did not write", "move it away, or give another folder")
    if ours:
        read_run(folder)


def clear(folder: Path) -> None:
    """Remove an earlier training from a folder, and nothing else. ``run.json`` goes last."""
    for part in reversed(_PARTS):
        place = folder / part
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _differences(old: Any, new: Any, key: str = "") -> dict[str, tuple[Any, Any]]:
    """Dotted key -> (old, new) wherever two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for part in dict.fromkeys((*old, *new)):
            found |= _differences(old.get(part), new.get(part), f"{key}.{part}" if key else part)
        return found
    return {} if old == new else {key: (old, new)}


def _short(value: object) -> str:
    text = "not given" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
