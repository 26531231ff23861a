"""The registry of policies: decorators that register a rule, a policy class or a planner under a name.

A rule, a policy class or an instance of one can also be used without registering it (`entry_of`), such as a function
defined in a notebook cell.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.arguments import some_text
from greenbatch.display import docstring
from greenbatch.engine.capabilities import first_no
from greenbatch.engine.program import Program, Scheduler
from greenbatch.engine.settings import Parameter
from greenbatch.engine.views.interface import Decision, Policy, Queue, View
from greenbatch.errors import GreenbatchError, InputError
from greenbatch.workload import Workload

Scores = NDArray[np.float64]
RuleFunction = Callable[[Queue], Scores]


Planner = Callable[..., Program]
"""Builds the program of a policy for a window of jobs, from keyword parameters."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered policy."""

    name: str
    summary: str
    plan: Planner
    parameters: dict[str, Parameter]
    row: str
    """Its row in ``capabilities.toml``."""
    built_in: bool
    source: Any
    """The function, class or object it was made from."""
    knows: tuple[str, ...] = ()
    """Features that it knows, for a policy without a row of its own in ``capabilities.toml``."""
    maker: Callable[[], Policy] | None = None
    """Creates the Python object that decides; None for policies that the engine runs itself."""
    inside: Callable[..., Scheduler] | None = None
    """Creates the trained scheduler that the policy makes use of, by its parameters."""
    knows_future: Callable[..., bool] | None = None
    """Whether it knows what nobody can, by its parameters; such a policy is not causal."""

    @property
    def backfills(self) -> bool:
        """Whether it can be combined with backfilling."""
        return first_no([("policy", self.row)], {"backfilling": True}, self.knows) is None

    @property
    def defaults(self) -> dict[str, float]:
        """The defaults of its parameters."""
        return {name: parameter.default for name, parameter in self.parameters.items()}


ENTRIES: dict[str, Entry] = {}
"""All policies registered so far; `schedulers.build.entries` adds those of plug-ins."""


_SYNTAX = re.compile(r"[\s+,:@=]")
"""Characters that separate the parts of a scheduler's name."""


def _check_name(name: Any, kind: str) -> None:
    """Refuse the name of a policy that is not a text, or contains a character with a meaning in schedulers' names."""
    if _SYNTAX.search(some_text(name, kind)):
        raise InputError(f"is {name!r}", field=kind, fix="give a name without blanks and without + , : @ =")


def _is_built_in(function: Any) -> bool:
    return str(function.__module__).startswith("greenbatch.")


def _add(entry: Entry) -> None:
    taken = ENTRIES.get(entry.name)
    if taken is not None and taken.built_in and not entry.built_in:
        raise InputError("is the name of a built-in policy", field=entry.name, fix="choose another name")
    ENTRIES[entry.name] = entry


def rule(name: str, *, fixed: bool = False) -> Callable[[RuleFunction], RuleFunction]:
    """Register a priority rule under a name (decorator).

    The function gets the waiting jobs as columns (`greenbatch.Queue`) and returns one score per job,
    shape (q,); the lowest goes first. It is compiled if Numba supports it, otherwise it runs as plain Python.

    Args:
        name: its name on the command line, without blanks and without ``+ , : @ =``.
        fixed: the score of a job never changes (it does not use ``now_s``, ``wait_s`` or ``free_processors``), so it
            is computed once for all jobs.

    Raises:
        InputError: the name cannot be used, or is that of a built-in policy.
    """
    _check_name(name, "rule")

    def register(function: RuleFunction) -> RuleFunction:
        _add(_rule_entry(name, function, fixed=fixed))
        return function

    return register


def _rule_entry(name: str, function: RuleFunction, *, fixed: bool = False) -> Entry:
    built_in = _is_built_in(function)

    def plan(_: Workload) -> Program:
        machine_code = None if fixed else _compile(function, built_in, () if built_in else _frozen_names(function))
        score = function if built_in else guard(function)
        return Program(name=name, score=score, fixed=fixed, compiled=machine_code)

    return Entry(name, _first_line(function), plan, {}, "rule", built_in, function)


def policy(name: str) -> Callable[[type], type]:
    """Register a policy class under a name (decorator).

    Instances answer views (`greenbatch.Policy`); every simulation creates one, without arguments. A
    class that commands storage (`greenbatch.Charge`) has an attribute ``charges = True``.

    Args:
        name: its name on the command line, without blanks and without ``+ , : @ =``.

    Raises:
        InputError: the class has no method ``decide`` or requires arguments, or the name cannot be used or is that of a
            built-in policy.
    """
    _check_name(name, "policy")

    def register(maker: type) -> type:
        _add(_policy_entry(name, maker, maker))
        return maker

    return register


def _policy_entry(name: str, source: Any, maker: Callable[[], Policy]) -> Entry:
    if isinstance(source, type):
        _check_class(name, source)
    initialize: Any = source.__init__
    blamed = initialize if isinstance(source, type) else source

    def guarded() -> Policy:
        made: Policy = guard(lambda: _GuardedPolicy(maker()), blamed)()
        return made

    def plan(_: Workload) -> Program:
        return Program(name=name, row="agent", charges=bool(getattr(source, "charges", False)))

    return Entry(name, _first_line(source), plan, {}, "agent", _is_built_in(source), source, maker=guarded)


def _check_class(name: str, made: type) -> None:
    """Refuse a class whose objects do not decide, or that cannot be called without arguments."""
    if not callable(getattr(made, "decide", None)):
        raise InputError(f"policy {name!r} has no method decide(self, view)")
    try:
        inspect.signature(made).bind()
    except ValueError:  # no signature is known
        return
    except TypeError as error:
        fix = "give the arguments of __init__ defaults, or pass an object of the class"
        raise InputError(f"cannot be created without arguments, {error}", field=f"policy {name!r}", fix=fix) from None


def _copy(policy: Policy) -> Policy:
    try:
        return deepcopy(policy)
    except Exception as error:
        problem = f"cannot be copied for a simulation, {type(error).__name__}: {error}"
        raise InputError(problem, field=type(policy).__name__, fix="pass the class instead of an object") from error


def entry_of(decider: Any, name: str | None = None) -> Entry:
    """The entry of a rule function, or of a policy class or object, whether or not it is registered.

    Args:
        decider: the rule or policy. Each simulation gets a copy of a policy object, so that simulations share no state.
        name: its name in results; by default the name it was registered under, or its own.

    Raises:
        InputError: it is not a rule or policy, or has no name.
    """
    name = None if name is None else some_text(name, "name")
    for known in ENTRIES.values():
        if known.source is decider:
            return replace(known, name=name or known.name)
    if isinstance(decider, type):
        return _policy_entry(name or decider.__name__, decider, decider)
    if callable(getattr(decider, "decide", None)):
        return _policy_entry(name or type(decider).__name__, decider, lambda: _copy(decider))
    if not callable(decider):
        fix = "give a name such as fcfs+easy, a rule function, or a class or object with decide(self, view)"
        raise InputError(f"{decider!r:.60} is not a scheduler", field="scheduler", fix=fix)
    own = getattr(decider, "__name__", "<unnamed>")
    if name is None and own.startswith("<"):
        fix = 'name it, as in {"mine": rule}, or define it with def'
        raise InputError("a scheduler needs a name, and this function has none", field="scheduler", fix=fix)
    return _rule_entry(name or own, decider)


def planner(
    name: str, *, row: str = "", knows: tuple[str, ...] = (), inside: Callable[..., Scheduler] | None = None,
    knows_future: Callable[..., bool] | None = None, **parameters: Parameter,
) -> Callable[[Any], Any]:  # fmt: skip
    """Register a policy with its own engine program under a name (decorator).

    Args:
        name: its name on the command line.
        row: its row in ``capabilities.toml``, by default of its own name.
        knows: features that it knows without such a row, such as ``backfilling``.
        inside: see `Entry.inside`.
        knows_future: see `Entry.knows_future`.
        parameters: its parameters, each with its default and range.
    """

    def register(function: Any) -> Any:
        built_in, summary = _is_built_in(function), _first_line(function)
        _add(Entry(name, summary, function, parameters, row or name, built_in, function, knows,
                   inside=inside, knows_future=knows_future))  # fmt: skip
        return function

    return register


def _frozen_names(function: Any) -> tuple[Hashable, ...]:
    """The global values that compiling a function would freeze, so that it is compiled again when one changes.

    In a notebook, another cell may change a number that a rule uses. Arrays are compared by content, other objects
    that cannot be hashed by identity.
    """

    def frozen(value: Any) -> Hashable:
        if isinstance(value, np.ndarray):
            return value.dtype.str, value.shape, value.tobytes()
        try:
            hash(value)
        except TypeError:
            return id(value)
        return type(value), value

    code = inspect.unwrap(getattr(function, "py_func", function))
    if not inspect.isfunction(code):
        return ()
    names = inspect.getclosurevars(code)
    return tuple((name, frozen(value)) for name, value in {**names.globals, **names.nonlocals}.items())


def compile_once(function: RuleFunction) -> RuleFunction | None:
    """The machine code of a built-in rule, None if it cannot be compiled."""
    return _compile(function, True, ())


@cache
def _compile(function: RuleFunction, built_in: bool, _: tuple[Hashable, ...]) -> RuleFunction | None:
    from greenbatch.engine.entry_points import compile_rule

    try:
        return compile_rule(function, checked=not built_in)
    except Exception:  # noqa: BLE001  (Numba raises anything on unsupported code, even AssertionError)
        return None


def guard(function: Callable[..., Any], blamed: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Wrap a user's function so that its exceptions become one-line errors.

    Args:
        function: the function.
        blamed: the function whose file and line the errors name, if not this one.
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except GreenbatchError:
            raise
        except Exception as error:
            raise _mistake(blamed or function, error) from error

    return call


def _mistake(function: Callable[..., Any], error: Exception) -> InputError:
    """An error in a user's function, with its file and line, or the line of its notebook cell."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    line = None if file is None else line_in(file, error)
    problem = f"{type(error).__name__}: {error}"
    if file is None or Path(file).is_file():
        return InputError(problem, file=file, line=line, fix="fix the file")
    field = function.__qualname__.rpartition("<locals>.")[2] + ("" if line is None else f", line {line} of its cell")
    return InputError(problem, field=field, fix="fix the function")


def _first_line(function: Any) -> str:
    return docstring(function).strip().partition("\n")[0]


class _GuardedPolicy:
    """A user's policy, with exceptions turned into one-line errors."""

    def __init__(self, policy: Policy) -> None:
        self._decide = guard(policy.decide)
        for name in ("memory", "recall"):
            if hasattr(policy, name):
                setattr(self, name, guard(getattr(policy, name)))

    def decide(self, view: View) -> Decision:
        decision: Decision = self._decide(view)
        return decision


def line_in(file: str, error: BaseException) -> int | None:
    """The line of a file at which an error occurred, None if the file is not in its traceback."""
    if isinstance(error, SyntaxError):
        return error.lineno
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
