"""A `Site`: slots, repetition and forecast."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.energy import Site
from greenbatch.errors import InputError, SupplyExhausted


def site(power_w, **more) -> Site:
    return Site(name="s", sources_w={"solar": np.asarray(power_w, dtype=float)}, **{"step_s": 3600.0, **more})


def test_slots_begin_at_the_origin():
    s = site([1, 2, 3], origin_s=-1800)
    assert [s.slot(t) for t in (-1800, 1799.999, 1800, 8999.999)] == [0, 0, 1, 2]


@pytest.mark.parametrize("time_s", [-1801.0, 9000.0])
def test_outside_of_the_series_is_an_error_in_one_line(time_s):
    with pytest.raises(SupplyExhausted, match=r"covers trace seconds -1800 to 9000, but .*repeat = true"):
        site([1, 2, 3], origin_s=-1800).slot(time_s)


def test_the_error_names_files_and_dates():
    files = {f"{name}.csv": "" for name in "abcd"}
    with pytest.raises(SupplyExhausted) as raised:
        site([1, 2, 3], unix_start_s=1_700_000_000.0, inputs=files).slot(10_800.0)
    assert str(raised.value) == (
        "the power series of site 's' (a.csv, b.csv, c.csv, ...) covers 2023-11-14T22:13:20 to 2023-11-15T01:13:20, "
        "but the schedule needs 2023-11-15T01:13:20 (give a longer series or set site.repeat = true)"
    )


def test_repeat_covers_before_and_after():
    s = site([1, 2, 3], repeat=True)
    assert [s.slot(3600.0 * k) for k in (-1, 0, 2, 3, 7)] == [2, 0, 2, 0, 1]


def test_forecast_runs_over_the_seam_of_a_repeated_series():
    start_s, end_s, power_w = site([1, 2, 3, 4], repeat=True, forecast_horizon_s=3 * 3600).forecast(3 * 3600 + 100)
    assert start_s.tolist() == [10_800, 14_400, 18_000]
    assert end_s.tolist() == [14_400, 18_000, 21_600]
    assert power_w.tolist() == [4, 1, 2]


def test_forecast_ends_with_a_series_that_does_not_repeat():
    s = site([1, 2, 3, 4], forecast_horizon_s=3 * 3600)
    assert s.forecast(2.5 * 3600)[2].tolist() == [3, 4]


@pytest.mark.parametrize(
    ("horizon_s", "slots"), [(3600, 1), (5400, 1), (7200, 2), (300 * 288.0, 4), (float("inf"), 4), (86_400, 4)]
)
def test_horizon_counts_whole_slots(horizon_s, slots):
    assert site([1, 2, 3, 4], forecast_horizon_s=horizon_s).horizon_slots == slots


def test_rounding_costs_no_slot():
    assert 0.3 / 0.1 < 3
    assert site([1, 2, 3, 4], step_s=0.1, forecast_horizon_s=0.3).horizon_slots == 3


@given(
    power_w=st.lists(st.integers(0, 50_000), min_size=1, max_size=60),
    horizon=st.integers(1, 70),
    now=st.floats(0, 1e7),
    step_s=st.sampled_from([60.0, 300.0, 3600.0]),
)
def test_forecast_shows_the_slots_within_the_horizon(power_w, horizon, now, step_s):
    """Slot h0 + k of the forecast has the true power of that slot of the repeated series."""
    s = site(power_w, repeat=True, step_s=step_s, forecast_horizon_s=horizon * step_s)
    m, h0 = s.horizon_slots, int(now // step_s)
    assert m == min(horizon, len(power_w))
    start_s, end_s, known_w = s.forecast(now)
    assert known_w.size == m
    assert start_s[0] <= now < end_s[0]
    assert known_w.tolist() == [power_w[(h0 + k) % len(power_w)] for k in range(m)]


@given(
    step_s=st.sampled_from([0.1, 0.3, 0.7, 1 / 3, 10 / 3, 5.0]), origin_s=st.sampled_from([0.0, -18.0, 0.1, -1 / 3]),
    slot=st.integers(-1000, 100_000), below=st.booleans(),
)  # fmt: skip
def test_a_slot_begins_at_its_start_and_not_before(step_s, origin_s, slot, below):
    """Also if the quotient of time and step is rounded to the next slot or to the one before."""
    s = site(list(range(7)), repeat=True, step_s=step_s, origin_s=origin_s, forecast_horizon_s=9 * step_s)
    now_s = origin_s + slot * step_s
    now_s = np.nextafter(now_s, -np.inf) if below else now_s
    start_s, end_s, power_w = s.forecast(now_s)
    assert start_s[0] <= now_s < end_s[0]
    assert s.slot(now_s) == (slot - below) % 7
    assert (start_s[1:] == end_s[:-1]).all()
    assert power_w[0] == s.slot(now_s)


def test_sources_add_up():
    s = Site(name="s", step_s=60, sources_w={"solar": np.array([1.0, 0.5]), "wind": np.array([2.0, 0.0])})
    assert s.renewable_w.tolist() == [3, 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step_s": 0.0}, "site.step_s: is 0"),
        ({"step_s": float("nan")}, "site.step_s: is nan"),
        ({"step_s": float("inf")}, "site.step_s: is inf"),
        ({"step_s": 1e-9}, "site.step_s: is 1e-09"),
        ({"origin_s": float("nan")}, "site.origin_s: is nan"),
        ({"origin_s": float("inf")}, "site.origin_s: is inf"),
        ({"sources_w": {"a": np.array([1.0, 1e308])}}, "site.a: slot 1 is 1e.308"),
        ({"sources_w": {"a": ["x"]}}, "site.a: is not a column of numbers"),
        ({"sources_w": {}}, "at least one source"),
        ({"sources_w": {"a": np.zeros(2), "b": np.zeros(3)}}, "all of the same length"),
        ({"sources_w": {"solar": np.array([1.0, np.nan])}}, "site.solar: slot 1 is nan"),
        ({"sources_w": {"solar": np.array([-1.0])}}, "site.solar: slot 0 is -1"),
        ({"forecast_horizon_s": 10.0}, r"forecast_horizon_s: is 10.0 .*one step, 3600 s"),
        ({"pue": 0.99}, r"site.pue: is 0.99 \(it must be 1 to 100\)"),
        ({"pue": float("nan")}, "site.pue: is nan"),
        ({"pue": 130}, "site.pue: is 130"),
        ({"pue": np.array([1.2, 0.5])}, "site.pue: slot 1 is 0.5"),
        ({"pue": np.array([np.inf, 1.2])}, "site.pue: slot 0 is inf"),
        ({"pue": np.ones(3)}, "site.pue: .*one number, or 2, one per slot"),
        ({"pue": "low"}, "site.pue: is not a column of numbers"),
        ({"base_load_w": -1.0}, "site.base_load_w: is -1"),
        ({"base_load_w": float("nan")}, "site.base_load_w: is nan"),
        ({"signals": {"price_eur_per_mwh": np.zeros(7)}}, "site.price_eur_per_mwh: .*give 2 finite values"),
    ],
)
def test_impossible_sites(change, message):
    good = {"name": "s", "step_s": 3600.0, "sources_w": {"solar": np.zeros(2)}}
    with pytest.raises(InputError, match=message):
        Site(**{**good, **change})


def test_series_are_read_only_and_apart_from_the_given_ones():
    given = {"solar": np.ones(2)}
    s = Site(name="s", step_s=3600.0, sources_w=given, signals={"price_eur_per_mwh": np.ones(2)})
    given["solar"][0] = 7.0
    given["wind"] = np.ones(3)
    assert s.renewable_w.tolist() == [1.0, 1.0]
    for series in (s.sources_w["solar"], s.signals["price_eur_per_mwh"]):
        with pytest.raises(ValueError, match="read-only"):
            series[0] = 7.0
