"""Schedulers by name: a policy, a backfilling, and their parameters.

A scheduler is written ``policy+backfill``, each with optional parameters: ``f2+green``, ``f2+green:sigma=25000``,
``cheapest-start:psi=2:hold=5e5``. A rule of your own is named by its file, ``my_rules.py:my_rule+easy``, or by an entry
point in the group ``greenbatch.rules``. A trained model is named by its preset and its folder:
``gas-marl@runs/a/model+green``, ``gas-marl@runs/a/model:sample=1:seed=3+green``. In Python, a rule function or a policy
of your own can be passed directly.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, overload

from greenbatch import data_catalog, provenance
from greenbatch.arguments import some_text
from greenbatch.engine.interface import Policy
from greenbatch.engine.program import BACKFILLS, Program
from greenbatch.engine.program import Scheduler as Simulated
from greenbatch.engine.settings import SETTINGS, Parameter
from greenbatch.errors import InputError, did_you_mean
from greenbatch.policies import green, registry, rules  # noqa: F401  (importing the others registers their policies)
from greenbatch.policies.registry import Entry, line_in
from greenbatch.workload import Workload

if TYPE_CHECKING:
    from greenbatch.learning.learned import LearnedScheduler
    from greenbatch.learning.priced import PricedScheduler

Decider = str | Simulated | Policy | Callable[..., Any]
"""Anything accepted as a scheduler: a name, a scheduler, a policy (object or class), a rule function."""

_MODEL = re.compile(r"(?P<preset>[\w.-]+)@(?P<folder>.+)")
"""A trained model: its preset, and its folder with parameters and backfilling."""
_PLUS = re.compile(r"(?<!\d[eE])\+")
"""The plus between policy and backfilling, not that of an exponent."""
_BACKFILL_SETTINGS: dict[str, dict[str, str]] = {"green": {"sigma": "threshold_j"}}
"""Backfilling -> its parameters -> their names in the engine's settings."""


@cache
def _load_plug_ins() -> None:
    from importlib.metadata import entry_points

    for point in entry_points(group="greenbatch.rules"):
        try:
            point.load()
        except Exception as error:
            problem = f"cannot be loaded, {type(error).__name__}: {error}"
            package = "the package" if point.dist is None else point.dist.name
            fix = f"fix or uninstall {package}"
            raise InputError(problem, field=f"plug-in {point.name} = {point.value}", fix=fix) from error


def entries() -> dict[str, Entry]:
    """All registered policies by name.

    Raises:
        InputError: an installed plug-in cannot be loaded.
    """
    _load_plug_ins()
    return dict(registry.ENTRIES)


def backfill_parameters(name: str) -> dict[str, Parameter]:
    """The parameters of a backfilling."""
    return {key: SETTINGS[setting] for key, setting in _BACKFILL_SETTINGS.get(name, {}).items()}


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
        made = self.entry.plan(workload, **{**self.entry.defaults, **self.parameters})
        return replace(
            made, name=self.name, backfill=self.backfill, settings={**(made.settings or {}), **self.settings}
        )

    def policy(self) -> Policy | None:
        """A new object of the policy for one simulation; None if the engine runs it."""
        return None if self.entry.maker is None else self.entry.maker()


@overload
def scheduler(
    decider: str, *, backfill: str | None = None, name: str | None = None
) -> Scheduler | LearnedScheduler | PricedScheduler: ...
@overload
def scheduler(decider: Decider, *, backfill: str | None = None, name: str | None = None) -> Simulated: ...
def scheduler(decider: Decider, *, backfill: str | None = None, name: str | None = None) -> Simulated:
    """Create a scheduler from its name, or from a rule or policy of your own.

    Args:
        decider: ``policy+backfill``; a rule function, a policy class or a policy object, registered or not; or a
            scheduler, which is returned unchanged.
        backfill: the backfilling, such as ``easy`` or ``green:sigma=25000``; ``none`` if neither this nor the name
            gives one.
        name: name of a rule or policy in results; by default its own name.

    Raises:
        InputError: an unknown policy, backfilling or parameter, an invalid combination, a folder without a model of
            the given preset, or an object that is not a rule or policy.
    """
    if isinstance(decider, str):
        return _spelled(decider if backfill is None else f"{decider}+{backfill}")
    if _is_scheduler(decider):
        if backfill is not None:
            raise InputError("has its backfilling already", field=f"scheduler {decider!r:.60}", fix="give no backfill")
        return decider
    entry = registry.entry_of(decider, name)
    shown = f"{entry.name}+{backfill or 'none'}"
    backfill_name, settings = _backfilling(backfill or "none", shown)
    return Scheduler(shown, entry, {}, backfill_name, settings)


def scheduler_table(deciders: Iterable[Decider] | Mapping[str, Decider] | Decider) -> dict[str, Simulated]:
    """Name in results -> scheduler, for the schedulers of a comparison.

    Args:
        deciders: a sequence of names, rules, policies and schedulers; a mapping from names of your own to them; names
            separated by commas; or a single one.

    Raises:
        InputError: there is none, two have the same name, a name is not a text, or one is not a scheduler.
    """
    if isinstance(deciders, str):
        deciders = split_schedulers(deciders)
    elif not isinstance(deciders, Iterable):
        deciders = [deciders]
    table: dict[str, Simulated] = {}
    if isinstance(deciders, Mapping):
        for name, each in deciders.items():
            given = some_text(name, "a name in schedulers")
            known = isinstance(each, str) or _is_scheduler(each)
            table[given] = scheduler(each) if known else scheduler(each, name=given)
    else:
        table = _by_own_names(deciders)
    if not table:
        raise InputError("names no scheduler", field="schedulers", fix="e.g. fcfs+easy,f2+green")
    return table


def _by_own_names(deciders: Iterable[Decider]) -> dict[str, Simulated]:
    table: dict[str, Simulated] = {}
    for each in deciders:
        made = scheduler(each)
        name = str(each if isinstance(each, str) else getattr(made, "name", type(made).__name__))
        if not (isinstance(each, str) or _is_scheduler(each)):
            name = name.removesuffix("+none")
        if name in table:
            fix = 'name each scheduler once, or give names of your own: {"mine": rule}'
            raise InputError(f"two are called {name}", field="schedulers", fix=fix)
        spelled = getattr(made, "name", name)
        if twin := next((other for other, one in table.items() if getattr(one, "name", other) == spelled), None):
            raise InputError(f"{twin} and {name} are the same", field="schedulers", fix="name each scheduler once")
        table[name] = made
    return table


def source_texts(deciders: Mapping[str, Simulated]) -> dict[str, str]:
    """Name -> source text of every user-defined rule or policy among the schedulers, if it can be found."""
    texts = {}
    for name, each in deciders.items():
        if isinstance(each, Scheduler) and not each.entry.built_in:
            source = inspect.unwrap(getattr(each.entry.source, "py_func", each.entry.source))
            with suppress(OSError, TypeError):  # typed at a prompt, or compiled
                texts[name] = inspect.getsource(getattr(source, "decide", source))
    return texts


def _is_scheduler(decider: object) -> TypeGuard[Simulated]:
    """Whether an object can be simulated directly."""
    return not isinstance(decider, type) and callable(getattr(decider, "program", None))


def _spelled(spec: str) -> Scheduler | LearnedScheduler | PricedScheduler:
    policy, backfill = _split(spec.strip())
    policy_name, given = _parse(policy, spec)
    backfill_name, settings = _backfilling(backfill, spec)
    if model := _model(policy_name):
        from greenbatch.learning.learned import learned

        return learned(f"{policy}+{backfill}", model["preset"], model["folder"], given, backfill_name, settings)
    if policy_name.endswith("@") and ".py:" not in policy_name:
        fix = f"write {policy_name}FOLDER, or the name of a shipped model: see greenbatch schedulers"
        raise InputError("names no model", field=f"scheduler {spec!r}", fix=fix)
    entry = _entry(policy_name, spec)
    parameters = numbers(given, entry.parameters, policy_name, spec)
    if backfill_name != "none" and not entry.backfills:
        raise InputError(
            f"{policy_name} considers every waiting job itself and does not support backfilling", field=spec,
            fix=f"write {policy_name} or {policy_name}+none",
        )  # fmt: skip
    return Scheduler(f"{policy}+{backfill}", entry, parameters, backfill_name, settings)


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


def input_files(deciders: Iterable[Decider]) -> dict[str, str]:
    """File name -> SHA-256 of every file that the schedulers were made from: Python files, and weights of models.

    Args:
        deciders: names, or schedulers made from names; others are made from no file.
    """
    specs = [
        each if isinstance(each, str) else str(getattr(each, "name", "")) for each in deciders
        if isinstance(each, (str, Scheduler)) or hasattr(each, "model")
    ]  # fmt: skip
    files = provenance.rule_files([spec for spec in specs if not _model(spec)])
    for spec in filter(_model, specs):
        if model := _model(_parse(_split(spec.strip())[0], spec)[0]):
            from greenbatch.learning.learned import weights_file

            weights = weights_file(model["preset"], model["folder"])
            files[f"{model['preset']}@{model['folder']}/{weights.name}"] = data_catalog.sha256(weights)
    return files


def _model(text: str) -> re.Match[str] | None:
    """The parts of a model's name, None for other names."""
    return None if ".py:" in text else _MODEL.fullmatch(text.strip())


def _split(spec: str) -> tuple[str, str]:
    """Policy and backfilling, each with its parameters.

    In a model's name, only the last plus before a backfilling separates: folders may contain one too.
    """
    if not _model(spec):
        parts = _PLUS.split(spec)
        return ("+".join(parts[:-1]), parts[-1]) if len(parts) > 1 else (parts[0], "none")
    parts = spec.split("+")
    for at in range(len(parts) - 1, 0, -1):
        if parts[at].partition(":")[0] in BACKFILLS:
            return "+".join(parts[:at]), "+".join(parts[at:])
    return spec, "none"


def _backfilling(text: str, spec: str) -> tuple[str, dict[str, float]]:
    """Name of a backfilling and the engine settings that its parameters stand for."""
    name, given = _parse(text, spec)
    _known(name, list(BACKFILLS), "backfilling", spec)
    found = numbers(given, backfill_parameters(name), name, spec)
    return name, {_BACKFILL_SETTINGS[name][key]: value for key, value in found.items()}


def _parse(text: str, spec: str) -> tuple[str, dict[str, str]]:
    """A name and its parameters: key -> text."""
    parts = text.split(":")
    given: dict[str, str] = {}
    while len(parts) > 1 and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        if key in given:
            raise InputError(f"{key} is given twice", field=spec, fix="give it once")
        given[key] = value
    return ":".join(parts), given


def numbers(given: Mapping[str, str], known: Mapping[str, Parameter], owner: str, spec: str) -> dict[str, float]:
    """The parameters in a scheduler's name, as numbers.

    Args:
        given: key -> text, as written.
        known: the parameters that exist.
        owner: the policy, backfilling or preset that takes them, for messages.
        spec: the scheduler's name, for messages.

    Raises:
        InputError: a parameter is unknown, is not a number, or is out of range.
    """
    found = {}
    for key, text in given.items():
        if key not in known:
            fix = "it takes " + ", ".join(known) if known else "it takes none"
            raise InputError(f"{owner} has no parameter {key!r}", field=f"scheduler {spec!r}", fix=fix)
        try:
            found[key] = float(text)
        except ValueError:
            raise InputError(f"{key} is {text!r}", field=spec, fix=f"give {known[key].span}") from None
        known[key].check(key, found[key], field=spec)
    return found


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
    before = dict(registry.ENTRIES)
    module_spec = importlib.util.spec_from_file_location(file.stem, file)
    if module_spec is None or module_spec.loader is None:
        raise InputError("is not a Python file", file=path)
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        line = line_in(module_spec.origin or path, error)
        registry.ENTRIES.clear()
        registry.ENTRIES.update(before)
        raise InputError(f"{type(error).__name__}: {error}", file=path, line=line, fix="fix the file") from error


def _known(name: str, known: list[str], kind: str, spec: str) -> None:
    if name not in known:
        otherwise = "known: " + ", ".join(sorted(known))
        otherwise += "; one of your own is FILE.py:NAME" if kind == "policy" else ""
        hint = did_you_mean(name, known, otherwise=otherwise)
        raise InputError(f"no {kind} is called {name!r}", field=f"scheduler {spec!r}", fix=hint)
