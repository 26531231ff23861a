"""Dispatch of storage against the optimum of a linear program: no rule beats it, and arbitrage comes close."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from cases import workload
from numpy.typing import NDArray
from plain import Job
from scipy.optimize import linprog
from scipy.sparse import coo_array

from greenbatch.cluster import Cluster
from greenbatch.energy import Grid, Site, Storage
from greenbatch.engine.accounts import Books, books, power_segments
from greenbatch.engine.rules import Rules
from greenbatch.engine.simulate import simulate
from greenbatch.schedulers import scheduler

Floats = NDArray[np.float64]
HOUR_S, J_PER_KWH = 3600.0, 3.6e6
LOAD_W = 3000.0
DAYS = 7
HOUR = np.arange(24 * DAYS) % 24


class Case(NamedTuple):
    """A site with a constant load, and its battery."""

    import_price: Floats
    export_price: Floats
    renewable_w: Floats
    storage: Storage
    own_price: float = 0.0
    """What a kWh of the own source costs."""


def battery(**changes: float | str) -> Storage:
    return replace(Storage(capacity_kwh=10.0, charge_w=2500.0, discharge_w=2500.0, dispatch="greedy"), **changes)


def sun_w(peak_w: float) -> Floats:
    """Sun on days of different weather."""
    day_w = np.maximum(np.sin((HOUR - 6) / 12 * np.pi), 0.0) * peak_w
    return day_w * np.repeat(np.random.default_rng(2023).uniform(0.2, 1.0, DAYS), 24)


def market(seed: int) -> Floats:
    """Prices with a daily shape, noise and a few hours below zero. [1/kWh]"""
    noise = np.random.default_rng(seed).normal(0.0, 0.02, HOUR.size)
    return 0.12 + 0.08 * np.cos((HOUR - 19) / 24 * 2 * np.pi) + noise


ZERO = np.zeros(HOUR.size)
CASES = {
    "day and night": Case(np.where((HOUR >= 7) & (HOUR < 21), 0.30, 0.12), ZERO, ZERO, battery()),
    "sun without feed-in": Case(ZERO + 0.3, ZERO, sun_w(9000.0), battery(charge_w=4000.0)),
    "sun with feed-in": Case(np.where(HOUR < 6, 0.15, 0.35), ZERO + 0.08, sun_w(9000.0), battery(capacity_kwh=20.0)),
    "own sun has its price": Case(np.where(HOUR < 6, 0.02, 0.2), ZERO, sun_w(9000.0), battery(capacity_kwh=20.0), 0.1),
    "a market": Case(market(1), ZERO, ZERO, battery(charge_efficiency=0.9, discharge_efficiency=0.9)),
    "a market, sun and a leaking battery": Case(
        market(2), np.maximum(market(2) - 0.05, 0.0), sun_w(6000.0),
        battery(self_discharge_per_day=0.1, initial_charge=0.5, capacity_kwh=15.0, wear_per_kwh=0.01),
    ),
}  # fmt: skip


def site_of(case: Case, dispatch: str) -> Site:
    own = {"solar": 0.0 * case.import_price + case.own_price}
    grid = Grid(currency="EUR", import_price=case.import_price, export_price=case.export_price, source_price=own)
    limit_w = 3500.0 if dispatch == "peak-shaving" else None
    return Site(
        name="p", step_s=HOUR_S, sources_w={"solar": case.renewable_w}, grid=grid,
        storage=replace(case.storage, dispatch=dispatch, limit_w=limit_w),
    )  # fmt: skip


@cache
def result(name: str, dispatch: str) -> tuple[float, float]:
    """Cost, with that of ageing, and energy that is left in the battery. [J]"""
    case = CASES[name]
    span_s = HOUR_S * HOUR.size
    jobs = workload([Job(0.0, span_s, span_s, 1, LOAD_W)])
    cluster = Cluster.pooled(1, idle_power_per_machine_w=0.0)
    outcome = simulate(jobs, cluster, site_of(case, dispatch), Rules(), scheduler("fcfs+none"))
    found: Books = books(outcome)
    ageing = case.storage.wear_per_kwh * found.discharged_j / J_PER_KWH
    return found.cost + ageing, float(power_segments(outcome).stored_j[-1])


def optimum(case: Case, left_j: float) -> float:
    """Least cost of a schedule of the battery that leaves at least so much in it: a linear program, by HiGHS.

    Variables per hour: import, surplus of the sun, charge, discharge, what of it is sold [kW] and the energy in the
    battery at the end [kWh].
    """
    n, storage = HOUR.size, case.storage
    hours = np.arange(n)
    net_kw = (LOAD_W - case.renewable_w) / 1e3
    leak = -np.log1p(-storage.self_discharge_per_day) / 24.0
    keep = np.exp(-leak)
    while_s = (1.0 - keep) / leak if leak > 0 else 1.0
    column = {name: hours + k * n for k, name in enumerate(("buy", "spare", "charge", "discharge", "sold", "stored"))}
    entries = [
        (hours, column["buy"], 1.0), (hours, column["spare"], -1.0), (hours, column["sold"], -1.0),
        (hours, column["charge"], -1.0), (hours, column["discharge"], 1.0), (n + hours, column["stored"], 1.0),
        (n + hours[1:], column["stored"][:-1], -keep),
        (n + hours, column["charge"], -storage.charge_efficiency * while_s),
        (n + hours, column["discharge"], while_s / storage.discharge_efficiency),
    ]  # fmt: skip
    rows = np.concatenate([row for row, _, _ in entries])
    columns = np.concatenate([each for _, each, _ in entries])
    values = np.concatenate([np.full(row.size, value) for row, _, value in entries])
    begin = np.zeros(n)
    begin[0] = keep * storage.initial_j / J_PER_KWH
    most_kwh = storage.usable_j / J_PER_KWH
    bounds = [(0, None)] * n + [(0, sun) for sun in case.renewable_w / 1e3]
    bounds += [(0, storage.charge_w / 1e3)] * n + [(0, storage.discharge_w / 1e3)] * n + [(0, None)] * n
    bounds += [(0, most_kwh)] * (n - 1) + [(left_j / J_PER_KWH, most_kwh)]
    spared = -(case.export_price + case.own_price)
    cost = np.concatenate([case.import_price, spared, ZERO, ZERO + storage.wear_per_kwh, -case.export_price, ZERO])
    one, given = np.ones(n), np.concatenate([column["sold"], column["discharge"]])  # no more is sold than is given
    sold = coo_array((np.concatenate([one, -one]), (np.tile(hours, 2), given)), shape=(n, 6 * n))
    found = linprog(
        cost, A_ub=sold, b_ub=ZERO, A_eq=coo_array((values, (rows, columns)), shape=(2 * n, 6 * n)),
        b_eq=np.concatenate([net_kw, begin]), bounds=bounds,
    )  # fmt: skip
    assert found.success
    return float(found.fun + case.own_price * case.renewable_w.sum() / 1e3)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dispatch", ["greedy", "peak-shaving", "price-arbitrage"])
def test_no_rule_beats_the_optimum(name: str, dispatch: str) -> None:
    cost, left_j = result(name, dispatch)
    best = optimum(CASES[name], left_j)
    assert cost >= best - 1e-6 * abs(best)


@pytest.mark.parametrize("name", CASES)
def test_price_arbitrage_comes_within_two_percent_of_the_optimum(name: str) -> None:
    """Of the optimum that leaves nothing in the battery: the series end, so what is left is lost."""
    cost, _ = result(name, "price-arbitrage")
    best = optimum(CASES[name], 0.0)
    assert cost <= best + 0.02 * abs(best)


def test_price_arbitrage_gives_back_what_only_one_day_of_sun_stored() -> None:
    """The price is constant, so waiting gains nothing. What is stored comes back within the first night."""
    price, hour = np.full(10 * 24, 0.3), np.arange(10 * 24)
    sun = np.where((hour >= 8) & (hour < 16), 9000.0, 0.0)
    repeated = replace(site_of(Case(price, 0 * price, sun, battery()), "price-arbitrage"), repeat=True)
    jobs = workload([Job(0.0, 2 * 86_400.0, 2 * 86_400.0, 1, LOAD_W)])
    cluster = Cluster.pooled(1, idle_power_per_machine_w=0.0)
    outcome = simulate(jobs, cluster, repeated, Rules(), scheduler("fcfs+none"))
    assert books(outcome).charged_j > J_PER_KWH
    assert power_segments(outcome).stored_j[-1] == 0.0


@pytest.mark.parametrize("name", CASES)
def test_the_battery_matters_in_every_case(name: str) -> None:
    """Otherwise the other tests could not fail."""
    best, case = optimum(CASES[name], 0.0), CASES[name]
    none = optimum(case._replace(storage=replace(case.storage, capacity_kwh=0.0)), 0.0)
    assert best < 0.97 * none
