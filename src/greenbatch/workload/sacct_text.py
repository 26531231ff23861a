"""Parsing of Slurm accounting dumps: rows of text, and the values of their fields as numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.node_lists import MOST_NODES, listed, node_count

Floats = NDArray[np.float64]

_NO_STAMP = frozenset({"", "Unknown", "None", "N/A"})
_NO_LIMIT = frozenset({"UNLIMITED", "Partition_Limit"})
_UNSET = frozenset({"", "INVALID"})
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?", re.ASCII)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})? ?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII)
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?", re.ASCII)
_JOB_ID = re.compile(r"\d+(?:_\d+|_\[[^|]*\]|\+\d+)?(?:\.\w+)?", re.ASCII)
_STAMPED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_EPOCH = re.compile(r"\d{1,11}", re.ASCII)
_COUNT = re.compile(r"\d+", re.ASCII)
_SCALED = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)", re.ASCII)
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_GPU = re.compile(r"(?:^|[/:])gpu(?=[:=]|$)")
_IN_PARENTHESES = re.compile(r"\([^()]*\)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([cn]?)", re.ASCII)
_MEMORY_KB = {"K": 1.024, "": 1.024 * 1024, "M": 1.024 * 1024, "G": 1.024 * 1024**2, "T": 1.024 * 1024**3,
              "P": 1.024 * 1024**4}  # fmt: skip
"""Slurm's units of memory, powers of 1024 bytes, in kB of 1000; a number without a unit counts megabytes."""
_TASKS = re.compile(r"\d+_\[([^\[\]%]*)(?:%\d+)?\]", re.ASCII)
_SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)

_NO_VALUE = 2.0**63
"""Slurm's markers for "not set" (NO_VAL64, INFINITE64) lie above this."""

COMMAND = "sacct -X -P -o JobIDRaw,JobID,State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,AllocCPUS,ReqCPUS"
"""A command that prints what is needed."""

_BLOCK_ROWS = 20_000
_TRES_FIX = "write name=value, separated by commas, such as cpu=4,gres/gpu=1,mem=8G,node=1"


@dataclass(frozen=True, slots=True)
class Dump:
    """A block of job rows of a dump, as text, without steps."""

    path: Path
    header_line: int
    columns: dict[str, list[str]]
    """Field name in lower case -> its text, row by row."""
    lines: NDArray[np.int64]
    """File line of each row, 1-based."""
    steps: NDArray[np.int64]
    """Lines of steps (``123.batch``, ``123_4.0``), which are left out."""
    repeated_headers: NDArray[np.int64]
    """Lines of further headers, as in concatenated dumps."""
    cut: NDArray[np.int64]
    """The last line, if the file ends within it."""

    def __len__(self) -> int:
        return len(self.lines)

    def first_of(self, *names: str) -> str | None:
        """The first of the given fields that the dump has, None if it has none."""
        return next((name for name in names if name.lower() in self.columns), None)

    def needed(self, *names: str) -> str:
        """The first of the given fields that the dump has.

        Raises:
            InputError: it has none.
        """
        found = self.first_of(*names)
        if found is None:
            fix = f"add {' or '.join(names)} to the fields after sacct -o"
            raise InputError("field is missing", file=self.path, line=self.header_line, field=names[0], fix=fix)
        return found

    def column(self, name: str) -> list[str]:
        """The text of one field, row by row."""
        return [text.strip() for text in self.columns[name.lower()]]


def blocks(content: bytes, path: Path) -> Iterator[Dump]:
    """Rows and fields of a ``--parsable2`` (or ``--parsable``) dump, in blocks of rows to save memory.

    The header says what separates fields: ``|``, else the comma, semicolon or tab of ``--delimiter``; then cells may be
    in quotes. A further header line, as where dumps were concatenated, names the fields of the rows below it.

    Raises:
        InputError: no header line, a field named twice, or a row with a different number of fields.
    """
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise InputError("is not a text file", file=path, line=line, fix="give the text that sacct prints")
    # Names may be in any encoding; backslashes keep two different names different.
    rows = (row.decode("utf-8", "backslashreplace") for row in io.BytesIO(content.removeprefix(b"\xef\xbb\xbf")))
    filled = ((line, row.rstrip("\r\n")) for line, row in enumerate(rows, 1) if row.strip())
    header_line, header = next(filled, (0, ""))
    if not header:
        raise InputError("has no lines", file=path, fix=f"make it with {COMMAND}")
    names, mark = _field_names(header, header_line, path), delimiter(header)
    unended = 0 if content.endswith(b"\n") else content.count(b"\n") + 1
    block: list[tuple[int, list[str]]] = []
    again: list[int] = []
    cut: list[int] = []
    for line, text in filled:
        cells = _cells(text, mark, len(names))
        if "jobid" in text.lower() and _is_header(cells):
            found = _field_names(text, line, path)
            again.append(line)
            if found != names and block:
                yield _dump(path, header_line, names, block, again, cut)
                block, again = [], []
            names, header_line, mark = found, line, delimiter(text)
        elif len(cells) < len(names) and line == unended:
            cut.append(line)
        else:
            _check_width(cells, len(names), mark, line, path)
            block.append((line, cells))
        if len(block) == _BLOCK_ROWS:
            yield _dump(path, header_line, names, block, again, cut)
            block, again, cut = [], [], []
    yield _dump(path, header_line, names, block, again, cut)  # also without rows, for its fields


def delimiter(header: str) -> str:
    """What separates the fields of a header line."""
    return "|" if "|" in header else max(",;\t", key=header.count)


def _dump(
    path: Path, header_line: int, names: Sequence[str], block: list[tuple[int, list[str]]], again: list[int],
    cut: list[int],
) -> Dump:  # fmt: skip
    key = names.index("jobid" if "jobid" in names else "jobidraw")
    jobs = [(line, row) for line, row in block if not _is_step(row[key])]
    columns = zip(*(row for _, row in jobs), strict=True) if jobs else ([] for _ in names)
    steps = [line for line, row in block if _is_step(row[key])]
    lines = ([line for line, _ in jobs], steps, again, cut)
    texts = {name: list(cells) for name, cells in zip(names, columns, strict=True)}
    return Dump(path, header_line, texts, *(np.array(each, dtype=np.int64) for each in lines))


def _is_step(job_id: str) -> bool:
    """Whether it is ``123.batch`` or ``123_4.0``, and not an array such as ``123_[1-5,...]``."""
    return "." in job_id.partition("[")[0]


def _field_names(header: str, line: int, path: Path) -> list[str]:
    mark = delimiter(header)
    names = [name.strip().lower() for name in _cells(header, mark, 0)]
    names = names[:-1] if names[-1] == "" else names
    if not {"jobid", "jobidraw"} & set(names):
        raise _no_header(header, line, path)
    for k, name in enumerate(names):
        if name in names[:k]:
            raise InputError("is named twice", file=path, line=line, field=name, fix="name each field once")
    return names


def _no_header(header: str, line: int, path: Path) -> InputError:
    """What the first line is instead of a header."""
    if is_headless(header):
        return InputError(
            "there is no header line", file=path, line=line, field="header",
            fix="run sacct without --noheader, or put the names after -o into line 1, joined by |",
        )  # fmt: skip
    if header.lower().lstrip().startswith("jobid"):
        fix = f"separate the fields by |: {COMMAND}"
        return InputError("has columns of fixed width", file=path, line=line, field="header", fix=fix)
    fix = f"the first line must name the fields, separated by |, including JobID or JobIDRaw: {COMMAND}"
    return InputError("is not a sacct header", file=path, line=line, field="header", fix=fix)


def is_headless(first: str) -> bool:
    """Whether the first line of a file is a row of a dump: fields separated by ``|``, with a job's id or a time."""
    cells = [cell.strip() for cell in first.split("|")]
    return len(cells) > 1 and (_JOB_ID.fullmatch(cells[0]) is not None or any(map(_STAMPED.match, cells)))


def _is_header(cells: Sequence[str]) -> bool:
    names = {cell.strip().lower() for cell in cells}
    return bool(names & {"jobid", "jobidraw"}) and bool(names & {"submit", "start", "state", "elapsed", "elapsedraw"})


def _cells(text: str, mark: str, width: int) -> list[str]:
    """The cells of a row of so many fields."""
    try:
        cells = text.split("|") if mark == "|" else next(csv.reader([text], delimiter=mark))
    except csv.Error:
        cells = text.split(mark)
    if len(cells) == width + 1 and not cells[-1].strip():  # --parsable ends each line with the delimiter
        cells.pop()
    return cells


def _check_width(cells: Sequence[str], width: int, mark: str, line: int, path: Path) -> None:
    if len(cells) != width:
        fix = "leave out fields of free text (JobName, Comment, SubmitLine): they may contain | or a line break"
        if mark != "|" and len(cells) > width:
            fix = f"fields such as AllocTRES contain {mark!r}: {COMMAND}"
        problem = f"{len(cells)} fields, the header names {width}"
        raise InputError(problem, file=path, line=line, field="row", fix=fix)


def task_counts(job_ids: Sequence[str]) -> Floats:
    """How many jobs each row stands for: the tasks of a pending array such as ``123_[3-5,9-400%2]``, else 1."""
    return np.array([_tasks(text) if "[" in text else 1.0 for text in job_ids])


def _tasks(job_id: str) -> float:
    match = _TASKS.fullmatch(job_id)
    spans = [_SPAN.fullmatch(part) for part in match[1].split(",")] if match else []
    counts = [(int(s[2] or s[1]) - int(s[1])) // max(int(s[3] or 1), 1) + 1 for s in spans if s]
    return float(max(sum(counts), 1))


def stamps(dump: Dump, name: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Seconds of a time field, and which of them are local wall time (both of shape (n,)); NaN if unset.

    Accepts local ``YYYY-MM-DDTHH:MM:SS`` (read as if it were UTC), the same with a blank instead of T or with an
    offset, and Unix seconds.

    Raises:
        InputError: a time is malformed or before 1970.
    """
    texts = dump.column(name)
    unset = np.array([text in _NO_STAMP for text in texts], dtype=bool)
    local = np.array([_LOCAL.fullmatch(text) is not None for text in texts], dtype=bool)
    if (local | unset).all():
        try:  # ten times faster than parsing one by one
            read = np.array(["NaT" if text in _NO_STAMP else text for text in texts], dtype="datetime64[s]")
        except ValueError:
            pass  # an impossible date or time: reported below
        else:
            seconds = np.where(unset, np.nan, read.astype(np.int64).astype(np.float64))
            if not (seconds <= 0).any():
                return seconds, local
    seconds = _each(dump, name, _stamp, "write YYYY-MM-DDTHH:MM:SS, Unix seconds, Unknown or None")
    early = np.flatnonzero(seconds < 0)
    if early.size:
        problem, line = f"{texts[early[0]]!a} is before 1970", int(dump.lines[early[0]])
        raise InputError(problem, file=dump.path, line=line, field=name, fix="correct it, or write Unknown")
    return seconds, local


def durations(dump: Dump, name: str) -> Floats:
    """Seconds [s] of a ``[DD-[HH:]]MM:SS`` field; NaN if blank or not valid, infinite without a limit."""
    return _each(dump, name, _duration, "write [DD-]HH:MM:SS")


def counts(dump: Dump, name: str) -> Floats:
    """Whole numbers; NaN if blank or not set."""
    return _each(dump, name, _count, "write a whole number")


def minutes(dump: Dump, name: str) -> Floats:
    """Seconds [s] of whole minutes; NaN if blank or not valid, infinite without a limit."""
    return _each(dump, name, _limit_minutes, "write whole minutes, or UNLIMITED") * 60


def node_names(text: str) -> tuple[str, ...]:
    """The names that a node list stands for, each once; none if there is no list, or more than a million nodes."""
    return tuple(dict.fromkeys(listed(text))) if nodes_named(text) <= MOST_NODES else ()


def tres_counts(key: str) -> Callable[[Dump, str], Floats]:
    """Reader of one entry (``cpu``, ``node``) of TRES lists such as ``cpu=4,mem=8G,node=1``; NaN if missing."""
    return lambda dump, name: _each(dump, name, lambda text: _tres_count(text, key), _TRES_FIX)


def tres_memory_kb(dump: Dump, name: str) -> Floats:
    """The ``mem=`` entry of a TRES list, of the whole job [kB]; NaN if missing."""
    return _each(dump, name, _tres_memory_kb, _TRES_FIX)


def gpus(dump: Dump, name: str) -> Floats:
    """GPUs in a TRES or GRES list (``gres/gpu=2``, ``gres/gpu:a100=2``, ``gpu:2080ti:2``); NaN if missing.

    An entry without a type counts all GPUs; if there is none, those of all types are added up.
    """
    return _each(dump, name, _gpus, "write a number of GPUs, such as gres/gpu=2 in TRES, gpu:2 or gpu:a100:2 in GRES")


def memories_kb(per: str) -> Callable[[Dump, str], Floats]:
    """Reader of ReqMem [kB] of rows with the suffix ``per``; NaN for others, and for 0, which asks for whole nodes.

    Args:
        per: ``c`` for memory per processor (``2Gc``), ``n`` for memory per node (``8Gn``), both until Slurm 21.08; no
            suffix for memory of the whole job.
    """
    fix = "write memory such as 4000M, 2Gc or 16Gn"
    return lambda dump, name: _each(dump, name, lambda text: _memory_kb(text, per), fix)


def node_counts(dump: Dump, name: str) -> Floats:
    """Number of nodes in a node list (``gpu1,node[001-004,7]``); NaN if there is none."""
    return _each(dump, name, nodes_named, "write node names, with ranges in brackets")


def energies(dump: Dump, name: str) -> Floats:
    """Joules [J] of ConsumedEnergyRaw or ConsumedEnergy (``1.5K``); NaN if not recorded, which Slurm prints as 0."""
    joules = _each(dump, name, _energy, "write joules")
    return np.where((joules > 0) & (joules < _NO_VALUE), joules, np.nan)


def codes(texts: list[str], number: dict[str, int]) -> NDArray[np.int64]:
    """Names as integers 1, 2, … in order of first appearance, kept in ``number``; -1 for blanks."""
    number.setdefault("", -1)
    return np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)


def _each(dump: Dump, name: str, parse: Callable[[str], float], fix: str) -> Floats:
    texts = dump.column(name)
    seen: dict[str, float] = {}
    values = np.empty(len(texts))
    for k, text in enumerate(texts):
        value = seen.get(text)
        if value is None:
            try:
                value = seen[text] = parse(text)
            except (ValueError, OverflowError) as error:
                part = error.args[0] if isinstance(error, _BadEntryError) else text
                shown = ascii(part[:30])
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
        stamp = datetime.fromisoformat(text[:11] + text[11:].replace(" ", ""))
        seconds = (stamp.replace(tzinfo=UTC) if stamp.tzinfo is None else stamp).timestamp()
    else:
        raise ValueError
    return seconds or float("nan")


def _duration(text: str) -> float:
    if text in _UNSET or text in _NO_LIMIT:
        return float("inf" if text in _NO_LIMIT else "nan")
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _limit_minutes(text: str) -> float:
    return float("inf") if text in _NO_LIMIT else _count(text)


def _count(text: str) -> float:
    if text in _UNSET or text in _NO_STAMP:
        return float("nan")
    if not _COUNT.fullmatch(text):
        raise ValueError
    value = float(text)
    return value if value < 2.0**53 else float("nan")


class _BadEntryError(ValueError):
    """The entry of a list that is malformed, as written."""


def _entry(text: str, key: str) -> str | None:
    """The value of one entry of a TRES list; None if it has no such entry."""
    if text in _NO_STAMP:
        return None
    found = None
    for each in text.split(","):
        name, equals, value = each.partition("=")
        if not equals:
            raise _BadEntryError(each or text)
        if name == key:
            found = value
    return found


def _is_count(text: str) -> bool:
    return _COUNT.fullmatch(text) is not None and float(text) < 2.0**53


def _tres_count(text: str, key: str) -> float:
    value = _entry(text, key)
    if value is not None and not _is_count(value):
        raise _BadEntryError(f"{key}={value}")
    return float("nan") if value is None else float(value)


def _tres_memory_kb(text: str) -> float:
    value = _entry(text, "mem")
    if value is None:
        return float("nan")
    match = _MEMORY.fullmatch(value)
    if not match or match[3]:
        raise _BadEntryError(f"mem={value}")
    return float(match[1]) * _MEMORY_KB[match[2]]


def _gpus(text: str) -> float:
    every, typed = float("nan"), float("nan")
    for entry in _IN_PARENTHESES.sub("", text).split(","):
        if not (match := _GPU.search(entry)):
            continue
        # A type may begin with a digit (2080ti, 3g.20gb), so a number counts GPUs only where it ends the entry.
        rest = entry[match.end() :]
        kind, separator, count = rest.rpartition("=" if "=" in rest else ":")
        if not rest or (separator == ":" and not kind and count.isalnum() and not count.isdigit()):  # one GPU
            kind, count = rest, "1"
        if not _is_count(count):
            raise _BadEntryError(entry)
        if kind:
            typed = float(count) + (0.0 if np.isnan(typed) else typed)
        else:
            every = float(count) if np.isnan(every) else max(every, float(count))
    return typed if np.isnan(every) else every


def _memory_kb(text: str, per: str) -> float:
    if text in _NO_STAMP:
        return float("nan")
    match = _MEMORY.fullmatch(text)
    if not match:
        raise ValueError
    amount_kb = float(match[1]) * _MEMORY_KB[match[2]]
    return amount_kb if match[3] == per and amount_kb > 0 else float("nan")


def nodes_named(text: str) -> float:
    """How many nodes a node list names, NaN if there is no list."""
    if text in _NO_STAMP or text == "None assigned":
        return float("nan")
    try:
        return float(node_count(text))
    except InputError:
        raise ValueError from None


def _energy(text: str) -> float:
    if text in _NO_STAMP:
        return float("nan")
    match = _SCALED.fullmatch(text)
    if not match:
        raise ValueError
    return float(match[1]) * _SCALE[match[2]]
