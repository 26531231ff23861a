"""Moved, stretched and repeated workloads."""

from __future__ import annotations

import numpy as np
import pytest

from greenbatch.errors import InputError
from greenbatch.workload import Workload, read_swf, scale_gaps, shift_to_origin, tile


@pytest.fixture
def three():
    columns = {
        "submit_s": [10, 14, 30], "run_time_s": [1, 2, 3], "processors": [1, 1, 2], "job_id": [4, 5, 9],
        "preceding_job": [-1, 4, 5],
    }  # fmt: skip
    return Workload.from_columns("three", columns, unix_start_s=1000.0)


def test_shift_to_origin_keeps_real_time(three):
    w = shift_to_origin(three)
    assert w.submit_s.tolist() == [0, 4, 20]
    np.testing.assert_array_equal(w.submit_s + w.unix_start_s, three.submit_s + three.unix_start_s)
    assert shift_to_origin(w).submit_s.tolist() == w.submit_s.tolist()


def test_the_origin_is_the_first_line_not_the_first_id(three):
    w = three.with_columns(trace_row=np.array([2, 0, 1]), submit_s=np.array([30.0, 10, 14]))
    assert shift_to_origin(w).submit_s.tolist() == [20, 0, 4]
    with pytest.raises(InputError, match="job 4 was submitted before the first job line"):
        shift_to_origin(w.with_columns(submit_s=np.array([9.0, 10, 14])))


def test_published_traces_start_at_zero(greenbatch_data):
    for name, first_s in (("lublin_256", 5094), ("Cirne", 60408), ("Jann", 0)):
        w = read_swf(greenbatch_data(f"swf/{name}.swf.gz"))
        shifted = shift_to_origin(w)
        assert shifted.submit_s[0] == 0
        assert (w.submit_s - shifted.submit_s == first_s).all()


def test_scale_gaps(three):
    assert scale_gaps(three, 0.5).submit_s.tolist() == [10, 12, 20]
    assert scale_gaps(three, 2).submit_s.tolist() == [10, 18, 50]
    late_first = three.with_columns(submit_s=np.array([30.0, 10, 14]))
    assert scale_gaps(late_first, 2).submit_s.tolist() == [50, 10, 18]


def test_tile(three):
    w = tile(three, 3, 100)
    assert w.submit_s.tolist() == [10, 14, 30, 110, 114, 130, 210, 214, 230]
    assert w.job_id.tolist() == [4, 5, 9, 10, 11, 15, 16, 17, 21]
    assert w.preceding_job.tolist() == [-1, 4, 5, -1, 10, 11, -1, 16, 17]
    assert w.trace_row.tolist() == list(range(9))
    assert w.run_time_s.tolist() == [1, 2, 3] * 3
    assert len(np.unique(w.job_id)) == 9
    nobody = three.with_columns(preceding_job=np.array([0, -1, 4]))
    assert tile(nobody, 2, 100).preceding_job.tolist() == [0, -1, 4, 0, -1, 10]


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda w: tile(w, 0, 1), "copies"), (lambda w: tile(w, 2, -1), "period_s"),
        (lambda w: tile(w, 2, float("nan")), "period_s"), (lambda w: scale_gaps(w, 0), "gap factor"),
        (lambda w: scale_gaps(w, float("inf")), "gap factor"),
    ],
)  # fmt: skip
def test_refused(three, call, field):
    with pytest.raises(InputError, match=field):
        call(three)


def test_nothing_to_move(three):
    none = three.take(slice(0, 0))
    for w in (shift_to_origin(none), scale_gaps(none, 2), tile(none, 3, 1)):
        assert len(w) == 0


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"submit_s": [0], "run_time_s": [1]}, "processors: required column is missing"),
        ({"submit_s": [0], "run_time_s": [1], "processors": [1], "cpu": [1]}, "unknown column 'cpu'"),
        ({"submit_s": [-1], "run_time_s": [1], "processors": [1]}, "submit_s: job 1 has -1"),
        ({"submit_s": [np.inf], "run_time_s": [1], "processors": [1]}, "submit_s: job 1 has inf"),
        ({"submit_s": [0], "run_time_s": [np.nan], "processors": [1]}, "run_time_s: job 1 has nan"),
        ({"submit_s": [0], "run_time_s": [1], "processors": [0]}, "processors: job 1 has 0"),
        ({"submit_s": [0], "run_time_s": [1], "processors": [1.5]}, "processors: requires whole numbers"),
        ({"submit_s": [0], "run_time_s": [1], "processors": [1], "power_w": [-1]}, "power_w: job 1 has -1"),
        ({"submit_s": [0, 1], "run_time_s": [1, 1], "processors": [1, 1], "job_id": [2, 2]}, "job id 2 occurs twice"),
        ({"submit_s": [0, 1], "run_time_s": [1], "processors": [1, 1]}, "run_time_s: has 1 values, submit_s has 2"),
    ],
)
def test_tables_that_are_no_workload(columns, words):
    with pytest.raises(InputError, match=words):
        Workload.from_columns("w", columns)
