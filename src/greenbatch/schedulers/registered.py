"""All registered policies: built-in ones, those of installed plug-ins, and those of a Python file."""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib.abc import SourceLoader
from pathlib import Path

from greenbatch.errors import InputError
from greenbatch.models import rolling  # noqa: F401  (registers the planner that has a model)
from greenbatch.policies import registry
from greenbatch.policies.registry import Entry, line_in
from greenbatch.schedulers.allowed import check_allowed
from greenbatch.schedulers.syntax import check_known


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


def names() -> list[str]:
    """Names of all registered policies."""
    return sorted(entries())


def find_entry(name: str, spec: str) -> Entry:
    """The entry of a policy, ``NAME`` or ``FILE.py:NAME``.

    Args:
        name: name of the policy.
        spec: the scheduler's name, for messages.

    Raises:
        InputError: there is no such policy, or its file may not run (`allowed`) or cannot be loaded.
    """
    path, _, rule_name = name.rpartition(":")
    if path.endswith(".py"):
        _load_file(path)
        name = rule_name
    known = entries()
    check_known(name, list(known), "policy", spec)
    return known[name]


def _load_file(path: str) -> None:
    file = Path(path)
    if not file.is_file():
        raise InputError("no such file", file=path, fix="give a Python file that registers a rule")
    check_allowed(path)
    before = dict(registry.ENTRIES)
    module_spec = importlib.util.spec_from_file_location(file.stem, file)
    loader = None if module_spec is None else module_spec.loader
    if module_spec is None or not isinstance(loader, SourceLoader):
        raise InputError("is not a Python file", file=path)
    module = importlib.util.module_from_spec(module_spec)
    try:
        exec(loader.source_to_code(loader.get_data(str(file)), str(file)), module.__dict__)  # noqa: S102  (no .pyc)
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        line = line_in(module_spec.origin or path, error)
        registry.ENTRIES.clear()
        registry.ENTRIES.update(before)
        raise InputError(f"{type(error).__name__}: {error}", file=path, line=line, fix="fix the file") from error
