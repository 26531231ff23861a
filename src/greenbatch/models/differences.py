"""Differences between a scenario and the one a model was trained on, as far as they are known to matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from greenbatch.scenarios.profile import Profile


class Question(NamedTuple):
    """A scenario and window length that a model is used or was trained on."""

    profile: Profile
    window_jobs: int
    """Jobs of a window."""


class Trait(NamedTuple):
    """A property in which two questions may differ."""

    difference: Callable[[Question, Question], str]
    """Function of the training's question and the current one: the difference in words, empty if small or unknown."""
    reason: str
    """Why it matters beyond this threshold."""


SIZE_FACTOR, LOAD, SHORT_SHARE, SUPPLY_SHARE, LENGTH_FACTOR = 2.0, 0.15, 0.25, 0.30, 4.0
EXACT, USERS = 1.05, 1.25
"""Median of requested over run time: requests are exact up to the first, users' estimates above the second."""


def _size(trained: Question, here: Question) -> str:
    then, now = trained.profile.processors, here.profile.processors
    return "" if 1 / SIZE_FACTOR < now / then < SIZE_FACTOR else f"{now:,} processors here, {then:,} there"


def _load(trained: Question, here: Question) -> str:
    then, now = trained.profile.load, here.profile.load
    if then is None or now is None or abs(now - then) <= LOAD:
        return ""
    return f"load {now:.2f} here, {then:.2f} there"


def _short_jobs(trained: Question, here: Question) -> str:
    then, now = trained.profile.short_jobs, here.profile.short_jobs
    return f"{now:.0%} of jobs under 5 minutes here, {then:.0%} there" if abs(now - then) > SHORT_SHARE else ""


def _estimates(trained: Question, here: Question) -> str:
    then, now = trained.profile.median_request, here.profile.median_request
    if then <= EXACT and now > USERS:
        return f"users request {now:.1f} times the run time here, exactly the run time there"
    if now <= EXACT and then > USERS:
        return f"users request exactly the run time here, {then:.1f} times the run time there"
    return ""


def _supply(trained: Question, here: Question) -> str:
    if trained.profile.supply != here.profile.supply:
        return "renewable power here, none there" if here.profile.supply else "no renewable power here, some there"
    parts = []
    for word, then, now in (
        ("mean", trained.profile.mean_supply, here.profile.mean_supply),
        ("peak", trained.profile.peak_supply, here.profile.peak_supply),
    ):
        if then and now is not None and abs(now / then - 1) > SUPPLY_SHARE:
            parts.append(f"{word} renewable power {now:.2f} times the machine's peak here, {then:.2f} there")
    return "; ".join(parts)


def _length(trained: Question, here: Question) -> str:
    if here.window_jobs <= LENGTH_FACTOR * trained.window_jobs:
        return ""
    return f"windows of {here.window_jobs:,} jobs here, {trained.window_jobs:,} there"


TRAITS: dict[str, Trait] = {
    "size": Trait(_size, "a factor of 2 changes how many jobs run side by side, and thus the cost of idle processors"),
    "load": Trait(_load, "0.15 of the capacity can separate a queue that drains from one that grows"),
    "short jobs": Trait(_short_jobs, "short jobs dominate the bounded slowdown; a quarter more is a different trace"),
    "estimates": Trait(_estimates, "plans by requested times fail if jobs end much earlier; 1.25 exceeds slack"),
    "supply": Trait(_supply, "weights and delays are fitted to how often renewable power exceeds demand"),
    "length": Trait(_length, "jobs held in one window wait in the next; papers test on 4 times the training's jobs"),
}
"""Properties that are compared. A scenario is unlike the training's if any of them differs."""


def differences(trained: Question, here: Question) -> list[str]:
    """Differences between the current question and the one a model was trained on, in words; empty if alike."""
    return [text for trait in TRAITS.values() if (text := trait.difference(trained, here))]
