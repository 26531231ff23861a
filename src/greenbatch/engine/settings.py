"""Numeric settings: range, unit and meaning of each, and their common check."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from greenbatch.engine.tables import read_table
from greenbatch.errors import InputError, did_you_mean

A_YEAR_S = 366 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A number of a policy, a backfilling, a model or the engine."""

    default: float = 0.0
    lowest: float = 0.0
    highest: float
    meaning: str
    unit: str = ""
    whole: bool = False
    """Only whole numbers are allowed."""
    choices: tuple[str, ...] = ()
    """Words that stand for 0, 1, …, if the parameter is a word."""
    zero: bool = False
    """0 is also allowed, although it is below the lowest value: it means "none"."""

    @property
    def span(self) -> str:
        """The range in words, e.g. ``0 for none, or 1 to 604800 s``."""
        if self.choices:
            return " or ".join(self.choices)
        low, high = plain(self.lowest), plain(self.highest)
        if self.whole:
            return f"{low} or {high}" if self.highest == self.lowest + 1 else f"a whole number from {low} to {high}"
        numbers = low if low == high else f"{low} to {high}"
        return f"{'0 for none, or ' * self.zero}{numbers}" + f" {self.unit}" * bool(self.unit)

    def text(self, value: float) -> str:
        """A value as it is written in a scheduler's name."""
        return self.choices[int(value)] if self.choices else plain(value)

    def takes(self, value: float) -> bool:
        """Whether a number is in the range; NaN never is."""
        if self.zero and value == 0.0:
            return True
        return self.lowest <= value <= self.highest and (not self.whole or value == math.floor(value))

    def check(self, name: str, value: float, *, field: str) -> None:
        """Refuse a number that is out of range.

        Raises:
            InputError: one line with the range.
        """
        if not self.takes(value):
            raise InputError(f"{name} is {plain(value)}", field=field, fix=f"give {self.span}")


def plain(value: float) -> str:
    """A number as a user would type it: ``31622400``, ``0.2``, ``1e15``."""
    exact, short = f"{value:.15g}", re.sub(r"e\+?(-?)0*", r"e\1", f"{value:g}")
    return short if len(short) < len(exact) and float(short) == value else exact


def word(meaning: str, *choices: str) -> Parameter:
    """A parameter that is one of several words, the first by default."""
    return Parameter(highest=len(choices) - 1.0, whole=True, meaning=meaning, choices=choices)


def check_choices(options: Any, section: str) -> None:
    """Refuse a field of options that is not one of the words that its type lists.

    Raises:
        InputError: the words that there are.
    """
    for name, kind in get_type_hints(type(options)).items():
        value, choices = getattr(options, name), get_args(kind)
        if get_origin(kind) is Literal and value not in choices:
            fix = did_you_mean(str(value), choices, otherwise="use " + " or ".join(choices))
            raise InputError(f"is {value!r}", field=f"{section}.{name}", fix=fix)


SEED = Parameter(highest=1e15, whole=True, meaning="seed of the random numbers")

SETTINGS: dict[str, Parameter] = {name: Parameter(**row) for name, row in read_table("settings")["settings"].items()}
"""Settings of the engine that a scheduler's program may change."""

WEIGHTS: dict[str, Parameter] = {name: SETTINGS[f"weight_{name}"] for name in ("brown", "cost", "carbon")}
"""Weights of a joule, as parameters of a policy; see `engine.power.protocol.Weights`."""
