"""The published site: two files, two models, one `Site`, to the last published digit."""

import csv
import gzip
import itertools
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
            wind_w = round(rated_w * (v - 2.5) / 12.5, 2)
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


def renewable_utilization(find, schedule: Path, site: Site) -> float:
    """Equation 4 over a published schedule on Jann's 322 processors, in plain Python."""
    text = gzip.decompress(find("swf/Jann.swf.gz").read_bytes()).decode()
    jobs = [line.split() for line in text.splitlines() if line.strip() and not line.startswith(";")]
    watts = gzip.decompress(find("power/gasmarl_power_per_proc_synthetic.csv.gz").read_bytes()).split()
    change_w: dict[int, float] = {}
    for job_id, start, end in csv.reader(gzip.decompress(schedule.read_bytes()).decode().splitlines()[1:]):
        power_w = int(jobs[int(job_id) - 1][4]) * int(watts[int(job_id) - 1])
        change_w[int(start)] = change_w.get(int(start), 0) + power_w
        change_w[int(end)] = change_w.get(int(end), 0) - power_w
    green_w, load_w, used_j, load_j = site.renewable_w.tolist(), 2050.0, 0.0, 0.0
    instants = sorted({*change_w, *range(min(change_w) // 3600 * 3600 + 3600, max(change_w), 3600)})
    for begin, end in itertools.pairwise(instants):
        load_w += change_w.get(begin, 0)
        load_j += load_w * (end - begin)
        used_j += min(load_w, green_w[begin // 3600]) * (end - begin)
    return used_j / load_j


@pytest.mark.parametrize("run", ["2500_F2_green", "2500_FCFS_easy", "0_F2_none", "7000_LPTPN_none"])
def test_published_utilization_to_the_last_digit(greenbatch_data, greenbatch_reference, run):
    """A hundredth of a watt in a few hours shows in the eighth digit: it tells the published order of operations."""
    start, scheduler, backfill = run.split("_")
    with greenbatch_reference("gas-marl/golden.csv").open() as file:
        published = {tuple(row.values())[:5]: float(row["re_util"]) for row in csv.DictReader(file)}
    expected = published["Jann_scaled", start, "1024", scheduler, backfill]
    schedule = greenbatch_reference(f"gas-marl/schedules/Jann_scaled_{run}.csv.gz")
    site = gasmarl_site(greenbatch_data, factor=322 / 256)
    assert renewable_utilization(greenbatch_data, schedule, site) == pytest.approx(expected, rel=1e-13)


def test_column_order_is_time_order(greenbatch_data):
    swapped = gasmarl_site(greenbatch_data, columns=["2017", "2016"])
    straight = gasmarl_site(greenbatch_data, columns=["2016", "2017"])
    assert np.array_equal(swapped.renewable_w[:8760], straight.renewable_w[8760:])


def test_forecast_shows_24_hours(greenbatch_data):
    site = gasmarl_site(greenbatch_data)
    start_s, end_s, power_w = site.forecast(5.5 * 3600)
    assert start_s.tolist() == [3600.0 * h for h in range(5, 29)]
    assert end_s.tolist() == [3600.0 * h for h in range(6, 30)]
    assert power_w.tolist() == site.renewable_w[5:29].tolist()


def test_inputs_and_notes_are_kept(greenbatch_data):
    site = gasmarl_site(greenbatch_data)
    assert site.inputs["gasmarl_irradianceS.csv.gz"].startswith("f5b561d97172e4db")
    assert sum("whatever their labels say" in str(note) for note in site.notes) == 2
