"""Several trainings, each in a folder of its own: which are unfinished, and to train those, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenbatch.errors import InputError
from greenbatch.learning.runs.counters import Counters
from greenbatch.learning.runs.folder import begun, check_plan, check_same, tidy
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.trainers import train_or_search
from greenbatch.models.model import MODEL, read_record
from greenbatch.schedulers.allowed import allow, allowed
from greenbatch.workers import Workers, spread

if TYPE_CHECKING:
    from greenbatch.models.records import ModelRecord

Watch = Callable[[Path, Mapping[str, Any]], None]
"""Called with a folder and the figures of an epoch."""


def state_of(folder: Path) -> str:
    """``finished``, ``interrupted`` or ``not trained``."""
    record = model_record(folder)
    if record is not None and record.training.finished:
        return "finished"
    return "interrupted" if begun(folder) else "not trained"


def model_record(folder: Path) -> ModelRecord | None:
    """``model.json`` of a training; None if it is missing or damaged, in which case training writes it again."""
    try:
        return read_record(folder / MODEL)
    except InputError:
        return None


def unfinished(plans: Mapping[Path, Plan]) -> dict[Path, Plan]:
    """The trainings that are not finished, by folder, after a check of all.

    Raises:
        InputError: a folder contains a different training.
    """
    left = {}
    for folder, plan in plans.items():
        if state_of(folder) == "finished":
            check_plan(folder, plan)
            tidy(folder)
            continue
        if begun(folder):
            check_same(folder, plan)
        left[folder] = plan
    return left


def train_several(
    plans: Mapping[Path, Plan], *, workers: Workers = 1, watch: Watch = lambda *_: None
) -> Generator[tuple[Path, Counters]]:
    """Train, or resume, each in its folder; yields each folder with its counters once that is finished.

    Args:
        plans: folder -> plan.
        workers: number of trainings at a time, or a Ray cluster whose machines all see the folders. The results do not
            depend on it.
        watch: called after every epoch of a training in this process.

    Raises:
        InputError: a machine trained elsewhere than in the folder, or see `trainers.train_or_search`.
        KeyboardInterrupt: stopped by the user; what is finished is kept, and the others can be resumed.
    """
    folders = {folder.resolve(): folder for folder in plans}  # another process may work in another folder

    def here(place: Path) -> Counters:
        folder = folders[place]
        return train_or_search(plans[folder], folder, watch=partial(watch, folder))

    there = partial(_trained_there, {place: plans[folder] for place, folder in folders.items()}, allowed())
    with closing(spread(folders, here, there, workers)) as found:
        for place, counters in found:
            if state_of(place) != "finished":
                fix = "give an --out on a file system that all machines of the cluster share"
                raise InputError("was trained on another machine", file=folders[place], field="--ray", fix=fix)
            yield folders[place], counters


def _trained_there(plans: Mapping[Path, Plan], files: Collection[str], place: Path) -> Counters:
    allow(*files)
    return train_or_search(plans[place], place, watch=lambda _: None)
