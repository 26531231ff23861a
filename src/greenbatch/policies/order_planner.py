"""A policy that searches for the order of the waiting jobs, and starts the first one.

It searches again whenever jobs have arrived since the last search, and keeps the order otherwise. Nothing it does
changes the simulation that asks it, and a search depends on nothing but the view, the previous order and the seed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.program import Program
from greenbatch.engine.rules import Rules
from greenbatch.engine.views.imagined import Imagination
from greenbatch.engine.views.interface import Attributes, Decision, Predicted, Queue, Start, View
from greenbatch.policies.orders import Order
from greenbatch.policies.plans import Plans, Weights, in_order

MOST_JOBS = 256
"""Jobs that are planned, the first ones by submission; the others wait behind."""

Search = Callable[[Plans, Queue, Order, int, np.random.Generator], Order]
"""Finds an order, ``(plans, queue, previous order, budget, random numbers)``; see `genetic.genetic`."""


class OrderPlanner:
    """The policy."""

    def __init__(
        self, search: Search, weights: Weights, budget: int, seed: int, program: Program, cluster: Cluster, rules: Rules
    ) -> None:  # fmt: skip
        """Begin without an order.

        Args:
            search: finds an order.
            weights: what plans are valued by.
            budget: largest number of plans of a search.
            seed: seed of the random numbers.
            program: the scheduler, for its backfilling and placement.
            cluster: the machines.
            rules: how the batch system reacts.
        """
        self._search, self._weights, self._budget, self._seed = search, weights, budget, seed
        self._imagination = Imagination(in_order(program), cluster, rules)
        self._order: list[int] = []
        self._submitted = 0
        self.searches = self.evaluations = 0
        """Number of searches, and of the plans they simulated."""

    def decide(self, view: View) -> Decision:
        """Start the first job in order that is ready; search if jobs have arrived since the last search."""
        rows = {number: row for row, number in enumerate(view.job_id.tolist())}
        self._order = [number for number in self._order if number in rows]
        if view.submitted != self._submitted:
            known = set(self._order)
            order = self._order + [number for number in rows if number not in known]
            self._order, self._submitted = self._searched(view, order, rows), view.submitted
        ready = rows if view.capacity is None else set(view.job_id[view.capacity.ready].tolist())
        return Start(rows[next(number for number in self._order if number in ready)])

    def memory(self) -> dict[str, Any]:
        """The order and how many jobs had arrived."""
        return {"order": self._order, "submitted": self._submitted}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on with a memory."""
        self._order, self._submitted = list(memory["order"]), memory["submitted"]

    def _searched(self, view: View, order: list[int], rows: dict[int, int]) -> list[int]:
        """Job numbers in the best order found."""
        seen = _first(view, MOST_JOBS)
        count = len(seen.job_id)
        if count == 1:
            return order
        previous = [rows[number] for number in order if rows[number] < count]
        plans = Plans(seen, self._imagination, self._weights)
        if math.factorial(count) <= self._budget:
            best = max(map(list, itertools.permutations(previous)), key=plans.value)
        else:
            rng = np.random.default_rng((self._seed, int(view.submitted), int(view.job_id[0])))
            best = self._search(plans, seen.queue, previous, self._budget, rng)
        self.searches, self.evaluations = self.searches + 1, self.evaluations + plans.simulated
        numbers = view.job_id.tolist()
        return [numbers[row] for row in best] + [number for number in order if rows[number] >= count]


def _first(view: View, count: int) -> View:
    """A view as if only the first jobs waited."""
    if len(view.job_id) <= count:
        return view
    queue, own = view.queue, slice(count)
    shorter = queue._replace(
        submit_s=queue.submit_s[own], wait_s=queue.wait_s[own], requested_time_s=queue.requested_time_s[own],
        processors=queue.processors[own], power_w=queue.power_w[own], user=queue.user[own],
        attributes=Attributes(*(column[own] for column in queue.attributes)),
        predicted=Predicted(*(column[own] for column in queue.predicted)),
    )  # fmt: skip
    capacity, job_id = view.capacity, view.job_id[own]
    if capacity is not None:
        shown = np.isin(capacity.ready_job_id, job_id)
        capacity = capacity._replace(ready=capacity.ready[own], ready_job_id=capacity.ready_job_id[shown])
    return replace(view, job_id=job_id, queue=shorter, capacity=capacity)
