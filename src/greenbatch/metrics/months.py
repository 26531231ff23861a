"""What a run costs, emits and draws in each calendar month of its horizon: the bill of an operator.

Months are those of the trace's time zone, UTC if it states none. Their sums are the figures over the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.metrics.horizon import Horizon
from greenbatch.metrics.jobs import Floats
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.money import demand_charges
from greenbatch.metrics.shares import own_taken_w, slot_numbers
from greenbatch.workload import Workload

MONTH = "month"
LATER = "later"
"""What the horizon has after the last month, mostly idle power."""
MOST_MONTHS = 24
"""Longer traces are divided by years."""


class Bill(NamedTuple):
    """Of each calendar month (or year) and of the rest of the horizon, shape (months + 1,).

    NaN without a site, prices or intensities.
    """

    used_j: Floats
    """Energy used. [J]"""
    import_j: Floats
    """Energy from the grid. [J]"""
    renewable_used_j: Floats
    """Renewable energy used, at once or out of storage. [J]"""
    cost: Floats
    """Cost with the demand charge, in the currency of the site."""
    carbon_g: Floats
    """Emissions. [g]"""


BILL: Mapping[str, Callable[[Bill], Floats]] = MappingProxyType(
    {
        "month_energy_kwh": lambda bill: bill.used_j / JOULES_PER_KWH,
        "month_brown_kwh": lambda bill: bill.import_j / JOULES_PER_KWH,
        "month_renewable_share": lambda bill: np.divide(
            bill.renewable_used_j, bill.used_j, out=np.full_like(bill.used_j, np.nan), where=bill.used_j > 0
        ),
        "month_cost": lambda bill: bill.cost,
        "month_carbon_kg": lambda bill: bill.carbon_g / 1e3,
    }
)
"""Figure of a month -> function of the bill."""


class Months(NamedTuple):
    """Calendar months, or years, in trace time."""

    names: tuple[str, ...]
    """Such as ``2025-03``, or ``2025``."""
    edges_s: Floats
    """First instant of each, and the end of the last, shape (months + 1,). [s]"""

    def of(self, time_s: Floats) -> NDArray[np.int64]:
        """Number of the month of each time, shape as given; one more than the last for times after it."""
        return np.asarray(np.maximum(np.searchsorted(self.edges_s, time_s, side="right") - 1, 0))


def months_of(workload: Workload) -> Months | None:
    """The calendar months in which jobs are submitted; None if dates are not known or there are fewer than two."""
    if workload.unix_start_s is None or not len(workload):
        return None
    zone = ZoneInfo(workload.time_zone or "UTC")
    begin, end = (
        datetime.fromtimestamp(workload.unix_start_s + float(at_s), zone)
        for at_s in (workload.submit_s.min(), workload.submit_s.max())
    )
    first, last, step = 12 * begin.year + begin.month - 1, 12 * end.year + end.month - 1, 1
    if last - first + 1 > MOST_MONTHS:
        first, last, step = 12 * begin.year, 12 * end.year, 12
    if first == last:
        return None
    starts = range(first, last + step + 1, step)
    edges = [datetime(k // 12, k % 12 + 1, 1, tzinfo=zone).timestamp() - workload.unix_start_s for k in starts]
    names = tuple(f"{k // 12}" if step == 12 else f"{k // 12}-{k % 12 + 1:02d}" for k in starts[:-1])
    return Months(names, np.array(edges))


def bill(run: Measured, horizon: Horizon, months: Months) -> Bill:
    """What a run costs, emits and draws in each month of the horizon, and after the last.

    The demand charge of a month of the tariff, whose time zone may be another one, counts where its middle lies. Months
    that the horizon does not reach are NaN.
    """
    site, count = run.outcome.site, len(months.names) + 1
    unknown = np.full(count, np.nan)
    if site is None or not run.has_power:
        return Bill(*[unknown] * 5)
    from greenbatch.engine.power.costs import costs_of, rates_of

    pieces = run.pieces(horizon.start_s, horizon.end_s)
    length_s = pieces.end_s - pieces.start_s
    number = months.of(0.5 * (pieces.start_s + pieces.end_s))

    def total(power_w: Floats) -> Floats:
        return np.asarray(np.bincount(number, weights=power_w * length_s, minlength=count), dtype=np.float64)

    cost, carbon_g, grid = unknown, unknown, site.grid
    if grid is not None and pieces.start_s.size:
        slot = slot_numbers(site, pieces)
        rates, own_w = rates_of(costs_of(site))[slot % site.slots], own_taken_w(pieces)
        if grid.has_money:
            paid_w = pieces.import_w * rates[:, 0] - pieces.surplus_w * rates[:, 1] + own_w * rates[:, 2]
            charge, middle_s = demand_charges(run, horizon)
            cost = total(paid_w) + np.bincount(months.of(middle_s), weights=charge, minlength=count)
        if grid.has_carbon:
            carbon_g = total(pieces.import_w * rates[:, 3] + own_w * rates[:, 4])
    found = (total(pieces.load_w), total(pieces.import_w), total(pieces.renewable_used_w), cost, carbon_g)
    unreached = np.append(months.edges_s[:-1] >= horizon.end_s, False)
    return Bill(*(np.where(unreached, np.nan, column) for column in found))
