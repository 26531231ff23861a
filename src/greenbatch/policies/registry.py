"""Schedulers by name: a policy, a backfilling, and their parameters.

A scheduler is spelled ``policy+backfill``, each with optional parameters: ``f2+green``, ``f2+green:sigma=25000``,
``cheapest-start:psi=2:hold=5e5``. A rule of your own is named by its file, ``my_rules.py:my_rule+easy``, or by an entry
point in the group ``greenbatch.rules``.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.seam import Decision, Policy, View
from greenbatch.engine.simulate import BACKFILLS, Program
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
    maker: Callable[[], Policy] | None = None
    """Makes the Python object that decides; None for policies that the engine runs itself."""


_ENTRIES: dict[str, Entry] = {}
_PLUS = re.compile(r"(?<!\d[eE])\+")
"""The plus between policy and backfilling, not that of an exponent."""
BACKFILL_PARAMETERS: dict[str, dict[str, str]] = {"green": {"sigma": "threshold_j"}}
"""Parameters of backfillings -> engine settings."""


def _is_built_in(function: Any) -> bool:
    return str(function.__module__).startswith("greenbatch.")


@cache
def _built_in() -> frozenset[str]:
    from greenbatch.policies import green, rules  # noqa: F401  (they register themselves)

    return frozenset(_ENTRIES)


def _add(entry: Entry, function: Any) -> None:
    if not _is_built_in(function) and entry.name in _built_in():
        raise InputError("is the name of a built-in policy", field=entry.name, fix="choose another name")
    _ENTRIES[entry.name] = entry


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
            score = function if built_in else _guarded(function)
            return Program(name=name, score=score, fixed=fixed, compiled=machine_code)

        _add(Entry(name, _first_line(function), plan, {}, True), function)
        return function

    return register


def policy(name: str) -> Callable[[type], type]:
    """Register a policy class under a name (decorator).

    Its objects answer views (`greenbatch.engine.seam.Policy`); one is made, without arguments, for every simulation.
    """

    def register(maker: type) -> type:
        _add(Entry(name, _first_line(maker), lambda _: Program(name=name), {}, True, maker), maker)
        return maker

    return register


def planner(name: str, **parameters: float) -> Callable[[Any], Any]:
    """Register a policy with its own engine program under a name (decorator); keywords are its parameters' defaults."""

    def register(function: Any) -> Any:
        _add(Entry(name, _first_line(function), function, parameters, name == "random"), function)
        return function

    return register


@cache
def _compile(function: RuleFunction, built_in: bool) -> RuleFunction | None:
    from greenbatch.engine.loop import compile_rule

    try:
        return compile_rule(function, cached=built_in)
    except Exception:  # noqa: BLE001  (on code it does not know Numba raises anything, also AssertionError)
        return None


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function, whose mistakes become errors of one line."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except GreenbatchError:
            raise
        except Exception as error:
            file = getattr(getattr(function, "__code__", None), "co_filename", None)
            line = None if file is None else _line_in(file, error)
            problem = f"{type(error).__name__}: {error}"
            raise InputError(problem, file=file, line=line, fix="mend the file") from error

    return call


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


@cache
def _load_plug_ins() -> None:
    from importlib.metadata import entry_points

    for point in entry_points(group="greenbatch.rules"):
        try:
            point.load()
        except Exception as error:
            problem = f"cannot be loaded, {type(error).__name__}: {error}"
            package = "the package" if point.dist is None else point.dist.name
            fix = f"mend or uninstall {package}"
            raise InputError(problem, field=f"plug-in {point.name} = {point.value}", fix=fix) from error


def entries() -> dict[str, Entry]:
    """All registered policies by name.

    Raises:
        InputError: an installed plug-in cannot be loaded.
    """
    _built_in()
    _load_plug_ins()
    return dict(_ENTRIES)


def names() -> list[str]:
    """Names of all registered policies."""
    return sorted(entries())


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A policy with its backfilling and parameters."""

    name: str
    entry: Entry
    parameters: dict[str, float]
    backfill: str
    settings: dict[str, float]

    def program(self, workload: Workload) -> Program:
        """The engine's program for a window of jobs."""
        made = self.entry.plan(workload, **{**self.entry.parameters, **self.parameters})
        return replace(
            made, name=self.name, backfill=self.backfill, settings={**(made.settings or {}), **self.settings}
        )


@dataclass(frozen=True, slots=True)
class PolicyScheduler(Scheduler):
    """A scheduler whose policy is a Python object behind the seam."""

    decider: Policy

    def decide(self, view: View) -> Decision:
        """Ask the policy."""
        decision: Decision = _guarded(self.decider.decide)(view)
        return decision


def scheduler(spec: str) -> Scheduler:
    """The scheduler that a name spells.

    Raises:
        InputError: an unknown policy, backfilling or parameter, or a combination that makes no sense.
    """
    parts = _PLUS.split(spec.strip())
    policy, backfill = ("+".join(parts[:-1]), parts[-1]) if len(parts) > 1 else (parts[0], "none")
    policy_name, parameters = _parse(policy, spec)
    backfill_name, backfill_parameters = _parse(backfill, spec)
    entry = _entry(policy_name, spec)
    _known(backfill_name, list(BACKFILLS), "backfilling", spec)
    _known_parameters(parameters, list(entry.parameters), policy_name, spec)
    known = BACKFILL_PARAMETERS.get(backfill_name, {})
    _known_parameters(backfill_parameters, list(known), backfill_name, spec)
    if backfill_name != "none" and not entry.backfills:
        raise InputError(
            f"{policy_name} looks at every waiting job, so it takes no backfilling", field=spec,
            fix=f"write {policy_name} or {policy_name}+none",
        )  # fmt: skip
    settings = {known[key]: value for key, value in backfill_parameters.items()}
    made = (f"{policy}+{backfill}", entry, parameters, backfill_name, settings)
    return Scheduler(*made) if entry.maker is None else PolicyScheduler(*made, decider=_guarded(entry.maker)())


def split_schedulers(text: str) -> list[str]:
    """The schedulers of a comma-separated list.

    Raises:
        InputError: the list is empty or names a scheduler twice.
    """
    specs = [spec.strip() for spec in text.split(",") if spec.strip()]
    if not specs:
        raise InputError("names no scheduler", field="schedulers", fix="e.g. fcfs+easy,f2+green")
    for spec in specs:
        if specs.count(spec) > 1:
            raise InputError(f"names {spec} twice", field="schedulers", fix="name each scheduler once")
    return specs


def _parse(text: str, spec: str) -> tuple[str, dict[str, float]]:
    parts = text.split(":")
    parameters: dict[str, float] = {}
    while len(parts) > 1 and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if not np.isfinite(number) or number < 0:
            raise InputError(f"{key} is {value!r}", field=spec, fix="give a number >= 0")
        parameters[key] = number
    return ":".join(parts), parameters


def _entry(name: str, spec: str) -> Entry:
    path, _, rule_name = name.rpartition(":")
    if path.endswith(".py"):
        _load_file(path)
        name = rule_name
    known = entries()
    _known(name, list(known), "policy", spec)
    return known[name]


def _load_file(path: str) -> None:
    file = Path(path)
    if not file.is_file():
        raise InputError("no such file", file=path, fix="give a Python file that registers a rule")
    before = dict(_ENTRIES)
    module_spec = importlib.util.spec_from_file_location(file.stem, file)
    if module_spec is None or module_spec.loader is None:
        raise InputError("is not a Python file", file=path)
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's file may do
        line = _line_in(module_spec.origin or path, error)
        _ENTRIES.clear()
        _ENTRIES.update(before)
        raise InputError(f"{type(error).__name__}: {error}", file=path, line=line, fix="mend the file") from error


def _line_in(file: str, error: BaseException) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _known(name: str, known: list[str], kind: str, spec: str) -> None:
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else "known: " + ", ".join(sorted(known))
        raise InputError(f"no {kind} is called {name!r}", field=f"scheduler {spec!r}", fix=hint)


def _known_parameters(given: dict[str, float], known: list[str], name: str, spec: str) -> None:
    for key in given:
        if key not in known:
            fix = "it takes " + ", ".join(known) if known else "it takes none"
            raise InputError(f"{name} has no parameter {key!r}", field=f"scheduler {spec!r}", fix=fix)
