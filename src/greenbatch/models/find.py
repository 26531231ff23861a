"""Models by name: shipped ones, or folders of the user's."""

from __future__ import annotations

from pathlib import Path

from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.errors import InputError
from greenbatch.models.model import RECORD, Model, is_model, load_model, model_in
from greenbatch.models.records import ACTOR
from greenbatch.policies.backfillings import BACKFILLINGS

SHIPPED = Path(__file__).with_name("shipped")
"""Folder of the shipped models, each in PRESET/NAME."""


def shipped_models() -> dict[str, Path]:
    """The shipped models: PRESET/NAME -> folder."""
    return {file.parent.relative_to(SHIPPED).as_posix(): file.parent for file in sorted(SHIPPED.rglob(RECORD))}


def model_folder(preset: str, name: str) -> Path:
    """The folder of a model: a model or training of the user's, else a shipped model.

    Raises:
        InputError: there is no such model.
    """
    for folder in (model_in(name), SHIPPED / preset / name):
        if is_model(folder):
            return folder
    plain, _, last = name.rpartition("+")
    if plain and last in PLACEMENTS:
        problem = f"names the placement {last} without a backfilling"
        raise InputError(problem, field=f"{preset}@{name}", fix=f"write {preset}@{plain}+none+{last}")
    raise InputError("is not a model", field=f"{preset}@{name}", fix=_meant(preset, name))


def named_model(text: str) -> Path:
    """The folder of a model, given by a folder or as in a scheduler, ``PRESET@FOLDER`` or ``PRESET@FOLDER+BACKFILL``.

    Raises:
        InputError: there is no such model, or it is of another preset.
    """
    preset, _, folder = text.partition("@")
    if not folder or is_model(model_in(text)):
        return model_in(text)
    plain, _, backfill = folder.rpartition("+")
    if backfill in BACKFILLINGS and not is_model(model_in(folder)):
        folder = plain
    return find_model(preset, folder).folder


def find_model(preset: str, name: str, *, field: str | None = None) -> Model:
    """Load a model of a preset.

    Args:
        preset: name of the preset it must have been trained with.
        name: the model, see `model_folder`.
        field: the scheduler that names it, for messages.

    Raises:
        InputError: there is no such model, it is damaged, or it is of another preset.
    """
    model = load_model(model_folder(preset, name))
    if model.preset.name != preset:
        fix = f"write {model.preset.name}@{name}"
        raise InputError(f"is a model of {model.preset.name}, not of {preset}", file=name, field=field, fix=fix)
    return model


def _meant(preset: str, name: str) -> str:
    """The fix for the name of a model that does not exist."""
    folder, _, backfill = name.rpartition("+")
    if folder and is_model(model_in(folder)):
        return f"no backfilling is called {backfill!r}; known: {', '.join(sorted(BACKFILLINGS))}"
    shipped = [other.removeprefix(f"{preset}/") for other in shipped_models() if other.startswith(f"{preset}/")]
    others = f", or one of {', '.join(shipped)}" if shipped else ""
    return f"give the folder of a training, or its folder model{others}"


def weights_file(preset: str, name: str) -> Path:
    """The file of a model's weights."""
    return model_folder(preset, name) / ACTOR
