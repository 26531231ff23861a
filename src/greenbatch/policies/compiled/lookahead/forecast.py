"""The half-hours ahead of the planner: surplus power, free processors and the cost of a job in each.

One table with one row per quantity and one column per half-hour; the first column is the rest of the current half-hour.
"""

from __future__ import annotations

import numpy as np

from greenbatch.engine.capacity.levels import ahead_now, ahead_to, powered_ahead
from greenbatch.engine.capacity.units import may_fall, powered
from greenbatch.engine.machine.interruption import taken
from greenbatch.engine.power.protocol import Weights, forecast_w, weigh
from greenbatch.engine.power.slots import slot_at
from greenbatch.engine.records import Floats
from greenbatch.engine.state import State
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.policies.compiled.foreseen import awake_w, running_until_s

BIN_S = 1800.0
"""Length of a half-hour. [s]"""
BINS = 640
"""Largest number of half-hours in a table, 13 days; later ones are assumed to cost as much as the last one."""
(SURPLUS, FREE, GREEN, COST, TOTAL, NEXT_FULL, GRID_WEIGHT, OWN_WEIGHT, ROWS) = range(9)
"""Rows of the table: forecast surplus power [W], free processors, greenness from 0 to 1, cost of a job per second [W],
its total from now to the beginning of the half-hour [J], the next half-hour with too few processors, and the weights of
a joule from the grid and of one of the surplus (`power.protocol.weigh`)."""


@compiled
def lay_out(s: State, grid: Floats, ahead_s: float, green_w: float, unit: float, weights: Weights) -> int:
    """Fill surplus, free processors, greenness and weights of the half-hours ahead; return their number.

    Args:
        s: the state.
        grid: the table, shape (ROWS, BINS).
        ahead_s: time span that the table must cover. [s]
        green_w: surplus of an idle machine at which a half-hour is fully green. [W]
        unit: factor of all powers of the table, see `weights.unit_of_power`.
        weights: what a joule weighs.
    """
    c, slots, totals = s.clock, s.power.slots, s.machine.totals
    begin_s = np.floor(c.now_s / BIN_S) * BIN_S
    count = min(BINS - 2, int(ahead_s / BIN_S) + 4)
    current, ahead, powered_now = slot_at(slots, c.now_s), ahead_now(s.capacity, s), powered(s.capacity, totals)
    more = 0
    for k in range(count):
        ahead = ahead_to(s.capacity, s, ahead, max(begin_s + k * BIN_S, c.now_s))
        there = powered_ahead(s.capacity, totals, ahead)[0] - powered_now
        more = max(more, there) if may_fall(s.capacity) else there  # a job may start that will be suspended
        slot = slot_at(slots, max(begin_s + k * BIN_S, c.now_s) + 1.0)
        supply_w = forecast_w(s.power, c, slot, current)
        grid[GRID_WEIGHT, k], grid[OWN_WEIGHT, k] = weigh(s.power, c, slot, current, weights)
        grid[SURPLUS, k] = (supply_w - totals.load_w) * unit
        grid[FREE, k] = totals.free + more
        grid[GREEN, k] = min(max((supply_w - totals.base_power_w) * unit / green_w, 0.0), 1.0)
    grid[COST, :count] = 0.0  # scratch: power and processors that running jobs release, from a half-hour on
    grid[NEXT_FULL, :count] = 0.0
    first_s = begin_s + BIN_S - c.now_s
    busy = max(totals.processors - totals.free, 1)
    shared_w = awake_w(s.machine) / busy  # nodes rest when their jobs have ended, on average in proportion
    for i in range(c.expected_first, c.expected_first + c.running):
        running = s.expected[i]
        job = whole(running.job)
        until_s = running_until_s(s.machine, job, running.start_s, running.end_s)
        released = taken(s.machine, job, whole(running.processors), 0)[0]
        released_w = (running.power_w + shared_w * released) * unit
        end = (max(until_s, c.now_s) - begin_s) / BIN_S
        k = int(end)
        if k >= count:
            continue
        share = 1.0 - (end - k)
        grid[SURPLUS, k] += released_w * (min(share * BIN_S / first_s, 1.0) if k == 0 else share)
        grid[COST, k + 1] += released_w
        grid[NEXT_FULL, max(k if end - k < 1e-9 else k + 1, 1)] += released
    power_w, processors = 0.0, 0.0
    for k in range(1, count):
        power_w += grid[COST, k]
        processors += grid[NEXT_FULL, k]
        grid[SURPLUS, k] += power_w
        grid[FREE, k] += processors
    return count


@compiled
def occupy(s: State, grid: Floats, count: int, from_s: float, until_s: float, processors: int, power_w: float) -> None:
    """Occupy processors and power in the half-hours between two times."""
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
def mean_green(grid: Floats, first: int, last: int, count: int) -> float:
    """Mean greenness of the half-hours from ``first`` up to but not including ``last``."""
    total, seen = 0.0, 0
    for k in range(first, min(last, count)):
        total += grid[GREEN, k]
        seen += 1
    return total / max(seen, 1)


@compiled_small
def _weighed_w(grid: Floats, k: int, power_w: float) -> float:
    """What the power of a job weighs per second in a half-hour. [W]"""
    surplus_w = max(grid[SURPLUS, k], 0.0)
    brown_w, own_w = max(power_w - surplus_w, 0.0), min(power_w, surplus_w)
    return float(brown_w * grid[GRID_WEIGHT, k] + own_w * grid[OWN_WEIGHT, k])


@compiled
def cost_between(
    s: State, grid: Floats, power_w: float, green_w: float, first: int, stop: int, rest_s: float, count: int
) -> float:  # fmt: skip
    """Cost of a job from the beginning of a half-hour (0 for now) until ``rest_s`` into a later one. [J]

    Args:
        s: the state.
        grid: the table.
        power_w: power of the job. [W]
        green_w: price of its processors in a fully green half-hour. [W]
        first: half-hour in which it starts.
        stop: half-hour in which it ends.
        rest_s: how long it runs in the last one. [s]
        count: number of half-hours in the table.
    """
    total_j, cost_w = 0.0, 0.0
    length_s = BIN_S
    if first == 0:
        length_s = np.floor(s.clock.now_s / BIN_S) * BIN_S + BIN_S - s.clock.now_s
    for k in range(first, min(stop + 1, count)):
        cost_w = _weighed_w(grid, k, power_w) + green_w * grid[GREEN, k]
        total_j += cost_w * (rest_s if k == stop else length_s)
        length_s = BIN_S
    if stop >= count:
        total_j += cost_w * ((stop - count) * BIN_S + rest_s)
    return total_j


@compiled
def total_up(s: State, grid: Floats, power_w: float, green_w: float, count: int) -> None:
    """Fill in the cost of a job in each half-hour and its running total.

    Args:
        s: the state.
        grid: the table.
        power_w: power of the job. [W]
        green_w: price of its processors in a fully green half-hour. [W]
        count: half-hours to fill.
    """
    total = 0.0
    grid[TOTAL, 0] = 0.0
    length_s = np.floor(s.clock.now_s / BIN_S) * BIN_S + BIN_S - s.clock.now_s
    for k in range(count):
        grid[COST, k] = _weighed_w(grid, k, power_w) + green_w * grid[GREEN, k]
        total += grid[COST, k] * length_s
        grid[TOTAL, k + 1] = total
        length_s = BIN_S


@compiled
def mark_full(grid: Floats, count: int, need: int) -> None:
    """Fill in, for each half-hour, the next one (including itself) with too few free processors."""
    following = float(count)
    for k in range(count - 1, -1, -1):
        if grid[FREE, k] < need:
            following = float(k)
        grid[NEXT_FULL, k] = following


@compiled
def is_room(grid: Floats, first: int, last: int, count: int, need: int) -> bool:
    """Whether ``need`` processors are free in all half-hours from ``first`` to ``last``."""
    for k in range(first, min(last + 1, count)):  # noqa: SIM110  (all() would require reference counting)
        if grid[FREE, k] < need:
            return False
    return True


@compiled
def earliest_room(grid: Floats, reach: int, count: int, need: int) -> int:
    """The first half-hour from which ``need`` processors are free for ``reach`` more, -1 if there is none."""
    for k in range(1, count):
        if is_room(grid, k, min(k + reach, count - 1), count, need):
            return k
    return -1
