"""PUE and base load of a site, as scenarios state them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from greenbatch.errors import InputError
from greenbatch.scenarios import Scenario, load_scenario

TRACE = "; MaxProcs: 8\n; UnixStartTime: 1704067200\n1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n"
SITE = """\
name = "ours"
workload.file = "trace.swf"
[site]
kind = "series"
align = "calendar"
{keys}
[[site.sources]]
name = "solar"
kind = "power"
file = "meter.csv"
columns = ["sun"]
unit = "kW"
time_kind = "utc"
time_column = "t"
"""
BY_TEMPERATURE = """
[site.pue]
kind = "series"
file = "meter.csv"
columns = ["air"]
unit = "degF"
time_kind = "utc"
time_column = "t"
temperatures_c = [10, 30]
values = [1.1, 1.5]
"""
METER = "t,sun,air\n2024-01-01 00:00,1,41\n2024-01-01 01:00,2,68\n2024-01-01 02:00,3,95\n"  # 5, 20 and 35 degC
WEATHER = (  # windpowerlib's layout
    "variable_name,temperature,wind_speed\nheight,2,10\n2024-01-01 00:00:00+00:00,273.15,5\n"
    "2024-01-01 01:00:00+00:00,293.15,5\n2024-01-01 02:00:00+00:00,313.15,5\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trace.swf").write_text(TRACE)
    (tmp_path / "meter.csv").write_text(METER)
    (tmp_path / "weather.csv").write_text(WEATHER)
    return tmp_path


def scenario(folder: Path, keys: str, **overrides: object) -> Scenario:
    (folder / "s.toml").write_text(SITE.format(keys=keys))
    return load_scenario(folder / "s.toml", overrides=overrides)


def test_a_constant_pue_and_a_base_load(folder: Path) -> None:
    found = scenario(folder, "pue = 1.25\nbase_load_w = 500")
    assert found.site is not None
    assert (found.site.pue, found.site.base_load_w) == (1.25, 500.0)
    assert found.site.available_w.tolist() == [400.0, 1200.0, 2000.0]
    assert "energies are the facility's: PUE 1.25 x cluster + 0.5 kW base load" in map(str, found.notes)
    assert "PUE" in repr(found.site)


def test_without_the_keys_nothing_is_stated(folder: Path) -> None:
    found = scenario(folder, "")
    assert found.site is not None
    assert not found.site.has_overhead
    assert not {"pue", "base_load_w"} & set(found.resolved["site"])
    assert not any("PUE" in str(note) for note in found.notes)


def test_a_pue_by_the_temperature_in_a_table(folder: Path) -> None:
    found = scenario(folder, BY_TEMPERATURE)
    assert found.site is not None
    assert list(found.site.pue) == pytest.approx([1.1, 1.3, 1.5])  # type: ignore[arg-type]
    assert found.site.signals["temperature_c"].tolist() == pytest.approx([5, 20, 35])
    told = "energies are the facility's: PUE 1.1 to 1.5 by temperature (5.0 to 35.0 degC) x cluster + 0 kW base load"
    assert told in map(str, found.notes)


def test_a_pue_by_the_temperature_in_a_weather_file(folder: Path) -> None:
    table = '[site.pue]\nkind = "weather"\nfile = "weather.csv"\ntemperatures_c = [0, 40]\nvalues = [1, 2]\n'
    found = scenario(folder, table)
    assert found.site is not None
    assert list(found.site.pue) == pytest.approx([1.0, 1.5, 2.0])  # type: ignore[arg-type]
    assert "weather.csv" in found.inputs


def test_the_synthetic_site_has_a_pue_as_well() -> None:
    found = load_scenario("default", overrides={"site.pue": 1.4, "workload.generator.jobs": 10})
    assert found.site is not None
    assert found.site.pue == 1.4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("values = [1.1, 1.5]", "values = [0.9, 1.5]", "site.pue.values: is [0.9, 1.5] (each must be 1 to 100)"),
        ("values = [1.1, 1.5]", "values = [1.1]", "site.pue.values: has 1 values (give one for each of the 2"),
        ("values = [1.1, 1.5]", "values = [1.1, 1500]", "site.pue.values: is [1.1, 1500.0] (each must be 1 to 100)"),
        ("values = [1.1, 1.5]", "values = [1.1, nan]", "site.pue.values[1]: is nan (give a finite number)"),
        ("values = [1.1, 1.5]\n", "", "site.pue.values: is missing (add it)"),
        ("[10, 30]", "[30, 10]", "site.pue.temperatures_c: is [30.0, 10.0] (give at least two temperatures in asc"),
        ("[10, 30]", "[10]", "site.pue.temperatures_c: is [10.0] (give at least two"),
        ('unit = "degF"', 'unit = "kW"', "holds power_w, but the PUE requires temperature_c"),
        ('columns = ["air"]', 'columns = ["heat"]', "heat"),
        ('file = "meter.csv"\ncolumns = ["air"]', 'columns = ["air"]', "give exactly one of file, dataset"),
        ('file = "meter.csv"\ncolumns', 'file = "none.csv"\ncolumns', "no such file"),
        ('unit = "degF"', 'unit = "degC"', "68 degC is not plausible"),
    ],
)
def test_a_wrong_pue_is_one_line(folder: Path, old: str, new: str, message: str) -> None:
    assert BY_TEMPERATURE.count(old) == 1
    with pytest.raises(InputError) as caught:
        scenario(folder, BY_TEMPERATURE.replace(old, new))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_weather_file_without_temperature_is_refused(folder: Path) -> None:
    (folder / "weather.csv").write_text(re.sub(r"\d+\.15", "100000", WEATHER.replace("temperature", "pressure")))
    table = '[site.pue]\nkind = "weather"\nfile = "weather.csv"\ntemperatures_c = [0, 40]\nvalues = [1, 2]\n'
    with pytest.raises(InputError, match=r"weather.csv: has no temperature.*this one has pressure_pa"):
        scenario(folder, table)
