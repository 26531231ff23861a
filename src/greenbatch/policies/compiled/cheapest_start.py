"""Start each job in the cheapest half-hour of the forecast.

The cost of each start time of a waiting job is its energy, as `Weights` weigh it (brown energy by default), plus the
cost of holding it: a price per second of waiting, higher for short jobs, and a price of idle processors. Jobs are tried
in ascending score; the first one that is held or does not fit gets a reservation. Long jobs leave a share of the
machine free, so that short ones need not queue.

On nodes, power and run time of a job are those foreseen (`policies.compiled.foreseen`). Where the number of free
processors alone does not say whether a job can start, the first one that cannot is reserved what it needs, as in EASY
backfilling: nodes, power under a limit, or a capacity to come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from greenbatch.cluster import Cluster
from greenbatch.engine.backfill import leaves_room
from greenbatch.engine.capacity.units import powered
from greenbatch.engine.decide import decide
from greenbatch.engine.forecast import project_surplus, weighed_w
from greenbatch.engine.limits import can_be_next
from greenbatch.engine.machine.power_states import longest_boot_s
from greenbatch.engine.power.protocol import Weights
from greenbatch.engine.power.slots import next_edge_s, slot_at, slot_start_s
from greenbatch.engine.program import CompiledPolicy
from greenbatch.engine.queue import position_of, rank_queue
from greenbatch.engine.records import Surplus, Table
from greenbatch.engine.rules import Rules
from greenbatch.engine.state import State
from greenbatch.engine.step import apply, start_now, wait_until
from greenbatch.engine.timeline import free_at
from greenbatch.machine_code.compile import compiled, compiled_small, whole
from greenbatch.policies.compiled.foreseen import (
    Foreseen,
    foresee,
    hold_for,
    is_counted,
    keep_held,
    may_be_started,
    usual,
)
from greenbatch.workload import Workload

ROUNDING = 1e-9
"""Smallest saving of a later start, as a share of the job's energy: rounding must not delay a job forever."""


class CheapestStart(NamedTuple):
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
    weights: Weights
    """What a joule weighs."""


@compiled_small
def _room(s: State, at_s: float, until_s: float, reserved_s: float, reserved_end_s: float, reserved: int) -> int:
    """Processors free throughout an interval, taking a reservation into account."""
    free = free_at(s, at_s)
    if reserved > 0 and at_s < reserved_end_s and reserved_s < until_s:
        free = min(free, free_at(s, max(at_s, reserved_s)) - reserved)
    return free


@compiled
def _advance(
    segments: Table[Surplus], count: int, power_w: float, segment: int, at_s: float, to_s: float
) -> tuple[float, int]:  # fmt: skip
    """What a constant power weighs between two times [J], and the segment that covers the second."""
    total_j = 0.0
    while True:
        end_s = segments[segment].start_s + segments[segment].length_s
        stop_s = min(end_s, to_s)
        total_j += weighed_w(segments[segment], power_w) * (stop_s - at_s)
        at_s = stop_s
        if at_s >= to_s or segment + 1 >= count:
            return total_j, segment
        segment += 1


@compiled
def cheapest_start(
    s: State, decider: CheapestStart, number: int, need: int, here: Foreseen, earliest_s: float, reserved_s: float,
    reserved_end_s: float, reserved: int,
) -> float:  # fmt: skip
    """The cheapest start of a job that the machine and the reservation allow, infinite if there is none. [s]

    If ``earliest_s`` is later than now, the job cannot start before. Beside a reservation only a start now matters: any
    later one that is cheaper is given, or none at all. ``scratch.surplus`` must cover the time from now to the horizon
    plus the job's requested time.
    """
    c, job, power_w = s.clock, s.jobs[number], here.power_w
    run_s = min(here.run_s, job.requested_s)  # the forecast covers no more: slow nodes are not told apart
    if reserved > 0 and _room(s, c.now_s, c.now_s + run_s, reserved_s, reserved_end_s, reserved) < need:
        return np.inf
    segments, count = s.scratch.surplus, c.segments
    price = decider.hold_price_j / max(run_s, 10.0) + decider.idle_price_w * job.processors
    best_s, best_j = np.inf, np.inf
    noise_j = ROUNDING * power_w * run_s
    at_s = c.now_s
    last_s = slot_start_s(s.power.slots, slot_at(s.power.slots, c.now_s)) + decider.horizon_s
    energy_j, tail = _advance(segments, count, power_w, 0, at_s, at_s + run_s)
    head = 0
    while at_s <= last_s or at_s == c.now_s:
        cost_j = energy_j + (at_s - c.now_s) * price
        if cost_j < best_j - noise_j and at_s >= earliest_s:
            is_held = earliest_s > c.now_s
            if is_held or _room(s, at_s, at_s + run_s, reserved_s, reserved_end_s, reserved) >= need:
                best_s, best_j = at_s, cost_j
                if reserved > 0 and at_s > c.now_s:
                    return best_s
        next_s = next_edge_s(at_s, 0.0, s.rules.tick_s)
        gone_j, head = _advance(segments, count, power_w, head, at_s, next_s)
        come_j, tail = _advance(segments, count, power_w, tail, at_s + run_s, next_s + run_s)
        energy_j += come_j - gone_j
        at_s = next_s
    return best_s


@compiled
def _cheapest_now(s: State, decider: CheapestStart, kept: int) -> int:
    """Queue position of the first job for which now is the cheapest start, -1 if there is none; it may start next."""
    c, totals, averages, held_s, head = s.clock, s.machine.totals, usual(s.machine), np.inf, -1
    counted, boot_s = is_counted(s), longest_boot_s(s.machine)
    reserved_s, reserved_end_s, reserved = np.inf, np.inf, 0
    longest_s = 0.0
    for i in range(c.first, c.last):
        longest_s = max(longest_s, s.queue.requested_s[i])
    project_surplus(s, c.now_s, c.now_s + decider.horizon_s + longest_s + 2.0 * s.rules.tick_s, decider.weights)
    for k in range(rank_queue(s.queue, s.clock, s.scratch.ranked)):
        number = whole(s.scratch.ranked[k].job)
        job = s.jobs[number]
        need = job.processors
        if job.requested_s > decider.short_s:
            need = min(need + kept, max(need, powered(s.capacity, totals)))
        if (need > totals.free and reserved > 0) or not can_be_next(s, number):
            continue
        outlives = c.now_s + boot_s + job.requested_s > held_s
        here = foresee(s, number, averages, outlives, True)
        can = may_be_started(s, number, here)
        if reserved > 0 and not can:
            continue
        if outlives and not leaves_room(s, number, whole(job.processors), head):
            continue
        is_held = not (can or counted)
        earliest_s = max(hold_for(s, number), np.nextafter(c.now_s, np.inf)) if is_held else c.now_s
        best_s = cheapest_start(s, decider, number, need, here, earliest_s, reserved_s, reserved_end_s, reserved)
        if best_s == c.now_s:
            keep_held(s.machine, outlives)
            return position_of(s.queue, s.clock, number)
        if reserved == 0 and best_s < np.inf:
            reserved_s, reserved_end_s, reserved = best_s, best_s + min(here.run_s, job.requested_s), job.processors
            if is_held:
                head, held_s = number, earliest_s if best_s < earliest_s + s.rules.tick_s else best_s
    return -1


@decide.register(CheapestStart)
def start_or_hold(decider: CheapestStart, s: State) -> None:
    """Plan again and start one job that is planned for now, or wait."""
    kept = int(np.ceil(decider.reserve_share * s.machine.totals.processors))
    position = _cheapest_now(s, decider, kept)
    apply(s, start_now(position) if position >= 0 else wait_until(np.inf))
    keep_held(s.machine, False)


def cheapest_start_policy(decider: CheapestStart, tick_s: float) -> CompiledPolicy:
    """The policy with its parameters.

    Args:
        decider: the parameters.
        tick_s: time between the starts that are compared. [s]
    """

    def begin(_: Workload, __: Cluster, ___: Rules) -> CheapestStart:
        return decider

    ahead_s = decider.horizon_s + 2.0 * tick_s
    return CompiledPolicy(name="cheapest-start", begin=begin, ahead_s=ahead_s)
