"""A genetic algorithm over orders of the waiting jobs.

Operators are those of GAS-MARL's code, see `policies.published_genetic`, without what makes that one weak: the
population keeps its size, and it begins with small jobs first, with the previous order, and with large jobs first.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.views.interface import Queue
from greenbatch.policies.orders import Order, ascending, large_first, order_crossover, rank_of, swap, swap_blocks
from greenbatch.policies.plans import Plans, rounds

POPULATION, ELITES, CHILDREN = 30, 10, 20
SWAPS, BLOCKS = 0.3, 0.3
"""Shares of children by swaps and by blocks; the others are pairs by crossover."""
MOST_SWAPS, LONGEST_BLOCK = 5, 10
_DRAWS = 2 + 2 * MOST_SWAPS
"""Random numbers of a child, beside that of the operator."""


def genetic(plans: Plans, queue: Queue, previous: Order, budget: int, rng: np.random.Generator) -> Order:
    """Search for the order with the highest value.

    Args:
        plans: values orders.
        queue: the waiting jobs.
        previous: the order so far, new jobs behind.
        budget: largest number of plans.
        rng: random numbers.

    Returns:
        The best order found.
    """
    area = queue.requested_time_s * queue.processors
    seeds = [
        previous, ascending(queue.submit_s), ascending(queue.requested_time_s), ascending(area * queue.power_w),
        *large_first(queue),
    ]  # fmt: skip
    shuffled = np.argsort(rng.random((POPULATION - len(seeds), len(previous))), axis=1)
    population: list[Order] = seeds + shuffled.tolist()
    ranked = sorted(population, key=plans.value, reverse=True)
    for _ in rounds(plans, CHILDREN, budget):
        ranked = sorted(ranked[:ELITES] + _children(ranked, rng), key=plans.value, reverse=True)
    return ranked[0]


def _children(ranked: list[Order], rng: np.random.Generator) -> list[Order]:
    """As many children as there is room for beside the best."""
    made: list[Order] = []
    for chance, *draws in rng.random((CHILDREN, 1 + _DRAWS)).tolist():
        child = ranked[rank_of(draws[0])].copy()
        if chance < SWAPS:
            made.append(_by_swaps(child, draws))
        elif chance < SWAPS + BLOCKS:
            made.append(_by_blocks(child, draws))
        else:
            made += _by_crossover(ranked, draws)
    return made[:CHILDREN]


def _by_swaps(order: Order, draws: list[float]) -> Order:
    for k in range(1 + int(draws[1] * MOST_SWAPS)):
        swap(order, *(int(draw * len(order)) for draw in draws[2 + 2 * k : 4 + 2 * k]))
    return order


def _by_blocks(order: Order, draws: list[float]) -> Order:
    count = len(order)
    length = 1 + int(draws[1] * min(count // 2, LONGEST_BLOCK))
    first = int(draws[2] * (count - 2 * length + 1))
    second = first + length + int(draws[3] * (count - 2 * length - first + 1))
    swap_blocks(order, length, first, second)
    return order


def _by_crossover(ranked: list[Order], draws: list[float]) -> list[Order]:
    one, other = rank_of(draws[0]), rank_of(draws[1])
    a, b = ranked[one], ranked[other + (one == other)]
    first = int(draws[2] * len(a))
    last = int(draws[3] * (len(a) - 1))
    first, last = sorted((first, last + (last >= first)))
    return [order_crossover(a, b, first, last), order_crossover(b, a, first, last)]
