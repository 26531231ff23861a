"""Lines of a ``slurm.conf`` as entries: keys, values and where they stand (``man slurm.conf``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from greenbatch.errors import InputError
from greenbatch.files import decode, read_bytes

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


def read_entries(path: Path) -> tuple[list[Entry], dict[str, str]]:
    """The entries of a ``slurm.conf`` and of the files that it includes, in order, and the SHA-256 of each file.

    Comments begin with ``#``; a backslash at the end of a line continues it; keys are in any case; ``Include FILE`` is
    relative to the file that includes.

    Raises:
        InputError: a file cannot be read or includes itself, or a line is neither keys with values nor an include.
    """
    sources: dict[str, str] = {}
    return list(_entries(path, sources, ())), sources


def _entries(path: Path, sources: dict[str, str], outer: tuple[Path, ...]) -> Iterator[Entry]:
    content, sha256 = read_bytes(path)
    sources[path.name] = sha256
    for number, text in _joined(decode(content, path, latin_1=True)):
        if match := _INCLUDE.fullmatch(text):
            yield from _included(path, number, match[1], sources, outer)
            continue
        yield _entry(text, path, number)


def _included(path: Path, number: int, name: str, sources: dict[str, str], outer: tuple[Path, ...]) -> Iterator[Entry]:
    """The entries of an included file."""
    inner = path.parent / name
    here = (*outer, path)
    if inner in here or len(here) > _DEEPEST or len(sources) > _MOST_FILES:
        fix = "include each file once"
        raise InputError(f"{name!r:.60} is included within itself", file=path, line=number, field="Include", fix=fix)
    try:
        yield from _entries(inner, sources, here)
    except InputError as error:
        if error.file == inner and error.line is None:
            raise InputError(
                f"{name!r:.60} {error.problem}", file=path, line=number, field="Include",
                fix="copy it beside this file, or remove the line",
            ) from None  # fmt: skip
        raise


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
