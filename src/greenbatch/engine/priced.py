"""Planning with prices that a model sets: which waiting job starts now, and which waits for a cheaper half-hour.

At every event and half-hour tick each waiting job weighs the cost of starting now against starting at later
half-hours: the brown energy it would need, prices of its processors (always, and in green hours), a price of waiting
that is higher for short jobs, and the harm that a long job would do to short ones to come by leaving them too few
processors. The prices, the order in which jobs are looked at and the share of the machine that is kept for short jobs
are a model's: each is a number plus a linear function of the state of the system (`HEADS` by `INPUTS`). The first job
that is held or does not fit reserves its half-hours; a lone arrival looks only at itself.

This extends `engine.planning` (cheapest start); the search for the numbers is `learning.evolution`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from greenbatch.engine.batch import BATCH_TYPE, one_of
from greenbatch.engine.compile import compiled, compiled_allocating, entry
from greenbatch.engine.decide import advance
from greenbatch.engine.queue import position_of, sort_ranked, start
from greenbatch.engine.supply import forecast_w, slot_at
from greenbatch.engine.tally import take_stock

BIN_S = 1800.0
"""Length of the half-hours of a plan. [s]"""
BINS = 640
"""Half-hours that a plan can cover."""
SHORT_ARRIVAL_S = 300.0
"""Arrivals that request less count as short in the statistics of what is to come. [s]"""
LONGEST_HOLD_S = 30 * 86_400.0
"""A job that has waited so long goes first, and starts as soon as it fits: nothing is held for ever. [s]"""
SHORT_RUN_S = 20.0
"""Run time by which the wait of a typical short job is divided to get its slowdown. [s]"""


class Number(NamedTuple):
    """A number of a model."""

    meaning: str
    initial: float
    """Where the search begins."""
    step: float
    """First step of the search."""
    lowest: float
    highest: float


(GREEN_PRICE, IDLE_PRICE, READINESS, RESERVE, ORDER_TIME, ORDER_PROCESSORS, ORDER_DENSITY) = range(7)
NUMBERS: dict[str, Number] = {
    "green_price": Number("price of a processor in a wholly green hour [W]", 10, 5, 0, 45),
    "idle_price": Number("price of holding a processor idle [W]", 2, 1, 0, 40),
    "readiness": Number("discount on starting now [W per processor]", 1, 1, -8, 15),
    "reserve": Number("share of the cluster that long jobs leave free", 0.12, 0.04, 0, 0.6),
    "order_time": Number("exponent of the requested time in the order of long jobs", 2.5, 0.7, -3, 5),
    "order_processors": Number("exponent of the processors in that order", 0, 0.7, -3, 4),
    "order_density": Number("exponent of the power per processor in that order", -2.5, 1, -6, 6),
    "order_wait": Number("exponent of the slowdown so far in that order, downward", 0, 0.4, -2, 4),
    "hold_price": Number("logarithm (base 10) of the price of waiting as long as the job runs [J]", 5, 0.7, 2, 8),
    "block_price": Number("logarithm (base 10) of the price of slowdown of short jobs to come [J]", 4.2, 0.4, -3, 7),
    "horizon": Number("how far ahead starts are weighed [h]", 40, 5, 4, 72),
    "short": Number("requested time up to which a job goes first and may use the reserve [s]", 1300, 500, 200, 8000),
    "reserve_ratio": Number("ratio to that at which a job leaves the whole reserve free", 2, 1.5, 1.01, 20),
    "green_level": Number("surplus per processor at which an hour is wholly green [W]", 46, 8, 3, 90),
    "green_hours": Number("hours ahead whose greenness counts as that of now [h]", 4, 1.5, 0.5, 20),
    "quiet": Number("hours without an arrival after which short jobs are no longer waited for [h]", 4, 1.5, 0.5, 24),
    "memory": Number("hours over which the rate of arrivals is remembered [h]", 3, 1.2, 0.3, 24),
}  # fmt: skip
"""The numbers of a model, in order; the first seven have heads."""
(ORDER_WAIT, HOLD_PRICE, BLOCK_PRICE, HORIZON, SHORT, RESERVE_RATIO, GREEN_LEVEL, GREEN_HOURS, QUIET, MEMORY) = range(
    7, 17
)

HEADS = 7
"""How many numbers are changed by the state of the system."""
HEAD_SCALE = (1.0, 1.0, 5.0, 0.2, 2.0, 2.0, 2.0)
"""What one unit of a head means: of the logarithm of the prices, and of the numbers themselves."""
HEAD_LIMIT = 2.0
"""A head is cut to this many units."""

INPUTS: tuple[str, ...] = (
    "green_now", "green_day", "green_later", "quiet", "queued_work", "free", "running_work", "longest", "sine",
    "cosine", "arrivals",
)  # fmt: skip
"""What heads know of the system, each scaled to about -1 to 1: how green the next hours, the next day and its second
half are; time since the last arrival; work that waits, free processors, work that runs; the longest waiting job against
the queued work; the time of day; the rate of arrivals."""

PRICES = len(NUMBERS)
WEIGHTS = PRICES + HEADS * len(INPUTS)
"""Length of a model: the numbers, then a row of weights for each head."""

(_RATE, _RATE_AT, _SEEN, _ALL, _SHORT_SEEN, _RESERVED_S, _RESERVED_END_S, _RESERVED, _MEMORY) = range(9)
"""What a simulation remembers between its passes, before the histogram of short jobs' processors."""
(_SURPLUS, _FREE, _GREEN, _COST, _TOTAL, _NEXT_FULL, _ROWS) = range(7)
"""Rows of the half-hours' table."""


@compiled
def _begin(s: Any, memory: Any) -> None:
    """A prior of eight arrivals, half of them short and narrow."""
    memory[:] = 0.0
    memory[_RATE_AT] = s.clock.now_s
    memory[_ALL], memory[_SHORT_SEEN] = 8.0, 4.0
    width = 0.12 * s.set.processors
    for x in range(1, s.set.processors + 1):
        memory[_MEMORY + x] = 4.0 * (np.exp(-(x - 1) / width) - np.exp(-x / width))


@compiled
def _remember(s: Any, numbers: Any, memory: Any) -> None:
    """Count the arrivals since the last pass."""
    c = s.clock
    tau_s = max(0.2, numbers[MEMORY]) * 3600.0
    for k in range(int(memory[_SEEN]), c.arrived):
        job = s.jobs[s.arrivals[k]]
        memory[_RATE] = memory[_RATE] * np.exp(-(job.submit_s - memory[_RATE_AT]) / tau_s) + 1.0
        memory[_RATE_AT] = job.submit_s
        memory[_ALL] += 1.0
        if job.requested_s < SHORT_ARRIVAL_S:
            memory[_SHORT_SEEN] += 1.0
            memory[_MEMORY + job.processors] += 1.0
    memory[_SEEN] = c.arrived
    memory[_RATE] *= np.exp(-(c.now_s - memory[_RATE_AT]) / tau_s)
    memory[_RATE_AT] = c.now_s


@compiled
def _wider(s: Any, memory: Any, low: int, high: int) -> float:
    """Share of short jobs that need more than ``low`` processors and at most ``high``."""
    count = 0.0
    for x in range(max(low, 0) + 1, min(high, s.set.processors) + 1):
        count += memory[_MEMORY + x]
    return float(count / memory[_SHORT_SEEN])


@compiled
def _lay_out(s: Any, numbers: Any, grid: Any, longest_s: float) -> int:
    """Fill surplus [W], free processors and greenness of the half-hours ahead; return their number."""
    c, p = s.clock, s.set
    begin_s = np.floor(c.now_s / BIN_S) * BIN_S
    count = min(BINS - 2, int((numbers[HORIZON] * 3600.0 + longest_s) / BIN_S) + 4)
    current = slot_at(s, c.now_s)
    green_w = numbers[GREEN_LEVEL] * p.processors
    for k in range(count):
        supply_w = forecast_w(s, slot_at(s, max(begin_s + k * BIN_S, c.now_s) + 1.0), current)
        grid[_SURPLUS, k] = supply_w - c.load_w
        grid[_FREE, k] = c.free
        grid[_GREEN, k] = min(max((supply_w - p.idle_w) / green_w, 0.0), 1.0)
    first_s = begin_s + BIN_S - c.now_s
    for i in range(c.expected_first, c.expected_first + c.running):
        running = s.expected[i]
        end = (max(running.end_s, c.now_s) - begin_s) / BIN_S
        k = int(end)
        if k >= count:
            break
        share = 1.0 - (end - k)
        grid[_SURPLUS, k] += running.power_w * (min(share * BIN_S / first_s, 1.0) if k == 0 else share)
        for later in range(k + 1, count):
            grid[_SURPLUS, later] += running.power_w
        for later in range(max(k if end - k < 1e-9 else k + 1, 1), count):
            grid[_FREE, later] += running.processors
    return count


@compiled
def _occupy(s: Any, grid: Any, count: int, from_s: float, until_s: float, processors: int, power_w: float) -> None:
    """Take processors and power out of the half-hours between two times."""
    begin_s = np.floor(s.clock.now_s / BIN_S) * BIN_S
    first, end = max(int((from_s - begin_s) / BIN_S), 0), (until_s - begin_s) / BIN_S
    last = int(end)
    for k in range(first, min(last + 1, count)):
        share = 1.0
        if k == last:
            left_s = max(from_s - begin_s, k * BIN_S)
            share = (until_s - begin_s - left_s) / ((k + 1) * BIN_S - left_s)
        grid[_SURPLUS, k] -= power_w * share
        if k < last or share > 1e-9:
            grid[_FREE, k] -= processors


@compiled
def _mean_green(grid: Any, first: int, last: int, count: int) -> float:
    total, seen = 0.0, 0
    for k in range(first, min(last, count)):
        total += grid[_GREEN, k]
        seen += 1
    return total / max(seen, 1)


@compiled
def _look(s: Any, numbers: Any, memory: Any, grid: Any, count: int, inputs: Any) -> None:
    """Fill the heads' inputs."""
    c, p = s.clock, s.set
    queued_h, running_h, longest_s = 0.0, 0.0, 0.0
    for i in range(c.first, c.last):
        queued_h += s.queue[i].requested_s * s.queue[i].processors
        longest_s = max(longest_s, s.queue[i].requested_s)
    for i in range(c.expected_first, c.expected_first + c.running):
        running_h += max(0.0, s.expected[i].end_s - c.now_s) * s.expected[i].processors
    queued_h, running_h = queued_h / p.processors / 3600.0, running_h / p.processors / 3600.0
    hour = (c.now_s - p.supply_origin_s) * (2.0 * np.pi / 86_400.0)
    inputs[0] = _mean_green(grid, 0, int(2.0 * numbers[GREEN_HOURS]) + 1, count) * 2.0 - 1.0
    inputs[1] = _mean_green(grid, 0, 48, count) * 2.0 - 1.0
    inputs[2] = _mean_green(grid, 24, 48, count) * 2.0 - 1.0
    inputs[3] = np.log1p((c.now_s - c.arrived_s) / 3600.0) / 2.0 - 1.0
    inputs[4] = np.log(queued_h + 0.5) / 2.0 - 1.0
    inputs[5] = 2.0 * c.free / p.processors - 1.0
    inputs[6] = np.log1p(running_h) - 1.0
    inputs[7] = np.log(longest_s / 3600.0 / (queued_h + 1.0) + 0.01) / 2.0
    inputs[8], inputs[9] = np.sin(hour), np.cos(hour)
    inputs[10] = np.log1p(memory[_RATE] / max(0.2, numbers[MEMORY])) - 0.8


@compiled
def _set_prices(numbers: Any, inputs: Any, prices: Any) -> None:
    """The numbers as the state of the system changes them."""
    for k in range(PRICES):
        prices[k] = numbers[k]
    for head in range(HEADS):
        units = 0.0
        for i in range(inputs.shape[0]):
            units += numbers[prices.shape[0] + head * inputs.shape[0] + i] * inputs[i]
        units = min(max(units, -HEAD_LIMIT), HEAD_LIMIT)
        if head <= IDLE_PRICE:
            prices[head] *= np.exp(units * HEAD_SCALE[head])
        else:
            prices[head] += units * HEAD_SCALE[head]


@compiled
def _rank(s: Any, prices: Any, first: int) -> int:
    """Write the jobs to look at, in order, to ``ranked``; return their number."""
    c = s.clock
    for i in range(first, c.last):
        entry_, job = s.queue[i], s.jobs[s.queue[i].job]
        if entry_.requested_s <= prices[SHORT]:
            key = -1e6 + 2.0 * np.log(max(entry_.requested_s, 1.0)) + np.log(float(entry_.processors))
        else:
            density_w = max(job.power_w / entry_.processors, 1e-3)
            slowdown = 1.0 + (c.now_s - job.submit_s) / max(entry_.requested_s, 10.0)
            key = prices[ORDER_TIME] * np.log(entry_.requested_s) + prices[ORDER_DENSITY] * np.log(density_w)
            key += prices[ORDER_PROCESSORS] * np.log(float(entry_.processors)) - prices[ORDER_WAIT] * np.log(slowdown)
        if c.now_s - job.submit_s > LONGEST_HOLD_S:
            key = -2e6
        s.ranked[i - first].key, s.ranked[i - first].job = key, entry_.job
    sort_ranked(s.ranked, c.last - first)
    return int(c.last - first)


@compiled
def _total_up(s: Any, prices: Any, grid: Any, power_w: float, processors: int, count: int) -> None:
    """Cost rate of a job in each half-hour [W] and its sum from now on [J]."""
    total = 0.0
    grid[_TOTAL, 0] = 0.0
    length_s = np.floor(s.clock.now_s / BIN_S) * BIN_S + BIN_S - s.clock.now_s
    for k in range(count):
        brown_w = max(power_w - max(grid[_SURPLUS, k], 0.0), 0.0)
        grid[_COST, k] = brown_w + processors * prices[GREEN_PRICE] * grid[_GREEN, k]
        total += grid[_COST, k] * length_s
        grid[_TOTAL, k + 1] = total
        length_s = BIN_S


@compiled
def _mark_full(grid: Any, count: int, need: int) -> None:
    """For each half-hour the next one, itself included, in which too few processors are free."""
    following = float(count)
    for k in range(count - 1, -1, -1):
        if grid[_FREE, k] < need:
            following = float(k)
        grid[_NEXT_FULL, k] = following


@compiled
def _block_cost(s: Any, prices: Any, memory: Any, job: Any, quiet: float) -> float:
    """Slowdown that starting a long job now would cost short jobs to come, priced. [J]"""
    shorts_per_s = memory[_RATE] / (max(0.2, prices[MEMORY]) * 3600.0) * memory[_SHORT_SEEN] / memory[_ALL]
    blocked = _wider(s, memory, s.clock.free - job.processors, s.clock.free)
    harm = shorts_per_s * blocked * job.requested_s**2 / 2.0 / SHORT_RUN_S
    return float(10.0 ** prices[BLOCK_PRICE] * harm * (1.0 - quiet))


@compiled
def _cost_of_now(s: Any, prices: Any, memory: Any, grid: Any, job: Any, covered: int, quiet: float) -> float:
    """Cost of starting a job now. [J]"""
    run_s = job.requested_s
    end = (s.clock.now_s + run_s) / BIN_S - np.floor(s.clock.now_s / BIN_S)
    k = int(end)
    if k == 0:
        cost_j = grid[_COST, 0] * run_s
    elif k >= covered:
        cost_j = grid[_TOTAL, covered]
    else:
        cost_j = grid[_TOTAL, k] + grid[_COST, k] * (end - k) * BIN_S
    if run_s > prices[SHORT]:
        cost_j += _block_cost(s, prices, memory, job, quiet)
    return float(cost_j - prices[READINESS] * job.processors * run_s)


@compiled
def _is_room(grid: Any, first: int, last: int, count: int, need: int) -> bool:
    """Whether so many processors are free in all half-hours from one to another."""
    for k in range(first, min(last + 1, count)):  # noqa: SIM110  (all() would need reference counting)
        if grid[_FREE, k] < need:
            return False
    return True


@compiled
def _cheapest(
    s: Any, prices: Any, memory: Any, grid: Any, job: Any, need: int, count: int, quiet: float, only_now: bool
) -> int:  # fmt: skip
    """The cheapest half-hour to start a job in, 0 for now, -1 for none; with ``only_now`` any other is -1."""
    c = s.clock
    run_s, off_s = job.requested_s, c.now_s - np.floor(c.now_s / BIN_S) * BIN_S
    now = need <= c.free and _is_room(grid, 0, int((off_s + run_s - 1e-6) / BIN_S), count, need)
    if only_now and not now:
        return -1
    if now and c.now_s - job.submit_s > LONGEST_HOLD_S:
        return 0
    horizon = min(int(prices[HORIZON] * 3600.0 / BIN_S), count - 2)
    covered = min(count, horizon + int(run_s / BIN_S) + 3)
    _total_up(s, prices, grid, job.power_w, job.processors, covered)
    _mark_full(grid, covered, need)
    price_w = 10.0 ** prices[HOLD_PRICE] / max(run_s, 10.0) + prices[IDLE_PRICE] * job.processors
    best, best_j = -1, np.inf
    if now:
        best, best_j = 0, _cost_of_now(s, prices, memory, grid, job, covered, quiet)
    noise_j = 1e-9 * job.power_w * run_s + 1e-3
    whole = int(run_s / BIN_S)
    rest_s = run_s - whole * BIN_S
    reach = whole - 1 if rest_s < 1e-3 else whole
    for k in range(1, horizon + 1):
        stop = k + whole
        if grid[_NEXT_FULL, k] <= min(k + reach, covered - 1):
            continue
        cost_j = grid[_TOTAL, min(stop, covered)] - grid[_TOTAL, k] + (k * BIN_S - off_s) * price_w
        if stop < covered:
            cost_j += grid[_COST, stop] * rest_s
        if cost_j < best_j - noise_j:
            best, best_j = k, cost_j
            if only_now:
                return -1
    return best


@compiled
def _pass(s: Any, numbers: Any, memory: Any, grid: Any, inputs: Any, prices: Any, first: int) -> int:
    """One look at the jobs from a queue position on; start those whose time is now, and return how many."""
    c, p = s.clock, s.set
    longest_s, least = 0.0, p.processors + 1
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue[i].requested_s)
        if i >= first:
            least = min(least, s.queue[i].processors)
    if least > c.free:
        return 0
    whole = first == c.first
    count = _lay_out(s, numbers, grid, longest_s)
    _look(s, numbers, memory, grid, count, inputs)
    _set_prices(numbers, inputs, prices)
    quiet = min(max((c.now_s - c.arrived_s) / (prices[QUIET] * 3600.0) - 0.5, 0.0), 1.0)
    kept = max(numbers[RESERVE] * (1.0 - quiet) + prices[RESERVE] - numbers[RESERVE], 0.0) * p.processors
    if whole:
        memory[_RESERVED] = 0.0
    elif memory[_RESERVED] > 0.0:
        _occupy(s, grid, count, memory[_RESERVED_S], memory[_RESERVED_END_S], int(memory[_RESERVED]), 0.0)
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
        best = _cheapest(s, prices, memory, grid, job, need, count, quiet, only_now)
        if best == 0:
            _occupy(s, grid, count, c.now_s, c.now_s + job.requested_s, job.processors, job.power_w)
            start(s, position_of(s, number))
            c.decisions += 1
            started += 1
        elif best > 0:
            memory[_RESERVED_S] = np.floor(c.now_s / BIN_S) * BIN_S + best * BIN_S
            memory[_RESERVED_END_S] = memory[_RESERVED_S] + job.requested_s
            memory[_RESERVED] = job.processors
            _occupy(s, grid, count, memory[_RESERVED_S], memory[_RESERVED_END_S], job.processors, 0.0)
            only_now = True
    return started


@compiled_allocating
def run_priced(s: Any, numbers: Any) -> None:
    """Simulate to the end with a model's numbers, shape (WEIGHTS,)."""
    memory = np.zeros(_MEMORY + s.set.processors + 1)
    grid = np.zeros((_ROWS, BINS))
    inputs, prices = np.zeros(len(INPUTS)), np.zeros(PRICES)
    _begin(s, memory)
    c = s.clock
    arrived, running = 0, 0
    while advance(s):
        alone = c.arrived == arrived + 1 and c.running == running and c.last - c.first > 1
        _remember(s, numbers, memory)
        _pass(s, numbers, memory, grid, inputs, prices, c.last - 1 if alone else c.first)
        arrived, running = c.arrived, c.running
        c.blocked, c.settled = 1, 0


def _one(s: Any, numbers: Any) -> None:
    run_priced(s, numbers)


def _many(batch: Any, chosen: Any, numbers: Any, terms: Any) -> None:
    for a in range(chosen.shape[0]):
        b = chosen[a]
        s = one_of(batch, b)
        run_priced(s, numbers)
        take_stock(s, batch.tally[b], batch.user_of[b], batch.users[b], terms, batch.values[b])


def _types() -> Any:
    from numba import types

    return types


@cache
def compiled_priced() -> Callable[..., None]:
    """Simulate one state to the end, ``(state, numbers)``; compiled, or loaded, when it is first asked for."""
    from greenbatch.engine.loop import STATE_TYPE

    types = _types()
    signature = types.void(STATE_TYPE, types.Array(types.float64, 1, "C"))
    return cast(Callable[..., None], entry("priced", _one, signature, allocates=True))


@cache
def compiled_priced_batch() -> Callable[..., None]:
    """Simulate some of a batch to the end, ``(batch, chosen, numbers, terms)``, and write the values of the terms."""
    types = _types()
    numbers, whole = types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C")
    signature = types.void(BATCH_TYPE, whole, numbers, whole)
    return cast(Callable[..., None], entry("priced-batch", _many, signature, allocates=True))
