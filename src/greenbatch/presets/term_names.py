"""Former names of reward terms, which presets, records and checkpoints written earlier still contain.

Reward terms have the names of their metrics, see `observe.reward_terms`. `current` replaces former names in a table of
terms, `in_preset` in a preset; both keep the order and the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BeforeValidator

from greenbatch.scenarios.section import Text

FORMER: Mapping[str, str] = MappingProxyType(
    {
        "bounded_slowdown": "avg_bounded_slowdown",
        "wait": "avg_wait_s",
        "turnaround": "avg_turnaround_s",
        "slowdown": "avg_slowdown",
        "brown_energy": "brown_energy_ratio",
        "makespan": "makespan_area_ratio",
    }
)
"""Former name -> name."""

PLACES = (("reward", "terms"), ("training", "curriculum", "weights"))
"""Tables of a preset whose keys are terms; stages of the curriculum are not numbered."""


def current(terms: Any) -> Any:
    """A table of terms with former names replaced, in the same order; anything but a table is returned as it is.

    Raises:
        ValueError: a term is given under both of its names.
    """
    if not isinstance(terms, dict):
        return terms
    for former, name in FORMER.items():
        if former in terms and name in terms:
            raise ValueError(f"{former} and {name} are the same term; keep {name}")
    return {FORMER.get(name, name): value for name, value in terms.items()}


Terms = Annotated[dict[Text, float], BeforeValidator(current)]
"""Name of a term -> value, also read under former names."""


def in_preset(values: Any, place: tuple[str, ...] = ()) -> Any:
    """Plain values of a preset (or of the part of it at a place) with former names of terms replaced.

    Raises:
        ValueError: as `current`.
    """
    if place in PLACES:
        return current(values)
    if not any(known[: len(place)] == place for known in PLACES):
        return values
    if isinstance(values, list):
        return [in_preset(value, place) if isinstance(value, dict) else value for value in values]
    return (
        {key: in_preset(value, (*place, key)) for key, value in values.items()} if isinstance(values, dict) else values
    )


def in_key(dotted: str) -> str:
    """A dotted key of a preset, such as ``reward.terms.wait``, with the former name of a term replaced."""
    *place, last = dotted.split(".")
    return ".".join((*place, FORMER.get(last, last))) if tuple(place) in PLACES else dotted
