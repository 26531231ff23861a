"""The look-ahead planner: which waiting jobs start now, and which wait for a cheaper half-hour.

At every event and half-hour tick, the cost of starting each waiting job now is compared to later half-hours. It
consists of brown energy, prices of processors (always, and in green hours), a price of waiting that is higher for short
jobs, and the expected delay of future short jobs if a long job leaves them too few processors. The prices, the order in
which jobs are tried and the share of the machine kept for short jobs are weights of the model plus linear functions of
the state of the system (`weights`). The first job that is held or does not fit reserves its half-hours; when a single
job has arrived, only that job is considered. Beyond a lag that the model sets (`weights.lag`), starting now becomes
increasingly cheap, which bounds the makespan.

This extends `policies.compiled.cheapest_start` (cheapest start); `learning.search.evolution` searches for the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from numba import types
from numpy.typing import NDArray

from greenbatch.cluster import Cluster
from greenbatch.engine.compile import compiled, compiled_allocating, entry
from greenbatch.engine.program import Pass, Program
from greenbatch.engine.queue import position_of, sort_ranked, start
from greenbatch.engine.reward_totals import update_totals
from greenbatch.engine.rules import Rules
from greenbatch.engine.stacked import BATCH_TYPE, one_of
from greenbatch.engine.step import advance
from greenbatch.policies.compiled.lookahead.arrivals import (
    ALL,
    SHORTS,
    WIDTHS,
    begin_memory,
    made_to_wait_s2,
    rate_ahead_per_s,
    remember,
)
from greenbatch.policies.compiled.lookahead.baseline import baseline_progress
from greenbatch.policies.compiled.lookahead.forecast import (
    BIN_S,
    BINS,
    COST,
    NEXT_FULL,
    ROWS,
    TOTAL,
    cost_between,
    earliest_room,
    is_room,
    lay_out,
    mark_full,
    occupy,
    total_up,
)
from greenbatch.policies.compiled.lookahead.weights import (
    BLOCK_PRICE,
    GREEN_LEVEL,
    GREEN_PRICE,
    HOLD_PRICE,
    HORIZON,
    IDLE_PRICE,
    INPUTS,
    MEMORY,
    ORDER_DENSITY,
    ORDER_PROCESSORS,
    ORDER_TIME,
    ORDER_WAIT,
    PRICES,
    QUIET,
    READINESS,
    RESERVE,
    RESERVE_RATIO,
    SHORT,
    look,
    set_prices,
)
from greenbatch.workload import Workload

LONGEST_HOLD_S = 30 * 86_400.0
"""A job that has waited longer than this goes first and reserves the earliest half-hours with room for it, so that no
job is held forever. [s]"""
SHORT_RUN_S = 20.0
"""Run time of a typical short job, which converts its wait to a slowdown. [s]"""
_OVERDUE, _SHORT_FIRST = -2e6, -1e6
"""Sort keys: before all other jobs, and before all long jobs."""
(_START_S, _END_S, _PROCESSORS) = range(3)
"""Fields of a reservation; it has 0 processors if there is none."""


@compiled
def _rank(s: Any, prices: Any, first: int) -> int:
    """Write the jobs to consider, in order, to ``ranked``; return their number."""
    c = s.clock
    for i in range(first, c.last):
        entry_, job = s.queue[i], s.jobs[s.queue[i].job]
        if entry_.requested_s <= prices[SHORT]:
            key = _SHORT_FIRST + 2.0 * np.log(max(entry_.requested_s, 1.0)) + np.log(float(entry_.processors))
        else:
            density_w = max(job.power_w / entry_.processors, 1e-3)
            slowdown = 1.0 + (c.now_s - job.submit_s) / max(entry_.requested_s, 10.0)
            key = prices[ORDER_TIME] * np.log(entry_.requested_s) + prices[ORDER_DENSITY] * np.log(density_w)
            key += prices[ORDER_PROCESSORS] * np.log(float(entry_.processors)) - prices[ORDER_WAIT] * np.log(slowdown)
        if c.now_s - job.submit_s > LONGEST_HOLD_S:
            key = _OVERDUE
        s.ranked[i - first].key, s.ranked[i - first].job = key, entry_.job
    sort_ranked(s.ranked, c.last - first)
    return int(c.last - first)


@compiled
def _block_cost(s: Any, prices: Any, memory: Any, job: Any, quiet: float) -> float:
    """Price of the slowdown that starting a long job now is expected to cause for future short jobs. [J]"""
    shorts_per_s = rate_ahead_per_s(s, memory, prices[MEMORY] * 3600.0, job.requested_s)
    shorts_per_s *= memory[SHORTS] / memory[ALL]
    harm = shorts_per_s * made_to_wait_s2(s, memory, job.processors, job.requested_s) / 2.0 / SHORT_RUN_S
    return float(prices[BLOCK_PRICE] * harm * (1.0 - quiet))


@compiled
def _cost_of_now(s: Any, prices: Any, grid: Any, job: Any, covered: int) -> float:
    """Cost of starting a job now, without its effect on future short jobs. [J]"""
    run_s = job.requested_s
    end = (s.clock.now_s + run_s) / BIN_S - np.floor(s.clock.now_s / BIN_S)
    k = int(end)
    rest_s = run_s if k == 0 else (end - k) * BIN_S
    cost_j = cost_between(s, grid, job.power_w, job.processors * prices[GREEN_PRICE], 0, k, rest_s, covered)
    return float(cost_j - prices[READINESS] * job.processors * run_s)


@compiled
def _cheapest(
    s: Any, prices: Any, memory: Any, grid: Any, hopes: Any, number: int, need: int, count: int, quiet: float,
    only_now: bool,
) -> int:  # fmt: skip
    """The cheapest half-hour to start a job in: 0 for now, -1 for none; with ``only_now``, -1 for any later one.

    With ``only_now``, the half-hour that was cheaper last time, ``hopes[number]``, is tried first: usually it still is
    cheaper, and nothing else needs to be computed.
    """
    c, job = s.clock, s.jobs[number]
    run_s, off_s = job.requested_s, c.now_s - np.floor(c.now_s / BIN_S) * BIN_S
    now = need <= c.free and is_room(grid, 0, int((off_s + run_s - 1e-6) / BIN_S), count, need)
    if only_now and not now:
        return -1
    horizon = min(int(prices[HORIZON] * 3600.0 / BIN_S), count - 2)
    whole = int(run_s / BIN_S)
    rest_s = run_s - whole * BIN_S
    reach = whole - 1 if rest_s < 1e-3 else whole
    if c.now_s - job.submit_s > LONGEST_HOLD_S:
        return 0 if now else earliest_room(grid, reach, count, need)
    covered = min(count, horizon + whole + 3)
    green_w = job.processors * prices[GREEN_PRICE]
    price_w = prices[HOLD_PRICE] / max(run_s, 10.0) + prices[IDLE_PRICE] * job.processors
    noise_j = 1e-9 * job.power_w * run_s + 1e-3
    best, best_j = -1, np.inf
    begin_s = c.now_s - off_s
    if now:
        best, best_j = 0, _cost_of_now(s, prices, grid, job, covered)
        k = int((hopes[number] - begin_s) / BIN_S + 0.5)
        hoped = only_now and 1 <= k <= horizon and is_room(grid, k, min(k + reach, covered - 1), covered, need)
        hope_j = np.inf
        if hoped:
            hope_j = cost_between(s, grid, job.power_w, green_w, k, k + whole, rest_s, covered)
            hope_j += (k * BIN_S - off_s) * price_w
        if run_s > prices[SHORT] and not hope_j < best_j - noise_j:
            best_j += _block_cost(s, prices, memory, job, quiet)
        if hope_j < best_j - noise_j:
            return -1
    total_up(s, grid, job.power_w, green_w, covered)
    mark_full(grid, covered, need)
    for k in range(1, horizon + 1):
        stop = k + whole
        if grid[NEXT_FULL, k] <= min(k + reach, covered - 1):
            continue
        cost_j = grid[TOTAL, min(stop, covered)] - grid[TOTAL, k] + (k * BIN_S - off_s) * price_w
        if stop < covered:
            cost_j += grid[COST, stop] * rest_s
        else:
            cost_j += grid[COST, covered - 1] * ((stop - covered) * BIN_S + rest_s)
        if cost_j < best_j - noise_j:
            best, best_j = k, cost_j
            hopes[number] = begin_s + k * BIN_S
            if only_now:
                return -1
    return best


@compiled
def _pass(
    s: Any, numbers: Any, memory: Any, progress: Any, reserved: Any, hopes: Any, grid: Any, inputs: Any, prices: Any,
    first: int,
) -> int:  # fmt: skip
    """One pass over the jobs from a queue position on; start those that are cheapest now, and return how many."""
    c, p = s.clock, s.set
    longest_s, least = 0.0, p.processors + 1
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue[i].requested_s)
        if i >= first:
            least = min(least, s.queue[i].processors)
    if least > c.free:
        return 0
    whole = first == c.first
    count = lay_out(s, grid, numbers[HORIZON] * 3600.0 + longest_s, numbers[GREEN_LEVEL] * p.processors)
    look(s, numbers, memory, progress, grid, count, inputs)
    set_prices(numbers, inputs, prices)
    quiet = min(max((c.now_s - c.arrived_s) / (prices[QUIET] * 3600.0) - 0.5, 0.0), 1.0)
    kept = max(numbers[RESERVE] * (1.0 - quiet) + prices[RESERVE] - numbers[RESERVE], 0.0) * p.processors
    if whole:
        reserved[_PROCESSORS] = 0.0
    elif reserved[_PROCESSORS] > 0.0:
        occupy(s, grid, count, reserved[_START_S], reserved[_END_S], int(reserved[_PROCESSORS]), 0.0)
    started, only_now = 0, not whole
    for r in range(_rank(s, prices, first)):
        number = s.ranked[r].job
        job = s.jobs[number]
        need = job.processors
        if job.requested_s > prices[SHORT]:
            share = np.log(job.requested_s / prices[SHORT]) / np.log(max(prices[RESERVE_RATIO], 1.01))
            if c.now_s - job.submit_s <= LONGEST_HOLD_S:
                need = min(need + int(np.ceil(kept * min(share, 1.0))), p.processors)
        if only_now and need > c.free:
            continue
        best = _cheapest(s, prices, memory, grid, hopes, number, need, count, quiet, only_now)
        if best == 0:
            occupy(s, grid, count, c.now_s, c.now_s + job.requested_s, job.processors, job.power_w)
            start(s, position_of(s, number))
            c.decisions += 1
            started += 1
        elif best > 0:
            reserved[_START_S] = np.floor(c.now_s / BIN_S) * BIN_S + best * BIN_S
            reserved[_END_S] = reserved[_START_S] + job.requested_s
            reserved[_PROCESSORS] = job.processors
            occupy(s, grid, count, reserved[_START_S], reserved[_END_S], job.processors, 0.0)
            only_now = True
    return started


@compiled_allocating
def run_lookahead(s: Any, numbers: Any, progress: Any) -> None:
    """Simulate to the end with the weights of a model.

    Args:
        s: the state.
        numbers: weights of the model, shape (WEIGHTS,).
        progress: baseline schedule without delayed jobs, see `lookahead.baseline`.
    """
    memory, reserved = np.zeros(WIDTHS + s.set.processors + 1), np.zeros(3)
    hopes = np.zeros(s.jobs.shape[0])  # start time last found to be cheaper than starting now
    grid = np.zeros((ROWS, BINS))
    inputs, prices = np.zeros(len(INPUTS)), np.zeros(PRICES)
    begin_memory(s, memory)
    c = s.clock
    arrived, running, looked = 0, 0, -np.inf
    while advance(s):
        half_hour = np.floor(c.now_s / BIN_S)  # an arrival at the instant of a tick replaces the tick
        alone = c.arrived == arrived + 1 and c.running == running and c.last - c.first > 1 and half_hour == looked
        remember(s, memory, numbers[MEMORY] * 3600.0)
        _pass(s, numbers, memory, progress, reserved, hopes, grid, inputs, prices, c.last - 1 if alone else c.first)
        arrived, running, looked = c.arrived, c.running, half_hour
        c.blocked, c.settled = 1, 0


def _one(s: Any, numbers: Any, progress: Any) -> None:
    run_lookahead(s, numbers, progress)


def _many(batch: Any, chosen: Any, numbers: Any, progress: Any, terms: Any) -> None:
    for a in range(chosen.shape[0]):
        b = chosen[a]
        s = one_of(batch, b)
        run_lookahead(s, numbers, progress[b])
        update_totals(s, batch.totals[b], batch.user_of[b], batch.users[b], terms, batch.values[b])


_NUMBERS, _PROGRESS = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")


def lookahead_pass(numbers: NDArray[np.float64], baseline: Program) -> Pass:
    """The planner with the weights of a model.

    Args:
        numbers: the weights, shape (WEIGHTS,).
        baseline: a rule that never delays jobs, the reference for the lag.
    """

    def inputs(workload: Workload, cluster: Cluster, rules: Rules) -> tuple[NDArray[np.float64], ...]:
        return numbers, baseline_progress(workload, cluster, rules, baseline)

    return Pass(name="lookahead", run=_one, types=(_NUMBERS, _PROGRESS), inputs=inputs, allocates=True)


@cache
def compiled_lookahead_batch() -> Callable[..., None]:
    """Simulate part of a batch to the end, ``(batch, chosen, numbers, progress, terms)``, and write the terms' values.

    ``progress`` has one table per simulation of the batch, shape (B, rows, 4).
    """
    numbers, whole = types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C")
    signature = types.void(BATCH_TYPE, whole, numbers, types.Array(types.float64, 3, "C"), whole)
    return cast(Callable[..., None], entry("lookahead-batch", _many, signature, allocates=True))
