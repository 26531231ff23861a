"""The embedded site against the statistics it was fitted to."""

import hashlib
from math import gamma
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.energy import Climate, combine, synthetic_irradiance, synthetic_site, synthetic_wind
from greenbatch.energy.synthetic import clear_sky
from greenbatch.errors import InputError

YEARS = 8


@pytest.fixture(scope="module")
def sun() -> np.ndarray:
    return np.concatenate([synthetic_irradiance(seed=seed).values for seed in range(YEARS)])


@pytest.fixture(scope="module")
def wind() -> np.ndarray:
    return np.concatenate([synthetic_wind(seed=seed).values for seed in range(YEARS)])


def lag(values: np.ndarray, steps: int) -> float:
    before, after = values[:-steps], values[steps:]
    known = ~np.isnan(before) & ~np.isnan(after)
    return float(np.corrcoef(before[known], after[known])[0, 1])


def normal_scores(values: np.ndarray) -> np.ndarray:
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    inverse = NormalDist().inv_cdf
    return np.array([inverse((r + 0.5) / values.size) for r in rank.tolist()])


def test_clear_sky_of_san_francisco():
    sky = clear_sky(Climate(), days=365)
    assert sky.sum() / 1000 == pytest.approx(2129, abs=1)  # kWh/m2 a year
    assert clear_sky(Climate(latitude_deg=90), days=365).reshape(365, 24)[:70].max() == 0  # polar night


def test_clear_sky_is_haurwitz_at_noon_on_the_equinox():
    # day 81: declination 0, so cos z = cos latitude at solar noon; the equation of time is -7.53 min
    climate = Climate(latitude_deg=37.77, longitude_deg=0.0, utc_offset_h=0.0)
    noon = clear_sky(climate, days=1, first_day=81, step_s=60).max()
    cos_z = np.cos(np.radians(37.77))
    assert noon == pytest.approx(1098 * cos_z * np.exp(-0.059 / cos_z), rel=1e-4)


def test_sun_has_the_fitted_statistics(sun):
    annual = sun.reshape(YEARS, -1).sum(axis=1) / 1000
    assert 1640 < annual.mean() < 1764
    assert (annual > 1550).all()
    assert (annual < 1820).all()
    sky = np.tile(clear_sky(Climate(), days=365), YEARS)
    k = np.where(sky > 150, sun / np.maximum(sky, 1), np.nan)
    assert np.nanmean(k) == pytest.approx(0.79, abs=0.02)
    assert np.nanstd(k) == pytest.approx(0.288, abs=0.015)
    assert lag(k, 1) == pytest.approx(0.84, abs=0.02)
    daily = np.nanmean(k.reshape(-1, 24), axis=1)
    assert daily.std() == pytest.approx(0.254, abs=0.015)
    assert lag(daily, 1) == pytest.approx(0.39, abs=0.05)
    assert np.mean(daily < 0.5) == pytest.approx(0.13, abs=0.04)


def test_wind_has_the_fitted_statistics(wind):
    assert wind.mean() == pytest.approx(6.74, abs=0.1)
    # Weibull shape by moments
    shapes = np.linspace(1.2, 4, 2801)
    spread = np.array([np.sqrt(gamma(1 + 2 / k) / gamma(1 + 1 / k) ** 2 - 1) for k in shapes])
    assert shapes[np.argmin(np.abs(spread - wind.std() / wind.mean()))] == pytest.approx(2.17, abs=0.06)
    scores = normal_scores(wind)
    for steps, expected in ((1, 0.914), (2, 0.83), (6, 0.51), (24, 0.21)):
        assert lag(scores, steps) == pytest.approx(expected, abs=0.03 if steps < 24 else 0.06)
    profile = wind.reshape(-1, 24).mean(axis=0)
    assert (profile.max() - profile.min()) / 2 / wind.mean() == pytest.approx(0.22, abs=0.03)
    assert profile.argmax() in (14, 15, 16)


def test_shorter_steps_keep_the_hour_to_hour_memory():
    fine = synthetic_wind(seed=3, days=120, step_s=600).values
    assert fine.size == 120 * 144
    assert lag(normal_scores(fine), 6) == pytest.approx(0.914, abs=0.03)
    sun = synthetic_irradiance(seed=3, days=365, step_s=900)
    assert 1500 < sun.values.sum() / 4 / 1000 < 1850


def test_less_memory_gives_less_memory():
    scores = normal_scores(synthetic_wind(seed=1, climate=Climate(wind_memory=0.85)).values)
    assert lag(scores, 1) == pytest.approx(0.858, abs=0.02)


def test_bytes_of_a_seed_never_change():
    """Changing these changes every result on the embedded site: say so under "Results change" in the changelog."""
    digests = [
        hashlib.sha256(model(seed=7, days=30).values.astype("<f8").tobytes()).hexdigest()[:16]
        for model in (synthetic_irradiance, synthetic_wind)
    ]
    assert digests == ["c09fede68b025763", "e3d4e78bdef91cf1"]


@settings(max_examples=20)
@given(seed=st.integers(0, 2**63), days=st.integers(1, 20), more=st.integers(1, 20), first=st.integers(1, 365))
def test_more_days_begin_with_the_same_weather(seed, days, more, first):
    for model in (synthetic_irradiance, synthetic_wind):
        short = model(seed=seed, days=days, first_day=first).values
        long = model(seed=seed, days=days + more, first_day=first).values
        assert short.tolist() == long[: short.size].tolist()
        assert (short >= 0).all()


def test_seeds_differ_and_sun_and_wind_are_independent(sun, wind):
    assert not np.array_equal(synthetic_wind(seed=0).values, synthetic_wind(seed=1).values)
    sky = np.tile(clear_sky(Climate(), days=365), YEARS)
    day = sky > 150
    assert abs(np.corrcoef(sun[day] / sky[day], wind[day])[0, 1]) < 0.03


def test_site_has_the_published_scale():
    """GAS-MARL's own site has a mean of 9981 W and a maximum of 47640 W."""
    site = synthetic_site(seed=0)
    assert site.slots == 8760
    assert site.repeat
    assert 9000 < site.renewable_w.mean() < 11_500
    assert 40_000 < site.renewable_w.max() < 60_000
    scaled = synthetic_site(seed=0, factor=2)
    assert scaled.renewable_w.sum() == pytest.approx(2 * site.renewable_w.sum(), rel=1e-6)


def test_a_year_can_be_put_on_the_calendar():
    at = synthetic_site(align="calendar", unix_start_s=1_719_864_000.0)  # 1 July 2024, 12:00 in San Francisco
    day = [at.sources_w["solar"][at.slot(3600.0 * h)] for h in range(24)]
    assert max(day) == max(day[:3] + day[-3:])
    assert max(day[9:16]) == 0
    with pytest.raises(InputError, match="has no dates"):
        synthetic_site(days=30, align="calendar", unix_start_s=1.7e9)


def test_series_combine_like_any_other():
    site = combine("s", {"sun": synthetic_irradiance(days=2).derived("power_w", np.ones(48))})
    assert site.slots == 48


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"seed": -1}, "site.seed"),
        ({"seed": 1.5}, "site.seed"),
        ({"days": 0}, "site.days"),
        ({"days": 10**6}, "site.days"),
        ({"first_day": 366}, "site.first_day"),
        ({"step_s": 7200}, "site.step_s"),
        ({"step_s": 1700}, "site.step_s"),
        ({"step_s": 0}, "site.step_s"),
        ({"step_s": float("nan")}, "site.step_s"),
        ({"days": 3650, "step_s": 1}, "site.step_s"),
    ],
)
@pytest.mark.parametrize("model", [synthetic_irradiance, synthetic_wind])
def test_impossible_weather(model, options, field):
    with pytest.raises(InputError) as caught:
        model(**options)
    assert caught.value.field == field
    assert caught.value.fix


def test_impossible_climate():
    with pytest.raises(InputError, match=r"site.climate.latitude_deg: is 91 \(it must be -90 to 90\)"):
        Climate(latitude_deg=91)
    with pytest.raises(InputError, match=r"site\.climate\.wind_shape: is nan"):
        Climate(wind_shape=float("nan"))
