"""The fitness of the published genetic algorithm: an order of the waiting jobs, executed in its plan and priced.

The plan is the authors' own small simulator, not the engine: nothing arrives, jobs end at their requested ends, and
backfilling has three defects that the published figures depend on (see `policies.published_genetic`). Power is known
beyond the forecast here, as in the published code. Sums are made in the order of the published code, so that equal
plans have equal fitness to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

import numba as _numba
import numpy as np

from greenbatch.engine.forecast import ROUNDING_J
from greenbatch.engine.power.slots import covering, next_edge_s, slot_at
from greenbatch.engine.records import SHORT_S, Floats, Ints, Slots, Table, record_of, table_of
from greenbatch.machine_code.compile import compiled, compiled_small, entry

numba: Any = _numba

NO_BACKFILL, EASY, GREEN = 0, 1, 2
"""Kinds of backfilling in a plan."""


class Planned:
    """One running job of a plan."""

    end_s: float
    power_w: float
    processors: int


class Totals:
    """Variables of a plan."""

    clock_s: float
    counted_s: float
    """Until when energy has been added up."""
    load_w: float
    load_j: float
    renewable_j: float
    """Renewable energy used."""
    slowdown: float
    """Sum over the jobs / jobs of the window."""
    free: int
    running: int


class Batch(NamedTuple):
    """Jobs that wait together, and the machine and the supply at that moment."""

    now_s: float
    wait_s: Floats
    """Shape (n,). [s]"""
    requested_s: Floats
    """Shape (n,). [s]"""
    power_w: Floats
    """Power of each job as a whole, shape (n,). [W]"""
    processors: Ints
    """Shape (n,)."""
    key: Floats
    """What candidates of backfilling are sorted by, shape (n,)."""
    by_key: Ints
    """Jobs in ascending key, shape (n,)."""
    running: Table[Planned]
    """Running jobs by requested end, shape (r,)."""
    free: int
    """Free processors."""
    base_power_w: float
    slots: Slots
    supply_w: Floats
    """Renewable power per slot, shape (slots,). [W]"""
    backfill: int
    threshold_j: float
    eta: float
    """Price of slowdown."""
    window: float
    """Jobs of the whole window, by which slowdown is divided."""


class Scratch(NamedTuple):
    """Memory of one plan."""

    totals: Totals
    running: Table[Planned]
    """Shape (r + n,)."""
    candidates: Ints
    """Shape (n,)."""
    rank: Ints
    """Position of each job in the order, shape (n,)."""
    started: Ints
    """1 for jobs that have started, shape (n,)."""


@compiled
def _count_energy(q: Batch, t: Totals, until_s: float) -> None:
    """Add the energy at the present load up to a time."""
    if until_s <= t.counted_s:
        return
    t.load_j += (until_s - t.counted_s) * t.load_w
    used_j, at_s = 0.0, t.counted_s
    while at_s < until_s:
        slot, edge_s = covering(q.slots, at_s)
        to_s = min(edge_s, until_s)
        used_j += min(q.supply_w[slot % q.supply_w.shape[0]], t.load_w) * (to_s - at_s)
        at_s = to_s
    t.renewable_j += used_j
    t.counted_s = until_s


@compiled
def _start(q: Batch, w: Scratch, job: int) -> None:
    """Start a job at the present time of the plan."""
    t = w.totals
    _count_energy(q, t, t.clock_s)
    end_s, k = t.clock_s + q.requested_s[job], t.running
    while k > 0 and w.running[k - 1].end_s > end_s:
        w.running[k] = w.running[k - 1]
        k -= 1
    w.running[k].end_s, w.running[k].power_w, w.running[k].processors = end_s, q.power_w[job], q.processors[job]
    t.running += 1
    t.free -= q.processors[job]
    t.load_w += q.power_w[job]
    turnaround_s = t.clock_s - q.now_s + q.wait_s[job] + q.requested_s[job]
    t.slowdown += max(1.0, turnaround_s / max(q.requested_s[job], SHORT_S)) / q.window
    w.started[job] = 1


@compiled
def _release(q: Batch, w: Scratch) -> None:
    """Go on to the end of the running job that ends first, and release its processors."""
    t = w.totals
    t.clock_s = max(t.clock_s, w.running[0].end_s)
    _count_energy(q, t, w.running[0].end_s)
    t.free += w.running[0].processors
    t.load_w -= w.running[0].power_w
    t.running -= 1
    for k in range(t.running):
        w.running[k] = w.running[k + 1]


@compiled_small
def _forecast_w(q: Batch, slot: int) -> float:
    """The forecast as seen from the beginning of the plan: the true power in its window, which then repeats."""
    first = slot_at(q.slots, q.now_s)
    return float(q.supply_w[(first + (slot - first) % q.slots.forecast) % q.supply_w.shape[0]])


@compiled
def _is_green(q: Batch, w: Scratch, job: int) -> bool:
    """Whether a job that starts now adds less brown energy than the threshold, by the running jobs of the plan."""
    t = w.totals
    stop_j, brown_j = q.threshold_j - ROUNDING_J, 0.0
    at_s, until_s, load_w, k = t.clock_s, t.clock_s + q.requested_s[job], t.load_w, 0
    while at_s < until_s:
        while k < t.running and w.running[k].end_s <= at_s:
            load_w -= w.running[k].power_w
            k += 1
        slot, to_s = covering(q.slots, at_s)
        to_s = min(to_s, until_s)
        if k < t.running:
            to_s = min(to_s, w.running[k].end_s)
        brown_w = q.power_w[job] - max(0.0, _forecast_w(q, slot) - load_w)
        if brown_w > 0.0:
            brown_j += brown_w * (to_s - at_s)
            if brown_j >= stop_j:
                return False
        at_s = to_s
    return bool(brown_j < stop_j)


@compiled
def _reservation_s(q: Batch, w: Scratch, job: int) -> float:
    """When a blocked job is expected to start: every end counts the processors of the *first* running job. [s]"""
    free, k = w.totals.free, 0
    while k < w.totals.running:
        free += w.running[0].processors
        if free >= q.processors[job]:
            return float(w.running[k].end_s)
        k += 1
    return float(w.running[k - 1].end_s)


@compiled
def _backfill(q: Batch, w: Scratch, head: int, reservation_s: float) -> None:
    """One pass over the other jobs, which must also fit on the processors that are really free now."""
    t = w.totals
    for k in range(w.candidates.shape[0]):
        job = w.candidates[k]
        if w.started[job] or job == head or q.processors[job] > min(t.free, q.free):
            continue
        if t.clock_s + q.requested_s[job] < reservation_s and (q.backfill == EASY or _is_green(q, w, job)):
            _start(q, w, job)


@compiled
def _wait_for(q: Batch, w: Scratch, head: int) -> None:
    """Wait until a job fits; others may start before."""
    t = w.totals
    if q.backfill == NO_BACKFILL:
        while q.processors[head] > t.free:
            _release(q, w)
        return
    reservation_s = _reservation_s(q, w, head)
    while q.processors[head] > t.free:
        _backfill(q, w, head, reservation_s)
        if next_edge_s(t.clock_s, q.slots.origin_s, q.slots.step_s) < w.running[0].end_s:
            t.clock_s = max(t.clock_s, w.running[0].end_s)  # there, candidates are tried before the release
        else:
            _release(q, w)


@compiled
def _sort_candidates(q: Batch, w: Scratch, order: Ints) -> None:
    """Candidates in ascending key, those of equal keys in the order of the plan."""
    for k in range(order.shape[0]):
        w.rank[order[k]] = k
        w.candidates[k] = q.by_key[k]
    for k in range(1, order.shape[0]):
        job, i = w.candidates[k], k
        while i > 0 and q.key[w.candidates[i - 1]] == q.key[job] and w.rank[w.candidates[i - 1]] > w.rank[job]:
            w.candidates[i] = w.candidates[i - 1]
            i -= 1
        w.candidates[i] = job


@compiled
def _fitness(q: Batch, w: Scratch, order: Ints) -> float:
    t = w.totals
    t.clock_s = t.counted_s = q.now_s
    t.load_w, t.load_j, t.renewable_j, t.slowdown = q.base_power_w, 0.0, 0.0, 0.0
    t.free, t.running = q.free, q.running.shape[0]
    for k in range(t.running):
        w.running[k] = q.running[k]
        t.load_w += q.running[k].power_w
    w.started[:] = 0
    if q.backfill != NO_BACKFILL:
        _sort_candidates(q, w, order)
    for k in range(order.shape[0]):
        if not w.started[order[k]]:
            if q.processors[order[k]] > t.free:
                _wait_for(q, w, order[k])
            _start(q, w, order[k])
    while t.running > 0:
        _release(q, w)
    utilization = 1.0 if t.load_j == 0.0 else t.renewable_j / t.load_j
    return float(q.eta * -t.slowdown + utilization)


def fitness(q: Batch, w: Scratch, orders: Any, result: Floats) -> None:
    """Price some orders: renewable utilization of the plan - ``eta`` x sum of slowdowns / jobs of the window.

    Args:
        q: the jobs and the machine.
        w: memory.
        orders: one order of the jobs per row, shape (m, n).
        result: output, shape (m,).
    """
    for i in range(orders.shape[0]):
        result[i] = _fitness(q, w, orders[i])


def scratch_of(jobs: int, running: int) -> Scratch:
    """Memory for plans of some waiting and some running jobs."""
    numbers = (np.zeros(jobs, np.int64) for _ in range(3))
    return Scratch(record_of(Totals), table_of(Planned, jobs + running), *numbers)


def fitness_of(q: Batch, orders: Any) -> Floats:
    """`fitness`, compiled or loaded from the cache on first use.

    Args:
        q: the jobs and the machine.
        orders: one order of the jobs per row, shape (m, n).

    Returns:
        Shape (m,).
    """
    result, w = np.zeros(orders.shape[0]), scratch_of(orders.shape[1], q.running.shape[0])
    _compiled()(q, w, orders, result)
    return result


@cache
def _compiled() -> Callable[..., None]:
    number, numbers, whole = np.zeros(1), np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
    w = scratch_of(1, 1)
    q = Batch(
        0.0, number, number, number, whole, number, whole, w.running, 0, 0.0, record_of(Slots), number, 0, 0.0, 0.0, 0.0
    )  # fmt: skip
    signature = numba.types.void(*(numba.typeof(each) for each in (q, w, numbers, number)))
    return cast(Callable[..., None], entry("published-fitness", fitness, signature))
