"""The folder that a training lives in, and the trainer that its plan is given to.

``run.json`` holds everything that decides the weights; ``log.jsonl`` the figures of every epoch; ``checkpoint/`` the
state to go on from; ``model/`` the trained actor; ``events/`` TensorBoard's files, if asked for.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.learning.checkpoint import replace_file

if TYPE_CHECKING:
    from greenbatch.learning.counters import Counters
    from greenbatch.learning.plan import Plan

RUN, LOG, CHECKPOINT, MODEL, EVENTS = "run.json", "log.jsonl", "checkpoint", "model", "events"
_PARTS = (RUN, LOG, CHECKPOINT, MODEL, EVENTS)
_TOOL = "greenbatch train"


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

        if tensorboard:
            raise InputError("a search writes no events", field="--tensorboard", fix="leave it out; log.jsonl has all")
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


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Make a folder and keep other trainings out of it; the operating system lets go when the process ends.

    Raises:
        InputError: the folder cannot be made, or another training runs in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except (OSError, ValueError) as error:
        problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, file=folder, field="--out", fix="choose a folder you may write to") from None
    try:
        if not _locked(handle):
            fix = "wait for it to end, or give another folder"
            raise InputError("another training runs here", file=folder, field="--out", fix=fix)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Lock an open folder; False if somebody else holds it, True also where folders cannot be locked."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True


def begin(folder: Path, plan: Plan, *, anew: bool = False) -> None:
    """Make a folder and write down what is going to be trained, unless that is written there already.

    Args:
        folder: where it goes.
        plan: what is trained.
        anew: remove an earlier training from the folder first.

    Raises:
        InputError: the folder cannot be made.
    """
    from greenbatch.provenance import provenance

    if anew:
        clear(folder)
    if (folder / RUN).exists():
        return

    record = provenance(
        scenario=plan.scenario.resolved, inputs=plan.scenario.inputs, notes=plan.scenario.notes,
        settings={"backfill": plan.backfill, "windows": plan.windows, "minutes": plan.minutes},
        seed=plan.settings.seed, command=plan.command,
    )  # fmt: skip
    content = {"tool": _TOOL, "plan": plan.record(), "provenance": record}
    replace_file(folder / RUN, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def check_same(folder: Path, plan: Plan) -> None:
    """Refuse to go on with a training that was started otherwise, or that has lost its checkpoint.

    Raises:
        InputError: names the first thing that differs, or what is missing.
    """
    check_plan(folder, plan)
    if (folder / MODEL).exists() and not (folder / CHECKPOINT).exists():  # a log alone: killed before the first one
        fix = "remove the folder of the training, or give another --out"
        raise InputError(
            "is missing, so it cannot be gone on with", file=folder / CHECKPOINT, field="--resume", fix=fix
        )


def check_plan(folder: Path, plan: Plan) -> None:
    """Refuse a training that was started otherwise, finished or not.

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

    now, begun = versions(), read_run(folder).get("provenance")
    before: dict[str, Any] = begun if isinstance(begun, dict) else {}
    old = before.get("versions")
    old = old if isinstance(old, dict) else {}
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
