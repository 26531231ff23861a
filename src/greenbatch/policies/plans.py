"""Plans of a scheduler that searches for an order: what an order of the waiting jobs would lead to, and its price.

A plan is simulated in a fork of the present by the engine itself, with the scheduler's own backfilling and commitment.
It knows what the view shows: jobs run for their requested times, nothing arrives, and the forecast repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.codes import BACKFILL
from greenbatch.engine.decide import Ranking
from greenbatch.engine.entry_points import no_rule, with_decider
from greenbatch.engine.observe.stacked import fork
from greenbatch.engine.program import Program
from greenbatch.engine.records import SHORT_S, Floats, Ledger
from greenbatch.engine.state import State
from greenbatch.engine.views.codec import power_of_view
from greenbatch.engine.views.imagined import NO_ARRIVALS, Future, Imagination
from greenbatch.engine.views.interface import NO_COSTS, Costs, Queue, View
from greenbatch.policies.orders import Order

MOST_REPEATS = 4
"""A search ends when it has asked for this many times as many plans as it may simulate."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the value of a plan is made of."""

    renewable: float
    """Weight of renewable utilization."""
    slowdown: float
    """Price of one unit of the mean bounded slowdown (GAS-MARL Eq. 9, eta)."""
    cost: float = 0.0
    """Price of the cost of the plan, relative to its load at the usual price."""
    carbon: float = 0.0
    """Price of its carbon, relative to its load at the usual intensity."""


def value(energy: Ledger, bounded_slowdown: Floats, weights: Weights, costs: Costs = NO_COSTS) -> float:
    """The value of a plan, the higher the better.

    Args:
        energy: energy and its cost from now to the end of the plan.
        bounded_slowdown: that of each planned job.
        weights: the weights.
        costs: for the usual price and intensity.
    """
    used, load = float(energy.renewable_used_j), float(energy.load_j)
    utilization = used / load if load > 0.0 else 0.0
    worth = weights.renewable * utilization - weights.slowdown * float(bounded_slowdown.mean())
    if weights.cost == weights.carbon == 0.0:
        return worth
    usual, usual_g = (load / JOULES_PER_KWH * each for each in (costs.usual_price_per_kwh, costs.usual_g_per_kwh))
    paid = float(energy.cost) / usual if usual > 0.0 else 0.0
    emitted = float(energy.carbon_g) / usual_g if usual_g > 0.0 else 0.0
    return worth - weights.cost * paid - weights.carbon * emitted


class Plans:
    """The plans of one search, each simulated once."""

    def __init__(self, view: View, imagination: Imagination, weights: Weights) -> None:
        """Prepare the present.

        Args:
            view: a view; all its waiting jobs are planned.
            imagination: of a scheduler `in_order`.
            weights: what plans are valued by.
        """
        running, queue = view.running, view.queue
        future = Future(
            queue.requested_time_s, running.expected_end_s - running.start_s, NO_ARRIVALS, power_of_view(view)
        )
        self._state = imagination(view, future)
        self._state.rules.accrue, self._state.clock.accrued_s = 1, view.now_s
        self._count, self._weights, self._known = len(view.job_id), weights, dict[tuple[int, ...], float]()
        self._costs = view.supply.costs
        self._submit_s, self._requested_s = queue.submit_s, queue.requested_time_s
        self._ranking = Ranking(no_rule())
        self._run = with_decider("run", self._state, self._ranking)

    def value(self, order: Order) -> float:
        """The value of an order of all waiting jobs, positions in the queue."""
        known = tuple(order)
        if known not in self._known:
            self._known[known] = self._simulate(order)
        return self._known[known]

    @property
    def simulated(self) -> int:
        """Number of plans simulated so far."""
        return len(self._known)

    def _simulate(self, order: Order) -> float:
        state: State = fork(self._state)
        state.queue.score[order] = np.arange(self._count)
        self._run(state, self._ranking)
        events: Any = state.log[: state.clock.logged]
        started = events[events["kind"] <= BACKFILL]
        start_s = np.full(self._count, float(state.clock.now_s))  # of a plan that is too long, the rest begins then
        start_s[started["job"]] = started["time_s"]
        turnaround_s = start_s - self._submit_s + self._requested_s
        slowdown = np.maximum(turnaround_s / np.maximum(self._requested_s, SHORT_S), 1.0)
        return value(state.ledger, slowdown, self._weights, self._costs)


def rounds(plans: Plans, orders: int, budget: int) -> Iterator[int]:
    """Rounds of a search: while the next one cannot exceed the budget, or until little is new.

    Args:
        plans: counts the plans simulated; those known already cost nothing.
        orders: largest number of new orders in a round.
        budget: largest number of plans.
    """
    for k in range(MOST_REPEATS * budget // orders):
        if plans.simulated + orders > budget:
            return
        yield k


def in_order(program: Program) -> Program:
    """A scheduler whose jobs have fixed scores, with the backfilling and settings of another."""
    return replace(program, policy=None, score=_by_submission, fixed=True)


def _by_submission(queue: Queue) -> Floats:
    return queue.submit_s
