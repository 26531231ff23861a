"""The published site: two files, two models, one `Site`, to the last published digit."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from greenbatch.energy import Series, Site, combine, pv, read_series, turbine

YEARS = ["2016", "2017", "2018"]


def gasmarl_weather(find: Callable[[str], Path], columns: list[str]) -> tuple[Series, Series]:
    return (
        read_series(
            find("weather/gasmarl_irradianceS.csv.gz"), columns=columns, unit="W/m2", time_kind="ignore", step_s=3600
        ),
        read_series(
            find("weather/gasmarl_windspeedS.csv.gz"), columns=columns, unit="m/s", time_kind="ignore", step_s=3600
        ),
    )


def gasmarl_site(find: Callable[[str], Path], factor: float = 1.0, columns: list[str] | None = None) -> Site:
    irradiance, wind = gasmarl_weather(find, columns or YEARS)
    return combine(
        "gas-marl",
        {
            "solar": pv(irradiance, area_m2=200, efficiency=0.2, factor=factor, round_w=0.01),
            "wind": turbine(wind, rated_w=7200, factor=factor, round_w=0.01),
        },
    )


def by_hand(find: Callable[[str], Path], area_m2: float, rated_w: float) -> list[float]:
    """GAS-MARL's arithmetic in plain Python."""
    irradiance, wind = gasmarl_weather(find, YEARS)
    power = []
    for irr, v in zip(irradiance.values.tolist(), wind.values.tolist(), strict=True):
        if v <= 2.5 or v >= 30:
            wind_w = 0.0
        elif v < 15:
            wind_w = round(rated_w * ((v - 2.5) / 12.5), 2)
        else:
            wind_w = rated_w
        power.append(round(0.2 * irr * area_m2, 2) + wind_w)
    return power


def test_published_site_unscaled(greenbatch_data):
    site = gasmarl_site(greenbatch_data)
    assert site.slots == 3 * 8760
    assert site.origin_s == 0
    assert site.step_s == 3600
    assert round(float(site.renewable_w[:8760].mean())) == 9981
    assert site.renewable_w.max() == 47640
    assert site.renewable_w.tolist() == by_hand(greenbatch_data, 200, 7200)


def test_published_site_scaled_to_jann(greenbatch_data):
    site = gasmarl_site(greenbatch_data, factor=322 / 256)
    assert site.renewable_w.tolist() == by_hand(greenbatch_data, 251.5625, 9056.25)
    assert site.sources_w["wind"].max() == 9056.25


def test_column_order_is_time_order(greenbatch_data):
    swapped = gasmarl_site(greenbatch_data, columns=["2017", "2016"])
    straight = gasmarl_site(greenbatch_data, columns=["2016", "2017"])
    assert np.array_equal(swapped.renewable_w[:8760], straight.renewable_w[8760:])


def test_forecast_wraps_after_24_hours(greenbatch_data):
    site = gasmarl_site(greenbatch_data)
    start_s, end_s, power_w = site.forecast(5.5 * 3600)
    assert start_s.tolist() == [3600.0 * h for h in range(5, 29)]
    assert end_s.tolist() == [3600.0 * h for h in range(6, 30)]
    assert power_w.tolist() == site.renewable_w[5:29].tolist()
    assert site.forecast_w(5.5 * 3600, 24) == pytest.approx(site.renewable_w[5])
    assert site.forecast_w(5.5 * 3600, 49) == pytest.approx(site.renewable_w[6])


def test_inputs_and_notes_are_kept(greenbatch_data):
    site = gasmarl_site(greenbatch_data)
    assert site.inputs["gasmarl_irradianceS.csv.gz"].startswith("f5b561d97172e4db")
    assert sum("whatever their labels say" in note for note in site.notes) == 2
