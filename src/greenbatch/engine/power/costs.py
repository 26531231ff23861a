"""What energy costs and emits in each slot of a series, and what that means for storage and for planners."""

from __future__ import annotations

import numpy as np

from greenbatch.energy import Site
from greenbatch.energy.units import JOULES_PER_KWH
from greenbatch.engine.records import Floats
from greenbatch.engine.views.interface import Costs


def no_costs(slots: int) -> Costs:
    """Energy that costs and emits nothing, for a number of slots."""
    zero = np.zeros(slots)
    return Costs(zero, zero, zero, zero, zero, zero, 0.0, 0.0)


def costs_of(site: Site) -> Costs:
    """What energy costs and emits in each slot of a site; 0 without a grid.

    What is used or stored of the own sources is paid for at the mean price of what they generate in the slot. Surplus
    is sold where that brings money, and curtailed otherwise.
    """
    grid, zero = site.grid, np.zeros(site.slots)
    if grid is None:
        return no_costs(site.slots)
    shares = {name: np.divide(w, site.renewable_w, out=zero.copy(), where=w > 0) for name, w in site.sources_w.items()}
    own = sum((shares[name] * price for name, price in grid.source_price.items()), zero)
    own_g = sum((shares[name] * carbon for name, carbon in grid.source_g_per_kwh.items()), zero)
    grid_g = zero if grid.carbon_g_per_kwh is None else grid.carbon_g_per_kwh
    marginal_g = grid_g if grid.marginal_g_per_kwh is None else grid.marginal_g_per_kwh
    stated = slice(*site.stated) if site.stated else slice(None)
    usual, usual_g = float(np.abs(grid.import_price[stated]).mean()), float(np.abs(marginal_g[stated]).mean())
    sold = np.maximum(grid.export_price, 0.0)
    return Costs(grid.import_price, sold, own, grid_g, marginal_g, own_g, usual, usual_g)


def rates_of(costs: Costs) -> Floats:
    """`balance.Rates` of each slot, shape (slots, 5)."""
    columns = (
        costs.import_price_per_kwh, costs.export_price_per_kwh, costs.own_price_per_kwh, costs.carbon_g_per_kwh,
        costs.own_g_per_kwh,
    )  # fmt: skip
    return np.ascontiguousarray(np.stack(columns, axis=1) / JOULES_PER_KWH)


def relative_to_usual(costs: Costs) -> Floats:
    """Price of a joule from the grid and of one of the own surplus, and the carbon of both, shape (slots, 4).

    Relative to the mean absolute price and intensity, which no negative prices bring near 0; all 0 where that is 0.
    Surplus that is used costs what it would earn if sold, and carbon of the grid is that at the margin.
    """
    kept = costs.export_price_per_kwh + costs.own_price_per_kwh
    usual = costs.usual_price_per_kwh, costs.usual_g_per_kwh
    price, carbon = (1.0 / each if each > 0.0 else 0.0 for each in usual)
    prices = costs.import_price_per_kwh * price, kept * price
    return np.stack((*prices, costs.marginal_g_per_kwh * carbon, costs.own_g_per_kwh * carbon), axis=1)


def weighed(costs: Costs, carbon_price_per_kg: float) -> Floats:
    """What a joule weighs in each slot, see `arbitrage.BUY`, shape (slots, 3).

    Emissions are those at the margin, if they are known.
    """
    rates, grid_g = rates_of(costs), costs.marginal_g_per_kwh / JOULES_PER_KWH
    per_g = carbon_price_per_kg / 1e3
    bought = rates[:, 0] + per_g * grid_g
    kept = rates[:, 1] + rates[:, 2] + per_g * rates[:, 4]
    return np.ascontiguousarray(np.stack((bought, kept, rates[:, 1]), axis=1))
