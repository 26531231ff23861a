"""The registry of metrics: name, label, unit, direction and function of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from greenbatch.display import docstring
from greenbatch.errors import InputError, did_you_mean

Better = Literal["lower", "higher", "neither"]
Scope = Literal["run", "horizon", "window"]
Function = TypeVar("Function", bound=Callable[..., float])


@dataclass(frozen=True, slots=True)
class Metric:
    """A named figure of a run, either on its own or among the other runs of its window."""

    name: str
    """Flat name, ending in its unit if it has one; the key in ``metrics.json``."""
    label: str
    """Name in reports, without the unit."""
    unit: str
    """``s``, ``kWh``, ``W``, ``jobs``, or ``-`` for a pure number."""
    better: Better
    """Whether lower or higher values are better."""
    scope: Scope
    """``run``: requires one outcome; ``horizon``: also requires the horizon of its window (`metrics.horizon`);
    ``window``: also requires the other outcomes of its window."""
    function: Callable[..., float]
    """``run``: Measured -> float; ``horizon``: (Measured, Horizon) -> float; ``window``: (Measured, Window) -> float.
    NaN if undefined."""

    @property
    def doc(self) -> str:
        """Formula, unit, range and source: the function's docstring."""
        return docstring(self.function)


METRICS: dict[str, Metric] = {}
"""Name -> metric, in the order of reports."""


def metric(
    label: str, unit: str = "-", better: Better = "lower", *, scope: Scope = "run", name: str | None = None
) -> Callable[[Function], Function]:
    """Register a function as a metric under its own name (or ``name``).

    Raises:
        InputError: the name is taken by another function.
    """

    def register(function: Function) -> Function:
        key = name or function.__name__
        if key in METRICS and METRICS[key].function is not function:
            raise InputError(f"the metric {key!r} already exists", field="metric", fix="give it another name")
        METRICS[key] = Metric(key, label, unit, better, scope, function)
        return function

    return register


def find(name: str) -> Metric:
    """The metric of that name.

    Raises:
        InputError: no such metric exists.
    """
    if name not in METRICS:
        fix = did_you_mean(name, METRICS, otherwise="docs/metrics.md lists them")
        raise InputError(f"unknown metric {name!r}", field="metric", fix=fix)
    return METRICS[name]
