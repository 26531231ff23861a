"""Power models against their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.energy import Series, at_density, at_hub, cubic_turbine, power, pv, turbine
from greenbatch.energy.rounding import rounded
from greenbatch.errors import InputError


def wind(*speeds: float) -> Series:
    return Series(name="wind", quantity="wind_m_s", values=np.array(speeds, dtype=float), step_s=3600)


def sun(*irradiance: float) -> Series:
    return Series(name="sun", quantity="irradiance_w_m2", values=np.array(irradiance, dtype=float), step_s=3600)


def test_pv_is_equation_17():
    assert pv(sun(0, 500, 1000), area_m2=200, efficiency=0.2).values.tolist() == [0, 20_000, 40_000]


def test_turbine_is_equation_18_and_full_at_rated_speed():
    # cut-in 2.5, rated 15, cut-out 30 m/s: at cut-in still 0, at rated full, at cut-out 0 again
    speeds = [0, 2.5, 2.6, 8.75, 14.99, 15.0, 15.01, 29.99, 30.0, 80.0]
    expected_w = [0, 0, 57.6, 3600, 7194.24, 7200, 7200, 7200, 0, 0]
    assert turbine(wind(*speeds), rated_w=7200).values == pytest.approx(expected_w)


def test_cubic_turbine_meets_its_ends_and_the_cube_between():
    values = cubic_turbine(wind(3, 3.0001, 9, 12, 24.9, 25), rated_w=1000).values
    assert values == pytest.approx([0, 0.0016, 1000 * (729 - 27) / (1728 - 27), 1000, 1000, 0], abs=1e-3)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50), st.sampled_from([turbine, cubic_turbine]))
def test_turbine_power_stays_between_zero_and_rated(speeds, model):
    values = model(wind(*speeds), rated_w=7200).values
    assert ((values >= 0) & (values <= 7200)).all()


@given(st.lists(st.floats(0, 15), min_size=2, max_size=50))
def test_turbine_power_does_not_fall_below_rated_speed(speeds):
    values = turbine(wind(*sorted(speeds)), rated_w=7200, round_w=0.01).values
    assert (np.diff(values) >= 0).all()


@given(st.lists(st.floats(0, 1500), min_size=1, max_size=50), st.floats(0.01, 100))
def test_factor_scales_area_before_rounding(irradiance, factor):
    scaled = pv(sun(*irradiance), area_m2=200, factor=factor, round_w=0.01)
    assert scaled.values.tolist() == pv(sun(*irradiance), area_m2=200 * factor, round_w=0.01).values.tolist()


def test_rounding_is_pythons_and_not_numpys():
    # binary values just below the tie; numpy multiplies first and gives 0.29 and 2.68
    assert rounded(np.array([0.285, 2.675]), 0.01, field="x").tolist() == [0.28, 2.67]


def test_hub_height_power_law_and_log_law():
    hub = at_hub(wind(7.0), measured_height_m=10, hub_height_m=80)
    assert hub.values[0] == pytest.approx(7 * 8 ** (1 / 7))
    hub = at_hub(wind(7.0), measured_height_m=10, hub_height_m=80, law="log", roughness_length_m=0.15)
    assert hub.values[0] == pytest.approx(7 * np.log(80 / 0.15) / np.log(10 / 0.15))
    same = at_hub(wind(7.0), measured_height_m=80, hub_height_m=80, law="log")
    assert same.values[0] == pytest.approx(7)


def test_density_of_the_standard_atmosphere():
    assert at_density(wind(10), elevation_m=0).values[0] == pytest.approx(10, abs=2e-3)
    # ICAO standard atmosphere at 2000 m: 1.0065 kg/m3
    assert at_density(wind(10), elevation_m=2000).values[0] == pytest.approx(10 * (1.0065 / 1.225) ** (1 / 3), rel=1e-4)


def test_cold_dense_air_counts_as_more_wind():
    cold = Series(name="t", quantity="temperature_c", values=np.array([-20.0]), step_s=3600)
    thin = Series(name="p", quantity="pressure_pa", values=np.array([101_325.0]), step_s=3600)
    density = 101_325 / (287.05 * 253.15)
    assert at_density(wind(10), temperature=cold, pressure=thin).values[0] == pytest.approx(
        10 * (density / 1.225) ** (1 / 3)
    )


def test_power_from_shares_and_its_unit_check():
    share = Series(name="pv", quantity="share", values=np.array([0.0, 0.5, 1.0]), step_s=300)
    assert power(share, rated_w=30_000, factor=2).values.tolist() == [0, 30_000, 60_000]
    watts = Series(name="pv", quantity="power_w", values=np.array([0.0, 29.5]), step_s=300)
    assert power(watts, rated_w=30).values.tolist() == [0, 29.5]
    with pytest.raises(InputError, match=r"never exceeds 29\.5 W, but the plant is rated 30000 W"):
        power(watts, rated_w=30_000)  # kW declared as W
    with pytest.raises(InputError, match=r"rated_w: is missing \(pv holds shares of it\)"):
        power(share)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pv(sun(1), area_m2=0), "pv.area_m2: is 0"),
        (lambda: pv(sun(1), area_m2=float("nan")), "pv.area_m2: is nan"),
        (lambda: pv(sun(1), area_m2=1, efficiency=20), "pv.efficiency: is 20 .*to 1"),
        (lambda: pv(sun(1), area_m2=1, factor=-1), "pv.factor"),
        (lambda: pv(sun(1), area_m2=1, round_w=0.03), r"pv.round_w: is 0.03 \(give 1, 0.1"),
        (lambda: pv(sun(1), area_m2=1, round_w=0), "pv.round_w"),
        (lambda: pv(wind(1), area_m2=1), r"wind: holds wind_m_s, but pv requires irradiance_w_m2 \(.*W/m2, kW/m2"),
        (lambda: turbine(sun(1), rated_w=1), "sun: holds irradiance_w_m2"),
        (lambda: turbine(wind(1), rated_w=-5), "turbine.rated_w: is -5"),
        (lambda: turbine(wind(1), rated_w=1, cut_in_m_s=16), "they must satisfy"),
        (lambda: turbine(wind(1), rated_w=1, cut_out_m_s=float("inf")), "they must satisfy"),
        (lambda: at_hub(wind(1), measured_height_m=0, hub_height_m=80), "measured_height_m: is 0"),
        (lambda: at_hub(wind(1), measured_height_m=10, hub_height_m=80, shear_exponent=7), "shear_exponent: is 7"),
        (lambda: at_hub(wind(1), measured_height_m=10, hub_height_m=80, law="cosine"), "law: is 'cosine'"),
        (lambda: at_hub(wind(1), measured_height_m=1, hub_height_m=80, law="log", roughness_length_m=2), "below both"),
        (lambda: at_density(wind(1)), "give one of them"),
        (lambda: at_density(wind(1), elevation_m=9000), "elevation_m: is 9000"),
    ],
)
def test_parameters_out_of_range(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_density_needs_series_in_the_same_steps():
    later = Series(name="t", quantity="temperature_c", values=np.array([5.0]), step_s=3600, start_s=3600)
    with pytest.raises(InputError, match="does not have the same steps as wind"):
        at_density(wind(1), temperature=later, elevation_m=0)


@pytest.mark.parametrize("values", [[np.nan], [np.inf], [-1.0], [121.0]])
def test_implausible_wind_is_refused(values):
    with pytest.raises(InputError, match=r"wind: step 0 is .*plausible: 0 to 120"):
        wind(*values)
