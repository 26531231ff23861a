"""What a run costs and emits, and what storage does in it; mostly over the scenario's horizon.

Money is in the currency of the site (`energy.Grid.currency`), emissions are CO2 equivalents; NaN if the site states no
prices, no intensities or no storage. The horizon depends on the window alone, so cheap schedules are not long ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from greenbatch.energy.slots import interval_at
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.metrics.horizon import Horizon
from greenbatch.metrics.jobs import Floats
from greenbatch.metrics.measured import Measured
from greenbatch.metrics.registry import metric
from greenbatch.metrics.shares import Shares, shares_of

if TYPE_CHECKING:
    from greenbatch.energy import Grid, Storage
    from greenbatch.engine.accounts import Books

MONEY = "currency"
"""Unit of money in the registry: that of the site, whose name reports show."""


def _over(run: Measured, horizon: Horizon) -> Books | None:
    return run.books_over(horizon.start_s, horizon.end_s)


def _grid(run: Measured) -> Grid | None:
    return None if run.outcome.site is None else run.outcome.site.grid


def _storage(run: Measured) -> Storage | None:
    return None if run.outcome.site is None else run.outcome.site.storage


def _per_kwh(amount: float, run: Measured, horizon: Horizon) -> float:
    books = _over(run, horizon)
    return amount / (books.load_j / JOULES_PER_KWH) if books is not None and books.load_j > 0 else np.nan


@metric("cost of energy", MONEY)
def energy_cost(run: Measured) -> float:
    """Cost of energy from the first start to the last end. [currency], any sign; without the demand charge.

    ``integral of (import * price + own energy used or stored * its price - surplus * feed-in)``. Short schedules cost
    less here even if jobs cost more: compare `horizon_cost`. Source: Le Hai et al. 2025, section 3.1.
    """
    grid = _grid(run)
    return np.nan if run.books is None or grid is None or not grid.has_money else run.books.cost


@metric("cost of energy per kWh", f"{MONEY}/kWh")
def energy_cost_per_kwh(run: Measured) -> float:
    """Cost of energy per energy used, from the first start to the last end. [currency/kWh], any sign.

    ``energy_cost / energy_kwh``. Source: Le Hai et al. 2025, section 3.2 (CE); their Eq. 3 (f2) has imports alone.
    """
    cost = energy_cost(run)
    return cost / run.energy_j * JOULES_PER_KWH if run.energy_j > 0 and np.isfinite(cost) else np.nan


@metric("carbon", "kg")
def carbon_kg(run: Measured) -> float:
    """Emissions from the first start to the last end. [kg], >= 0.

    ``integral of (import * average intensity + own energy used or stored * its life-cycle factor)``. Not in the papers.
    """
    grid = _grid(run)
    if run.books is None or grid is None or not grid.has_carbon:
        return np.nan
    return run.books.carbon_g / 1e3


@metric("peak of imports", "W", scope="horizon")
def horizon_peak_import_w(run: Measured, horizon: Horizon) -> float:
    """Highest power from the grid over the scenario's horizon, as the mean of a slot of the site. [W], >= 0.

    Demand charges are billed on means over a quarter of an hour to an hour, not on the highest instant.
    Not in the papers.
    """
    peaks_w = run.import_w(horizon.start_s, horizon.end_s)
    return np.nan if peaks_w is None else float(peaks_w.max(initial=0.0))


@metric("imports above the limit", "kWh", scope="horizon")
def horizon_over_limit_kwh(run: Measured, horizon: Horizon) -> float:
    """Energy from the grid above the limit of the connection over the scenario's horizon. [kWh], >= 0; NaN without one.

    ``integral of max(0, import - import_limit_w)``. Jobs are held for the limit under
    ``over_limit = "hold"``; otherwise schedulers do not know it. Not in the papers.
    """
    site = run.outcome.site
    if site is None or site.grid is None or not np.isfinite(site.grid.import_limit_w) or not run.has_power:
        return np.nan
    pieces = run.pieces(horizon.start_s, horizon.end_s)
    over_w = np.maximum(pieces.import_w - site.grid.import_limit_w, 0.0)
    return float(over_w @ (pieces.end_s - pieces.start_s)) / JOULES_PER_KWH


@metric("demand charge over the horizon", MONEY, scope="horizon")
def horizon_demand_charge(run: Measured, horizon: Horizon) -> float:
    """Price of the highest import of each calendar month over the scenario's horizon. [currency], >= 0.

    ``demand_charge * sum over months of max import in kW``, imports as means over the slots of the site.
    Not in the papers.
    """
    grid = _grid(run)
    if grid is None or not grid.has_money or not run.has_power:
        return np.nan
    return float(demand_charges(run, horizon)[0].sum())


def demand_charges(run: Measured, horizon: Horizon) -> tuple[Floats, Floats]:
    """The charge of each month of the tariff that the horizon touches, and the middle of its part in it. [currency, s]

    Both of shape (months,), empty without prices or power.
    """
    site, peaks_w = run.outcome.site, run.import_w(horizon.start_s, horizon.end_s)
    if site is None or site.grid is None or peaks_w is None or not peaks_w.size:
        return np.zeros(0), np.zeros(0)
    slot = int(interval_at(horizon.start_s, site.origin_s, site.step_s)) + np.arange(peaks_w.size)
    _, month, count = np.unique(site.month_at(slot), return_inverse=True, return_counts=True)
    highest_w = np.zeros(count.size)
    np.maximum.at(highest_w, month, peaks_w)
    middle_s = site.origin_s + site.step_s * (np.bincount(month, weights=slot) / count + 0.5)
    return site.grid.demand_charge * highest_w / 1e3, middle_s


def shares_over(run: Measured, horizon: Horizon | None = None) -> Shares:
    """Energy, cost and emissions of each job and of what belongs to none, over a horizon or from the first start to the
    last end; without a site always the latter.

    Of jobs alone where the power of one, or that of the idle pool, is not known.
    """
    if horizon not in run.shares:
        run.shares[horizon] = _shares_over(run, horizon)
    return run.shares[horizon]


def _shares_over(run: Measured, horizon: Horizon | None) -> Shares:
    site = run.outcome.site
    if not run.has_power or (site is None and not run.outcome.cluster.on_nodes):
        unknown = np.full(len(run.jobs), np.nan)
        return Shares(run.per_job("energy_j"), unknown, unknown, ())
    if site is None or horizon is None:
        return shares_of(run.outcome, run.pieces())
    charge = float(demand_charges(run, horizon)[0].sum())
    return shares_of(run.outcome, run.pieces(horizon.start_s, horizon.end_s), charge)


@metric("cost over the horizon", MONEY, scope="horizon")
def horizon_cost(run: Measured, horizon: Horizon) -> float:
    """Cost of energy from the first submission to the end of the scenario's horizon. [currency], any sign.

    ``integral of (import * price + own energy used or stored * its price - surplus * feed-in) + demand charge``; less
    than 0 if more is earned than paid. Surplus is curtailed while feeding in would cost money. What storage holds at
    the end is not credited (`horizon_stored_kwh`). Source: Le Hai et al. 2025, section 3.1, for imports and own energy.
    """
    books, grid = _over(run, horizon), _grid(run)
    if books is None or grid is None or not grid.has_money:
        return np.nan
    return books.cost + horizon_demand_charge(run, horizon)


@metric("cost per kWh", f"{MONEY}/kWh", scope="horizon")
def horizon_cost_per_kwh(run: Measured, horizon: Horizon) -> float:
    """Cost over the horizon per energy used over it. [currency/kWh], any sign.

    ``horizon_cost / horizon_energy_kwh``. It falls where schedules are stretched: compare the cost too. Source: Le Hai
    et al. 2025, Eq. 3 (f2), over the horizon instead of the schedule.
    """
    return _per_kwh(horizon_cost(run, horizon), run, horizon)


@metric("carbon over the horizon", "kg", scope="horizon")
def horizon_carbon_kg(run: Measured, horizon: Horizon) -> float:
    """Emissions from the first submission to the end of the scenario's horizon. [kg], >= 0.

    ``integral of (import * average intensity + own energy used or stored * its life-cycle factor)``. Not in the papers.
    """
    books, grid = _over(run, horizon), _grid(run)
    if books is None or grid is None or not grid.has_carbon:
        return np.nan
    return books.carbon_g / 1e3


@metric("carbon per kWh", "g/kWh", scope="horizon")
def horizon_carbon_g_per_kwh(run: Measured, horizon: Horizon) -> float:
    """Emissions over the horizon per energy used over it. [g/kWh], >= 0. Not in the papers."""
    return _per_kwh(1e3 * horizon_carbon_kg(run, horizon), run, horizon)


@metric("carbon per job", "g", scope="horizon")
def horizon_carbon_g_per_job(run: Measured, horizon: Horizon) -> float:
    """Emissions over the horizon per job of the window, idle power included. [g], >= 0. Not in the papers."""
    return 1e3 * horizon_carbon_kg(run, horizon) / len(run.jobs) if len(run.jobs) else np.nan


@metric("self-consumption", "-", "higher", scope="horizon")
def horizon_self_consumption(run: Measured, horizon: Horizon) -> float:
    """Share of the renewable energy generated that is used or stored over the horizon. [-], in [0, 1].

    NaN if none is generated. Not in the papers.
    """
    books = _over(run, horizon)
    if books is None or books.renewable_j <= 0:
        return np.nan
    taken_j = books.renewable_used_j - books.discharged_renewable_j + books.charged_renewable_j
    return min(taken_j / books.renewable_j, 1.0)


@metric("autarky", "-", "higher", scope="horizon")
def horizon_autarky(run: Measured, horizon: Horizon) -> float:
    """Share of the energy used over the horizon that is not imported. [-], any sign; NaN if none is used.

    ``1 - imports / energy used``, at most 1; less than 0 if storage imports more than the load uses. Not in the papers.
    """
    books = _over(run, horizon)
    return 1.0 - books.grid_j / books.load_j if books is not None and books.load_j > 0 else np.nan


@metric("cycles of storage", "-", "neither", scope="horizon")
def horizon_storage_cycles(run: Measured, horizon: Horizon) -> float:
    """Full cycles of the usable capacity over the horizon. [-], >= 0.

    ``energy withdrawn from storage / usable capacity``. Not in the papers.
    """
    books, storage = _over(run, horizon), _storage(run)
    if books is None or storage is None or storage.usable_j <= 0:
        return np.nan
    return books.discharged_j / storage.discharge_efficiency / storage.usable_j


@metric("energy stored at the end of the horizon", "kWh", "neither", scope="horizon")
def horizon_stored_kwh(run: Measured, horizon: Horizon) -> float:
    """Energy above the lowest state of charge at the end of the horizon. [kWh], >= 0. Not in the papers."""
    if _over(run, horizon) is None or _storage(run) is None:
        return np.nan
    stored_j = run.pieces(horizon.start_s, horizon.end_s).stored_j
    return float(stored_j[-1]) / JOULES_PER_KWH if stored_j.size else np.nan


@metric("losses of storage", "kWh", scope="horizon")
def horizon_storage_loss_kwh(run: Measured, horizon: Horizon) -> float:
    """Energy lost in charging, discharging and self-discharge over the horizon. [kWh], >= 0.

    Not in the papers.
    """
    books, storage = _over(run, horizon), _storage(run)
    if books is None or storage is None:
        return np.nan
    left_kwh = horizon_stored_kwh(run, horizon) - storage.initial_j / JOULES_PER_KWH
    return (books.charged_j - books.discharged_j) / JOULES_PER_KWH - left_kwh
