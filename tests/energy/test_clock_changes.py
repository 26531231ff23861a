"""Local stamps on the days on which clocks change, by hand: Europe/Berlin and America/Chicago."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.energy import EXPORTS, read_series
from greenbatch.energy.stamps import utc_offsets
from greenbatch.errors import InputError

SPRING = {"Europe/Berlin": ("2023-03-26", 2, 1679785200), "America/Chicago": ("2023-03-12", 2, 1678600800)}
AUTUMN = {"Europe/Berlin": ("2023-10-29", 2, 1698530400), "America/Chicago": ("2023-11-05", 1, 1699160400)}
"""Zone -> date, first hour that is skipped or occurs twice, and Unix time of local midnight."""


def read(tmp_path, hours, zone, day, **options):
    """Prices 0, 1, 2, ... EUR/MWh at given hours of local time."""
    rows = "".join(f"{day} {hour:02}:{minute:02},{k}\n" for k, (hour, minute) in enumerate(hours))
    (tmp_path / "p.csv").write_text("t,p\n" + rows)
    return read_series(
        tmp_path / "p.csv", columns=["p"], unit="EUR/MWh", time_kind="local", time_column="t", time_zone=zone, **options
    )  # fmt: skip


def wall(start, end, step_min=60):
    return [divmod(minute, 60) for minute in range(start * 60, end * 60, step_min)]


@pytest.mark.parametrize("zone", SPRING)
def test_a_day_of_23_hours(tmp_path, zone):
    day, lost, midnight_s = SPRING[zone]
    hours = [hour for hour in wall(0, 24) if hour[0] != lost]
    series = read(tmp_path, hours, zone, day)
    assert series.start_s == midnight_s
    assert series.values * 1e3 == pytest.approx(np.arange(23.0))
    assert series.notes == ()
    with pytest.raises(InputError, match=r"line 4: t: this local time does not exist .* clock_changes = \"fill\""):
        read(tmp_path, wall(0, 24), zone, day)
    filled = read(tmp_path, wall(0, 24), zone, day, clock_changes="fill")
    assert filled.values * 1e3 == pytest.approx([k for k in range(24) if k != lost])
    assert len(filled.notes) == 1
    assert "local times that do not exist dropped: 1, first" in str(filled.notes[0])


@pytest.mark.parametrize("zone", AUTUMN)
def test_a_day_of_25_hours(tmp_path, zone):
    day, again, midnight_s = AUTUMN[zone]
    hours = sorted([*wall(0, 24), (again, 0)])
    series = read(tmp_path, hours, zone, day)
    assert series.start_s == midnight_s
    assert series.values * 1e3 == pytest.approx(np.arange(25.0))
    assert read(tmp_path, hours, zone, day, clock_changes="fill").values == pytest.approx(series.values)
    with pytest.raises(InputError, match=r"a gap of 7200 s after .* or clock_changes = \"fill\", because the clocks"):
        read(tmp_path, wall(0, 24), zone, day)
    filled = read(tmp_path, wall(0, 24), zone, day, clock_changes="fill")
    assert filled.values * 1e3 == pytest.approx(sorted([*range(24), again]))
    assert "stamps of a doubled hour that stand once used for both hours: 1, first" in str(filled.notes[0])


@pytest.mark.parametrize("zone", AUTUMN)
def test_a_doubled_hour_in_quarters(tmp_path, zone):
    day, again, _ = AUTUMN[zone]
    filled = read(tmp_path, wall(0, 24, 15), zone, day, clock_changes="fill")
    quarters = list(range(96))
    assert filled.values * 1e3 == pytest.approx(quarters[: 4 * again + 4] + quarters[4 * again :])
    assert "used for both hours: 4" in str(filled.notes[0])


def test_the_wrong_zone_is_noticed(tmp_path):
    day, again, _ = AUTUMN["Europe/Berlin"]
    with pytest.raises(InputError, match="line 5: t: the time occurs twice"):
        read(tmp_path, sorted([*wall(0, 24), (again, 0)]), "America/Chicago", day)
    day, lost, _ = SPRING["Europe/Berlin"]
    with pytest.raises(InputError, match="line 4: t: a gap of 7200 s after 2023-03-26T01:00:00Z"):
        read(tmp_path, [hour for hour in wall(0, 24) if hour[0] != lost], "UTC", day)


OLD = """\
"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]","Currency","BZN|DE-LU"
"26.03.2023 00:00 - 26.03.2023 01:00","10.5","EUR",""
"26.03.2023 01:00 - 26.03.2023 02:00","-3","EUR",""
"26.03.2023 02:00 - 26.03.2023 03:00","","EUR",""
"26.03.2023 03:00 - 26.03.2023 04:00","7","EUR",""
"""
NEW = """\
"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)"
"29/10/2023 01:00:00 (CEST) - 29/10/2023 02:00:00 (CEST)","BZN|DE-LU","Without Sequence","1"
"29/10/2023 02:00:00 (CEST) - 29/10/2023 02:00:00 (CET)","BZN|DE-LU","Without Sequence","2"
"29/10/2023 02:00:00 (CET) - 29/10/2023 03:00:00 (CET)","BZN|DE-LU","Without Sequence","3"
"29/10/2023 03:00:00 (CET) - 29/10/2023 04:00:00 (CET)","BZN|DE-LU","Without Sequence","4"
"""
WATTTIME = "point_time,value\n2023-06-08T00:00:00+00:00,937\n2023-06-08T00:05:00+00:00,940\n"


@pytest.mark.parametrize(
    ("name", "content", "start", "values"),
    [
        ("entso-e", OLD, "2023-03-25T23:00+00:00", [0.0105, -0.003, 0.007]),
        ("entso-e-gui", NEW, "2023-10-28T23:00+00:00", [0.001, 0.002, 0.003, 0.004]),
        ("watttime", WATTTIME, "2023-06-08T00:00+00:00", [937 * 0.45359237, 940 * 0.45359237]),
    ],
)
def test_exports(tmp_path, name, content, start, values):
    (tmp_path / "e.csv").write_text(content)
    series = read_series(tmp_path / "e.csv", **EXPORTS[name])
    assert series.start_s == datetime.fromisoformat(start).timestamp()
    assert series.values == pytest.approx(values)


@given(
    st.sampled_from(["Europe/Berlin", "America/Chicago", "Australia/Lord_Howe", "Asia/Kathmandu", "+05:30"]),
    st.floats(-2e9, 4e9),
    st.lists(st.floats(0, 4e7), min_size=1, max_size=20),
)
def test_offsets_are_those_of_the_zone(name, start_s, later_s):
    times_s = np.sort(np.floor(start_s + np.array(later_s)))
    zone = None if name.startswith("+") else ZoneInfo(name)
    epoch = datetime.fromisoformat("1970-01-01T00:00+00:00")
    expected = [
        19800.0 if zone is None else (epoch + timedelta(seconds=at)).astimezone(zone).utcoffset().total_seconds()
        for at in times_s.tolist()
    ]
    assert utc_offsets(times_s, name).tolist() == expected
