"""Reward terms: the metrics whose value the engine keeps up to date during a simulation.

A term has the name, unit and formula of its metric, and ends with the metric's value for the whole schedule (no warm-up
or cool-down is cut), or 0 where that is undefined; energy_kwh and the energy-delay product are also defined on nodes
without a power supply.
Jobs count when they start: the simulator knows their run time then, although the policy does not. On nodes, where it
depends on what else runs there, they count when they end, and start when their nodes have booted.
Terms of value and lateness are those of machines whose capacity follows the power, and 0 on others.
``reward_terms.toml`` lists them, and `engine.observe.reward_totals` computes the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenbatch.engine.feature import read_table

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


_TOLD = read_table("reward_terms").items()
TERMS: Mapping[str, Term] = MappingProxyType({name: _term(code, name, told) for code, (name, told) in enumerate(_TOLD)})
"""Name -> term; the name is the metric's, except where a metric has a second running form."""


def codes_of(names: Iterable[str]) -> NDArray[np.int64]:
    """Codes of terms, in the same order."""
    return np.array([TERMS[name].code for name in names], np.int64)
