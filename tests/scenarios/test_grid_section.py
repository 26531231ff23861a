"""Prices, tariffs and carbon of a site, as scenarios state them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greenbatch.scenarios import Scenario, grid_schema, load_scenario
from greenbatch.scenarios.toml import write_toml

JANUARY_1 = 1704067200  # 2024, a Monday, 00:00 UTC
HEAD = f"""\
name = "ours"
[workload]
unix_start_s = {JANUARY_1}
[workload.generator]
model = "lublin"
jobs = 5
processors = 8
[workload.power]
kind = "per-processor"
[cluster]
processors = 8
"""
SYNTHETIC = '[site]\nkind = "synthetic"\ndays = 2\n'
SUN = """\
[site]
kind = "series"
align = "{align}"
[[site.sources]]
name = "solar"
kind = "power"
file = "sun.csv"
columns = ["w"]
unit = "W"
time_kind = "utc"
time_column = "t"
"""
READ = (
    'kind = "series"\nfile = "{file}"\ncolumns = ["{column}"]\nunit = "{unit}"\ntime_kind = "utc"\ntime_column = "t"\n'
)
TARIFF = """\
kind = "calendar"
unit = "ct/kWh"
periods = [
    { name = "day", value = 30, days = ["weekday"], hours = ["06:00-22:00"] },
    { name = "weekend", value = 25, days = ["weekend"], hours = ["06:00-22:00"] },
    { name = "holiday", value = 10, days = ["holiday"], hours = ["06:00-22:00"] },
    { name = "night", value = 20, hours = ["22:00-06:00"] },
]
holidays = ["01-01"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    hours = [f"2024-01-0{1 + k // 24}T{k % 24:02}:00" for k in range(48)]
    (tmp_path / "sun.csv").write_text("t,w\n" + "".join(f"{at},{k}\n" for k, at in enumerate(hours)))
    quarters = [f"2024-01-01T{k // 4:02}:{15 * (k % 4):02}" for k in range(48)]
    (tmp_path / "p.csv").write_text("t,p,g\n" + "".join(f"{at},{10 * k},{100 + k}\n" for k, at in enumerate(quarters)))
    return tmp_path


def scenario(keys: str, site: str = SYNTHETIC, **overrides: object) -> Scenario:
    Path("s.toml").write_text(HEAD + site + keys, encoding="utf-8")
    return load_scenario("s.toml", overrides=overrides)


def test_constants(folder):
    keys = """\
[site.grid]
time_zone = "Europe/Berlin"
demand_charge = 90
source_g_per_kwh = { solar = 41, wind = 11 }
import_limit_w = 5e4
[site.grid.price]
kind = "constant"
value = 250
unit = "EUR/MWh"
[site.grid.feed_in]
kind = "constant"
value = 8
unit = "ct/kWh"
[site.grid.source_price.wind]
kind = "constant"
value = 0.05
unit = "EUR/kWh"
[site.grid.carbon]
kind = "constant"
value = 1000
unit = "lb/MWh"
"""
    site = scenario(keys).site
    grid = site.grid
    assert (grid.currency, grid.demand_charge, grid.import_limit_w) == ("EUR", 90, 5e4)
    assert np.unique(grid.import_price).tolist() == [0.25]
    assert np.unique(grid.export_price) == pytest.approx([0.08])
    assert {name: np.unique(price).tolist() for name, price in grid.source_price.items()} == {"wind": [0.05]}
    assert np.unique(grid.carbon_g_per_kwh) == pytest.approx([453.59237])
    assert grid.marginal_g_per_kwh is None
    assert grid.source_g_per_kwh == {"solar": 41, "wind": 11}
    assert site.signals == {}
    assert str(site.notes[-1]) == "tariffs by the calendar: trace time 0 is 2024-01-01T00:00:00Z (Europe/Berlin)"


def test_a_site_without_a_grid_has_none(folder):
    assert scenario("").site.grid is None
    assert scenario("[site.grid]\nimport_limit_w = 1e4\n").site.grid.currency == ""


def test_what_happens_at_the_limit_is_counted_unless_jobs_are_held(folder):
    limit = "[site.grid]\nimport_limit_w = 1e4\n"
    assert scenario(limit).site.held_limit_w == np.inf
    assert scenario(limit + 'over_limit = "hold"\n').site.held_limit_w == 1e4


def test_series_enter_slots_as_means(folder):
    keys = "[site.grid]\n[site.grid.price]\n" + READ.format(file="p.csv", column="p", unit="EUR/MWh")
    keys += "[site.grid.marginal]\n" + READ.format(file="p.csv", column="g", unit="g/kWh")
    coarse = scenario(keys + "", SUN.format(align="calendar"), **{"site.step_s": 3600.0}).site
    assert coarse.slots == 12
    assert coarse.grid.import_price == pytest.approx((np.arange(12) * 40 + 15) / 1e3)
    assert coarse.grid.marginal_g_per_kwh == pytest.approx(np.arange(12) * 4 + 101.5)
    assert coarse.sources_w["solar"].tolist() == list(range(12))
    fine = scenario(keys, SUN.format(align="calendar")).site
    assert fine.step_s == 900
    assert fine.grid.import_price == pytest.approx(np.arange(48) / 1e2)
    assert set(fine.inputs) == {"sun.csv", "p.csv"}


def test_a_tariff_by_hand(folder):
    """Berlin is an hour ahead: slot 5 of UTC is 06:00. 1 January is a holiday, the 2nd a Tuesday."""
    keys = '[site.grid]\ntime_zone = "Europe/Berlin"\n[site.grid.price]\n' + TARIFF
    price = scenario(keys, SUN.format(align="calendar")).site.grid.import_price
    night, holiday, day = [0.2], [0.1], [0.3]
    assert price == pytest.approx(night * 5 + holiday * 16 + night * 8 + day * 16 + night * 3)


@pytest.mark.parametrize("align", ["trace-start", "calendar"])
def test_a_tariff_follows_the_dates_of_the_series(folder, align):
    """The workload begins on the 2nd at 06:00. With trace-start the first slot is that of the data, the 1st at 0:00."""
    keys = '[site.grid]\ntime_zone = "UTC"\n[site.grid.price]\n' + TARIFF
    start = {"workload.unix_start_s": float(JANUARY_1 + 30 * 3600)}
    site = scenario(keys, SUN.format(align=align), **start).site
    assert site.unix_start_s == JANUARY_1 + (30 * 3600 if align == "calendar" else 0)
    assert site.origin_s == (-30 * 3600 if align == "calendar" else 0)
    assert site.grid.import_price == pytest.approx([0.2] * 6 + [0.1] * 16 + [0.2] * 8 + [0.3] * 16 + [0.2] * 2)


def test_months_of_the_demand_charge(folder):
    keys = '[site.grid]\ntime_zone = "UTC"\ndemand_charge = 5\ncurrency = "EUR"\n'
    site = scenario(keys, **{"workload.unix_start_s": float(JANUARY_1 - 86_400)}).site
    assert site.grid.month.tolist() == [0] * 24 + [1] * 24


@pytest.mark.parametrize(("step_s", "said"), [(3600.0, False), (10800.0, True)])
def test_a_demand_charge_over_long_slots_is_told(folder, step_s, said):
    keys = '[site.grid]\ntime_zone = "UTC"\ndemand_charge = 5\ncurrency = "EUR"\n'
    site = scenario(keys, SUN.format(align="calendar"), **{"site.step_s": step_s}).site
    found = [note for note in site.notes if note.about == "grid.demand_charge"]
    assert [note.level for note in found] == ["change"] * said
    assert all("means over slots of 3 h" in note.what for note in found)


def test_a_second_currency_is_converted_at_a_stated_rate(folder):
    keys = "[site.grid]\nrates = { USD = 0.93 }\n[site.grid.price]\n" + READ.format(
        file="p.csv", column="p", unit="USD/MWh"
    )
    keys += '[site.grid.feed_in]\nkind = "constant"\nvalue = 0.05\nunit = "EUR/kWh"\n'
    site = scenario(keys, SUN.format(align="calendar")).site
    assert site.grid.currency == "EUR"
    assert site.grid.import_price == pytest.approx(np.arange(48) / 1e2 * 0.93)
    assert site.grid.export_price[0] == 0.05
    assert "grid.price: USD x 0.93 = EUR" in map(str, site.notes)


def test_series_that_are_used_again_are_named_with_dates(folder):
    """The carbon ends a day and a half before the sun; the jobs begin a week later."""
    keys = "[site.grid.carbon]\n" + READ.format(file="p.csv", column="g", unit="g/kWh")
    late = {"workload.unix_start_s": float(JANUARY_1 + 7 * 86_400)}
    site = scenario(keys, SUN.format(align="calendar").replace("[[", "repeat = true\n[[", 1), **late).site
    again = "outside these dates,"
    assert [str(note) for note in site.notes if again in note.what] == [
        f"solar (sun.csv) covers 2024-01-01 to 2024-01-03: {again} whole days of it again (100% of the hours)",
        f"grid.carbon (p.csv) covers 2024-01-01 to 2024-01-01T12:00: {again} all of it again (100% of the hours)",
    ]
    assert not any("cut off" in note.what for note in site.notes)
    notes = scenario(keys, SUN.format(align="trace-start").replace("[[", "repeat = true\n[[", 1)).site.notes
    cut = next(
        note for note in notes if "1.5 d at the end cut off, not covered by all sources: grid.carbon" in note.what
    )
    assert (cut.level, cut.shares) == ("warning", ((0.75, "hours"),))
    assert any(
        "carbon ends 2024-01-01T12:00; later, all series are used again from 2024-01-01 on" in str(note)
        for note in notes
    )


def test_the_resolved_scenario_builds_the_same_grid(folder):
    keys = '[site.grid]\ntime_zone = "Europe/Berlin"\n[site.grid.price]\n' + TARIFF
    keys += "[site.grid.carbon]\n" + READ.format(file="p.csv", column="g", unit="g/kWh")
    first = scenario(keys, SUN.format(align="calendar"))
    Path("again.toml").write_text(write_toml(first.resolved, lambda _: ""), encoding="utf-8")
    again = load_scenario("again.toml")
    assert again.site.grid.import_price.tolist() == first.site.grid.import_price.tolist()
    assert again.site.grid.carbon_g_per_kwh.tolist() == first.site.grid.carbon_g_per_kwh.tolist()


def test_a_format_says_what_is_not_given(folder):
    Path("e.csv").write_text(
        "Datetime (UTC),Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA)\n"
        "2024-01-01 00:00:00,200.5,250\n2024-01-01 01:00:00,210,260\n",
        encoding="utf-8",
    )
    keys = '[site.grid.carbon]\nkind = "series"\nfile = "e.csv"\nformat = "electricity-maps"\n'
    assert scenario(keys, SUN.format(align="calendar")).site.grid.carbon_g_per_kwh.tolist() == [250, 260]
    keys += 'columns = ["Carbon Intensity gCO₂eq/kWh (direct)"]\n'
    assert scenario(keys, SUN.format(align="calendar")).site.grid.carbon_g_per_kwh.tolist() == [200.5, 210]


def test_real_prices_and_carbon_of_germany(greenbatch_data, folder):
    price = greenbatch_data("price/sustaincluster_DE-LU_2023_price_local_hourly.csv.gz")
    carbon = greenbatch_data("carbon/sustaincluster_DE-LU_2023_carbon_hourly.csv.gz")
    keys = f"""\
[site.grid]
time_zone = "Europe/Berlin"
demand_charge = 80
[site.grid.price]
kind = "series"
file = "{price}"
columns = ["Price (EUR/MWh)"]
unit = "EUR/MWh"
time_kind = "local"
time_zone = "Europe/Berlin"
time_column = "Datetime"
clock_changes = "fill"
[site.grid.carbon]
kind = "series"
file = "{carbon}"
format = "electricity-maps"
"""
    year = {"workload.unix_start_s": 1672531200.0, "site.days": 365, "site.align": "calendar"}
    site = scenario(keys, **year).site
    first, end = site.stated
    assert (end - first, site.slot(0), site.slots) == (8759, first, 1461 * 24)
    assert site.grid.import_price[first : first + 2] == pytest.approx([-0.00107, -0.00147])  # 01:00 and 02:00 in Berlin
    assert site.grid.carbon_g_per_kwh[first : first + 2] == pytest.approx([185.8, 185.7])
    assert site.grid.import_price.min() == pytest.approx(-0.5)


def test_the_time_of_a_format_can_be_replaced() -> None:
    """Then its zone and its clock changes no longer count."""
    keys = {"kind": "series", "file": "p.csv", "format": "entso-e"}
    local = grid_schema.SeriesValue(**keys)
    assert (local.time_zone, local.clock_changes) == ("Europe/Brussels", "fill")
    utc = grid_schema.SeriesValue(**keys, time_kind="utc")
    assert utc.time_zone is None
    assert utc.clock_changes != "fill"
    own = grid_schema.SeriesValue(**keys, time_kind="local", time_zone="+01:00")
    assert (own.time_zone, own.clock_changes) == ("+01:00", "fill")
