"""Start each job in the cheapest half-hour of the forecast.

The cost of each start time of a waiting job is its brown energy plus the cost of holding it: a price per second of
waiting, higher for short jobs, and a price of idle processors. Jobs are tried in ascending score; the first one that is
held or does not fit gets a reservation. Long jobs leave a share of the machine free, so that short ones need not queue.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types as _types

from greenbatch.cluster import Cluster
from greenbatch.engine.compile import compiled
from greenbatch.engine.events import tick_after
from greenbatch.engine.forecast import project_surplus, slot_at
from greenbatch.engine.program import Pass
from greenbatch.engine.queue import position_of, rank_queue, start
from greenbatch.engine.rules import Rules
from greenbatch.engine.step import advance
from greenbatch.workload import Workload

ROUNDING = 1e-9
"""Smallest saving of a later start, as a share of the job's energy: rounding must not delay a job forever."""


class Options(NamedTuple):
    """Parameters of the policy."""

    hold_price_j: float
    """Price of one unit of a job's slowdown. [J]"""
    idle_price_w: float
    """Price of an idle processor. [W]"""
    reserve_share: float
    """Share of the machine that long jobs leave free."""
    short_s: float
    """Requested time up to which a job may use the reserve. [s]"""
    horizon_s: float
    """How far ahead start times are compared. [s]"""


@compiled
def free_at(s: Any, time_s: float) -> int:
    """Processors free at a time by requested ends of running jobs."""
    c = s.clock
    if time_s <= c.now_s:
        return int(c.free)  # a job whose requested end is now or past still holds its processors
    free, i = c.free, c.expected_first
    while i < c.expected_first + c.running and s.expected[i].end_s <= time_s:
        free += s.expected[i].processors
        i += 1
    return int(free)


@compiled
def _room(s: Any, at_s: float, until_s: float, reserved_s: float, reserved_end_s: float, reserved: int) -> int:
    """Processors free throughout an interval, taking a reservation into account."""
    free = free_at(s, at_s)
    if reserved > 0 and at_s < reserved_end_s and reserved_s < until_s:
        free = min(free, free_at(s, max(at_s, reserved_s)) - reserved)
    return free


@compiled
def _advance_brown(s: Any, power_w: float, segment: int, at_s: float, to_s: float) -> tuple[float, int]:
    """Brown energy of a constant power between two times [J], and the segment that covers the second."""
    total_j = 0.0
    while True:
        end_s = s.segments[segment].start_s + s.segments[segment].length_s
        stop_s = min(end_s, to_s)
        if power_w > s.segments[segment].surplus_w:
            total_j += (power_w - s.segments[segment].surplus_w) * (stop_s - at_s)
        at_s = stop_s
        if at_s >= to_s or segment + 1 >= s.clock.segments:
            return total_j, segment
        segment += 1


@compiled
def cheapest_start(
    s: Any, options: Any, number: int, need: int, reserved_s: float, reserved_end_s: float, reserved: int
) -> float:  # fmt: skip
    """The cheapest start of a job that the machine and the reservation allow, infinite if there is none. [s]

    ``segments`` must cover the time from now to the horizon plus the job's requested time.
    """
    c, job = s.clock, s.jobs[number]
    price = options.hold_price_j / max(job.requested_s, 10.0) + options.idle_price_w * job.processors
    best_s, best_j = np.inf, np.inf
    noise_j = ROUNDING * job.power_w * job.requested_s
    at_s = c.now_s
    last_s = s.set.supply_origin_s + slot_at(s, c.now_s) * s.set.supply_step_s + options.horizon_s
    brown_j, tail = _advance_brown(s, job.power_w, 0, at_s, at_s + job.requested_s)
    head = 0
    while at_s <= last_s or at_s == c.now_s:
        cost_j = brown_j + (at_s - c.now_s) * price
        end_s = at_s + job.requested_s
        if cost_j < best_j - noise_j and _room(s, at_s, end_s, reserved_s, reserved_end_s, reserved) >= need:
            best_s, best_j = at_s, cost_j
        next_s = tick_after(at_s, s.set.tick_s)
        gone_j, head = _advance_brown(s, job.power_w, head, at_s, next_s)
        come_j, tail = _advance_brown(s, job.power_w, tail, at_s + job.requested_s, next_s + job.requested_s)
        brown_j += come_j - gone_j
        at_s = next_s
    return best_s


@compiled
def _start_cheapest(s: Any, options: Any, kept: int) -> bool:
    """Start the first job for which now is the cheapest start; False if there is none."""
    c, p = s.clock, s.set
    reserved_s, reserved_end_s, reserved = np.inf, np.inf, 0
    longest_s = 0.0
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue[i].requested_s)
    project_surplus(s, c.now_s, c.now_s + options.horizon_s + longest_s + 2.0 * p.tick_s)
    for k in range(rank_queue(s)):
        number = s.ranked[k].job
        job = s.jobs[number]
        need = job.processors
        if job.requested_s > options.short_s:
            need = min(need + kept, p.processors)
        if need > c.free and reserved > 0:
            continue
        best_s = cheapest_start(s, options, number, need, reserved_s, reserved_end_s, reserved)
        if best_s == c.now_s:
            start(s, position_of(s, number))
            return True
        if reserved == 0 and best_s < np.inf:
            reserved_s, reserved_end_s, reserved = best_s, best_s + job.requested_s, job.processors
    return False


def run_cheapest_start(s: Any, options: Any) -> None:
    """Cheapest start with a reserve: plan again at every event, tick and start, and start the jobs planned for now."""
    kept = int(np.ceil(options.reserve_share * s.set.processors))
    while advance(s):
        if _start_cheapest(s, options, kept):
            s.clock.decisions += 1
        else:
            s.clock.blocked = 1


types: Any = _types

_TYPE = types.NamedTuple([types.float64] * len(Options._fields), Options)


def cheapest_start_pass(options: Options, tick_s: float) -> Pass:
    """The policy with its parameters.

    Args:
        options: the parameters.
        tick_s: time between the starts that are compared. [s]
    """

    def inputs(_: Workload, __: Cluster, ___: Rules) -> tuple[Options]:
        return (options,)

    ahead_s = options.horizon_s + 2.0 * tick_s
    return Pass(name="cheapest-start", run=run_cheapest_start, types=(_TYPE,), inputs=inputs, ahead_s=ahead_s)
