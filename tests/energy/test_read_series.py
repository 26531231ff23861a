"""Reading series: clocks, units, gaps, repairs and their notes."""

import gzip
import tomllib
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from greenbatch.energy import power, read_series
from greenbatch.energy.stamps import zone
from greenbatch.errors import InputError


def write(tmp_path, *rows, header="time,power", name="series.csv"):
    path = tmp_path / name
    text = "\n".join([header, *rows]) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def read(path, **options):
    return read_series(path, **{"columns": ["power"], "unit": "W", "time_column": "time", **options})


@pytest.mark.parametrize(
    ("kind", "cells", "more", "start_s"),
    [
        ("elapsed", ("0", "900", "1800"), {}, 0),
        ("elapsed", ("450", "1350", "2250"), {}, 450),
        ("unix", ("1700000000", "1700000900", "1700001800"), {}, 1.7e9),
        ("utc", ("2024-07-01 00:00", "2024-07-01 00:15", "2024-07-01 00:30"), {}, unix("2024-07-01")),
        ("utc", ("2024-07-01T00:00Z", "2024-07-01T00:15Z", "2024-07-01T00:30Z"), {}, unix("2024-07-01")),
        (
            "offset",
            ("2024-07-01 00:00+02:00", "2024-06-30 22:15Z", "2024-07-01 00:30+02:00"),
            {},
            unix("2024-06-30 22:00"),
        ),
        (
            "local",
            ("2024-07-01 00:00", "2024-07-01 00:15", "2024-07-01 00:30"),
            {"time_zone": "Europe/Berlin"},
            unix("2024-06-30 22:00"),
        ),
        (
            "local",
            ("01.07.2024 00.00", "01.07.2024 00.15", "01.07.2024 00.30"),
            {"time_zone": "UTC-8", "time_format": "%d.%m.%Y %H.%M"},
            unix("2024-07-01 08:00"),
        ),
        ("ignore", ("b", "a", "c"), {"step_s": 900}, 0),
    ],
)
def test_every_clock(tmp_path, kind, cells, more, start_s):
    path = write(tmp_path, *(f"{cell},{k + 1}" for k, cell in enumerate(cells)))
    series = read(path, time_kind=kind, **more)
    assert series.start_s == start_s
    assert series.step_s == 900
    assert series.values.tolist() == [1, 2, 3]
    assert series.clock == ("elapsed" if kind in {"elapsed", "ignore"} else "unix")


@pytest.mark.parametrize("label", ["start", "middle", "end"])
def test_label_moves_the_start(tmp_path, label):
    path = write(tmp_path, "3600,1", "7200,2")
    assert read(path, time_kind="elapsed", label=label).start_s == {"start": 3600, "middle": 1800, "end": 0}[label]


@pytest.mark.parametrize(
    ("unit", "cell", "value", "quantity"),
    [
        ("kW", "1.5", 1500, "power_w"),
        ("MW", "1.5", 1.5e6, "power_w"),
        ("kW/m2", "0.7", 700, "irradiance_w_m2"),
        ("km/h", "36", 10, "wind_m_s"),
        ("kn", "10", 5.144444444444, "wind_m_s"),
        ("mph", "10", 4.4704, "wind_m_s"),
        ("K", "273.15", 0, "temperature_c"),
        ("degF", "212", None, "temperature_c"),
        ("degF", "50", 10, "temperature_c"),
        ("mbar", "1013.25", 101_325, "pressure_pa"),
        ("%", "50", 0.5, "share"),
    ],
)
def test_units(tmp_path, unit, cell, value, quantity):
    path = write(tmp_path, f"0,{cell}", f"60,{cell}")
    if value is None:  # boiling water is no air temperature
        with pytest.raises(InputError, match="212 degF is not plausible"):
            read(path, time_kind="elapsed", unit=unit)
        return
    series = read(path, time_kind="elapsed", unit=unit)
    assert series.values == pytest.approx([value, value])
    assert series.quantity == quantity


def spring(tmp_path):
    return write(tmp_path, *(f"2024-03-31 0{h}:00,{h}" for h in (0, 1, 3, 4)))


def test_spring_clock_change_is_no_gap(tmp_path):
    series = read(spring(tmp_path), time_kind="local", time_zone="Europe/Berlin")
    assert series.values.tolist() == [0, 1, 3, 4]
    assert series.step_s == 3600


def test_skipped_local_hour_is_dropped_only_on_request(tmp_path):
    path = write(tmp_path, *(f"2024-03-31 0{h}:00,{h}" for h in range(5)))
    with pytest.raises(InputError, match=r"series.csv, line 4: time: this local time does not exist \(clock change\)"):
        read(path, time_kind="local", time_zone="Europe/Berlin")
    series = read(path, time_kind="local", time_zone="Europe/Berlin", gaps="hold")
    assert series.values.tolist() == [0, 1, 3, 4]
    assert "local times that do not exist dropped: 1" in str(series.notes[0])


@pytest.mark.parametrize("minutes", [(0,), (0, 15, 30, 45)])
def test_repeated_local_hour_is_resolved_by_row_order(tmp_path, minutes):
    hours = (0, 1, 2, 2, 3, 4)
    path = write(tmp_path, *(f"2024-10-27 0{h}:{m:02},{k}" for k, h in enumerate(hours) for m in minutes))
    series = read(path, time_kind="local", time_zone="Europe/Berlin")
    assert series.values.size == len(hours) * len(minutes)
    assert series.step_s == 3600 / len(minutes)
    assert series.start_s == unix("2024-10-26 22:00")


def test_merged_autumn_hour_is_a_gap(tmp_path):
    path = write(tmp_path, *(f"2024-10-27 0{h}:00,{h}" for h in range(6)))
    with pytest.raises(InputError, match=r"line 5: time: a gap of 7200 s after 2024-10-27T00:00:00Z"):
        read(path, time_kind="local", time_zone="Europe/Berlin")
    assert read(path, time_kind="local", time_zone="Europe/Berlin", gaps="interpolate").values.tolist() == [
        0, 1, 2, 2.5, 3, 4, 5,
    ]  # fmt: skip


def test_gaps_are_filled_and_counted(tmp_path):
    path = write(tmp_path, "0,10", "60,20", "240,50", "300,60", "360,", "420,80")
    with pytest.raises(InputError, match=r"line 6: power: the value is missing"):
        read(path, time_kind="elapsed")
    straight = read(path, time_kind="elapsed", gaps="interpolate")
    assert straight.values.tolist() == [10, 20, 30, 40, 50, 60, 70, 80]
    held = read(path, time_kind="elapsed", gaps="hold")
    assert held.values.tolist() == [10, 20, 20, 20, 50, 60, 60, 80]
    assert [*map(str, held.notes)] == [
        "series.csv power: missing values filled (hold): 1, first at line 6 (17% of the hours)",
        "series.csv power: gaps filled (hold): 1, first at line 4 (29% of the hours)",
    ]


def test_missing_codes(tmp_path):
    path = write(tmp_path, "0,10", "60,-9999", "120,30")
    assert read(path, time_kind="elapsed", missing=[-9999], gaps="interpolate").values.tolist() == [10, 20, 30]


def test_long_steps_may_be_declared_no_gap(tmp_path):
    path = write(tmp_path, "0,4", "60,8", "120,6", "300,2", "360,2")
    series = read(path, time_kind="elapsed", longest_step_s=180)
    assert series.values.tolist() == [4, 8, 6, 6, 6, 2, 2]


def test_irregular_steps_become_means_with_the_same_energy(tmp_path):
    path = write(tmp_path, "0,6", "10,2", "35,9", "70,1")
    series = read(path, time_kind="elapsed", step_s=20, longest_step_s=100)
    # the last sample holds for the median distance of 25 s: 95 s in all, four whole steps
    assert series.values.tolist() == [4, 3.75, 9, 5]
    assert str(series.notes[-1]).endswith("steps of about 25 s averaged to 20 s, 15 s at the end left out")


def test_finer_and_coarser_steps(tmp_path):
    path = write(tmp_path, *(f"{300 * k},{k}" for k in range(24)))
    assert read(path, time_kind="elapsed", step_s=3600).values.tolist() == [5.5, 17.5]
    assert read(path, time_kind="elapsed", step_s=150).values[:4].tolist() == [0, 0, 1, 1]


def test_sorted_and_deduplicated_on_request(tmp_path):
    path = write(tmp_path, "60,2", "0,1", "120,3", "120,4", "180,5")
    series = read(path, time_kind="elapsed", unsorted="sort", duplicates="first")
    assert series.values.tolist() == [1, 2, 3, 5]
    assert read(path, time_kind="elapsed", unsorted="sort", duplicates="last").values.tolist() == [1, 2, 4, 5]
    assert [str(note).split(": ", 1)[1] for note in series.notes] == [
        "rows out of order sorted: 1, first at line 3 (20% of the hours)",
        "equal times with other values, first kept: 1, first at line 5 (20% of the hours)",
    ]


def test_negative_values_to_zero_on_request(tmp_path):
    path = write(tmp_path, "0,-0.4", "60,3")
    series = read(path, time_kind="elapsed", negative="zero")
    assert series.values.tolist() == [0, 3]
    assert "negative values set to zero: 1" in str(series.notes[0])


def test_quotes_blank_lines_byte_order_mark_and_semicolons(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(b'\xef\xbb\xbf"time";"power, net"\r\n\r\n0; 1\r\n\r\n60;"2"\r\n')
    series = read_series(
        path, columns=["power, net"], unit="W", time_kind="elapsed", time_column="time", delimiter=";"
    )  # fmt: skip
    assert series.values.tolist() == [1, 2]


def test_gzip_and_plain_give_the_same(tmp_path):
    rows = ["0,1.25", "60,2.5"]
    plain, packed = write(tmp_path, *rows), write(tmp_path, *rows, name="series.csv.gz")
    assert read(plain, time_kind="elapsed").values.tolist() == read(packed, time_kind="elapsed").values.tolist()


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_parquet_with_and_without_zone(tmp_path, zone):
    import polars

    path = tmp_path / "series.parquet"
    stamps = polars.datetime_range(
        datetime(2024, 1, 1), datetime(2024, 1, 1, 3), interval="1h", time_zone=zone, eager=True
    )
    polars.DataFrame({"when": stamps, "kw": [0.1, 0.2, None, 0.4]}).write_parquet(path)
    options = {"columns": ["kw"], "unit": "kW", "time_column": "when", "time_kind": "offset" if zone else "utc"}
    with pytest.raises(InputError, match=r"series.parquet: kw: the value is missing in row 3"):
        read_series(path, **options)
    series = read_series(path, **options, gaps="interpolate")
    assert series.values == pytest.approx([100, 200, 300, 400])
    assert series.start_s == unix("2023-12-31 23:00" if zone else "2024-01-01 00:00")


def test_one_row_with_a_stated_step(tmp_path):
    series = read(write(tmp_path, "0,5"), time_kind="elapsed", step_s=60)
    assert (series.values.tolist(), series.step_s) == ([5], 60)


def test_normalized_solar_of_ten_cities(greenbatch_data):
    path = greenbatch_data("weather/vessim_solar_10cities_5min.csv.gz")
    series = read_series(path, columns=["San Francisco"], unit="share", time_kind="elapsed", time_column="time")
    assert (series.step_s, series.values.size, series.start_s) == (300, 8352, 0)
    plant = power(series, rated_w=10_000)
    assert plant.values[0] == pytest.approx(2989.97)


def labels_of(path, tmp_path):
    """The time labels of a real file beside a constant power."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    return write(tmp_path, *(f"{line.split(',')[0]},{k % 7}" for k, line in enumerate(lines))), lines


def test_labels_with_offsets_over_both_clock_changes(greenbatch_data, tmp_path):
    path, lines = labels_of(
        greenbatch_data("price/sustaincluster_US-TEX-ERCO_2023_price_local_hourly.csv.gz"), tmp_path
    )
    series = read(path, time_kind="offset")
    assert series.values.size == len(lines) == 8760
    assert series.start_s == unix("2023-01-01 06:00")


def test_naive_local_labels_that_ignore_the_clock_change(greenbatch_data, tmp_path):
    """The German series labels 8760 equal hours as local time: one label does not exist, one hour is not there."""
    path, lines = labels_of(greenbatch_data("price/sustaincluster_DE-LU_2023_price_local_hourly.csv.gz"), tmp_path)
    spring_line = next(k for k, line in enumerate(lines, 2) if "2023-03-26 02:00" in line)
    with pytest.raises(InputError, match=rf"line {spring_line}: time: this local time does not exist"):
        read(path, time_kind="local", time_zone="Europe/Berlin")
    series = read(path, time_kind="local", time_zone="Europe/Berlin", gaps="hold")
    assert series.values.size == 8760
    assert len(series.notes) == 2


def test_solar_and_wind_of_a_real_grid(greenbatch_data):
    path = greenbatch_data("carbon/sustaindc_ERCO_2022_mix_avgCI.csv.gz")
    options = {"unit": "MW", "time_kind": "offset", "time_column": "timestamp", "negative": "zero"}
    sun, wind = (read_series(path, columns=[name], **options) for name in ("SUN", "WND"))
    assert sun.values.size == wind.values.size == 8760
    assert sun.values[:2].tolist() == [50e6, 0]
    assert wind.start_s == unix("2022-01-01")


def test_same_file_same_bytes(tmp_path):
    path = write(tmp_path, *(f"{60 * k},{k * 0.1}" for k in range(500)))
    first, second = (read(path, time_kind="elapsed", step_s=97).values for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert np.isfinite(first).all()


def test_fixed_offsets_reach_as_far_as_the_line_islands():
    assert zone("+14:00").utcoffset(None) == timedelta(hours=14)
    for beyond in ("+14:01", "-15", "UTC+99"):
        with pytest.raises(InputError):
            zone(beyond)


LMP = "t,node,LMP_TYPE,MW"
LMP_ROWS = [
    f"2024-06-01T{hour:02}:00,{node},{part},{10 * hour + 100 * k + 1000 * n}"
    for n, node in enumerate(("A", "B")) for hour in range(24) for k, part in enumerate(("LMP", "MCC", "MCE"))
]  # fmt: skip
PRICE = {"columns": ["MW"], "unit": "USD/MWh", "time_kind": "utc", "time_column": "t"}


@pytest.mark.parametrize("order", ["as is", "by part", "shuffled"])
def test_parts_of_a_price_at_several_nodes(tmp_path, order):
    """The message names a filter that works: for both columns that tell the series apart."""
    rows = LMP_ROWS if order == "as is" else sorted(LMP_ROWS, key=lambda row: row.split(",")[2])
    rows = rows if order != "shuffled" else [rows[(7 * k) % len(rows)] for k in range(len(rows))]
    path = write(tmp_path, *rows, header=LMP)
    with pytest.raises(InputError, match="the file has several series") as refused:
        read_series(path, **PRICE, unsorted="sort", duplicates="first")
    assert "node: " in refused.value.problem
    assert 'LMP_TYPE: "LMP", "MCC", "MCE"' in refused.value.problem
    where = tomllib.loads(refused.value.fix[refused.value.fix.index("where") :])["where"]
    assert where == {"node": "A", "LMP_TYPE": "LMP"}
    series = read_series(path, **PRICE, where=where, unsorted="sort")
    assert series.values == pytest.approx(0.01 * np.arange(24))
    assert read_series(path, **PRICE, where={"node": "B", "LMP_TYPE": "MCE"}, unsorted="sort").values[1] == 1.21


def test_rows_that_occur_twice_and_values_stated_again(tmp_path):
    """Part of a day downloaded twice, as it was and corrected: the choice among equal times counts, and is told."""
    for more, what, level in (
        (0, "rows that occur twice dropped", "repair"), (1, "equal times with other values, last kept", "warning")
    ):  # fmt: skip
        rows = [f"2024-06-01T0{k}:00,{k}" for k in range(9)] + [f"2024-06-01T0{k}:00,{k + more}" for k in range(5)]
        path = write(tmp_path, *rows, header="t,MW")
        with pytest.raises(InputError, match="before the one above"):
            read_series(path, **PRICE)
        with pytest.raises(InputError, match=r"occurs twice \(remove one, or set duplicates = "):
            read_series(path, **PRICE, unsorted="sort")
        series = read_series(path, **PRICE, unsorted="sort", duplicates="last")
        assert series.values * 1e3 == pytest.approx([k + more * (k < 5) for k in range(9)])
        assert [(note.what.partition(": ")[2], note.count, note.level) for note in series.notes][1:] == [
            (what, 5, level)
        ]


def test_dates_with_the_hour_in_another_column(tmp_path):
    rows = [f"2024-03-0{1 + k // 24},{k % 24 + 1},{k}" for k in range(72)]
    path = write(tmp_path, *rows, header="day,he,MW")
    with pytest.raises(
        InputError, match=r"the date occurs twice \(if another column has the hour, name both: time_col"
    ):
        read_series(path, **{**PRICE, "time_column": "day"})
    both = {**PRICE, "time_column": None, "time_columns": ["day", "he"], "time_format": "%Y-%m-%d %H", "label": "end"}
    series = read_series(path, **both)
    assert (series.start_s, series.values.size) == (unix("2024-03-01"), 72)
    with pytest.raises(InputError, match="time_columns: is given beside time_column"):
        read_series(path, **{**both, "time_column": "day"})


@pytest.mark.parametrize("flag", ["Repeated", None])
@pytest.mark.parametrize("second", ["02", "02X"])
def test_hours_ending_over_both_clock_changes(tmp_path, flag, second):
    """The hour that ends at 02:00 begins at 01:00, which occurs twice in autumn; in spring no hour ends at 03:00."""
    named = {"America/Chicago": ("2024-11-03", "2024-03-10")}
    read = {**PRICE, "time_column": None, "time_columns": ["day", "he"], "time_format": "%Y-%m-%d %H", "label": "end"}
    read |= {"time_kind": "local", "time_zone": "America/Chicago", "repeated_column": flag}
    autumn, spring = named["America/Chicago"]
    hours = [("01", "N"), ("02", "N"), (second, "Y"), *((f"{h:02}", "N") for h in range(3, 25))]
    path = write(tmp_path, *(f"{autumn},{h},{k},{y}" for k, (h, y) in enumerate(hours)), header="day,he,MW,Repeated")
    series = read_series(path, **read)
    assert (series.start_s, series.step_s) == (unix("2024-11-03 05:00"), 3600)
    assert series.values * 1e3 == pytest.approx(np.arange(25))
    hours = [h for h in range(1, 25) if h != 3]
    path = write(tmp_path, *(f"{spring},{h:02},{k},N" for k, h in enumerate(hours)), header="day,he,MW,Repeated")
    series = read_series(path, **read)
    assert series.start_s == unix("2024-03-10 06:00")
    assert series.values * 1e3 == pytest.approx(np.arange(23))


@pytest.mark.parametrize(
    ("cell", "value"), [("1.065,50", 1065.5), ("-0,5", -0.5), ("12", 12.0), ("1.000.000", 1e6), ("60.50", None)]
)
def test_a_decimal_comma(tmp_path, cell, value):
    path = write(tmp_path, f"0;{cell}", "60;1,5", header="time;power")
    read_it = {"time_kind": "elapsed", "delimiter": ";", "decimal": ",", "unit": "degC" if value == -0.5 else "W"}
    if value is None:
        with pytest.raises(InputError, match=r"'60.50' is not a number \(correct or empty the cell, or leave decimal"):
            read(path, **read_it)
    else:
        assert read(path, **read_it).values.tolist() == [value, 1.5]


def test_commas_that_can_only_group_thousands(tmp_path):
    path = write(tmp_path, '0,"1,065.50"', "60,2.5")
    assert read(path, time_kind="elapsed").values.tolist() == [1065.5, 2.5]
    with pytest.raises(InputError, match="'1,065' is not a number"):
        read(write(tmp_path, '0,"1,065"', "60,2.5"), time_kind="elapsed")


def test_a_label_of_the_values_tells_no_series_apart(tmp_path):
    """A block of high values, one of which was stated as moderate first: a correction."""
    rows = [f"2024-06-01T{h:02}:00,{10 * h},{'high' if 12 <= h < 20 else 'moderate'}" for h in range(24)]
    path = write(tmp_path, *rows[:15], "2024-06-01T14:00,115,moderate", *rows[15:], header="t,MW,index")
    for which, value in (("first", 140), ("last", 115)):
        assert read_series(path, **PRICE, duplicates=which).values[14] * 1e3 == pytest.approx(value)


@pytest.mark.parametrize("rows", ["left out", "blank"])
@pytest.mark.parametrize("gaps", ["interpolate", "hold"])
@pytest.mark.parametrize("utc_offset_h", [-8, 0, 9])
def test_a_missing_leap_day_is_the_day_before(tmp_path, gaps, utc_offset_h, rows):
    """Not a day without sun: the values at both ends of the gap are those of midnight."""
    stamps = [datetime(2024, 2, 27, tzinfo=UTC) + timedelta(hours=h) for h in range(96)]
    leap = [at for at in stamps if (at.month, at.day) == (2, 29)]
    kept = [at for at in stamps if rows == "blank" or at not in leap]
    sun = {at: "" if at in leap else at.day * max(0, 6 - abs(at.hour - 12)) for at in stamps}
    path = write(tmp_path, *(f"{at:%Y-%m-%d %H:%M},{sun[at]}" for at in kept))
    local = {"time_kind": "local", "time_zone": f"{utc_offset_h:+03}:00"}
    with pytest.raises(InputError, match=r"a gap of 90000 s after|the value is missing"):
        read(path, **local)
    series = read(path, **local, gaps=gaps)
    assert series.values[48:72].tolist() == series.values[24:48].tolist()
    assert series.values.size == 96
    (note,) = series.notes
    assert note.what.endswith("29 February, which is missing, as 28 February")
    assert note.share == pytest.approx(24 / 95)


def test_other_days_are_no_leap_days(tmp_path):
    rows = (f"{at:%Y-%m-%d %H:%M},{at.hour}" for k in (0, 2) for h in range(24)
            for at in [datetime(2023, 2, 27 + k % 2) + timedelta(days=k, hours=h)])  # fmt: skip
    series = read(write(tmp_path, *rows), time_kind="utc", gaps="hold")
    assert series.values[24:48].tolist() == [23] * 24


@pytest.mark.parametrize("quantity", ["EUR/MWh", "g/kWh", "degC"])
def test_coarser_steps_of_a_part_are_held(tmp_path, quantity):
    """Three hours, then quarters: no gaps, and no ramps where gaps are interpolated. One missing hour is a gap."""
    rows = [f"{3600 * k},{10 * k}" for k in range(3)] + [f"{3 * 3600 + 900 * k},{k}" for k in range(40)]
    path = write(tmp_path, *rows)
    for more in ({}, {"gaps": "interpolate"}):
        series = read(path, time_kind="elapsed", unit=quantity, **more)
        scale = 1e-3 if quantity == "EUR/MWh" else 1
        assert series.values[:14] == pytest.approx(np.array([0] * 4 + [10] * 4 + [20] * 4 + [0, 1]) * scale)
        assert [(note.count, note.level) for note in series.notes] == [(3, "fact")]
    path = write(tmp_path, *rows[:20], *rows[24:])
    with pytest.raises(InputError, match="a gap of 4500 s"):
        read(path, time_kind="elapsed", unit=quantity)


def test_two_markets_are_refused_in_every_kind_of_file_and_rows_keep_their_numbers(tmp_path):
    rows = [f"2024-01-01T{hour:02}:00,{market},{price}" for hour in range(8) for market, price in (("A", 1), ("B", 2))]
    (tmp_path / "two.csv").write_text("\n".join(["time,market,power", *rows]) + "\n")
    table = pl.read_csv(tmp_path / "two.csv")
    table.write_parquet(tmp_path / "two.parquet")
    table.cast({"market": pl.Categorical}).write_parquet(tmp_path / "coded.parquet")
    options = {"columns": ["power"], "unit": "kW", "time_kind": "utc", "time_column": "time"}
    for name in ("two.csv", "two.parquet", "coded.parquet"):
        with pytest.raises(InputError, match="the file has several series"):
            read_series(tmp_path / name, **options, duplicates="first")
        assert read_series(tmp_path / name, **options, where={"market": "B"}).values.tolist() == [2000] * 8
    table.with_columns(pl.when(pl.int_range(16) == 3).then(None).otherwise("power").alias("power")).write_parquet(
        tmp_path / "blank.parquet"
    )
    with pytest.raises(InputError, match="power: the value is missing in row 4"):
        read_series(tmp_path / "blank.parquet", **options, where={"market": "B"})
