"""Types of flags shared by several verbs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

from greenbatch.errors import InputError, Interrupted
from greenbatch.workers import RayCluster, Workers

_ELSEWHERE = dict.fromkeys(
    (("--windows", kind) for kind in ("published", "held-out", "both")),
    "; published and held-out are choices of greenbatch train and reproduce --train",
)
"""Flag and word -> which verb takes it."""


def whole(text: str, flag: str, lowest: int) -> int:
    """A whole number from ``lowest`` to 2^63 - 1.

    Raises:
        InputError: it is not one; names the flag.
    """
    try:
        number = int(text)
    except ValueError:
        fix = f"give {lowest} or more{_ELSEWHERE.get((flag, text), '')}"
        raise InputError(f"{text[:40]!r} is not a whole number", field=flag, fix=fix) from None
    if number < lowest:
        raise InputError(f"is {text[:40]}", field=flag, fix=f"give {lowest} or more")
    if number >= 2**63:
        raise InputError(f"is {text[:40]}, more than 64 bits hold", field=flag, fix="give a smaller number")
    return number


def positive(text: str, flag: str) -> float:
    """A finite number above 0.

    Raises:
        InputError: it is not one; names the flag.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise InputError(f"is {text[:40]!r}", field=flag, fix="give a number above 0")
    return number


def _from(lowest: int) -> Callable[[Any, Sequence[Token]], int]:
    def convert(_: Any, tokens: Sequence[Token]) -> int:
        return whole(tokens[0].value, tokens[0].keyword or "argument", lowest)

    return convert


Positive = Annotated[int | None, Parameter(converter=_from(1))]
Natural = Annotated[int | None, Parameter(converter=_from(0))]
Switch = Annotated[bool, Parameter(negative="", show_default=False)]
Texts = Annotated[list[str] | None, Parameter(name="--set", consume_multiple=True, negative="")]


def resume_line(command: Sequence[str]) -> str:
    """The command line that resumes an interrupted one."""
    kept = [word for word in command if word != "--force"]
    return shlex.join(kept if "--resume" in kept else [*kept, "--resume"])


def interrupted(finished: str, *, drawn: bool, written: bool, command: Sequence[str]) -> Interrupted:
    """The error of an interrupted comparison: what is kept, and the command that resumes it if it is written.

    Args:
        finished: such as ``2 of 3 windows``.
        drawn: whether the report is drawn.
        written: whether there is a folder.
        command: the command line.
    """
    kept = f"{finished} are finished{'' if drawn else ', the report is not drawn'}"
    return Interrupted(kept, resume=resume_line(command)) if written else Interrupted(f"{kept} and printed")


def items(text: str, flag: str) -> list[str]:
    """The parts of a comma-separated list without duplicates.

    Raises:
        InputError: a part is empty or occurs twice.
    """
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise InputError(f"{text!r} has an empty part", field=flag, fix="separate by single commas")
    if twice := sorted({part for part in parts if parts.count(part) > 1}):
        raise InputError(f"{twice[0]!r} occurs twice", field=flag, fix="give each once")
    return parts


def given_flags(**values: Any) -> str:
    """The flags that were given, as ``--seeds and --set``: those whose value is not None; empty if there are none."""
    names = [f"--{name}" for name, value in values.items() if value is not None]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def workers_of(workers: int | None, ray: str | None) -> Workers | None:
    """Where ``--workers`` and ``--ray`` want the work done; None if neither is given.

    Raises:
        InputError: both are given, or Ray is not installed.
    """
    if ray is None:
        return workers
    if workers is not None:
        problem = "say in two ways where the work is done"
        raise InputError(problem, field="--workers and --ray", fix="give one or the other")
    return RayCluster(ray)


def check_training_flags(epochs: int | None, minutes: float | None, *, resume: bool, force: bool) -> None:
    """Refuse flags of a training that exclude each other.

    Raises:
        InputError: both are given.
    """
    if epochs is not None and minutes is not None:
        raise InputError("end a training in two ways", field="--epochs and --minutes", fix="give one or the other")
    if resume and force:
        problem = "keep and replace an earlier training"
        raise InputError(problem, field="--resume and --force", fix="give one or the other")
