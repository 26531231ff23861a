"""The rolling-horizon planner: try settings of the look-ahead planner on forks of the present, follow the best one.

Every half-hour, states are made of the present and of one or more futures, see `policies.futures`. In each, a few
settings of `gas-marl-plus` are simulated up to a horizon and priced (`policies.compiled.rolling`). The setting with the
lowest price over all futures decides until the next half-hour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.observe.stacked import fork
from greenbatch.engine.program import Program
from greenbatch.engine.records import Floats
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.driver import ViewDriver
from greenbatch.engine.views.imagined import Future, Imagination
from greenbatch.engine.views.interface import Decision, View
from greenbatch.policies.compiled.lookahead.weights import NUMBERS
from greenbatch.policies.compiled.rolling import Objective, attempt_of

TICK_S = 1800.0
"""Interval at which settings are tried. [s]"""
EFFORT_H = 12_000.0
"""What a decision may simulate, in hours times waiting jobs: a long queue shortens the horizon."""
BESIDES = 16
"""Waiting jobs that take as long to simulate as everything else."""
SHORTEST_H = 3.5
"""Shortest horizon; if that is too much for a long queue, there are fewer futures. [h]"""
LEFT_SHARE = 0.25
"""Share of the energy of work left at the horizon that is priced as brown."""
SETTINGS: tuple[dict[str, float], ...] = (
    {}, {"readiness": 8.0}, {"readiness": -3.0}, {"hold_price": 0.5}, {"hold_price": -0.5}, {"green_price": 10.0},
    {"green_price": -10.0},
)  # fmt: skip
"""The settings: what each adds to the weights of the model, see `lookahead.weights.NUMBERS`. The first is the model."""


class Knowledge(Protocol):
    """What is known of the future."""

    def see(self, view: View) -> None:
        """Learn from a view."""
        ...

    def futures(self, view: View, count: int, until_s: float) -> list[Future]:
        """At most ``count`` futures of a view, with the jobs that come before a time. [s]"""
        ...


@dataclass(frozen=True)
class Plan:
    """What the planner tries, and how it compares."""

    base: Program
    """The look-ahead planner."""
    weights: tuple[Floats, ...]
    """Weights of the settings."""
    futures: int
    """Largest number of futures."""
    horizon_s: float
    """How far settings are simulated at most. [s]"""
    slowdown_j: float
    """Price of one unit of a job's slowdown. [J]"""
    idle_w: float
    """Price of a processor-second of work left at the horizon. [W]"""

    def effort(self, view: View) -> tuple[int, float]:
        """The number of futures at a view, and until when each setting is simulated in them. [s]"""
        hours = EFFORT_H / (len(self.weights) * (len(view.job_id) + BESIDES))
        futures = max(1, min(self.futures, int(hours / SHORTEST_H)))
        return futures, view.now_s + min(self.horizon_s, 3600.0 * max(SHORTEST_H, hours / futures))


class RollingHorizon:
    """The planner as a policy that answers views."""

    def __init__(self, plan: Plan, knowledge: Knowledge, cluster: Cluster, rules: Rules) -> None:
        """Begin with the model's own setting.

        Args:
            plan: what it tries.
            knowledge: what it knows of the future.
            cluster: the machines.
            rules: how the batch system reacts.
        """
        self._plan, self._knowledge = plan, knowledge
        self._imagination = Imagination(plan.base, cluster, rules)
        self._tick, self._best = -np.inf, 0
        shown = replace(rules, backfill_depth=0)  # a view shows the jobs that are looked at
        self._driver = ViewDriver(plan.base, None, cluster, shown, steer=self._steer)

    def decide(self, view: View) -> Decision:
        """The decision of the look-ahead planner with the best setting."""
        return self._driver.decide(view)

    def _steer(self, view: View, decider: Any) -> Any:
        """The look-ahead planner with the best setting; they are tried again if a half-hour has begun."""
        self._knowledge.see(view)
        tick = view.now_s // TICK_S
        if tick != self._tick:
            self._tick, prices_j = tick, self._prices_j(view, decider)
            best = int(np.argmin(prices_j))
            self._best = best if prices_j[best] < prices_j[self._best] else self._best
        return decider._replace(weights=self._plan.weights[self._best])

    def _prices_j(self, view: View, decider: Any) -> Floats:
        """The price of each setting, the sum over the futures. [J]"""
        plan, (count, until_s) = self._plan, self._plan.effort(view)
        aim, prices_j = Objective(until_s, plan.slowdown_j, plan.idle_w, LEFT_SHARE), np.zeros(len(plan.weights))
        for future in self._knowledge.futures(view, count, until_s):
            state = self._imagination(view, future)
            attempt = attempt_of(state, decider)
            for k, weights in enumerate(plan.weights):
                prices_j[k] += attempt(fork(state), fork(decider._replace(weights=weights)), aim)
        return prices_j


def settings_of(weights: Floats) -> tuple[Floats, ...]:
    """The weights of all settings of a model, given its own."""
    return tuple(_changed(weights, each) for each in SETTINGS)


def _changed(weights: Floats, change: dict[str, float]) -> Floats:
    """Weights of a model with some added to, within their ranges."""
    made = weights.copy()
    for name, more in change.items():
        k, number = list(NUMBERS).index(name), NUMBERS[name]
        made[k] = min(max(made[k] + more, number.lowest), number.highest)
    return made
