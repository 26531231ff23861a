"""Which parameters of a built-in policy a preset searches, and whether the numbers of a model fit them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from greenbatch.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from greenbatch.presets.preset import Preset

NUMBERS = "parameters"
"""Name of the parameters among the weights of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A parameter that is searched."""

    name: str
    begin: float
    """Where the search begins."""
    step: float
    """Its first step."""
    lowest: float
    highest: float


def searched_of(preset: Preset) -> tuple[Searched, ...]:
    """What is searched of a preset's policy.

    Raises:
        InputError: ``[network]`` has no known policy or parameter, or no numbers.
    """
    from greenbatch.policies.registry import ENTRIES

    network = preset.network
    policy, search = network.get("policy"), network.get("search")
    if not isinstance(policy, str) or policy not in ENTRIES:
        fix = did_you_mean(str(policy), ENTRIES, otherwise="see: greenbatch schedulers")
        raise InputError(f"is {policy!r:.40}", field="network.policy", fix=fix)
    if unknown := sorted(set(network) - {"kind", "policy", "search"}):
        raise InputError("policy has no such key", field=f"network.{unknown[0]}", fix="known: policy, search")
    if not isinstance(search, Mapping) or not search:
        raise InputError("is missing", field="network.search", fix="give parameters, each with [begin, step]")
    parameters, found = ENTRIES[policy].parameters, []
    for name, given in search.items():
        if name not in parameters:
            fix = did_you_mean(name, parameters, then="known: " + ", ".join(parameters))
            raise InputError(f"{policy} has no parameter {name!r}", field="network.search", fix=fix)
        limits = parameters[name]
        numbers = list(given) if isinstance(given, list | tuple) else []
        if len(numbers) != 2 or not all(isinstance(each, int | float) for each in numbers) or not numbers[1] > 0:
            raise InputError(f"is {given!r:.40}", field=f"network.search.{name}", fix="give [begin, step], step > 0")
        limits.check(name, float(numbers[0]), field=f"network.search.{name}")
        found.append(
            Searched(name=name, begin=numbers[0], step=numbers[1], lowest=limits.lowest, highest=limits.highest)
        )
    return tuple(found)


def check_parameters(model_weights: Mapping[str, NDArray[np.float32]], preset: Preset) -> str:
    """What is wrong with the weights of such a model, or nothing."""
    searched, numbers = searched_of(preset), model_weights.get(NUMBERS)
    if set(model_weights) != {NUMBERS} or numbers is None or numbers.shape != (len(searched),):
        return f"are not {len(searched)} parameters"
    for each, number in zip(searched, numbers, strict=True):
        if not each.lowest - 1e-6 <= number <= each.highest + 1e-6:
            return f"have {each.name} {number:g}, which lies outside {each.lowest:g} to {each.highest:g}"
    return ""
