"""Orders of waiting jobs that searches begin with, and the operators that change them.

An order is a list of positions in the queue. Sources: GAS-MARL §5.3 (genetic algorithm), after Kassab et al.
"""

from __future__ import annotations

import math

import numpy as np

from greenbatch.engine.records import Floats
from greenbatch.engine.views.interface import Queue

Order = list[int]


def ascending(key: Floats) -> Order:
    """Jobs in ascending key, equal ones by submission."""
    made: Order = np.argsort(key, kind="stable").tolist()
    return made


def large_first(queue: Queue) -> list[Order]:
    """The four orders of GAS-MARL's code, largest first: energy, alternately energy and time, time, and power."""
    energy, time = ascending(-queue.power_w * queue.requested_time_s), ascending(-queue.requested_time_s)
    return [energy, alternating(energy, time), time, ascending(-queue.power_w)]


def alternating(one: Order, other: Order) -> Order:
    """Take the first job left of each of two orders in turn."""
    made: Order = []
    taken: set[int] = set()
    lists = iter(one), iter(other)
    while len(made) < len(one):
        job = next(job for job in lists[len(made) % 2] if job not in taken)
        made.append(job)
        taken.add(job)
    return made


def swap(order: Order, i: int, k: int) -> None:
    """Swap two jobs."""
    order[i], order[k] = order[k], order[i]


def swap_blocks(order: Order, length: int, first: int, second: int) -> None:
    """Swap two blocks of equal length that do not overlap."""
    one, other = slice(first, first + length), slice(second, second + length)
    order[one], order[other] = order[other], order[one]


def order_crossover(one: Order, other: Order, first: int, last: int) -> Order:
    """Keep the slice ``first + 1 .. last`` of one parent; fill the rest, from ``last + 1`` on, as in the other.

    Davis's order crossover: places and jobs both go round from after the slice.
    """
    kept = one[first + 1 : last + 1]
    inside = set(kept)
    rest = [job for job in other[last + 1 :] + other[: last + 1] if job not in inside]
    behind = len(one) - 1 - last
    return rest[behind:] + kept + rest[:behind]


def rank_of(chance: float) -> int:
    """The rank of a parent, i with probability 2^-(i + 1), by a number drawn from [0, 1)."""
    return -math.frexp(chance)[1]
