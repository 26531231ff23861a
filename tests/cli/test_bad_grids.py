"""Wrong prices, tariffs and carbon of a site, through the command line: one line that helps, or a counted repair."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenbatch.cli import main
from greenbatch.scenarios import load_scenario

HEAD = """\
name = "ours"
[workload]
unix_start_s = 1704067200
[workload.generator]
model = "lublin"
jobs = 5
processors = 8
[workload.power]
kind = "per-processor"
[cluster]
processors = 8
[site]
kind = "synthetic"
days = 3
"""
SERIES_SITE = """\
kind = "series"
align = "calendar"
[[site.sources]]
name = "solar"
kind = "pv"
file = "sun.csv"
columns = ["ghi"]
unit = "W/m2"
time_kind = "utc"
time_column = "t"
area_m2 = 20
"""
READ = """\
[site.grid.price]
kind = "series"
file = "p.csv"
columns = ["p"]
unit = "EUR/MWh"
time_kind = "utc"
time_column = "t"
"""
LOCAL = READ.replace('"utc"', '"local"\ntime_zone = "Europe/Berlin"')
CARBON = READ.replace("price", "carbon").replace("EUR/MWh", "g/kWh")
CONSTANT = '[site.grid.price]\nkind = "constant"\nvalue = 0.3\nunit = "EUR/kWh"\n'
FEED_IN = '[site.grid.feed_in]\nkind = "constant"\nvalue = 8\nunit = "ct/kWh"\n'
DAY = '[[site.grid.price.periods]]\nname = "day"\nvalue = 0.3\nhours = ["06:00-22:00"]\n'
NIGHT = '[[site.grid.price.periods]]\nname = "night"\nvalue = 0.2\nhours = ["22:00-06:00"]\n'
ZONE = '[site.grid]\ntime_zone = "Europe/Berlin"\n'
CALENDAR = '[site.grid.price]\nkind = "calendar"\nunit = "EUR/kWh"\n'
TARIFF = ZONE + CALENDAR


def hourly(value: object = 50, *, start: str = "2024-01-01", days: int = 4, but: dict[int, str] | None = None) -> str:
    """A table of hours with one value, some rows replaced (0-based) or, by an empty text, left out."""
    day = int(start[-2:])
    rows = [f"{start[:-2]}{day + k // 24:02} {k % 24:02}:00,{value}" for k in range(24 * days)]
    for row, text in (but or {}).items():
        rows[row] = text
    return "\n".join(["t,p", *(row for row in rows if row)]) + "\n"


SPRING = hourly(start="2024-03-29", days=3)  # clocks of Berlin skip 02:00 on 31 March
AUTUMN = hourly(start="2024-10-26", days=3)
FILES = [  # keys, content of p.csv, what is said
    (READ, "", "p.csv: is empty"),
    (READ, "t,p\n", "p.csv: has no data rows"),
    (READ, hourly().replace("t,p", "t,price"), "p.csv, line 1: p: no such column (the file has t, price)"),
    (READ, hourly().replace(",", ";"), "p.csv, line 1: p: no such column (the file has t;p: set delimiter = "),
    (READ, hourly(but={5: ""}), "line 7: t: a gap of 7200 s after 2024-01-01T04:00:00Z, where 3600 s are usual (fill"),
    (READ, hourly(but={5: "2024-01-01 05:00,"}), "p.csv, line 7: p: the value is missing (fill it, or set gaps"),
    (READ, hourly(but={5: "2024-01-01 05:00,NaN"}), "p.csv, line 7: p: the value is missing"),
    (READ, hourly(but={5: "2024-01-01 05:00,n/e"}), "p.csv, line 7: p: 'n/e' is not a number (correct or empty"),
    (READ, hourly(but={5: '2024-01-01 05:00,"50,1"'}), "p.csv, line 7: p: '50,1' is not a number"),
    (READ, hourly(but={5: "2024-01-01 05:00,inf"}), "p.csv, line 7: p: is infinite"),
    (READ, hourly(but={5: "2024-01-01 05:00"}), "p.csv, line 7: has 1 fields, the header has 2 (complete or remove"),
    (READ, hourly(but={5: "2024-01-01 04:00,50"}), "p.csv, line 7: t: the time occurs twice (remove one, or set dup"),
    (READ, hourly(but={5: "2024-01-01 03:30,50"}), "p.csv, line 7: t: the time is before the one above (sort the"),
    (READ, hourly(but={5: "2024-13-01 05:00,50"}), "p.csv, line 7: t: '2024-13-01 05:00' is not an ISO stamp"),
    (
        READ,
        hourly(but={5: "2024-01-01 05:00+01:00,50"}),
        'line 7: t: the stamp has an offset (set time_kind = "offset"',
    ),
    (
        READ,
        hourly(but={5: "2024-01-01 05:00,-9999999"}),
        "line 7: p: -9999999 EUR/MWh is not plausible (plausible: -10",
    ),
    (READ, hourly(but={5: "2024-01-01 05:00,100001"}), "p.csv, line 7: p: 100001 EUR/MWh is not plausible"),
    (READ.replace("/MWh", "/kWh"), hourly(), 'p.csv: p: is hardly ever below 1 EUR/kWh (is the unit "EUR/MWh"?)'),
    (READ, hourly(0.05), 'p.csv: p: never exceeds 5e-05 EUR/kWh (is the unit "EUR/kWh"?)'),
    (READ.replace("EUR/MWh", "SEK/kWh"), hourly(500), 'is hardly ever below 10 SEK/kWh (is the unit "SEK/MWh"?)'),
    (
        READ.replace("EUR/MWh", "XYZ/MWh"),
        hourly(),
        "s.toml, line 19: site.grid.price.unit: unknown currency 'XYZ' (use",
    ),
    (READ.replace("EUR/MWh", "Euro"), hourly(), "s.toml, line 19: site.grid.price.unit: unknown unit 'Euro' (use one"),
    (READ.replace("EUR/MWh", "EUR/GWh"), hourly(), "site.grid.price.unit: unknown unit 'EUR/GWh' (use one"),
    (
        READ.replace("EUR/MWh", "kW"),
        hourly(),
        "s.toml, line 19: site.grid.price.unit: 'kW' is not a unit of prices (use one of EUR/kWh",
    ),
    (
        READ.replace("EUR/MWh", "g/kWh"),
        hourly(),
        "line 19: site.grid.price.unit: 'g/kWh' is not a unit of prices",
    ),
    (
        CARBON.replace("g/kWh", "EUR/MWh"),
        hourly(),
        "line 19: site.grid.carbon.unit: 'EUR/MWh' is not a unit of carbon intensity (use one of g/kWh",
    ),
    (CARBON, hourly(-1), "p.csv, line 2: p: -1 g/kWh is not plausible (plausible: 0 to 3000 g/kWh"),
    (CARBON, hourly(0.4), 'p.csv: p: never exceeds 0.4 g/kWh (is the unit "kg/kWh" or "t/MWh"?)'),
    (CARBON.replace("g/kWh", "t/MWh"), hourly(400), "p.csv, line 2: p: 400 t/MWh is not plausible"),
    (CARBON.replace("g/kWh", "lb/MWh"), hourly(9000), "p.csv, line 2: p: 9000 lb/MWh is not plausible"),
    (LOCAL, SPRING, "p.csv, line 52: t: this local time does not exist (clock change) (give the zone"),
    (LOCAL, AUTUMN, "line 29: t: a gap of 7200 s after 2024-10-27T00:00:00Z, where 3600 s are usual (fill it, or set"),
    (LOCAL.replace("Europe/Berlin", "+01:00"), AUTUMN.replace("27 03", "27 02"), "line 29: t: the time occurs twice"),
    (LOCAL.replace("Europe/Berlin", "Europe/Bärlin"), SPRING, "time_zone: there is no time zone 'Europe/Bärlin' (give"),
    (READ.replace('"utc"', '"local"'), hourly(), "time_zone: is missing (local stamps require a time zone)"),
    (
        READ + 'time_zone = "Europe/Berlin"\n',
        hourly(),
        "time_zone: is 'Europe/Berlin', but stamps are utc (leave it out",
    ),
    (READ.replace('"utc"', '"offset"'), hourly(), "p.csv, line 2: t: the stamp has no offset (set time_kind"),
    (READ.replace('"utc"', '"unix"'), hourly(), "p.csv, line 2: t: '2024-01-01 00:00' is not a number"),
    (READ.replace('"p.csv"', '"gone.csv"'), "", "gone.csv: no such file (check the path; it is relative"),
    (
        READ.replace('file = "p.csv"\n', ""),
        "",
        "site.grid.price: found none of them (give exactly one of file, dataset)",
    ),
    (READ.replace('columns = ["p"]\n', ""), "", "s.toml, line 15: site.grid.price.columns: is missing (add it)"),
    (READ + 'format = "entsoe"\n', "", "s.toml, line 22: site.grid.price.format: is 'entsoe' (it must be 'entso-e'"),
    (
        '[site.grid.price]\nkind = "series"\nfile = "p.csv"\nformat = "entso-e"\n',
        hourly(),
        "p.csv, line 1: Day-ahead Price [EUR/MWh]: no such column (the file has t, p)",
    ),
    (
        '[site.grid.price]\nkind = "series"\nfile = "p.csv"\nformat = "entso-e"\ncolumns = ["p"]\ntime_column = "t"\n',
        hourly(),
        "p.csv, line 2: t: '2024-01-01 00:00' is not a stamp of the form %d.%m.%Y %H:%M...",
    ),
    (READ, hourly().replace("t,p", "t,p,p"), "p.csv, line 1: p: the column occurs twice (rename one of them)"),
]
TABLES = [  # keys, what is said
    (CONSTANT.replace("0.3", "300"), "line 17: site.grid.price.value: 300 EUR/kWh is not plausible (plausible: -10 to"),
    (CONSTANT.replace("0.3", "30"), 'site.grid.price.value: is hardly ever below 1 EUR/kWh (is the unit "EUR/MWh"?)'),
    (CONSTANT.replace("EUR/kWh", "EUR/MWh"), 'never exceeds 0.0003 EUR/kWh (is the unit "EUR/kWh"?)'),
    (CONSTANT.replace("0.3", "nan"), "line 17: site.grid.price.value: is nan (give a finite number)"),
    (CONSTANT.replace("0.3", '"0.3"'), "value: is '0.3' (give a number, without quotes)"),
    (CONSTANT.replace("EUR/kWh", "EURO/kWh"), "line 18: site.grid.price.unit: unknown unit 'EURO/kWh' (use one of"),
    (CONSTANT.replace("EUR/kWh", "BTC/kWh"), "line 18: site.grid.price.unit: unknown currency 'BTC' (use one of EUR"),
    (CONSTANT.replace("EUR/kWh", "g/kWh"), "line 18: site.grid.price.unit: 'g/kWh' is not a unit of prices (use one"),
    (CONSTANT.replace("price", "carbon"), "site.grid.carbon.unit: 'EUR/kWh' is not a unit of carbon intensity (use"),
    (CONSTANT.replace('unit = "EUR/kWh"\n', ""), "unit: is missing (add it)"),
    (
        CONSTANT.replace('"constant"', '"fixed"'),
        "line 16: site.grid.price.kind: is 'fixed' (use one of 'constant', 'cal",
    ),
    (CONSTANT.replace('kind = "constant"\n', ""), "site.grid.price.kind: is missing (add it; see"),
    (CONSTANT + "valeu = 3\n", "valeu: unknown key (did you mean value?)"),
    (
        CONSTANT.replace("EUR", "USD") + FEED_IN,
        "site.grid.rates: grid.feed_in is in EUR, grid.price in USD (use one cur",
    ),
    ('[site.grid]\ncurrency = "USD"\n' + CONSTANT, "grid.price is in EUR, the site in USD (use one currency, or state"),
    ('[site.grid]\ncurrency = "EURO"\n' + CONSTANT, "line 16: site.grid.currency: unknown currency 'EURO' (use one of"),
    ("[site.grid]\nrates = { EURO = 1 }\n" + CONSTANT, "line 16: site.grid.rates: unknown currency 'EURO' (use one"),
    ("[site.grid]\nrates = { EUR = 1 }\n" + CONSTANT, "no price is in the currency of the site (state it, for"),
    (
        '[site.grid]\ncurrency = "EUR"\nrates = { EUR = 2 }\n' + CONSTANT,
        "EUR is the currency of the site (leave its rate out)",
    ),
    ("[site.grid]\nrates = { USD = 0 }\n" + CONSTANT, "site.grid.rates.USD: is 0 (it must be greater than 0)"),
    ("[site.grid]\ndemand_charge = 80\n", "site.grid.time_zone: is missing, the months of a demand charge require it"),
    (ZONE + "demand_charge = 80\n", "site.grid.currency: is missing (give the currency of the prices)"),
    (ZONE + "demand_charge = -80\n" + CONSTANT, "line 17: site.grid.demand_charge: is -80 (it must be greater"),
    (
        ZONE.replace("Berlin", "Bern") + "demand_charge = 80\n" + CONSTANT,
        "line 16: site.grid.time_zone: there is no time zone 'Europe/Bern' (give an",
    ),
    (ZONE + "import_limit_w = 0\n", "line 17: site.grid.import_limit_w: is 0 (it must be greater than 0)"),
    (
        ZONE + 'over_limit = "hold"\n',
        "line 17: site.grid.over_limit: is hold, but there is no limit (give grid.import_limit_w, or leave",
    ),
    (
        ZONE + 'import_limit_w = 1e5\nover_limit = "stop"\n',
        "line 18: site.grid.over_limit: is 'stop' (it must be 'count' or 'hold')",
    ),
    (
        ZONE + "source_g_per_kwh = { sun = 41 }\n",
        "site.grid.source_g_per_kwh: the site has no source 'sun' (use one of",
    ),
    (ZONE + "source_g_per_kwh = { solar = -4 }\n", "source_g_per_kwh.solar: is -4 (it must be greater than or equal"),
    (CONSTANT.replace("price", "source_price.water"), "site.grid.source_price: the site has no source 'water' (use"),
    (CONSTANT.replace("price", "prices"), "site.grid.prices: unknown key (did you mean price?)"),
    (CALENDAR + DAY + NIGHT, "site.grid.time_zone: is missing, the hours of a tariff require it (give an IANA"),
    (TARIFF, "site.grid.price.periods: is missing (add it)"),
    (TARIFF + "periods = []\n", "site.grid.price.periods: is [] (give at least one)"),
    (
        TARIFF + DAY,
        "site.grid.price.periods: no period has a price on mon at 00:00 in January, before 'day' (add a per",
    ),
    (TARIFF + DAY + NIGHT.replace("22:00-06", "22:00-05"), "on mon at 05:00 in January, after 'night', before 'day'"),
    (TARIFF + DAY + NIGHT.replace("22:00", "21:30"), "periods 'day' and 'night' overlap on mon at 21:30 in January"),
    (TARIFF + DAY + DAY.replace('"day"', '"noon"') + NIGHT, "periods 'day' and 'noon' overlap on mon at 06:00 in"),
    (TARIFF + DAY + NIGHT + 'days = ["weekday"]\n', "no period has a price on sat at 00:00 in January, before 'day'"),
    (TARIFF + DAY + NIGHT + "months = [1, 2]\n", "no period has a price on mon at 00:00 in March, before 'day'"),
    (TARIFF + DAY + NIGHT + "months = [0]\n", "line 28: site.grid.price.periods.months: is [0] (give numbers from 1"),
    (
        TARIFF + DAY + NIGHT + 'days = ["friday"]\n',
        "line 28: site.grid.price.periods.days: is ['friday'] (use mon, tue",
    ),
    (TARIFF + DAY.replace("06:00-22:00", "6 to 22"), "line 23: site.grid.price.periods.hours: '6 to 22' is not a span"),
    (TARIFF + DAY.replace("0.3", "400"), "line 22: site.grid.price.periods.value: 400 EUR/kWh is not plausible"),
    ((TARIFF + DAY + NIGHT).replace("EUR/kWh", "EUR/MWh"), 'never exceeds 0.0003 EUR/kWh (is the unit "EUR/kWh"?)'),
    (TARIFF + 'holidays = ["25.12."]\n' + DAY + NIGHT, "site.grid.price.holidays: '25.12.' is not a date (write"),
    (TARIFF + "holidays = [2024-12-25]\n" + DAY + NIGHT, "holidays[0]: is 2024-12-25 (give a string in quotes"),
    (TARIFF + DAY + NIGHT + 'days = ["all", "holiday"]\nprice = 3\n', "price: unknown key"),
    (TARIFF.replace("price", "carbon") + DAY, "site.grid.carbon.kind: is 'calendar' (use one of 'constant', 'series')"),
]
SUNS = [
    (hourly(but={5: "2024-01-01 05:00,-2"}), "sun.csv, line 7: ghi: -2 W/m2 is not plausible"),
    (hourly(0.9), 'sun.csv: ghi: never exceeds 0.9 W/m2 (is the unit "kW/m2"?)'),
    (hourly(start="2023-05-01"), "but the jobs run from 2024-01-01 to 2024-01-01T"),
    (hourly(start="2023-05-01"), "site.align: solar (sun.csv) covers 2023-05-01 to"),
]
REPAIRED = [  # keys added to the price, content of p.csv, note
    (READ + 'gaps = "hold"\n', hourly(but={5: ""}), "gaps filled (hold): 1, first at line 7"),
    (READ + 'gaps = "interpolate"\n', hourly(but={5: "2024-01-01 05:00,"}), "missing values filled (interpolate): 1"),
    (READ + "missing = [-9999]\ngaps = \"hold\"\n", hourly(but={5: "2024-01-01 05:00,-9999"}), "filled (hold): 1"),
    (READ + 'duplicates = "last"\n', hourly() + "2024-01-04 23:00,60\n", "other values, last kept: 1"),
    (READ + 'unsorted = "sort"\n', hourly() + "2023-12-31 23:00,60\n", "rows out of order sorted: 1"),
    (LOCAL + 'clock_changes = "fill"\n', SPRING, "local times that do not exist dropped: 1"),
    (LOCAL + 'clock_changes = "fill"\n', AUTUMN, "stamps of a doubled hour that stand once used for both hours: 1"),
    (READ + "step_s = 7200\n", hourly(), "steps of about 3600 s averaged to 7200 s"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(folder: Path, capsys: pytest.CaptureFixture[str], scenario: str) -> str:
    (folder / "s.toml").write_text(scenario, encoding="utf-8")
    before = sorted(folder.rglob("*"))
    assert main(["simulate", "--scenario", "s.toml", "--scheduler", "fcfs+easy", "--out", "out"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("greenbatch: ")
    assert err.count("\n") == 1, err
    assert err.endswith(")\n"), "the fix"
    assert sorted(folder.rglob("*")) == before, "something was left behind"
    return err


@pytest.mark.parametrize(("keys", "content", "says"), FILES, ids=[row[2] for row in FILES])
def test_files(folder, capsys, keys, content, says):
    (folder / "p.csv").write_text(content)
    assert says in refused(folder, capsys, HEAD + keys)


@pytest.mark.parametrize(("keys", "says"), TABLES, ids=[row[1] for row in TABLES])
def test_tables(folder, capsys, keys, says):
    assert says in refused(folder, capsys, HEAD + keys)


@pytest.mark.parametrize(("content", "says"), SUNS, ids=[row[1] for row in SUNS])
def test_sun_beside_a_price(folder, capsys, content, says):
    (folder / "sun.csv").write_text(content.replace("t,p", "t,ghi"))
    keys = HEAD.replace('kind = "synthetic"\ndays = 3\n', SERIES_SITE) + CONSTANT
    assert says in refused(folder, capsys, keys)


@pytest.mark.parametrize(("keys", "content", "says"), REPAIRED, ids=[row[2] for row in REPAIRED])
def test_repaired_and_counted(folder, keys, content, says):
    (folder / "p.csv").write_text(content)
    (folder / "s.toml").write_text(HEAD + keys)
    scenario = load_scenario("s.toml")
    assert sum(says in str(note) for note in scenario.notes) == 1
    assert scenario.site.grid.import_price.size == scenario.site.slots


def test_a_calendar_needs_a_date(folder, capsys):
    said = refused(folder, capsys, HEAD.replace("unix_start_s = 1704067200\n", "") + TARIFF + DAY + NIGHT)
    assert "neither the workload nor a series has a date, which a calendar requires (set workload.unix_start_s" in said


def test_there_are_at_least_sixty_of_them():
    assert len({repr(row[:-1]) for row in (*FILES, *TABLES, *SUNS, *REPAIRED)}) >= 100
