"""The half-hours ahead of a planner: what power and how many processors each leaves, what a job would cost in it.

One table, a row a quantity and a column a half-hour; the first is what remains of the present one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenbatch.engine.compile import compiled
from greenbatch.engine.supply import forecast_w, slot_at

BIN_S = 1800.0
"""Length of a half-hour. [s]"""
BINS = 640
"""Half-hours that a table can cover, 13 days; what lies beyond is taken to cost what the last one does."""
(SURPLUS, FREE, GREEN, COST, TOTAL, NEXT_FULL, ROWS) = range(7)
"""Rows of the table: forecast power that nobody uses [W], free processors, greenness from 0 to 1, cost of a job per
second [W], its sum from now to the beginning of the half-hour [J], and the next half-hour with too few processors."""


@compiled
def lay_out(s: Any, grid: Any, ahead_s: float, green_w: float) -> int:
    """Fill surplus, free processors and greenness of the half-hours ahead; return their number.

    Args:
        s: the state.
        grid: the table, shape (ROWS, BINS).
        ahead_s: how far it must reach. [s]
        green_w: surplus of an idle machine that makes a half-hour wholly green. [W]
    """
    c, p = s.clock, s.set
    begin_s = np.floor(c.now_s / BIN_S) * BIN_S
    count = min(BINS - 2, int(ahead_s / BIN_S) + 4)
    current = slot_at(s, c.now_s)
    for k in range(count):
        supply_w = forecast_w(s, slot_at(s, max(begin_s + k * BIN_S, c.now_s) + 1.0), current)
        grid[SURPLUS, k] = supply_w - c.load_w
        grid[FREE, k] = c.free
        grid[GREEN, k] = min(max((supply_w - p.idle_w) / green_w, 0.0), 1.0)
    grid[COST, :count] = 0.0  # scratch: power and processors that running jobs give back from a half-hour on
    grid[NEXT_FULL, :count] = 0.0
    first_s = begin_s + BIN_S - c.now_s
    for i in range(c.expected_first, c.expected_first + c.running):
        running = s.expected[i]
        end = (max(running.end_s, c.now_s) - begin_s) / BIN_S
        k = int(end)
        if k >= count:
            break
        share = 1.0 - (end - k)
        grid[SURPLUS, k] += running.power_w * (min(share * BIN_S / first_s, 1.0) if k == 0 else share)
        grid[COST, k + 1] += running.power_w
        grid[NEXT_FULL, max(k if end - k < 1e-9 else k + 1, 1)] += running.processors
    power_w, processors = 0.0, 0.0
    for k in range(1, count):
        power_w += grid[COST, k]
        processors += grid[NEXT_FULL, k]
        grid[SURPLUS, k] += power_w
        grid[FREE, k] += processors
    return count


@compiled
def occupy(s: Any, grid: Any, count: int, from_s: float, until_s: float, processors: int, power_w: float) -> None:
    """Take processors and power out of the half-hours between two times."""
    begin_s = np.floor(s.clock.now_s / BIN_S) * BIN_S
    first, end = max(int((from_s - begin_s) / BIN_S), 0), (until_s - begin_s) / BIN_S
    last = int(end)
    for k in range(first, min(last + 1, count)):
        share = 1.0
        if k == last:
            left_s = max(from_s - begin_s, k * BIN_S)
            share = (until_s - begin_s - left_s) / ((k + 1) * BIN_S - left_s)
        grid[SURPLUS, k] -= power_w * share
        if k < last or share > 1e-9:
            grid[FREE, k] -= processors


@compiled
def mean_green(grid: Any, first: int, last: int, count: int) -> float:
    """Mean greenness of the half-hours from one to before another."""
    total, seen = 0.0, 0
    for k in range(first, min(last, count)):
        total += grid[GREEN, k]
        seen += 1
    return total / max(seen, 1)


@compiled
def cost_between(
    s: Any, grid: Any, power_w: float, green_w: float, first: int, stop: int, rest_s: float, count: int
) -> float:  # fmt: skip
    """What a job costs from the beginning of a half-hour (0 for now) until ``rest_s`` into another. [J]

    Args:
        s: the state.
        grid: the table.
        power_w: power of the job. [W]
        green_w: price of its processors in a wholly green half-hour. [W]
        first: where it starts.
        stop: where it ends.
        rest_s: how long it runs in the last one. [s]
        count: half-hours that count.
    """
    total_j, cost_w = 0.0, 0.0
    length_s = BIN_S
    if first == 0:
        length_s = np.floor(s.clock.now_s / BIN_S) * BIN_S + BIN_S - s.clock.now_s
    for k in range(first, min(stop + 1, count)):
        cost_w = max(power_w - max(grid[SURPLUS, k], 0.0), 0.0) + green_w * grid[GREEN, k]
        total_j += cost_w * (rest_s if k == stop else length_s)
        length_s = BIN_S
    if stop >= count:
        total_j += cost_w * ((stop - count) * BIN_S + rest_s)
    return total_j


@compiled
def total_up(s: Any, grid: Any, power_w: float, green_w: float, count: int) -> None:
    """Fill a job's cost in each half-hour and its sum from now on.

    Args:
        s: the state.
        grid: the table.
        power_w: power of the job. [W]
        green_w: price of its processors in a wholly green half-hour. [W]
        count: half-hours to fill.
    """
    total = 0.0
    grid[TOTAL, 0] = 0.0
    length_s = np.floor(s.clock.now_s / BIN_S) * BIN_S + BIN_S - s.clock.now_s
    for k in range(count):
        brown_w = max(power_w - max(grid[SURPLUS, k], 0.0), 0.0)
        grid[COST, k] = brown_w + green_w * grid[GREEN, k]
        total += grid[COST, k] * length_s
        grid[TOTAL, k + 1] = total
        length_s = BIN_S


@compiled
def mark_full(grid: Any, count: int, need: int) -> None:
    """For each half-hour the next one, itself included, in which too few processors are free."""
    following = float(count)
    for k in range(count - 1, -1, -1):
        if grid[FREE, k] < need:
            following = float(k)
        grid[NEXT_FULL, k] = following


@compiled
def is_room(grid: Any, first: int, last: int, count: int, need: int) -> bool:
    """Whether so many processors are free in all half-hours from one to another."""
    for k in range(first, min(last + 1, count)):  # noqa: SIM110  (all() would need reference counting)
        if grid[FREE, k] < need:
            return False
    return True


@compiled
def earliest_room(grid: Any, reach: int, count: int, need: int) -> int:
    """The first half-hour from which so many processors are free for ``reach`` more, -1 if none of the table is."""
    for k in range(1, count):
        if is_room(grid, k, min(k + reach, count - 1), count, need):
            return k
    return -1
