"""Hold jobs for cheap power where that costs little slowdown, around EASY backfilling: for whole logs with estimates.

At every half-hour, each waiting job is planned: a start within the horizon costs its brown energy, or what `Weights`
weigh, by the forecast and the predicted ends of the running jobs, plus a price of waiting, which is the expected
slowdown of a second of waiting and a price of idle processors. A job whose cheapest start is later than now is held.
EASY backfilling, with requested times, runs over the jobs that are not held; held jobs reserve nothing, neither
processors nor forecast. Jobs are ordered by predicted work over the price of waiting, which saves the slowdown that
holding costs. Jobs that have waited longer than the limit are not held, and the oldest of them is first in line: only
one, since wide jobs that are first one after the other drain the machine. On nodes, power and run time of a job are
those foreseen (`policies.compiled.foreseen`), and the first blocked job of each set of partitions has a reservation.

Source: this project.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.backfill import latest_end_s, may_start, outlives_head
from greenbatch.engine.capacity.units import powered
from greenbatch.engine.codes import WAKE_UP
from greenbatch.engine.decide import decide
from greenbatch.engine.forecast import weighed_w
from greenbatch.engine.limits import can_be_next, can_start
from greenbatch.engine.machine.competition import block
from greenbatch.engine.power.protocol import Weights, forecast_w, usual_weight, weigh
from greenbatch.engine.power.slots import covering, next_edge_s, slot_at
from greenbatch.engine.prediction.known import expected_time_s, mean_time_s, slowdown_price
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.queue import position_of
from greenbatch.engine.ranked import sort_ranked
from greenbatch.engine.records import Floats, Surplus, Table
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.engine.timeline import reserve
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.policies.compiled.foreseen import Usual, foresee, keep_held, running_until_s, usual
from greenbatch.workload import Workload

ROUNDING = 1e-9
"""Smallest saving of a later start, as a share of the job's energy."""
LEAST_S = 10.0
"""Jobs are planned with at least this run time. [s]"""
NONE_KEPT_S, ALL_KEPT_S = 500.0, 5000.0
"""1 / price of slowdown up to which a job leaves no reserve, and from which it leaves all of it. [s]"""
SLOTS = 1024
"""Largest number of intervals in a plan; the last one stands for all that follow."""


class Foresee(NamedTuple):
    """Parameters and buffers of the policy."""

    holds: bool
    """False: only the order."""
    slowdown_price_j: float
    """Price of one unit of slowdown. [J]"""
    idle_price_w: float
    """Price of an idle processor. [W]"""
    reserve_share: float
    """Share of the machine that long jobs leave free."""
    horizon_s: float
    """How far ahead starts are compared. [s]"""
    limit_s: float
    """Wait after which a job is not held and leaves no reserve; the oldest of these jobs is first in line. [s]"""
    backlog: float
    """The limit is at least so many times what the waiting jobs take on the whole machine."""
    aging: float
    """Exponent of 1 + wait in hours in the order."""
    density: float
    """Exponent of the power per processor in the order."""
    wide: float
    """Exponent of the share of the machine in the order."""
    filler: float
    """Share of brown energy, of what it weighs, below which a job is not held."""
    weights: Weights
    """What a joule weighs."""
    drops_w: Floats = np.zeros(0)
    """Power of the jobs that end in each interval, shape (SLOTS + 1,). [W]"""
    lightest: Floats = np.zeros(1)
    """The lowest weight of a joule in the forecast, at most 0, shape (1,)."""


@compiled_small
def running_end_s(start_s: float, now_s: float, expected_s: float, requested_end_s: float) -> float:
    """When a running job is expected to end: a prediction that it has outlived is doubled. [s]"""
    run_s = max(expected_s, LEAST_S)
    while start_s + run_s <= now_s:
        run_s *= 2.0
    return min(start_s + run_s, max(requested_end_s, now_s))


@compiled_small
def _segment_at(segments: Table[Surplus], count: int, time_s: float) -> int:
    """The segment that covers a time."""
    low, high = whole(0), whole(count)
    while high - low > 1:
        middle = (low + high) // 2
        if segments[middle].start_s <= time_s:
            low = middle
        else:
            high = middle
    return low


@compiled
def project(s: State, decider: Foresee, until_s: float) -> None:
    """Fill ``scratch.surplus`` with the forecast surplus from now on, by predicted ends of the running jobs.

    One segment per slot; a job that ends within a slot counts for its part of it.
    """
    c, segments, slots, drops_w = s.clock, s.scratch.surplus, s.power.slots, decider.drops_w
    most = min(SLOTS, segments.shape[0])
    time_s, count = c.now_s, 0
    while time_s < until_s and count < most:
        _, end_s = covering(slots, time_s)
        segments[count].start_s, segments[count].length_s = time_s, end_s - time_s
        drops_w[count] = 0.0
        time_s = end_s
        count += 1
    drops_w[count] = 0.0
    for k in range(c.expected_first, c.expected_first + c.running):
        job = s.expected[k]
        requested_end_s = running_until_s(s.machine, whole(job.job), job.start_s, job.end_s)
        expected_s = expected_time_s(s.predictor, whole(job.job), requested_end_s - job.start_s)
        end_s = running_end_s(job.start_s, c.now_s, expected_s, requested_end_s)
        if end_s >= time_s:
            continue
        row = _segment_at(segments, count, end_s)
        part = (end_s - segments[row].start_s) / segments[row].length_s
        drops_w[row] += (1.0 - part) * job.power_w
        drops_w[row + 1] += part * job.power_w
    current, load_w = slot_at(slots, c.now_s), s.machine.totals.load_w
    decider.lightest[0] = 0.0
    for k in range(count):
        load_w -= drops_w[k]
        segments[k].surplus_w = max(0.0, forecast_w(s.power, c, current + k, current) - load_w)
        segments[k].grid, segments[k].own = weigh(s.power, c, current + k, current, decider.weights)
        decider.lightest[0] = min(decider.lightest[0], segments[k].grid, segments[k].own)
    c.segments = count


@compiled
def _weighed_between(
    segments: Table[Surplus], count: int, power_w: float, segment: int, at_s: float, to_s: float
) -> tuple[float, int]:  # fmt: skip
    """What a constant power weighs between two times [J], and the segment that covers the second."""
    total_j = 0.0
    while True:
        stop_s = min(segments[segment].start_s + segments[segment].length_s, to_s)
        if segment + 1 >= count:
            stop_s = to_s
        total_j += weighed_w(segments[segment], power_w) * (stop_s - at_s)
        at_s = stop_s
        if at_s >= to_s:
            return total_j, segment
        segment += 1


@compiled
def cheapest_s(s: State, decider: Foresee, number: int, limit_s: float, averages: Usual) -> float:
    """The cheapest start of a waiting job within the horizon; now, if it has waited for ``limit_s``. [s]"""
    c, job = s.clock, s.jobs[number]
    now_s = c.now_s
    if not decider.holds or now_s - job.submit_s >= limit_s:
        return float(now_s)
    here = foresee(s, number, averages, False, True)
    power_w, run_s = here.power_w, max(LEAST_S, expected_time_s(s.predictor, number, here.run_s))
    price_w = decider.slowdown_price_j * slowdown_price(s.predictor, number, job.requested_s)
    price_w += decider.idle_price_w * job.processors
    segments, count, tick_s = s.scratch.surplus, c.segments, s.rules.tick_s
    noise_j, least_j = ROUNDING * power_w * run_s, decider.lightest[0] * power_w * run_s
    best_s, at_s, head = now_s, now_s, 0
    energy_j, tail = _weighed_between(segments, count, power_w, 0, at_s, at_s + run_s)
    best_j = energy_j
    if energy_j <= decider.filler * power_w * run_s * usual_weight(decider.weights):
        return float(now_s)
    last_s = min(now_s + decider.horizon_s, job.submit_s + limit_s)
    while True:
        next_s = next_edge_s(at_s, 0.0, tick_s)
        if next_s > last_s or (next_s - now_s) * price_w + least_j >= best_j:
            return float(best_s)
        gone_j, head = _weighed_between(segments, count, power_w, head, at_s, next_s)
        come_j, tail = _weighed_between(segments, count, power_w, tail, at_s + run_s, next_s + run_s)
        energy_j += come_j - gone_j
        at_s = next_s
        cost_j = energy_j + (at_s - now_s) * price_w
        if cost_j < best_j - noise_j:
            best_s, best_j = at_s, cost_j


@compiled_small
def _score(s: State, decider: Foresee, number: int) -> float:
    """Predicted work over the price of waiting."""
    job = s.jobs[number]
    wait_s = s.clock.now_s - job.submit_s
    price = slowdown_price(s.predictor, number, job.requested_s)
    work = mean_time_s(s.predictor, number, job.requested_s) * job.processors / price
    power = max(job.power_w / job.processors, 1e-3)
    share = job.processors / s.machine.totals.processors
    return float(work * share**decider.wide / (power**decider.density * (1.0 + wait_s / 3600.0) ** decider.aging))


@compiled
def _plan(s: State, decider: Foresee, limit_s: float, averages: Usual) -> int:
    """Plan the jobs that are due for it, and rank those that are not held; return their number."""
    c, is_tick, ranked, count = s.clock, s.clock.event == WAKE_UP, s.scratch.ranked, 0
    oldest, oldest_s = -1, c.now_s - limit_s
    for i in range(c.first, c.last):
        number = whole(s.queue.job[i])
        job = s.jobs[number]
        if is_tick or np.isnan(job.planned_s):
            job.planned_s = cheapest_s(s, decider, number, limit_s, averages)
        if job.planned_s <= c.now_s:
            ranked[count].job, ranked[count].key = number, _score(s, decider, number)
            if job.submit_s <= oldest_s:
                oldest, oldest_s = count, job.submit_s
            count += 1
    if oldest >= 0:
        ranked[oldest].key = -1.0
    sort_ranked(ranked, count)
    return count


@compiled_small
def _is_still_cheapest(s: State, decider: Foresee, number: int, limit_s: float, averages: Usual) -> bool:
    """Whether now is the best start with the present load."""
    s.jobs[number].planned_s = cheapest_s(s, decider, number, limit_s, averages)
    return bool(s.jobs[number].planned_s <= s.clock.now_s)


@compiled_small
def _kept_free(s: State, decider: Foresee, number: int, limit_s: float) -> int:
    """Processors that a job leaves free: those with a low price of waiting leave the whole reserve."""
    if s.clock.now_s - s.jobs[number].submit_s >= limit_s:
        return 0
    most = decider.reserve_share * s.machine.totals.processors
    inverse_s = 1.0 / slowdown_price(s.predictor, number, s.jobs[number].requested_s)
    return int(most * min(1.0, max(0.0, (inverse_s - NONE_KEPT_S) / (ALL_KEPT_S - NONE_KEPT_S))))


@compiled_small
def _has_room(s: State, decider: Foresee, number: int, limit_s: float) -> bool:
    """Whether a job can start and leaves the reserve free."""
    job, totals = s.jobs[number], s.machine.totals
    if not can_start(s, number, whole(job.processors)):
        return False
    need = job.processors + _kept_free(s, decider, number, limit_s)
    return bool(min(need, max(job.processors, powered(s.capacity, totals))) <= totals.free)


@compiled_small
def _limit_s(s: State, decider: Foresee) -> float:
    """The limit on waits: longer with a backlog, in which all jobs would reach it. [s]"""
    c, work = s.clock, 0.0
    for i in range(c.first, c.last):
        number = whole(s.queue.job[i])
        work += mean_time_s(s.predictor, number, s.jobs[number].requested_s) * s.jobs[number].processors
    return float(max(decider.limit_s, decider.backlog * work / s.machine.totals.processors))


@compiled
def _next_start(s: State, decider: Foresee) -> int:
    """Queue position of the job that starts next, -1 if none does now."""
    c, ranked = s.clock, s.scratch.ranked
    longest_s = 0.0
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue.requested_s[i])
    project(s, decider, c.now_s + decider.horizon_s + longest_s + 2.0 * s.rules.tick_s)
    limit_s, averages, head, latest_s = _limit_s(s, decider), usual(s.machine), -1, 0.0
    count = _plan(s, decider, limit_s, averages)
    while True:  # once for each part of the machine whose jobs do not compete with those of another
        for k in range(count):
            number = whole(ranked[k].job)
            if not can_be_next(s, number):
                continue
            has_room = _has_room(s, decider, number, limit_s)
            if head < 0 and not has_room:
                head = number
                reserve(s, head)
                latest_s = latest_end_s(s)
            if not has_room:
                continue
            position = whole(position_of(s.queue, c, number))
            is_next = head < 0 or may_start(s, position, latest_s, head)
            if is_next and _is_still_cheapest(s, decider, number, limit_s, averages):
                keep_held(s.machine, head >= 0 and outlives_head(s, position, head))
                return position
        if head < 0 or block(s.machine, head):
            return -1
        head = -1


@decide.register(Foresee)
def start_or_hold(decider: Foresee, s: State) -> None:
    """Start one job, or wait."""
    position = _next_start(s, decider)
    apply(s, start_now(position) if position >= 0 else wait_until(np.inf))
    keep_held(s.machine, False)


def foresee_policy(decider: Foresee, tick_s: float) -> CompiledPolicy:
    """The policy with its parameters.

    Args:
        decider: the parameters; each window gets buffers of its own.
        tick_s: time between the starts that are compared. [s]
    """

    def begin(_: Workload, __: Cluster, ___: Rules) -> Foresee:
        return decider._replace(drops_w=np.zeros(SLOTS + 1), lightest=np.zeros(1))

    return CompiledPolicy(name="foresee", begin=begin, ahead_s=decider.horizon_s + 2.0 * tick_s)
