"""Resampling keeps the energy, whatever the steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenbatch.energy.resample import fill_between, mean_steps, sample_edges, usual_step_s

lengths = st.lists(st.floats(0.5, 5000), min_size=1, max_size=40)


@given(lengths, st.data())
def test_energy_over_whole_steps_is_kept(distances, data):
    edges_s = np.cumsum([0.0, *distances])
    values = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=len(distances), max_size=len(distances))))
    step_s = data.draw(st.floats(0.3, float(edges_s[-1])))
    means = mean_steps(edges_s, values, step_s=step_s)
    covered_s = means.size * step_s
    assert edges_s[-1] - step_s * (1 + 1e-6) <= covered_s <= edges_s[-1] * (1 + 1e-9)
    inside_s = np.diff(np.minimum(edges_s, covered_s))
    assert means.sum() * step_s == pytest.approx((values * inside_s).sum(), rel=1e-9, abs=1e-6)
    assert (means >= values.min()).all()
    assert (means <= values.max()).all()


def test_equal_steps_are_kept_bit_by_bit():
    values = np.array([0.1, 0.2, 0.3])
    assert mean_steps(np.array([5.0, 15.0, 25.0, 35.0]), values, step_s=10.0) is values


def test_mean_by_hand():
    # 10 s of 6 W, 30 s of 2 W, 20 s of 9 W in steps of 20 s
    means = mean_steps(np.array([0.0, 10, 40, 60]), np.array([6.0, 2.0, 9.0]), step_s=20)
    assert means.tolist() == [4.0, 2.0, 9.0]


def test_a_whole_step_is_not_lost_to_rounding():
    assert 0.3 / 0.1 < 3
    means = mean_steps(np.array([0.0, 0.15, 0.3]), np.array([1.0, 2.0]), step_s=0.1)
    np.testing.assert_allclose(means, [1.0, 1.5, 2.0])


def test_the_usual_step_is_that_of_half_the_distances_or_the_median():
    assert usual_step_s(np.array([0.0, 1, 2, 4, 7])) == (1.0, True)
    assert usual_step_s(np.array([0.0, 1, 2, 4, 7, 11])) == (2.0, False)


def test_where_samples_hold():
    times_s = np.array([10.0, 20.0, 40.0])
    assert sample_edges(times_s, label="start", usual_s=10).tolist() == [10, 20, 40, 50]
    assert sample_edges(times_s, label="middle", usual_s=10).tolist() == [5, 15, 35, 45]
    assert sample_edges(times_s, label="end", usual_s=10).tolist() == [0, 10, 20, 40]


def test_usual_step():
    assert usual_step_s(np.array([0.0, 10, 20, 30, 90])) == (10, True)
    assert usual_step_s(np.array([0.0, 10, 21, 33, 46])) == (11.5, False)


def test_filling():
    at, of, wanted = np.array([0.0, 10.0]), np.array([1.0, 3.0]), np.array([-5.0, 0.0, 5.0, 10.0, 15.0])
    assert fill_between(at, of, wanted, how="interpolate").tolist() == [1, 1, 2, 3, 3]
    assert fill_between(at, of, wanted, how="hold").tolist() == [1, 1, 1, 3, 3]
