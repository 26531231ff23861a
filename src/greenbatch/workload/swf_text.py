"""Parsing of SWF files into a header and a matrix of numbers, with the exact location of malformed input."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.workload.swf_alea import Extras, split_extras

SWF_FIELDS: tuple[str, ...] = (
    "job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time", "used memory",
    "requested processors", "requested time", "requested memory", "status", "user", "group", "executable", "queue",
    "partition", "preceding job", "think time",
)  # fmt: skip
"""Names of the 18 fields of the Standard Workload Format, version 2.2."""

WHOLE_FIELDS = (1, 11, 12, 13, 14, 15, 16, 17)
"""1-based numbers of the fields that hold identifiers, in which a fraction is an error."""

_MEMORY_FIELDS = (7, 10)
"""Logs write "no limit" as 2^64 in these fields, so the bound below does not apply to them."""

_LARGEST = 2.0**53
"""Above this, a double cannot represent every integer."""

_COMMENT = re.compile(rb"^[ \t]*;([^\n]*)", re.MULTILINE)
_LEADING_COMMENTS = re.compile(rb"(?:[ \t]*(?:;[^\n]*)?\n)*")
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_HEADER_LINE = re.compile(r"\s*([A-Za-z]\w*)\s*:\s*(.*)")


def field_name(number: int) -> str:
    """``field 9 (requested time)`` for 9."""
    return f"field {number} ({SWF_FIELDS[number - 1]})"


def parse(
    content: bytes, path: Path
) -> tuple[Mapping[str, list[str]], NDArray[np.float64], NDArray[np.int64], Extras | None]:
    """Parse the header, the job lines and their line numbers.

    Returns:
        Header keys, each with all its values in order; the fields, shape (n, 18); the 1-based file line of each row;
        the further columns of Alea's traces.

    Raises:
        InputError: a line does not hold 18 finite numbers, an identifier has a fraction, or there is no job line.
    """
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise InputError("is not a text file", file=path, line=line, fix="give an SWF file as plain text or .gz")
    content = content.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    leading = _LEADING_COMMENTS.match(content)
    head = b"" if leading is None else leading.group()
    comments, body = _COMMENT.findall(head), content[len(head) :]
    if b";" in body:  # rare: comments between jobs; blank them so that line numbers stay right
        comments += _COMMENT.findall(body)
        body = _COMMENT.sub(b"", body)
    if not body.strip():
        raise InputError("has no job lines", file=path, fix="give a file with 18 numbers per job line")
    first_line = head.count(b"\n") + 1
    body, extras = split_extras(body, first_line, path)
    rows, lines = _matrix(body, first_line, path)
    _check_numbers(rows, lines, path)
    return _header(comments), rows, lines, extras


def _header(comments: list[bytes]) -> dict[str, list[str]]:
    """Keys and values of the ``; Key: value`` comments, in any 8-bit encoding: only ASCII is interpreted."""
    header: dict[str, list[str]] = {}
    for comment in comments:
        if match := _HEADER_LINE.fullmatch(comment.decode("latin-1").strip()):
            header.setdefault(match[1].lower(), []).append(match[2].strip())
    return header


def _matrix(body: bytes, first_line: int, path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if not body.endswith(b"\n"):
        body += b"\n"
    try:
        with warnings.catch_warnings():
            # NumPy before 2.3 warns about text that is not a number and stops there, later versions raise.
            warnings.simplefilter("error", DeprecationWarning)
            values = np.fromstring(body, sep=" ")
    except (ValueError, DeprecationWarning):
        raise _malformed(body, first_line, path) from None
    text = np.frombuffer(body, dtype=np.uint8)
    line_starts = np.concatenate(([0], np.flatnonzero(text == ord("\n"))[:-1] + 1))
    starts = text > ord(" ")
    starts[1:] &= text[:-1] <= ord(" ")
    # Counted modulo 256 for speed; the total below excludes 18 + 256 k fields on a line.
    fields = np.add.reduceat(starts.view(np.uint8), line_starts, dtype=np.uint8)
    filled = fields > 0
    n = int(np.count_nonzero(filled))
    if values.size != n * len(SWF_FIELDS) or not np.all(fields[filled] == len(SWF_FIELDS)):
        raise _malformed(body, first_line, path)
    return values.reshape(n, len(SWF_FIELDS)), np.flatnonzero(filled) + first_line


def _malformed(body: bytes, first_line: int, path: Path) -> InputError:
    """An error that names the first line that is not 18 numbers (a slow search)."""
    for line, text in enumerate(body.split(b"\n"), first_line):
        tokens = text.split()
        for number, token in enumerate(tokens[: len(SWF_FIELDS)], 1):
            if not _NUMBER.fullmatch(token):
                shown = ascii(token[:20].decode("latin-1"))
                fix = "write a number, -1 if it is unknown"
                return InputError(f"{shown} is not a number", file=path, line=line, field=field_name(number), fix=fix)
        if tokens and len(tokens) != len(SWF_FIELDS):
            fix = "an SWF job line has 18 fields; write -1 for unknown ones"
            return InputError(f"{len(tokens)} fields", file=path, line=line, field="job line", fix=fix)
    return InputError("is not an SWF file", file=path, fix="give a file with 18 numbers per job line")


def _check_numbers(rows: NDArray[np.float64], lines: NDArray[Any], path: Path) -> None:
    """Refuse NaN, infinities, numbers too large to be exact, and fractional identifiers."""
    for number in range(1, len(SWF_FIELDS) + 1):
        column = rows[:, number - 1]
        bound = np.inf if number in _MEMORY_FIELDS else _LARGEST
        good = np.abs(column) < bound
        problem, fix = "is not a finite number below 2^53", "write a number, -1 if it is unknown"
        if number in WHOLE_FIELDS and good.all():
            good = column == np.floor(column)
            problem, fix = "is not a whole number", "write an integer, -1 if it is unknown"
        if not good.all():
            row = int(np.flatnonzero(~good)[0])
            line = int(lines[row])
            raise InputError(f"{column[row]:g} {problem}", file=path, line=line, field=field_name(number), fix=fix)
