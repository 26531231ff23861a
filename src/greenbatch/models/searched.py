"""Scenarios that the shipped parameters of a policy were searched or tried on, and how another one differs from these.

``python docs/searched.py`` writes their profiles, ``searched.json``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from greenbatch.models.differences import Question, differences
from greenbatch.scenarios.profile import Profile


@cache
def searched_on(policy: str) -> dict[str, Question]:
    """The scenarios by name, each as a whole; empty for a policy whose parameters nobody searched."""
    known = json.loads(files(__package__).joinpath("searched.json").read_text("utf-8"))
    profiles = {name: Profile.model_validate(each) for name, each in known.get(policy, {}).items()}
    return {name: Question(each, each.jobs) for name, each in profiles.items()}


def outside(policy: str, here: Question) -> str:
    """How a scenario differs from the nearest one that a policy was searched on, in words; empty if it does not."""
    found = {name: differences(there, here) for name, there in searched_on(policy).items()}
    if not found:
        return ""
    nearest = min(found, key=lambda name: len(found[name]))
    return f"{'; '.join(found[nearest])} ({nearest})" if found[nearest] else ""
