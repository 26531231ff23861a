"""The syntax of schedulers' names: ``policy+backfill+placement+charge``, each with parameters, ``name:key=value``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from greenbatch.engine.machine.placement import PLACEMENTS
from greenbatch.engine.settings import Parameter
from greenbatch.errors import InputError, did_you_mean
from greenbatch.policies.backfillings import BACKFILLINGS

_MODEL = re.compile(r"(?P<preset>[\w.-]+)@(?P<folder>.+)")
"""A trained model: its preset, and its folder with parameters and backfilling."""
_PLUS = re.compile(r"(?<!\d[eE])\+")
"""The plus between policy and backfilling, not that of an exponent."""


CHARGE = "charge"
"""The last part of a name if storage is commanded."""


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


def model_of(text: str) -> re.Match[str] | None:
    """The parts of a model's name, None for other names."""
    return None if ".py:" in text else _MODEL.fullmatch(text.strip())


def split_charge(spec: str) -> tuple[str, str]:
    """A name without its commands to storage, and these, ``charge`` with parameters; empty if none are given."""
    parts = _PLUS.split(spec)
    is_charge = len(parts) > 1 and parts[-1].partition(":")[0] == CHARGE
    return (spec.removesuffix(f"+{parts[-1]}"), parts[-1]) if is_charge else (spec, "")


def split_parts(spec: str) -> tuple[str, str, str]:
    """Policy, backfilling and placement, each with its parameters; the placement is empty if none is given.

    Commands to storage are left out. In a model's name, only the last plus before a backfilling separates: folders may
    contain one too.
    """
    spec, _ = split_charge(spec)
    placement, parts = "", _PLUS.split(spec)
    if len(parts) > 2 and parts[-1].partition(":")[0] in PLACEMENTS:
        placement = parts[-1]
        spec = spec.removesuffix(f"+{placement}")
    return *_two_parts(spec), placement


def _two_parts(spec: str) -> tuple[str, str]:
    if not model_of(spec):
        parts = _PLUS.split(spec)
        return ("+".join(parts[:-1]), parts[-1]) if len(parts) > 1 else (parts[0], "none")
    parts = spec.split("+")
    for at in range(len(parts) - 1, 0, -1):
        if parts[at].partition(":")[0] in BACKFILLINGS:
            return "+".join(parts[:at]), "+".join(parts[at:])
    return spec, "none"


def parse(text: str, spec: str) -> tuple[str, dict[str, str]]:
    """A name and its parameters: key -> text."""
    parts = text.split(":")
    given: dict[str, str] = {}
    while len(parts) > 1 and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        if key in given:
            raise InputError(f"{key} is given twice", field=spec, fix="give it once")
        given[key] = value
    if len(parts) > 1 and ".py" not in parts[0] and "@" not in parts[0] and parts[-1].isidentifier():
        raise InputError(f"{parts[-1]} needs a value", field=spec, fix=f"write {parts[-1]}=NUMBER")
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
            choices = known[key].choices
            found[key] = float(choices.index(text)) if choices else float(text)
        except ValueError:
            raise InputError(f"{key} is {text!r}", field=spec, fix=f"give {known[key].span}") from None
        known[key].check(key, found[key], field=spec)
    return found


def check_known(name: str, known: list[str], kind: str, spec: str) -> None:
    """Refuse an unknown name of a policy or backfilling.

    Raises:
        InputError: the name is not known; the fix names similar ones.
    """
    if name not in known:
        otherwise = "known: " + ", ".join(sorted(known))
        otherwise += "; one of your own is FILE.py:NAME" if kind == "policy" else ""
        is_backfilling = kind == "policy" and name in BACKFILLINGS
        hint = f"it is a backfilling: fcfs+{name}" if is_backfilling else did_you_mean(name, known, otherwise=otherwise)
        raise InputError(f"no {kind} is called {name!r}", field=f"scheduler {spec!r}", fix=hint)
