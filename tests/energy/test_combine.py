"""Sources on different steps, starts and calendars become one site."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from greenbatch.energy import Series, Site, combine
from greenbatch.errors import InputError
from greenbatch.notes import Note

HOUR_S, DAY_S = 3600.0, 86_400.0


def unix(*date: int) -> float:
    return datetime(*date, tzinfo=UTC).timestamp()


def watts(values, **more) -> Series:
    return Series(
        **{"name": "file.csv", "quantity": "power_w", "step_s": HOUR_S, **more, "values": np.asarray(values, float)}
    )


def typical_year(step_s=HOUR_S, **more) -> Series:
    """Power = number of the step of the year."""
    return watts(np.arange(365 * DAY_S / step_s), step_s=step_s, clock="typical-year", **more)


def test_trace_start_puts_slot_0_at_trace_time_0():
    site = combine("s", {"solar": watts([1, 2, 3], clock="unix", start_s=1.7e9)}, align="trace-start")
    assert site.origin_s == 0
    assert site.renewable_w.tolist() == [1, 2, 3]


def test_trace_start_keeps_dated_series_in_phase():
    """Wind begins a day later than sun: trace time 0 is the first hour of both, and nothing is shifted apart."""
    sun = watts(np.arange(72), clock="unix", start_s=unix(2024, 6, 1))
    wind = watts(1000 + np.arange(72), clock="unix", start_s=unix(2024, 6, 2))
    site = combine("s", {"solar": sun, "wind": wind})
    assert site.slots == 48
    assert site.sources_w["solar"][0] == 24
    assert site.sources_w["wind"][0] == 1000
    assert [str(note) for note in site.notes if "cut" in note.what] == [
        "solar: 1 d at the start cut off, not covered by all sources: wind starts 2024-06-02",
        "wind: 1 d at the end cut off, not covered by all sources: solar ends 2024-06-04",
    ]


def test_series_from_the_start_of_a_trace_that_share_an_hour_are_refused():
    """An hour repeated for a year would be a bill of nothing."""
    sun = watts(np.ones(365 * 24), clock="unix", start_s=unix(2023, 1, 1))
    carbon = watts(np.ones(365 * 24 + 1), clock="unix", start_s=unix(2022, 1, 1))
    line = (
        r"site.sources: the series overlap by only 1 h: grid.carbon covers 2022-01-01 to 2023-01-01T01:00, solar "
        r"covers 2023-01-01 to 2024-01-01; the trace starts 2023-01-02 \(choose series that cover the same time\)$"
    )
    given = {"signals": {"grid.carbon": carbon}, "unix_start_s": unix(2023, 1, 2), "repeat": True}
    with pytest.raises(InputError, match=line):
        combine("s", {"solar": sun}, align="trace-start", **given)
    assert combine("s", {"solar": sun}, align="calendar", **given).slots == 1461 * 24
    short = watts(np.ones(12), clock="unix", start_s=unix(2023, 1, 2))
    given["signals"] = {"grid.carbon": short}
    assert combine("s", {"solar": sun}, align="trace-start", **given).slots == 12


def test_calendar_puts_the_series_at_its_date():
    sun = watts(np.arange(48), clock="unix", start_s=unix(2024, 6, 1))
    site = combine("s", {"solar": sun}, align="calendar", unix_start_s=unix(2024, 6, 1, 10, 30))
    assert site.origin_s == -10.5 * HOUR_S
    assert site.renewable_w[site.slot(0)] == 10
    assert site.renewable_w[site.slot(1800)] == 11


@pytest.mark.parametrize(
    ("start", "hour_of_year"),
    [
        ((2023, 1, 1, 8), 0),  # midnight at UTC-8
        ((2024, 2, 29, 8), 58 * 24),  # 29 February repeats 28 February
        ((2024, 3, 1, 9), 59 * 24 + 1),
        ((2024, 3, 1, 7, 59), 58 * 24 + 23),
        ((2025, 12, 31, 20), 364 * 24 + 12),
        ((1999, 7, 4, 20), 184 * 24 + 12),
    ],
)
def test_calendar_finds_month_day_and_hour_of_a_typical_year(start, hour_of_year):
    year = typical_year(utc_offset_s=-8 * HOUR_S)
    site = combine("s", {"solar": year}, align="calendar", unix_start_s=unix(*start))
    assert site.renewable_w[site.slot(0)] == hour_of_year
    assert site.slots in {4 * 365 * 24, 4 * 365 * 24 + 24}


def test_typical_year_over_a_leap_day_and_new_year():
    site = combine("s", {"solar": typical_year()}, align="calendar", unix_start_s=unix(2024, 2, 28))
    days = [site.renewable_w[site.slot(k * DAY_S)] / 24 for k in range(4)]
    assert days == [58, 58, 59, 60]
    assert site.renewable_w[site.slot(unix(2025, 1, 1) - unix(2024, 2, 28))] == 0


def test_typical_year_with_steps_centered_on_the_hour():
    year = typical_year(1800.0, start_s=-900.0)
    site = combine("s", {"solar": year}, align="calendar", unix_start_s=unix(2023, 1, 1))
    assert site.origin_s == -900
    assert site.renewable_w[site.slot(0)] == 0
    assert site.renewable_w[site.slot(900)] == 1


def test_hours_and_half_hours_meet_on_the_shorter_step():
    site = combine("s", {"solar": watts([4, 8]), "wind": watts([1, 2, 3, 4], step_s=1800.0)})
    assert site.step_s == 1800
    assert site.sources_w["solar"].tolist() == [4, 4, 8, 8]
    assert site.sources_w["wind"].tolist() == [1, 2, 3, 4]
    assert "solar: steps of 3600 s repeated to 1800 s" in map(str, site.notes)


def test_stated_step_averages():
    site = combine("s", {"wind": watts([1, 2, 3, 4], step_s=1800.0)}, step_s=HOUR_S)
    assert site.renewable_w.tolist() == [1.5, 3.5]


def test_rest_shorter_than_a_slot_is_left_out():
    site = combine("s", {"wind": watts([1, 2, 3], step_s=1800.0)}, step_s=HOUR_S)
    assert site.renewable_w.tolist() == [1.5]


@given(
    values=st.lists(st.floats(0, 1e5), min_size=2, max_size=30),
    source_step_s=st.sampled_from([300.0, 420.0, 1800.0, 3600.0]),
    shift_s=st.sampled_from([0.0, 100.0, 450.0]),
    step_s=st.sampled_from([None, 60.0, 500.0, 900.0]),
)
def test_every_source_keeps_its_energy(values, source_step_s, shift_s, step_s):
    first = watts(values, step_s=source_step_s, clock="unix", start_s=1e9)
    assume(len(values) * source_step_s - shift_s > max(source_step_s, step_s or 0))
    other = watts(np.ones(200), step_s=300.0, clock="unix", start_s=1e9 + shift_s)
    site = combine("s", {"a": first, "b": other}, step_s=step_s)
    begin_s, end_s = 1e9 + shift_s, 1e9 + shift_s + site.slots * site.step_s
    edges_s = np.clip(1e9 + source_step_s * np.arange(len(values) + 1), begin_s, end_s)
    expected_j = float((np.array(values) * np.diff(edges_s)).sum())
    assert site.sources_w["a"].sum() * site.step_s == pytest.approx(expected_j, rel=1e-9, abs=1e-3)
    assert site.sources_w["b"].tolist() == pytest.approx([1.0] * site.slots)


def test_signals_share_the_slots():
    temperature = Series(
        name="air", quantity="temperature_c", values=np.array([-5.0, 5.0, 15.0]), step_s=HOUR_S
    )  # fmt: skip
    site = combine("s", {"solar": watts([1, 2])}, signals={"air_c": temperature})
    assert site.signals["air_c"].tolist() == [-5, 5]
    assert site.renewable_w.tolist() == [1, 2]


def test_prices_whose_hours_begin_within_those_of_the_site_are_told():
    sun = watts([0.0] * 48, clock="unix", start_s=unix(2024, 6, 9))
    price = Series(
        name="price", values=np.tile([0.02, 0.52], 24), step_s=HOUR_S, quantity="price_per_kwh", currency="EUR",
        clock="unix", start_s=unix(2024, 6, 9) - 1800,
    )  # fmt: skip
    given = {"align": "calendar", "unix_start_s": unix(2024, 6, 9, 12), "signals": {"price": price}}
    site = combine("s", {"sun": sun}, **given)
    assert np.ptp(site.signals["price"][1:-1]) == pytest.approx(0.0)
    (told,) = [note for note in site.notes if note.level == "warning"]
    text = "price: its steps begin 30 min after those of the site, so each value is a mean of two (site.step_s = 1800 "
    assert str(told).startswith(text)
    kept = combine("s", {"sun": sun}, step_s=1800.0, **given)
    assert {*kept.signals["price"]} == {0.02, 0.52}
    assert not [note for note in kept.notes if note.level == "warning"]


def test_inputs_and_notes_of_all_sources_are_kept_once():
    sun = watts([1, 2], inputs={"a.csv": "11"}, notes=(Note("a.csv: filled", 1),))
    site = combine("s", {"solar": sun, "more": sun, "wind": watts([1, 2], inputs={"b.csv": "22"})})
    assert site.inputs == {"a.csv": "11", "b.csv": "22"}
    assert site.notes == (Note("a.csv: filled", 1),)
    other = watts([1, 2], inputs={"a.csv": "33"})
    assert combine("s", {"solar": sun, "wind": other}).inputs == {"a.csv": "11", "a.csv (33)": "33"}


JUNE = {"clock": "unix", "start_s": unix(2024, 6, 1)}


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        ({}, {}, "site.sources: requires at least one source"),
        ({"s": watts([1], quantity="share")}, {}, r"holds share, but site source 's' requires power_w \(.*W, kW"),
        ({"s": watts([1])}, {"align": "moon"}, "site.align: is 'moon'"),
        ({"s": watts([1], **JUNE)}, {"align": "calendar"}, "workload has no date, .*time_zone .*trace-start"),
        ({"s": watts([1])}, {"align": "calendar", "unix_start_s": 1e9}, r"file.csv: has no dates .*trace-start"),
        ({"s": watts([1], **JUNE)}, {"align": "calendar", "unix_start_s": 1e15}, "correct workload.unix_start_s or"),
        (
            {"s": watts([1, 2], **JUNE)},
            {"align": "calendar", "unix_start_s": unix(2025, 6, 1)},
            r"s covers 2024-06-01 to 2024-06-01T02:00, but the jobs run from 2025-06-01 on \(.*repeat = true",
        ),
        (
            {
                "s": watts([1] * 4, **JUNE),
                "t": watts([1] * 4, inputs={"t.csv": "0"}, **JUNE | {"start_s": 3600 + unix(2024, 6, 1)}),
            },
            {"align": "calendar", "unix_start_s": unix(2024, 6, 1), "until_s": 7200.0},
            r"t \(t.csv\), s cover 2024-06-01T01:00 to 2024-06-01T04:00, but the jobs run from .* to 2024-06-01T02:00",
        ),
        ({"a": watts([1], **JUNE), "b": typical_year()}, {}, 'use align = "calendar"'),
        (
            {"a": watts([1], **JUNE), "b": watts([1], clock="unix", start_s=unix(2025, 6, 1))},
            {},
            "overlap by less than one step",
        ),
        ({"s": watts([1])}, {"step_s": 0}, "site.step_s: is 0"),
        ({"s": watts([1])}, {"step_s": 7200}, "overlap by less than one step"),
        ({"s": watts(np.ones(9000))}, {"step_s": 1e-3}, "longer step"),
        ({"s": watts([1] * 48, clock="typical-year")}, {"align": "calendar", "unix_start_s": 1e9}, "not a year of 365"),
        ({"s": watts([1])}, {"signals": {"s": watts([1])}}, "a signal has the name of a source"),
        ({"s": watts([1])}, {"forecast_horizon_s": 1}, "forecast_horizon_s: is 1"),
    ],
)
def test_invalid_sites_are_refused(sources, options, message):
    with pytest.raises(InputError, match=message) as caught:
        combine("s", sources, **options)
    assert "\n" not in str(caught.value)


def test_repeat_lets_the_trace_start_outside():
    site = combine(
        "s", {"s": watts([1, 2, 3], **JUNE)}, align="calendar", unix_start_s=unix(2024, 6, 2), repeat=True
    )  # fmt: skip
    assert site.renewable_w[site.slot(0)] == 1  # 24 hours later, 24 mod 3 = 0


def repeated(series: Series, start_s: float, days: float, **signals: Series) -> tuple[Site, list[Note]]:
    """A site on the calendar of jobs, and the notes on jobs beyond the dates of its series."""
    site = combine(
        "s", {"s": series}, align="calendar", unix_start_s=start_s, repeat=True, signals=signals, until_s=days * DAY_S
    )  # fmt: skip
    return site, [note for note in site.notes if note.level == "warning"]


def at(site: Site, values: np.ndarray, unix_s: float) -> float:
    """The value at a Unix time."""
    return float(values[site.slot(unix_s - site.unix_start_s)])


def test_the_series_of_another_year_has_its_own_dates():
    """Hours of 2023 under jobs of leap years and others, with sun of a typical year beside it."""
    year = watts(np.arange(365 * 24), clock="unix", start_s=unix(2023, 1, 1))
    site, notes = repeated(typical_year(), unix(2024, 2, 20), 40.0, price=year)
    assert [(note.about, note.shares) for note in notes] == [("price", ((1.0, "hours"),))]
    for date, of_2023 in (
        ((2024, 2, 28, 5), (2023, 2, 28, 5)), ((2024, 2, 29, 5), (2023, 2, 28, 5)), ((2024, 3, 1), (2023, 3, 1)),
        ((2024, 12, 31, 23), (2023, 12, 31, 23)), ((2025, 7, 1, 12), (2023, 7, 1, 12)),
    ):  # fmt: skip
        hour = (unix(*of_2023) - unix(2023, 1, 1)) / HOUR_S
        assert at(site, site.signals["price"], unix(*date)) == at(site, site.renewable_w, unix(*date)) == hour


def test_the_nearest_year_counts():
    """Three years of data: the dates of the last are those of later jobs, the first of earlier ones."""
    days = np.repeat([2021, 2022, 2023], 365)
    series = watts(days, step_s=DAY_S, clock="unix", start_s=unix(2021, 1, 1))
    for year, found in ((2018, 2021), (2021, 2021), (2022, 2022), (2023, 2023), (2024, 2023), (2030, 2023)):
        site, notes = repeated(series, unix(year, 5, 1), 3.0)
        assert at(site, site.renewable_w, unix(year, 5, 2)) == found
        assert bool(notes) == (year != found)
        assert all("outside these dates, values of the same date in another year" in note.what for note in notes)


def test_jobs_beyond_a_short_series_have_whole_weeks_of_it():
    """A month of hours, jobs from its last day on: one of four days is its own."""
    month = watts(np.arange(30 * 24), clock="unix", start_s=unix(2026, 6, 1))
    site, notes = repeated(month, unix(2026, 6, 30), 4.0)
    assert [note.shares for note in notes] == [((0.75, "hours"),)]
    assert "covers 2026-06-01 to 2026-07-01: outside these dates, whole weeks of it again" in notes[0].what
    assert at(site, site.renewable_w, unix(2026, 6, 30, 23)) == 29 * 24 + 23
    assert at(site, site.renewable_w, unix(2026, 7, 1, 5)) == 2 * 24 + 5  # Wednesday, as 3 June
    assert at(site, site.renewable_w, unix(2027, 6, 4, 5)) == 3 * 24 + 5  # the same date of its own year
    assert site.stated == (site.slot(-29 * DAY_S), site.slot(0) + 24)


def test_series_that_cover_the_jobs_are_as_they_are():
    year = watts(np.arange(365 * 24), clock="unix", start_s=unix(2023, 1, 1))
    site, notes = repeated(year, unix(2023, 3, 1), 100.0)
    assert notes == []
    assert site.renewable_w[slice(*site.stated)].tolist() == year.values.tolist()


@settings(max_examples=30, deadline=None)
@given(
    steps=st.integers(1, 900), step_s=st.sampled_from([3600.0, 5400.0, 86_400.0]),
    begin=st.integers(0, 400), start=st.integers(0, 400), years=st.integers(1, 3),
)  # fmt: skip
def test_another_year_for_file_and_jobs_is_the_same(steps, step_s, begin, start, years):
    """Four years later every date has the same weekday but five days on: the same values, whatever is repeated."""
    values = np.arange(steps)
    four_s = years * 1461 * DAY_S
    found = []
    for later_s in (0.0, four_s):
        series = watts(values, step_s=step_s, clock="unix", start_s=unix(2021, 1, 1) + begin * DAY_S + later_s)
        site, notes = repeated(series, unix(2021, 1, 1) + start * DAY_S + later_s, 10.0)
        found.append((site.origin_s, site.renewable_w.tolist(), [note.shares for note in notes]))
    assert found[0] == found[1]


@settings(max_examples=6, deadline=None)
@given(hours=st.lists(st.floats(0, 500), min_size=24, max_size=240), parts=st.sampled_from([2, 4]))
def test_prices_held_on_finer_steps_are_the_same(hours, parts):
    """Hourly prices, or each of them several times: the same in every hour, repeated or not."""
    start_s = unix(2024, 12, 29)
    sites = []
    for step_s, values in ((HOUR_S, hours), (HOUR_S / parts, np.repeat(hours, parts))):
        price = Series(
            name="p", quantity="price_per_kwh", currency="JPY", values=np.asarray(values, float), step_s=step_s,
            clock="unix", start_s=start_s,
        )  # fmt: skip
        sites.append(repeated(typical_year(), start_s, 30.0, price=price)[0].signals["price"])
    coarse, fine = (np.asarray(signal) for signal in sites)
    assert (fine.reshape(-1, parts) == coarse[:, None]).all()
