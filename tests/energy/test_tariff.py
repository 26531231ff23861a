"""Time-of-use tariffs, computed by hand and by a plain loop over minutes."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.energy import Period, Tariff, calendar_months
from greenbatch.energy.tariff import DAYS
from greenbatch.errors import InputError

BERLIN = ZoneInfo("Europe/Berlin")
SUMMER, WINTER = (4, 5, 6, 7, 8, 9), (1, 2, 3, 10, 11, 12)
PERIODS = (
    Period(name="summer peak", value=30, months=SUMMER, days=["weekday"], hours=["08:00-20:00"]),
    Period(name="winter peak", value=40, months=WINTER, days=["weekday"], hours=["08:00-20:00"]),
    Period(name="weekend", value=20, days=["weekend"], hours=["08:00-20:00"]),
    Period(name="holiday", value=5, days=["holiday"], hours=["08:00-20:00"]),
    Period(name="night", value=10, hours=["20:00-08:00"]),
)
TARIFF = Tariff(periods=PERIODS, time_zone="Europe/Berlin", holidays=["12-25", "2023-05-18"])


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


@pytest.mark.parametrize(
    ("hour", "price"),
    [
        ("2023-03-31 08:00", 40),  # a Friday in winter, first hour of the peak
        ("2023-03-31 07:00", 10),
        ("2023-03-31 19:00", 40),
        ("2023-03-31 20:00", 10),
        ("2023-04-03 12:00", 30),  # a Monday in summer
        ("2023-04-01 12:00", 20),  # a Saturday
        ("2023-04-02 23:00", 10),  # a Sunday night
        ("2023-12-25 12:00", 5),  # a Monday and holiday, as every year
        ("2022-12-25 12:00", 5),  # a Sunday and holiday
        ("2023-05-18 12:00", 5),  # a Thursday and holiday in 2023,
        ("2024-05-18 12:00", 20),  # a Saturday and no holiday in 2024
        ("2023-12-25 21:00", 10),
    ],
)
def test_an_hour_by_hand(hour, price):
    assert TARIFF.prices(at(hour), 3600.0, 1).tolist() == [price]


def test_the_mean_over_a_slot():
    # 07:15 to 08:30: 45 minutes of 10, 30 minutes of 40; the next slot is all peak.
    assert TARIFF.prices(at("2023-03-31 07:15"), 4500.0, 2) == pytest.approx([(45 * 10 + 30 * 40) / 75, 40])
    assert TARIFF.prices(at("2023-03-31 00:00"), 86_400.0, 1) == pytest.approx([(12 * 10 + 12 * 40) / 24])


@pytest.mark.parametrize(
    ("zone", "spring", "autumn"),
    [("Europe/Berlin", "2023-03-26", "2023-10-29"), ("America/Los_Angeles", "2023-03-12", "2023-11-05")],
)
def test_days_of_23_and_25_hours(zone, spring, autumn):
    periods = [Period(name="night", value=1, hours=["00:00-06:00"]), Period(name="day", value=3, hours=["06:00-24:00"])]
    tariff, local = Tariff(periods=periods, time_zone=zone), ZoneInfo(zone)
    assert tariff.prices(at(f"{spring} 00:00", local), 3600.0, 23).tolist() == [1] * 5 + [3] * 18
    assert tariff.prices(at(f"{autumn} 00:00", local), 3600.0, 25).tolist() == [1] * 7 + [3] * 18


@given(
    st.sampled_from(["Europe/Berlin", "America/Los_Angeles", "Asia/Kathmandu"]),
    st.integers(0, 4_000_000_000 // 60),
    st.sampled_from([300, 900, 1800, 3600, 5400, 20_000]),
    st.integers(1, 30),
)
def test_like_a_loop_over_seconds_of_a_minute(zone, start_min, step_s, slots):
    tariff = Tariff(periods=PERIODS, time_zone=zone, holidays=["12-25", "01-01"])
    found = tariff.prices(start_min * 60.0, float(step_s), slots)
    for slot in {0, slots // 2, slots - 1}:
        begin_s = start_min * 60 + slot * step_s
        prices = [plain(begin_s + second, ZoneInfo(zone)) for second in range(0, step_s, 20)]
        assert found[slot] == pytest.approx(np.mean(prices))


def plain(unix_s: float, zone: ZoneInfo) -> float:
    """The price of PERIODS at one instant, with holidays on 25 December and 1 January."""
    local = datetime.fromisoformat("1970-01-01T00:00+00:00") + timedelta(seconds=unix_s)
    local = local.astimezone(zone)
    if not 8 <= local.hour < 20:
        return 10
    if (local.month, local.day) in {(12, 25), (1, 1)}:
        return 5
    if local.weekday() >= 5:
        return 20
    return 30 if local.month in SUMMER else 40


def test_months_in_local_time():
    months = calendar_months(at("2023-10-31 22:00"), 3600.0, 4, "Europe/Berlin")
    assert months.tolist() == [0, 0, 1, 1]
    assert calendar_months(at("2023-10-31 22:00"), 3600.0, 4, "UTC").tolist() == [0, 0, 0, 1]  # CET is UTC+1
    year = calendar_months(at("2023-01-01 00:00"), 3600.0, 8760, "Europe/Berlin")
    hours = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert np.bincount(year).tolist() == [24 * days - (k == 2) + (k == 9) for k, days in enumerate(hours)]


DAY = {"name": "day", "value": 1, "hours": ["06:00-22:00"]}
NIGHT = {"name": "night", "value": 1, "hours": ["22:00-06:00"]}
WRONG = [
    ([DAY], {}, "no period has a price on mon at 00:00 in January, before 'day'"),
    ([DAY, {**NIGHT, "hours": ["22:00-05:00"]}], {}, "on mon at 05:00 in January, after 'night', before 'day'"),
    ([DAY, {**NIGHT, "days": ["weekday"]}], {}, "no period has a price on sat at 00:00 in January, before 'day'"),
    ([DAY, {**NIGHT, "months": range(1, 12)}], {}, "on mon at 00:00 in December, before 'day'"),
    ([DAY, {**NIGHT, "days": DAYS[:7]}], {"holidays": ["12-25"]}, "on holiday at 00:00 in January, before 'day'"),
    ([DAY, NIGHT, {**DAY, "name": "noon"}], {}, "periods 'day' and 'noon' overlap on mon at 06:00 in January"),
    ([DAY, {**NIGHT, "hours": ["21:00-06:00"]}], {}, "'day' and 'night' overlap on mon at 21:00 in January"),
    (
        [DAY, NIGHT, {"name": "x", "value": 1, "days": ["sun"], "months": [7]}],
        {},
        "'x' overlap on sun at 00:00 in July",
    ),
    ([DAY, NIGHT, {"name": "x", "value": 1, "days": ["holiday"]}], {}, "'x' is for holidays, but none are listed"),
    ([DAY, NIGHT], {"holidays": ["25.12."]}, "'25.12.' is not a date"),
    ([DAY, NIGHT], {"holidays": ["02-30"]}, "'02-30' is not a date"),
    ([DAY, NIGHT], {"time_zone": "Mars/Base"}, "there is no time zone 'Mars/Base'"),
    ([{**DAY, "hours": ["6-22"]}], {}, "'6-22' is not a span of hours"),
    ([{**DAY, "hours": ["06:00-24:30"]}], {}, "'06:00-24:30' is not a span"),
    ([{**DAY, "hours": ["06:60-07:00"]}], {}, "'06:60-07:00' is not a span"),
    ([{**DAY, "hours": ["06:00-06:00"]}], {}, "'06:00-06:00' is not a span"),
    ([{**DAY, "days": ["monday"]}], {}, "is ['monday']"),
    ([{**DAY, "months": [13]}], {}, "is [13]"),
    ([{**DAY, "months": []}], {}, "is []"),
]


@pytest.mark.parametrize(("periods", "options", "says"), WRONG, ids=[row[2] for row in WRONG])
def test_refused(periods, options, says):
    with pytest.raises(InputError) as refused:
        Tariff(**{"periods": [Period(**given) for given in periods], "time_zone": "UTC", **options})
    assert says in str(refused.value)
    assert refused.value.fix


def test_holidays_need_no_price_where_there_are_none():
    periods = [Period(**DAY), Period(**{**NIGHT, "days": DAYS[:7]})]
    assert Tariff(periods=periods, time_zone="UTC").prices(0.0, 3600.0, 24).tolist() == [1] * 24
