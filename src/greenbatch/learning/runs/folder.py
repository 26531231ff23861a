"""The folder of a training.

``run.json`` contains everything that decides the weights; ``log.jsonl`` the figures of every epoch; ``checkpoint/`` the
state to resume from; ``model/`` the trained actor; ``events/`` TensorBoard's files, if requested. The folder appears,
or replaces an earlier one, with its first checkpoint, so it can always be resumed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.files import stored_bytes
from greenbatch.learning.runs.checkpoint import FIX, parts, save_checkpoint
from greenbatch.learning.runs.log import written_events
from greenbatch.learning.runs.records import RUN_FORMAT, TOOL, RunRecord
from greenbatch.models.model import MODEL, RECORD
from greenbatch.models.records import ACTOR
from greenbatch.models.versioned import read_table, record_of
from greenbatch.provenance import differences
from greenbatch.storage import FULL, Replacement, alone, check_folder, check_own, replacement, restore, sweep

if TYPE_CHECKING:
    from greenbatch.learning.runs.plan import Plan

RUN, LOG, CHECKPOINT, EVENTS = "run.json", "log.jsonl", "checkpoint", "events"
_NO_EFFECT = ("preset.description.", "scenario.description.", *(f"scenario.evaluation.{key}." for key in (
    "horizon", "cover_record", "comparable", "schedulers", "baseline", "cut")))  # fmt: skip
"""Keys of a plan that do not affect the weights: windows of the evaluation do, as no window of validation shares their
jobs."""
_FILES: dict[str, Callable[[Path], Collection[str]]] = {
    "": lambda _: (RUN, LOG),
    CHECKPOINT: parts,
    MODEL: lambda _: (RECORD, ACTOR),
    EVENTS: written_events,
}
"""Folder in a training -> names of the files that training wrote into it; all others belong to the user."""


class RunFolder:
    """Folder of a training: a hidden one until the training can be resumed, then its own."""

    def __init__(self, folder: Path, made: Replacement | None = None, beside: ExitStack | None = None) -> None:
        self._folder, self._made, self._beside = folder, made, beside

    @property
    def folder(self) -> Path:
        """Current folder of its files."""
        return self._folder if self._made is None or self._made.delivered else self._made.folder

    @property
    def settled(self) -> bool:
        """Whether the folder contains this training rather than an earlier one."""
        return self._made is None or self._made.delivered

    def save(self, name: str, tensors: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> None:
        """Save a checkpoint, see `checkpoint.save_checkpoint`; the first one moves the training to its folder."""
        save_checkpoint(self.folder / CHECKPOINT, name, tensors, state)
        if self._made is not None and not self._made.delivered:
            self._made.deliver()
        if self._beside is not None:
            self._beside.close()


@contextmanager
def open_run(folder: Path, plan: Plan, *, replace_earlier: bool = False) -> Iterator[RunFolder]:
    """Lock a folder for a new training, or for resuming the one in it.

    Args:
        folder: folder of the training.
        plan: the training plan.
        replace_earlier: replace an earlier training as soon as the new one can be resumed; until then the old one is
            untouched.

    Raises:
        InputError: the folder cannot be used, another process writes to it, or it contains a different training.
    """
    try:
        with ExitStack() as stack:
            try:
                if begun(folder) and not replace_earlier:
                    stack.enter_context(alone(folder))
                    tidy(folder)
                    check_same(folder, plan)
                    home = RunFolder(folder)
                else:
                    _check_own(folder)
                    beside = stack.enter_context(ExitStack())
                    made = beside.enter_context(replacement(folder, _ours))
                    if not replace_earlier and begun(folder):
                        raise InputError(
                            "another training started here", file=folder, field="--out", fix="give --resume"
                        )
                    stack.enter_context(alone(made.folder, folder))
                    _write_run(made.folder, plan)
                    home = RunFolder(folder, made, beside)
            except (OSError, ValueError) as error:
                problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
                raise InputError(problem, file=folder, field="--out", fix="choose a folder you may write to") from None
            yield home
    except OSError as error:
        if error.errno not in FULL:
            raise
        resume = ", then give --resume" if begun(folder) else ""
        fix = f"free some space{resume}"
        raise InputError(f"cannot be written: {error.strerror}", file=folder, field="--out", fix=fix) from None
    except (KeyboardInterrupt, SystemExit):  # which may have come while something was being replaced
        with suppress(InputError, OSError):
            tidy(folder)
        raise


def begun(folder: Path) -> bool:
    """Whether a folder contains a training."""
    for part in (folder, folder / CHECKPOINT, folder / MODEL):
        if part == folder or not part.is_symlink():
            restore(part)
    return (folder / RUN).exists()


def _write_run(folder: Path, plan: Plan) -> None:
    """Write ``run.json``."""
    from greenbatch.provenance import provenance
    from greenbatch.scenarios.sources import sources

    record = provenance(
        **sources(plan.scenario),
        settings={"backfill": plan.backfill, "windows": plan.windows, "minutes": plan.minutes},
        seed=plan.settings.seed, command=plan.command,
    )  # fmt: skip
    content = {"format": RUN_FORMAT, "tool": TOOL, "plan": plan.record(), "provenance": record}
    (folder / RUN).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def tidy(folder: Path) -> None:
    """Remove what a killed training left beside the folder and in it.

    Raises:
        InputError: another process writes there, or one of our files is a link or another user's.
        OSError: it cannot be removed.
    """
    _check_own(folder)
    sweep(folder, _ours)
    for part in (CHECKPOINT, MODEL):
        sweep(folder / part, _FILES[part])


def _check_own(folder: Path) -> None:
    if folder.is_dir():
        check_own(folder, {*_ours(folder), CHECKPOINT, MODEL, EVENTS})


def _ours(folder: Path) -> Collection[str]:
    """The files of a training."""
    return [f"{part}/{name}".lstrip("/") for part, names in _FILES.items() for name in names(folder / part)]


def check_same(folder: Path, plan: Plan) -> None:
    """Refuse to resume a training that was started with a different plan, or whose checkpoint is missing.

    Raises:
        InputError: names the first difference, or the missing folder.
    """
    check_plan(folder, plan)
    if (folder / MODEL).exists() and not (folder / CHECKPOINT).exists():  # a log alone: killed before it
        fix = "remove the folder of the training, or give another --out"
        raise InputError(
            "is missing, so training cannot be resumed", file=folder / CHECKPOINT, field="--resume", fix=fix
        )


def check_plan(folder: Path, plan: Plan) -> None:
    """Refuse a training that was started with a different plan, finished or not; some keys may differ (`_NO_EFFECT`).

    Raises:
        InputError: names the first difference.
    """
    from greenbatch.presets.preset import check

    before = read_run(folder).plan.model_dump(mode="json")
    before["preset"] = check(before["preset"], file=folder / RUN).model_dump(mode="json")  # with keys added since
    now = json.loads(json.dumps(plan.record()))
    for each in (before, now):
        each["beside"] = dict(enumerate(each["beside"]))
    for key, (old, new) in differences(before, now).items():
        if f"{re.sub(r'^beside.[0-9]+', 'scenario', key)}.".startswith(_NO_EFFECT):
            continue
        problem = f"is {_short(new)}, the training in {folder} was started with {_short(old)}"
        raise InputError(problem, field=key, fix="give the same value, or another --out")


def read_run(folder: Path) -> RunRecord:
    """Read ``run.json`` of a training, in the current or an earlier layout.

    Raises:
        InputError: it is missing, damaged, or in a later layout.
    """
    fix = f"restore the file, or {FIX}"
    return record_of(RunRecord, _run_content(folder), file=folder / RUN, what="the record of a training", fix=fix)


def _run_content(folder: Path) -> bytes:
    """The content of a ``run.json`` written by ``greenbatch train``.

    Raises:
        InputError: it is missing, or another program wrote it.
    """
    file = folder / RUN
    if not begun(folder):
        raise InputError("there is no training to resume", file=file, fix="leave out --resume")
    try:
        content = stored_bytes(file)
    except (OSError, ValueError):
        content = b""
    if (read_table(content) or {}).get("tool") != TOOL:
        raise InputError("was not written by greenbatch train", file=file, fix="give another folder")
    return content


def other_versions(folder: Path) -> list[str]:
    """One line per library whose version changed since the training was started, as the weights may then differ."""
    from greenbatch.provenance import source_sha256, versions

    then, now = read_run(folder).provenance, versions()
    found = [
        f"started with {name} {old}, resumes with {now[name]}"
        for name, old in then.versions.items()
        if old != now.get(name, old)
    ]
    changed = then.source_sha256 != source_sha256()
    return [*found, "started with a different version of greenbatch's source"] if changed and not found else found


def check_new(folder: Path, *, force: bool) -> None:
    """Check that a new training may start in a folder.

    Raises:
        InputError: it is a file, or is not empty (without ``force``), or contains files that no training wrote (with
            ``force``).
    """
    fix = None if force else "give another folder, --resume to resume the training in it, or --force to replace it"
    check_folder(folder, _ours, fix=fix)
    if begun(folder):
        _run_content(folder)
        return
    for part in (LOG, CHECKPOINT, MODEL, EVENTS):
        if (folder / part).exists():
            problem, fix = f"holds {part}, which greenbatch train did not write", "move it away, or give another folder"
            raise InputError(problem, file=folder, field="--out", fix=fix)


def _short(value: object) -> str:
    text = "not given" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
