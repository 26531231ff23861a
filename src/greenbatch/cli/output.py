"""The folder a command writes: complete or not at all, and nothing in it is lost that is not our own.

Results are written into a hidden folder first and moved when all of them are there. ``provenance.json`` lists every
file of the result with its checksum; ``--force`` replaces exactly those files, and only while they are unchanged.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from greenbatch.datasets import sha256 as digest_of
from greenbatch.errors import InputError

RECORD = "provenance.json"
_MARK = "greenbatch"


@contextmanager
def result_folder(out: str | Path, *, force: bool = False) -> Iterator[Path]:
    """A folder to write results into; they appear under ``out`` when the block ends without an error.

    The block must write its own provenance with `write_record` last.

    Args:
        out: the folder the user asked for. It may be absent or empty.
        force: replace an earlier result in it; files that greenbatch did not write, or that were changed since,
            are never touched.

    Raises:
        InputError: ``out`` cannot be used; nothing has been written then.
    """
    target = Path(out)
    _check(target, force)
    made: list[Path] = []
    try:
        where = target if target.is_dir() else _make_parents(target.absolute().parent, made)
        scratch = Path(tempfile.mkdtemp(prefix=".greenbatch-", dir=where))
    except (OSError, ValueError) as error:
        _remove(made)
        problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, file=target, field="--out", fix="choose a folder you may write to") from None
    try:
        scratch.chmod(0o755)
        yield scratch
        _deliver(scratch, target, force)
        made.clear()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        _remove(made)


def write_record(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Write ``provenance.json``, with the checksum of every file in the folder. Call it last."""
    files = {name: digest_of(folder / name) for name in _files(folder)}
    content = {"tool": _MARK, "files": files, **provenance}
    (folder / RECORD).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _check(target: Path, force: bool) -> None:
    def refuse(problem: str, fix: str) -> InputError:
        return InputError(problem, file=target, field="--out", fix=fix)

    if not str(target) or "\0" in str(target):
        raise refuse("is not a folder name", "give the name of a folder")
    try:
        if target.is_symlink() and not target.exists():
            raise refuse("is a link to nowhere", "give another folder")
        if not target.exists():
            return
        if not target.is_dir():
            raise refuse("exists and is not a folder", "give another folder")
        filled = any(target.iterdir())
    except OSError as error:
        raise refuse(f"cannot be used: {error.strerror}", "choose a folder you may write to") from None
    if filled and not force:
        raise refuse("exists and is not empty", "give another folder, or --force to replace an earlier result in it")
    if filled:
        _own_files(target)


def _own_files(target: Path) -> dict[str, str]:
    """Files of the earlier result in a folder, all unchanged. Raises InputError if that is not sure."""
    record = target / RECORD
    if not record.exists():
        return {}
    try:
        content = json.loads(record.read_bytes())
        files = content["files"]
        if content["tool"] != _MARK or not all(_is_inside(name) for name in files):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        problem, fix = "was not written by greenbatch", "move it away, or give another folder"
        raise InputError(problem, file=record, field="--force", fix=fix) from None
    for name, sha256 in files.items():
        file = target / name
        if file.exists() and (not file.is_file() or digest_of(file) != sha256):
            problem, fix = "was changed since greenbatch wrote it", "move it away, or give another folder"
            raise InputError(problem, file=file, field="--force", fix=fix)
    return {**files, RECORD: ""}


def _deliver(scratch: Path, target: Path, force: bool) -> None:
    """Move the complete result to where it belongs."""
    new = _files(scratch)
    if not target.exists():
        scratch.rename(target)
        return
    old = _own_files(target) if force else {}
    for name in new:
        if (target / name).exists() and name not in old:
            problem, fix = "exists and was not written by greenbatch", "move it away, or give another folder"
            raise InputError(problem, file=target / name, field="--out", fix=fix)
    for name in sorted(new, key=lambda name: (name == RECORD, name)):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).replace(target / name)
    for name in set(old) - set(new):
        (target / name).unlink(missing_ok=True)


def _files(folder: Path) -> list[str]:
    """Relative paths of all files in a folder, sorted."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def _is_inside(name: object) -> bool:
    return isinstance(name, str) and name != "" and not Path(name).is_absolute() and ".." not in Path(name).parts


def _make_parents(parent: Path, made: list[Path]) -> Path:
    """Make the missing parents of a folder, recording each, so that a failed run can take them away again."""
    missing = []
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    for folder in reversed(missing):
        folder.mkdir()
        made.append(folder)
    return missing[0] if missing else parent


def _remove(folders: list[Path]) -> None:
    """Remove folders we made, innermost first, as long as they are empty."""
    for folder in reversed(folders):
        try:
            folder.rmdir()
        except OSError:
            return
