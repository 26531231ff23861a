"""Reward terms: the metrics whose value the engine keeps up to date during a simulation.

A term has the name, unit and formula of its metric, and ends with the metric's value for the whole schedule (no warm-up
or cool-down is cut), or 0 where that is undefined; energy_kwh and the energy-delay product are also defined on nodes
without a power supply.
Jobs count when they start: the simulator knows their run time then, although the policy does not. On nodes, where it
depends on what else runs there, they count when they end, and start when their nodes have booted.
Terms of value and lateness are those of machines whose capacity follows the power, and 0 on others.
`engine.observe.reward_totals` computes the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

(AVG_BOUNDED_SLOWDOWN, AVG_WAIT, AVG_TURNAROUND, AVG_SLOWDOWN, UTILIZATION, MAX_USER_BOUNDED_SLOWDOWN,
 MEAN_USER_BOUNDED_SLOWDOWN, RENEWABLE_UTILIZATION, BROWN_ENERGY_RATIO, MAKESPAN_AREA_RATIO,
 ACCRUED_BOUNDED_SLOWDOWN, ACCRUED_WAIT, BROWN_ENERGY, ENERGY, EDP, EDP_STEPS, ENERGY_COST, COST_PER_KWH,
 CARBON, PEAK_POWER, FINISHED_VALUE, TIMELY_VALUE, RUNNING_VALUE, LATE_VALUE, LATE_JOBS, LATE_TICKS, LATE_RUNNING_TICKS,
 READY_TICKS, POOLED_TICKS, SUSPENDED_TICKS, SUSPENSIONS, WAITING_OR_LATE_TICKS, PROGRESS_VALUE,
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


_STARTED = "sum over the jobs started so far (on nodes: ended), divided by the number of all jobs of the window"
_METRICS = (
    ("avg_bounded_slowdown", AVG_BOUNDED_SLOWDOWN, _STARTED),
    ("avg_wait_s", AVG_WAIT, _STARTED),
    ("avg_turnaround_s", AVG_TURNAROUND, _STARTED),
    ("avg_slowdown", AVG_SLOWDOWN, _STARTED),
    ("utilization", UTILIZATION, "of the jobs started so far, until the latest of their ends"),
    ("max_user_bounded_slowdown", MAX_USER_BOUNDED_SLOWDOWN, "over the jobs started so far"),
    ("mean_user_bounded_slowdown", MEAN_USER_BOUNDED_SLOWDOWN, "over the jobs started so far"),
    ("renewable_utilization", RENEWABLE_UTILIZATION, "of the energy used so far"),
    ("brown_energy_ratio", BROWN_ENERGY_RATIO, "grid energy so far / energy of all jobs of the window"),
    ("brown_kwh", BROWN_ENERGY, "grid energy so far"),
    ("makespan_area_ratio", MAKESPAN_AREA_RATIO, "time so far / area bound of all jobs of the window"),
    ("energy_cost", ENERGY_COST, "cost of the energy so far"),
    ("energy_cost_per_kwh", COST_PER_KWH, "cost so far / energy so far"),
    ("carbon_kg", CARBON, "emissions so far"),
    ("peak_power_w", PEAK_POWER, "highest power so far; 0 on a pool without a power supply"),
    ("energy_kwh", ENERGY, "energy so far (InEPS §3.3.3: its increments are the reward)"),
    ("edp_js", EDP, "energy so far x time so far, a potential: its increments add up to the metric"),
)

_OF_VALUE = (
    (
        "finished_value",
        FINISHED_VALUE,
        "-",
        "value of the jobs that have finished (RARE §5.3; §3.2 calls such a reward sparse)",
    ),
    ("timely_value", TIMELY_VALUE, "-", "value of the jobs that have finished by when they were due"),
    (
        "running_value",
        RUNNING_VALUE,
        "-",
        "integral of value / requested time of the jobs that run and are not late (RARE §3.2.3; §3.2 calls such a "
        "reward dense; a job that runs as long as requested and is never late gives its value)",
    ),
    (
        "late_value",
        LATE_VALUE,
        "-",
        "integral of value / requested time of the jobs that have not finished and are late, wherever they are (RARE "
        "§3.2.1.2: negative rewards every time step after qos_violation_time)",
    ),
    ("late_jobs", LATE_JOBS, "jobs", "number of jobs that have become late, with those that still wait"),
    ("late_ticks", LATE_TICKS, "-", "late jobs x ticks, until they finish (CoCoRL Eq. 6.11, delayed jobs)"),
    ("late_running_ticks", LATE_RUNNING_TICKS, "-", "late jobs that run x ticks (RARE Table B.1: long running)"),
    ("ready_ticks", READY_TICKS, "-", "ready jobs x ticks (RARE Table B.1: ready pool)"),
    ("pooled_ticks", POOLED_TICKS, "-", "jobs that wait until they are ready x ticks (RARE Table B.1: wait pool)"),
    ("suspended_ticks", SUSPENDED_TICKS, "-", "suspended jobs x ticks"),
    ("suspensions", SUSPENSIONS, "-", "number of suspensions (RARE Table B.1: suspend)"),
    (
        "waiting_or_late_ticks",
        WAITING_OR_LATE_TICKS,
        "-",
        "jobs that wait, are ready, are suspended, or run late x ticks (CoCoRL Eq. 6.11, waiting or delayed jobs)",
    ),
    (
        "progress_value",
        PROGRESS_VALUE,
        "-",
        "integral of value / requested time of all jobs that run, late or not: ``finished_value`` bit by bit, if jobs "
        "run as long as requested",
    ),
    ("accrued_cost", ACCRUED_COST, "-", "``ready_ticks + pooled_ticks + late_ticks + suspensions`` (RARE Table B.1)"),
)

TERMS: Mapping[str, Term] = MappingProxyType(
    {
        **{metric: Term(code, metric, so_far) for metric, code, so_far in _METRICS},
        "accrued_bounded_slowdown": Term(
            ACCRUED_BOUNDED_SLOWDOWN,
            "avg_bounded_slowdown",
            "``avg_bounded_slowdown`` with every waiting job counted as if it started now",
        ),
        "accrued_wait_s": Term(
            ACCRUED_WAIT, "avg_wait_s", "``avg_wait_s`` with every waiting job counted as if it started now"
        ),
        "edp_steps_js": Term(
            EDP_STEPS,
            None,
            "sum over the decisions of energy since the last decision x time since then (InEPS §3.3.3, as "
            "published; not the energy-delay product)",
            unit="J s",
        ),
        **{name: Term(code, None, so_far, unit) for name, code, unit, so_far in _OF_VALUE},
    }
)
"""Name -> term; the name is the metric's, except where a metric has a second running form."""


def codes_of(names: Iterable[str]) -> NDArray[np.int64]:
    """Codes of terms, in the same order."""
    return np.array([TERMS[name].code for name in names], np.int64)
