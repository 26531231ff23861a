"""Prices, carbon and weather as people have them (``field/``): the right site, or words that help.

Each file is read as a user would, in ``[site.grid]`` or ``[[site.sources]]`` of a scenario.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

import greenbatch
from greenbatch.errors import InputError
from greenbatch.notes import Note
from greenbatch.scenarios import load_scenario

FIELD = Path(__file__).with_name("field")
HEAD = """\
name = "field"
description = "A file of the field."
[workload]
file = "jobs.csv"
unix_start_s = {start}
[cluster]
processors = 4
[site]
kind = "{kind}"
align = "calendar"
"""
SUN = '[[site.sources]]\nname = "{name}"\nkind = "{kind}"\nfile = "{file}"\nrated_w = 1000\n'
PVWATTS = SUN.format(name="solar", kind="pvwatts", file="{file}") + "tilt_deg = 30\n"
TURBINE = SUN.format(name="wind", kind="weather-turbine", file="{file}")
GB_CARBON = 'columns = ["actual"]\nunit = "g/kWh"\ntime_column = "from"\ntime_kind = "utc"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("submit_s,run_time_s,processors\n0,3600,1\n60,3600,1\n", encoding="utf-8")
    return tmp_path


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def scenario(keys: str, start: str, kind: str = "synthetic") -> greenbatch.Scenario:
    """Two jobs that are submitted at a date, at a site with some keys."""
    Path("s.toml").write_text(HEAD.format(start=unix(start), kind=kind) + keys, encoding="utf-8")
    return load_scenario("s.toml")


def grid(table: str, file: str, keys: str, start: str) -> tuple[np.ndarray, float, list[Note]]:
    """The hours of a price [per MWh] or of carbon that a file states, their step, and the notes on it."""
    copy(FIELD / file, ".")
    given = f'[site.grid.{table}]\nkind = "series"\nfile = "{file}"\n{keys}'
    site = scenario(given, start).site
    assert site is not None
    assert site.grid is not None
    assert site.stated is not None
    stated = slice(*site.stated)
    values = site.grid.import_price * 1e3 if table == "price" else site.grid.carbon_g_per_kwh
    assert values is not None
    return values[stated], site.step_s, [note for note in site.notes if note.what.startswith(file)]


ENTSO_E = 'format = "entso-e-gui"\n'


@pytest.mark.parametrize("file", ["26-entsoe-two-sequences.csv", "26b-entsoe-two-sequences-constant-order.csv"])
def test_26_two_markets_in_one_file(file):
    start = "2025-09-29T00:00"
    for more in ("", 'duplicates = "first"\n', 'duplicates = "last"\nunsorted = "sort"\n'):
        with pytest.raises(InputError, match="the time occurs twice with other values") as refused:
            grid("price", file, ENTSO_E + more, start)
        assert refused.value.fix == 'choose one of them, such as where = { Sequence = "Sequence Sequence 1" }'
    hourly, step_s, notes = grid("price", file, ENTSO_E + 'where = { Sequence = "Sequence Sequence 1" }\n', start)
    assert (step_s, set(hourly.round(9).tolist())) == (900, {100.0})
    assert [(note.count, note.share) for note in notes] == [(48, pytest.approx(0.5, abs=0.01))]  # hours, then quarters
    quarters, _, notes = grid("price", file, ENTSO_E + 'where = { Sequence = "Sequence Sequence 2" }\n', start)
    assert set(quarters.round(9).tolist()) == {10.0}
    assert notes == []
    with pytest.raises(InputError, match=r"where.Sequence: no row has 'Sequence 1' \(use one of "):
        grid("price", file, ENTSO_E + 'where = { Sequence = "Sequence 1" }\n', start)


@pytest.mark.parametrize("gaps", ["interpolate", "hold"])
def test_27_prices_before_a_change_of_step_are_held(gaps):
    file, start = "27-entsoe-15min-change.csv.gz", "2025-09-29T00:00"
    with pytest.raises(InputError, match=r"line 550: .* the value is missing \(fill it, or set gaps"):
        grid("price", file, ENTSO_E, start)
    for more in ("", "longest_step_s = 1200\n"):
        prices, step_s, notes = grid("price", file, ENTSO_E + f'gaps = "{gaps}"\n' + more, start)
        assert (step_s, prices.size) == (900, 2788)
        assert prices[:12] == pytest.approx([34.92] * 4 + [42.15] * 4 + [50.0] * 4)
        assert prices[188:196] == pytest.approx([28.73] * 4 + [34.92] * 4)  # the last hour and the first quarters
        assert [(note.count, note.first_line) for note in notes] == [(1, 550), (48, 2)]


def test_29_a_decimal_comma():
    file, start = "29-smard-decimal-comma.csv", "2025-10-25T00:00"
    prices, step_s, notes = grid("price", file, 'format = "smard"\n', start)
    assert (step_s, prices.size, notes) == (3600, 96, [])
    assert prices[[0, 5, 6, 26, 27]] == pytest.approx([60.5, 1065.5, 66.5, 86.5, 87.5])  # 02:00 stands twice
    with pytest.raises(InputError, match=r"'60,50' is not a number \(set decimal = \",\" if the comma"):
        grid("price", file, 'format = "smard"\ndecimal = "."\n', start)
    with pytest.raises(InputError, match=r"no such column \(the file has .*: set delimiter = \";\"\)"):
        grid("price", file, 'format = "smard"\ndelimiter = ","\n', start)


@pytest.mark.parametrize(("name", "first"), [("electricity-maps", 200.0), ("electricity-maps-direct", 160.0)])
def test_30_electricity_maps_of_other_years(name, first):
    keys = f'format = "{name}"\ngaps = "hold"\n'
    carbon, step_s, notes = grid("carbon", "30-electricity-maps-2025.csv", keys, "2024-10-24T00:00")
    assert (step_s, carbon.size, carbon[0]) == (3600, 120, first)
    assert [(note.count, note.first_line) for note in notes] == [(1, 32)]


def test_31_hour_ending_in_a_column_of_its_own():
    file, start = "31-ercot-dam.csv", "2024-11-02T05:00"
    prices, step_s, notes = grid("price", file, 'format = "ercot"\n', start)
    assert (step_s, notes) == (3600, [])
    assert prices == pytest.approx(20 + 0.5 * np.arange(73))  # 73 hours in three days, in order
    read = (
        'columns = ["Settlement Point Price"]\nunit = "USD/MWh"\ntime_kind = "local"\ntime_zone = "America/Chicago"\n'
    )
    with pytest.raises(InputError, match=r'name both: time_columns = \["Delivery Date", "Hour Ending"\]'):
        grid("price", file, read + 'time_column = "Delivery Date"\n', start)
    own = 'time_columns = ["Delivery Date", "Hour Ending"]\ntime_format = "%m/%d/%Y %H:%M"\nlabel = "end"\n'
    assert grid("price", file, read + own, start)[0] == pytest.approx(prices)


def weather(file: str, keys: str = "", start: str = "2023-01-01T00:00") -> greenbatch.Site:
    copy(FIELD / file, ".")
    site = scenario(PVWATTS.format(file=file) + keys, start, kind="series").site
    assert site is not None
    return site


def test_32_a_typical_year_of_pvgis():
    site = weather("32-pvgis-tmy.csv.gz")
    assert site.slots == 1461 * 24
    assert 1.0e6 < site.renewable_w[: 365 * 24].sum() < 2.5e6  # 1 kW at 45 degrees north, in Wh
    day = site.renewable_w[:24]
    assert day[[0, 23]].tolist() == [0, 0]
    assert 10 <= day.argmax() <= 13  # UTC at 8 degrees east


def test_34_35_years_with_and_without_a_leap_day():
    leap = weather("34-epw-leap-year.epw.gz", start="2020-01-01T00:00")
    assert leap.slots == 8784
    assert leap.notes == ()
    typical = weather("35-epw-typical-feb-leap.epw.gz")
    assert typical.slots == 1461 * 24
    assert any("typical year: rows of 11 years put together" in str(note) for note in typical.notes)


def test_36_codes_for_no_value():
    with pytest.raises(InputError, match=r"line 4009: .*value is missing .*gaps = \"interpolate\""):
        weather("36-epw-sentinels.epw.gz", start="2019-01-01T00:00")
    found = weather("36-epw-sentinels.epw.gz", 'gaps = "interpolate"\n', start="2019-01-01T00:00")
    assert any("missing values filled (interpolate)" in note.what and note.count == 3 for note in found.notes)


def test_38_nsrdb_in_utc():
    site = weather("38-nsrdb-utc.csv.gz")
    assert site.origin_s == 0
    assert site.slots == 8760
    assert site.renewable_w[:24].argmax() in range(18, 21)  # noon at 105 degrees west


def test_39_a_value_stated_twice():
    file, start = "39-carbon-gb-duplicate.csv", "2021-04-18T00:00"
    with pytest.raises(InputError, match=r"line 89: from: the time occurs twice \(remove one, or set duplicates"):
        grid("carbon", file, GB_CARBON, start)
    for which, value in (("first", 238), ("last", 298)):
        carbon, step_s, notes = grid("carbon", file, GB_CARBON + f'duplicates = "{which}"\n', start)
        assert (step_s, carbon.size, carbon[86]) == (1800, 192, value)
        assert [(note.count, note.first_line, note.level) for note in notes] == [(1, 89, "change")]


def test_49_prices_of_another_month_leave_the_sun_alone(folder):
    """The sun of June, as without prices; the prices are whole weeks of January, and a warning says so."""
    for file in ("49-prices-january.csv", "49-prices-other-month.toml"):
        copy(FIELD / file, ".")
    copy(Path(__file__).parents[2] / "examples" / "sacct.txt", "jobs-june-2026.txt")
    june = load_scenario("49-prices-other-month.toml")
    power = june.site
    assert power is not None
    assert power.grid is not None
    alone = load_scenario("49-prices-other-month.toml", overrides={"site.grid": {"time_zone": "UTC"}}).site
    assert alone is not None
    days = [power.slot(3600.0 * hour) for hour in range(72)]
    assert power.renewable_w[days] == pytest.approx(
        [alone.renewable_w[alone.slot(3600.0 * hour)] for hour in range(72)]
    )
    first = june.notes[0]
    assert (first.level, first.shares) == ("warning", ((1.0, "hours"),))
    assert first.what.startswith("grid.price (49-prices-january.csv) covers 2026-01-01 to 2026-02-01: ")
    january = np.loadtxt("49-prices-january.csv", delimiter=",", skiprows=1, usecols=1) / 1e3
    hours = (unix("2026-06-08T06:00") - unix("2026-01-01T00:00")) / 3600
    assert power.grid.import_price[days] == pytest.approx(january[(int(hours) + np.arange(72)) % 672])
