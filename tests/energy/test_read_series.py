"""Reading series: clocks, units, gaps, repairs and their notes."""

import gzip
from datetime import UTC, datetime, timedelta

import numpy as np
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
        "series.csv power: gaps filled (hold): 1, first at line 3 (29% of the hours)",
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
