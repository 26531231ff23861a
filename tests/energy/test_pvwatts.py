"""PV from real weather, against pvlib's own chain of models."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from greenbatch.energy import Series, Weather, pvwatts, read_weather
from greenbatch.errors import InputError


@pytest.fixture(scope="module")
def greensboro(greenbatch_data):
    return read_weather(greenbatch_data("weather/pvlib_723170TYA_TMY3_Greensboro_NC.csv.gz"))


def test_equals_pvlibs_model_chain(greensboro):
    """An independent assembly of the same models: pvlib's ModelChain on the same hours."""
    import pandas
    from pvlib import location, modelchain, pvsystem

    hours = pandas.date_range("2001-01-01 00:30", periods=8760, freq="h", tz="Etc/GMT+5")
    names = {
        "ghi": "ghi_w_m2",
        "dni": "dni_w_m2",
        "dhi": "dhi_w_m2",
        "temp_air": "temperature_c",
        "wind_speed": "wind_m_s",
    }
    frame = pandas.DataFrame({key: greensboro[name].values for key, name in names.items()}, index=hours)
    system = pvsystem.PVSystem(
        surface_tilt=30,
        surface_azimuth=200,
        albedo=0.2,
        module_parameters={"pdc0": 1000.0, "gamma_pdc": -0.004},
        inverter_parameters={"pdc0": 1000 / 1.2 / 0.96, "eta_inv_nom": 0.96},
        temperature_model_parameters={"a": -3.47, "b": -0.0594, "deltaT": 3},
    )
    place = location.Location(greensboro.latitude_deg, greensboro.longitude_deg, altitude=greensboro.elevation_m)
    chain = modelchain.ModelChain(
        system, place, transposition_model="haydavies", aoi_model="physical", spectral_model="no_loss",
        dc_model="pvwatts", ac_model="pvwatts", losses_model="no_loss", temperature_model="sapm",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pvlib's own use of pandas
        chain.run_model(frame)
    ours = pvwatts(greensboro, rated_w=1000, tilt_deg=30, azimuth_deg=200, losses=0.0)
    theirs = chain.results.ac.fillna(0).clip(lower=0).to_numpy()
    assert ours.values.sum() == pytest.approx(theirs.sum(), rel=1e-3)
    assert np.abs(ours.values - theirs).max() < 5  # of 1000 W


def test_a_year_in_greensboro(greensboro):
    power = pvwatts(greensboro, rated_w=1000, tilt_deg=30)
    assert power.quantity == "power_w"
    assert (power.clock, power.values.size, power.utc_offset_s) == ("typical-year", 8760, -18_000)
    assert 1250 < power.values.sum() / 1000 < 1450  # kWh from 1 kW; PVWatts gives about 1360 for this place
    assert power.values.max() <= 1000 / 1.2 + 1e-6  # the inverter's rating
    by_hour = power.values.reshape(365, 24).mean(axis=0)
    assert by_hour[:5].max() == 0
    assert by_hour.argmax() in (11, 12)


def test_power_scales_and_losses_count(greensboro):
    one = pvwatts(greensboro, rated_w=1000, tilt_deg=30, dc_ac_ratio=1)
    two = pvwatts(greensboro, rated_w=1000, tilt_deg=30, dc_ac_ratio=1, factor=2)
    assert two.values == pytest.approx(2 * one.values)
    lossy = pvwatts(greensboro, rated_w=1000, tilt_deg=30, dc_ac_ratio=1, losses=0.5)
    assert lossy.values.sum() < 0.6 * one.values.sum()
    cents = pvwatts(greensboro, rated_w=1000, tilt_deg=30, dc_ac_ratio=1, round_w=0.01)
    assert cents.values.tolist() == [round(v, 2) for v in one.values.tolist()]


def test_facing_the_sun_pays(greensboro):
    south, north, flat = (
        pvwatts(greensboro, rated_w=1000, tilt_deg=tilt, azimuth_deg=azimuth).values.sum()
        for tilt, azimuth in ((30, 180), (30, 0), (0, 180))
    )
    assert north < flat < south


def test_global_irradiance_is_decomposed_and_noted(greensboro):
    ghi = greensboro["ghi_w_m2"]
    bare = Weather(
        name="bare", layout="EPW", series={"ghi_w_m2": ghi}, latitude_deg=36.1, longitude_deg=-79.95, elevation_m=273
    )  # fmt: skip
    power = pvwatts(bare, rated_w=1000, tilt_deg=30)
    assert power.values.sum() == pytest.approx(pvwatts(greensboro, rated_w=1000, tilt_deg=30).values.sum(), rel=0.1)
    notes = " ".join(map(str, power.notes))
    assert "after Erbs" in notes
    assert "temperature_c taken as 20" in notes
    assert "wind_m_s taken as 1" in notes


@pytest.mark.parametrize(
    ("file", "options", "low", "high"),
    [
        ("epw_USA_CA_San.Jose-Mineta.epw.gz", {}, 1500, 1800),
        ("pvlib_pvgis_tmy_45N_8E.epw.gz", {}, 1150, 1450),
        ("pvlib_703165TY_TMY3_SandPoint_AK.csv.gz", {}, 700, 950),
        ("pvlib_nsrdb_psm4_tmy-2023.csv.gz", {"time_zone": "-07:00"}, 1450, 1750),
        ("pvlib_nsrdb_psm3_2017.csv.gz", {"time_zone": "-07:00"}, 1450, 1750),
    ],
)
def test_yearly_yield_of_real_places(greenbatch_data, file, options, low, high):
    place = {"latitude_deg": 40.5137, "longitude_deg": -108.5449} if options else {}
    power = pvwatts(read_weather(greenbatch_data(f"weather/{file}"), **options, **place), rated_w=1000, tilt_deg=30)
    assert low < power.values.sum() * power.step_s / 3.6e6 < high  # kWh from 1 kW
    assert (power.values >= 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rated_w": 0}, "pvwatts.rated_w: is 0"),
        ({"tilt_deg": 100}, "pvwatts.tilt_deg: is 100"),
        ({"azimuth_deg": -90}, "pvwatts.azimuth_deg: is -90"),
        ({"temperature_coefficient_per_k": 0.4}, "temperature_coefficient_per_k: is 0.4"),
        ({"losses": 14}, "pvwatts.losses: is 14"),
        ({"inverter_efficiency": 96}, "pvwatts.inverter_efficiency: is 96"),
        ({"dc_ac_ratio": 0}, "pvwatts.dc_ac_ratio: is 0"),
        ({"albedo": float("nan")}, "pvwatts.albedo: is nan"),
        ({"factor": 0}, "pvwatts.factor: is 0"),
    ],
)
def test_parameters_out_of_range(greensboro, options, message):
    with pytest.raises(InputError, match=message):
        pvwatts(greensboro, **{"rated_w": 1000, "tilt_deg": 30, **options})


def test_place_dates_and_irradiance_are_needed(greensboro, greenbatch_data):
    homeless = read_weather(greenbatch_data("weather/pvlib_nsrdb_psm4_tmy-2023.csv.gz"), time_zone="-07:00")
    with pytest.raises(InputError, match=r"latitude_deg: the file does not state its location \(give latitude_deg"):
        pvwatts(homeless, rated_w=1000, tilt_deg=30)
    undated = Series(name="x", quantity="irradiance_w_m2", values=np.ones(4), step_s=3600)
    weather = Weather(name="x", layout="x", series={"ghi_w_m2": undated}, latitude_deg=0, longitude_deg=0)
    with pytest.raises(InputError, match="has no dates, so the solar position is unknown"):
        pvwatts(weather, rated_w=1000, tilt_deg=30)
    windy = read_weather(greenbatch_data("weather/windpowerlib_weather_2010.csv.gz"))
    with pytest.raises(InputError, match="ghi_w_m2: no such series"):
        pvwatts(windy, rated_w=1000, tilt_deg=30)


def test_without_pvlib_one_line_and_the_rest_works(greenbatch_data):
    path = greenbatch_data("weather/epw_USA_CA_San.Jose-Mineta.epw.gz")
    script = f"""
import sys
sys.modules["pvlib"] = None
from greenbatch.energy import pvwatts, read_weather, weather_turbine
weather = read_weather({str(path)!r})
assert weather_turbine(weather, rated_w=1000).values.max() > 0
try:
    pvwatts(weather, rated_w=1000, tilt_deg=30)
except Exception as error:
    print(type(error).__name__, error)
for module in ("pandas", "polars", "scipy", "matplotlib", "numba"):
    assert module not in sys.modules, module
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "InputError pvwatts: requires pvlib (pip install 'greenbatch[weather]')", done.stderr
