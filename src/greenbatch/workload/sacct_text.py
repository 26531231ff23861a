"""The text of a Slurm accounting dump: rows, and what its fields say as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError

Floats = NDArray[np.float64]

_NO_STAMP = frozenset({"", "Unknown", "None", "N/A"})
_NO_LIMIT = frozenset({"", "UNLIMITED", "Partition_Limit", "INVALID"})
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?")
_LOCAL_LENGTH = len("YYYY-MM-DDTHH:MM:SS")
_EPOCH = re.compile(r"\d{1,11}")
_COUNT = re.compile(r"\d+")
_SCALED = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TRES_CPU = re.compile(r"(?:^|,)cpu=(\d+)(?:,|$)")

_NO_VALUE = 2.0**63
"""Slurm's markers for "not set" (NO_VAL64, INFINITE64) lie above this."""

_COMMAND = "sacct -X -P -o JobIDRaw,JobID,State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,AllocCPUS,ReqCPUS"


@dataclass(frozen=True, slots=True)
class Dump:
    """The rows of a dump as text."""

    path: Path
    names: dict[str, int]
    """Field name in lower case -> position."""
    spelled: tuple[str, ...]
    """Field names as they stand in the header."""
    header_line: int
    rows: list[list[str]]
    lines: NDArray[np.int64]
    """File line of each row, 1-based."""
    repeated_headers: NDArray[np.int64]
    """Lines that repeat the header, as in concatenated dumps."""

    def first_of(self, *names: str) -> str | None:
        """The first of the given fields that the dump has."""
        return next((self.spelled[self.names[n.lower()]] for n in names if n.lower() in self.names), None)

    def column(self, name: str) -> list[str]:
        """The text of one field, row by row."""
        position = self.names[name.lower()]
        return [row[position] for row in self.rows]

    def select(self, keep: NDArray[np.bool_]) -> Dump:
        """The dump with only some rows."""
        rows = [row for row, kept in zip(self.rows, keep.tolist(), strict=True) if kept]
        return replace(self, rows=rows, lines=self.lines[keep])


def split(content: bytes, path: Path) -> Dump:
    """Rows and fields of a ``--parsable2`` (or ``--parsable``) dump.

    Raises:
        InputError: no header line, a field named twice, or a row with another number of fields.
    """
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise InputError("is not a text file", file=path, line=line, fix="give the text that sacct prints")
    # Names may be in any encoding; backslashes keep two different names different.
    numbered = enumerate(content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "backslashreplace").split("\n"), 1)
    filled = [(line, text.rstrip("\r")) for line, text in numbered if text.strip()]
    if not filled:
        raise InputError("has no lines", file=path, fix=f"make it with {_COMMAND}")
    first_line, header = filled[0]
    trailing = header.endswith("|")
    spelled = tuple(name.strip() for name in header.removesuffix("|").split("|"))
    names = {name.lower(): k for k, name in enumerate(spelled)}
    if not {"jobid", "jobidraw"} & names.keys():
        fix = f"the first line must name the fields, separated by |, JobID or JobIDRaw among them: {_COMMAND}"
        raise InputError("is not a sacct header", file=path, line=first_line, field="header", fix=fix)
    if len(names) < len(spelled):
        twice = next(n for k, n in enumerate(spelled) if n.lower() in {m.lower() for m in spelled[:k]})
        raise InputError("is named twice", file=path, line=first_line, field=twice, fix="name each field once")
    again = np.array([line for line, text in filled[1:] if text == header], dtype=np.int64)
    body = [(line, text) for line, text in filled[1:] if text != header]
    rows = [(text[:-1] if trailing and text.endswith("|") else text).split("|") for _, text in body]
    for (line, _), row in zip(body, rows, strict=True):
        if len(row) != len(spelled):
            raise InputError(
                f"{len(row)} fields, the header names {len(spelled)}", file=path, line=line, field="row",
                fix="leave free text (JobName, Comment, SubmitLine) out of the fields: it may contain | or a line end",
            )  # fmt: skip
    lines = np.array([line for line, _ in body], dtype=np.int64)
    return Dump(path, names, spelled, first_line, rows, lines, again)


def stamps(dump: Dump, name: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Seconds of a time field, and which of them are local wall time (shape (n,) both); NaN where unset.

    Accepted are local ``YYYY-MM-DDTHH:MM:SS`` (counted as if it were UTC), the same with an offset, and Unix seconds.
    """
    seconds = _each(dump, name, _stamp, "write YYYY-MM-DDTHH:MM:SS, Unix seconds, Unknown or None")
    local = np.array([len(text.strip()) == _LOCAL_LENGTH for text in dump.column(name)], dtype=bool)
    return seconds, local


def durations(dump: Dump, name: str) -> Floats:
    """Seconds [s] of a ``[DD-[HH:]]MM:SS`` field; NaN where there is no limit."""
    return _each(dump, name, _duration, "write [DD-]HH:MM:SS")


def counts(dump: Dump, name: str) -> Floats:
    """Whole numbers; NaN where blank, without limit or not set."""
    return _each(dump, name, _count, "write a whole number")


def tres_processors(dump: Dump, name: str) -> Floats:
    """The ``cpu=`` entry of a TRES list such as ``billing=4,cpu=4,mem=8G,node=1``; NaN without one."""
    return _each(dump, name, lambda text: float(m[1]) if (m := _TRES_CPU.search(text)) else np.nan, "")


def energies(dump: Dump, name: str) -> Floats:
    """Joules [J] of ConsumedEnergyRaw or ConsumedEnergy (``1.5K``); NaN where not recorded, which Slurm prints as 0."""
    joules = _each(dump, name, _energy, "write joules")
    return np.where((joules > 0) & (joules < _NO_VALUE), joules, np.nan)


def codes(texts: list[str]) -> NDArray[np.int64]:
    """Names as integers 1, 2, … in order of first appearance; -1 for blanks."""
    number: dict[str, int] = {"": -1}
    return np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)


def _each(dump: Dump, name: str, parse: Callable[[str], float], fix: str) -> Floats:
    texts = dump.column(name)
    seen: dict[str, float] = {}
    values = np.empty(len(texts))
    for k, text in enumerate(texts):
        value = seen.get(text)
        if value is None:
            try:
                value = seen[text] = parse(text.strip())
            except (ValueError, OverflowError):
                shown = ascii(text[:30])
                line = int(dump.lines[k])
                raise InputError(f"{shown} is malformed", file=dump.path, line=line, field=name, fix=fix) from None
        values[k] = value
    return values


def _stamp(text: str) -> float:
    if text in _NO_STAMP:
        return float("nan")
    if _EPOCH.fullmatch(text):
        seconds = float(text)
    elif _ISO.fullmatch(text):
        stamp = datetime.fromisoformat(text)
        seconds = (stamp.replace(tzinfo=UTC) if stamp.tzinfo is None else stamp).timestamp()
    else:
        raise ValueError
    if seconds < 0:
        raise ValueError
    return seconds or float("nan")


def _duration(text: str) -> float:
    if text in _NO_LIMIT:
        return float("nan")
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _count(text: str) -> float:
    if text in _NO_LIMIT or text in _NO_STAMP:
        return float("nan")
    if not _COUNT.fullmatch(text):
        raise ValueError
    value = float(text)
    return value if value < 2.0**53 else float("nan")


def _energy(text: str) -> float:
    if text in _NO_STAMP:
        return float("nan")
    match = _SCALED.fullmatch(text)
    if not match:
        raise ValueError
    return float(match[1]) * _SCALE[match[2]]
