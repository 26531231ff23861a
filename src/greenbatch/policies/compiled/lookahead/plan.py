"""The look-ahead planner: which waiting jobs start now, and which wait for a cheaper half-hour.

At every event and half-hour tick, the cost of starting each waiting job now is compared to later half-hours. It
consists of brown energy (or of what `Weights` weigh), prices of processors (always, and in green hours), a price of
waiting that is higher for short jobs, and the expected delay of future short jobs if a long job leaves them too few
processors. The prices, the order in which jobs are tried and the share of the machine kept for short jobs are weights
of the model plus linear functions of the state of the system (`weights`). The first job that is held or does not fit
reserves its half-hours; when a single job has arrived, only that job is considered. Beyond a lag that the model sets
(`weights.lag`), starting now becomes increasingly cheap, which bounds the makespan. At last, held jobs that need almost
no brown energy may fill processors that would otherwise be idle (``fill``).

On nodes, a job that fits is considered with the power and the run time that it would have on those that the placement
gives it, and one that does not with averages (`policies.compiled.foreseen`). A job that cannot start although enough
processors are free, because of its nodes or of a limit of power, waits for the next event. If it is the first one
without a start now, it also holds what it is to start on: as in EASY backfilling, others start only if they end before
or leave it room there.

This extends `policies.compiled.cheapest_start` (cheapest start); `learning.search.evolution` searches for the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from numba import types as _types

from greenbatch.cluster import Cluster
from greenbatch.engine.backfill import leaves_room, take_from_head
from greenbatch.engine.capacity.units import powered
from greenbatch.engine.decide import decide
from greenbatch.engine.entry_points import kind_of
from greenbatch.engine.limits import can_be_next, has_limit
from greenbatch.engine.machine.interruption import taken
from greenbatch.engine.machine.power_states import longest_boot_s
from greenbatch.engine.observe.reward_terms import update_totals
from greenbatch.engine.observe.stacked import Batch, one_of
from greenbatch.engine.power.protocol import BROWN, Weights, usual_weight
from greenbatch.engine.program import CompiledPolicy, Program
from greenbatch.engine.queue import position_of
from greenbatch.engine.ranked import sort_ranked
from greenbatch.engine.records import Floats, Ints, Job
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import advance, apply, start_now, wait_until
from greenbatch.machine_code.compile import compiled, entry, whole
from greenbatch.machine_code.references import by_reference
from greenbatch.policies.compiled.foreseen import (
    Foreseen,
    Usual,
    foresee,
    hold_for,
    is_counted,
    keep_held,
    may_be_started,
    own_processor_w,
    usual,
)
from greenbatch.policies.compiled.lookahead.arrivals import (
    begin_memory,
    remember,
)
from greenbatch.policies.compiled.lookahead.baseline import baseline_progress
from greenbatch.policies.compiled.lookahead.choice import choose_nodes, chooses_nodes, want_chosen
from greenbatch.policies.compiled.lookahead.costs import block_cost, cost_of_now, is_green
from greenbatch.policies.compiled.lookahead.forecast import (
    BIN_S,
    BINS,
    COST,
    NEXT_FULL,
    TOTAL,
    cost_between,
    earliest_room,
    is_room,
    lay_out,
    mark_full,
    occupy,
    total_up,
)
from greenbatch.policies.compiled.lookahead.planner import (
    ARRIVED,
    END_S,
    HALF_HOUR,
    HOLDS,
    PROCESSORS,
    RUNNING,
    START_S,
    Lookahead,
    new_lookahead,
)
from greenbatch.policies.compiled.lookahead.weights import (
    GREEN_LEVEL,
    GREEN_PRICE,
    HOLD_PRICE,
    HORIZON,
    IDLE_PRICE,
    MEMORY,
    ORDER_DENSITY,
    ORDER_PROCESSORS,
    ORDER_TIME,
    ORDER_WAIT,
    QUIET,
    RESERVE,
    RESERVE_RATIO,
    SHORT,
    look,
    set_prices,
    unit_of_power,
)
from greenbatch.workload import Workload

types: Any = _types

LONGEST_HOLD_S = 30 * 86_400.0
"""A job that has waited longer than this goes first and reserves the earliest half-hours with room for it, so that no
job is held forever. [s]"""
_OVERDUE, _SHORT_FIRST = -2e6, -1e6
"""Sort keys: before all other jobs, and before all long jobs."""


@compiled
def _rank(s: State, prices: Floats, first: int, averages: Usual, unit: float) -> int:
    """Write the jobs to consider, in order, to ``ranked``; return their number."""
    c = s.clock
    for i in range(first, c.last):
        job = s.jobs[s.queue.job[i]]
        if job.requested_s <= prices[SHORT]:
            key = _SHORT_FIRST + 2.0 * np.log(max(job.requested_s, 1.0)) + np.log(float(job.processors))
        else:
            density_w = max(own_processor_w(job, averages) * unit, 1e-3)
            slowdown = 1.0 + (c.now_s - job.submit_s) / max(job.requested_s, 10.0)
            key = prices[ORDER_TIME] * np.log(job.requested_s) + prices[ORDER_DENSITY] * np.log(density_w)
            key += prices[ORDER_PROCESSORS] * np.log(float(job.processors)) - prices[ORDER_WAIT] * np.log(slowdown)
        if c.now_s - job.submit_s > LONGEST_HOLD_S:
            key = _OVERDUE
        s.scratch.ranked[i - first].key, s.scratch.ranked[i - first].job = key, s.queue.job[i]
    sort_ranked(s.scratch.ranked, c.last - first)
    return int(c.last - first)


@compiled
def _cheapest(
    s: State, decider: Lookahead, number: int, need: int, here: Foreseen, can: bool, earliest: int, count: int,
    quiet: float, only_now: bool,
) -> int:  # fmt: skip
    """The cheapest half-hour to start a job in: 0 for now, -1 for none; with ``only_now``, -1 for any later one.

    Until the half-hour ``earliest``, the job cannot start; -1 if the number of free processors says enough.
    With ``only_now``, the half-hour that was cheaper last time, the planned start of the job, is tried first: usually
    it still is cheaper, and nothing else needs to be computed.
    """
    c, job, prices, memory, grid = s.clock, s.jobs[number], decider.prices, decider.memory, decider.grid
    power_w, run_s, off_s = here.power_w * decider.unit, here.run_s, c.now_s - np.floor(c.now_s / BIN_S) * BIN_S
    now = can and need <= s.machine.totals.free
    now = now and is_room(grid, 0, int((off_s + run_s - 1e-6) / BIN_S), count, need)
    if only_now and not now:
        return -1
    horizon = min(int(prices[HORIZON] * 3600.0 / BIN_S), count - 2)
    full = int(run_s / BIN_S)
    rest_s = run_s - full * BIN_S
    reach = full - 1 if rest_s < 1e-3 else full
    if c.now_s - job.submit_s > LONGEST_HOLD_S:
        return 0 if now else max(earliest_room(grid, reach, count, need), min(earliest, count - 1))
    covered = min(count, horizon + full + 3)
    green_w = job.processors * prices[GREEN_PRICE]
    price_w = prices[HOLD_PRICE] / max(run_s, 10.0) + prices[IDLE_PRICE] * job.processors
    noise_j = 1e-9 * power_w * run_s + 1e-3
    best, best_j = -1, np.inf
    begin_s = c.now_s - off_s
    if now:
        best, best_j = 0, cost_of_now(s, prices, grid, job, power_w, run_s, covered)
        k = 0 if np.isnan(job.planned_s) else int((job.planned_s - begin_s) / BIN_S + 0.5)
        hoped = only_now and 1 <= k <= horizon and is_room(grid, k, min(k + reach, covered - 1), covered, need)
        hope_j = np.inf
        if hoped:
            hope_j = cost_between(s, grid, power_w, green_w, k, k + full, rest_s, covered)
            hope_j += (k * BIN_S - off_s) * price_w
        if job.requested_s > prices[SHORT] and not hope_j < best_j - noise_j:
            best_j += block_cost(s, prices, memory, job, run_s, quiet)
        if hope_j < best_j - noise_j:
            return -1
    total_up(s, grid, power_w, green_w, covered)
    mark_full(grid, covered, need)
    for k in range(max(earliest, 1), horizon + 1):
        stop = k + full
        if grid[NEXT_FULL, k] <= min(k + reach, covered - 1):
            continue
        cost_j = grid[TOTAL, min(stop, covered)] - grid[TOTAL, k] + (k * BIN_S - off_s) * price_w
        if stop < covered:
            cost_j += grid[COST, stop] * rest_s
        else:
            cost_j += grid[COST, covered - 1] * ((stop - covered) * BIN_S + rest_s)
        if cost_j < best_j - noise_j:
            best, best_j = k, cost_j
            job.planned_s = begin_s + k * BIN_S
            if only_now:
                return -1
    return best


@compiled
def _is_any_free(s: State, first: int) -> bool:
    """Whether enough processors are free for any job from a queue position on."""
    for i in range(first, s.clock.last):  # noqa: SIM110  (any() would require reference counting)
        if s.queue.processors[i] <= s.machine.totals.free:
            return True
    return False


@compiled
def _prepare(s: State, decider: Lookahead) -> tuple[int, float, float]:
    """Fill in the half-hours and the prices of a pass.

    Returns:
        The number of half-hours; how quiet it is, from 0 to 1; and the processors that the longest jobs leave free.
    """
    c, weights, grid, prices, totals = s.clock, decider.weights, decider.grid, decider.prices, s.machine.totals
    longest_s, green_w = 0.0, weights[GREEN_LEVEL] * totals.processors
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue.requested_s[i])
    count = lay_out(s, grid, weights[HORIZON] * 3600.0 + longest_s, green_w, decider.unit, decider.joule)
    look(s, weights, decider.memory, decider.progress, grid, count, decider.inputs)
    set_prices(weights, decider.inputs, prices)
    quiet = min(max((c.now_s - c.arrived_s) / (prices[QUIET] * 3600.0) - 0.5, 0.0), 1.0)
    kept = max(weights[RESERVE] * (1.0 - quiet) + prices[RESERVE] - weights[RESERVE], 0.0) * totals.processors
    return count, quiet, kept


@compiled
def _need(s: State, prices: Floats, job: Job, kept: float) -> int:
    """Processors that must be free for a job to start: its own, and of a long one what it leaves to short ones."""
    if job.requested_s <= prices[SHORT] or s.clock.now_s - job.submit_s > LONGEST_HOLD_S:
        return whole(job.processors)
    share = np.log(job.requested_s / prices[SHORT]) / np.log(max(prices[RESERVE_RATIO], 1.01))
    most = max(job.processors, powered(s.capacity, s.machine.totals))
    return whole(min(job.processors + int(np.ceil(kept * min(share, 1.0))), most))


@compiled
def _start(s: State, decider: Lookahead, number: int, here: Foreseen, outlives: bool, count: int) -> None:
    """Start a job now, beside what is held if it outlives the reservation's begin."""
    if outlives:
        take_from_head(s, number, whole(s.jobs[number].processors))
    if here.speed > 0.0:
        want_chosen(s.machine, decider.prices, number, here.speed, outlives, decider.unit)
    keep_held(s.machine, outlives)
    apply(s, start_now(position_of(s.queue, s.clock, number)))
    keep_held(s.machine, False)
    now_s, processors = s.clock.now_s, taken(s.machine, number, whole(s.jobs[number].processors), 0)[0]
    occupy(s, decider.grid, count, now_s, now_s + here.run_s, processors, here.power_w * decider.unit)


@compiled
def _fill(
    s: State, decider: Lookahead, ranked: int, averages: Usual, kept: float, head: int, held_s: float, is_placed: bool,
    count: int, quiet: float,
) -> None:  # fmt: skip
    """Start held jobs on processors that would be idle, in order, if they take almost no brown energy.

    A job must fit beside the reservation, also the one that holds it; a long one leaves short ones their processors.
    What a cheaper half-hour would save is prices of processors, and idle processors in the sun are worth none.

    Args:
        s: the state, after the jobs that are cheapest now have started.
        decider: the planner, with the half-hours and prices of the pass.
        ranked: number of ranked jobs.
        averages: over the machine.
        kept: processors that the longest jobs leave free.
        head: row of the job that holds what it needs, -1 for none.
        held_s: when it takes that. [s]
        is_placed: whether the placement of the machine chooses the nodes.
        count: half-hours in the table.
        quiet: how quiet it is, from 0 to 1.
    """
    c = s.clock
    for r in range(ranked if decider.fill > 0.0 else 0):
        number = whole(s.scratch.ranked[r].job)
        job = s.jobs[number]
        need = _need(s, decider.prices, job, kept)
        if need > s.machine.totals.free or position_of(s.queue, c, number) < 0 or not can_be_next(s, number):
            continue
        outlives = c.now_s + longest_boot_s(s.machine) + job.requested_s > held_s
        here = foresee(s, number, averages, outlives, is_placed)
        if not may_be_started(s, number, here):
            continue
        if outlives and not leaves_room(s, number, whole(job.processors), head):
            continue
        if not is_placed:
            here = choose_nodes(s.machine, s, decider, number, outlives, count, quiet)
        fill = decider.fill * usual_weight(decider.joule)
        if is_green(s, decider.grid, need, here.power_w * decider.unit, here.run_s, fill, count):
            _start(s, decider, number, here, outlives, count)


@compiled
def _pass(s: State, decider: Lookahead, first: int) -> None:
    """One pass over the jobs from a queue position on: start those that are cheapest now."""
    c, grid, prices, reserved = s.clock, decider.grid, decider.prices, decider.last
    if not _is_any_free(s, first):
        return
    count, quiet, kept = _prepare(s, decider)
    only_now = first > c.first
    if not only_now:
        reserved[PROCESSORS], reserved[HOLDS] = 0.0, 0.0
    elif reserved[PROCESSORS] > 0.0:
        occupy(s, grid, count, reserved[START_S], reserved[END_S], int(reserved[PROCESSORS]), 0.0)
    is_placed = has_limit(s) or not chooses_nodes(s.machine, prices)  # a limit must know which nodes a job takes
    begin_s, held_s, head, averages = np.floor(c.now_s / BIN_S) * BIN_S, np.inf, -1, usual(s.machine)
    counted, boot_s = is_counted(s), longest_boot_s(s.machine)
    ranked = _rank(s, prices, first, averages, decider.unit)
    for r in range(ranked):
        number = whole(s.scratch.ranked[r].job)
        job = s.jobs[number]
        need = _need(s, prices, job, kept)
        if (only_now and need > s.machine.totals.free) or not can_be_next(s, number):
            continue
        outlives = c.now_s + boot_s + job.requested_s > held_s
        here = foresee(s, number, averages, outlives, is_placed)
        can = may_be_started(s, number, here)
        if outlives and not leaves_room(s, number, whole(job.processors), head):
            continue
        if here.fits and not is_placed:
            here = choose_nodes(s.machine, s, decider, number, outlives, count, quiet)
        room_s, earliest = np.inf, -1  # if it cannot start: when it can, and the first half-hour after
        if not (only_now or can or counted):
            room_s = hold_for(s, number)
            earliest = max(1, int(min(np.ceil((room_s - begin_s) / BIN_S), BINS)))
        best = _cheapest(s, decider, number, need, here, can, earliest, count, quiet, only_now)
        if best == 0:
            _start(s, decider, number, here, outlives, count)
        elif best > 0:
            start_s = begin_s + best * BIN_S
            reserved[START_S], reserved[END_S], reserved[PROCESSORS] = start_s, start_s + here.run_s, job.processors
            occupy(s, grid, count, start_s, reserved[END_S], job.processors, 0.0)
            only_now = True
            if earliest > 0:
                head, held_s, reserved[HOLDS] = number, room_s if best <= earliest else start_s, 1.0
    _fill(s, decider, whole(ranked), averages, kept, head, held_s, is_placed, count, quiet)


@decide.register(Lookahead)
def start_the_cheapest(decider: Lookahead, s: State) -> None:
    """Start the jobs that are cheapest now; if a single job has arrived, only that job is considered."""
    c, memory, last = s.clock, decider.memory, decider.last
    if last[HALF_HOUR] == -np.inf:
        begin_memory(s, memory)
    half_hour = np.floor(c.now_s / BIN_S)  # an arrival at the instant of a tick replaces the tick
    alone = c.arrived == last[ARRIVED] + 1 and c.running == last[RUNNING] and c.last - c.first > 1
    alone = alone and half_hour == last[HALF_HOUR] and last[HOLDS] == 0.0  # what is left beside it is not kept
    remember(s, memory, decider.weights[MEMORY] * 3600.0)
    _pass(s, decider, c.last - 1 if alone else c.first)
    last[ARRIVED], last[RUNNING], last[HALF_HOUR] = c.arrived, c.running, half_hour
    apply(s, wait_until(np.inf))


def lookahead_policy(weights: Floats, baseline: Program, fill: float = 0.0, joule: Weights = BROWN) -> CompiledPolicy:
    """The planner with the weights of a model.

    Args:
        weights: the weights, shape (WEIGHTS,).
        baseline: a rule that never delays jobs, the reference for the lag.
        fill: largest brown share of the energy of a job that fills idle processors; 0 for no filling.
        joule: what a joule weighs.
    """

    def begin(workload: Workload, cluster: Cluster, rules: Rules) -> Lookahead:
        progress, unit = baseline_progress(workload, cluster, rules, baseline), unit_of_power(workload, cluster)
        return new_lookahead(weights, progress, cluster.processors, unit, fill, joule)

    def learn(decider: Lookahead, known: Workload, cluster: Cluster, rules: Rules) -> Lookahead:
        return decider._replace(progress=baseline_progress(known, cluster, rules, baseline))

    return CompiledPolicy(name="lookahead", begin=begin, learn=learn)


def run_many(batch: Batch, chosen: Ints, decider: Lookahead, progress: Floats, terms: Ints) -> None:
    """Simulate part of a batch to the end, and write the terms' values.

    Args:
        batch: the simulations.
        chosen: their numbers, shape (a,).
        decider: weights, and memory to be used by one simulation after the other.
        progress: baseline schedules of all simulations, shape (B, rows, 4).
        terms: codes of the terms, shape (t,).
    """
    for a in range(chosen.shape[0]):
        b = chosen[a]
        s = by_reference(one_of(batch, b))
        decider.last[:] = 0.0
        decider.last[HALF_HOUR] = -np.inf
        own = by_reference(Lookahead(
            decider.weights, progress[b], decider.memory, decider.last, decider.grid, decider.inputs, decider.prices,
            decider.unit, decider.fill, decider.joule,
        ))  # fmt: skip
        while advance(s):
            decide(own, s)
        update_totals(s, batch.totals[b], batch.user_of[b], batch.users[b], terms, batch.values[b])


@cache
def compiled_run_many(batch: Any) -> Callable[..., None]:
    """`run_many` for a batch of a type of Numba's, compiled or loaded from the cache on first use."""
    whole = types.Array(types.int64, 1, "C")
    decider = kind_of(new_lookahead(np.zeros(1), np.zeros((1, 4)), 1, 1.0)).numba
    signature = types.void(batch, whole, decider, types.Array(types.float64, 3, "C"), whole)
    return cast(Callable[..., None], entry("lookahead-batch", run_many, signature))
