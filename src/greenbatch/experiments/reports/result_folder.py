"""The folder of a result: written completely or not at all, without touching other files in it.

``provenance.json`` lists each file of a result with its checksum. ``--force`` replaces exactly those files, and only if
they are unchanged. `greenbatch.storage` replaces the folder.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from greenbatch.data_catalog import sha256 as digest_of
from greenbatch.errors import InputError
from greenbatch.files import stored_bytes
from greenbatch.models.versioned import read_table
from greenbatch.storage import FULL, Ours, check_folder, replacement

RECORD = "provenance.json"
_MARK = "greenbatch"


@contextmanager
def result_folder(out: str | Path, *, force: bool = False) -> Iterator[Path]:
    """A folder to write results into; they appear under ``out`` if the block ends without an error.

    The block must write its provenance with `write_record` last.

    Args:
        out: the folder given by the user. It may be absent or empty.
        force: replace an earlier result in it; files that greenbatch did not write, or that were changed since,
            are never touched.

    Raises:
        InputError: ``out`` cannot be used, or another run writes to it; nothing is written.
    """
    target, scratch = Path(out), None
    _check(target, force, _own_files)
    try:
        with replacement(target, _own_files) as made:
            _check(target, force)  # it may have been filled before it was locked
            scratch = made.folder
            yield scratch
            _refuse_changed(target)
            made.deliver()
    except Exception as error:
        if problem := _failed_write(error, scratch):
            fix = "choose a folder you may write to" if scratch is None else "free some space, or give another folder"
            raise InputError(f"cannot be written: {problem}", file=target, field="--out", fix=fix) from None
        raise


def _failed_write(error: Exception, scratch: Path | None) -> str:
    """Why a folder could not be written to, in the system's words; empty for errors of another kind.

    Args:
        error: any error.
        scratch: the hidden folder that is written to, None before there is one.
    """
    if scratch is None:
        text = getattr(error, "strerror", None) or str(error)
        return text if isinstance(error, (OSError, ValueError)) else ""
    cause = error.__context__ if isinstance(error, InputError) else error  # files.write_bytes names the file
    ours = isinstance(cause, OSError) and (cause.errno in FULL or str(scratch) in str(cause.filename))
    return getattr(cause, "strerror", None) or str(cause) if ours else ""


def write_record(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Write ``provenance.json``, with the checksum of every file in the folder. Call it last."""
    files = {name: digest_of(folder / name) for name in _files(folder)}
    content = {"tool": _MARK, "files": files, **provenance}
    (folder / RECORD).write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _check(target: Path, force: bool, ours: Ours | None = None) -> None:
    fix = None if force else "give another folder, or --force to replace an earlier result in it"
    if check_folder(target, ours, fix=fix):
        _refuse_changed(target)


def _refuse_changed(target: Path) -> None:
    """Refuse to replace an earlier result whose files were changed."""
    for name, sha256 in _record_of(target).items():
        file = target / name
        if file.exists() and (not file.is_file() or digest_of(file) != sha256):
            problem, fix = "was changed since greenbatch wrote it", "move it away, or give another folder"
            raise InputError(problem, file=file, field="--force", fix=fix)


def _own_files(folder: Path) -> Collection[str]:
    """The unchanged files of the result in a folder, and its record."""
    try:
        files = _record_of(folder)
    except InputError:  # written by another program
        return ()
    ours = [name for name, digest in files.items() if (folder / name).is_file() and digest_of(folder / name) == digest]
    return [*ours, RECORD]


def _record_of(folder: Path) -> dict[str, str]:
    """File -> checksum from the record of a result; empty if there is no result.

    Raises:
        InputError: greenbatch did not write the record.
    """
    record = folder / RECORD
    if not record.exists():
        return {}
    try:
        content: Any = read_table(stored_bytes(record))
        files = dict(content["files"])
        if content["tool"] != _MARK or not all(_is_inside(name) for name in files):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        problem, fix = "was not written by greenbatch", "move it away, or give another folder"
        raise InputError(problem, file=record, field="--force", fix=fix) from None
    return files


def _files(folder: Path) -> list[str]:
    """Relative paths of all files in a folder, sorted."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def _is_inside(name: object) -> bool:
    return isinstance(name, str) and name != "" and not Path(name).is_absolute() and ".." not in Path(name).parts
