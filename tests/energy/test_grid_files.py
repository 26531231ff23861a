"""The stored files of prices and carbon intensity, each with its declarations and known values."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from greenbatch.energy import EXPORTS, read_series

OFFSET = {"time_kind": "offset", "time_column": "Datetime"}
NAIVE = {"time_kind": "utc", "time_column": "Datetime"}
BERLIN = {"time_kind": "local", "time_zone": "Europe/Berlin", "time_column": "Datetime", "clock_changes": "fill"}
EUR = {"columns": ["Price (EUR/MWh)"], "unit": "EUR/MWh"}
USD = {"columns": ["Price (USD/MWh)"], "unit": "USD/MWh"}
EIA = {"columns": ["avg_CI"], "unit": "g/kWh", "time_kind": "offset", "time_column": "timestamp", "gaps": "interpolate"}
WAIT = {"columns": ["Carbon Intensity"], "unit": "g/kWh", "time_kind": "utc", "time_column": "Time"}
MAPS, DIRECT = EXPORTS["electricity-maps"], EXPORTS["electricity-maps-direct"]
MARGINAL = {"columns": ["Caiso_North"], "unit": "g/kWh", "time_kind": "utc", "time_column": "oootime"}
DK2 = {"columns": ["2021", "2022", "2023", "2024"], "unit": "g/kWh", "time_kind": "ignore", "step_s": 3600}
FILLED = ("local times that do not exist dropped: 1", "stamps of a doubled hour that stand once used for both hours: 1")
PRICE, CARBON = "price/sustaincluster_{}_price_local_hourly.csv.gz", "carbon/sustaincluster_{}_carbon_hourly.csv.gz"

# file, declarations, first instant (UTC), step, steps, first and last value, lowest and highest, notes
FILES = [
    (PRICE.format("US-TEX-ERCO_2022"), {**USD, **OFFSET}, "2022-01-01 06:00", 3600, 8760, 0.03269, 0.00724, None, ()),
    (PRICE.format("US-TEX-ERCO_2023"), {**USD, **OFFSET}, "2023-01-01 06:00", 3600, 8760, 0.01042, 0.01601,
     (-0.00007, 4.19166), ()),
    (PRICE.format("US-CAL-CISO_2022"), {**USD, **NAIVE}, "2021-12-31 08:00", 3600, 8784, 0.06069364, 0.11783241,
     None, ()),
    (PRICE.format("US-CAL-CISO_2023"), {**USD, **NAIVE}, "2022-12-31 08:00", 3600, 8784, 0.11077982, 0.04581851,
     None, ()),
    (PRICE.format("DE-LU_2022"), {**EUR, **BERLIN, "gaps": "hold"}, "2021-12-31 23:00", 3600, 8760, 0.05005, -0.00068,
     None, (*FILLED, "gaps filled (hold): 1, first at line ")),
    (PRICE.format("DE-LU_2023"), {**EUR, **BERLIN}, "2022-12-31 23:00", 3600, 8760, -0.00517, 0.00244,
     (-0.5, 0.52427), FILLED),
    (CARBON.format("US-CAL-CISO_2022"), MAPS, "2022-01-01 00:00", 3600, 8760, 273.77, 300.57, None, ()),
    (CARBON.format("US-CAL-CISO_2023"), MAPS, "2023-01-01 00:00", 3600, 8760, 309.75, 321.33, None, ()),
    (CARBON.format("DE-LU_2022"), MAPS, "2022-01-01 00:00", 3600, 8760, 213.79, 205.91, None, ()),
    (CARBON.format("DE-LU_2023"), DIRECT, "2023-01-01 00:00", 3600, 8760, 140.51, 133.89, None, ()),
    (CARBON.format("US-TEX-ERCO_2022"), DIRECT, "2022-01-01 00:00", 3600, 8760, 319.19, 297.15, None, ()),
    (CARBON.format("US-TEX-ERCO_2023"), MAPS, "2023-01-01 00:00", 3600, 8760, 318.54, 425.85, None, ()),
    (CARBON.format("GB_2022"), MAPS, "2022-01-01 00:00", 3600, 8760, 89.98, 91.43, None, ()),
    (CARBON.format("GB_2023"), MAPS, "2023-01-01 00:00", 3600, 8760, 91.44, 95.02, None, ()),
    ("carbon/sustaindc_CISO_2022_mix_avgCI.csv.gz", EIA, "2022-01-01 00:00", 3600, 8760, 222.2959209, 234.8738872,
     None, ("missing values filled (interpolate): 3",)),
    ("carbon/sustaindc_ERCO_2022_mix_avgCI.csv.gz", EIA, "2022-01-01 00:00", 3600, 8760, 334.2055848, 231.8473954,
     None, ()),
    ("carbon/sustaindc_PJM_2022_mix_avgCI.csv.gz", EIA, "2022-01-01 00:00", 3600, 8760, 341.4337499, 327.9632733,
     None, ("missing values filled (interpolate): 23",)),
    ("carbon/lwa_ger_ci_2020.csv.gz", {**WAIT, "gaps": "interpolate"}, "2019-12-20 00:00", 900, 37149, 218.2900307,
     508.0906515, None, ("gaps filled (interpolate): 2",)),
    ("carbon/lwa_fr_ci_2020.csv.gz", WAIT, "2019-12-20 00:00", 1800, 18574, 42.3412380, 97.1712756, None, ()),
    ("carbon/lwa_gb_ci_2020.csv.gz", {**WAIT, "step_s": 1800}, "2019-12-20 00:00", 1800, 18576, 120.9954666,
     259.1049606, None, ("steps of about 1800 s averaged to 1800 s",)),
    ("carbon/dk2_hourly_carbon_2021-2024_noFeb29.csv.gz", DK2, None, 3600, 35040, 87.26, 29.64, None,
     ("rows taken as equal steps of 3600 s from 0",)),
    ("carbon/vessim_watttime_CAISO_NORTH_2023-06_5min.csv.gz", MARGINAL, "2023-06-08 00:00", 300, 8928, 425.01605069,
     441.79896838, (35.38020486, 462.6642174), ()),
]  # fmt: skip


@pytest.mark.parametrize("row", FILES, ids=[row[0] for row in FILES])
def test_known_values(greenbatch_data, row):
    name, declared, start, step_s, steps, first, last, reach, notes = row
    series = read_series(greenbatch_data(name), **declared)
    if start is not None:
        assert series.start_s == datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
    assert (series.step_s, series.values.size) == (step_s, steps)
    assert series.values[[0, -1]] == pytest.approx([first, last], rel=1e-7)
    if reach is not None:
        assert (series.values.min(), series.values.max()) == pytest.approx(reach, rel=1e-7)
    assert len(series.notes) == len(notes)
    for told, expected in zip(series.notes, notes, strict=True):
        assert expected in str(told)
    assert series.unit == ("g/kWh" if name.startswith("carbon") else f"{declared['unit'][:3]}/kWh")


def test_every_stored_file_is_here(greenbatch_data):
    stored = {f"{folder}/{file.name}" for folder in ("price", "carbon") for file in greenbatch_data(folder).iterdir()}
    assert stored == {row[0] for row in FILES}


def test_californian_labels_are_utc(greenbatch_data):
    """Prices are lowest and carbon is lowest around noon in California, hours 18 to 21 in UTC."""
    price = read_series(greenbatch_data(PRICE.format("US-CAL-CISO_2023")), **USD, **NAIVE)
    carbon = read_series(greenbatch_data(CARBON.format("US-CAL-CISO_2023")), **MAPS)
    for series in (price, carbon):
        hours = (series.start_s / 3600 + np.arange(series.values.size)) % 24
        means = [series.values[hours == hour].mean() for hour in range(24)]
        assert 18 <= means.index(min(means)) <= 21
