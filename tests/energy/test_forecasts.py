"""Forecasts that err: what each kind says, the statistics of errors, and inputs that are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenbatch.energy import ForecastModel, Site
from greenbatch.energy.forecasts import POWERS, erring_w, leads, random_series
from greenbatch.errors import InputError
from greenbatch.scenarios import load_scenario

HOUR_S, DAY_S = 3600.0, 86_400.0
QUARTER_S = DAY_S / 4
DAYS = np.arange(24.0)  # six days of four slots, no two of them equal
REL = 1e-8


def site(
    power_w: Any = DAYS, *, step_s: float = QUARTER_S, repeat: bool = False, days: float = 1.0, **given: Any
) -> Site:
    return Site(
        name="s", step_s=step_s, sources_w={"sun": np.asarray(power_w)}, repeat=repeat,
        forecast_horizon_s=days * DAY_S, forecast_model=ForecastModel(**given),
    )  # fmt: skip


def told(where: Site, slot: int) -> list[float]:
    return where.forecast(slot * where.step_s)[2].tolist()


# ---------------------------------------------------------------- kinds


def test_the_kind_follows_from_the_error_unless_it_is_given() -> None:
    assert ForecastModel().kind == "perfect"
    assert ForecastModel(sigma=0.2).kind == ForecastModel(bias=-0.1).kind == "error"
    assert ForecastModel(sigma=0.2, kind="persistence").kind == "persistence"
    assert ForecastModel(sigma=0.0, correlation_h=3.0, seed=4).kind == "perfect"


def test_persistence_is_the_power_a_day_before_and_now_what_is_measured() -> None:
    assert told(site(kind="persistence"), 9) == [9, 6, 7, 8]
    assert told(site(kind="persistence", repeat=True), 22) == [22, 19, 20, 21]


def test_persistence_beyond_a_day_is_the_last_known_day() -> None:
    assert told(site(kind="persistence", days=3.0), 9) == [9, 6, 7, 8, 9, 6, 7, 8, 9, 6, 7, 8]


def test_before_the_first_day_is_over_the_present_power_is_expected_unless_the_series_repeats() -> None:
    assert told(site(kind="persistence"), 2) == [2, 2, 0, 1]
    assert told(site(kind="persistence"), 1) == [1, 1, 1, 0]
    assert told(site(kind="persistence", repeat=True), 1) == [1, 22, 23, 0]
    assert told(site(kind="climatology"), 1) == [1, 1, 1, 0]


def test_climatology_is_the_mean_of_the_slot_of_the_day_over_the_past_days() -> None:
    two = ForecastModel(kind="climatology", days=2)
    where = replace(site(), forecast_model=two)
    assert told(where, 9) == [9, (6 + 2) / 2, (7 + 3) / 2, (8 + 4) / 2]
    assert told(replace(where, forecast_model=ForecastModel(kind="climatology")), 9) == [9, 4, 5, (8 + 4 + 0) / 3]
    beyond = replace(where, forecast_horizon_s=2 * DAY_S)
    assert told(beyond, 9) == [9, 4, 5, 6, (9 + 5) / 2, 4, 5, 6]


def test_one_past_day_is_persistence() -> None:
    one = site(kind="climatology")
    one = replace(one, forecast_model=ForecastModel(kind="climatology", days=1), forecast_horizon_s=2 * DAY_S)
    other = replace(one, forecast_model=ForecastModel(kind="persistence"))
    assert [told(one, k) for k in range(24)] == [told(other, k) for k in range(24)]


@pytest.mark.parametrize("kind", ["persistence", "climatology"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_forecast_from_the_past_does_not_know_the_future(kind: str, data: st.DataObject) -> None:
    """Everything after the current slot is replaced, and no number changes."""
    power_w = np.array(data.draw(st.lists(st.floats(0, 1e4), min_size=2, max_size=40)))
    now = data.draw(st.integers(0, power_w.size - 1))
    other_w = power_w.copy()
    other_w[now + 1 :] = data.draw(st.floats(0, 1e6))
    days = data.draw(st.integers(1, 3))
    models = ForecastModel(kind=kind, days=days)  # type: ignore[arg-type]
    one, other = (
        replace(site(w, days=data.draw(st.floats(0.25, 4))), forecast_model=models) for w in (power_w, other_w)
    )
    other = replace(other, forecast_horizon_s=one.forecast_horizon_s)
    assert told(one, now) == told(other, now)


def test_a_base_load_and_a_pue_are_applied_to_the_forecast_of_renewable_power() -> None:
    plain = site(kind="persistence")
    facility = replace(plain, base_load_w=6.5, pue=np.linspace(1.0, 2.0, 24))
    pue = np.linspace(1.0, 2.0, 24)[9:13]
    assert told(facility, 9) == (np.maximum(np.array([9, 6, 7, 8]) - 6.5, 0) / pue).tolist()


# ---------------------------------------------------------------- errors


def errors(where: Site, leads: tuple[int, ...]) -> dict[int, np.ndarray]:
    """Logarithm of forecast over truth, so many slots ahead, seen from every slot."""
    found = np.log(np.array([where.forecast(k * where.step_s)[2] for k in range(where.slots)]) / where.renewable_w[0])
    return {lead: found[:, lead] for lead in leads}


CONSTANT = np.full(24 * 200, 1000.0)


def test_the_current_slot_is_known_and_night_stays_night() -> None:
    power_w = np.tile([0.0, 5.0, 9.0, 0.0], 6)
    where = site(power_w, repeat=True, sigma=1.0, bias=0.5)
    for slot in range(24):
        got = told(where, slot)
        assert got[0] == power_w[slot]
        assert (np.array(got) == 0).tolist() == (power_w[np.arange(slot, slot + 4) % 24] == 0).tolist()


@pytest.mark.parametrize("bias", [0.0, -0.25])
def test_errors_keep_the_mean_and_grow_with_the_square_root_of_the_time_ahead(bias: float) -> None:
    sigma = 0.3
    where = site(CONSTANT, step_s=HOUR_S, repeat=True, sigma=sigma, bias=bias, correlation_h=6.0, seed=5)
    for lead, found in errors(where, (1, 6, 18)).items():
        expected = sigma * np.sqrt(lead / 24)
        assert found.std() == pytest.approx(expected, rel=0.05)
        assert np.exp(found).mean() == pytest.approx(1 + bias, rel=0.02)


def test_errors_are_correlated_as_stated() -> None:
    """Over the horizon, and from one forecast of a slot to the next: closed forms of a first-order process."""
    memory = np.exp(-1 / 6)
    where = site(CONSTANT, step_s=HOUR_S, repeat=True, sigma=0.5, correlation_h=6.0, seed=3)
    at = errors(where, (3, 4, 12, 18))
    for near, far in ((3, 4), (3, 12), (12, 18)):
        norm = np.sqrt((1 - memory ** (2 * near)) * (1 - memory ** (2 * far)))
        along = (memory ** (far - near) - memory ** (far + near)) / norm
        assert np.corrcoef(at[near], at[far])[0, 1] == pytest.approx(along, abs=0.06)
        later = np.roll(at[near], near - far)  # seen later, of the same slot
        between = np.sqrt((1 - memory ** (2 * near)) / (1 - memory ** (2 * far)))
        assert np.corrcoef(later, at[far])[0, 1] == pytest.approx(between, abs=0.06)
    assert between > 0.9


@pytest.mark.parametrize("count", [2, 5, 48])
def test_the_series_of_an_error_is_a_circle_of_variance_1(count: int) -> None:
    """Also if it is shorter than the time over which errors are correlated; over seeds, also across its ends."""
    many = np.array([random_series(count, HOUR_S, 12.0, seed) for seed in range(4000)])
    memory = np.exp(-1 / 12)
    assert many.var(axis=0) == pytest.approx(np.ones(count), abs=0.1)
    next_one = (memory + memory ** (count - 1)) / (1 + memory**count)
    assert np.mean(many * np.roll(many, -1, axis=1), axis=0) == pytest.approx(np.full(count, next_one), abs=0.1)


def test_errors_grow_no_more_after_ten_days() -> None:
    table = leads(ForecastModel(sigma=0.2), DAY_S, 40, 30)
    deviation = np.sqrt(-2 * np.log(table[:, 2]))
    assert deviation[[1, 4, 10, 29]] == pytest.approx([0.2, 0.4, 0.2 * 10**0.5, 0.2 * 10**0.5])


def test_seeds_differ_and_a_seed_is_always_the_same() -> None:
    one, same, other = (site(CONSTANT[:48], step_s=HOUR_S, sigma=0.3, seed=seed) for seed in (1, 1, 2))
    assert told(one, 3) == told(same, 3)
    assert all(a != b for a, b in zip(told(one, 3)[1:], told(other, 3)[1:], strict=True))


def test_the_exponential_is_that_of_the_library() -> None:
    exponent = np.linspace(-60, 60, 10_001)
    assert erring_w(2.0, exponent, 0.0, 1.0, 1.0, 3.0, POWERS) == pytest.approx(6 * np.exp(exponent), rel=1e-9)
    assert np.isfinite(erring_w(1e15, np.array([-9e9, 9e9]), 0.0, 1.0, 1.0, 1.0, POWERS)).all()


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "perfekt"}, "site.forecast.kind: is 'perfekt' (did you mean perfect? use perfect, persistence"),
        ({"sigma": -0.1}, "site.forecast.sigma: is -0.1 (give a number from 0 to 3)"),
        ({"sigma": float("nan")}, "site.forecast.sigma: is nan"),
        ({"sigma": "much"}, "site.forecast.sigma: is 'much'"),
        ({"bias": float("nan")}, "site.forecast.bias: is nan (give a number from -1 to 10: 0.1 is 10% too much)"),
        ({"bias": True}, "site.forecast.bias: is True"),
        ({"correlation_h": 0.0}, "site.forecast.correlation_h: is 0.0 (give a number from 0.001 to 8760 hours)"),
        ({"correlation_h": float("inf")}, "site.forecast.correlation_h: is inf"),
        ({"seed": -1}, "site.forecast.seed: is -1 (give a whole number, 0 or more)"),
        ({"seed": 2**63}, "site.forecast.seed: is 9223372036854775808 (give at most"),
        ({"days": 0}, "site.forecast.days: is 0"),
        ({"days": 1.5}, "site.forecast.days: is 1.5"),
        ({"days": 367}, "site.forecast.days: is 367 (give at most 366)"),
    ],
)
def test_a_bad_value_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ForecastModel(**given)
    assert str(caught.value).startswith(message)


def test_slots_that_do_not_divide_a_day_have_no_yesterday() -> None:
    for step_s in (7000.0, 3 * DAY_S):
        with pytest.raises(
            InputError, match=r"site\.forecast\.kind: is 'persistence', but steps of .* \(give site.step_s"
        ):
            site(kind="persistence", step_s=step_s, days=9.0)
        site(sigma=0.1, step_s=step_s, days=9.0)


def test_a_site_takes_a_model_and_nothing_else() -> None:
    with pytest.raises(InputError, match=r"site\.forecast_model: is 'perfect' .*ForecastModel"):
        replace(site(), forecast_model="perfect")


def test_a_scenario_states_the_forecast() -> None:
    plain = load_scenario("default")
    assert plain.site.forecast_model == ForecastModel()
    assert "forecast" not in plain.resolved["site"]
    erring = load_scenario("default", overrides={"site.forecast.sigma": 0.4, "site.forecast.seed": 7})
    assert erring.site.forecast_model == ForecastModel(kind="error", sigma=0.4, seed=7)
    assert any("schedulers are told a forecast" in str(note) for note in erring.notes)
    assert erring.resolved["site"]["forecast"]["sigma"] == 0.4
    assert "error of 0.4 a day ahead" in repr(erring.site)
