"""The SWF of the simulator Alea, with three more columns on each job line (https://github.com/aleasimulator/alea).

Column 19 lists the machine of every processor in braces, column 20 is the name of the queue, and column 21 what the
job asked of the batch system (Torque): ``nodes:ppn=processors[:property…][#excl]``, several parts joined by ``+``.
Field 10 is the memory of a node in bytes, as in the data sets of MetaCentrum. Source: ``WorkloadReaderSWF.java``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError
from greenbatch.workload.ledger import Ledger

COLUMNS = 21
_PLAIN = 18
_NODES = re.compile(r"\d{1,7}", re.ASCII)
_PPN = re.compile(r"ppn=(\d{1,7})(?:\.\d+)?", re.ASCII)
_GPUS = re.compile(r"gpus?=(\d{1,4})", re.ASCII)
_NAME = re.compile(r"[\x21-\x7e]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Extras:
    """The columns 20 and 21 of all job lines, in order."""

    queue: list[str]
    request: list[str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What column 21 of a job asks for."""

    nodes: int
    processors: int
    gpus: int
    exclusive: bool
    ignored: bool
    """Whether it names properties of nodes, which are not described."""


def split_extras(body: bytes, first_line: int, path: Path) -> tuple[bytes, Extras | None]:
    """The job lines with 18 columns, and the rest of them; no extras if the first job line has other than 21 columns.

    Raises:
        InputError: the first job line has 21 columns and another has not.
    """
    start = body.lstrip()[:100_000].split(b"\n", 1)[0].split()
    if len(start) != COLUMNS:
        return body, None
    plain: list[bytes] = []
    extras = Extras([], [])
    for number, line in enumerate(body.split(b"\n"), start=first_line):
        tokens = line.split()
        if tokens and len(tokens) != COLUMNS:
            fix = f"the first job line has {COLUMNS} columns, so all must"
            raise InputError(f"{len(tokens)} columns", file=path, line=number, field="job line", fix=fix)
        plain.append(b" ".join(tokens[:_PLAIN]))
        if tokens:
            extras.queue.append(tokens[19].decode("latin-1"))
            extras.request.append(tokens[20].decode("latin-1"))
    return b"\n".join(plain), extras


def with_extras(
    columns: dict[str, Any], extras: Extras, lines: NDArray[np.int64], ledger: Ledger
) -> tuple[dict[str, Any], dict[str, dict[int, str]]]:
    """The columns of a workload with nodes, GPUs, exclusive use, memory and queue from the extra columns, and names.

    Args:
        columns: columns of a workload as read from the 18 columns.
        extras: the extra columns of all job lines.
        lines: file line of every job line.
        ledger: takes the notes.

    Raises:
        InputError: a request or a queue cannot be read.
    """
    rows = np.asarray(columns["trace_row"], dtype=np.int64)
    known: dict[str, _Asked] = {}
    for row in rows.tolist():
        text = extras.request[row]
        if text not in known:
            known[text] = _asked(text, ledger.file, int(lines[row]))
        if not _NAME.fullmatch(extras.queue[row]):
            fix = "write a name without control characters"
            problem = f"{extras.queue[row][:30]!a} is not the name of a queue"
            raise InputError(problem, file=ledger.file, line=int(lines[row]), field="column 20", fix=fix)
    asked = [known[extras.request[row]] for row in rows.tolist()]
    processors = np.asarray(columns["processors"], dtype=np.int64)
    nodes = np.array([each.nodes for each in asked], dtype=np.int64)
    differ = np.array([each.processors for each in asked], dtype=np.int64) != processors
    ledger.fact("nodes x ppn is not the number of processors (kept)", lines[rows[differ]])
    ledger.fact("more nodes than processors, number of nodes ignored", lines[rows[nodes > processors]])
    ledger.fact("node properties ignored", lines[rows[np.array([each.ignored for each in asked], dtype=bool)]])
    nodes = np.where(nodes > processors, -1, nodes)
    names: dict[str, int] = {}
    queue = [names.setdefault(extras.queue[row], len(names) + 1) for row in rows.tolist()]
    per_node_kb = np.asarray(columns["requested_memory_kb"], dtype=np.float64) / 1000.0
    return {
        **columns,
        "nodes": nodes,
        "gpus": np.array([each.gpus for each in asked]),
        "exclusive": np.array([int(each.exclusive) for each in asked]),
        "queue": np.array(queue),
        "requested_memory_kb": per_node_kb * np.maximum(nodes, 1) / processors,
    }, {"queue": {number: name for name, number in names.items()}}


def _asked(text: str, path: Path, line: int) -> _Asked:
    """Nodes, processors, GPUs and exclusive use from a request such as ``2:ppn=8:cl_zegox+1#excl``."""
    wanted, _, flags = text.partition("#")
    nodes = processors = gpus = 0
    ignored = False
    for part in wanted.split("+"):
        words = part.split(":")
        if not all(words):
            fix = "write nodes:ppn=processors, such as 2:ppn=8"
            raise InputError(f"{text[:40]!a} is not a request", file=path, line=line, field="column 21", fix=fix)
        counted = bool(_NODES.fullmatch(words[0]))
        count = int(words[0]) if counted else 1  # a host instead of a number
        each = 1
        for word in words[counted:]:
            if match := _PPN.fullmatch(word):
                each = int(match[1])
            elif match := _GPUS.fullmatch(word):
                gpus += count * int(match[1])
            else:
                ignored = True
        if not count or not each:
            fix = "ask for at least one node and one processor"
            raise InputError(f"{text[:40]!a} asks for nothing", file=path, line=line, field="column 21", fix=fix)
        nodes, processors = nodes + count, processors + count * each
    return _Asked(nodes, processors, gpus, "excl" in flags, ignored)
