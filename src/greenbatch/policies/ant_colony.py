"""An ant colony system over orders of the waiting jobs.

Source: Dorigo & Gambardella, "Ant colony system: a cooperative learning approach to the traveling salesman problem",
IEEE Trans. Evol. Comput. 1(1), 1997, with its usual parameters. Papers that compare with an ant colony for batch jobs
state none, so trails over ranks, the heuristic and the start are ours.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.records import Floats
from greenbatch.engine.views.interface import Queue
from greenbatch.policies.compiled.ants import EVAPORATION, FLOOR, built
from greenbatch.policies.orders import Order, ascending
from greenbatch.policies.plans import Plans, rounds

ANTS = 30
REINFORCED = 4.0
"""Trail of the best order if it is reinforced for ever."""
HEAD_START = 1.0
"""What is added to the trail of the best order known at the start."""
LEAST_LURE = 1e-3
"""Of the largest and hungriest jobs, relative to the smallest one."""


def ant_colony(plans: Plans, queue: Queue, previous: Order, budget: int, rng: np.random.Generator) -> Order:
    """Search for the order with the highest value; arguments and result as for `genetic.genetic`."""
    energy = queue.power_w * queue.requested_time_s
    known = [
        previous, ascending(queue.submit_s), ascending(queue.requested_time_s), ascending(energy * queue.processors),
        ascending(-energy),
    ]  # fmt: skip
    best, ranks = max(known, key=plans.value), np.arange(len(previous))
    trails, lure = np.full((len(previous),) * 2, FLOOR), lure_of(queue)
    trails[ranks, best] += HEAD_START
    for _ in rounds(plans, ANTS, budget):
        orders = built(trails, lure, rng.random((ANTS, len(previous), 2))).tolist()
        best = max([best, *orders], key=plans.value)
        trails[ranks, best] += EVAPORATION * (REINFORCED - trails[ranks, best])
    return best


def lure_of(queue: Queue) -> Floats:
    """Attraction of each job: 1 / (requested time x processors x power), relative to the largest, shape (n,)."""
    size = queue.requested_time_s * queue.processors * np.where(queue.power_w > 0.0, queue.power_w, 1.0)
    visible = np.maximum(np.sqrt(size.min() / size), LEAST_LURE)
    lure: Floats = visible**2
    return lure
