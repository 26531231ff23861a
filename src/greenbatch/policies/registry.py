"""The registry of policies: decorators that enter a rule, a policy class or a planner under a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.program import Program
from greenbatch.engine.seam import Decision, Policy, View
from greenbatch.engine.state import Queue
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.workload import Workload

Scores = NDArray[np.float64]
RuleFunction = Callable[[Queue], Scores]


Planner = Callable[..., Program]
"""Makes the program of a policy for a window of jobs, from keyword parameters."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered policy."""

    name: str
    summary: str
    plan: Planner
    parameters: dict[str, float]
    """Parameters and their defaults."""
    backfills: bool
    """Whether it can be combined with backfilling."""
    built_in: bool
    maker: Callable[[], Policy] | None = None
    """Makes the Python object that decides; None for policies that the engine runs itself."""


ENTRIES: dict[str, Entry] = {}
"""All policies entered so far; `policies.schedulers.entries` completes them."""


def _is_built_in(function: Any) -> bool:
    return str(function.__module__).startswith("greenbatch.")


def _add(entry: Entry, function: Any) -> None:
    taken = ENTRIES.get(entry.name)
    if taken is not None and taken.built_in and not _is_built_in(function):
        raise InputError("is the name of a built-in policy", field=entry.name, fix="choose another name")
    ENTRIES[entry.name] = entry


def rule(name: str, *, fixed: bool = False) -> Callable[[RuleFunction], RuleFunction]:
    """Register a priority rule under a name (decorator).

    The function gets the waiting jobs as columns (`greenbatch.engine.state.Queue`) and returns one score per job,
    shape (q,); the lowest goes first. It is compiled if Numba can, else it runs as plain Python.

    Args:
        name: how the command line calls it.
        fixed: a job's score never changes (it does not use ``now_s``, ``wait_s`` or ``free_processors``): it is then
            computed once, for all jobs.
    """

    def register(function: RuleFunction) -> RuleFunction:
        def plan(_: Workload) -> Program:
            built_in = _is_built_in(function)
            machine_code = None if fixed else _compile(function, built_in)
            score = function if built_in else guard(function)
            return Program(name=name, score=score, fixed=fixed, compiled=machine_code)

        _add(Entry(name, _first_line(function), plan, {}, True, _is_built_in(function)), function)
        return function

    return register


def policy(name: str) -> Callable[[type], type]:
    """Register a policy class under a name (decorator).

    Its objects answer views (`greenbatch.engine.seam.Policy`); one is made, without arguments, for every simulation.
    """

    def register(maker: type) -> type:
        if isinstance(maker, type) and not callable(getattr(maker, "decide", None)):
            raise InputError(f"policy {name!r} has no method decide(self, view)")

        def guarded() -> Policy:
            made: Policy = guard(lambda: _GuardedPolicy(maker()))()
            return made

        entry = Entry(name, _first_line(maker), lambda _: Program(name=name), {}, True, _is_built_in(maker), guarded)
        _add(entry, maker)
        return maker

    return register


def planner(name: str, *, backfills: bool = False, **parameters: float) -> Callable[[Any], Any]:
    """Register a policy with its own engine program under a name (decorator).

    Args:
        name: how the command line calls it.
        backfills: whether it can be combined with backfilling.
        parameters: its parameters and their defaults.
    """

    def register(function: Any) -> Any:
        _add(Entry(name, _first_line(function), function, parameters, backfills, _is_built_in(function)), function)
        return function

    return register


@cache
def _compile(function: RuleFunction, built_in: bool) -> RuleFunction | None:
    from greenbatch.engine.loop import compile_rule

    try:
        return compile_rule(function, cached=built_in)
    except Exception:  # noqa: BLE001  (on code it does not know Numba raises anything, also AssertionError)
        return None


def guard(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function, whose mistakes become errors of one line."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except GreenbatchError:
            raise
        except Exception as error:
            file = getattr(getattr(function, "__code__", None), "co_filename", None)
            line = None if file is None else line_in(file, error)
            problem = f"{type(error).__name__}: {error}"
            raise InputError(problem, file=file, line=line, fix="mend the file") from error

    return call


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


class _GuardedPolicy:
    """A user's policy, whose mistakes become errors of one line."""

    def __init__(self, policy: Policy) -> None:
        self._decide = guard(policy.decide)

    def decide(self, view: View) -> Decision:
        decision: Decision = self._decide(view)
        return decision


def line_in(file: str, error: BaseException) -> int | None:
    """The last line of a file on the way of an error, None if it did not pass there."""
    if isinstance(error, SyntaxError):
        return error.lineno
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
