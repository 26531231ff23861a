"""Ants that build orders of jobs, by what earlier ants left and by a heuristic (ant colony system)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numba as _numba
import numpy as np

from greenbatch.engine.records import Floats, Ints
from greenbatch.machine_code.compile import compiled, entry

numba: Any = _numba
GREEDY, EVAPORATION, FLOOR = 0.9, 0.1, 1.0
"""Chance of the best job instead of a draw; share of a trail that is replaced; a trail that nobody reinforces."""


@compiled
def _pick(trail: Floats, lure: Floats, left: Ints, count: int, greedy: float, draw: float) -> int:
    """Position in ``left`` of the next job: the most attractive one, or one drawn in proportion."""
    best, most, total = 0, -1.0, 0.0
    for i in range(count):
        pull = trail[left[i]] * lure[left[i]]
        total += pull
        if pull > most:
            best, most = i, pull
    if greedy < GREEDY:
        return best
    wanted, seen = draw * total, 0.0
    for i in range(count):
        seen += trail[left[i]] * lure[left[i]]
        if seen > wanted:
            return i
    return count - 1


def build(trails: Any, lure: Floats, draws: Any, left: Ints, orders: Any) -> None:
    """Let each ant build an order; what it picks becomes less attractive for the next ones.

    Args:
        trails: trail of each job at each rank, shape (n, n); changed.
        lure: heuristic attraction of each job, shape (n,).
        draws: random numbers of each ant at each rank, shape (ants, n, 2).
        left: memory, shape (n,).
        orders: output, shape (ants, n).
    """
    count = lure.shape[0]
    for ant in range(orders.shape[0]):
        for k in range(count):
            left[k] = k
        for rank in range(count):
            i = _pick(trails[rank], lure, left, count - rank, draws[ant, rank, 0], draws[ant, rank, 1])
            job = left[i]
            for k in range(i, count - rank - 1):
                left[k] = left[k + 1]
            orders[ant, rank] = job
            trails[rank, job] += EVAPORATION * (FLOOR - trails[rank, job])


def built(trails: Any, lure: Floats, draws: Any) -> Any:
    """`build`, compiled or loaded from the cache on first use; returns the orders, shape (ants, n)."""
    left = np.zeros(len(lure), np.int64)
    orders = np.zeros(draws.shape[:2], np.int64)
    _compiled()(trails, lure, draws, left, orders)
    return orders


@cache
def _compiled() -> Callable[..., None]:
    numbers = np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1, 2)), np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
    return cast(Callable[..., None], entry("ants", build, numba.types.void(*map(numba.typeof, numbers))))
