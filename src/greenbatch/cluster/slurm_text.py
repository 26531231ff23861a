"""Lines of a ``slurm.conf`` as entries: keys, values and where they stand (``man slurm.conf``)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from greenbatch.errors import InputError
from greenbatch.files import decode, read_bytes
from greenbatch.notes import Note

_PAIR = re.compile(r"""\s*([A-Za-z_][\w.]*)\s*=(?:\s*(?![\w.]+\s*=))?("[^"]*"|\S*)""", re.ASCII)
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*$", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)#.*")
_DEEPEST = 10
_MOST_FILES = 1_000
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_TIME = re.compile(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: its keys in lower case, their values, and where it stands."""

    values: Mapping[str, str]
    names: Mapping[str, str]
    """Key in lower case -> as written."""
    file: Path
    line: int

    def refuse(self, key: str, problem: str, fix: str) -> InputError:
        """An error about a key of this line, to be raised."""
        return InputError(problem, file=self.file, line=self.line, field=self.names.get(key, key), fix=fix)

    def whole(self, key: str, default: int, *, lowest: int = 0, highest: int = 10**12) -> int:
        """The whole number of a key, or the default if the key is missing.

        Raises:
            InputError: it is not a whole number, or out of range.
        """
        text = self.values.get(key)
        if text is None:
            return default
        if not _WHOLE.fullmatch(text) or not lowest <= int(text) <= highest:
            raise self.refuse(key, f"is {text!r:.40}", f"give a whole number from {lowest} to {highest:,}")
        return int(text)

    def yes(self, key: str) -> bool:
        """Whether a key is YES; NO if it is missing.

        Raises:
            InputError: it is neither YES nor NO.
        """
        text = self.values.get(key, "no")
        if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise self.refuse(key, f"is {text!r:.40}", "give YES or NO")
        return text.lower() in ("yes", "true", "1")

    def seconds(self, key: str, default: float, *, above: float = -1.0) -> float:
        """A time in Slurm's forms: minutes, ``M:S``, ``H:M:S``, ``D-H``, ``D-H:M``, ``D-H:M:S``, ``UNLIMITED``. [s]

        Raises:
            InputError: it has none of these forms, or is not above the bound.
        """
        text = self.values.get(key)
        if text is None:
            return default
        if text.lower() in ("infinite", "unlimited"):
            return inf
        match = _TIME.fullmatch(text)
        if match is None:
            raise self.refuse(key, f"is {text!r:.40}", "write minutes, [D-]H:M:S or UNLIMITED")
        days, *numbers = (None if each is None else int(each) for each in match.groups())
        given = [number for number in numbers if number is not None]
        if days is not None:
            hours, minutes, seconds = (*given, 0, 0)[:3]
        elif len(given) == 3:
            hours, minutes, seconds = given
        else:
            hours, minutes, seconds = 0, *(*given, 0)[:2]
        total = (days or 0) * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds
        if not above < total <= 1e11:
            raise self.refuse(
                key, f"is {text!r:.40}", f"give a time > {above:g} s" if above >= 0 else "give a shorter time"
            )
        return total


@dataclass(frozen=True, slots=True)
class Read:
    """What was read: a ``slurm.conf`` and the files that it includes."""

    entries: tuple[Entry, ...]
    """All lines with keys, in order."""
    sources: Mapping[str, str]
    """File name -> SHA-256 of each file."""
    notes: tuple[Note, ...]
    """Which files were found at another place than their ``Include`` says."""


def read_entries(path: Path) -> Read:
    """The entries of a ``slurm.conf`` and of the files that it includes.

    Comments begin with ``#``; a backslash at the end of a line continues it; keys are in any case. A file of
    ``Include`` that is not at its place is looked for beside the file that includes it and beside the first file, with
    as many of the folders before its name as are there: ``/etc/slurm/conf.d/nodes.conf`` as ``conf.d/nodes.conf`` or
    ``nodes.conf``. So a copy of the files of a controller can be read anywhere.

    Raises:
        InputError: a file cannot be read or includes itself, or a line is neither keys with values nor an include.
    """
    files = _Files()
    return Read(tuple(_entries(path, files, ())), files.sources, tuple(files.notes))


@dataclass(slots=True)
class _Files:
    """The files that have been read so far."""

    sources: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def _entries(path: Path, files: _Files, outer: tuple[Path, ...]) -> Iterator[Entry]:
    content, sha256 = read_bytes(path)
    files.sources[path.name] = sha256
    for number, text in _joined(decode(content, path, latin_1=True)):
        if match := _INCLUDE.fullmatch(text):
            yield from _included(path, number, match[1].strip('"'), files, outer)
            continue
        yield _entry(text, path, number)


def _included(path: Path, number: int, name: str, files: _Files, outer: tuple[Path, ...]) -> Iterator[Entry]:
    """The entries of an included file."""
    here = (*outer, path)
    inner = _located(name, here)
    if inner in here or len(here) > _DEEPEST or len(files.sources) > _MOST_FILES:
        fix = "include each file once"
        raise InputError(f"{name!r:.60} is included within itself", file=path, line=number, field="Include", fix=fix)
    if inner != path.parent / name:
        taken = _from(inner, here[0])
        files.notes.append(Note(f"Include {name!r:.60} is not there, {taken!r:.60} taken", first_line=number))
    try:
        yield from _entries(inner, files, here)
    except InputError as error:
        if error.file == inner and error.line is None:
            raise InputError(
                f"{name!r:.60} {error.problem}", file=path, line=number, field="Include",
                fix=f"put a copy named {Path(name).name!r:.60} beside this file, or # before the line",
            ) from None  # fmt: skip
        raise


def _located(name: str, here: tuple[Path, ...]) -> Path:
    """Where an included file is: at its place, or as much of its path as is found beside the files so far."""
    stated = here[-1].parent / name
    parts = Path(name).parts[Path(name).is_absolute() :]
    tails = [Path(*parts[first:]) for first in range(len(parts))]
    places = [stated, *(file.parent / tail for file in (here[-1], here[0]) for tail in tails)]
    return next((place for place in places if os.path.isfile(place) and place not in here), stated)


def _from(file: Path, first: Path) -> str:
    """A file as seen from the folder of the first one."""
    return file.relative_to(first.parent).as_posix() if file.is_relative_to(first.parent) else str(file)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Number of the first line, and text without comments, of every line that is not blank; continued ones joined."""
    start, held = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        bare = _COMMENT.sub("", line).rstrip()
        start = start or number
        if bare.endswith("\\"):
            held += bare[:-1]
            continue
        if whole := (held + bare).strip():
            yield start, whole
        start, held = 0, ""
    if held.strip():
        yield start, held.strip()


def _entry(text: str, path: Path, number: int) -> Entry:
    values: dict[str, str] = {}
    names: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            rest = text[at:].strip()
            fix = "write Key=Value, or # before a comment"
            raise InputError(f"{rest!r:.40} is not Key=Value", file=path, line=number, fix=fix)
        key = match[1].lower()
        if key in values:
            raise InputError("occurs twice on the line", file=path, line=number, field=match[1], fix="give it once")
        if not match[2].isprintable():
            fix = "leave out control characters"
            raise InputError(f"is {match[2][:40]!a}", file=path, line=number, field=match[1], fix=fix)
        values[key], names[key] = match[2].strip('"'), match[1]
        at = match.end()
    return Entry(values, names, path, number)
