"""Weather files: every real one, against pvlib's readers where pvlib has one."""

import gzip
import json
import warnings
from datetime import UTC, datetime

import numpy as np
import pytest

from greenbatch.energy import combine, cubic_turbine, power, read_series, read_weather, weather_turbine
from greenbatch.errors import InputError
from greenbatch.notes import Note

IRRADIANCE = ["ghi_w_m2", "dni_w_m2", "dhi_w_m2"]
ALL = [*IRRADIANCE, "temperature_c", "pressure_pa", "wind_m_s"]
PVLIB = {
    "ghi_w_m2": "ghi",
    "dni_w_m2": "dni",
    "dhi_w_m2": "dhi",
    "temperature_c": "temp_air",
    "wind_m_s": "wind_speed",
}


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("epw_USA_CA_San.Jose-Mineta.epw.gz", (37.359, -121.924, 15.5, -8)),
        ("pvlib_pvgis_tmy_45N_8E.epw.gz", (45.0, 8.0, 250.0, 1)),
        ("pvlib_703165TY_TMY3_SandPoint_AK.csv.gz", (55.317, -160.517, 7.0, -9)),
        ("pvlib_723170TYA_TMY3_Greensboro_NC.csv.gz", (36.1, -79.95, 273.0, -5)),
    ],
)
def test_typical_years_equal_pvlib(greenbatch_data, tmp_path, file, place):
    from pvlib import iotools

    path = greenbatch_data(f"weather/{file}")
    plain = tmp_path / file.removesuffix(".gz")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pvlib's own use of pandas
        frame, about = iotools.read_epw(plain) if "epw" in file else iotools.read_tmy3(plain, map_variables=True)
    weather = read_weather(path)
    assert weather.layout == ("EPW" if "epw" in file else "TMY3")
    assert (weather.latitude_deg, weather.longitude_deg, weather.elevation_m) == place[:3]
    assert about["latitude"] == place[0]
    assert set(weather.series) == set(ALL)
    pressure = "atmospheric_pressure" if "epw" in file else "pressure"
    hundred = {"pressure_pa": 1.0 if "epw" in file else 100.0}
    for name, series in weather.series.items():
        assert (series.clock, series.start_s, series.step_s) == ("typical-year", 0, 3600)
        assert series.utc_offset_s == place[3] * 3600
        assert series.values == pytest.approx(
            frame[PVLIB.get(name, pressure)].to_numpy(float) * hundred.get(name, 1.0), abs=1e-9
        )


@pytest.mark.parametrize(
    ("file", "place"), [("pvlib_nsrdb_psm3_tmy-2017.csv.gz", 9), ("pvlib_nsrdb_psm4_tmy-2023.csv.gz", 6)]
)
def test_nsrdb_typical_years(greenbatch_data, file, place):
    path = greenbatch_data(f"weather/{file}")
    with pytest.raises(InputError, match=r"time_zone: the file does not state its time zone .*\"-08:00\""):
        read_weather(path)
    weather = read_weather(path, time_zone="-07:00", latitude_deg=40.5137, longitude_deg=-108.5449)
    assert set(weather.series) == set(ALL)
    ghi = weather["ghi_w_m2"]
    # stamped half past each hour, the middle of the slot
    assert (ghi.clock, ghi.start_s, ghi.step_s, ghi.values.size) == ("typical-year", 0, 3600, 8760)
    assert [*map(str, weather.notes)] == [f"typical year: rows of {place} years put together"]
    noon = ghi.values.reshape(365, 24).mean(axis=0).argmax()
    assert noon in (11, 12)
    cells = gzip.decompress(path.read_bytes()).decode().splitlines()
    column = cells[0].split(",").index("GHI")
    assert ghi.values.tolist() == [float(line.split(",")[column]) for line in cells[1:]]


def test_nsrdb_half_hours_of_one_year(greenbatch_data):
    weather = read_weather(greenbatch_data("weather/pvlib_nsrdb_psm3_2017.csv.gz"), time_zone="-07:00")
    ghi = weather["ghi_w_m2"]
    assert (ghi.clock, ghi.step_s, ghi.values.size) == ("unix", 1800, 17_520)
    assert ghi.start_s == unix("2017-01-01 06:45")  # the first value is an instant at 00:00
    assert ghi.values.reshape(365, 48).mean(axis=0).argmax() in (23, 24, 25)  # noon: the stamps are standard time
    assert weather.latitude_deg is None


def test_nsrdb_with_its_place_and_the_readers_of_pvlib(tmp_path):
    from pvlib import iotools

    head = [
        "Source,Location ID,City,State,Country,Latitude,Longitude,Time Zone,Elevation,Local Time Zone",
        "NSRDB,145809,-,-,-,40.01,-105.26,-7,1654,-7",
        "Year,Month,Day,Hour,Minute,GHI,DNI,DHI,Temperature,Wind Speed,Pressure",
    ]
    rows = [f"2019,2,{28 + h // 24},{h % 24},30,{h},{2 * h},{h / 4},{h - 9.5},3,{830 + h / 8}" for h in range(24)]
    path = tmp_path / "place.csv"
    path.write_text("\n".join([*head, *rows]) + "\n")
    weather = read_weather(path)
    assert (weather.latitude_deg, weather.longitude_deg, weather.elevation_m) == (40.01, -105.26, 1654)
    assert weather["ghi_w_m2"].start_s == unix("2019-02-28 07:00")
    assert weather["pressure_pa"].values[8] == 83_100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = getattr(iotools, "read_nsrdb_psm4", None) or iotools.read_psm3
        frame, _ = read(path, map_variables=True)
    assert frame.index[0].timestamp() == weather["ghi_w_m2"].start_s + 1800
    assert frame["ghi"].tolist() == weather["ghi_w_m2"].values.tolist()


def test_windpowerlib_heights_and_clock_changes(greenbatch_data):
    weather = read_weather(greenbatch_data("weather/windpowerlib_weather_2010.csv.gz"))
    assert list(weather.series) == [
        "pressure_pa_0m", "temperature_c_2m", "wind_m_s_10m", "temperature_c_10m", "wind_m_s_80m",
    ]  # fmt: skip
    hub = weather["wind_m_s_80m"]
    assert (hub.values.size, hub.step_s, hub.start_s) == (8760, 3600, unix("2009-12-31 23:00"))
    assert weather["wind_m_s_10m"].values.mean() == pytest.approx(3.74, abs=0.01)
    assert hub.values.mean() == pytest.approx(6.38, abs=0.01)
    assert weather["temperature_c_2m"].values[0] == pytest.approx(267.6 - 273.15)
    assert weather.lowest("temperature_c") is weather["temperature_c_2m"]


@pytest.mark.parametrize(("zone", "offset_h"), [("DE-LU", 1), ("US-CAL-CISO", -7)])
def test_open_meteo(greenbatch_data, zone, offset_h):
    weather = read_weather(greenbatch_data(f"weather/sustaincluster_{zone}_2023_openmeteo.json.gz"))
    wind = weather["wind_m_s_10m"]
    assert set(weather.series) == {"wind_m_s_10m", "temperature_c"}
    assert (wind.values.size, wind.step_s) == (8760, 3600)
    assert wind.start_s == unix("2023-01-01") - offset_h * 3600
    assert wind.values.max() == pytest.approx({"DE-LU": 35.0, "US-CAL-CISO": 50.6}[zone] / 3.6)
    assert f"stamps taken as UTC{offset_h:+d} h all year" in map(str, weather.notes)
    assert weather.latitude_deg == pytest.approx({"DE-LU": 50.09, "US-CAL-CISO": 37.43}[zone], abs=0.01)


def test_files_that_are_plain_series_say_how_to_read_them(greenbatch_data):
    for file in ("gasmarl_irradianceS.csv.gz", "gasmarl_windspeedS.csv.gz", "vessim_solar_10cities_5min.csv.gz"):
        with pytest.raises(
            InputError, match=r"line 1: is not a weather file .*or read a column of it with kind = \"pv\""
        ):
            read_weather(greenbatch_data(f"weather/{file}"))


def test_turbine_at_its_hub(greenbatch_data):
    weather = read_weather(greenbatch_data("weather/windpowerlib_weather_2010.csv.gz"))
    straight = cubic_turbine(weather["wind_m_s_80m"], rated_w=1e6)
    same = weather_turbine(weather, series="wind_m_s_80m", measured_height_m=80, hub_height_m=80, rated_w=1e6)
    assert same.values == pytest.approx(straight.values)
    lifted = weather_turbine(weather, series="wind_m_s_10m", measured_height_m=10, hub_height_m=80, rated_w=1e6)
    assert 0.2 < lifted.values.mean() / straight.values.mean() < 1.0  # 1/7 is too little for this site at night
    dense = weather_turbine(
        weather, series="wind_m_s_80m", measured_height_m=80, hub_height_m=80, rated_w=1e6, density=True
    )
    assert dense.values.mean() == pytest.approx(straight.values.mean(), rel=0.1)
    assert dense.values.mean() > straight.values.mean()  # a cold plain: heavier air than the standard's


def epw(*rows: str, periods: str = "DATA PERIODS,1,1,Data,Sunday, 1/ 1,12/31") -> str:
    return "\n".join(["LOCATION,Here,-,X,SRC,1,45.0,8.0,1.0,250.0", periods, *rows]) + "\n"


def epw_row(*date_and_hour: int, ghi: str = "100", wind: str = "5", minute: str = "0") -> str:
    fields = [*map(str, date_and_hour), minute]
    fields += ["flags", "20.0", "10", "50", "100000", "0", "0", "300", ghi, "50", "60"] + ["0"] * 4 + ["180", wind]
    return ",".join(fields + ["0"] * 13)


def test_one_real_year_keeps_its_dates(tmp_path):
    path = tmp_path / "real.epw"
    path.write_text(epw(*(epw_row(2020, 2, 28 + h // 24, h % 24 + 1) for h in range(48))))
    ghi = read_weather(path)["ghi_w_m2"]
    assert (ghi.clock, ghi.start_s, ghi.values.size) == ("unix", unix("2020-02-27 23:00"), 48)


def test_real_years_one_after_the_other_keep_their_dates(tmp_path):
    path = tmp_path / "real.epw"
    days = [(2019, 12, 31), (2020, 1, 1)]
    path.write_text(epw(*(epw_row(*day, h + 1) for day in days for h in range(24))))
    ghi = read_weather(path)["ghi_w_m2"]
    assert (ghi.clock, ghi.start_s) == ("unix", unix("2019-12-30 23:00"))


def test_leap_days_of_typical_years_are_left_out_and_counted(tmp_path):
    days = [(2020, 2, 28), (2020, 2, 29), (2011, 3, 1)]
    path = tmp_path / "tmy.epw"
    path.write_text(epw(*(epw_row(*day, h + 1, ghi=str(day[2])) for day in days for h in range(24))))
    weather = read_weather(path)
    ghi = weather["ghi_w_m2"]
    assert ghi.values.tolist() == [28.0] * 24 + [1.0] * 24
    assert ghi.start_s == (31 + 27) * 86_400
    assert Note("rows of 29 February left out", 24, shares=((24 / 72, "hours"),)) in weather.notes


def test_quarter_hours_count_their_minutes(tmp_path):
    path = tmp_path / "fine.epw"
    rows = [epw_row(2020, 6, 1, h + 1, minute=str(m)) for h in range(24) for m in (15, 30, 45, 60)]
    path.write_text(epw(*rows, periods="DATA PERIODS,1,4,Data,Monday,6/1,6/1"))
    ghi = read_weather(path)["ghi_w_m2"]
    assert (ghi.step_s, ghi.values.size, ghi.start_s) == (900, 96, unix("2020-05-31 23:00"))


def test_missing_codes_are_refused_or_filled(tmp_path):
    path = tmp_path / "holes.epw"
    ghi = ["100", "9999", "300", "9999"]
    path.write_text(epw(*(epw_row(2020, 6, 1, h + 1, ghi=ghi[h], wind="999") for h in range(4))))
    with pytest.raises(InputError, match=r"holes.epw, line 4: global horizontal radiation: the value is missing"):
        read_weather(path)
    assert set(read_weather(path, columns=["temperature_c"]).series) == {"temperature_c"}
    weather = read_weather(path, gaps="interpolate")
    assert weather["ghi_w_m2"].values.tolist() == [100, 200, 300, 300]
    assert "wind_m_s left out: no value in the whole file" in map(str, weather.notes)
    assert any("missing values filled (interpolate): 2" in str(note) for note in weather["ghi_w_m2"].notes)
    with pytest.raises(InputError, match="wind speed: the value is missing"):
        read_weather(path, columns=["wind_m_s"])


def test_names_in_latin_1(tmp_path):
    path = tmp_path / "name.epw"
    path.write_bytes(epw(epw_row(2020, 1, 1, 1), epw_row(2020, 1, 1, 2)).replace("Here", "São").encode("latin-1"))
    assert read_weather(path)["ghi_w_m2"].values.tolist() == [100, 100]


TMY3_HEAD = (
    '723170,"GREENSBORO",NC,-5.0,36.1,-79.95,273\nDate (MM/DD/YYYY),Time (HH:MM),GHI (W/m^2),DNI (W/m^2),DHI (W/m^2),'
    "Dry-bulb (C),Pressure (mbar),Wspd (m/s)\n"
)
PSM_HEAD = "Year,Month,Day,Hour,Minute,GHI,Wind Speed\n"
WIND_HEAD = "variable_name,wind_speed\nheight,10\n"


def meteo(**change) -> str:
    data = {
        "latitude": 50.0,
        "longitude": 8.0,
        "elevation": 100.0,
        "utc_offset_seconds": 3600,
        "hourly_units": {"windspeed_10m": "km/h"},
        "hourly": {"time": ["2023-01-01T00:00", "2023-01-01T01:00"], "windspeed_10m": [3.6, 7.2]},
    }
    for key, value in change.items():
        target, _, last = key.rpartition("__")
        place = data[target] if target else data
        place[last] = value
    return json.dumps(data)


BROKEN = {
    "nothing": ("", {}, None, None, "is empty"),
    "prose": ("Dear all,\nit rains.\n", {}, 1, None, "is not a weather file"),
    "epw without data": (epw(), {}, None, None, "no data below DATA PERIODS"),
    "epw without zone": (epw(epw_row(2020, 1, 1, 1)).replace("8.0,1.0", "8.0,x"), {}, 1, "utc_offset_h", "'x'"),
    "epw records": (epw(epw_row(2020, 1, 1, 1), periods="DATA PERIODS,1,inf"), {}, 2, "per_hour", "'inf'"),
    "epw cut off": (epw("2020,1,1,1,0,flags,20"), {}, 3, None, "7 fields, expected 22"),
    "epw hour 25": (epw(epw_row(2020, 1, 1, 25)), {}, 3, "hour", "'25' is out of range"),
    "epw 30 February": (epw(epw_row(2020, 2, 30, 1)), {}, 3, "hour", "2020-02-30 is not a date"),
    "epw text": (
        epw(epw_row(2020, 1, 1, 1, ghi="dark"), epw_row(2020, 1, 1, 2)), {}, 3, "global horizontal radiation", "'dark'",
    ),
    "epw too bright": (
        epw(epw_row(2020, 1, 1, 1, ghi="5000"), epw_row(2020, 1, 1, 2)), {},
        3, "global horizontal radiation", "5000 W/m2"),
    "epw storm": (
        epw(epw_row(2020, 1, 1, 1, wind="140"), epw_row(2020, 1, 1, 2)), {},
        3, "wind speed", "140 m/s"),
    "epw twice": (epw(*[epw_row(2020, 1, 1, 1)] * 2), {}, 4, "hour", "occurs twice"),
    "epw gap": (
        epw(*(epw_row(2020, 1, 1, h) for h in (1, 2, 3, 9))), {}, 6, "hour", "a gap of 21600 s",
    ),
    "epw one row": (epw(epw_row(2020, 1, 1, 1)), {}, 3, "hour", "a single row does not define the step"),
    "tmy3 bad date": (TMY3_HEAD + "1997-01-01,01:00,0,0,0,5,980,3\n", {}, 3, "Date (MM/DD/YYYY)", "not a date"),
    "tmy3 hour 25": (TMY3_HEAD + "01/01/1997,25:00,0,0,0,5,980,3\n", {}, 3, "hour", "'25'"),
    "tmy3 no sun": (TMY3_HEAD.replace("GHI", "Sun"), {}, 2, "GHI (W/m^2)", "no such column"),
    "tmy3 zone": (TMY3_HEAD.replace("-5.0", "EST"), {}, 1, "utc_offset_h", "'EST'"),
    "psm no zone": (PSM_HEAD + "2020,1,1,0,30,5,3\n", {}, None, "time_zone", "does not state its time zone"),
    "psm IANA zone": (
        PSM_HEAD + "2020,1,1,0,30,5,3\n", {"time_zone": "America/Denver"}, None, "time_zone", "not a fixed offset",
    ),
    "psm no hour": (PSM_HEAD.replace("Hour", "Hr") + "2020,1,1,0,30,5,3\n", {}, 1, "Hour", "no such column"),
    "psm no rows": (PSM_HEAD, {"time_zone": "UTC"}, None, None, "no data rows"),
    "psm negative": (
        PSM_HEAD + "2020,1,1,0,30,-5,3\n2020,1,1,1,30,5,3\n", {"time_zone": "UTC"}, 2, "GHI", "-5 W/m2",
    ),
    "psm latitude": (
        PSM_HEAD + "2020,1,1,0,30,5,3\n2020,1,1,1,30,5,3\n", {"time_zone": "UTC", "latitude_deg": 91},
        None, "latitude_deg", "is 91",
    ),
    "wind no offset": (WIND_HEAD + "2010-01-01 00:00,3\n", {}, 3, "variable_name at height m", "has no offset"),
    "wind no heights": ("variable_name,wind_speed\n2010-01-01 00:00+01:00\n", {}, 2, None, "two header lines"),
    "wind with zone": (WIND_HEAD + "2010-01-01 00:00Z,3\n", {"time_zone": "UTC"}, None, "time_zone", "have an offset"),
    "json broken": ('{"hourly": {"time": [1,\n2,,]}}', {}, 2, None, "is not JSON"),
    "json long number": ('{"latitude": ' + "9" * 5000 + "}", {}, None, None, "unknown format"),
    "json brackets": ('{"hourly": ' + "[" * 100_000, {}, None, None, "unknown format"),
    "json huge place": (meteo(latitude=10**400), {}, None, "latitude", "not a number"),
    "json no hours": ('{"daily": {}}', {}, None, "hourly.time", "no list of hours"),
    "json length": (meteo(hourly__windspeed_10m=[1]), {}, None, "hourly.windspeed_10m", "not a list of 2"),
    "json unit": (meteo(hourly_units={"windspeed_10m": "bft"}), {}, None, "hourly_units.windspeed_10m", "'bft'"),
    "json offset": (meteo(utc_offset_seconds="1h"), {}, None, "utc_offset_seconds", "'1h', not a number"),
    "json null": (meteo(hourly__windspeed_10m=[1, None]), {}, None, "hourly.windspeed_10m", "missing in row 2"),
    "json stamp": (meteo(hourly__time=["2023-01-01T00:00", 7]), {}, None, "hourly.time", "'7' is not an ISO stamp"),
    "no such series": (meteo(), {"columns": ["ghi_w_m2"]}, None, "ghi_w_m2", "no such series"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_weather_files(tmp_path, case):
    content, options, line, field, words = case
    path = tmp_path / "weather.txt"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_weather(path, **options)
    error = caught.value
    assert "\n" not in str(error)
    assert str(path) in str(error) or field == "time_zone"
    assert error.fix
    assert words in error.problem
    assert (error.line, error.field) == (line, field)


def test_weather_names_the_series_it_has(tmp_path):
    path = tmp_path / "wind.json"
    path.write_text(meteo())
    with pytest.raises(InputError, match=r"wind.json: ghi_w_m2: no such series \(it has wind_m_s_10m\)"):
        read_weather(path)["ghi_w_m2"]


def test_five_minute_shares_and_hourly_wind_make_one_site(greenbatch_data):
    """Different steps and clocks: elapsed seconds and typical years both begin at trace time 0."""
    share = read_series(
        greenbatch_data("weather/vessim_solar_10cities_5min.csv.gz"),
        columns=["Berlin"], unit="share", time_kind="elapsed", time_column="time",
    )  # fmt: skip
    wind = read_weather(greenbatch_data("weather/epw_USA_CA_San.Jose-Mineta.epw.gz"))["wind_m_s"]
    solar_w = power(share, rated_w=1e4)
    site = combine("mixed", {"solar": solar_w, "wind": cubic_turbine(wind, rated_w=5e3)})
    assert (site.step_s, site.slots, site.origin_s) == (300, 8352, 0)
    assert np.array_equal(site.sources_w["solar"], solar_w.values)
    assert np.ptp(site.sources_w["wind"].reshape(-1, 12), axis=1).max() == 0
    assert sum("cut off" in str(note) for note in site.notes) == 1


PVGIS = """\
Latitude (decimal degrees): 45.000
Longitude (decimal degrees): 8.000
Elevation (m): 250.0
Irradiance Time Offset (h): 0.1761
month,year
1,2014
2,2008

time(UTC),T2m,RH,G(h),Gb(n),Gd(h),IR(h),WS10m,WD10m,SP
{rows}

T2m: 2-m air temperature (degree Celsius)

PVGIS (c) European Communities, 2001-2022
"""


def pvgis():
    days = ((2014, 1, 30), (2014, 1, 31), (2008, 2, 1))
    rows = (f"{y}{m:02}{d:02}:{h:02}00,5.0,70.0,{1000 + d},0.0,{h},300.0,3.5,180.0,98000.0" for y, m, d in days
            for h in range(24))  # fmt: skip
    return PVGIS.format(rows="\n".join(rows))


def test_pvgis(tmp_path):
    (tmp_path / "tmy.csv").write_text(pvgis())
    weather = read_weather(tmp_path / "tmy.csv")
    assert (weather.layout, weather.latitude_deg, weather.longitude_deg, weather.elevation_m) == ("PVGIS", 45, 8, 250)
    assert list(weather.series) == ["temperature_c", "pressure_pa", "ghi_w_m2", "dni_w_m2", "dhi_w_m2", "wind_m_s_10m"]
    ghi = weather["ghi_w_m2"]
    assert (ghi.clock, ghi.start_s, ghi.utc_offset_s) == ("typical-year", 29 * 86_400, 0)
    assert ghi.values[[0, 24, 48]].tolist() == [1030, 1031, 1001]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pvgis().replace("20140130:0500", "2014013005"), r"line 15: time\(UTC\): '2014013005' is not a stamp"),
        (pvgis().replace("45.000", "north"), "line 1: latitude_deg: 'north' is not a number"),
        (pvgis().replace("time(UTC)", "time"), "is a file of PVGIS, but no typical year .*as CSV or EPW"),
        ('{"inputs": {}, "outputs": {}}', "is JSON of PVGIS .*as CSV or EPW"),
        ("a;b\n1;2\n", r"download it as EPW; also read: TMY3, .*JSON\)$"),
        ("when,ghi\n2024-01-01,5\n", 'or read a column of it with kind = "pv"'),
    ],
)
def test_words_for_files_that_are_not_read(tmp_path, content, message):
    (tmp_path / "w.csv").write_text(content)
    with pytest.raises(InputError, match=message) as refused:
        read_weather(tmp_path / "w.csv")
    assert "as a series" not in str(refused.value)


def test_weather_out_of_order_and_twice_can_be_repaired(tmp_path):
    """What the message says is a key of the reader."""
    path = tmp_path / "w.epw"
    rows = [epw_row(2023, 5, 1, h + 1, ghi=str(h)) for h in range(24)]
    path.write_text(epw(*rows[:5], rows[6], rows[5], *rows[6:]))
    with pytest.raises(InputError, match=r'set unsorted = "sort"'):
        read_weather(path)
    with pytest.raises(InputError, match=r'set duplicates = "first" or "last"'):
        read_weather(path, unsorted="sort")
    assert read_weather(path, unsorted="sort", duplicates="first")["ghi_w_m2"].values.tolist() == list(range(24))
    path.write_text(epw(*rows[:5], epw_row(2023, 5, 1, 6, ghi="7777"), *rows[6:]))
    with pytest.raises(InputError, match="declare the code under missing"):
        read_weather(path)
    assert read_weather(path, missing=[7777], gaps="interpolate")["ghi_w_m2"].values.tolist() == list(range(24))
