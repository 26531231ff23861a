"""Reward terms: the metrics whose value the engine keeps up to date during a simulation.

A term has the name, unit and formula of its metric, and ends with the metric's value for the whole schedule (no warm-up
or cool-down is cut), or 0 where that is undefined; energy_kwh and the energy-delay product are also defined on nodes
without a power supply.
Jobs count when they start: the simulator knows their run time then, although the policy does not. On nodes, where it
depends on what else runs there, they count when they end, and start when their nodes have booted.
Terms of value and lateness are those of machines whose capacity follows the power, and 0 on others.
``reward_terms.toml`` lists them. Their values are made of running totals of each simulation (`update_totals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.capacity import value as service
from greenbatch.engine.capacity.suspension import suspended_job
from greenbatch.engine.capacity.value import run_of, service_figure, worth_of
from greenbatch.engine.codes import END
from greenbatch.engine.events import accrue
from greenbatch.engine.machine.power_states import begins_s
from greenbatch.engine.machine.rates import run_times_vary
from greenbatch.engine.records import Floats, Ints, RewardTotals, Table, UserTotals
from greenbatch.engine.state import State
from greenbatch.engine.tables import read_table
from greenbatch.machine_code.compile import compiled, compiled_small, whole

(AVG_BOUNDED_SLOWDOWN, AVG_WAIT, AVG_TURNAROUND, AVG_SLOWDOWN, UTILIZATION, MAX_USER_BOUNDED_SLOWDOWN,
 MEAN_USER_BOUNDED_SLOWDOWN, RENEWABLE_UTILIZATION, BROWN_ENERGY_RATIO, MAKESPAN_AREA_RATIO,
 ACCRUED_BOUNDED_SLOWDOWN, ACCRUED_WAIT, BROWN_ENERGY, ENERGY, EDP, EDP_STEPS, ENERGY_COST, COST_PER_KWH,
 CARBON, PEAK_POWER, FINISHED_VALUE, TIMELY_VALUE, LATE_VALUE, LATE_JOBS, LATE_TICKS, READY_TICKS, POOLED_TICKS,
 SUSPENDED_TICKS, LATE_RUNNING_TICKS, RUNNING_VALUE, SUSPENSIONS, WAITING_OR_LATE_TICKS, PROGRESS_VALUE,
 ACCRUED_COST) = range(34)  # fmt: skip
"""Codes of the terms in compiled code."""


@dataclass(frozen=True, slots=True)
class Term:
    """A metric as a reward term."""

    code: int
    """In compiled code."""
    metric: str | None
    """Name in `metrics.METRICS` of the metric whose value it has at the end; unit and formula are stated there. None
    if it ends with the value of no metric."""
    so_far: str
    """Its value during a simulation."""
    unit: str = "-"
    """Unit of a term that ends with the value of no metric."""


def _term(code: int, name: str, told: str | dict[str, str]) -> Term:
    own: dict[str, Any] = {"metric": name, "so_far": told} if isinstance(told, str) else {"metric": None, **told}
    return Term(code, **own)


_TOLD = read_table("observe/reward_terms").items()
TERMS: Mapping[str, Term] = MappingProxyType({name: _term(code, name, told) for code, (name, told) in enumerate(_TOLD)})
"""Name -> term; the name is the metric's, except where a metric has a second running form."""


def codes_of(names: Iterable[str]) -> Ints:
    """Codes of terms, in the same order."""
    return np.array([TERMS[name].code for name in names], np.int64)


# ---------------------------------------------------------------- their values

SHORTEST_RUN_S = 10.0
"""Bound of the bounded slowdown (RLScheduler §II-A, GAS-MARL Eq. 5). [s]"""


@compiled_small
def _count_jobs(s: State, totals: RewardTotals, user_of: Ints, users: Table[UserTotals]) -> None:
    """Count the jobs that have started since the last call, or ended if run times vary, from the log."""
    late = run_times_vary(s.machine)
    while totals.read < s.clock.logged:
        event = s.log[totals.read]
        totals.read += 1
        if event.kind == END:
            _count_value(s, totals, whole(event.job), event.time_s)
        if event.kind > END or (event.kind == END) != late:
            continue
        job, start_s = s.jobs[event.job], event.time_s
        run_s, paused_s = job.run_s, 0.0
        if late:
            begin_s = begins_s(s.machine, whole(event.job), start_s)
            start_s, run_s, work_s = run_of(s.capacity, whole(event.job), begin_s, event.time_s, job.run_s)
            paused_s = event.time_s - start_s - run_s
            totals.jobs_j += (run_s - work_s) * job.power_w
            totals.window_work_s += (run_s - work_s) * job.processors / s.machine.totals.processors
        wait_s = start_s - job.submit_s
        bounded = _bounded_slowdown(wait_s + paused_s, run_s)
        totals.bounded_slowdown += bounded
        totals.wait_s += wait_s
        totals.turnaround_s += wait_s + paused_s + run_s
        totals.slowdown += (wait_s + paused_s + run_s) / run_s
        totals.work_s += run_s * job.processors
        totals.largest_end_s = max(totals.largest_end_s, event.time_s if late else start_s + run_s)
        user = user_of[event.job]
        if totals.users > 0 and user >= 0:
            users[user].jobs += 1
            users[user].bounded_slowdown += bounded


@compiled_small
def _count_value(s: State, totals: RewardTotals, job: int, end_s: float) -> None:
    """Count a job that has finished."""
    value, late, rate = worth_of(s.capacity, job, end_s)
    totals.finished_value += value
    totals.timely_value += value if late <= 0.0 else 0.0
    totals.late_jobs += late > 0.0
    totals.late_ticks += late
    totals.late_value += late * rate


@compiled_small
def _bounded_slowdown(wait_s: float, run_s: float) -> float:
    return float(max(1.0, (wait_s + run_s) / max(run_s, SHORTEST_RUN_S)))


@compiled_small
def _as_it_is(s: State, number: int, start_s: float, term: int) -> float:
    """What a job that is not counted yet adds to a term: it is late by now, or has been started at a time."""
    if term >= LATE_VALUE:
        _, late, rate = worth_of(s.capacity, number, service_figure(s.capacity, service.UNTIL))
        return (late * rate, 1.0 if late > 0.0 else 0.0, late)[term - LATE_VALUE]
    wait_s = float(start_s - s.jobs[number].submit_s)
    return wait_s if term == ACCRUED_WAIT else _bounded_slowdown(wait_s, s.jobs[number].run_s)


@compiled
def _with_the_others(s: State, total: float, term: int) -> float:
    """A term about late jobs, or one with jobs as if they started now: its total of counted jobs and all the others."""
    c, about_late = s.clock, term >= LATE_VALUE
    for i in range(c.first, c.last):
        total += _as_it_is(s, whole(s.queue.job[i]), c.now_s, term)
    if about_late or run_times_vary(s.machine):
        for i in range(c.expected_first, c.expected_first + c.running):
            total += _as_it_is(s, whole(s.expected[i].job), s.expected[i].start_s, term)
    row = 0
    while about_late and suspended_job(s.capacity, row) >= 0:
        total += _as_it_is(s, suspended_job(s.capacity, row), c.now_s, term)
        row += 1
    return total


@compiled_small
def _worth(s: State, totals: RewardTotals, term: int) -> float:
    """Current value of a term about value and pools."""
    counted = totals.finished_value, totals.timely_value, totals.late_value, totals.late_jobs, totals.late_ticks
    if term <= TIMELY_VALUE:
        return counted[term - FINISHED_VALUE]
    if term <= LATE_TICKS:
        return _with_the_others(s, counted[term - FINISHED_VALUE], term)
    if term == ACCRUED_COST:
        late = _with_the_others(s, totals.late_ticks, LATE_TICKS)
        in_pools = service_figure(s.capacity, service.READY_TICKS) + service_figure(s.capacity, service.POOLED_TICKS)
        return in_pools + late + service_figure(s.capacity, service.SUSPENSIONS)
    first = last = service.READY_TICKS + term - READY_TICKS  # one figure, in the order of the terms, or several
    if term >= SUSPENSIONS:
        first = (service.SUSPENSIONS, service.READY_TICKS, service.PROGRESS)[term - SUSPENSIONS]
        last = (service.SUSPENSIONS, service.LATE_RUNNING_TICKS, service.LATE_PROGRESS)[term - SUSPENSIONS]
    total = 0.0
    for figure in range(first, last + 1):
        total += service_figure(s.capacity, figure)
    return total


@compiled
def _over_users(totals: RewardTotals, users: Table[UserTotals], mean: bool) -> float:
    total, largest, seen = 0.0, 0.0, 0
    for u in range(totals.users):
        if users[u].jobs > 0:
            value = users[u].bounded_slowdown / users[u].jobs
            total += value
            largest = max(largest, value)
            seen += 1
    if seen == 0:
        return 0.0
    return total / seen if mean else largest


@compiled_small
def _span_s(s: State, totals: RewardTotals) -> float:
    """Time so far: until now or, once all jobs have ended, until the last end; nodes may be shut down later. [s]"""
    is_over = s.clock.started == s.jobs.shape[0] and s.clock.running == 0 and run_times_vary(s.machine)
    return float((totals.largest_end_s if is_over else s.clock.now_s) - totals.begin_s)


@compiled_small
def _brown_j(s: State) -> float:
    """Energy from the grid so far, 0 without a power supply. [J]"""
    return float(s.ledger.load_j - s.ledger.renewable_used_j) if s.power.slots.count > 0 else 0.0


@compiled_small
def _energy(s: State, totals: RewardTotals, term: int) -> float:
    """Current value of a term about energy, from `BROWN_ENERGY` to `PEAK_POWER`."""
    ledger, energy_j = s.ledger, s.ledger.load_j
    figures = (
        _brown_j(s) / JOULES_PER_KWH, energy_j / JOULES_PER_KWH, energy_j * _span_s(s, totals), totals.edp_steps_js,
        ledger.cost, ledger.cost / energy_j * JOULES_PER_KWH if energy_j > 0.0 else 0.0, ledger.carbon_g / 1e3,
        ledger.peak_w,
    )  # fmt: skip
    return float(figures[term - BROWN_ENERGY])


@compiled_small
def _value(s: State, totals: RewardTotals, users: Table[UserTotals], term: int) -> float:  # noqa: PLR0911
    jobs, span_s = s.jobs.shape[0], totals.largest_end_s - totals.begin_s
    if term < UTILIZATION:
        return float((totals.bounded_slowdown, totals.wait_s, totals.turnaround_s, totals.slowdown)[term] / jobs)
    if term == UTILIZATION:
        return float(totals.work_s / (span_s * s.machine.totals.processors)) if span_s > 0.0 else 0.0
    if term <= MEAN_USER_BOUNDED_SLOWDOWN:
        return float(_over_users(totals, users, term == MEAN_USER_BOUNDED_SLOWDOWN))
    if ACCRUED_BOUNDED_SLOWDOWN <= term <= ACCRUED_WAIT:
        counted = (totals.bounded_slowdown, totals.wait_s)[term - ACCRUED_BOUNDED_SLOWDOWN]
        return _with_the_others(s, counted, term) / jobs
    if term == RENEWABLE_UTILIZATION:
        return float(s.ledger.renewable_used_j / s.ledger.load_j) if s.ledger.load_j > 0.0 else 0.0
    if term == BROWN_ENERGY_RATIO:
        return float(_brown_j(s) / totals.jobs_j) if totals.jobs_j > 0.0 else 0.0
    if term >= FINISHED_VALUE:
        return _worth(s, totals, term)
    if term >= BROWN_ENERGY:
        return _energy(s, totals, term)
    return float(_span_s(s, totals) / totals.window_work_s)


@compiled_small
def update_totals(
    s: State, totals: RewardTotals, user_of: Ints, users: Table[UserTotals], terms: Ints, values: Floats
) -> None:  # fmt: skip
    """Update the totals and write the current value of each term.

    Args:
        s: the state.
        totals: its totals.
        user_of: row of ``users`` for each job, -1 if unknown, shape (n,).
        users: totals by user, shape (>= totals.users,).
        terms: codes, shape (t,).
        values: shape (t,).
    """
    _count_jobs(s, totals, user_of, users)
    if s.rules.accrue and not np.isnan(s.clock.accrued_s):
        accrue(s)
        totals.edp_steps_js += (s.ledger.load_j - totals.seen_j) * (s.clock.now_s - totals.seen_s)
        totals.seen_j, totals.seen_s = s.ledger.load_j, s.clock.now_s
    for k in range(terms.shape[0]):
        values[k] = _value(s, totals, users, terms[k])
