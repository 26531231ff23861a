"""The grid of a site: its fields, months and checks."""

from __future__ import annotations

import re

import numpy as np
import pytest

from greenbatch.energy import Grid, Series, Site, combine
from greenbatch.errors import InputError

PRICE = np.array([0.1, -0.2, 0.3])


def grid(**fields):
    return Grid(**{"currency": "EUR", "import_price": PRICE, **fields})


def test_one_number_holds_for_every_slot():
    found = grid(export_price=np.array([0.05]), source_price={"sun": [0.01]}, carbon_g_per_kwh=np.array([400.0]))
    assert found.export_price.tolist() == [0.05] * 3
    assert found.source_price["sun"].tolist() == [0.01] * 3
    assert found.carbon_g_per_kwh.tolist() == [400] * 3
    assert found.marginal_g_per_kwh is None
    assert found.month.tolist() == [0, 0, 0]
    assert (found.slots, found.months, found.import_limit_w) == (3, 1, np.inf)


def test_arrays_cannot_be_written_to():
    found = grid(source_price={"sun": PRICE}, carbon_g_per_kwh=np.full(3, 1.0))
    for column in (found.import_price, found.export_price, found.source_price["sun"], found.month,
                   found.carbon_g_per_kwh):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_without_money():
    assert not Grid(import_price=np.zeros(3), carbon_g_per_kwh=np.full(3, 400.0)).has_money
    with pytest.raises(InputError, match=r"grid.currency: is missing"):
        Grid(import_price=np.zeros(3), demand_charge=5.0)
    assert grid().has_money


def test_months_of_a_repeated_series_with_dates_are_those_of_the_calendar():
    """Three days from 30 January in Berlin, repeated: two months in a month's time, not one per pass."""
    prices = {"import_price": np.ones(3), "currency": "EUR", "month": np.array([0, 0, 1])}
    parts = {"name": "s", "step_s": 86_400.0, "sources_w": {"solar": np.ones(3)}, "repeat": True}
    dated = Site(**parts, unix_start_s=1706569200.0, grid=Grid(**prices, time_zone="Europe/Berlin"))
    month = dated.month_at(np.arange(-1, 31))
    assert (month - month[0]).tolist() == [0] * 3 + [1] * 29
    bare = Site(**parts, grid=Grid(**prices))
    assert bare.month_at(np.arange(6)).tolist() == [0, 0, 1, 2, 2, 3]


def test_every_pass_of_a_repeated_series_has_its_own_months():
    found = grid(month=np.array([0, 1, 1]))
    assert found.month_at(np.arange(-3, 7)).tolist() == [-2, -1, -1, 0, 1, 1, 2, 3, 3, 4]
    assert found.months == 2


def test_what_is_plausible_depends_on_the_currency():
    assert Grid(currency="JPY", import_price=np.array([251.0])).import_price[0] == 251  # Tokyo, January 2021
    with pytest.raises(InputError, match=r"slot 0 is 251 EUR/kWh \(plausible: -10 to 100 EUR/kWh"):
        Grid(currency="EUR", import_price=np.array([251.0]))


WRONG = [
    ({"currency": "EURO"}, "grid.currency: is 'EURO' (use one of EUR, USD"),
    ({"import_price": np.zeros(0)}, "grid.import_price: has no slots"),
    ({"import_price": np.array([np.nan])}, "grid.import_price: slot 0 is nan EUR/kWh (plausible: -10 to 100 EUR/kWh"),
    ({"import_price": np.array([0.1, 300.0])}, "grid.import_price: slot 1 is 300 EUR/kWh"),
    ({"export_price": np.zeros(2)}, "grid.export_price: does not match the slots (give 3 values"),
    ({"export_price": np.full(3, -11.0)}, "grid.export_price: slot 0 is -11 EUR/kWh"),
    ({"source_price": {"sun": np.zeros(4)}}, "grid.source_price.sun: does not match the slots"),
    ({"source_price": {"sun": np.full(3, np.inf)}}, "grid.source_price.sun: slot 0 is inf EUR/kWh"),
    ({"carbon_g_per_kwh": np.full(3, -1.0)}, "grid.carbon_g_per_kwh: slot 0 is -1 g/kWh (plausible: 0 to 3000 g/kWh"),
    ({"marginal_g_per_kwh": np.full(3, 4e5)}, "grid.marginal_g_per_kwh: slot 0 is 400000 g/kWh"),
    ({"source_g_per_kwh": {"sun": -1.0}}, "grid.source_g_per_kwh.sun: is -1.0 (give a number from 0 to 3000)"),
    ({"demand_charge": -1.0}, "grid.demand_charge: is -1.0 (give a number from 0 to 10000)"),
    ({"demand_charge": float("nan")}, "grid.demand_charge: is nan"),
    ({"demand_charge": "80"}, "grid.demand_charge: is '80'"),
    ({"month": np.array([0, 2, 2])}, "grid.month: does not number the months"),
    ({"month": np.array([1, 1, 1])}, "grid.month: does not number the months"),
    ({"month": np.array([0, 1, 0])}, "grid.month: does not number the months"),
    ({"month": np.array([0.0, 0.0, 1.0])}, "grid.month: does not number the months"),
    ({"month": np.array([0, 0])}, "grid.month: does not number the months"),
    ({"import_limit_w": 0.0}, "grid.import_limit_w: is 0.0 (it must be > 0)"),
    ({"import_limit_w": float("nan")}, "grid.import_limit_w: is nan"),
]


@pytest.mark.parametrize(("fields", "says"), WRONG, ids=[row[1] for row in WRONG])
def test_refused(fields, says):
    with pytest.raises(InputError, match=re.escape(says)):
        grid(**fields)


def site(**fields):
    return Site(name="here", step_s=3600.0, sources_w={"sun": np.ones(3)}, **fields)


def test_a_grid_belongs_to_its_site():
    found = site(grid=grid(source_price={"sun": PRICE}))
    assert "import 0.06667 EUR/kWh (-0.2 to 0.3)" in found._facts()["grid"]
    for wrong, says in [
        (Grid(import_price=np.zeros(4)), "site.grid: has 4 slots, the site 3"),
        (grid(source_price={"wind": PRICE}), "site.grid.source_price: the site has no source 'wind' (use one of sun)"),
        (grid(source_g_per_kwh={"wind": 11.0}), "site.grid.source_g_per_kwh: the site has no source 'wind'"),
        (3, "site.grid: is 3 (give a Grid)"),
    ]:
        with pytest.raises(InputError, match=re.escape(says)):
            site(grid=wrong)


def test_a_price_has_a_currency_and_nothing_else_has():
    steps = {"values": np.zeros(1), "step_s": 1.0}
    with pytest.raises(InputError, match=r"p.currency: is ''"):
        Series(name="p", quantity="price_per_kwh", **steps)
    with pytest.raises(InputError, match=r"p.currency: is 'EUR'"):
        Series(name="p", quantity="power_w", currency="EUR", **steps)


def power(**fields):
    return Series(**{"name": "sun", "quantity": "power_w", "values": np.ones(8760), "step_s": 3600.0, **fields})


@pytest.mark.parametrize(
    ("fields", "align", "workload_s", "zero_s"),
    [
        ({"clock": "unix", "start_s": 1e9}, "trace-start", 5e8, 1e9),
        ({"clock": "unix", "start_s": 1e9}, "calendar", 1e9 + 7200, 1e9 + 7200),
        ({}, "trace-start", 5e8, 5e8),
        ({}, "trace-start", None, None),
        ({"clock": "typical-year", "utc_offset_s": 3600.0}, "trace-start", 5e8, 978303600.0),  # 31 Dec 2000 23:00 UTC
        ({"clock": "typical-year"}, "calendar", 5e8, 5e8),
    ],
)
def test_the_date_of_trace_time_0(fields, align, workload_s, zero_s):
    found = combine("here", {"sun": power(**fields)}, align=align, unix_start_s=workload_s)
    assert found.unix_start_s == zero_s
