"""Action agreement: how often a policy decides as a recorded rule did, in the states that the rule came to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greenbatch.errors import InputError


class Agreement(NamedTuple):
    """Shares of decisions in which a policy's action equals the recorded one."""

    share: float
    """Of those with a choice: two or more valid actions. [-], 0 to 1"""
    share_of_all: float
    """Of all, also those in which the only valid action agrees by force. [-], 0 to 1"""
    contested: int
    """Decisions with a choice."""
    decisions: int
    """All decisions."""


def agreement(policy_actions: ArrayLike, recorded_actions: ArrayLike, valid_actions: ArrayLike) -> Agreement:
    """How often a policy's action equals the recorded one.

    Source: RARE (dissertation), §7.5.4 and Table 7.1: the percentage of steps of a heuristic's rollout "where the
    policy's action is equal to the heuristic's decision in the current state". The text does not say whether steps
    without a choice count, so both shares are returned.

    Args:
        policy_actions: what the policy would do, its most probable action, shape (n,).
        recorded_actions: what was done, shape (n,).
        valid_actions: number of valid actions in each decision, >= 1, shape (n,).

    Raises:
        InputError: there is no decision, none has a choice, the shapes differ, or a number is not whole or below 1.
    """
    parts = {"policy_actions": policy_actions, "recorded_actions": recorded_actions, "valid_actions": valid_actions}
    ours, theirs, valid = (_whole(values, name) for name, values in parts.items())
    if not len(ours) == len(theirs) == len(valid):
        problem = f"have {len(ours)}, {len(theirs)} and {len(valid)} decisions"
        raise InputError(problem, field=", ".join(parts), fix="give the same number of each")
    if (few := np.flatnonzero(valid < 1)).size:
        problem = f"is {valid[few[0]]} in decision {few[0]}"
        raise InputError(problem, field="valid_actions", fix="give 1 or more: something was done")
    equal, contested = ours == theirs, valid >= 2
    if not contested.any():
        problem = f"has no choice in any of {len(valid):,} decisions"
        raise InputError(problem, field="valid_actions", fix="record a rollout in which several jobs can start")
    return Agreement(float(equal[contested].mean()), float(equal.mean()), int(contested.sum()), len(valid))


def _whole(values: ArrayLike, field: str) -> NDArray[Any]:
    found = np.asarray(values)
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
        problem = f"has the shape {found.shape} and the type {found.dtype}"
        raise InputError(problem, field=field, fix="give one whole number per decision")
    return found
